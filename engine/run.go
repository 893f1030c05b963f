package engine

import (
	"fmt"
	"slices"
	"strings"

	"apollo11/engine/mission"
	"apollo11/engine/task"
)

// run is one execution of a mission, with the exact spec that it used. Each of
// its units is a task with the id RUN:UNIT, blocked until what it waits for has
// succeeded; the tasks leave memory with the run.
type run struct {
	id     string
	num    uint64 // runs started before it, plus one
	spec   *missionSpec
	params task.Values
	config uint64 // version of the configuration at its start
	origin origin
	state  runState
	why    string   // it waits, or did not succeed
	notes  []string // what a person should know of it
	child  string   // the run that goes on from it
	refs   int      // runs in memory that look at its results
	times  runTimes
	flow   flow
	conds  []mission.Conditions // soft: compiled when they are first asked; nil: not yet
	below  []bool               // soft: of a fork: the units that depend on the one that changes
}

// origin is where a run comes from.
type origin struct {
	Mode      runMode
	Parent    string      // the run that it goes on from, or repeats; empty: none
	From      string      // of a fork: the unit that changes; of a rollback: the last one that stays
	With      task.Values // of a fork: that unit's changed inputs
	Cause     string      // what started it, in words
	By        string
	Key       string // names it within its mission
	Sample    int    // more than 0: a try on so much of the data
	AtContext bool   // of a rerun: the context is that of the parent
}

func (o *origin) walk(f *fields) {
	f.runMode("mode", &o.Mode)
	f.str("parent", &o.Parent)
	f.str("from", &o.From)
	f.values("with", &o.With)
	f.str("cause", &o.Cause)
	f.str("by", &o.By)
	f.str("key", &o.Key)
	f.num("sample", &o.Sample)
	f.flag("at_context", &o.AtContext)
}

type runTimes struct {
	created, started, finished int64
	rank                       uint64 // position of the end among all ends
}

// flow is how far a run has come.
type flow struct {
	units    []uint32  // the slot of each unit's task
	left     []int32   // what each unit still waits for
	order    []int32   // of a rollback: the units to undo, one after the other; else nil
	counts   [16]int32 // units by task state
	open     int       // units that have not ended
	reused   int       // units whose result is the parent's
	settled  int       // units that died, and with which a person is done
	stopping bool      // a unit failed: nothing new starts
}

// missionSpec is a mission as it was at the start of some run, stored once.
type missionSpec struct {
	hash    string
	text    string
	parts   int // of the text that have come
	mission *mission.Mission
	graph   *mission.Graph
	refs    int // runs in memory
}

// runState is where a run stands.
type runState uint8

const (
	runNew         runState = iota
	runWaiting              // for an earlier run of the mission to end
	runRunning              //
	runNeedsPerson          // a unit that must not be repeated may have had its effect
	runSucceeded            //
	runFailed               //
	runCancelled            // by a person
	runAborted              // by the system
	runStates
)

var runStateNames = [runStates]string{"new", "waiting", "running", "needs_person", "succeeded", "failed", "cancelled", "aborted"}

func (s runState) String() string {
	if s < runStates {
		return runStateNames[s]
	}
	return fmt.Sprintf("run(%d)", uint8(s))
}

// ended reports whether nothing of the run goes on by itself.
func (s runState) ended() bool { return s >= runNeedsPerson }

var runTransitions = [runStates]uint16{
	runNew:         1<<runWaiting | 1<<runRunning,
	runWaiting:     1<<runRunning | 1<<runCancelled | 1<<runAborted,
	runRunning:     1<<runNeedsPerson | 1<<runSucceeded | 1<<runFailed | 1<<runCancelled | 1<<runAborted,
	runNeedsPerson: 1<<runFailed | 1<<runCancelled,
}

// runMode is what kind of a start it was.
type runMode uint8

const (
	modeStart runMode = iota
	modeResume
	modeRerun
	modeFork
	modeRollback
	runModes
)

var runModeNames = [runModes]string{"start", "resume", "rerun", "fork", "rollback"}

func (m runMode) String() string {
	if m < runModes {
		return runModeNames[m]
	}
	return fmt.Sprintf("mode(%d)", uint8(m))
}

func (f *fields) runState(name string, v *runState) {
	*v = runState(f.word(name, uint8(*v), runStateNames[:]))
}

func (f *fields) runMode(name string, v *runMode) {
	*v = runMode(f.word(name, uint8(*v), runModeNames[:]))
}

// word is a value that has a name; the first, zero, is not written.
func (f *fields) word(name string, v uint8, names []string) uint8 {
	text := ""
	if v != 0 {
		text = names[v]
	}
	f.str(name, &text)
	if !f.reading || text == "" {
		return v
	}
	n := slices.Index(names, text)
	if n <= 0 {
		f.fail(name, fmt.Errorf("%q is not known", text))
		return 0
	}
	return uint8(n)
}

// runTaskID is the id of a unit's task.
func runTaskID(run, unit string) string { return run + ":" + unit }

