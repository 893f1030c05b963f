package engine

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"apollo11/engine/task"
)

// group is the executors that offer the same types, in buckets by load. A
// dispatch takes the front of the lowest bucket and never looks at the others,
// so it costs the same with ten executors and with ten thousand.
type group struct {
	types   []*workType
	buckets [maxDepth + 2]bucket
	low     int // no bucket before it holds anybody
	members int
}

// bucket is executors of equal load, longest unused first.
type bucket struct{ first, last *executor }

// groupPlace is where an executor stands.
type groupPlace struct {
	group      *group
	bucket     int // plus one; 0: in none, it can take nothing now
	prev, next *executor
	turn       uint64 // when it was put there: orders equals across groups
}

// typeSoft is what the loop knows of a type beside the journal.
type typeSoft struct {
	groups   []*group
	offering int           // connected executors that offer it
	mean     time.Duration // of recent attempts; 0: nothing known
	known    bool

	durations *durations // of successes; nil: none is known
}

const (
	maxDepth      = 256       // tasks in an executor's local queue
	maxDepthBytes = 256 << 10 // and their bytes
	depthTime     = 20 * time.Millisecond
)

// depth is how many tasks of a type may wait in an executor's local queue:
// about 20 ms of work, and none of what is long or must not begin twice.
func (m *machine) depth(t *workType) int {
	if !t.soft.known || t.soft.mean > depthTime || t.unit != nil && (!t.unit.Idempotent || t.unit.Resident) {
		return 0
	}
	n := maxDepth
	if t.soft.mean > 0 {
		n = int(min(depthTime/t.soft.mean, maxDepth))
	}
	return min(n, m.set.QueueThreshold)
}

// noteDuration keeps a type's mean duration, recent attempts counting most.
func (m *machine) noteDuration(typ uint32, took time.Duration) {
	soft := &m.types[typ].soft
	took = max(took, 0)
	if !soft.known {
		soft.known, soft.mean = true, took
		return
	}
	soft.mean += (took - soft.mean) / 8
}

// regroup puts an executor into the group of those that offer the same.
func (m *machine) regroup(x uint32) {
	e := m.execs[x]
	m.ungroup(e)
	var names []string
	for _, v := range e.offers {
		t := m.types[m.typ(v.Name)]
		if v.Value == "" || v.Value == textHash(t.text) {
			names = append(names, v.Name)
		}
	}
	if len(names) > 0 && e.soft.link != nil && !e.offline {
		key := strings.Join(names, ",")
		g := m.groups[key]
		if g == nil {
			g = &group{}
			m.groups[key] = g
			for _, name := range names {
				t := m.types[m.typ(name)]
				g.types = append(g.types, t)
				t.soft.groups = append(t.soft.groups, g)
			}
		}
		e.soft.group = g
		g.members++
		for _, t := range g.types {
			t.soft.offering++
		}
	}
	m.dirty = append(m.dirty, x)
}

// ungroup takes an executor out of its group; an empty group goes.
func (m *machine) ungroup(e *executor) {
	g := e.soft.group
	if g == nil {
		return
	}
	e.unplace()
	e.soft.group = nil
	g.members--
	for _, t := range g.types {
		t.soft.offering--
	}
	if g.members > 0 {
		return
	}
	names := make([]string, len(g.types))
	for n, t := range g.types {
		names[n] = t.name
		for k, other := range t.soft.groups {
			if other == g {
				t.soft.groups = append(t.soft.groups[:k], t.soft.groups[k+1:]...)
				break
			}
		}
	}
	delete(m.groups, strings.Join(names, ","))
}

// regroupOffering looks anew at every executor that offers a type: its contract
// has changed, so only those with the same one may work on it.
func (m *machine) regroupOffering(name string) {
	for x, e := range m.execs {
		if e != nil {
			if _, ok := e.offers.Get(name); ok && e.soft.link != nil {
				m.regroup(uint32(x))
			}
		}
	}
}

