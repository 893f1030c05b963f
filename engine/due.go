package engine

import (
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

func (m *machine) heapOf(t *slot) *deadlines {
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
	unit, own := m.types[m.at(i).typ].unit, m.specOf(i).timeout
	switch {
	case unit != nil && own != 0:
		limit = unit.Prepare + own + unit.Cleanup + attemptSlack
	case unit != nil:
		limit = unit.Prepare + unit.Timeout + unit.Cleanup + attemptSlack
	case own != 0:
		limit = own + attemptSlack
	}
	m.setTask(i, true, m.now.mono+int64(limit))
}

// taskDue is called when a task's moment has come.
func (m *machine) taskDue(i uint32) {
	t := m.at(i)
	switch t.state {
	case task.Scheduled:
		m.emit(&enqueued{Task: m.id(i), Reason: "due", Head: t.deadline != 0})
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
	m.revoke(i, "deadline passed")
	m.fail(i, failure{class: task.Timeout, text: "no result by the attempt's deadline from executor " + m.execs[t.exec].id, begun: true})
}

// revoke tells the executor to end what it holds, and counts it as busy with it.
func (m *machine) revoke(i uint32, reason string) {
	t := m.at(i)
	e := m.execs[t.exec]
	id := m.id(i)
	e.soft.fence(zombie{id, t.version}, m.now.mono)
	m.order(e, Revoke{Task: id, Version: t.version, Reason: reason})
}

// zombieTime is how long a fenced attempt keeps its executor's slot when the
// executor never says that it ended.
const zombieTime = 10 * time.Minute

// retire forgets what memory need not keep: finished tasks, remembered names,
// executors long gone.
func (m *machine) retire() {
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
}

// overdueTasks is how many finished tasks are over the count, or too old.
func (m *machine) overdueTasks() int {
	n := m.finishedCount() - m.set.RetainTasks
	if n > 0 {
		return min(n, maxBulk)
	}
	if i := m.oldestFinished(); i != 0 && m.at(i).finished < m.now.wall-int64(m.set.RetainAge) {
		return 1
	}
	return 0
}

// retireExecs forgets an executor that went offline long ago.
func (m *machine) retireExecs() {
	if m.turns%256 != 0 {
		return
	}
	for _, e := range m.execs[1:] {
		if e != nil && e.offline && e.refs == 0 && e.since < m.now.wall-int64(execMemory) && m.room() {
			m.emit(&executorForgotten{Exec: e.id})
		}
	}
}

// execMemory is how long an executor without tasks in memory is shown offline.
const execMemory = time.Hour
