package engine

import (
	"math"
	"time"

	"apollo11/engine/task"
)

// arm sets the one moment that a task waits for in its present state. That of a
// task that is out is set by its dispatch and by its start.
func (m *machine) arm(i uint32) {
	t := m.at(i)
	switch {
	case t.state.Out():
		return
	case t.state == task.Scheduled:
		m.setTask(i, false, t.due)
	case t.state == task.Retrying:
		// The interval is a duration: it passes however the clock is set.
		m.setTask(i, true, m.now.mono+max(0, t.due-m.now.wall))
	case t.state == task.Queued && t.deadline != 0:
		m.setTask(i, false, t.deadline)
	default:
		m.clearTask(i)
	}
}

func (m *machine) setTask(i uint32, mono bool, at int64) {
	t := m.at(i)
	if t.mono != mono {
		m.clearTask(i)
		t.mono = mono
	}
	m.heapOf(t).set(due{dueTask, i}, at)
}

func (m *machine) clearTask(i uint32) {
	if t := m.at(i); t.heap != 0 {
		m.heapOf(t).drop(due{dueTask, i})
	}
}

func (m *machine) heapOf(t taskAt) *deadlines {
	if t.mono {
		return &m.monoQ
	}
	return &m.wallQ
}

// attemptSlack is what an attempt gets beyond its own limits, for the way there
// and back.
const attemptSlack = 15 * time.Second

// undeclaredAttempt is the whole time of an attempt whose type has no contract.
const undeclaredAttempt = 10 * time.Minute

// setAttemptEnd gives a task that is out its full time from now.
func (m *machine) setAttemptEnd(i uint32) {
	limit := undeclaredAttempt
	unit, own := m.types[m.at(i).typ].unit, m.specAt(i).timeout
	switch {
	case m.resident(i):
		limit = residentSilence
	case unit != nil && own != 0:
		limit = unit.Prepare + own + unit.Cleanup + attemptSlack
	case unit != nil:
		limit = unit.Prepare + unit.Timeout + unit.Cleanup + attemptSlack
	case own != 0:
		limit = own + attemptSlack
	}
	m.setTask(i, true, m.now.mono+int64(limit))
}

// timeoutOf is how long the execute step of a task may take; 0: nothing is known,
// or it has no limit.
func (m *machine) timeoutOf(i uint32) time.Duration {
	if own := m.specAt(i).timeout; own != 0 {
		return own
	}
	if unit := m.types[m.at(i).typ].unit; unit != nil {
		return unit.Timeout
	}
	return 0
}

// attemptEnd is when the attempt's time is over.
func (m *machine) attemptEnd(i uint32) int64 {
	t := m.at(i)
	if t.heap == 0 || !t.mono {
		return m.now.mono
	}
	return m.monoQ.entries[t.heap-1].at
}

// taskDue is called when a task's moment has come.
func (m *machine) taskDue(i uint32) {
	t := m.at(i)
	switch t.state {
	case task.Scheduled:
		m.emit(&enqueued{Task: m.id(i), Reason: "due"}) // no return: to the tail
	case task.Retrying:
		m.emit(&enqueued{Task: m.id(i), Reason: "retry", Head: t.deadline != 0})
	case task.Queued:
		m.emit(&ended{Task: m.id(i), State: task.Dead, Class: task.Expired, Error: "its deadline passed before it started"})
	case task.Assigned, task.Running:
		m.attemptDue(i)
	}
}

// attemptDue fences an attempt that took too long; its executor stays taken
// until it says something of it, or goes.
func (m *machine) attemptDue(i uint32) {
	t := m.at(i)
	if late := m.floor + int64(attemptSlack); m.floor != 0 && late > m.now.mono {
		// The controller slept: the result may wait on the connection.
		m.setTask(i, true, late)
		return
	}
	m.revoke(i, "deadline passed", never)
	m.fail(i, failure{class: task.Timeout, text: "no result by the attempt's deadline from executor " + m.execs[t.exec].id, begun: true}, nil)
}

