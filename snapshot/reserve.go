package snapshot

import (
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
)

const (
	reserveFile = "reserve"
	reserveSize = 16 << 20
)

// spare is room set aside on the disk for the batches that come when the rest
// of it is full.
type spare struct {
	files Files
	dir   string
	log   *slog.Logger
	used  bool // the reserve is not there
}

// take sets the room aside, or notes that there is none.
func (r *spare) take() {
	if err := r.files.Reserve(r.name(), reserveSize); err != nil {
		r.used = true
		r.log.Warn("disk is full: no reserve for the journal", "dir", r.dir, "bytes", reserveSize, "error", err)
	}
}

// release gives the room back to the disk for the next write.
func (r *spare) release() error {
	if r.used {
		return errors.New("the reserve is used up")
	}
	r.used = true
	r.log.Warn("disk is full: journal goes on from its reserve", "dir", r.dir, "bytes", reserveSize)
	if err := r.files.Remove(r.name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// full looks for room for the reserve and as much again, and takes it back.
func (r *spare) full() bool {
	if !r.used {
		return false
	}
	room, err := r.files.Room(r.dir)
	if err != nil || room < 2*reserveSize {
		return true
	}
	if err := r.files.Reserve(r.name(), reserveSize); err != nil {
		return true
	}
	r.used = false
	r.log.Info("disk has room again", "dir", r.dir, "free", room)
	return false
}

func (r *spare) name() string { return filepath.Join(r.dir, reserveFile) }
