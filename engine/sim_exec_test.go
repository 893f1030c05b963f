package engine

import (
	"fmt"
	"slices"
	"time"

	"apollo11/engine/task"
)

// simExec is an executor; a new process gets a new instance.
type simExec struct {
	w        *world
	id       string
	proto    int
	instance int
	link     *simLink // nil: not connected
	queue    []Held   // sent, not started
	current  *Held
	kept     []task.Outcome // finished, not acknowledged
	stopped  []task.Outcome // likewise, and not sent yet
	contract int            // version of the contracts it has
	lacks    string         // a type it does not offer now; empty: it offers all
	leaving  bool           // it was told to drain
	waiting  bool           // protocol 1: a heartbeat is out
	host     string
	at       place
}

// simLink collects what the machine sends to one connection.
type simLink struct {
	x      *simExec
	w      *world
	heard  time.Time
	reads  bool              // it subscribed to the state
	seen   map[string]uint64 // what it knows of the state's keys since
	upTo   uint64            // and of which version of the state
	toldAt int64             // monotonic
}

func (l *simLink) Flush()           {}
func (l *simLink) Heard() time.Time { return l.heard }

func (l *simLink) Answer(ref uint64, a Answer, err error) {
	l.w.told = append(l.w.told, told{a, err})
	if l.x == nil || l.x.link != l || ref == unread {
		return
	}
	switch a := a.(type) {
	case Registered:
		for _, h := range a.Stale {
			l.x.abandon(h.Task, h.Version)
		}
	case Applied:
		// Answers come in order, so this one is of the oldest result sent.
		if len(l.x.kept) > 0 {
			l.x.kept = l.x.kept[1:]
		}
	}
}

func (l *simLink) Order(o Order) {
	if l.x.link != l {
		return
	}
	switch o := o.(type) {
	case Assign:
		l.x.waiting = false
		l.x.queue = append(l.x.queue, Held{Task: o.Task, Version: o.Version})
		if l.x.proto == 1 && len(l.x.queue) > 1 {
			l.w.fail("protocol 1 executor %s got a second task", l.x.id)
		}
	case Beat:
		l.x.waiting = false
	case Revoke:
		l.x.abandon(o.Task, o.Version)
	case DrainOrder:
		l.x.leaving = true
	case StateChanged:
		l.learn(o)
	case Dismiss:
		l.x.link = nil
	}
}

// learn takes in what the state is said to have become.
func (l *simLink) learn(o StateChanged) {
	switch {
	case !l.reads:
		l.w.fail("%s is told of the state and did not ask", l.x.id)
	case o.Since > l.upTo:
		l.w.fail("%s knows the state up to %d, and is told what changed since %d", l.x.id, l.upTo, o.Since)
	case l.toldAt != 0 && l.w.now.mono-l.toldAt < int64(feedPause):
		l.w.fail("%s is told twice within a second", l.x.id)
	}
	l.upTo, l.toldAt = o.Version, l.w.now.mono
	for _, k := range o.Keys {
		if l.seen[k.Key] = k.Version; k.Version == 0 {
			delete(l.seen, k.Key)
		}
	}
}

// reading copies the versions of the state's keys, as a query would.
func (l *simLink) reading() {
	l.reads, l.upTo, l.seen = true, l.w.m.stateVersion, map[string]uint64{}
	for name, k := range l.w.m.keys {
		l.seen[name] = k.version
	}
}

// abandon ends an attempt that the controller does not want.
func (x *simExec) abandon(id string, v task.Version) {
	if x.w.rand.IntN(4) == 0 && !x.w.sited {
		return // the process is hard to kill: it goes on and answers late
	}
	queued := len(x.queue)
	x.queue = slices.DeleteFunc(x.queue, func(h Held) bool { return h.Task == id && h.Version == v })
	current := x.current != nil && x.current.Task == id && x.current.Version == v
	if current {
		x.current = nil
	}
	if x.proto > 1 && (current || len(x.queue) < queued) {
		x.stopped = append(x.stopped, task.Outcome{Task: id, Version: v, Status: task.Stopped})
	}
}

// act lets an executor do one random thing.
func (x *simExec) act() {
	w := x.w
	if x.link == nil {
		x.connect()
		return
	}
	x.link.heard = time.Unix(0, w.now.mono)
	for _, o := range x.stopped {
		x.kept = append(x.kept, o)
		w.m.decide(Ask{Command: Result{Exec: x.id, Outcome: o}, Link: x.link})
	}
	x.stopped = nil
	fault := !w.calm
	switch n := w.rand.IntN(100); {
	case fault && n < 3: // the connection breaks
		w.m.decide(Ask{Command: Disconnected{Exec: x.id, Reason: "reset"}, Link: x.link})
		x.link, x.waiting = nil, false
	case fault && n < 5: // the process dies
		w.m.decide(Ask{Command: Disconnected{Exec: x.id, Reason: "eof"}, Link: x.link})
		x.die()
	case fault && n < 6:
		w.m.decide(Ask{Command: Offline{Exec: x.id}, Link: x.link})
		x.die()
	case x.leaving && x.current == nil && len(x.kept) == 0 && n < 30:
		w.m.decide(Ask{Command: Offline{Exec: x.id, Reason: "drained"}, Link: x.link})
		x.die()
	case fault && n < 7:
		x.changeTypes()
	case fault && n < 8: // it hangs, and nobody hears it
		x.link.heard = time.Unix(0, w.now.mono-int64(25*time.Second))
	case n < 30 && x.current == nil && len(x.queue) > 0:
		h := x.queue[0]
		x.queue, x.current = x.queue[1:], &h
		if w.rand.IntN(2) == 0 && x.proto > 1 {
			w.m.decide(Ask{Command: Progress{Exec: x.id, Task: h.Task, Version: h.Version, Start: true}, Link: x.link})
		}
	case n < 80 && x.current != nil:
		x.finish()
	case n < 85 && x.proto > 1 && len(x.queue) > 1:
		h := x.queue[len(x.queue)-1]
		x.queue = x.queue[:len(x.queue)-1]
		w.m.decide(Ask{Command: Returned{Exec: x.id, Task: h.Task, Version: h.Version}, Link: x.link, Ref: unread})
	case x.proto == 1 && x.current == nil && len(x.queue) == 0 && len(x.kept) == 0:
		x.waiting = true
		w.m.decide(Ask{Command: Ready{Exec: x.id}, Link: x.link})
	}
}

