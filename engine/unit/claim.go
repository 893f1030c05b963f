package unit

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// claim is a folder that this process made and locked. The lock lasts as long
// as the process lives, so that the next one knows what a dead one left.
type claim struct {
	dir  string
	lock *os.File
}

const (
	claimPrefix = "apollo11-work-"
	lockName    = ".apollo11-owner" // also the mark that the folder is ours to delete
)

// newClaim makes a folder of our own within parent, and first ends and deletes
// what executors that are no more have left there.
func newClaim(parent string) (c claim, err error) {
	if parent, err = filepath.Abs(parent); err != nil {
		return c, err
	}
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return c, err
	}
	if parent, err = filepath.EvalSymlinks(parent); err != nil { // as /proc shows it
		return c, err
	}
	sweep(parent)
	if c.dir, err = os.MkdirTemp(parent, claimPrefix); err != nil {
		return c, err
	}
	if err := c.mark(); err != nil {
		os.RemoveAll(c.dir)
		return c, err
	}
	return c, nil
}

// mark leaves no moment at which the lock file is there and free: it is locked
// under another name first.
func (c *claim) mark() (err error) {
	name := filepath.Join(c.dir, lockName)
	if c.lock, err = os.OpenFile(name+".new", os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err != nil {
		return err
	}
	if !tryLock(c.lock) {
		return fmt.Errorf("%s: cannot be locked", name)
	}
	return os.Rename(name+".new", name)
}

// again makes the folder anew after somebody has deleted it.
func (c *claim) again() error {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	c.lock.Close()
	return c.mark()
}

func (c *claim) release() error {
	err := removeAll(c.dir)
	c.lock.Close()
	return err
}

// sweep deletes the claims whose owners are gone. What it may not delete it
// leaves: a start must not fail for it.
func sweep(parent string) {
	entries, _ := os.ReadDir(parent)
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), claimPrefix) {
			sweepOne(filepath.Join(parent, e.Name()))
		}
	}
}

func sweepOne(dir string) {
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|nonblock|noFollow, 0)
	if err != nil {
		return
	}
	defer lock.Close()
	if info, err := lock.Stat(); err != nil || !info.Mode().IsRegular() || !ours(info) {
		return
	}
	if tryLock(lock) {
		endContainer(dir)
		endUsers(dir)
		removeAll(dir)
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