// revoke tells the executor to end what it holds, and counts it as busy with it
// until it says that it ended, or until a moment.
func (m *machine) revoke(i uint32, reason string, until int64) {
	t := m.at(i)
	e := m.execs[t.exec]
	id := m.id(i)
	e.soft.fence(zombie{id, t.version}, haunting{until, m.types[t.typ].needs()})
	e.soft.busy = max(e.soft.busy, min(until, m.attemptEnd(i)))
	m.order(e, Revoke{Task: id, Version: t.version, Reason: reason})
}

// never is a moment that does not come.
const never = math.MaxInt64

// retire forgets what memory need not keep: finished tasks, remembered names,
// executors long gone.
func (m *machine) retire() {
	m.retireRuns()
	if n := m.overdueTasks(); n > 0 {
		m.emit(&forgotten{Count: n})
	}
	n := 0
	for n < len(m.names.line) && n < maxBulk && m.names.line[n].Ended < m.now.wall-int64(m.set.RetainKeys) {
		n++
	}
	if n > 0 {
		m.emit(&keysForgotten{Count: n})
	}
	m.retireExecs()
	m.retireTypes()
}

// overdueTasks is how many finished tasks are over the count, or too old.
func (m *machine) overdueTasks() int {
	if n := m.done.len + m.retired - m.set.RetainTasks; n > 0 {
		return min(n, maxBulk, m.done.len)
	}
	n := 0
	for i := m.done.oldest; i != 0 && n < maxBulk && m.tooOld(m.at(i).finished); n++ {
		i = m.at(i).list[inQueue].newer
	}
	return n
}

// tooOld reports whether what ended then is kept no longer.
func (m *machine) tooOld(finished int64) bool {
	return m.set.RetainAge > 0 && finished < m.now.wall-int64(m.set.RetainAge)
}

// retireRuns forgets runs that ended long ago, or before the oldest of too many
// finished tasks; one that waits for a person, or that another looks at, stays.
func (m *machine) retireRuns() {
	var gone []*run
	over, units := m.done.len+m.retired-m.set.RetainTasks, 0
	for _, x := range m.finished { // the oldest first: behind one that may stay, all may
		r := m.runs[x]
		old := m.tooOld(r.times.finished)
		many := over > 0 && (m.done.len == 0 || r.times.finished <= m.at(m.done.oldest).finished)
		if !old && !many || units >= maxBulk {
			break
		}
		if r.refs == 0 && r.state != runNeedsPerson {
			gone = append(gone, r)
			over -= len(r.flow.units)
			units += len(r.flow.units)
		}
	}
	for _, r := range gone {
		m.emit(&runForgotten{Run: r.id})
		m.more = true // there may be more, such as one that this one looked at
	}
}

// retireExecs forgets an executor that went offline long ago.
func (m *machine) retireExecs() {
	if m.turns%256 != 0 {
		return
	}
	for _, e := range m.execs[1:] {
		if e != nil && e.offline && e.refs == 0 && e.since < m.now.wall-int64(execMemory) && m.room() {
			m.moveOut(e)
			m.emit(&executorForgotten{Exec: e.id})
		}
	}
}

// retireTypes forgets names that tasks once asked for and nobody knows.
func (m *machine) retireTypes() {
	if m.turns%256 != 0 || len(m.typeAt) < manyTypes {
		return
	}
	offered := map[string]bool{}
	for _, e := range m.execs[1:] {
		for n := 0; e != nil && n < len(e.offers); n++ {
			offered[e.offers[n].Name] = true
		}
	}
	for n, t := range m.types[1:] {
		if t.name != "" && t.refs == 0 && t.unit == nil && !t.paused && !offered[t.name] {
			m.dropType(uint32(n + 1))
		}
	}
}

// manyTypes is how many types may be known before idle names are looked for.
const manyTypes = 1000

// execMemory is how long an executor without tasks in memory is shown offline.
const execMemory = time.Hour
