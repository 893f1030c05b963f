package engine

import (
	"fmt"

	"apollo11/engine/task"
)

// settled is a dead letter of a run that has ended, with which a person is done:
// the run was resumed or given up, which its record does by itself, or the letter
// was dropped. The task stays with its run until that leaves memory.
type settled struct {
	Task string
	Why  string
	By   string
}

func (*settled) kind() string { return "task.settle" }
func (r *settled) walk(f *fields) {
	f.str("task", &r.Task)
	f.str("why", &r.Why)
	f.str("by", &r.By)
}

func (r *settled) apply(s *state) uint32 {
	i := s.mustFind(r.Task)
	if x := s.mustRun(i); !x.state.ended() || s.at(i).state != task.Dead {
		panic(brokenRule(fmt.Sprintf("task %s of run %s is settled while it is %s", r.Task, x.id, s.at(i).state)))
	}
	s.settle(i, r.Why, r.By)
	return i
}

// settle takes a task from among the dead letters; what it died of stays.
func (s *state) settle(i uint32, why, by string) {
	t := s.own(i)
	finished, result := t.finished, s.resultOf(i)
	if result.Error == "" {
		if p, failed := s.lastFailure(i); failed {
			result.Error = p.Error
		}
	}
	s.enter(i, task.Aborted)
	s.runOfTask(i).flow.settled++
	t.finished = finished
	result.Settled, result.By = why, by
	s.putResult(i, &result)
}

// settleAll settles the dead letters of a run that another goes on from, or that a
// person gave up.
func (s *state) settleAll(r *run, why, by string) {
	for _, i := range r.flow.units {
		if s.at(i).state == task.Dead {
			s.touch(i)
			s.settle(i, why, by)
		}
	}
}

// settleLetter drops a run's dead letter.
func (m *machine) settleLetter(r *run, i uint32, why string, d *dropping) error {
	switch t := m.at(i); {
	case !r.state.ended():
		return fmt.Errorf("belongs to run %s, which goes on: apollo11 cancel %s ends it", r.id, r.id)
	case t.state != task.Dead:
		return fmt.Errorf("is %s, and leaves memory with its run %s", t.state, r.id)
	}
	if d.reason != "" {
		why += ": " + cutText(d.reason, maxReason)
	}
	m.emit(&settled{Task: m.id(i), Why: why, By: cutText(d.by, maxActor)})
	return nil
}
