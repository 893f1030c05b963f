package executor

import (
	"time"

	"apollo11/engine/task"
	"apollo11/wire"
)

const (
	liveEvery = 200 * time.Millisecond // between two sendings of a resident unit's changes
	liveFrame = task.MaxBytes / 2      // of changes in one message
	liveMost  = 1 << 20                // bytes that may wait for a link
)

// live is the state changes of units that still run, until they are sent: in
// the order in which they were made, whatever attempts they are of.
type live struct {
	list []liveChange
	size int
	sent time.Time // when the last were
	over bool      // there was no room for more: the attempt is ended for it
}

type liveChange struct {
	ref wire.Ref
	task.Change
}

func (c liveChange) size() int { return len(c.Key) + len(c.Value) + 8 }

// add keeps changes; false: there is no room for all of them, and none is kept.
func (l *live) add(ref wire.Ref, changes []task.Change) bool {
	size := l.size
	for _, c := range changes {
		size += liveChange{ref, c}.size()
	}
	if l.over = l.over || size > liveMost; l.over {
		return false
	}
	for _, c := range changes {
		l.list = append(l.list, liveChange{ref, c})
	}
	l.size = size
	return true
}

// due is when they are to be sent; zero: there are none.
func (l *live) due() time.Time {
	if len(l.list) == 0 {
		return time.Time{}
	}
	return l.sent.Add(liveEvery)
}

// take empties the list into messages. What is in one message has no order, so
// that a key that is changed again begins the next.
func (l *live) take(now time.Time) (messages []wire.Progress) {
	var keys map[string]bool
	size := 0
	for _, c := range l.list {
		last := len(messages) - 1
		if size += c.size(); last < 0 || keys[c.Key] || size > liveFrame || messages[last].Task != c.ref.Task || messages[last].Version != c.ref.Version {
			messages = append(messages, wire.Progress{Task: c.ref.Task, Version: c.ref.Version})
			last, size, keys = last+1, c.size(), map[string]bool{}
		}
		keys[c.Key] = true
		messages[last].Changes = append(messages[last].Changes, c.Change)
	}
	l.list, l.size, l.sent = nil, 0, now
	return messages
}

// sayLive sends what changes wait, if it is time, or at once.
func (a *agent) sayLive(atOnce bool) {
	l := &a.desk.live
	if len(l.list) == 0 || a.link.state != up || !atOnce && a.now.Before(l.due()) {
		return
	}
	for _, p := range l.take(a.now) {
		a.link.add(wire.AppendProgress(nil, &p), a.now)
	}
	a.link.flush()
}

// takeLive keeps a running attempt's changes. One whose changes find no room is
// ended: they must not be lost unnoticed.
func (a *agent) takeLive(changes []task.Change) {
	running := a.desk.running
	if !a.desk.live.add(refOf(running.Assignment), changes) {
		running.stop()
	}
}

// failLive is what becomes of an attempt that was ended for its changes.
func (a *agent) failLive(o *task.Outcome) {
	if !a.desk.live.over {
		return
	}
	a.desk.live.over = false
	o.Status, o.Class, o.Outputs, o.Changes = task.Failed, task.ExecuteFailed, nil, nil
	o.Error = "its state changes found no room: they waited too long for the controller"
}
