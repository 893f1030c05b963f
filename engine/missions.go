package engine

import (
	"fmt"
	"strings"

	"apollo11/engine/mission"
	"apollo11/engine/task"
	"apollo11/engine/view"
)

// knownMission is a mission that can be started by its name.
type knownMission struct {
	NamedMission
	hash string
}

// missionBook is what the missions folder holds: soft, it is told anew at every start.
type missionBook struct {
	missions map[string]knownMission // by name
	misfits  map[string]NamedMission // files that never were right, likewise
	checks   map[string]missionCheck // of missions, when they were looked at last
}

// missionCheck is what a mission's check said, for as long as nothing changes.
type missionCheck struct {
	hash  string
	known uint64 // types
	fault string
}

func newMissionBook() missionBook {
	return missionBook{map[string]knownMission{}, map[string]NamedMission{}, map[string]missionCheck{}}
}

// setMissions takes over what the missions folder holds.
func (m *machine) setMissions(c SetMissions) error {
	if err := fitsTurn(c); err != nil {
		return err
	}
	m.missionBook = newMissionBook()
	for _, n := range c.Missions {
		if n.Mission == nil {
			m.misfits[n.Name] = n
			continue
		}
		n.Name = n.Mission.Name
		m.missions[n.Name] = knownMission{n, n.Mission.Hash()}
	}
	m.noteMissions()
	m.setTriggers()
	m.checkSoon()
	return nil
}

// fitsTurn refuses more missions and triggers than one turn can record, and drop
// again when they go.
func fitsTurn(c SetMissions) error {
	count, size := len(c.Missions), 0
	for _, n := range c.Missions {
		size += escapedSize(n.Name) + escapedSize(n.File)
		if n.Mission == nil {
			continue
		}
		count += len(n.Mission.Triggers)
		for i := range n.Mission.Triggers {
			size += escapedSize(n.Mission.Name) + escapedSize(n.Mission.Triggers[i].String())
		}
	}
	const each = 160 // what else stands in a record
	if size += each * count; count > mostTriggers || size > maxCommandBytes/2 {
		return fmt.Errorf("%w: %d missions and triggers of %d bytes, at most %d of %d are taken", ErrTooLarge, count, size, mostTriggers, maxCommandBytes/2)
	}
	return nil
}

// noteMissions records what has changed among the missions known by name: one
// change of the configuration, however many they are.
func (m *machine) noteMissions() {
	var changed []string
	for _, name := range sortedNames(m.knownSpecs) {
		if _, there := m.missions[name]; !there {
			m.emit(&missionDropped{name})
			changed = append(changed, name)
		}
	}
	for _, name := range sortedNames(m.missions) {
		if k := m.missions[name]; m.knownSpecs[name] != (knownSpec{k.hash, k.File}) {
			m.emit(&missionSet{name, k.hash, k.File})
			changed = append(changed, name)
		}
	}
	if len(changed) > 0 {
		m.emit(&configured{Version: m.configVersion + 1, Hash: m.configHash, Why: cutText("missions "+strings.Join(changed, ", "), 200)})
	}
}

// missionList is every mission that the folder holds, by name.
func (m *machine) missionList() []view.Mission {
	last := map[string]*run{}
	for _, r := range m.runs {
		if r != nil && (last[r.spec.mission.Name] == nil || r.num > last[r.spec.mission.Name].num) {
			last[r.spec.mission.Name] = r
		}
	}
	all := map[string]NamedMission{}
	for name, n := range m.misfits {
		all[name] = n
	}
	for name, k := range m.missions {
		all[name] = k.NamedMission
	}
	list := make([]view.Mission, 0, len(all))
	for _, name := range sortedNames(all) {
		v := m.viewMission(name, all[name])
		if r := last[name]; r != nil {
			v.LastRun, v.State = r.id, r.state.String()
		}
		list = append(list, v)
	}
	return list
}

func (m *machine) viewMission(name string, n NamedMission) view.Mission {
	v := view.Mission{Name: name, File: n.File, Fault: faultText(n.Fault)}
	if n.Mission == nil {
		return v
	}
	v.Hash, v.Units, v.Template = m.missions[name].hash, int64(len(n.Mission.Units)), n.Mission.Template
	for i := range n.Mission.Params {
		v.Params = append(v.Params, task.Value{Name: n.Mission.Params[i].Name, Value: paramText(&n.Mission.Params[i])})
	}
	var next int64
	for i := range n.Mission.Triggers {
		words := n.Mission.Triggers[i].String()
		if v.Triggers != "" {
			v.Triggers += "; "
		}
		v.Triggers += words
		if t := m.triggers[triggerKey{name, words}]; t != nil && t.at != 0 && (next == 0 || t.at < next) {
			next = t.at
		}
	}
	v.Next = viewTime(next)
	if v.Fault == "" {
		v.Fault = m.missionFault(m.missions[name])
	}
	v.Fault = faultText(v.Fault)
	return v
}

// faultText is several faults on a line.
func faultText(text string) string {
	return cutText(strings.ReplaceAll(text, "\n", "; "), maxReason)
}

// paramText is a parameter's type, and its default.
func paramText(r *task.Rule) string {
	if r.HasDefault {
		return r.Kind.String() + "=" + r.Default
	}
	return r.Kind.String()
}

// missionFault says why a mission cannot be started as things are; empty: it
// can, given its parameters.
func (m *machine) missionFault(k knownMission) string {
	name := k.Mission.Name
	if fault := m.triggering.faults[name]; fault != "" {
		return fault
	}
	for _, t := range k.Mission.Triggers {
		if _, there := m.missions[t.What]; t.Kind == mission.After && !there {
			return fmt.Sprintf("%s: %s: there is no such mission%s", k.File, t.String(), meant(t.What, sortedNames(m.missions)))
		}
	}
	c := m.checks[name]
	if c.known == m.knownTypes() && c.hash == k.hash {
		return c.fault
	}
	c = missionCheck{hash: k.hash, known: m.knownTypes()}
	var err error
	if needsParams(k.Mission) {
		contracts := m.contracts()
		err = k.Mission.WithDeps(contracts).CheckUnits(contracts)
	} else {
		p := plan{m: m, mission: k.Mission, hash: k.hash, state: runRunning, check: true}
		_, err = p.start()
	}
	if err != nil {
		c.fault = strings.TrimPrefix(err.Error(), ErrInvalid.Error()+": ")
	}
	m.checks[name] = c
	return c.fault
}

// needsParams reports whether somebody has to give a parameter.
func needsParams(k *mission.Mission) bool {
	for i := range k.Params {
		if k.Params[i].Required {
			return true
		}
	}
	return false
}
