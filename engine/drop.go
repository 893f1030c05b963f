package engine

import (
	"fmt"

	"apollo11/engine/task"
)

// dropped is an ended task taken out of memory by a person. Its name is
// remembered as of any that is forgotten; its history stays in the journal.
type dropped struct {
	Task   string
	By     string
	Reason string
}

func (*dropped) kind() string { return "task.drop" }
func (r *dropped) walk(f *fields) {
	f.str("task", &r.Task)
	f.str("by", &r.By)
	f.str("reason", &r.Reason)
}

func (r *dropped) apply(s *state) uint32 {
	i := s.mustFind(r.Task)
	if t := s.at(i); !droppable(t.state) {
		panic(brokenRule(fmt.Sprintf("task %s is dropped while it is %s", r.Task, t.state)))
	}
	s.discard(i, s.wall)
	return 0
}

// droppable reports whether a person may drop a task: it has ended, and did not
// bring what somebody asked for.
func droppable(s task.State) bool { return s == task.Dead || s == task.Cancelled || s == task.Aborted }

// discard takes an ended task out of memory; its name is remembered from a moment on.
func (s *state) discard(i uint32, from int64) {
	t := s.at(i)
	if t.named {
		s.bury(i, from)
	}
	s.staying(i)
	s.pull(&s.states[t.state], byState, i)
	s.pull(&s.all, byNum, i)
	s.release(t.exec)
	s.types[t.typ].refs--
	s.drop(i)
}

type dropping struct{ by, reason string }

func (d *dropping) do(m *machine, i uint32) error {
	if r := m.runOfTask(i); r != nil {
		return m.settleLetter(r, i, "dropped", d)
	}
	if t := m.at(i); !droppable(t.state) {
		return fmt.Errorf("is %s: only dead, cancelled and aborted tasks are dropped", t.state)
	}
	m.emit(&dropped{Task: m.id(i), By: cutText(d.by, maxActor), Reason: cutText(d.reason, maxReason)})
	return nil
}