// runOf is the run that a task's id belongs to; empty: none.
func runOf(id string) string {
	run, _, ok := strings.Cut(id, ":")
	if !ok || !strings.HasPrefix(run, "r-") {
		return ""
	}
	return run
}

// unit is the unit of the mission that a task of the run is.
func (r *run) unit(t taskAt) *mission.Unit { return &r.spec.mission.Units[t.unit] }

// next are the units that wait for a unit.
func (r *run) next(u int) []int32 {
	if r.origin.Mode != modeRollback {
		return r.spec.graph.Children(u)
	}
	if n := slices.Index(r.flow.order, int32(u)); n >= 0 && n+1 < len(r.flow.order) {
		return r.flow.order[n+1 : n+2]
	}
	return nil
}

// began is how many units wait for each unit when nothing has happened.
func (r *run) began() []int32 {
	left := make([]int32, len(r.spec.mission.Units))
	if r.origin.Mode == modeRollback {
		for n, u := range r.flow.order {
			left[u] = int32(min(n, 1))
		}
		return left
	}
	for u := range left {
		left[u] = int32(len(r.spec.graph.Parents(u)))
	}
	return left
}

// note adds what a person should know, the first hundred.
func (r *run) note(text string) {
	if text != "" && len(r.notes) < maxNotes {
		r.notes = append(r.notes, strings.ReplaceAll(text, "\n", " ")) // an image has a line of it
	}
}

const maxNotes = 100

// runTable is all runs in memory, and the specs that they use.
type runTable struct {
	runs     []*run // course.run is an index; 0 is unused
	runAt    map[string]uint32
	freeRuns []uint32
	runKeys  map[nameKey]string // mission and key: run
	specs    map[string]*missionSpec
	ready    *missionSpec // soft: what the spec about to be recorded says, so that it is not read again
	finished []uint32     // runs that have ended, the oldest end first
	retired  int          // units of those
	ripe     []uint32     // soft: tasks that wait for nothing any more
	ended    []uint32     // soft: tasks of runs that have just ended
}

func newRunTable() runTable {
	return runTable{runs: []*run{nil}, runAt: map[string]uint32{}, runKeys: map[nameKey]string{}, specs: map[string]*missionSpec{}}
}

// runOfTask is the run of a task; nil: it belongs to none.
func (s *state) runOfTask(i uint32) *run { return s.runs[s.at(i).run] }

// findRun is a run by its id; nil: there is none.
func (s *state) findRun(id string) *run { return s.runs[s.runAt[id]] }

func (s *state) mustFindRun(id string) *run {
	r := s.findRun(id)
	if r == nil {
		panic(brokenRule(fmt.Sprintf("no run %q", id)))
	}
	s.touchRun(r)
	return r
}

// placeRun gives a run its number.
func (s *state) placeRun(r *run) (x uint32) {
	x = uint32(len(s.runs))
	if last := len(s.freeRuns) - 1; last >= 0 {
		x = s.freeRuns[last]
		s.freeRuns = s.freeRuns[:last]
		s.runs[x] = r
	} else {
		s.runs = append(s.runs, r)
	}
	s.runAt[r.id] = x
	if r.origin.Key != "" {
		s.runKeys[nameKey{r.spec.mission.Name, r.origin.Key}] = r.id
	}
	r.spec.refs++
	return x
}

// enterRun moves a run into a state: the only place where a run's state is set.
func (s *state) enterRun(r *run, next runState) {
	if runTransitions[r.state]&(1<<next) == 0 {
		panic(brokenRule(fmt.Sprintf("run %s: %s to %s is no step that a run takes", r.id, r.state, next)))
	}
	if next.ended() && !r.state.ended() {
		s.stamps++
		r.times.finished, r.times.rank = s.wall, s.stamps
		s.finished = append(s.finished, s.runAt[r.id])
		s.retired += len(r.flow.units)
	}
	if next == runCancelled {
		r.times.finished = s.wall // also of one that waited for a person until now
	}
	if next == runRunning {
		r.times.started = s.wall
	}
	r.state = next
}

// unitMoved counts a run's task that entered a state.
func (s *state) unitMoved(i uint32, before, next task.State) {
	r := s.runOfTask(i)
	r.flow.counts[before]--
	r.flow.counts[next]++
	if next.Terminal() && !before.Terminal() {
		r.flow.open--
		s.ended = append(s.ended, i)
	}
}

// advance counts a unit that has its result, for those that wait for it.
func (s *state) advance(i uint32) {
	r := s.runOfTask(i)
	if r == nil {
		return
	}
	for _, u := range r.next(int(s.at(i).unit)) {
		if r.flow.left[u]--; r.flow.left[u] == 0 {
			s.ripe = append(s.ripe, r.flow.units[u])
		}
	}
}

// succeeded reports whether a run's task has a result that others may use.
func (s *state) succeeded(i uint32) bool {
	switch t := s.at(i); t.state {
	case task.Succeeded:
		return true
	case task.Skipped:
		return s.resultOf(i).Reused != ""
	}
	return false
}
