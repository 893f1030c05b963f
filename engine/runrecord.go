package engine

import (
	"fmt"
	"strconv"
	"strings"

	"apollo11/engine/mission"
	"apollo11/engine/task"
)

// specStored is one part of a mission's canonical text, which runs refer to by
// its hash. The last part makes it whole.
type specStored struct {
	Hash  string
	Part  int // from 1
	Parts int
	Text  string
}

func (*specStored) kind() string { return "mission.spec" }
func (r *specStored) walk(f *fields) {
	f.str("hash", &r.Hash)
	f.num("part", &r.Part)
	f.num("parts", &r.Parts)
	f.str("text", &r.Text)
}

func (r *specStored) apply(s *state) uint32 {
	if err := s.storeSpec(r); err != nil {
		panic(brokenRule(err.Error()))
	}
	return 0
}

// storeSpec adds a part of a spec.
func (s *state) storeSpec(r *specStored) (err error) {
	spec := s.specs[r.Hash]
	if spec == nil {
		spec = &missionSpec{hash: r.Hash}
		s.specs[r.Hash] = spec
	}
	if spec.parts++; r.Part != spec.parts || r.Parts < r.Part || spec.mission != nil {
		return fmt.Errorf("mission spec %s: part %d of %d is not the next", r.Hash, r.Part, r.Parts)
	}
	spec.text += r.Text
	if r.Part < r.Parts {
		return nil
	}
	if s.ready != nil && s.ready.hash == r.Hash {
		spec.mission, spec.graph = s.ready.mission, s.ready.graph
		return nil
	}
	if got := task.HashText([]byte(spec.text)); got != r.Hash {
		return fmt.Errorf("mission spec %s: its text has the hash %s", r.Hash, got)
	}
	if spec.mission, err = mission.ParseSpec(spec.text); err == nil {
		spec.graph, err = mission.NewGraph(spec.mission)
	}
	return err
}

// runStarted is a run, with a blocked task for each of its units.
type runStarted struct {
	Run    string
	Spec   string // hash
	Params task.Values
	State  runState // waiting or running
	Config uint64   // version of configuration, missions and contracts
	Order  string   // of a rollback: numbers of the units to undo, in order, with commas
	Origin origin
}

func (*runStarted) kind() string { return "run.start" }
func (r *runStarted) walk(f *fields) {
	f.str("run", &r.Run)
	f.str("spec", &r.Spec)
	f.values("params", &r.Params)
	f.runState("state", &r.State)
	f.u64("config", &r.Config)
	f.str("order", &r.Order)
	r.Origin.walk(f)
}

func (r *runStarted) apply(s *state) uint32 {
	spec := s.specs[r.Spec]
	if spec == nil || spec.mission == nil || s.findRun(r.Run) != nil {
		panic(brokenRule(fmt.Sprintf("run %q of spec %q: there is no such spec, or the run is there already", r.Run, r.Spec)))
	}
	s.runNums++
	x := &run{id: r.Run, num: s.runNums, spec: spec, params: r.Params, config: r.Config, origin: r.Origin, times: runTimes{created: s.wall}}
	order, err := parseOrder(r.Order, len(spec.mission.Units))
	if err != nil {
		panic(brokenRule(err.Error()))
	}
	x.flow.order = order
	at := s.placeRun(x)
	parent := s.findRun(r.Origin.Parent)
	if parent != nil {
		parent.refs++
	}
	if parent != nil && r.Origin.Mode == modeResume {
		s.touchRun(parent)
		parent.child = r.Run
		s.settleAll(parent, r.Run+" goes on from it", "")
		if parent.state == runNeedsPerson {
			s.enterRun(parent, runFailed)
		}
	}
	s.makeUnits(at)
	s.enterRun(x, r.State)
	if r.State == runRunning {
		s.ripen(x)
	}
	return 0
}

// makeUnits makes the tasks of a new run.
func (s *state) makeUnits(at uint32) {
	r := s.runs[at]
	units := r.spec.mission.Units
	r.flow.units, r.flow.left, r.flow.open = make([]uint32, len(units)), r.began(), len(units)
	for n := range units {
		u := &units[n]
		spec := taskSpec{id: runTaskID(r.id, u.Name), retries: u.Retries, timeout: u.Timeout}
		if err := spec.check(); err != nil {
			panic(brokenRule(err.Error()))
		}
		i := s.create(spec.id)
		if i == 0 {
			panic(brokenRule(fmt.Sprintf("task %q is there already", spec.id)))
		}
		s.nums++
		t := s.at(i)
		t.num, t.submitted = s.nums, s.wall
		t.spec, t.typ = s.putSpec(&spec, nil), s.typ(u.Uses)
		t = s.own(i)
		t.run, t.unit = at, uint32(n)
		s.types[t.typ].refs++
		s.push(&s.all, byNum, i)
		r.flow.units[n] = i
		r.flow.counts[task.New]++
		s.enter(i, task.Blocked)
	}
	if r.origin.Mode == modeRollback {
		s.skipUndone(r)
	}
}

