package controller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"apollo11/engine"
	"apollo11/engine/view"
	"apollo11/snapshot"
)

// ErrTimelineOnly is returned for questions about the state to a journal file
// that does not begin at the first record.
var ErrTimelineOnly = errors.New("only its timeline can be read")

// Offline answers as a controller does, out of files: a data folder, also one
// that a controller is running on, a backup, or one journal file. It takes no lock
// and writes nothing. It sees what was there when it was opened. One goroutine at
// a time may use it.
type Offline struct {
	timeline
	// Settings are what the journal does not have: contracts of keys, limits.
	Settings engine.Settings
	// Progress is called now and then while the journal is folded; may be nil.
	Progress func(seq uint64)

	path   string
	reader *snapshot.Reader
	file   bool             // one journal file
	past   *engine.Past     // what was asked last, folded; nil: nothing yet
	left   map[string]int64 // runs that left memory: the last record before
}

// OpenOffline opens files for reading.
func OpenOffline(path string) (*Offline, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	r, err := snapshot.OpenReader(path)
	if err != nil {
		return nil, err
	}
	return &Offline{
		timeline: timeline{r}, Settings: engine.DefaultSettings(), path: path, reader: r, file: !info.IsDir(), left: map[string]int64{},
	}, nil
}

// at folds up to a moment; 0: all there is.
func (o *Offline) at(ctx context.Context, seq int64) (*engine.Past, error) {
	last, damage := o.reader.Last(), o.reader.Damage()
	switch {
	case seq < 0:
		return nil, fmt.Errorf("%w: record %d: they are numbered from 1", engine.ErrInvalid, seq)
	case o.reader.First() > last && damage == nil:
		return nil, fmt.Errorf("%w: %s: no records are there", engine.ErrNotFound, o.path)
	case o.file && o.reader.First() > 1:
		return nil, fmt.Errorf("%s begins at record %d: %w; for the state, read the folder that it is from", filepath.Base(o.path), o.reader.First(), ErrTimelineOnly)
	case damage != nil && (seq == 0 || uint64(seq) > last):
		return nil, fmt.Errorf("%w; what was before can be read, up to record %d", damage, last)
	case uint64(seq) > last:
		return nil, fmt.Errorf("%w: record %d: the journal ends at %d", engine.ErrNotFound, seq, last)
	case seq > 0:
		last = uint64(seq)
	}
	if o.past != nil && o.past.Seq() == last {
		return o.past, nil
	}
	o.past = nil // not two in memory
	past, err := openPast(ctx, o.reader, engine.PastOptions{Seq: last, Settings: o.Settings, Progress: o.Progress})
	if err != nil {
		return nil, err
	}
	o.past = past
	return past, nil
}

// askAt asks a moment of files.
func askAt[T any](ctx context.Context, o *Offline, seq int64, c engine.Command) (answer T, err error) {
	p, err := o.at(ctx, seq)
	if err != nil {
		return answer, err
	}
	return ask[T](p, c)
}

// Timeline is a page of what happened; nothing is folded for it.
func (o *Offline) Timeline(ctx context.Context, q view.EventQuery) (*view.EventPage, error) {
	page, err := o.page(ctx, q)
	return &page, err
}

// Moment is the last record that is not after a time; 0: there was none yet.
func (o *Offline) Moment(_ context.Context, when time.Time) (int64, error) {
	seq, err := o.lastAt(when)
	return int64(seq), err
}

// KeysAt is a page of the global state as a record left it; 0: the last one.
func (o *Offline) KeysAt(ctx context.Context, seq int64, q view.KeyQuery) (*view.KeyPage, error) {
	return askAt[*view.KeyPage](ctx, o, seq, engine.GetState{Query: q})
}

// Run is a run with a page of its units. One that left memory is looked up as it
// was before, if that is still kept; it has to be named in full.
func (o *Offline) Run(ctx context.Context, id, cursor string) (*view.RunDetail, error) {
	return askOfRun[*view.RunDetail](ctx, o, id, engine.GetRun{ID: id, Cursor: cursor})
}

// askOfRun asks the last moment at which memory had a run.
func askOfRun[T any](ctx context.Context, o *Offline, id string, c engine.Command) (answer T, err error) {
	answer, err = askAt[T](ctx, o, o.left[id], c)
	if !errors.Is(err, engine.ErrNotFound) || o.left[id] != 0 {
		return answer, err
	}
	seq, failed := o.leaving(ctx, id)
	if failed != nil || seq == 0 {
		return answer, errors.Join(failed, err)
	}
	o.left[id] = seq
	return askAt[T](ctx, o, seq, c)
}

// leaving is the last record before a run left memory; 0: it did not.
func (o *Offline) leaving(ctx context.Context, id string) (int64, error) {
	for q := (view.EventQuery{Run: id}); ; {
		page, err := o.page(ctx, q)
		if err != nil {
			return 0, err
		}
		for n := range page.Events {
			if page.Events[n].Kind == "run.forget" {
				return page.Events[n].Seq - 1, nil
			}
		}
		if !page.More {
			return 0, nil
		}
		q.From = page.Next
	}
}

// Runs is a page of the runs, newest first.
func (o *Offline) Runs(ctx context.Context, q view.RunQuery) (*view.RunPage, error) {
	return askAt[*view.RunPage](ctx, o, 0, engine.GetRuns{Query: q})
}

// RunSpec is the mission that a run executes, as it was.
func (o *Offline) RunSpec(ctx context.Context, run string) (string, error) {
	return askOfRun[string](ctx, o, run, engine.GetSpec{Run: run})
}

// Task is all that is known of a task.
func (o *Offline) Task(ctx context.Context, id string) (*view.Detail, error) {
	return askAt[*view.Detail](ctx, o, 0, engine.GetTask{ID: id})
}

// Tasks is a page of tasks, newest first.
func (o *Offline) Tasks(ctx context.Context, q view.Query) (*view.Page, error) {
	return askAt[*view.Page](ctx, o, 0, engine.GetTasks{Query: q})
}

// Explain says why a task or a run stood where it did.
func (o *Offline) Explain(ctx context.Context, id string) (*view.Explanation, error) {
	return askAt[*view.Explanation](ctx, o, 0, engine.GetExplanation{ID: id})
}
