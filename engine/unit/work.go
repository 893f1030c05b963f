package unit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Workplace is the folder in which one executor makes its attempts' folders. It
// is locked for as long as its owner lives, so that the next executor on the
// host knows what a dead one left.
type Workplace struct {
	dir  string
	lock *os.File
}

const (
	workPrefix = "apollo11-work-"
	lockName   = ".apollo11-owner" // also the mark that the folder is ours to delete
)

// OpenWorkplace makes a workplace within parent, and first ends and deletes
// what executors that are no more have left there.
func OpenWorkplace(parent string) (*Workplace, error) {
	parent, err := filepath.Abs(parent)
	if err != nil {
		return nil, fmt.Errorf("work folder: %w", err)
	}
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, fmt.Errorf("work folder: %w", err)
	}
	if parent, err = filepath.EvalSymlinks(parent); err != nil { // as /proc shows it
		return nil, fmt.Errorf("work folder: %w", err)
	}
	sweep(parent)
	w := &Workplace{}
	if w.dir, err = os.MkdirTemp(parent, workPrefix); err != nil {
		return nil, fmt.Errorf("work folder: %w", err)
	}
	if err := w.mark(); err != nil {
		os.RemoveAll(w.dir)
		return nil, fmt.Errorf("work folder: %w", err)
	}
	return w, nil
}

// mark leaves no moment at which the lock file is there and free: it is locked
// under another name first.
func (w *Workplace) mark() (err error) {
	name := filepath.Join(w.dir, lockName)
	if w.lock, err = os.OpenFile(name+".new", os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err != nil {
		return err
	}
	if !tryLock(w.lock) {
		return fmt.Errorf("%s: cannot be locked", name)
	}
	return os.Rename(name+".new", name)
}

// Close deletes the workplace.
func (w *Workplace) Close() error {
	err := removeAll(w.dir)
	return errors.Join(err, w.lock.Close())
}

// attempt makes the folder of one attempt; a workplace that somebody deleted is
// made again.
func (w *Workplace) attempt() (string, error) {
	dir, err := os.MkdirTemp(w.dir, "")
	if !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return "", err
	}
	w.lock.Close()
	if err := w.mark(); err != nil {
		return "", err
	}
	return os.MkdirTemp(w.dir, "")
}

// sweep deletes the workplaces whose owners are gone. What it may not delete
// it leaves: a start must not fail for it.
func sweep(parent string) {
	entries, _ := os.ReadDir(parent)
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), workPrefix) {
			continue
		}
		dir := filepath.Join(parent, e.Name())
		info, err := os.Lstat(filepath.Join(dir, lockName))
		if err != nil || !info.Mode().IsRegular() || !ours(info) {
			continue
		}
		lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|nonblock, 0)
		if err != nil {
			continue
		}
		if tryLock(lock) {
			endUsers(dir)
			removeAll(dir)
		}
		lock.Close()
	}
}

// removeAll is os.RemoveAll for a folder in which a unit may have taken away
// its own permissions.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() {
			os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}
