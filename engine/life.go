package engine

import (
	"cmp"
	"slices"
	"time"
)

// setLife sets the next look at whether an executor is alive.
func (m *machine) setLife(x uint32) {
	m.monoQ.set(due{dueLife, x}, m.now.mono+int64(m.lateAfter(m.execs[x])))
}

// silence starts the time in which an executor without a connection may come
// back.
func (m *machine) silence(x uint32, why string, grace time.Duration) {
	e := m.execs[x]
	e.soft.silent, e.soft.why, e.soft.grace = m.now.mono, why, grace
	m.monoQ.set(due{dueLife, x}, m.now.mono+int64(grace))
}

// lateAfter is the silence that counts as a missed beat of what it was told.
func (m *machine) lateAfter(e *executor) time.Duration { return m.beat(e) * 3 / 2 }

func (m *machine) beat(e *executor) time.Duration { return cmp.Or(e.soft.beat, m.heartbeat()) }

// lostAfter is the silence that ends an executor: so many beats missed, and the
// time-out passed.
func (m *machine) lostAfter(e *executor) time.Duration {
	return max(m.set.Timeout, m.beat(e)*time.Duration(m.set.Misses))
}

// heard is when an executor was last heard, on the loop's monotonic clock. A
// protocol 1 executor cannot beat while it works: then its open connection is
// its life, until the attempt's deadline.
func (m *machine) heard(e *executor) int64 {
	heard := max(m.floor, e.soft.linked, m.mono(e.soft.link.Heard()))
	if e.proto < 2 && e.held.len > 0 {
		return m.now.mono
	}
	return max(heard, min(e.soft.busy, m.now.mono))
}

// mono places a time read with a monotonic part on the loop's clock.
func (m *machine) mono(t time.Time) int64 { return int64(t.Sub(m.set.base)) }

// checkLife looks at an executor whose moment has come.
func (m *machine) checkLife(x uint32) {
	e := m.execs[x]
	if e == nil || e.offline {
		return
	}
	m.dropZombies(x)
	if e.soft.link == nil {
		if back := m.floor + int64(m.lostAfter(e)); m.floor > e.soft.silent && back > m.now.mono {
			m.monoQ.set(due{dueLife, x}, back) // the controller slept: nobody could come back
			return
		}
		m.lose(x, e.soft.why, false)
		return
	}
	heard := m.heard(e)
	silence := m.now.mono - heard
	switch {
	case silence >= int64(m.lostAfter(e)):
		m.lose(x, "nothing heard for "+time.Duration(silence).Round(time.Second).String(), false)
	case silence >= int64(m.lateAfter(e)):
		if !e.soft.late {
			e.soft.late = true
			m.emit(&beatMissed{Exec: e.id})
			m.log.Warn("heartbeat missed", "executor", e.id, "silence", time.Duration(silence).Round(time.Millisecond))
		}
		m.monoQ.set(due{dueLife, x}, heard+int64(m.lostAfter(e)))
	default:
		e.soft.late = false
		m.monoQ.set(due{dueLife, x}, heard+int64(m.lateAfter(e)))
	}
}

// dropZombies gives up on fenced attempts that nothing was ever heard of.
func (m *machine) dropZombies(x uint32) {
	e := m.execs[x]
	for z, h := range e.soft.zombies {
		if h.until <= m.now.mono {
			delete(e.soft.zombies, z)
			m.dirty = append(m.dirty, x)
		}
	}
}

// disconnected starts the grace in which a lost connection may come back.
func (m *machine) disconnected(link Link, c Disconnected) {
	x, e, err := m.linked(link, c.Exec)
	if err != nil {
		return
	}
	e.soft.link, e.soft.ready = nil, false
	m.subscribe(e, false)
	m.dropHold(x)
	m.dirty = append(m.dirty, x)
	why := "connection lost"
	if c.Reason != "" {
		why += ": " + printableCut(c.Reason, 200)
	}
	m.silence(x, why, m.set.ReconnectGrace)
}

