package engine

import (
	"fmt"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// rerun runs a run, or one task, again with the very same inputs.
func (m *machine) rerun(c Rerun) (Answer, error) {
	if m.findRun(c.ID) == nil && m.find(c.ID) != 0 {
		return m.rerunTask(c)
	}
	if r, err := m.lookupRun(c.ID); err == nil || runOf(c.ID+":") != "" {
		if err != nil {
			return nil, err
		}
		c.ID = r.id
		return m.rerunRun(c)
	}
	return m.rerunTask(c)
}

// rerunTask submits a task like another; the first one stays as it is.
func (m *machine) rerunTask(c Rerun) ([]view.Submitted, error) {
	i, err := m.lookup(c.ID, maxExamined)
	if err != nil {
		return nil, err
	}
	t, spec := m.at(i), m.specOf(i)
	if t.state == task.Blocked || t.state == task.Skipped && !m.succeeded(i) {
		return nil, fmt.Errorf("%w: task %s is %s: it never had inputs", ErrInvalid, m.id(i), t.state)
	}
	s := Submit{Specs: []task.Spec{{
		Type: m.types[t.typ].name, Inputs: mustParse(spec.inputs), Retries: spec.retries, Timeout: spec.timeout,
	}}}
	if c.AtContext {
		if t.sent == 0 {
			return nil, fmt.Errorf("%w: task %s never ran: it saw no context", ErrInvalid, m.id(i))
		}
		s.context = m.contextOf(i).Values
		s.atContext = true
	}
	return m.submit(s)
}

// contextFor is what a dispatch pins: the state as it is, or as an earlier
// attempt saw it.
func (m *machine) contextFor(i uint32, u *task.Unit) (values, at task.Values) {
	t := m.at(i)
	if t.kept {
		return m.contextOf(i).Values, nil
	}
	if r := m.runOfTask(i); r != nil && r.origin.AtContext {
		if of := m.inParent(r, t); of != 0 && m.at(of).sent > 0 {
			return m.contextOf(of).Values, nil
		}
	}
	return m.pin(u)
}
