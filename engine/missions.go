package engine

import (
	"apollo11/engine/mission"
)

// knownMission is a mission that can be started by its name.
type knownMission struct {
	NamedMission
	hash string
}

// setMissions takes over what the missions folder holds.
func (m *machine) setMissions(c SetMissions) error {
	clear(m.missions)
	for _, n := range c.Missions {
		m.missions[n.Mission.Name] = knownMission{n, n.Mission.Hash()}
	}
	return nil
}

// runOver is called when a run has ended.
func (m *machine) runOver(*run) {}

var _ mission.Trigger
