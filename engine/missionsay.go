package engine

import "time"

// verdicts are what the log was told of the folder's missions: soft, so that each
// start tells anew what is wrong.
type verdicts struct {
	said map[string]string // by mission: the fault, as it was told last
	from int64             // monotonic: nothing is told before, for executors may still come
	next string            // the check goes on with this mission; empty: from the first
	heap uint32            // of the next check
}

const (
	checkAfter = int64(time.Second)     // after a change of missions or units: often more follow at once
	checkBoot  = int64(5 * time.Second) // after the start, for executors to come back
	checkUnits = 5000                   // units of missions that are checked in a turn
)

// checkSoon lets the missions be held against the units before long.
func (m *machine) checkSoon() {
	if m.verdicts.heap == 0 && len(m.missions)+len(m.verdicts.said) > 0 {
		m.monoQ.set(due{kind: dueCheck}, max(m.now.mono+checkAfter, m.verdicts.from))
	}
}

// checkMissions tells the log which missions cannot start as things are, once for
// each change of the reason: else their owner would hear of it when they should
// have started.
func (m *machine) checkMissions() {
	known, units := m.knownTypes(), 0
	for _, name := range sortedNames(m.missions) {
		k := m.missions[name]
		if name < m.verdicts.next {
			continue
		}
		if units > checkUnits {
			m.verdicts.next = name
			m.monoQ.set(due{kind: dueCheck}, m.now.mono+1) // in another turn
			return
		}
		if c := m.checks[name]; c.known != known || c.hash != k.hash {
			units += len(k.Mission.Units)
		}
		m.sayFault(k, m.missionFault(k))
	}
	m.verdicts.next = ""
	for name := range m.verdicts.said {
		if _, there := m.missions[name]; !there {
			delete(m.verdicts.said, name)
		}
	}
}

func (m *machine) sayFault(k knownMission, fault string) {
	name := k.Mission.Name
	was := m.verdicts.said[name]
	switch {
	case fault == was:
	case fault == "":
		delete(m.verdicts.said, name)
		m.log.Info("a mission can start again", "mission", name, "file", k.File)
	default:
		m.verdicts.said[name] = fault
		m.log.Error("a mission cannot start as it is", "mission", name, "fault", faultText(fault))
	}
}