// unread is the number of a command whose answer is of no interest.
const unread = 1

func (x *simExec) die() {
	x.link, x.current, x.queue, x.kept, x.stopped, x.waiting, x.leaving = nil, nil, nil, nil, nil, false, false
	x.instance++
}

func (x *simExec) connect() {
	w := x.w
	x.link = &simLink{x: x, w: w, heard: time.Unix(0, w.now.mono)}
	c := Register{Exec: x.id, Types: x.types(), Proto: x.proto, Host: x.host, Share: x.at.share, Capacity: x.at.capacity}
	if x.proto > 1 {
		c.Units = x.units()
		c.Instance = fmt.Sprint(x.instance)
		for _, o := range x.kept {
			c.Running = append(c.Running, Held{o.Task, o.Version, PhaseDone})
		}
		if x.current != nil {
			c.Running = append(c.Running, Held{x.current.Task, x.current.Version, PhaseRunning})
		}
		for _, h := range x.queue {
			c.Running = append(c.Running, Held{h.Task, h.Version, PhaseQueued})
		}
	}
	if c.Subscribe = w.rand.IntN(3) == 0; c.Subscribe && x.proto > 1 {
		x.link.reading()
	}
	w.m.decide(Ask{Command: c, Link: x.link})
	for _, o := range x.kept {
		w.m.decide(Ask{Command: Result{Exec: x.id, Outcome: o}, Link: x.link})
	}
}

func (x *simExec) finish() {
	w := x.w
	o := task.Outcome{Task: x.current.Task, Version: x.current.Version, Status: task.Success, Timing: task.Timing{Execute: time.Duration(w.rand.IntN(30)) * time.Millisecond}}
	o.Outputs = task.Values{{Name: "n", Value: "1"}, {Name: "text", Value: "a b\"\\\n=\x7f"}}
	if w.sited {
		o.Timing.Execute /= 10 // so that some wait behind others
	}
	switch w.rand.IntN(4) {
	case 0: // what pinned contexts see
		o.Changes = []task.Change{{Op: task.Set, Key: "ctx", Value: fmt.Sprint(w.rand.IntN(3))}}
	case 1:
		o.Changes = []task.Change{{Op: task.Del, Key: "ctx"}, {Op: task.Max, Key: "high", Value: fmt.Sprint(w.rand.IntN(1000))}}
	}
	if !w.calm {
		switch w.rand.IntN(8) {
		case 0:
			o.Status, o.Error, o.Outputs, o.Changes = task.Failed, "it broke:\n\x1b[31m badly", nil, nil
			if w.rand.IntN(3) == 0 {
				o.Class = task.PrepareFailed
			}
		case 1:
			o.Outputs = task.Values{{Name: "n", Value: "many"}}
		}
	}
	x.current = nil
	x.kept = append(x.kept, o)
	w.m.decide(Ask{Command: Result{Exec: x.id, Outcome: o}, Link: x.link})
	if !w.calm && w.rand.IntN(10) == 0 {
		w.m.decide(Ask{Command: Result{Exec: x.id, Outcome: o}, Link: x.link, Ref: unread})
	}
}

// types is what the executor offers.
func (x *simExec) types() []string {
	names := []string{"a", "b", "c", "fresh", "once"}
	if x.w.sited {
		names = append(names, siteTypes...)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == x.lacks })
}

// units is its contracts: a fresh unit, and one that must not begin twice.
func (x *simExec) units() []task.Unit {
	retry := task.Retry{Retries: 2, Interval: 300 * time.Millisecond, Backoff: 1}
	in := []task.Rule{{Name: "x"}, {Name: "y", HasDefault: true, Default: fmt.Sprint(x.contract)}}
	units := []task.Unit{
		{Name: "fresh", Fresh: true, Idempotent: true, Context: []string{"ctx", "other"}, Retry: retry, Timeout: time.Minute, In: in},
		{Name: "once", Retry: retry, Timeout: time.Minute, In: in, Traits: task.Traits{Undo: true}},
	}
	if x.w.sited {
		units = append(units, siteUnits()...)
	}
	return slices.DeleteFunc(units, func(u task.Unit) bool { return u.Name == x.lacks })
}

// changeTypes drops a type, takes it up again, or changes a contract.
func (x *simExec) changeTypes() {
	w := x.w
	c := Types{Exec: x.id}
	switch {
	case x.proto == 1:
		return
	case w.rand.IntN(2) == 0:
		x.contract++
		c.Units = x.units()
	case x.lacks == "":
		x.lacks = []string{"a", "fresh", "once"}[w.rand.IntN(3)]
		c.Remove = []string{x.lacks}
	default:
		back := x.lacks
		x.lacks = ""
		c.Add = []string{back}
		c.Units = slices.DeleteFunc(x.units(), func(u task.Unit) bool { return u.Name != back })
	}
	w.m.decide(Ask{Command: c, Link: x.link})
}
