package controller

import (
	"log/slog"
	"time"

	"apollo11/engine"
	"apollo11/snapshot"
)

// disk is the journal as the engine takes images on it.
type disk struct {
	store *snapshot.Store
	now   func() time.Time
	keep  time.Duration
	log   *slog.Logger
}

// NewImage implements engine.Images.
func (d disk) NewImage(seq uint64) (engine.ImageWriter, error) {
	w, err := d.store.NewImage(seq)
	if err != nil {
		return nil, err
	}
	return imageWriter{w, d}, nil
}

type imageWriter struct {
	*snapshot.ImageWriter
	disk disk
}

// Commit implements engine.ImageWriter; with a new image on disk, old segments
// may go.
func (w imageWriter) Commit(content []byte) error {
	if err := w.ImageWriter.Commit(content); err != nil {
		return err
	}
	if w.disk.keep > 0 {
		if n, err := w.disk.store.Prune(w.disk.now(), w.disk.keep); err != nil {
			w.disk.log.Warn("old journal segments were not removed", "error", err)
		} else if n > 0 {
			w.disk.log.Info("old journal segments removed", "segments", n)
		}
	}
	return nil
}

// entries is what a Store and a Reader have in common.
type entries interface {
	Read(from uint64, fn func(snapshot.Entry) error) error
	ReadImage(load func(snapshot.Image) error, line func([]byte) error) (bool, error)
}

// source is a journal as the engine reads it.
type source struct{ entries }

// Read implements engine.Source.
func (s source) Read(from uint64, fn func(uint64, []byte) error) error {
	return s.entries.Read(from, func(e snapshot.Entry) error { return fn(e.Seq, e.Body) })
}

// ReadImage implements engine.Source.
func (s source) ReadImage(load func(uint64, []byte) error, line func([]byte) error) (bool, error) {
	return s.entries.ReadImage(func(i snapshot.Image) error { return load(i.Seq, i.Content) }, line)
}

// Verify checks every byte of a data folder, folds its journal and compares the
// state's hash wherever one was saved.
func Verify(dir string, progress func(seq uint64)) (snapshot.Report, engine.Verified, error) {
	report, err := snapshot.Check(dir)
	if err != nil {
		return report, engine.Verified{}, err
	}
	if !report.OK() {
		return report, engine.Verified{}, report.Problems[0]
	}
	r, err := snapshot.OpenReader(dir)
	if err != nil {
		return report, engine.Verified{}, err
	}
	v, err := engine.Verify(source{r}, r.First(), progress)
	return report, v, err
}
