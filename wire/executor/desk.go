package executor

import (
	"context"
	"slices"
	"time"

	"apollo11/engine/task"
	"apollo11/wire"
)

// desk is what an executor has of its controller: what waits, what runs, what
// was done and not acknowledged.
type desk struct {
	waiting []*task.Assignment
	running *handed
	next    *handed // the runner has it already, so as not to wait for the loop
	results []kept
	live    live   // state changes that are still to be sent
	held    []byte // progress frames for the next link
	cut     bool   // some did not fit in held
}

// handed is an attempt that the runner has.
type handed struct {
	*task.Assignment
	*claim
	stop     context.CancelFunc
	began    time.Time // zero for desk.next
	said     bool      // phase=start was sent
	resident bool      // ends only if it is made to, or fails
	left     bool      // was made to, since the executor leaves
}

// kept is a result until it is acknowledged.
type kept struct {
	ref     wire.Ref
	outcome *task.Outcome
}

// heldMost bounds the progress that is kept for the next link.
const heldMost = 2 << 20

func refOf(a *task.Assignment) wire.Ref { return wire.Ref{Task: a.Task, Version: a.Version} }

// is reports whether h is that dispatch.
func (h *handed) is(ref wire.Ref) bool { return h != nil && refOf(h.Assignment) == ref }

// holds reports whether it has that dispatch, or the result of it.
func (d *desk) holds(ref wire.Ref) bool {
	return d.running.is(ref) || d.next.is(ref) ||
		slices.ContainsFunc(d.waiting, func(a *task.Assignment) bool { return refOf(a) == ref }) ||
		slices.ContainsFunc(d.results, func(k kept) bool { return k.ref == ref })
}

// push adds a task; one that is held already is not taken twice. A later
// dispatch of a waiting task takes its place.
func (d *desk) push(a *task.Assignment) {
	if d.holds(refOf(a)) {
		return
	}
	d.waiting = slices.DeleteFunc(d.waiting, func(w *task.Assignment) bool { return w.Task == a.Task })
	d.waiting = append(d.waiting, a)
}

// takeBack takes a task out, if it was not begun.
func (d *desk) takeBack(ref wire.Ref) bool {
	if d.next.is(ref) && d.next.take() {
		d.next.stop()
		d.next = nil
		return true
	}
	before := len(d.waiting)
	d.waiting = slices.DeleteFunc(d.waiting, func(a *task.Assignment) bool { return refOf(a) == ref })
	return len(d.waiting) < before
}

// takeBackAll is takeBack for all that was not begun.
func (d *desk) takeBackAll() (refs []wire.Ref) {
	if d.next != nil {
		refs = append(refs, refOf(d.next.Assignment))
	}
	for _, a := range d.waiting {
		refs = append(refs, refOf(a))
	}
	return slices.DeleteFunc(refs, func(ref wire.Ref) bool { return !d.takeBack(ref) })
}

// stop ends a task that was begun, or is about to be; false: there is none.
func (d *desk) stop(ref wire.Ref) bool {
	for _, h := range []*handed{d.running, d.next} {
		if h.is(ref) {
			h.stop()
			return true
		}
	}
	return false
}

func (d *desk) pop() *task.Assignment {
	a := d.waiting[0]
	d.waiting[0] = nil
	d.waiting = d.waiting[1:]
	return a
}

// ended makes the next attempt the running one.
func (d *desk) ended(now time.Time) {
	d.running.stop()
	d.running, d.next = d.next, nil
	if d.running != nil {
		d.running.began = now
	}
}

// startDue is when the running task has run so long that it is told; zero: never.
func (d *desk) startDue() time.Time {
	if d.running == nil || d.running.said {
		return time.Time{}
	}
	return d.running.began.Add(startAfter)
}

func (d *desk) keep(o *task.Outcome) {
	d.results = append(d.results, kept{wire.Ref{Task: o.Task, Version: o.Version}, o})
}

func (d *desk) frame(o *task.Outcome) []byte { return wire.AppendResult(nil, o, 2) }

func (d *desk) acknowledged(ref wire.Ref) {
	if i := slices.IndexFunc(d.results, func(k kept) bool { return k.ref == ref }); i >= 0 {
		d.results = slices.Delete(d.results, i, i+1)
	}
}

// hold keeps a progress frame for the next link, if there is room.
func (d *desk) hold(frame []byte) {
	if len(d.held)+len(frame) > heldMost {
		d.cut = true
		return
	}
	d.held = append(d.held, frame...)
}

// load is how many tasks it has.
func (d *desk) load() (n uint64) {
	for _, h := range d.list() {
		if h.Phase != wire.Ended {
			n++
		}
	}
	return n
}

// listMost is how many tasks a register lists; the controller takes 1024.
const listMost = 1000

// list is all that it has, what matters most first.
func (d *desk) list() []wire.Held {
	var list []wire.Held
	add := func(ref wire.Ref, phase wire.Phase) {
		list = append(list, wire.Held{Task: ref.Task, Version: ref.Version, Phase: phase})
	}
	if d.running != nil {
		add(refOf(d.running.Assignment), wire.Running)
	}
	for _, k := range d.results {
		add(k.ref, wire.Ended)
	}
	if d.next != nil {
		add(refOf(d.next.Assignment), wire.Waiting)
	}
	for _, a := range d.waiting {
		add(refOf(a), wire.Waiting)
	}
	return list[:min(len(list), listMost)]
}
