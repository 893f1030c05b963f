package engine

import (
	"cmp"
	"slices"

	"apollo11/engine/task"
)

// forgetRun takes a run with its tasks out of memory.
func (s *state) forgetRun(r *run) {
	at := s.runAt[r.id]
	for _, i := range r.flow.units {
		s.touch(i)
		s.discard(i, s.at(i).finished)
	}
	s.retired -= len(r.flow.units)
	s.finished = slices.DeleteFunc(s.finished, func(x uint32) bool { return x == at })
	if parent := s.findRun(r.origin.Parent); parent != nil {
		parent.refs--
	}
	key := nameKey{r.spec.mission.Name, r.origin.Key}
	if s.runKeys[key] == r.id {
		delete(s.runKeys, key)
	}
	if r.spec.refs--; r.spec.refs == 0 {
		delete(s.specs, r.spec.hash)
	}
	delete(s.runAt, r.id)
	s.runs[at] = nil
	s.freeRuns = append(s.freeRuns, at)
}

// inOrder is the runs in memory, in order of their start.
func (s *state) inOrder() []*run {
	list := make([]*run, 0, len(s.runAt))
	for _, r := range s.runs[1:] {
		if r != nil {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b *run) int { return cmp.Compare(a.num, b.num) })
	return list
}

// forgettableState reports whether tasks of a state leave memory by themselves; a
// dead letter waits for a person.
func forgettableState(s task.State) bool {
	return s == task.Succeeded || s == task.Cancelled || s == task.Aborted || s == task.Skipped
}

// retiring puts a task that has ended among those that are forgotten first; one
// of a run leaves memory with the run.
func (s *state) retiring(i uint32) {
	if t := s.at(i); forgettableState(t.state) && t.run == 0 {
		s.push(&s.done, inQueue, i)
	}
}

// staying is retiring undone.
func (s *state) staying(i uint32) {
	if t := s.at(i); forgettableState(t.state) && t.run == 0 {
		s.pull(&s.done, inQueue, i)
	}
}
