package engine

import (
	"fmt"
	"slices"
	"strings"

	"apollo11/engine/mission"
	"apollo11/engine/task"
)

// facts are what a run's references and conditions read.
type facts struct {
	m *machine
	r *run
}

// factsOf are those for a task of a run. One of a rerun reads what the parent's
// units gave, as it did there: its own are only compared with them. What the parent
// never came to reads its own.
func (m *machine) factsOf(r *run, i uint32) facts {
	if r.origin.Mode == modeRerun && m.decided(m.inParent(r, m.at(i))) {
		return facts{m, m.findRun(r.origin.Parent)}
	}
	return facts{m, r}
}

// decided reports whether a unit was begun, or left out by its condition.
func (m *machine) decided(i uint32) bool {
	return i != 0 && (m.at(i).sent > 0 || m.at(i).state == task.Skipped)
}

// Param implements mission.Facts.
func (f facts) Param(name string) (string, bool) { return f.r.params.Get(name) }

// State implements mission.Facts.
func (f facts) State(key string) (string, bool) {
	if k := f.m.keys[key]; k != nil {
		return k.value, true
	}
	return "", false
}

// Output implements mission.Facts.
func (f facts) Output(unit, name string) (string, bool) {
	u := f.r.spec.mission.Find(unit)
	if u < 0 || !f.m.succeeded(f.r.flow.units[u]) {
		return "", false
	}
	return f.m.resultOf(f.r.flow.units[u]).Outputs.Get(name)
}

// Status implements mission.Facts.
func (f facts) Status(unit string) string {
	u := f.r.spec.mission.Find(unit)
	if u < 0 {
		return ""
	}
	i := f.r.flow.units[u]
	switch t := f.m.at(i); {
	case t.state == task.Blocked:
		return ""
	case f.m.succeeded(i):
		return task.Succeeded.String()
	default:
		return t.state.String()
	}
}

// conditions are a run's, compiled; an error says that a contract has changed
// under the mission.
func (m *machine) conditions(r *run) ([]mission.Conditions, error) {
	var err error
	if r.conds == nil {
		r.conds, err = r.spec.mission.Conditions(m.contracts())
	}
	return r.conds, err
}

// proceed carries every run on: what has ended settles what hangs on it, and what
// waits for nothing any more comes to the queue.
func (m *machine) proceed() {
	for len(m.runTable.ended) > 0 || len(m.ripe) > 0 {
		if !m.room() {
			m.more = true
			return
		}
		if n := len(m.runTable.ended); n > 0 {
			i := m.runTable.ended[n-1]
			m.runTable.ended = m.runTable.ended[:n-1]
			m.unitEnded(i)
			continue
		}
		i := m.ripe[0]
		m.ripe = m.ripe[1:]
		m.unitReady(i)
	}
	m.ripe, m.runTable.ended = nil, m.runTable.ended[:0]
}

// bootRuns takes up every run where the last controller left it.
func (m *machine) bootRuns() {
	m.ripe, m.runTable.ended = nil, nil
	for _, r := range m.inOrder() {
		if r.state != runRunning {
			continue
		}
		for _, i := range r.flow.units {
			if m.at(i).state.Terminal() {
				m.runTable.ended = append(m.runTable.ended, i)
			}
		}
		m.ripen(r)
	}
}

// unitEnded settles what hangs on a unit that has ended.
func (m *machine) unitEnded(i uint32) {
	r := m.runOfTask(i)
	if r == nil || r.state != runRunning {
		return // it was forgotten, or ended as a whole
	}
	t := m.at(i)
	if failedState(t.state) && !r.flow.stopping && !m.optional(r, t) {
		m.spread(r, i)
	}
	if r.flow.open == 0 {
		m.endRun(r)
	}
}

func failedState(s task.State) bool {
	return s == task.Dead || s == task.Cancelled || s == task.Aborted
}

// optional reports whether the mission can do without a unit.
func (m *machine) optional(r *run, t taskAt) bool {
	return r.origin.Mode != modeRollback && r.spec.graph.Optional(int(t.unit))
}

