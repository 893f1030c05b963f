package server

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"apollo11/engine/task"
)

// Old logs go, and so does what is over a folder's share; the newest stays.
func TestTaskLogsAreSwept(t *testing.T) {
	dir := t.TempDir()
	const keep = time.Hour
	l, err := openTaskLogs(dir, keep, logFolders*2*maxLog)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	folder, _ := logName("t", 1)
	ancient := filepath.Join(dir, folder, "ancient.1.log")
	write := func(v int) {
		t.Helper()
		if err := l.append("t", task.Version(v), []byte(strings.Repeat("x", maxLog/2))); err != nil {
			t.Fatal(err)
		}
	}
	write(1)
	if err := os.WriteFile(ancient, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	past := time.Now().Add(-2 * keep)
	if err := os.Chtimes(ancient, past, past); err != nil {
		t.Fatal(err)
	}
	for v := 2; v <= 4*sweepEvery; v++ {
		write(v)
	}
	if _, err := os.Stat(ancient); !os.IsNotExist(err) {
		t.Errorf("a log older than %s is still there: %v", keep, err)
	}
	total := int64(0)
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	if most := int64(2*maxLog + sweepEvery*maxLog/2); err != nil || total > most || total == 0 {
		t.Errorf("%d bytes of logs in one folder, want at most %d (%v)", total, most, err)
	}
	chunk, err := l.read("t", 4*sweepEvery, 0)
	if err != nil || len(chunk.Data) == 0 {
		t.Errorf("the newest log is gone: %s, %v", fmt.Sprint(chunk), err)
	}
}
