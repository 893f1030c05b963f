package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"apollo11/engine/mission"
	"apollo11/engine/task"
	"apollo11/engine/view"
)

// contracts are what missions are held against now.
func (m *machine) contracts() mission.Contracts {
	var c mission.Contracts
	for _, t := range m.types[1:] {
		switch {
		case t.unit != nil:
			c.Units = append(c.Units, *t.unit)
		case t.name != "" && t.soft.offering > 0:
			c.Loose = append(c.Loose, t.name)
		}
	}
	for i := range m.set.Keys {
		c.Keys = append(c.Keys, mission.Key{Rule: m.set.Keys[i].Rule, From: m.set.Keys[i].From})
	}
	return c
}

// startRun starts a mission.
func (m *machine) startRun(c StartRun) (*view.Run, error) {
	if err := m.mayStartRuns(); err != nil {
		return nil, err
	}
	named, err := m.missionFor(c)
	if err != nil {
		return nil, err
	}
	if id := m.runKeys[nameKey{named.Mission.Name, c.Key}]; c.Key != "" && id != "" {
		return m.sameRun(m.findRun(id), c)
	}
	p := plan{m: m, mission: named.Mission, hash: named.hash, params: c.Params, state: runRunning, check: c.Check}
	p.origin = origin{By: cutText(c.Actor, maxActor), Key: c.Key, Sample: c.Sample, Cause: "a person"}
	return p.start()
}

// sameRun answers a start under a key that names a run already; other parameters
// are other work.
func (m *machine) sameRun(r *run, c StartRun) (*view.Run, error) {
	for _, v := range c.Params {
		if was, _ := r.params.Get(v.Name); was != v.Value {
			return nil, fmt.Errorf("%w: key %s names run %s already, with %s = %q: another run needs another key", ErrConflict, c.Key, r.id, v.Name, cutText(was, 100))
		}
	}
	if c.Sample != r.origin.Sample {
		return nil, fmt.Errorf("%w: key %s names run %s already, with sample = %d: another run needs another key", ErrConflict, c.Key, r.id, r.origin.Sample)
	}
	return m.viewRun(r), nil
}

func (m *machine) mayStartRuns() error {
	switch {
	case m.stopping:
		return ErrStopping
	case m.full:
		return ErrDiskFull
	}
	return nil
}

// missionFor is the mission that a command gives, or names.
func (m *machine) missionFor(c StartRun) (knownMission, error) {
	if c.Mission != nil {
		return knownMission{NamedMission: NamedMission{Mission: c.Mission}}, nil
	}
	return m.known(c.Name)
}

// known is a mission by its name.
func (m *machine) known(name string) (knownMission, error) {
	if k, ok := m.missions[name]; ok {
		return k, nil
	}
	if misfit, ok := m.misfits[name]; ok {
		return knownMission{}, fmt.Errorf("%w: mission %s: %s", ErrInvalid, name, misfit.Fault)
	}
	names := make([]string, 0, len(m.missions))
	for n := range m.missions {
		names = append(names, n)
	}
	hint := ""
	if near := task.Nearest(name, names); near != "" {
		hint = ": did you mean " + near + "?"
	}
	return knownMission{}, fmt.Errorf("%w: there is no mission %s%s", ErrNotFound, task.Printable(name), hint)
}

// plan is a run about to start: all is checked before anything happens.
type plan struct {
	m       *machine
	mission *mission.Mission
	hash    string // of the mission; empty: not known yet
	params  task.Values
	state   runState
	order   []int32
	origin  origin
	check   bool // only check
}