// spread stops what must not run after a failure.
func (m *machine) spread(r *run, i uint32) {
	t, name := m.at(i), r.unit(m.at(i)).Name
	stop := &runStopped{Run: r.id, Unit: name, All: r.spec.mission.OnFailure == mission.Stop || r.origin.Mode == modeRollback}
	stop.Why = fmt.Sprintf("unit %s is %s", name, t.state)
	if !stop.All && (t.state == task.Aborted || !m.anyBelow(r, t)) {
		return // what caused this has spread already, or nothing waits for it
	}
	if class, text := m.lastError(i); class != task.NoClass {
		stop.Why += ": " + cutText(classText(class, text), 300)
	}
	m.emit(stop)
	for _, u := range r.flow.units {
		if !stop.All {
			break // only blocked ones were ended, and they wait for no moment
		}
		if m.at(u).heap != 0 && !m.at(u).state.Out() {
			m.arm(u)
		}
	}
}

// anyBelow reports whether something still waits for a unit.
func (m *machine) anyBelow(r *run, t taskAt) bool {
	for _, u := range r.next(int(t.unit)) {
		if !m.at(r.flow.units[u]).state.Terminal() {
			return true
		}
	}
	return false
}

// endRun ends a run of which every unit has ended.
func (m *machine) endRun(r *run) {
	end := &runEnded{Run: r.id, State: runSucceeded}
	var failed []string
	for u, i := range r.flow.units {
		t := m.at(i)
		if !failedState(t.state) || m.optional(r, t) {
			continue
		}
		end.State = max(end.State, runFailed)
		if t.state != task.Aborted && len(failed) < 5 {
			failed = append(failed, r.spec.mission.Units[u].Name+" "+t.state.String())
		}
		if t.state == task.Dead && t.class == task.ExecutorLost {
			failed = []string{fmt.Sprintf("unit %s must not be repeated and may have had its effect when its executor was lost: look, then apollo11 resume %s runs it again, apollo11 cancel %s gives up",
				r.spec.mission.Units[u].Name, r.id, r.id)}
			end.State = runNeedsPerson
			break
		}
	}
	end.Why = strings.Join(failed, ", ")
	m.emit(end)
	m.log.Info("run ended", "run", r.id, "mission", r.spec.mission.Name, "state", end.State, "why", end.Why)
	m.runOver(r)
}

// unitReady brings a unit that waits for nothing any more to the queue, or ends it.
func (m *machine) unitReady(i uint32) {
	r := m.runOfTask(i)
	if r == nil || r.state != runRunning || r.flow.stopping || m.at(i).state != task.Blocked || r.flow.left[m.at(i).unit] > 0 {
		return // meanwhile another task may stand in this place
	}
	if r.origin.Mode == modeRollback {
		m.readyUndo(r, i)
		return
	}
	conds, err := m.conditions(r)
	if err != nil {
		m.refuseUnit(i, task.InputInvalid, fmt.Errorf("the mission does not fit the contracts as they are now: %w", err))
		return
	}
	when := ""
	if c := conds[m.at(i).unit].When; c != nil {
		yes, err := c.Eval(m.factsOf(r, i), nil)
		if err != nil {
			m.refuseUnit(i, task.InputInvalid, fmt.Errorf("condition: %w", err))
			return
		}
		when = fmt.Sprintf("%s is %t%s", r.unit(m.at(i)).When, yes, readText(c.Values(m.factsOf(r, i), nil)))
		if !yes {
			m.emit(&skipped{Task: m.id(i), Reason: "condition: " + cutText(when, maxReason)})
			return
		}
	}
	m.inputsReady(r, i, cutText(when, maxReason))
}

// readText says what a condition read.
func readText(values task.Values) string {
	var parts []string
	for _, v := range values {
		parts = append(parts, v.Name+"="+cutText(v.Value, 100))
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, ", ")
}

