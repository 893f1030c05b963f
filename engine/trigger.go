package engine

import (
	"cmp"
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
	mostWaiting  = 1000        // runs of a mission that wait for an earlier one
	fileParam    = "file"      // the parameter that gets a file trigger's path
	mostTriggers = 1500        // missions and triggers that are set at once
)

// triggers is the machine's side of what starts missions: soft, made of the
// missions folder, and of what the state remembers.
type triggers struct {
	armed   []*armed
	set     bool              // the folder was told, since the start
	heap    uint32            // of the next moment of a time table
	scanned uint64            // ends of runs up to this one are seen by all
	version uint64            // of the state, likewise
	tried   uint64            // configuration version at which starts were tried last
	waiting map[string]int    // runs that wait, by mission
	told    []*happening      // events being worked off
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

// armTable sets the moment of the next time of all tables, and of giving up to
// wait for what a start needs.
func (m *machine) armTable() {
	var next int64
	for _, a := range m.triggering.armed {
		at := a.memory.at
		if left := m.since + int64(startWait) - m.now.wall; a.trigger.Kind == mission.Start && a.memory.seen < m.epoch && left > 0 {
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
		for a.schedule != nil && a.memory.at != 0 && a.memory.at <= m.now.raw && m.room() {
			m.tableDue(a)
		}
	}
	m.triggering.tried = 0 // starts may have waited long enough
	m.armTable()
}

// tableDue takes one time of a table, or skips what was missed.
func (m *machine) tableDue(a *armed) {
	at, now := time.Unix(0, a.memory.at), m.wallTime()
	f := firing{why: fmt.Sprintf("%s, due %s", a.words, a.schedule.Text(at))}
	next := a.schedule.Next(at)
	switch {
	case now.Sub(at) <= onTime:
		a.madeUp = 0
	case a.trigger.CatchUp == mission.CatchAll && a.madeUp < mission.MostMissed:
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
		return 0, fmt.Errorf("%d runs wait already", mostWaiting)
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
	if m.configVersion != m.triggering.tried && m.startsDue() {
		m.triggering.tried = m.configVersion
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
func (m *machine) startsDue() (done bool) {
	over := m.now.wall >= m.since+int64(startWait)
	for _, a := range m.triggering.armed {
		if a.trigger.Kind != mission.Start || a.memory.seen >= m.epoch {
			continue
		}
		if m.outOfRoom() {
			return false
		}
		if over || m.canStart(a) {
			m.fire(a, firing{why: "the controller's start", seen: m.epoch})
		}
	}
	return true
}

func (m *machine) canStart(a *armed) bool {
	p := plan{m: m, mission: a.known.Mission, hash: a.known.hash, state: runRunning, check: true}
	_, err := p.start()
	return err == nil
}

// fileSeen starts a mission for a file, once.
func (m *machine) fileSeen(c FileSeen) ([]view.Run, error) {
	k, ok := m.missions[c.Mission]
	if !ok || c.Trigger < 0 || c.Trigger >= len(k.Mission.Triggers) || k.Mission.Triggers[c.Trigger].Kind != mission.File {
		return nil, fmt.Errorf("%w: mission %s has no such trigger", ErrNotFound, task.Printable(c.Mission))
	}
	words := k.Mission.Triggers[c.Trigger].String()
	n := slices.IndexFunc(m.triggering.armed, func(a *armed) bool { return a.known.Mission == k.Mission && a.words == words })
	switch {
	case n < 0:
		return nil, fmt.Errorf("%w: %s", ErrInvalid, m.triggering.faults[c.Mission])
	case c.Path == "" || c.Stamp == "" || len(c.Path) > task.MaxBytes/2 || len(c.Stamp) > maxReason:
		return nil, fmt.Errorf("%w: a file has a path and a stamp", ErrInvalid)
	}
	a := m.triggering.armed[n]
	if a.memory.files[c.Path] == c.Stamp {
		return nil, nil
	}
	if err := m.mayStartRuns(); err != nil {
		return nil, err
	}
	f := firing{why: "file " + c.Path, path: c.Path, stamp: c.Stamp}
	if slices.ContainsFunc(k.Mission.Params, func(r task.Rule) bool { return r.Name == fileParam }) {
		f.params = task.Values{{Name: fileParam, Value: c.Path}}
	}
	started, _ := m.fire(a, f) // what stands against it was told
	if started == nil {
		return nil, nil
	}
	return []view.Run{*started}, nil
}

// happening is an event that has not started all its missions yet.
type happening struct {
	ask    Ask
	event  Happening
	rest   []*armed
	runs   []view.Run
	failed []error
}

// happen takes an event: it is answered when all its missions were started.
func (m *machine) happen(a Ask, c Happening) {
	h := &happening{ask: a, event: c}
	if err := m.checkEvent(h); err != nil {
		m.answer(a, nil, err)
		return
	}
	m.emit(&eventTold{Name: c.Name, Values: h.event.Values, By: cutText(c.Actor, maxActor)})
	m.triggering.told = append(m.triggering.told, h)
}

// checkEvent finds who waits for an event, and refuses values that nobody takes.
func (m *machine) checkEvent(h *happening) (err error) {
	c := &h.event
	if err := m.mayStartRuns(); err != nil {
		return err
	}
	if c.Values, err = sortedValues(c.Values); err != nil {
		return fmt.Errorf("%w: value %w", ErrInvalid, err)
	}
	if n := c.Values.Size(); n > task.MaxBytes {
		return fmt.Errorf("%w: values of %d bytes, at most %d", ErrTooLarge, n, task.MaxBytes)
	}
	var names, params []string
	for _, a := range m.triggering.armed {
		if a.trigger.Kind != mission.Event {
			continue
		}
		names = append(names, a.trigger.What)
		if a.trigger.What == c.Name {
			h.rest = append(h.rest, a)
			for _, p := range a.known.Mission.Params {
				params = append(params, p.Name)
			}
		}
	}
	if len(h.rest) == 0 {
		return fmt.Errorf("%w: no mission waits for event %s%s", ErrNotFound, task.Printable(c.Name), meant(c.Name, names))
	}
	for _, v := range c.Values {
		if !slices.Contains(params, v.Name) {
			return fmt.Errorf("%w: no mission that waits for event %s has a parameter %s%s", ErrInvalid, c.Name, v.Name, meant(v.Name, params))
		}
	}
	return nil
}

// meant is the hint to the nearest of what is known.
func meant(name string, known []string) string {
	if near := task.Nearest(name, known); near != "" {
		return ": did you mean " + near + "?"
	}
	return ""
}

// tellEvents starts what events ask for, as far as the turn has room.
func (m *machine) tellEvents() {
	for len(m.triggering.told) > 0 {
		h := m.triggering.told[0]
		for ; len(h.rest) > 0; h.rest = h.rest[1:] {
			if m.outOfRoom() {
				return
			}
			m.tellEvent(h, h.rest[0])
		}
		m.triggering.told = m.triggering.told[1:]
		var err error
		if len(h.runs) == 0 {
			err = errors.Join(h.failed...)
		}
		m.answer(h.ask, h.runs, err)
	}
}

// tellEvent starts one mission, with the values that it has parameters for.
func (m *machine) tellEvent(h *happening, a *armed) {
	why := a.words
	if h.event.Actor != "" {
		why += ", told by " + cutText(h.event.Actor, maxActor)
	}
	var params task.Values
	for _, v := range h.event.Values {
		if slices.ContainsFunc(a.known.Mission.Params, func(r task.Rule) bool { return r.Name == v.Name }) {
			params = append(params, v)
		}
	}
	started, err := m.fire(a, firing{why: why, params: params})
	if err != nil {
		h.failed = append(h.failed, fmt.Errorf("mission %s: %w", a.known.Mission.Name, err))
		return
	}
	h.runs = append(h.runs, *started)
}