// start checks the mission and makes the run.
func (p *plan) start() (*view.Run, error) {
	m := p.m
	if p.origin.Key != "" {
		if err := task.CheckID(p.origin.Key); err != nil {
			return nil, fmt.Errorf("%w: key %w", ErrInvalid, err)
		}
	}
	if p.origin.Sample < 0 || p.origin.Sample > maxSample {
		return nil, fmt.Errorf("%w: sample %d: want 1 to %d", ErrInvalid, p.origin.Sample, maxSample)
	}
	given, err := sortedValues(p.params)
	if err != nil {
		return nil, fmt.Errorf("%w: parameter %w", ErrInvalid, err)
	}
	contracts := m.contracts()
	if p.origin.Parent == "" { // else it has them already
		if with := p.mission.WithDeps(contracts); with != p.mission {
			p.mission, p.hash = with, "" // another text than the file's
		}
	}
	contracts.Settled = p.settled()
	params, err := p.checked().Check(contracts, given)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, p.told(err))
	}
	if n := params.Size(); n > task.MaxBytes {
		return nil, fmt.Errorf("%w: parameters of %d bytes, at most %d", ErrTooLarge, n, task.MaxBytes)
	}
	spec, err := p.spec()
	if err != nil {
		return nil, err
	}
	if err := m.neverFits(spec); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if p.check {
		return &view.Run{Mission: p.mission.Name, Spec: spec.hash, Units: int64(len(p.mission.Units)), Params: view.Object(params)}, nil
	}
	v := m.viewRun(p.emit(spec, params))
	v.Warning = m.warnTypes(spec.mission)
	return v, nil
}

// checked is the mission as it will be run: a fork gives inputs of its own.
func (p *plan) checked() *mission.Mission {
	checked := p.mission
	var forks []origin
	for o := p.origin; len(o.With) > 0 || o.Parent != ""; {
		forks = append(forks, o)
		parent := p.m.findRun(o.Parent)
		if parent == nil {
			break
		}
		o = parent.origin
	}
	for _, o := range slices.Backward(forks) {
		checked = checked.WithInputs(o.From, o.With)
	}
	return checked
}

// settled says which units' results the run takes over, as far as can be told now.
func (p *plan) settled() func(int) bool {
	parent := p.m.findRun(p.origin.Parent)
	if parent == nil || p.origin.Mode != modeResume && p.origin.Mode != modeFork {
		return nil
	}
	changes := make([]bool, len(parent.flow.units))
	if p.origin.Mode == modeFork {
		changes = parent.spec.below(p.origin.From)
	}
	return func(u int) bool { return !changes[u] && p.m.succeeded(parent.flow.units[u]) }
}

// told adds to the faults of a run's mission why mending its file would not help.
func (p *plan) told(err error) error {
	var faults mission.Faults
	if p.origin.Parent == "" || !errors.As(err, &faults) {
		return err
	}
	return append(faults, mission.Fault{File: "run " + p.origin.Parent, Problem: fmt.Sprintf(
		"keeps its mission as it was started: what its file says now is started by apollo11 run %s; a fork can give inputs: apollo11 fork %s --from UNIT --with NAME=VALUE",
		p.mission.Name, p.origin.Parent)})
}

// warnTypes says which types of a mission nobody offers now.
func (m *machine) warnTypes(of *mission.Mission) string {
	var warnings []string
	seen := map[string]bool{}
	for n := range of.Units {
		if name := of.Units[n].Uses; !seen[name] {
			seen[name] = true
			if at, ok := m.typeAt[name]; !ok || m.types[at].soft.offering == 0 {
				warnings = append(warnings, name)
			}
		}
	}
	if len(warnings) == 0 {
		return ""
	}
	return "no executor offers " + cutText(strings.Join(warnings, ", "), 300) + " now: such units wait for one"
}

const maxSample = 1_000_000_000

// spec is the mission as runs refer to it: the one that is stored, or one to store.
func (p *plan) spec() (*missionSpec, error) {
	text := ""
	if p.hash == "" || p.m.specs[p.hash] == nil {
		text = p.mission.Spec()
		p.hash = task.HashText([]byte(text))
	}
	if spec := p.m.specs[p.hash]; spec != nil {
		return spec, nil
	}
	if n := escapedSize(text); n > maxCommandBytes-maxEntryBytes/4 {
		return nil, fmt.Errorf("%w: the mission takes %d bytes in the journal, at most %d: make it of several missions", ErrTooLarge, n, maxCommandBytes-maxEntryBytes/4)
	}
	graph, err := mission.NewGraph(p.mission)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return &missionSpec{hash: p.hash, text: text, mission: p.mission, graph: graph}, nil
}