// skipUndone ends the units that a rollback has nothing to do for.
func (s *state) skipUndone(r *run) {
	undo := make([]bool, len(r.flow.units))
	for _, u := range r.flow.order {
		undo[u] = true
	}
	for n, i := range r.flow.units {
		if !undo[n] {
			s.enter(i, task.Skipped)
			s.putResult(i, &taskResult{Error: "nothing to undo"})
		}
	}
}

func parseOrder(text string, units int) (order []int32, err error) {
	if text == "" {
		return nil, nil
	}
	for number := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseUint(number, 10, 31)
		if err != nil || int(n) >= units {
			return nil, fmt.Errorf("order %q: there is no unit %q", text, number)
		}
		order = append(order, int32(n))
	}
	return order, nil
}

// ripen names the units that wait for nothing.
func (s *state) ripen(r *run) {
	for u, i := range r.flow.units {
		if r.flow.left[u] == 0 && s.at(i).state == task.Blocked {
			s.ripe = append(s.ripe, i)
		}
	}
}

// runWent is a waiting run whose turn has come.
type runWent struct{ Run string }

func (*runWent) kind() string     { return "run.go" }
func (r *runWent) walk(f *fields) { f.str("run", &r.Run) }
func (r *runWent) apply(s *state) uint32 {
	x := s.mustFindRun(r.Run)
	x.why = ""
	s.enterRun(x, runRunning)
	s.ripen(x)
	return 0
}

// becameReady is a unit that waits for nothing any more: its inputs are known,
// and its condition was true.
type becameReady struct {
	Task   string
	Inputs task.Values
	Filled string // comma list of those that the contract's defaults gave
	When   string // the condition with what it read
	Note   string // why it is run although the parent has a result
	Undo   bool   // what is run takes its effect back
}

func (*becameReady) kind() string { return "task.ready" }
func (r *becameReady) walk(f *fields) {
	f.str("task", &r.Task)
	f.values("in", &r.Inputs)
	f.str("filled", &r.Filled)
	f.str("when", &r.When)
	f.str("note", &r.Note)
	f.flag("undo", &r.Undo)
}

func (r *becameReady) apply(s *state) uint32 {
	i := s.mustFind(r.Task)
	s.giveInputs(i, r.Inputs, r.Filled)
	s.mustRun(i).note(r.Note)
	s.enter(i, task.Queued)
	s.at(i).submitted = s.wall
	s.line(i, false)
	return i
}

// giveInputs writes the inputs of a run's task, which are known late.
func (s *state) giveInputs(i uint32, inputs task.Values, filled string) {
	spec := s.specOf(i)
	spec.filled = filled
	t := s.at(i)
	s.texts.drop(t.spec)
	t.spec = s.putSpec(&spec, inputs)
}

// mustRun is the run of a task that a record says is one of a run.
func (s *state) mustRun(i uint32) *run {
	r := s.runOfTask(i)
	if r == nil {
		panic(brokenRule(fmt.Sprintf("task %s belongs to no run", s.id(i))))
	}
	s.touchRun(r)
	return r
}

// skipped is a unit that is not run: its condition is false, and then what waits
// for it is skipped too, or the parent's result is taken over.
type skipped struct {
	Task    string
	Reason  string
	Reused  string // the task whose result is taken over; empty: none is
	Inputs  task.Values
	Filled  string
	Outputs task.Values
	Unit    string // hash of the unit that made them
	Note    string // that the unit has changed since
}

func (*skipped) kind() string { return "task.skip" }
func (r *skipped) walk(f *fields) {
	f.str("task", &r.Task)
	f.str("reason", &r.Reason)
	f.str("reused", &r.Reused)
	f.values("in", &r.Inputs)
	f.str("filled", &r.Filled)
	f.values("out", &r.Outputs)
	f.str("unit", &r.Unit)
	f.str("note", &r.Note)
}

func (r *skipped) apply(s *state) uint32 {
	i := s.mustFind(r.Task)
	x := s.mustRun(i)
	if r.Reused != "" {
		s.giveInputs(i, r.Inputs, r.Filled)
		x.note(r.Note)
		x.flow.reused++
	}
	s.enter(i, task.Skipped)
	s.putResult(i, &taskResult{Outputs: r.Outputs, Error: r.Reason, Reused: r.Reused, Unit: r.Unit})
	if r.Reused != "" {
		s.advance(i)
		return i
	}
	name := x.unit(s.at(i)).Name
	s.endBelow(x, s.at(i).unit, task.Skipped, "upstream "+name+" was skipped")
	return i
}

