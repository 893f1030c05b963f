package engine

import (
	"fmt"
	"time"

	"apollo11/engine/mission"
)

// armTable sets the moment of the next time of all tables, and of giving up to
// wait for what a start needs.
func (m *machine) armTable() {
	var next int64
	for _, a := range m.triggering.armed {
		at := a.memory.at
		waits := a.trigger.Kind == mission.Start && a.memory.seen < m.epoch || at != 0 && at <= m.now.raw
		if left := m.triggering.patient - m.now.mono; waits && left > 0 {
			at = m.now.raw + left
		}
		if at != 0 && (next == 0 || at < next) {
			next = at
		}
	}
	if next == 0 {
		m.wallQ.drop(due{kind: dueTrigger})
		return
	}
	m.wallQ.set(due{kind: dueTrigger}, next)
}

// tablesDue fires the tables whose time has come.
func (m *machine) tablesDue() {
	for _, a := range m.triggering.armed {
		for m.tableIsDue(a) && m.room() {
			m.tableDue(a)
		}
	}
	if m.outOfRoom() {
		m.triggering.tried = 0
	}
	m.armTable()
}

// tableIsDue reports whether a table's time has come, and its units have: after
// the controller's start they are waited for.
func (m *machine) tableIsDue(a *armed) bool {
	due := a.schedule != nil && a.memory.at != 0 && a.memory.at <= m.now.raw
	return due && (m.waitedLong() || a.madeUp > 0 || m.canStart(a, nil) == nil)
}

// waitedLong reports that what has not come since the controller's start is no
// longer waited for.
func (m *machine) waitedLong() bool { return m.now.mono >= m.triggering.patient }

// tableDue takes one time of a table, or skips what was missed.
func (m *machine) tableDue(a *armed) {
	at, now := time.Unix(0, a.memory.at), m.wallTime()
	f := firing{why: fmt.Sprintf("%s, due %s", a.words, a.schedule.Text(at))}
	next := a.schedule.Next(at)
	switch {
	case now.Sub(at) <= onTime:
		f.queue = a.madeUp > 0 && a.trigger.CatchUp == mission.CatchAll // behind those that were made up for
		a.madeUp = 0
	case a.trigger.CatchUp == mission.CatchAll && a.madeUp < mostMissed:
		a.madeUp++
		f.why, f.queue = f.why+", made up for", true
	case a.trigger.CatchUp == mission.CatchOne:
		f.why += ", made up for with all that were missed since"
		next = a.schedule.Next(now)
	default:
		next = a.schedule.Next(now.Add(-onTime - 1))
		m.emit(&triggerSet{Mission: a.known.Mission.Name, Trigger: a.words, Why: "missed since " + a.schedule.Text(at), At: momentOf(next)})
		m.log.Warn("a time table's moments were missed", "mission", a.known.Mission.Name, "trigger", a.words, "since", at, "next", next)
		return
	}
	f.at = momentOf(next)
	m.fire(a, f)
}