// emit records the spec, if it is new, and the run.
func (p *plan) emit(spec *missionSpec, params task.Values) *run {
	m := p.m
	if m.specs[spec.hash] == nil {
		m.runTable.ready = spec
		for _, part := range specLines(spec.hash, spec.text) {
			m.emit(&part)
		}
		m.runTable.ready = nil
	}
	r := &runStarted{Run: m.newRunID(spec.mission), Spec: spec.hash, Params: params, State: p.state, Config: m.configVersion, Order: orderText(p.order), Origin: p.origin}
	m.emit(r)
	m.log.Info("run started", "run", r.Run, "mission", spec.mission.Name, "mode", r.Origin.Mode, "cause", r.Origin.Cause, "parent", r.Origin.Parent)
	return m.findRun(r.Run)
}

// newRunID gives a short id that sorts by start, and none that a task of another
// build's making stands in the way of.
func (m *machine) newRunID(of *mission.Mission) string {
	for n := m.runNums + 1; ; n++ {
		id := shortID("r-", n)
		taken := slices.ContainsFunc(of.Units, func(u mission.Unit) bool { return m.find(runTaskID(id, u.Name)) != 0 })
		if !taken && m.findRun(id) == nil {
			return id
		}
	}
}

// goOn is what a run that goes on from another has in common with it.
func (m *machine) goOn(id string, mode runMode, actor string) (*run, plan, error) {
	if err := m.mayStartRuns(); err != nil {
		return nil, plan{}, err
	}
	r, err := m.lookupRun(id)
	if err != nil {
		return nil, plan{}, err
	}
	p := plan{m: m, mission: r.spec.mission, hash: r.spec.hash, params: r.params, state: runRunning}
	p.origin = origin{Mode: mode, Parent: r.id, By: cutText(actor, maxActor), Sample: r.origin.Sample, Cause: "a person"}
	return r, p, nil
}

// resume starts a run that goes on from one that failed.
func (m *machine) resume(c Resume) (*view.Run, error) {
	r, p, err := m.goOn(c.Run, modeResume, c.Actor)
	switch {
	case err != nil:
		return nil, err
	case r.child != "":
		return nil, fmt.Errorf("%w: run %s was resumed as %s already: resume that one", ErrInvalid, r.id, r.child)
	case r.state == runSucceeded:
		return nil, fmt.Errorf("%w: run %s succeeded: there is nothing to resume; apollo11 rerun %s runs it again", ErrInvalid, r.id, r.id)
	case !r.state.ended():
		return nil, fmt.Errorf("%w: run %s is %s: it goes on by itself", ErrInvalid, r.id, r.state)
	case r.origin.Mode == modeRollback:
		return m.rollbackAgain(r, c.Actor)
	}
	p.origin.From, p.origin.With = r.origin.From, r.origin.With
	return p.start()
}

// rerun starts a run with the very same inputs.
func (m *machine) rerunRun(c Rerun) (*view.Run, error) {
	r, p, err := m.goOn(c.ID, modeRerun, c.Actor)
	switch {
	case err != nil:
		return nil, err
	case r.origin.Mode == modeRollback:
		return nil, fmt.Errorf("%w: run %s undid another run: roll that one back again", ErrInvalid, r.id)
	}
	p.origin.AtContext = c.AtContext
	p.origin.From, p.origin.With = r.origin.From, r.origin.With
	return p.start()
}