// replaceExec puts an executor into the bucket of its load, or into none.
func (m *machine) replaceExec(x uint32) {
	e := m.execs[x]
	if e == nil {
		return
	}
	if e.soft.link == nil || e.offline {
		m.ungroup(e)
		return
	}
	if e.soft.group == nil {
		return
	}
	e.unplace()
	load := e.load()
	switch {
	case e.draining, load > maxDepth, load > 0 && e.soft.long > 0, len(e.soft.zombies) > 0:
	case e.proto < 2 && (!e.soft.ready || load > 0):
	case load > 0 && e.soft.bytes >= maxDepthBytes:
	default:
		m.places++
		e.place(load, m.places)
	}
}

// place appends an executor to a bucket of its group.
func (e *executor) place(load int, turn uint64) {
	b := &e.soft.group.buckets[load]
	e.soft.group.low = min(e.soft.group.low, load)
	e.soft.bucket, e.soft.turn, e.soft.prev, e.soft.next = load+1, turn, b.last, nil
	if b.last != nil {
		b.last.soft.next = e
	} else {
		b.first = e
	}
	b.last = e
}

func (e *executor) unplace() {
	if e.soft.bucket == 0 {
		return
	}
	b := &e.soft.group.buckets[e.soft.bucket-1]
	if e.soft.prev != nil {
		e.soft.prev.soft.next = e.soft.next
	} else {
		b.first = e.soft.next
	}
	if e.soft.next != nil {
		e.soft.next.soft.prev = e.soft.prev
	} else {
		b.last = e.soft.prev
	}
	e.soft.bucket, e.soft.prev, e.soft.next = 0, nil, nil
}

// dispatch gives out every queued task that somebody can take: the oldest head
// among the types first.
func (m *machine) dispatch() {
	m.replaceDirty()
	if m.paused || m.stopping {
		return
	}
	var waiting []*workType
	for _, t := range m.types[1:] {
		if t.queue.len > 0 {
			waiting = append(waiting, t)
		}
	}
	for len(waiting) > 0 {
		if !m.room() {
			m.more = true
			return
		}
		oldest := 0
		for n, t := range waiting {
			if m.at(t.queue.oldest).order < m.at(waiting[oldest].queue.oldest).order {
				oldest = n
			}
		}
		t := waiting[oldest]
		e := m.taker(t)
		if e != nil {
			m.give(t, e)
			m.replaceDirty()
		}
		if e == nil || t.queue.len == 0 {
			waiting[oldest] = waiting[len(waiting)-1]
			waiting = waiting[:len(waiting)-1]
		}
	}
}

func (m *machine) replaceDirty() {
	for _, x := range m.dirty {
		m.replaceExec(x)
	}
	m.dirty = m.dirty[:0]
}

// taker is the executor that the next task of a type goes to: the least loaded,
// the longest unused among equals.
func (m *machine) taker(t *workType) *executor {
	if !m.mayStart(t) {
		return nil
	}
	var best *executor
	least := m.depth(t)
	for _, g := range t.soft.groups {
		load := g.lowest()
		if load > least {
			continue
		}
		if e := g.buckets[load].first; best == nil || load < least || e.soft.turn < best.soft.turn {
			best, least = e, load
		}
	}
	return best
}

// lowest is the first bucket that holds somebody; beyond maxDepth: none does.
func (g *group) lowest() int {
	for g.low <= maxDepth && g.buckets[g.low].first == nil {
		g.low++
	}
	return g.low
}

// mayStart reports whether another task of the type may be out at all.
func (m *machine) mayStart(t *workType) bool {
	if t.paused {
		return false
	}
	if limit := m.set.Limits[t.name]; limit > 0 && t.out >= limit {
		return false
	}
	if t.unit != nil && t.unit.Fresh {
		for _, key := range t.unit.Context {
			if m.held[key] != 0 {
				return false
			}
		}
	}
	return true
}

