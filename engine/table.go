package engine

import (
	"hash/maphash"

	"apollo11/engine/task"
)

// slot is what every task has: who it is, where it stands, and the links of the
// lists it stands in. What befalls a task is in its course. A link of 0 leads
// nowhere.
type slot struct {
	num       uint64 // submissions before it, plus one; 0: the slot is free
	submitted int64
	stamp     uint64 // when it came into its state: position in that state's list
	order     int64  // position in its type's queue, or among what its executor holds
	entered   int64  // wall time it came into its state
	spec      text   // a taskSpec
	more      uint32 // its course
	links
	typ   uint32
	state task.State
	named bool
	mono  bool // soft: in which deadline heap it is
}

// course is what a task has that did not just come and wait. Course 0 is that of
// all tasks that have none, and is never written: see own.
type course struct {
	attempts
	notBefore int64
	deadline  int64
	due       int64      // scheduled, retrying: when it goes on
	exec      uint32     // of the present or last dispatch
	class     task.Class // of the last failure
	fresh     bool       // its unit is fresh: context keys are held while it is out
	moved     bool       // one of them has changed since the dispatch
	varies    bool       // its outputs are others than the same unit, inputs and context gave before
	kept      bool       // its context is what an earlier task saw, not the state as it is
	undone    bool       // a rollback took its effect back
	run       uint32     // that it belongs to; 0: none
	unit      uint32     // of that run's mission
	lane      uint32     // soft: of a share that it is queued in; 0: in its type's own
	long      bool       // soft: of a type that no task may wait behind
}

// taskAt is a task where it lies in the table.
type taskAt struct {
	*slot
	*course
}

// attempts is the task's past and present tries.
type attempts struct {
	version  task.Version // of the present or last dispatch
	applied  task.Version // whose result was applied last
	seen     uint64       // state version at the last dispatch
	started  int64
	finished int64
	sent     uint32 // dispatches ever
	attempt  uint32 // tries ever, as people count
	tries    uint32 // failures of this life that used a retry
	crashes  uint32 // executors lost in this life
	stales   uint32 // stale contexts in a row
	context  text   // a pinned
	result   text   // a taskResult
	history  text   // attempts that failed, a line each
}

// links are the lists a slot stands in.
type links struct {
	chain uint32 // next slot of the same id hash
	heap  uint32 // soft: position in a deadline heap plus one
	list  [lists]link
}

type link struct{ older, newer uint32 }

// The lists that a slot can stand in at once.
const (
	byNum   = iota // all tasks, by submission
	byState        // those of one state, by entry into it
	inQueue        // those of a type's queue, or those that an executor holds
	lists
)

// table is all tasks, found by slot or by id.
type table struct {
	slots   slab[slot]
	courses slab[course]
	ids     map[uint32]uint32 // id hash: first slot of its chain
	seed    maphash.Seed
	recent  uint32 // the slot that was found last: a record is of the task just decided upon
	texts   arena
	scratch fields // for a text on its way into the arena
	live    int
	all     list
	done    list // ended, of no run, and not dead: they are forgotten from the oldest on
	states  [16]list
}

// list is a doubly linked list of slots.
type list struct {
	oldest, newest uint32
	len            int
}

func newTable() table {
	return table{ids: map[uint32]uint32{}, seed: maphash.MakeSeed(), slots: newSlab[slot](), courses: newSlab[course]()}
}

// push adds a slot at the newest end of a list.
func (t *table) push(l *list, kind int, i uint32) {
	t.slots.at(i).list[kind] = link{older: l.newest}
	if l.newest != 0 {
		t.slots.at(l.newest).list[kind].newer = i
	} else {
		l.oldest = i
	}
	l.newest = i
	l.len++
}

// pushFront adds a slot at the oldest end.
func (t *table) pushFront(l *list, kind int, i uint32) {
	t.slots.at(i).list[kind] = link{newer: l.oldest}
	if l.oldest != 0 {
		t.slots.at(l.oldest).list[kind].older = i
	} else {
		l.newest = i
	}
	l.oldest = i
	l.len++
}

// pull takes a slot out of its list.
func (t *table) pull(l *list, kind int, i uint32) {
	at := t.slots.at(i).list[kind]
	if at.older != 0 {
		t.slots.at(at.older).list[kind].newer = at.newer
	} else {
		l.oldest = at.newer
	}
	if at.newer != 0 {
		t.slots.at(at.newer).list[kind].older = at.older
	} else {
		l.newest = at.older
	}
	t.slots.at(i).list[kind] = link{}
	l.len--
}

func (t *table) at(i uint32) taskAt {
	s := t.slots.at(i)
	return taskAt{s, t.courses.at(s.more)}
}

// own is at for who writes to the task's course.
func (t *table) own(i uint32) taskAt {
	if s := t.slots.at(i); s.more == 0 {
		s.more = t.courses.take()
	}
	return t.at(i)
}

// find is the slot of an id, 0 if there is none.
func (t *table) find(id string) uint32 {
	if t.recent != 0 && string(t.idBytes(t.recent)) == id {
		return t.recent
	}
	for i := t.ids[uint32(maphash.String(t.seed, id))]; i != 0; i = t.slots.at(i).chain {
		if string(t.idBytes(i)) == id {
			t.recent = i
			return i
		}
	}
	return 0
}

// create takes a free slot for an id; 0 if it has one.
func (t *table) create(id string) uint32 {
	hash := uint32(maphash.String(t.seed, id))
	first := t.ids[hash]
	for i := first; i != 0; i = t.slots.at(i).chain {
		if string(t.idBytes(i)) == id {
			return 0
		}
	}
	i := t.slots.take()
	t.slots.at(i).chain = first
	t.ids[hash] = i
	t.live++
	return i
}

// drop frees a slot that stands in no list any more.
func (t *table) drop(i uint32) {
	s := t.at(i)
	if t.recent == i {
		t.recent = 0
	}
	hash := uint32(maphash.Bytes(t.seed, t.idBytes(i)))
	if first := t.ids[hash]; first != i {
		for p := t.slots.at(first); ; p = t.slots.at(p.chain) {
			if p.chain == i {
				p.chain = s.chain
				break
			}
		}
	} else if s.chain == 0 {
		delete(t.ids, hash)
	} else {
		t.ids[hash] = s.chain
	}
	for _, held := range []text{s.spec, s.context, s.result, s.history} {
		t.texts.drop(held)
	}
	if s.more != 0 {
		t.courses.drop(s.more)
	}
	t.slots.drop(i)
	t.live--
}

// replace puts a new text in the place of an old one.
func (t *table) replace(at *text, b []byte) {
	t.texts.drop(*at)
	*at = t.texts.put(b)
}
