package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"apollo11/engine/mission"
	"apollo11/engine/task"
	"apollo11/engine/view"
)

const (
	onTime       = time.Minute // a time table's moment that is older was missed
	startWait    = time.Minute // from the start, for executors to come that a start = true needs
	mostMissed   = 1000        // missed times in a row that are made up for
	mostWaiting  = 1000        // runs of a mission that wait for an earlier one
	mostTriggers = 1000        // missions and triggers that are set at once
)

// errWaiting: as many runs of a mission wait as may.
var errWaiting = errors.New("too many runs of the mission wait")

// triggers is the machine's side of what starts missions: soft, made of the
// missions folder, and of what the state remembers.
type triggers struct {
	armed   []*armed
	set     bool              // the folder was told, since the start
	heap    uint32            // of the next moment of a time table
	scanned uint64            // ends of runs up to this one are seen by all
	version uint64            // of the state, likewise
	tried   uint64            // knownTypes when it was last tried what waits for them
	waiting map[string]int    // runs that wait, by mission
	told    []*happening      // events being worked off
	patient int64             // monotonic: until then what has not come since the start is waited for
	faults  map[string]string // of missions' triggers, by name
}

// armed is one trigger that may fire.
type armed struct {
	known    knownMission
	trigger  *mission.Trigger
	words    string            // names it
	schedule *mission.Schedule // of a time table
	memory   *triggerMemory
	madeUp   int // missed times in a row that runs were started for
}

// firing is one moment of a trigger.
type firing struct {
	why         string
	params      task.Values
	queue       bool // it waits for its turn, even if the trigger says skip
	at          int64
	seen        uint64
	path, stamp string
}

// setTriggers arms what the missions name, and forgets what they don't any more.
func (m *machine) setTriggers() {
	first := !m.triggering.set
	m.triggering.set, m.triggering.armed = true, nil
	m.triggering.faults = m.triggerFaults()
	there := map[triggerKey]bool{}
	for _, name := range sortedNames(m.missions) {
		k := m.missions[name]
		for n := range k.Mission.Triggers {
			a := &armed{known: k, trigger: &k.Mission.Triggers[n]}
			a.words = a.trigger.String()
			if key := (triggerKey{name, a.words}); m.triggering.faults[name] == "" && !there[key] {
				there[key] = m.armTrigger(a, first)
			}
		}
	}
	var gone []triggerKey
	for key := range m.triggers {
		if !there[key] {
			gone = append(gone, key)
		}
	}
	slices.SortFunc(gone, func(a, b triggerKey) int { return strings.Compare(a.mission+" "+a.trigger, b.mission+" "+b.trigger) })
	for _, key := range gone {
		m.emit(&triggerDropped{key.mission, key.trigger})
	}
	m.retell()
	m.triggering.scanned, m.triggering.version, m.triggering.tried = 0, 0, 0
	m.armTable()
}

// triggerFaults are the missions whose triggers cannot fire, with the reason.
func (m *machine) triggerFaults() map[string]string {
	faults := map[string]string{}
	for name, k := range m.missions {
		if err := k.Mission.CheckTriggers(); err != nil {
			faults[name] = err.Error()
		} else if ring := m.ringOf(name); ring != nil {
			faults[name] = fmt.Sprintf("%s: the missions %s would start each other for ever: take out an after", k.File, strings.Join(ring, " after "))
		}
	}
	return faults
}

// ringOf is the way from a mission back to itself along what it comes after.
func (m *machine) ringOf(name string) []string {
	from := map[string]string{}
	for line := []string{name}; len(line) > 0; line = line[1:] {
		k := m.missions[line[0]]
		if k.Mission == nil {
			continue
		}
		for _, t := range k.Mission.Triggers {
			if _, been := from[t.What]; t.Kind != mission.After || been {
				continue
			}
			from[t.What] = line[0]
			if t.What == name {
				return wayBack(name, from)
			}
			line = append(line, t.What)
		}
	}
	return nil
}

func wayBack(name string, from map[string]string) []string {
	ring := []string{name}
	for at := from[name]; at != name; at = from[at] {
		ring = append(ring, at)
	}
	slices.Reverse(ring[1:])
	return append([]string{name}, append(ring[1:], name)...)
}

// armTrigger adds a trigger; one that is new begins to wait now.
func (m *machine) armTrigger(a *armed, first bool) bool {
	name, t := a.known.Mission.Name, a.trigger
	if t.Kind == mission.Cron {
		var err error
		if a.schedule, err = t.Schedule(m.zone()); err != nil { // its zone was there when it was checked
			m.triggering.faults[name] = err.Error()
			return false
		}
	}
	a.memory = m.triggers[triggerKey{name, a.words}]
	if a.memory == nil {
		r := &triggerSet{Mission: name, Trigger: a.words}
		switch t.Kind {
		case mission.Cron:
			r.At = momentOf(a.schedule.Next(m.wallTime()))
		case mission.After:
			r.Seen = m.lastEnd()
		case mission.State:
			r.Seen = m.stateVersion
		case mission.Start:
			if r.Seen = m.epoch; first {
				r.Seen--
			}
		}
		m.emit(r)
		a.memory = m.triggers[triggerKey{name, a.words}]
	}
	m.triggering.armed = append(m.triggering.armed, a)
	return true
}