// give dispatches the head of a type's queue, or ends it if it can't be sent.
func (m *machine) give(t *workType, e *executor) {
	i := t.queue.oldest
	s, spec := m.own(i), m.specAt(i)
	inputs, timeout := mustParse(string(spec.inputs)), spec.timeout
	if timeout == 0 && t.unit != nil {
		timeout = t.unit.Timeout
	}
	r := &m.reused.dispatched
	*r = dispatched{
		Task: string(spec.id), Exec: e.id, Version: task.MakeVersion(m.epoch, s.sent+1), Attempt: int(s.attempt) + 1,
		StateVersion: m.stateVersion, InputHash: inputHash(spec.inputs, inputs),
	}
	r.Context, r.ContextAt = m.contextFor(i, t.unit)
	if n := r.Context.Size(); n > task.MaxBytes {
		m.emit(&ended{Task: r.Task, State: task.Dead, Class: task.TooLarge, Error: fmt.Sprintf(
			"the context keys that its unit wants hold %d bytes, at most %d: keep a path in the state instead", n, task.MaxBytes)})
		return
	}
	m.recent = i
	m.emit(r)
	if m.depth(t) == 0 {
		s.long = true
		e.soft.long++
	}
	e.soft.ready = false
	m.setAttemptEnd(i)
	x := s.exec
	m.dropHold(x)
	if e.held.len > 1 && e.soft.heap[dueRecall] == 0 {
		m.monoQ.set(due{dueRecall, x}, m.now.mono+int64(recallAfter))
	}
	if e.held.len == 1 {
		e.soft.answered = m.now.mono
	}
	a := task.Assignment{
		Task: r.Task, Type: t.name, Version: r.Version, Attempt: r.Attempt, Timeout: timeout,
		StateVersion: r.StateVersion, Inputs: inputs, Context: r.Context,
	}
	m.addRun(i, &a)
	m.order(e, Assign{a})
}

// addRun fills in what an executor is told of the task's run.
func (m *machine) addRun(i uint32, a *task.Assignment) {
	r := m.runOfTask(i)
	if r == nil {
		return
	}
	a.Run, a.Sample = r.id, r.origin.Sample
	if r.origin.Mode == modeRollback {
		a.Undo = true
		if of := m.inParent(r, m.at(i)); of != 0 {
			a.Outputs = m.resultOf(of).Outputs
		}
	}
}

// inputHash is the hash of a set and its text: a file counts by its content.
func inputHash(text []byte, inputs task.Values) string {
	if bytes.Contains(text, []byte("share:")) {
		return inputs.ContentHash()
	}
	return task.HashText(text)
}

// pin reads the context keys that a unit wants to see.
func (m *machine) pin(u *task.Unit) (values, at task.Values) {
	if u == nil {
		return nil, nil
	}
	for _, key := range u.Context {
		if k := m.keys[key]; k != nil {
			values = append(values, task.Value{Name: key, Value: k.value})
		}
		if u.Fresh {
			at = append(at, task.Value{Name: key, Value: m.keyVersion(key)})
		}
	}
	return values, at
}

// keyVersion is the state version of a key's last change, 0 if there is no key.
func (m *machine) keyVersion(key string) string {
	if k := m.keys[key]; k != nil {
		return strconv.FormatUint(k.at, 10)
	}
	return "0"
}

// mustParse reads a canonical text that this program wrote.
func mustParse(text string) task.Values {
	v, err := task.ParseValues(text)
	if err != nil {
		panic("engine: a canonical text of our own does not parse: " + err.Error())
	}
	return v
}

// recallAfter is how long a task may wait in a local queue while somebody else
// is idle.
const recallAfter = 200 * time.Millisecond

// recall calls back what waits behind an executor's present task when that takes
// long and somebody who offers the type is idle.
func (m *machine) recall(x uint32) {
	e := m.execs[x]
	if e == nil || e.held.len < 2 || e.soft.link == nil {
		return
	}
	who := due{dueRecall, x}
	if wait := e.soft.answered + int64(recallAfter) - m.now.mono; wait > 0 {
		m.monoQ.set(who, m.now.mono+wait)
		return
	}
	for n, i := range m.heldBy(x) {
		if t := m.at(i); n > 0 && t.state == task.Assigned && m.idleFor(m.types[t.typ]) {
			m.order(e, Recall{Task: m.id(i), Version: t.version})
		}
	}
	m.monoQ.set(who, m.now.mono+int64(recallAfter))
}

// idleFor reports whether an executor that offers the type has nothing to do.
func (m *machine) idleFor(t *workType) bool {
	for _, g := range t.soft.groups {
		if g.buckets[0].first != nil {
			return true
		}
	}
	return false
}
