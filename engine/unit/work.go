package unit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Workplace is where one executor makes its attempts' folders: the unit's
// working folder on disk, and the small files it is asked and answers by in
// memory, where the host has such a place.
//
// To make and delete folders on disk costs more than a small program does, and
// waits for whoever syncs the same disk. So the working folder of an attempt is
// taken again for the next if the unit has left it as it was given.
type Workplace struct {
	disk, memory claim
	folder       string // a working folder that is as new; empty: none
	quiet        int    // threads and processes on the host that are no unit's, as far as known
}

// memoryFolder is a file system that has no disk, on Linux.
const memoryFolder = "/dev/shm"

// OpenWorkplace makes a workplace within parent, and first ends and deletes
// what executors that are no more have left there.
func OpenWorkplace(parent string) (*Workplace, error) {
	w := &Workplace{}
	var err error
	if w.disk, err = newClaim(parent); err != nil {
		return nil, fmt.Errorf("work folder: %w", err)
	}
	if info, err := os.Stat(memoryFolder); err == nil && info.IsDir() {
		if w.memory, err = newClaim(memoryFolder); err == nil {
			return w, nil
		}
	}
	if w.memory, err = newClaim(parent); err != nil {
		w.disk.release()
		return nil, fmt.Errorf("work folder: %w", err)
	}
	return w, nil
}

// Close deletes the workplace.
func (w *Workplace) Close() error { return errors.Join(w.disk.release(), w.memory.release()) }

// desk is what one attempt has of a workplace.
type desk struct {
	folder string // the unit's working folder
	files  string // the folder of the files below
}

// The files of an attempt.
const (
	inputName    = "input.json"
	outputName   = "output"
	stateName    = "state"
	progressName = "progress"
)

func (d desk) file(name string) string { return filepath.Join(d.files, name) }

func (w *Workplace) take(input []byte) (d desk, err error) {
	d.folder, w.folder = w.folder, ""
	if d.folder == "" || !there(d.folder) {
		if d.folder, err = w.disk.newFolder(); err != nil {
			return d, err
		}
	}
	if d.files, err = w.memory.newFolder(); err == nil {
		err = os.WriteFile(d.file(inputName), input, 0o600)
	}
	if err != nil {
		w.give(d)
	}
	return d, err
}

// give deletes what an attempt has left.
func (w *Workplace) give(d desk) (err error) {
	if d.files != "" {
		err = removeAll(d.files)
	}
	if asNew(d.folder) {
		w.folder = d.folder
		return err
	}
	return errors.Join(err, removeAll(d.folder))
}

// there reports whether a folder that was as new was not deleted since.
func there(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir()
}

// asNew reports whether a folder is there, empty, with its own mode.
func asNew(dir string) bool {
	f, err := os.OpenFile(dir, os.O_RDONLY|nonblock|noFollow, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Mode() != fs.ModeDir|0o700 {
		return false
	}
	_, err = f.Readdirnames(1)
	return err == io.EOF
}

// newFolder makes a folder; a claim that somebody deleted is made again.
func (c *claim) newFolder() (string, error) {
	dir, err := os.MkdirTemp(c.dir, "")
	if !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	if err := c.again(); err != nil {
		return "", err
	}
	return os.MkdirTemp(c.dir, "")
}