func (m *machine) zone() *time.Location {
	if m.set.Zone == nil {
		return time.UTC
	}
	return m.set.Zone
}

func (m *machine) wallTime() time.Time { return time.Unix(0, m.now.raw) }

// momentOf is a time as records hold it; no time is zero.
func momentOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// lastEnd is the rank of the last end of a run.
func (m *machine) lastEnd() uint64 {
	if n := len(m.finished); n > 0 {
		return m.runs[m.finished[n-1]].times.rank
	}
	return 0
}

// fire starts the mission, or says why not. The trigger's memory moves in the
// same turn, so that both are on disk or neither.
func (m *machine) fire(a *armed, f firing) (*view.Run, error) {
	name := a.known.Mission.Name
	r := &triggerFired{
		Mission: name, Trigger: a.words, Why: f.why, At: f.at, Seen: f.seen, Path: f.path, Stamp: f.stamp,
	}
	state, err := m.turnOf(a, f.queue)
	var started *view.Run
	if err == nil {
		p := plan{m: m, mission: a.known.Mission, hash: a.known.hash, params: f.params, state: state}
		p.origin.Cause = cutText(f.why, maxReason)
		started, err = p.start()
	}
	if err != nil {
		r.Skipped = cutText(strings.ReplaceAll(err.Error(), "\n", "; "), maxReason)
		m.emit(r)
		m.log.Warn("a trigger started nothing", "mission", name, "trigger", f.why, "why", r.Skipped)
		return nil, err
	}
	r.Run = started.ID
	m.emit(r)
	if state == runWaiting {
		m.triggering.waiting[name]++
	}
	return started, nil
}

// turnOf says how the next run of a mission begins, by what its trigger says of
// runs that are still on.
func (m *machine) turnOf(a *armed, queue bool) (runState, error) {
	if err := m.mayStartRuns(); err != nil {
		return 0, err
	}
	if a.trigger.Overlap == mission.Allow {
		return runRunning, nil
	}
	name := a.known.Mission.Name
	on := m.runOn(name)
	switch {
	case on == nil:
		return runRunning, nil
	case a.trigger.Overlap != mission.Queue && !queue:
		return 0, fmt.Errorf("run %s is still on: with overlap = \"queue\" it would wait, with \"allow\" run beside it", on.id)
	case m.triggering.waiting[name] >= mostWaiting:
		return 0, fmt.Errorf("%w: %d already", errWaiting, mostWaiting)
	}
	return runWaiting, nil
}

// runOn is the oldest run of a mission that has not ended; nil: there is none.
func (m *machine) runOn(name string) (on *run) {
	for _, r := range m.runs {
		if r != nil && !r.state.ended() && r.spec.mission.Name == name && (on == nil || r.num < on.num) {
			on = r
		}
	}
	return on
}

// waitsFor says what a waiting run waits for.
func (m *machine) waitsFor(r *run) string {
	if on := m.runOn(r.spec.mission.Name); on != nil && on != r {
		return "waits for run " + on.id + " of the same mission"
	}
	return ""
}

// countWaiting finds the runs that wait, when the machine starts.
func (m *machine) countWaiting() {
	m.triggering.waiting = map[string]int{}
	for _, r := range m.runs {
		if r != nil && r.state == runWaiting {
			m.triggering.waiting[r.spec.mission.Name]++
		}
	}
	for _, name := range sortedNames(m.triggering.waiting) {
		m.letWaiting(name)
	}
}

// letWaiting starts the oldest waiting run of a mission if no other is on.
func (m *machine) letWaiting(name string) {
	if m.triggering.waiting[name] == 0 {
		return
	}
	var oldest *run
	waiting, running := 0, false
	for _, r := range m.runs {
		if r == nil || r.state.ended() || r.spec.mission.Name != name {
			continue
		}
		if r.state == runRunning {
			running = true
			continue
		}
		if waiting++; oldest == nil || r.num < oldest.num {
			oldest = r
		}
	}
	if oldest != nil && !running {
		waiting--
		m.emit(&runWent{Run: oldest.id})
		m.log.Info("run goes on", "run", oldest.id, "mission", name)
	}
	m.triggering.waiting[name] = waiting
}

// runOver is called when a run has ended.
func (m *machine) runOver(r *run) {
	name := r.spec.mission.Name
	if m.triggering.waiting[name] > 0 {
		m.letWaiting(name)
	}
	m.more = m.more || len(m.triggering.armed) > 0 // something may come after it
	for _, a := range m.triggering.armed {
		if a.trigger.Kind != mission.State || a.known.Mission.Name != name {
			continue
		}
		// The run leaves memory one day: then nobody would know whose change it was.
		if k := m.keys[a.trigger.What]; k != nil && k.at > a.memory.seen && m.missionOfTask(k.task) == name {
			m.emit(&triggerSet{Mission: name, Trigger: a.words, Why: "its own change", Seen: k.at})
		}
	}
}

// missionOfTask is the mission whose run a task belongs to; empty: none.
func (m *machine) missionOfTask(id string) string {
	if r := m.findRun(runOf(id)); r != nil {
		return r.spec.mission.Name
	}
	return ""
}