// inputsReady resolves a unit's inputs, and takes over the parent's result if it
// is of the same ones.
func (m *machine) inputsReady(r *run, i uint32, when string) {
	given, before, err := m.givenInputs(r, i)
	if err != nil {
		m.refuseUnit(i, task.InputInvalid, err)
		return
	}
	from, note := m.reusable(r, i, given)
	if note != "" {
		m.log.Warn("resumed", "task", m.id(i), "note", note)
	}
	if from != 0 {
		m.reuse(i, from, note)
		return
	}
	inputs, filled := given, ""
	if before != 0 {
		spec := m.specOf(before)
		inputs, filled = mustParse(spec.inputs), spec.filled
	} else {
		inputs, filled, err = m.fill(m.types[m.at(i).typ].name, given)
	}
	if err == nil {
		_, err = inputs.Share()
	}
	if err != nil {
		m.refuseUnit(i, task.InputInvalid, err)
		return
	}
	if n := inputs.Size(); n > task.MaxBytes {
		m.refuseUnit(i, task.TooLarge, fmt.Errorf("inputs of %d bytes, at most %d: hand over a path instead", n, task.MaxBytes))
		return
	}
	m.emit(&becameReady{Task: m.id(i), Inputs: inputs, Filled: filled, When: when, Note: note})
}

// reuse takes over the result of a task of the parent run.
func (m *machine) reuse(i, from uint32, note string) {
	result, spec, source := m.resultOf(from), m.specOf(from), m.id(from)
	if result.Reused != "" {
		source = result.Reused
	}
	m.emit(&skipped{
		Task: m.id(i), Reason: "reused from " + source, Reused: source, Inputs: mustParse(spec.inputs), Filled: spec.filled,
		Outputs: result.Outputs, Unit: result.Unit, Note: note,
	})
}

// givenInputs are a unit's inputs as the mission gives them, without the
// contract's defaults; before is the parent's task if they are that one's.
func (m *machine) givenInputs(r *run, i uint32) (given task.Values, before uint32, err error) {
	t := m.at(i)
	if m.asBefore(r, t) { // the very same, whatever the state or upstream says now
		if of := m.inParent(r, t); of != 0 && (m.at(of).sent > 0 || m.succeeded(of)) {
			spec := m.specOf(of)
			return mustParse(spec.given()), of, nil
		}
	}
	u := r.unit(t)
	given, err = r.spec.mission.Inputs(u, m.types[t.typ].unit, m.factsOf(r, i))
	for _, with := range m.changes(r, u.Name) {
		if err == nil {
			given, err = changedInputs(given, Edit{Set: with})
		}
	}
	return given, 0, err
}

// asBefore reports whether a unit gets what it got in the parent run: in a rerun,
// and in a fork if it does not depend on what changes.
func (m *machine) asBefore(r *run, t taskAt) bool {
	return r.origin.Mode == modeRerun || r.origin.Mode == modeFork && !m.dependsOn(r, int(t.unit), r.origin.From)
}

// changes are what a fork changes of a unit's inputs, behind what the forks that it
// comes from changed.
func (m *machine) changes(r *run, unit string) (all []task.Values) {
	for ; r != nil; r = m.findRun(r.origin.Parent) {
		if r.origin.From == unit {
			all = append(all, r.origin.With)
		}
	}
	slices.Reverse(all)
	return all
}

// inParent is the same unit's task in the parent run; 0: there is none.
func (m *machine) inParent(r *run, t taskAt) uint32 {
	parent := m.findRun(r.origin.Parent)
	if parent == nil {
		return 0
	}
	u := int(t.unit)
	if parent.spec != r.spec {
		if u = parent.spec.mission.Find(r.unit(t).Name); u < 0 {
			return 0
		}
	}
	return parent.flow.units[u]
}

// refuseUnit ends a unit that cannot be run as things are.
func (m *machine) refuseUnit(i uint32, class task.Class, why error) {
	text := strings.ReplaceAll(why.Error(), "\n", "; ")
	if r := m.runOfTask(i); class == task.InputInvalid && r != nil && r.config != 0 && r.config < m.configVersion {
		text += fmt.Sprintf(" (contracts or missions have changed since the run began: version %d then, %d now)", r.config, m.configVersion)
	}
	text = cutText(text, maxErrorText)
	m.emit(&ended{Task: m.id(i), State: task.Dead, Class: class, Error: text})
	m.log.Warn("unit refused", "task", m.id(i), "class", class, "error", task.Printable(text))
}

