package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"apollo11/engine"
	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/snapshot"
)

// sourceAt is a journal up to a moment, as the engine reads it.
type sourceAt struct {
	records
	seq uint64
}

// Read implements engine.Source.
func (s sourceAt) Read(from uint64, fn func(uint64, []byte) error) error {
	return s.records.Read(from, func(e snapshot.Entry) error { return fn(e.Seq, e.Body) })
}

// ReadImage implements engine.Source.
func (s sourceAt) ReadImage(load func(uint64, []byte) error, line func([]byte) error) (bool, error) {
	return s.records.ReadImageAt(s.seq, func(i snapshot.Image) error { return load(i.Seq, i.Content) }, line)
}

// openPast folds a journal up to a moment. What is no longer kept is not found.
func openPast(ctx context.Context, j records, o engine.PastOptions) (*engine.Past, error) {
	o.Source = sourceAt{j, o.Seq}
	p, err := engine.OpenPast(ctx, o)
	if gone := new(snapshot.Gone); errors.As(err, &gone) {
		// Pruned meanwhile: then a newer image leads to where the journal goes on.
		p, err = engine.OpenPast(ctx, o)
	}
	var out *snapshot.Unreachable
	switch {
	case errors.As(err, &out):
		return nil, fmt.Errorf("%w: %w", engine.ErrNotFound, out)
	case errors.Is(err, snapshot.ErrGone):
		return nil, fmt.Errorf("%w: %w", engine.ErrNotFound, err)
	}
	return p, err
}

// ask asks the past, and knows the answer's type.
func ask[T any](p *engine.Past, c engine.Command) (answer T, err error) {
	a, err := p.Ask(c)
	if err != nil {
		return answer, err
	}
	return a.(T), nil
}

// maxKept is how many moments are kept folded: the pages of a state come one by
// one, and two are compared with each other.
const maxKept = 2

// looker tells the running controller's past; it implements server.Past. It
// folds one moment at a time, beside the loop, which takes as much memory again
// as the state had; then it keeps only the keys.
type looker struct {
	timeline
	settings engine.Settings
	turn     chan []*engine.Past // holds what is kept, newest use last, while nobody uses it
}

func newLooker(store *snapshot.Store, settings engine.Settings) *looker {
	l := &looker{timeline{store}, settings, make(chan []*engine.Past, 1)}
	l.turn <- nil
	return l
}

// with gives a moment to one user at a time.
func (l *looker) with(ctx context.Context, seq int64, use func(*engine.Past) error) error {
	if seq < 0 {
		return fmt.Errorf("%w: record %d: they are numbered from 1", engine.ErrInvalid, seq)
	}
	at := min(uint64(seq), l.Last())
	var kept []*engine.Past
	select {
	case kept = <-l.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { l.turn <- kept }()
	var past *engine.Past
	if n := slices.IndexFunc(kept, func(p *engine.Past) bool { return p.Seq() == at }); n >= 0 {
		past = kept[n]
		kept = slices.Delete(kept, n, n+1)
	} else {
		whole, err := openPast(ctx, l, engine.PastOptions{Seq: at, Settings: l.settings})
		if err != nil {
			return err
		}
		past = whole.Keys()
		kept = slices.Delete(kept, 0, max(0, len(kept)-maxKept+1))
	}
	kept = append(kept, past)
	return use(past)
}

// State implements server.Past.
func (l *looker) State(ctx context.Context, seq int64, q view.KeyQuery) (page *view.KeyPage, err error) {
	err = l.with(ctx, seq, func(p *engine.Past) error {
		page, err = ask[*view.KeyPage](p, engine.GetState{Query: q})
		return err
	})
	return page, err
}

// Keys implements server.Past.
func (l *looker) Keys(ctx context.Context, seq int64) (keys task.Values, err error) {
	err = l.with(ctx, seq, func(p *engine.Past) error {
		keys, err = allKeys(p)
		return err
	})
	return keys, err
}

// allKeys is the state but for what the controller keeps there itself.
func allKeys(p *engine.Past) (keys task.Values, err error) {
	for q := (view.KeyQuery{}); ; {
		page, err := ask[*view.KeyPage](p, engine.GetState{Query: q})
		if err != nil {
			return nil, err
		}
		for _, k := range page.Keys {
			if !strings.HasPrefix(k.Key, "sys.") {
				keys = append(keys, task.Value{Name: k.Key, Value: k.Value})
			}
		}
		if q.Cursor = page.Cursor; q.Cursor == "" {
			return keys, nil
		}
	}
}

// At implements server.Past.
func (l *looker) At(_ context.Context, when time.Time) (int64, error) {
	seq, err := l.lastAt(when)
	return int64(seq), err
}
