package engine

import (
	"fmt"
	"slices"
	"strings"

	"apollo11/engine/task"
)

// state is everything that is decided on. Only apply methods of records change
// its durable fields, so folding a journal rebuilds it exactly; the fields named
// soft are the loop's bookkeeping, lost at a stop without loss.
type state struct {
	table
	counters
	typeTable
	execTable
	keys  map[string]*stateKey
	held  map[string]uint32 // context keys of fresh units that are out: their slot
	names names
	runTable
	triggerTable
	ledger ledger
	image  *imaging // an image being taken, else nil
	desk
	feed feed // soft
}

// typeTable is every task type that is known.
type typeTable struct {
	types     []*workType // slot.typ is an index; 0 is unused
	typeAt    map[string]uint32
	freeTypes []uint32
}

// execTable is every executor that is known.
type execTable struct {
	execs     []*executor // course.exec is an index; 0 is unused
	execAt    map[string]uint32
	freeExecs []uint32
}

// desk is what dispatching needs at hand; all of it is soft.
type desk struct {
	dirty []uint32 // executors whose load changed, to be placed anew
	lanes lanes
	hosts hosts
}

// counters are the numbers of the state.
type counters struct {
	epoch         uint64
	seq           uint64 // position of the last applied record
	wall          int64  // its time
	nums          uint64 // tasks submitted ever
	stamps        uint64 // state changes of tasks ever
	tail, head    int64  // newest and oldest position given in any queue
	stateVersion  uint64
	configVersion uint64
	configHash    string
	lates         uint64
	runNums       uint64 // runs started ever
	paused        bool
}

// workType is a task type that somebody offered or asked for.
type workType struct {
	name   string
	paused bool
	unit   *task.Unit // nil: no executor ever declared a contract
	text   string     // the unit's canonical text
	queue  lane       // of those with no files in a share
	shared []*lane    // of the others, in no order
	out    int        // assigned or running
	refs   int        // tasks in memory
	soft   typeSoft
}

// stateKey is one key of the global state.
type stateKey struct {
	value   string
	version uint64 // changes of this key
	seq     uint64 // of the last change
	at      uint64 // state version of the last change
	task    string // whose result changed it; empty: an operator
}

func newState() *state {
	return &state{
		table:        newTable(),
		typeTable:    typeTable{types: []*workType{nil}, typeAt: map[string]uint32{}},
		execTable:    execTable{execs: []*executor{nil}, execAt: map[string]uint32{}},
		keys:         map[string]*stateKey{},
		held:         map[string]uint32{},
		desk:         desk{lanes: newLanes(), hosts: hosts{at: map[string]*host{}}},
		runTable:     newRunTable(),
		triggerTable: newTriggerTable(),
		names:        names{keys: map[nameKey]string{}, gone: map[string]*tomb{}},
	}
}

// apply is the only way in which the state changes, live and in recovery.
func (s *state) apply(wall int64, r record) uint32 {
	s.seq++
	s.wall = wall
	return r.apply(s)
}

// happened is a journal entry, read.
type happened struct {
	seq    uint64
	wall   int64
	record record
	size   int // of the entry
}

// fold applies a journal entry read from disk. A record that the state cannot
// take is an error here: the journal was written by a build with other rules, or
// is not the one that follows this state.
func (s *state) fold(e happened) (err error) {
	if e.seq != s.seq+1 {
		return fmt.Errorf("record %d follows %d", e.seq, s.seq)
	}
	defer func() {
		// A number that no rule foresaw is as much a record that does not fit.
		if broken := recover(); broken != nil {
			err = fmt.Errorf("record %d: %s: %v", e.seq, e.record.kind(), broken)
		}
	}()
	s.apply(e.wall, e.record)
	s.dirty, s.ripe, s.ended = s.dirty[:0], s.ripe[:0], s.ended[:0] // nobody goes on from here
	if s.epoch == 0 {
		panic(brokenRule("a journal begins with a start"))
	}
	return nil
}

// brokenRule is what apply panics with when a record does not fit the state.
// Live that is a bug of ours and ends the program; fold turns it into an error.
type brokenRule string

func (b brokenRule) Error() string { return string(b) }

// typ is the number of a task type, made when it is first heard of.
func (s *state) typ(name string) uint32 {
	n, ok := s.typeAt[name]
	if ok {
		return n
	}
	if err := task.CheckType(name); err != nil {
		panic(brokenRule(err.Error()))
	}
	n = uint32(len(s.types))
	if last := len(s.freeTypes) - 1; last >= 0 {
		n = s.freeTypes[last]
		s.freeTypes = s.freeTypes[:last]
	} else {
		s.types = append(s.types, nil)
	}
	name = strings.Clone(name) // not the frame that it was cut out of
	t := &workType{name: name}
	t.queue.of = t
	s.types[n] = t
	s.typeAt[name] = n
	return n
}