// reusable is the parent's task whose result stands for this one; the note says
// why a result that is there does not, or what a person should know of it.
func (m *machine) reusable(r *run, i uint32, given task.Values) (from uint32, note string) {
	if r.origin.Mode != modeResume && r.origin.Mode != modeFork {
		return 0, ""
	}
	t := m.at(i)
	of := m.inParent(r, t)
	if of == 0 || !m.succeeded(of) {
		return 0, ""
	}
	name := r.unit(t).Name
	if r.origin.Mode == modeFork && m.dependsOn(r, int(t.unit), r.origin.From) {
		return 0, ""
	}
	spec := m.specOf(of)
	if changed := difference(mustParse(spec.given()), given); changed != "" {
		return 0, fmt.Sprintf("%s runs again: %s", name, changed)
	}
	if file := m.fileLost(of); file != "" {
		return 0, fmt.Sprintf("%s runs again: its file %s was changed or lost", name, file)
	}
	if was, now := m.resultOf(of).Unit, m.hashes[m.types[t.typ].name]; was != "" && now != "" && was != now {
		return of, fmt.Sprintf("%s: its result is reused, and the unit has changed since: was %s, is %s", name, shortHash(was), shortHash(now))
	}
	return of, ""
}

// shortHash is as much of a hash as tells it from others.
func shortHash(hash string) string {
	digits := strings.TrimPrefix(hash, "sha256:")
	return digits[:min(len(digits), 12)]
}

// dependsOn reports whether a unit is the one of a name, or waits for it however
// indirectly.
func (m *machine) dependsOn(r *run, u int, name string) bool {
	if r.below == nil {
		r.below = r.spec.below(name)
	}
	return r.below[u]
}

// below is the units that are one of a name, or wait for it however indirectly.
func (s *missionSpec) below(name string) []bool {
	below := make([]bool, len(s.mission.Units))
	line := []int32{int32(max(0, s.mission.Find(name)))}
	for len(line) > 0 {
		at := line[len(line)-1]
		line = line[:len(line)-1]
		if !below[at] {
			below[at] = true
			line = append(line, s.graph.Children(int(at))...)
		}
	}
	return below
}

// difference says which inputs differ, and how; a file counts by its content.
func difference(was, now task.Values) string {
	if was.ContentHash() == now.ContentHash() {
		return ""
	}
	var parts []string
	names := map[string]bool{}
	for _, v := range append(append(task.Values(nil), was...), now...) {
		if names[v.Name] || len(parts) == 5 {
			continue
		}
		names[v.Name] = true
		before, had := was.Get(v.Name)
		after, has := now.Get(v.Name)
		switch {
		case had && has && before != after:
			parts = append(parts, fmt.Sprintf("input %s changed from %q to %q", v.Name, cutText(before, 80), cutText(after, 80)))
		case had && !has:
			parts = append(parts, fmt.Sprintf("input %s, which was %q, is gone", v.Name, cutText(before, 80)))
		case has && !had:
			parts = append(parts, fmt.Sprintf("input %s is new: %q", v.Name, cutText(after, 80)))
		}
	}
	return task.Printable(strings.Join(parts, ", "))
}

// fileLost is a file that a task of an earlier run handed on and that a consumer
// found missing or changed; empty: nobody did.
func (m *machine) fileLost(of uint32) string {
	r := m.runOfTask(of)
	if r == nil {
		return ""
	}
	for _, v := range m.resultOf(of).Outputs {
		file, handed, err := task.ParseFile(v.Value)
		if !handed || err != nil {
			continue
		}
		for _, u := range r.next(int(m.at(of).unit)) {
			i := r.flow.units[u]
			if t := m.at(i); failedState(t.state) && t.class == task.InputInvalid && strings.Contains(m.specOf(i).inputs, file.Sum) {
				return file.Name
			}
		}
	}
	return ""
}
