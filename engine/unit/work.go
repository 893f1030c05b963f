package unit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Workplace is where one executor makes its attempts' folders: the unit's
// working folder on disk, and the small files it is asked and answers by in
// memory, where the host has such a place.
//
// To make and delete folders on disk costs more than a small program does, and
// waits for whoever syncs the same disk. So a folder is taken again for the next
// attempt if it is then as it was given: empty.
type Workplace struct {
	disk, memory claim
	spare        desk // folders that are as new; empty: none
	quiet        int  // threads and processes on the host that are no unit's, as far as known
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
	d, w.spare = w.spare, desk{}
	if err = w.disk.have(&d.folder); err == nil {
		err = w.memory.have(&d.files)
	}
	if err == nil {
		err = writeNew(d.file(inputName), input)
	}
	if err != nil {
		w.give(d)
	}
	return d, err
}

// writeNew is os.WriteFile for a name that is free, with half the system calls.
func writeNew(file string, data []byte) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY|nonblock, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// give deletes what an attempt has left.
func (w *Workplace) give(d desk) error {
	for _, name := range []string{inputName, outputName, stateName, progressName} {
		syscall.Unlink(d.file(name)) // what this cannot delete, is found by the next line
	}
	return errors.Join(keepNew(d.folder, &w.spare.folder), keepNew(d.files, &w.spare.files))
}

// keepNew deletes a folder, unless it is as new and can be the spare.
func keepNew(dir string, spare *string) error {
	if dir == "" {
		return nil
	}
	if asNew(dir) {
		*spare = dir
		return nil
	}
	return removeAll(dir)
}

// have makes sure of a folder: the one that is spare, or a new one.
func (c *claim) have(dir *string) (err error) {
	if info, err := os.Lstat(*dir); err == nil && info.IsDir() {
		return nil
	}
	*dir, err = c.newFolder()
	return err
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
