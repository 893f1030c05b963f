package bench

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUsage(t *testing.T) {
	u, ok := readUsage(os.Getpid())
	if !ok || u.rss < 1<<20 || u.peak < u.rss || u.cpu < 0 || u.cpu > 3600 {
		t.Errorf("this process: %+v, %v", u, ok)
	}
	if u, ok := readUsage(1 << 30); ok {
		t.Errorf("no process: %+v", u)
	}
	if s, ok := ownCPU(); !ok || s <= 0 {
		t.Errorf("own time: %v, %v", s, ok)
	}
}

func TestOnDisk(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a"), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "a", "b"))
	if err == nil {
		_, err = f.WriteString(strings.Repeat("words and ", 1000))
	}
	if err == nil {
		err = f.Sync() // some disks give no room before
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	if n, ok := onDisk(dir); !ok || n < 1 || n > 100_000 {
		t.Errorf("%d bytes, %v", n, ok)
	}
	if _, ok := onDisk(filepath.Join(dir, "c")); ok {
		t.Error("a folder that is not there has a size")
	}
}
