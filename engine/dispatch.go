package engine

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"apollo11/engine/task"
)

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

// dispatch gives out every queued task that somebody can take: the oldest head
// among the lanes first.
func (m *machine) dispatch() {
	m.replaceDirty()
	if m.paused || m.stopping {
		return
	}
	waiting := m.waitingLanes()
	for len(waiting) > 0 {
		if !m.room() {
			m.more = true
			return
		}
		oldest := 0
		for n, l := range waiting {
			if m.at(l.oldest).order < m.at(waiting[oldest].oldest).order {
				oldest = n
			}
		}
		l := waiting[oldest]
		e := m.taker(l)
		if e != nil {
			m.give(l, e)
			m.replaceDirty()
		}
		if e == nil || l.len == 0 {
			waiting[oldest] = waiting[len(waiting)-1]
			waiting = waiting[:len(waiting)-1]
		}
	}
}

// waitingLanes is every lane with tasks in it.
func (m *machine) waitingLanes() (waiting []*lane) {
	for _, t := range m.types[1:] {
		if t.queue.len > 0 {
			waiting = append(waiting, &t.queue)
		}
		waiting = append(waiting, t.shared...)
	}
	return waiting
}

// search is for the executor that is least loaded, the longest unused among
// equals.
type search struct {
	best   *executor
	least  int  // nobody more loaded will do
	second bool // nobody of protocol 1 either
}

func (s *search) look(p *pool) {
	if e, load := p.front(); s.better(e, load) {
		s.best, s.least = e, load
	}
}

func (s *search) better(e *executor, load int) bool {
	return e != nil && load <= s.least && (s.best == nil || load < s.least || e.soft.turn < s.best.soft.turn)
}

// taker is the executor that the next task of a lane goes to. Whoever needs
// nothing special costs the same with ten executors and with ten thousand; else
// every site is looked at, once for each thing that happens to any of them.
func (m *machine) taker(l *lane) *executor {
	t := l.of
	if !m.mayStart(t) {
		return nil
	}
	s, needs := search{least: m.depth(t), second: l.second}, t.needs()
	if l.share == "" && needs.IsZero() {
		for _, g := range t.soft.groups {
			if !g.first || !s.second {
				s.look(&g.pool)
			}
		}
		return s.best
	}
	if m.inVain(l, s.least) {
		return nil
	}
	l.tried = tried{m.places, s.least}
	for _, g := range t.soft.groups {
		if g.first && s.second {
			continue
		}
		for _, site := range g.in(l.share) {
			if e, load := site.pool.front(); s.better(e, load) && site.fits(needs) {
				s.best, s.least = e, load
			}
		}
	}
	if s.best != nil {
		l.tried = tried{}
	}
	return s.best
}

// inVain reports whether nothing has happened since the last search that could
// make another one end better.
func (m *machine) inVain(l *lane, depth int) bool {
	if l.tried.at == 0 || depth > l.tried.depth || m.hosts.freed > l.tried.at {
		return false
	}
	for _, g := range l.of.soft.groups {
		if g.news > l.tried.at {
			return false
		}
	}
	return true
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

// give dispatches the head of a lane, or ends it if it can't be sent.
func (m *machine) give(l *lane, e *executor) {
	i, t := l.oldest, l.of
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
		if t := m.at(i); n > 0 && t.state == task.Assigned && m.idleFor(i, e) {
			m.order(e, Recall{Task: m.id(i), Version: t.version})
		}
	}
	m.monoQ.set(who, m.now.mono+int64(recallAfter))
}

// idleFor reports whether somebody who could take a task that an executor was
// sent has nothing to do. What the task needs is its own already where it is.
func (m *machine) idleFor(i uint32, holder *executor) bool {
	t := m.types[m.at(i).typ]
	share, second, needs := m.shareOf(i), m.second(i), t.needs()
	for _, g := range t.soft.groups {
		if g.first && second {
			continue
		}
		if e, load := g.pool.front(); e == nil || load > 0 {
			continue
		}
		for _, s := range g.in(share) {
			if e, load := s.pool.front(); e != nil && load == 0 && (s.host == holder.soft.host || s.fits(needs)) {
				return true
			}
		}
	}
	return false
}
