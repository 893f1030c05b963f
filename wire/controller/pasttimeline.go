package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"apollo11/engine"
	"apollo11/engine/view"
	"apollo11/snapshot"
)

// records is a journal as the past is read from it: a Store or a Reader.
type records interface {
	Read(from uint64, fn func(snapshot.Entry) error) error
	ReadImageAt(seq uint64, load func(snapshot.Image) error, line func([]byte) error) (bool, error)
	Seek(before func(body []byte) bool) (uint64, error)
	Last() uint64
}

// timeline reads events out of a journal.
type timeline struct{ records }

var (
	errPageFull = errors.New("page is full")
	errOver     = errors.New("what follows is later")
)

// maxScanned is how many records one page looks at.
const maxScanned = 200_000

// page answers a query; where older records are gone it begins with what is kept.
// Nothing is folded, and a time is looked for by halving.
func (t timeline) page(ctx context.Context, q view.EventQuery) (view.EventPage, error) {
	if q.Limit <= 0 || q.Limit > view.MaxRows {
		q.Limit = view.MaxRows
	}
	page := view.EventPage{Next: max(q.From, 1)}
	if !q.After.IsZero() {
		seq, err := t.firstAt(q.After)
		switch {
		case errors.Is(err, snapshot.ErrDamaged): // then it is looked for from the front, to the damage
		case err != nil:
			return page, err
		default:
			page.Next = max(page.Next, int64(seq))
		}
	}
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
		if !q.Until.IsZero() && event.Time.After(q.Until) {
			return errOver
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
	if errors.Is(err, errPageFull) || errors.Is(err, errOver) {
		err = nil
	}
	return page, err
}

// wanted reports whether a query asks for an event.
func wanted(q *view.EventQuery, e *view.Event) bool {
	return (q.Task == "" || e.Task == q.Task) && (q.Run == "" || ofRun(e, q.Run)) &&
		(q.After.IsZero() || !e.Time.Before(q.After))
}

// ofRun reports whether an event is a run's, or one of its tasks'.
func ofRun(e *view.Event, run string) bool {
	of, _, _ := strings.Cut(e.Task, ":")
	return e.Run == run || of == run
}

// firstAt is the first record that is not before a time.
func (t timeline) firstAt(when time.Time) (uint64, error) {
	return t.first(func(at time.Time) bool { return at.Before(when) })
}

// lastAt is the last record that is not after a time; 0 if there was none.
func (t timeline) lastAt(when time.Time) (uint64, error) {
	seq, err := t.first(func(at time.Time) bool { return !at.After(when) })
	return max(seq, 1) - 1, err
}

// first is the first record that is not before what is looked for.
func (t timeline) first(before func(time.Time) bool) (uint64, error) {
	var bad error
	seq, err := t.Seek(func(body []byte) bool {
		at, err := engine.RecordTime(body)
		bad = errors.Join(bad, err)
		return err == nil && before(at)
	})
	if err = errors.Join(err, bad); err != nil {
		return 0, fmt.Errorf("look for a time: %w", err)
	}
	return seq, nil
}
