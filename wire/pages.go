package wire

import (
	"errors"
	"fmt"
	"slices"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// Values are bounded in a page, so that a row always fits a frame and a page does
// not drown who asked: op=task shows a task's whole.
const (
	maxShown     = 4 << 10  // of one value
	maxShownSide = 32 << 10 // of a unit's inputs, its outputs, or an event's values
	maxShownKey  = 1 << 10  // of a key's value, before or after
	maxRestored  = 500      // changed keys that are listed
	markBytes    = 64       // what shorten adds at most
	maxEvents    = 1 << 20  // of a page of the timeline, as far as values go
)

// shorten cuts a value and says what is missing: how long it is, and a hash, so
// that two that differ further on differ here. What that would not make shorter
// stays.
func shorten(value string, most int) string {
	if len(value) <= most+markBytes {
		return value
	}
	return fmt.Sprintf("%s… (%d bytes, %s)", value[:wholeRunes(value[:most])], len(value), shortHash(task.HashText([]byte(value))))
}

// shortHash keeps 16 digits.
func shortHash(hash string) string { return hash[:min(len(hash), len("sha256:")+16)] }

// shortened leaves what is short enough alone. What passes maxShownSide is one
// value, under a name that no other can have.
func shortened(values view.Object) view.Object {
	if !slices.ContainsFunc(values, func(v task.Value) bool { return len(v.Value) > maxShown+markBytes }) && task.Values(values).Size() <= maxShownSide {
		return values
	}
	short := make(view.Object, 0, len(values))
	left := maxShownSide
	for i, v := range values {
		if left -= len(v.Name) + min(len(v.Value), maxShown); left < 0 {
			rest := task.Values(values[i:])
			text := fmt.Sprintf("%d more (%d bytes, %s)", len(rest), rest.Size(), shortHash(rest.Hash()))
			return append(short, task.Value{Name: "…", Value: text})
		}
		short = append(short, task.Value{Name: v.Name, Value: shorten(v.Value, maxShown)})
	}
	return short
}

// AppendEvents appends a page of the timeline. One that holds too much ends
// before, and says where to go on.
func AppendEvents(dst []byte, p *view.EventPage, limit int) ([]byte, error) {
	page := view.EventPage{Events: make([]view.Event, 0, len(p.Events)), Next: p.Next, More: p.More}
	size := 0
	for _, e := range p.Events {
		if size > maxEvents {
			page.Next, page.More = e.Seq, true
			break
		}
		e.Values = shortened(e.Values)
		size += task.Values(e.Values).Size()
		page.Events = append(page.Events, e)
	}
	return AppendRows(dst, EventsHead(&page), func(yield func(view.Row) bool) {
		for i := range page.Events {
			if !yield(&page.Events[i]) {
				return
			}
		}
	}, limit)
}

// AppendDetail appends the answer of op=task: the task, then its attempts. Only
// what cannot fit a frame, escaped as it has to be, is cut as in a page.
func AppendDetail(dst []byte, d *view.Detail, limit int) ([]byte, error) {
	rows := func(yield func(view.Row) bool) {
		if !yield(d) {
			return
		}
		for i := range d.Attempts {
			if !yield(&d.Attempts[i]) {
				return
			}
		}
	}
	whole, err := AppendRows(dst, nil, rows, limit)
	if !errors.Is(err, &Error{Code: CodeTooLarge}) {
		return whole, err
	}
	short := *d
	short.Inputs, short.Outputs, short.Context = shortened(d.Inputs), shortened(d.Outputs), shortened(d.Context)
	short.Late = shorten(d.Late, maxShownSide)
	d = &short
	return AppendRows(dst, nil, rows, limit)
}
