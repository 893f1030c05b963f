package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"apollo11/engine"
	"apollo11/engine/view"
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

// timeline reads events out of a journal.
type timeline struct{ entries }

var errPageFull = errors.New("page is full")

// maxScanned is how many records one page looks at.
const maxScanned = 200_000

// page answers a query; where older records are gone it begins with what is kept.
func (t timeline) page(ctx context.Context, q view.EventQuery) (view.EventPage, error) {
	if q.Limit <= 0 || q.Limit > view.MaxRows {
		q.Limit = view.MaxRows
	}
	page := view.EventPage{Next: max(q.From, 1)}
	scanned := 0
	read := func(e snapshot.Entry) error {
		if scanned++; scanned > maxScanned || len(page.Events) == q.Limit {
			page.More = true
			return errPageFull
		}
		if scanned%1000 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		event, err := engine.Describe(e.Seq, string(e.Body))
		if err != nil {
			return fmt.Errorf("record %d: %w", e.Seq, err)
		}
		page.Next = event.Seq + 1
		if wanted(&q, &event) {
			page.Events = append(page.Events, event)
		}
		return nil
	}
	err := t.Read(uint64(page.Next), read)
	var gone *snapshot.Gone
	if errors.As(err, &gone) {
		err = t.Read(gone.First, read)
	}
	if errors.Is(err, errPageFull) {
		err = nil
	}
	return page, err
}

func wanted(q *view.EventQuery, e *view.Event) bool {
	return (q.Task == "" || e.Task == q.Task) &&
		(q.After.IsZero() || !e.Time.Before(q.After)) &&
		(q.Until.IsZero() || !e.Time.After(q.Until))
}

// Offline is the timeline of a data folder, a backup or a journal file.
type Offline struct{ timeline }

// OpenOffline opens files for reading, also beside a running controller.
func OpenOffline(path string) (*Offline, error) {
	r, err := snapshot.OpenReader(path)
	if err != nil {
		return nil, err
	}
	return &Offline{timeline{r}}, nil
}

// Timeline is a page of it.
func (o *Offline) Timeline(ctx context.Context, q view.EventQuery) (*view.EventPage, error) {
	page, err := o.page(ctx, q)
	return &page, err
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
