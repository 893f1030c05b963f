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
	running *running
	results []kept
	held    []byte // progress frames for the next link
	cut     bool   // some did not fit in held
}

// running is the attempt that the runner has.
type running struct {
	*task.Assignment
	stop  context.CancelFunc
	began time.Time
	said  bool // phase=start was sent
}

// kept is a result until it is acknowledged.
type kept struct {
	ref     wire.Ref
	outcome *task.Outcome
}

// heldMost bounds the progress that is kept for the next link.
const heldMost = 2 << 20

func refOf(a *task.Assignment) wire.Ref { return wire.Ref{Task: a.Task, Version: a.Version} }

// phase is how far it has come with a dispatch; false: it has never seen it, or
// has forgotten it.
func (d *desk) phase(ref wire.Ref) (wire.Phase, bool) {
	switch {
	case d.running != nil && refOf(d.running.Assignment) == ref:
		return wire.Running, true
	case slices.ContainsFunc(d.waiting, func(a *task.Assignment) bool { return refOf(a) == ref }):
		return wire.Waiting, true
	case slices.ContainsFunc(d.results, func(k kept) bool { return k.ref == ref }):
		return wire.Ended, true
	}
	return 0, false
}

// push adds a task; one that is held already is not taken twice. A later
// dispatch of a waiting task takes its place.
func (d *desk) push(a *task.Assignment) {
	if _, held := d.phase(refOf(a)); held {
		return
	}
	d.waiting = slices.DeleteFunc(d.waiting, func(w *task.Assignment) bool { return w.Task == a.Task })
	d.waiting = append(d.waiting, a)
}

func (d *desk) pop() *task.Assignment {
	a := d.waiting[0]
	d.waiting[0] = nil
	d.waiting = d.waiting[1:]
	return a
}

// remove takes a task out that was not started.
func (d *desk) remove(ref wire.Ref) {
	d.waiting = slices.DeleteFunc(d.waiting, func(a *task.Assignment) bool { return refOf(a) == ref })
}

func (d *desk) started(a *task.Assignment, stop context.CancelFunc, now time.Time) {
	d.running = &running{Assignment: a, stop: stop, began: now}
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
func (d *desk) load() uint64 {
	n := len(d.waiting)
	if d.running != nil {
		n++
	}
	return uint64(n)
}

// listMost is how many tasks a register lists; the controller takes 1024.
const listMost = 1000

// list is all that it has, what matters most first.
func (d *desk) list() []wire.Held {
	var list []wire.Held
	if d.running != nil {
		list = append(list, wire.Held{Task: d.running.Task, Version: d.running.Version, Phase: wire.Running})
	}
	for _, k := range d.results {
		list = append(list, wire.Held{Task: k.ref.Task, Version: k.ref.Version, Phase: wire.Ended})
	}
	for _, a := range d.waiting {
		list = append(list, wire.Held{Task: a.Task, Version: a.Version, Phase: wire.Waiting})
	}
	return list[:min(len(list), listMost)]
}