// endBelow ends everything that waits for a unit, however far down.
func (s *state) endBelow(r *run, u uint32, next task.State, why string) {
	line := []int32{int32(u)}
	for len(line) > 0 {
		at := line[len(line)-1]
		line = line[:len(line)-1]
		for _, child := range r.next(int(at)) {
			if i := r.flow.units[child]; s.at(i).state == task.Blocked {
				s.endUnit(i, next, why)
				line = append(line, child)
			}
		}
	}
}

// endUnit ends a task of a run that no executor has.
func (s *state) endUnit(i uint32, next task.State, why string) {
	s.touch(i)
	s.enter(i, next)
	s.own(i).due = 0
	s.putResult(i, &taskResult{Error: why})
}

// runStopped is a unit's failure spreading: to what waits for it, or to all that
// has not begun.
type runStopped struct {
	Run  string
	Unit string // that failed
	All  bool
	Why  string
}

func (*runStopped) kind() string { return "run.stop" }
func (r *runStopped) walk(f *fields) {
	f.str("run", &r.Run)
	f.str("unit", &r.Unit)
	f.flag("all", &r.All)
	f.str("why", &r.Why)
}

func (r *runStopped) apply(s *state) uint32 {
	x := s.mustFindRun(r.Run)
	u := x.spec.mission.Find(r.Unit)
	if u < 0 && !r.All {
		panic(brokenRule(fmt.Sprintf("run %s has no unit %q", r.Run, r.Unit)))
	}
	if !r.All {
		s.endBelow(x, uint32(u), task.Aborted, r.Why)
		return 0
	}
	x.flow.stopping = true
	if x.why == "" {
		x.why = r.Why
	}
	for _, i := range x.flow.units {
		if t := s.at(i); !t.state.Terminal() && !t.state.Out() {
			s.endUnit(i, task.Aborted, r.Why)
		}
	}
	return 0
}

// runCancelledBy ends a run and every task of it that has not ended.
type runCancelledBy struct {
	Run string
	By  string
	Why string
}

func (*runCancelledBy) kind() string { return "run.cancel" }
func (r *runCancelledBy) walk(f *fields) {
	f.str("run", &r.Run)
	f.str("by", &r.By)
	f.str("why", &r.Why)
}

func (r *runCancelledBy) apply(s *state) uint32 {
	x := s.mustFindRun(r.Run)
	for _, i := range x.flow.units {
		if t := s.at(i); !t.state.Terminal() {
			s.touch(i)
			(&ended{Task: s.id(i), State: task.Cancelled, Class: task.ByPerson, Error: r.Why, By: r.By}).apply(s)
		}
	}
	if x.state == runNeedsPerson { // who gives up is done with what waited for them
		s.settleAll(x, r.Why, r.By)
	}
	x.why = r.Why
	s.enterRun(x, runCancelled)
	return 0
}

// runEnded is a run of which nothing goes on any more.
type runEnded struct {
	Run   string
	State runState
	Why   string
}

func (*runEnded) kind() string { return "run.end" }
func (r *runEnded) walk(f *fields) {
	f.str("run", &r.Run)
	f.runState("state", &r.State)
	f.str("why", &r.Why)
}

func (r *runEnded) apply(s *state) uint32 {
	x := s.mustFindRun(r.Run)
	if x.flow.open > 0 && r.State != runAborted || !r.State.ended() {
		panic(brokenRule(fmt.Sprintf("run %s ends %s with %d open units", r.Run, r.State, x.flow.open)))
	}
	x.why = r.Why
	s.enterRun(x, r.State)
	s.noteUndone(x)
	return 0
}

// noteUndone tells the run whose work a rollback took back.
func (s *state) noteUndone(r *run) {
	parent := s.findRun(r.origin.Parent)
	if parent == nil || r.origin.Mode != modeRollback {
		return
	}
	var undone []string
	for _, u := range r.flow.order {
		if s.at(r.flow.units[u]).state == task.Succeeded {
			undone = append(undone, r.spec.mission.Units[u].Name)
		}
	}
	if len(undone) > 0 {
		s.touchRun(parent)
		parent.note(r.id + " undid " + strings.Join(undone, ", "))
	}
}

// runForgotten takes an ended run with its tasks out of memory.
type runForgotten struct{ Run string }

func (*runForgotten) kind() string     { return "run.forget" }
func (r *runForgotten) walk(f *fields) { f.str("run", &r.Run) }
func (r *runForgotten) apply(s *state) uint32 {
	x := s.mustFindRun(r.Run)
	if !x.state.ended() || x.refs > 0 {
		panic(brokenRule(fmt.Sprintf("run %s is %s, and %d runs look at it", r.Run, x.state, x.refs)))
	}
	s.forgetRun(x)
	return 0
}