// fork starts a run that changes one unit's inputs and takes over what does not
// depend on it.
func (m *machine) fork(c Fork) (*view.Run, error) {
	r, p, err := m.goOn(c.Run, modeFork, c.Actor)
	if err != nil {
		return nil, err
	}
	with, err := sortedValues(c.With)
	var unit *mission.Unit
	if u := r.spec.mission.Find(c.From); u >= 0 {
		unit = &r.spec.mission.Units[u]
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: input %w", ErrInvalid, err)
	case !r.state.ended():
		return nil, fmt.Errorf("%w: run %s is %s: fork it when it has ended, or cancel it", ErrInvalid, r.id, r.state)
	case r.origin.Mode == modeRollback:
		return nil, fmt.Errorf("%w: run %s undid another run: there is nothing to fork", ErrInvalid, r.id)
	case unit == nil:
		return nil, fmt.Errorf("%w: run %s has no unit %s%s", ErrNotFound, r.id, task.Printable(c.From), nearUnit(r, c.From))
	}
	if n, ok := m.typeAt[unit.Uses]; ok && m.types[n].unit != nil {
		if err := knownInputs(m.types[n].unit, with); err != nil {
			return nil, fmt.Errorf("%w: unit %s: %w", ErrInvalid, unit.Name, err)
		}
	}
	p.origin.From, p.origin.With = c.From, with
	return p.start()
}

// knownInputs refuses inputs that a contract does not have, or that break it.
func knownInputs(u *task.Unit, with task.Values) error {
	var faults []error
	for _, v := range with {
		n := slices.IndexFunc(u.In, func(r task.Rule) bool { return r.Name == v.Name })
		if n < 0 {
			faults = append(faults, fmt.Errorf("input %s is not declared", task.Printable(v.Name)))
			continue
		}
		faults = append(faults, u.In[n].Check(v.Value))
	}
	return errors.Join(faults...)
}

func nearUnit(r *run, name string) string {
	names := make([]string, len(r.spec.mission.Units))
	for i := range names {
		names[i] = r.spec.mission.Units[i].Name
	}
	if near := task.Nearest(name, names); near != "" {
		return ": did you mean " + near + "?"
	}
	return ""
}

// cancelRun ends a run and all its tasks.
func (m *machine) cancelRun(c CancelRun) (*view.Run, error) {
	r, err := m.lookupRun(c.Run)
	if err != nil {
		return nil, err
	}
	if r.state.ended() && r.state != runNeedsPerson {
		return nil, fmt.Errorf("%w: run %s has ended already: %s", ErrInvalid, r.id, r.state)
	}
	why := "cancelled"
	if c.Reason != "" {
		why += ": " + cutText(c.Reason, maxReason)
	}
	for _, i := range r.flow.units {
		if m.at(i).state.Out() {
			m.revoke(i, "cancelled", m.attemptEnd(i))
		}
	}
	m.emit(&runCancelledBy{Run: r.id, By: cutText(c.Actor, maxActor), Why: why})
	for _, i := range r.flow.units {
		m.arm(i)
	}
	m.log.Info("run cancelled", "run", r.id, "by", c.Actor, "reason", c.Reason)
	m.runOver(r)
	return m.viewRun(r), nil
}

// lookupRun finds a run by id, or by the prefix of one that is unique.
func (m *machine) lookupRun(id string) (*run, error) {
	if r := m.findRun(id); r != nil {
		return r, nil
	}
	var found []string
	for name := range m.runAt {
		if id != "" && strings.HasPrefix(name, id) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	switch {
	case len(found) == 1:
		return m.findRun(found[0]), nil
	case len(found) > 1:
		return nil, fmt.Errorf("%w: %s names several runs: %s", ErrNotFound, task.Printable(id), strings.Join(found[:min(4, len(found))], ", "))
	}
	return nil, fmt.Errorf("%w: run %s: it never was, or left memory; the journal has its history: apollo11 replay %s", ErrNotFound, task.Printable(id), task.Printable(id))
}

// ofRun refuses what may not be done to a single task of a run.
func (m *machine) ofRun(i uint32) error {
	r := m.runOfTask(i)
	switch {
	case r == nil:
		return nil
	case r.state.ended() && r.state != runSucceeded && r.child == "":
		return fmt.Errorf("belongs to run %s: apollo11 resume %s", r.id, r.id)
	}
	return fmt.Errorf("belongs to run %s, which settles what becomes of it", r.id)
}
