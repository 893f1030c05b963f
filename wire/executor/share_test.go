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
			abs, id, err := openShare(dir)
			if err != nil || abs != dir {
				t.Errorf("%s %v", abs, err)
			}
			ids[i] = id
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
	if _, id, err := openShare(t.TempDir()); err != nil || id == ids[0] {
		t.Errorf("another folder has the id %s, %v", id, err)
	}
}

func TestShareFaults(t *testing.T) {
	dir := t.TempDir()
	for _, text := range []string{"", "0123", "0123456789abcdef0", "not hexadecimal!", "0123456789abcdef\n0123456789abcdef"} {
		if err := os.WriteFile(filepath.Join(dir, shareFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, id, err := openShare(dir); id != "" || err == nil || !strings.Contains(err.Error(), "delete it") {
			t.Errorf("%q: %q %v", text, id, err)
		}
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, id, err := openShare(file); id != "" || err == nil {
		t.Errorf("a file as a share: %q %v", id, err)
	}
}