// dropType frees the number of a type that nothing refers to. Nothing durable is
// lost: a type without contract, pause and tasks is no more than its name.
func (s *state) dropType(n uint32) {
	delete(s.typeAt, s.types[n].name)
	s.types[n] = &workType{} // no name: free
	s.freeTypes = append(s.freeTypes, n)
}

// configVersionKey is the state key that counts changes of configuration and
// contracts; nobody else may change what starts with sys.
const configVersionKey = sysPrefix + "config_version"

const sysPrefix = "sys."

// mustFind is the slot of a task that a record names.
func (s *state) mustFind(id string) uint32 {
	i := s.find(id)
	if i == 0 {
		panic(brokenRule(fmt.Sprintf("no task %q", id)))
	}
	s.touch(i)
	return i
}

// mustHold is mustFind for a record of one dispatch.
func (s *state) mustHold(id string, v task.Version) uint32 {
	i := s.mustFind(id)
	if t := s.at(i); !t.state.Out() || t.version != v {
		panic(brokenRule(fmt.Sprintf("task %s is %s at %s, not out at %s", id, t.state, t.version, v)))
	}
	return i
}

// enter moves a task into a state: the only place where a task's state is set.
func (s *state) enter(i uint32, next task.State) {
	t := s.at(i)
	if !t.state.May(next) {
		panic(brokenRule(fmt.Sprintf("task %s: %s to %s is not in the drawing", s.id(i), t.state, next)))
	}
	before := t.state
	s.leave(i, next)
	s.stamps++
	t.stamp, t.entered, t.state = s.stamps, s.wall, next
	s.push(&s.states[next], byState, i)
	if next.Terminal() {
		s.own(i).finished = s.wall
		s.retiring(i)
	}
	if s.at(i).run != 0 {
		s.unitMoved(i, before, next)
	}
}

// leave takes the task out of what its present state put it in.
func (s *state) leave(i uint32, next task.State) {
	t := s.at(i)
	if t.state != task.New {
		s.pull(&s.states[t.state], byState, i)
	}
	if t.state.Terminal() {
		s.staying(i)
	}
	switch {
	case t.state == task.Queued:
		s.unline(i)
	case t.state.Out() && !next.Out():
		e := s.execs[t.exec]
		s.pull(&e.held, inQueue, i)
		e.soft.bytes -= len(s.texts.get(t.spec))
		e.lower(s.types[t.typ].needs())
		if t.long {
			t.long = false
			e.soft.long--
		}
		s.dirty = append(s.dirty, t.exec)
		s.types[t.typ].out--
		if t.fresh {
			for _, v := range s.contextOf(i).At {
				delete(s.held, v.Name)
			}
		}
	}
}

// line puts a task that entered the queue at its head or its tail.
func (s *state) line(i uint32, head bool) {
	l := s.chooseLane(i)
	t := s.at(i)
	if head {
		s.head--
		t.order = s.head
		s.pushFront(&l.list, inQueue, i)
		return
	}
	s.tail++
	t.order = s.tail
	s.push(&l.list, inQueue, i)
}

// setKey changes a key of the global state.
func (s *state) setKey(key, value, by string) {
	k := s.keys[key]
	if k == nil {
		if err := task.CheckKey(key); err != nil {
			panic(brokenRule(err.Error()))
		}
		k = &stateKey{}
		s.keys[strings.Clone(key)] = k
	}
	s.move(key)
	s.stateVersion++
	k.value, k.seq, k.at, k.task = strings.Clone(value), s.seq, s.stateVersion, strings.Clone(by)
	k.version++
}

// delKey takes a key out of the global state, and its version with it.
func (s *state) delKey(key string) {
	s.move(key)
	s.stateVersion++
	delete(s.keys, key)
}

// move notes for those who subscribed that a key changed, and tells the task that
// holds it as a context key. Versions alone would not do: a key made and deleted again looks as if it never was.
func (s *state) move(key string) {
	s.feed.note(key)
	if i := s.held[key]; i != 0 {
		s.touch(i)
		s.at(i).moved = true
	}
}

// sortedKeys is the names of the global state, in order.
func (s *state) sortedKeys() []string {
	names := make([]string, 0, len(s.keys))
	for name := range s.keys {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