// leave takes leave of an executor that goes in order: its tasks go back at
// once and count nothing.
func (m *machine) leave(link Link, c Offline) {
	x, e, err := m.linked(link, c.Exec)
	if err != nil {
		return
	}
	m.order(e, Dismiss{Reason: "offline"})
	reason := c.Reason
	if reason == "" {
		reason = "went offline in order"
	}
	m.lose(x, printableCut(reason, 200), true)
}

// lose takes an executor offline and gives its tasks back to the queue.
func (m *machine) lose(x uint32, why string, planned bool) {
	e := m.execs[x]
	if e.soft.link != nil && !planned {
		m.order(e, Dismiss{Reason: why})
	}
	held, ran := m.heldBy(x), m.presumed(x)
	m.emit(&wentOffline{Exec: e.id, Reason: why})
	if planned { // counts nothing; but what must not begin twice may have begun
		once := slices.DeleteFunc(slices.Clone(held), func(i uint32) bool { return m.idempotent(i) })
		held = slices.DeleteFunc(held, func(i uint32) bool { return !m.idempotent(i) })
		m.giveBack(held, func(i uint32, head bool) { m.handBack(i, "executor left", head) })
		m.loseAll(once, ran, why)
	} else {
		m.loseAll(held, ran, why)
	}
	e.soft.link, e.soft.ready, e.soft.zombies = nil, false, nil
	m.subscribe(e, false)
	m.dropHold(x)
	m.monoQ.drop(due{dueLife, x})
	m.monoQ.drop(due{dueRecall, x})
	m.monoQ.drop(due{dueOrphan, x})
	m.dirty = append(m.dirty, x)
	if planned {
		m.log.Info("executor offline", "executor", e.id, "reason", why)
		return
	}
	e.soft.losses++
	m.log.Warn("executor timeout: offline", "executor", e.id, "reason", why, "tasks", len(held))
	if e.soft.losses == flapping {
		m.log.Warn("executor keeps coming and going", "executor", e.id, "times", flapping,
			"hint", "raise heartbeat.timeout, 60s suits an unstable network")
	}
}

// flapping is how often an executor is lost before it is named.
const flapping = 3

// orphansDue gives up on what a protocol 1 executor had before it came back.
func (m *machine) orphansDue(x uint32) {
	if back := m.floor + int64(m.set.ReconnectGrace); m.floor != 0 && back > m.now.mono {
		m.monoQ.set(due{dueOrphan, x}, back) // the controller slept
		return
	}
	old := slices.DeleteFunc(m.heldBy(x), func(i uint32) bool { return m.at(i).order > m.execs[x].soft.mark })
	m.loseAll(old, m.presumed(x), "its executor registered anew and did not bring its result")
}

// ready notes that a protocol 1 executor waits for a task. One whose task is
// still out is alive, but gets no second one.
func (m *machine) ready(link Link, c Ready) {
	x, e, err := m.linked(link, c.Exec)
	if err != nil {
		if link != nil {
			m.batch.sends = append(m.batch.sends, send{link: link, order: Dismiss{Reason: "not registered"}})
		}
		return
	}
	e.soft.ready, e.soft.late = true, false
	if e.proto < 2 && m.now.mono-e.soft.answered > int64(m.lateAfter(e)) {
		// It cannot beat while it works, and this beat did not cross the task on
		// its way: so it ended what was fenced, and never said so.
		e.soft.zombies, e.soft.busy = nil, 0
	}
	if e.soft.heap[dueHold] == 0 { // a later heartbeat takes the hold over, it does not restart it
		m.monoQ.set(due{dueHold, x}, m.now.mono+int64(m.set.Hold))
	}
	m.dirty = append(m.dirty, x)
}

// endHold answers a heartbeat that waited in vain.
func (m *machine) endHold(x uint32) {
	e := m.execs[x]
	e.soft.ready = false
	m.dirty = append(m.dirty, x)
	m.order(e, Beat{StateVersion: m.stateVersion})
}

func (m *machine) dropHold(x uint32) { m.monoQ.drop(due{dueHold, x}) }
