package engine

import (
	"cmp"
	"fmt"
	"slices"

	"apollo11/engine/mission"
	"apollo11/engine/task"
)

// pullTriggers fires what follows from runs that ended, from changes of the
// state, from the start, and from events.
func (m *machine) pullTriggers() {
	if !m.triggering.set || m.stopping {
		return
	}
	m.tellEvents()
	if last := m.lastEnd(); last > m.triggering.scanned && m.runsEnded() {
		m.triggering.scanned = last
	}
	if m.stateVersion != m.triggering.version && m.keysMoved() {
		m.triggering.version = m.stateVersion
	}
	if m.waitedLong() {
		m.startsDue()
	} else if known := m.knownTypes(); known != m.triggering.tried {
		m.triggering.tried = known
		m.tablesDue()
		m.startsDue()
	}
}

// outOfRoom reports that the turn has no room for another run.
func (m *machine) outOfRoom() bool {
	if m.room() {
		return false
	}
	m.more = true
	return true
}

// runsEnded fires what comes after a run that succeeded; done says that all was
// looked at.
func (m *machine) runsEnded() (done bool) {
	var after []*armed
	for _, a := range m.triggering.armed {
		if a.trigger.Kind == mission.After {
			after = append(after, a)
		}
	}
	if len(after) == 0 {
		return true
	}
	from, _ := slices.BinarySearchFunc(m.finished, m.triggering.scanned+1, func(x uint32, rank uint64) int {
		return cmp.Compare(m.runs[x].times.rank, rank)
	})
	for _, x := range slices.Clone(m.finished[from:]) {
		r := m.runs[x]
		if r.state != runSucceeded || r.origin.Mode > modeResume || r.origin.Sample > 0 {
			continue // a run that compares, tries or undoes is not the mission's own success
		}
		for _, a := range after {
			if a.trigger.What != r.spec.mission.Name || a.memory.seen >= r.times.rank {
				continue
			}
			if m.outOfRoom() {
				return false
			}
			m.fire(a, firing{why: fmt.Sprintf("after %s, run %s", a.trigger.What, r.id), seen: r.times.rank})
		}
	}
	return true
}

// keysMoved fires what waits for a key that somebody else changed.
func (m *machine) keysMoved() (done bool) {
	for _, a := range m.triggering.armed {
		if a.trigger.Kind != mission.State {
			continue
		}
		k := m.keys[a.trigger.What]
		if k == nil || k.at <= a.memory.seen || m.missionOfTask(k.task) == a.known.Mission.Name {
			continue
		}
		if m.outOfRoom() {
			return false
		}
		by := "a person"
		if k.task != "" {
			by = "task " + k.task
		}
		m.fire(a, firing{why: fmt.Sprintf("%s, changed by %s", a.words, by), seen: k.at})
	}
	return true
}

// startsDue fires what begins with the controller, as soon as its units are
// known, or when it was waited for long enough: the reason is told then.
func (m *machine) startsDue() {
	for _, a := range m.triggering.armed {
		if a.trigger.Kind != mission.Start || a.memory.seen >= m.epoch {
			continue
		}
		if m.outOfRoom() {
			m.triggering.tried = 0
			return
		}
		if m.waitedLong() || m.canStart(a, nil) == nil {
			m.fire(a, firing{why: "the controller's start", seen: m.epoch})
		}
	}
}

// knownTypes changes whenever a type comes that a mission may have waited for.
func (m *machine) knownTypes() uint64 {
	n := m.configVersion * maxBulk
	for _, t := range m.types[1:] {
		if t.soft.offering > 0 {
			n++
		}
	}
	return n + 1
}

// canStart says what keeps a mission from being started.
func (m *machine) canStart(a *armed, params task.Values) error {
	p := plan{m: m, mission: a.known.Mission, hash: a.known.hash, params: params, state: runRunning, check: true}
	_, err := p.start()
	return err
}
