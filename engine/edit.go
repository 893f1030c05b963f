package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// edited is a task's inputs changed by a person. What names the work for
// idempotent submits stays what was asked first, so that the same submission
// again is answered, whatever became of the inputs.
type edited struct {
	Task   string
	Inputs task.Values // all of them, as they are now
	Filled string      // comma list of those that the contract's defaults gave
	By     string
}

func (*edited) kind() string { return "task.edit" }
func (r *edited) walk(f *fields) {
	f.str("task", &r.Task)
	f.values("in", &r.Inputs)
	f.str("filled", &r.Filled)
	f.str("by", &r.By)
}

func (r *edited) apply(s *state) uint32 {
	i := s.mustFind(r.Task)
	if t := s.at(i); !editable(t.state) {
		panic(brokenRule(fmt.Sprintf("task %s is edited while it is %s", r.Task, t.state)))
	}
	spec := s.specOf(i)
	spec.work, spec.filled = s.workOf(i), r.Filled
	t := s.at(i)
	s.texts.drop(t.spec)
	t.spec = s.putSpec(&spec, r.Inputs)
	if t.state == task.Queued && s.shareOf(i) != s.laneOf(t).share {
		s.unline(i) // others can take it now: it joins them as the last
		s.line(i, false)
	}
	return i
}

// editable reports whether inputs may change in a state: no attempt is under way
// with them, and no result came of them.
func editable(s task.State) bool { return !s.Out() && s != task.Succeeded && s != task.Skipped }

// workOf is the hash of the work that a task's id and key name.
func (s *state) workOf(i uint32) string {
	spec := s.specOf(i)
	if spec.work != "" {
		return spec.work
	}
	return workHash(s.types[s.at(i).typ].name, spec.given())
}

// edit changes a task's inputs, and gives one that has ended a new life with
// them. All is checked as at a submit.
func (m *machine) edit(c Edit) (*view.Detail, error) {
	switch {
	case m.stopping:
		return nil, ErrStopping
	case m.full:
		return nil, ErrDiskFull
	case len(c.Set)+len(c.Unset) == 0:
		return nil, fmt.Errorf("%w: no input to set or unset", ErrInvalid)
	}
	i, err := m.findNamed(c.ID, maxExamined)
	if err != nil {
		return nil, err
	}
	t, id := m.at(i), m.id(i)
	if err := m.ofRun(i); err != nil {
		return nil, fmt.Errorf("%w: task %s %w", ErrInvalid, id, err)
	}
	if !editable(t.state) {
		return nil, fmt.Errorf("%w: task %s %s", ErrInvalid, id, notEditable(t.state))
	}
	inputs, filled, err := m.editedInputs(i, c)
	if err != nil {
		return nil, fmt.Errorf("%w: task %s: %w", ErrInvalid, id, err)
	}
	if n := inputs.Size(); n > task.MaxBytes {
		return nil, fmt.Errorf("%w: task %s: inputs of %d bytes, at most %d: hand over a path instead", ErrTooLarge, id, n, task.MaxBytes)
	}
	by := cutText(c.Actor, maxActor)
	if spec := m.specOf(i); string(inputs.AppendText(nil)) != spec.inputs || filled != spec.filled {
		m.emit(&edited{Task: id, Inputs: inputs, Filled: filled, By: by})
	}
	if t.state.Terminal() {
		m.emit(&enqueued{Task: id, Reason: "edit", By: by, Head: t.deadline > m.now.wall, Fresh: true})
	}
	return m.detail(id)
}

func notEditable(s task.State) string {
	if s.Out() {
		return fmt.Sprintf("is %s: an executor has its inputs: cancel it first", s)
	}
	return fmt.Sprintf("has ended %s: its inputs have had their effect", s)
}

// editedInputs is a task's inputs with the changes, against the present contract.
func (m *machine) editedInputs(i uint32, c Edit) (inputs task.Values, filled string, err error) {
	spec := m.specOf(i)
	for _, name := range c.Unset {
		if spec.filled != "" && slices.Contains(strings.Split(spec.filled, ","), name) {
			return nil, "", fmt.Errorf("input %s has its contract's default already: set it to something else", name)
		}
	}
	given, err := changedInputs(mustParse(spec.given()), c)
	if err != nil {
		return nil, "", err
	}
	return m.fill(m.types[m.at(i).typ].name, given)
}

// changedInputs makes the changes of a command.
func changedInputs(given task.Values, c Edit) (task.Values, error) {
	list := slices.Clone([]task.Value(given))
	for _, name := range c.Unset {
		n := slices.IndexFunc(list, func(v task.Value) bool { return v.Name == name })
		if n < 0 {
			return nil, fmt.Errorf("input %s is not there to unset", task.Printable(cutText(name, 128)))
		}
		list = slices.Delete(list, n, n+1)
	}
	set, err := task.NewValues(c.Set)
	if err != nil {
		return nil, fmt.Errorf("input %w", err)
	}
	for _, v := range set {
		if err := checkInputName(v.Name); err != nil {
			return nil, err
		}
		if slices.Contains(c.Unset, v.Name) {
			return nil, fmt.Errorf("input %s is set and unset", v.Name)
		}
		list = slices.DeleteFunc(list, func(old task.Value) bool { return old.Name == v.Name })
	}
	return task.NewValues(append(list, set...))
}

var errReserved = errors.New("the name belongs to the protocol, choose another")

// checkInputName refuses what no input may be called.
func checkInputName(name string) error {
	if err := task.CheckKey(name); err != nil {
		return fmt.Errorf("input %w", err)
	}
	if task.Reserved(name) {
		return fmt.Errorf("input %s: %w", name, errReserved)
	}
	return nil
}
