package executor

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// However many executors start at once, those that see the same folder agree,
// and those that see another one do not.
func TestShareID(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "share")
	ids := make([]string, 50)
	var group sync.WaitGroup
	for i := range ids {
		group.Go(func() {
			s, err := openShare(dir)
			if err != nil || s.Dir != dir {
				t.Errorf("%+v %v", s, err)
				return
			}
			ids[i] = s.ID
		})
	}
	group.Wait()
	for _, id := range ids {
		if id != ids[0] || len(id) != 2*shareBytes {
			t.Fatalf("%q", ids)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != shareFile {
		t.Errorf("left behind: %v %v", left, err)
	}
	if s, err := openShare(t.TempDir()); err != nil || s.ID == ids[0] {
		t.Errorf("another folder is %+v, %v", s, err)
	}
}

func TestShareFaults(t *testing.T) {
	dir := t.TempDir()
	for _, text := range []string{"", "0123", "0123456789abcdef0", "not hexadecimal!", "0123456789abcdef\n0123456789abcdef"} {
		if err := os.WriteFile(filepath.Join(dir, shareFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := openShare(dir); s != nil || err == nil || !strings.Contains(err.Error(), "delete it") {
			t.Errorf("%q: %+v %v", text, s, err)
		}
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := openShare(file); s != nil || err == nil {
		t.Errorf("a file as a share: %+v %v", s, err)
	}
}
