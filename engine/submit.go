package engine

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// submit accepts tasks, all or none.
func (m *machine) submit(c Submit) ([]view.Submitted, error) {
	if err := m.mayTakeWork(c); err != nil {
		return nil, err
	}
	batch := intake{m: m, ids: map[string]*submitted{}, keys: map[nameKey]string{}}
	var faults []SubmitFault
	for i := range c.Specs {
		if err := batch.add(&c.Specs[i]); err != nil {
			faults = append(faults, SubmitFault{i, err})
		}
	}
	if len(faults) > 0 {
		return nil, &SubmitError{faults}
	}
	if batch.bytes > maxCommandBytes {
		return nil, fmt.Errorf("%w: %d bytes of tasks in one submission, at most %d fit: send fewer at once", ErrTooLarge, batch.bytes, maxCommandBytes)
	}
	if c.Check {
		return batch.answers, nil
	}
	for _, r := range batch.records {
		m.emit(r)
	}
	return batch.answers, nil
}

func (m *machine) mayTakeWork(c Submit) error {
	switch {
	case m.stopping:
		return ErrStopping
	case m.full:
		return ErrDiskFull
	case len(c.Specs) == 0:
		return fmt.Errorf("%w: no task given", ErrInvalid)
	case len(c.Specs) > maxBulk:
		return fmt.Errorf("%w: %d tasks in one submission, at most %d: send fewer at once", ErrTooLarge, len(c.Specs), maxBulk)
	}
	return nil
}

// intake collects one submission; nothing happens before all of it is good.
type intake struct {
	m       *machine
	records []*submitted
	answers []view.Submitted
	ids     map[string]*submitted // chosen in this submission
	keys    map[nameKey]string
	bytes   int
	given   uint64 // ids given so far
}

func (b *intake) add(spec *task.Spec) error {
	r, warning, err := b.m.accept(spec)
	if err != nil {
		return err
	}
	if done, err := b.known(r); done || err != nil {
		return err
	}
	if r.Task == "" {
		r.Task = b.newID()
	}
	b.ids[r.Task] = r
	if r.Key != "" {
		b.keys[nameKey{r.Type, r.Key}] = r.Task
	}
	b.bytes += recordBytes(r)
	b.records = append(b.records, r)
	b.answers = append(b.answers, view.Submitted{ID: r.Task, State: r.State, Warning: warning})
	return nil
}

// known answers a submission of work that was named before.
func (b *intake) known(r *submitted) (bool, error) {
	id := r.Task
	if id == "" && r.Key != "" {
		if id = b.keys[nameKey{r.Type, r.Key}]; id == "" {
			id = b.m.names.keys[nameKey{r.Type, r.Key}]
		}
	}
	if id == "" {
		return false, nil
	}
	work, state, ok := b.work(id)
	if !ok {
		return false, nil
	}
	if work != workHash(r.Type, string(r.Inputs.AppendText(nil))) {
		return true, fmt.Errorf("%w: %s names other work already: another type or other inputs", ErrConflict, id)
	}
	b.answers = append(b.answers, view.Submitted{ID: id, State: state, Existed: true})
	return true, nil
}

// work is what an id names already: in this submission, in memory, or remembered.
func (b *intake) work(id string) (hash string, state task.State, ok bool) {
	if r := b.ids[id]; r != nil {
		return workHash(r.Type, string(r.Inputs.AppendText(nil))), r.State, true
	}
	if i := b.m.find(id); i != 0 {
		t := b.m.at(i)
		return workHash(b.m.types[t.typ].name, b.m.specOf(i).inputs), t.state, true
	}
	if gone := b.m.names.gone[id]; gone != nil {
		return gone.Work, gone.State, true
	}
	return "", task.New, false
}

// newID gives a short id that sorts by submission.
func (b *intake) newID() string {
	for {
		b.given++
		n := strconv.FormatUint(b.m.nums+b.given, 36)
		for len(n) < 4 {
			n = "0" + n
		}
		id := "t-" + n
		if _, _, taken := b.work(id); !taken {
			return id
		}
	}
}

// accept holds one spec against every rule and fills in what follows from them.
func (m *machine) accept(spec *task.Spec) (*submitted, string, error) {
	if err := m.checkSpec(spec); err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if n := spec.Inputs.Size(); n > task.MaxBytes {
		return nil, "", fmt.Errorf("%w: inputs of %d bytes, at most %d: hand over a path instead", ErrTooLarge, n, task.MaxBytes)
	}
	inputs, err := m.checkInputs(spec)
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	r := &submitted{
		Task: spec.ID, Type: spec.Type, Key: spec.Key, State: task.Queued, Retries: spec.Retries + 1,
		Timeout: spec.Timeout.Truncate(time.Microsecond), Inputs: inputs, Named: spec.ID != "" || spec.Key != "",
	}
	if !spec.Deadline.IsZero() {
		r.Deadline = wallOf(spec.Deadline)
	}
	if !spec.NotBefore.IsZero() && wallOf(spec.NotBefore) > m.now.raw {
		r.State, r.NotBefore = task.Scheduled, wallOf(spec.NotBefore)
	}
	return r, m.warnType(spec.Type), nil
}

// wallOf cuts a time to what records keep.
func wallOf(t time.Time) int64 { return t.Truncate(time.Microsecond).UnixNano() }

func (m *machine) checkSpec(spec *task.Spec) error {
	faults := []error{task.CheckType(spec.Type)}
	if spec.ID != "" {
		faults = append(faults, task.CheckID(spec.ID))
	}
	if spec.Key != "" {
		faults = append(faults, task.CheckID(spec.Key))
	}
	for _, v := range spec.Inputs {
		if err := task.CheckKey(v.Name); err != nil {
			faults = append(faults, fmt.Errorf("input %w", err))
		} else if task.Reserved(v.Name) {
			faults = append(faults, fmt.Errorf("input %s: the name belongs to the protocol, choose another", v.Name))
		}
	}
	if spec.Retries < task.Unset || spec.Retries > 1000 {
		faults = append(faults, fmt.Errorf("retries %d: want 0 to 1000", spec.Retries))
	}
	if spec.Timeout < 0 {
		faults = append(faults, fmt.Errorf("timeout %s is negative", spec.Timeout))
	}
	if !spec.Deadline.IsZero() {
		if wallOf(spec.Deadline) <= m.now.raw {
			faults = append(faults, fmt.Errorf("deadline %s has passed", spec.Deadline.Format(time.RFC3339)))
		} else if spec.Deadline.Before(spec.NotBefore) {
			faults = append(faults, errors.New("the deadline is before the time to start"))
		}
	}
	return errors.Join(faults...)
}

func (m *machine) checkInputs(spec *task.Spec) (task.Values, error) {
	inputs, err := task.NewValues(spec.Inputs)
	if err != nil {
		return nil, fmt.Errorf("input %w", err)
	}
	n, ok := m.typeAt[spec.Type]
	if !ok || m.types[n].unit == nil {
		return inputs, nil
	}
	return m.types[n].unit.CheckInputs(inputs)
}

// warnType says so when nobody offers a type.
func (m *machine) warnType(name string) string {
	if n, ok := m.typeAt[name]; ok && m.types[n].soft.offering > 0 {
		return ""
	}
	var offered []string
	for _, t := range m.types[1:] {
		if t.soft.offering > 0 {
			offered = append(offered, t.name)
		}
	}
	warning := "no executor offers type " + name + " now: the task waits for one"
	if near := task.Nearest(name, offered); near != "" {
		warning += "; did you mean " + near + "?"
	}
	return warning
}

// recordBytes is an upper bound of a submission's record.
func recordBytes(r *submitted) int {
	n := 300 + len(r.Task) + len(r.Key) + len(r.Type)
	for _, v := range r.Inputs {
		n += len(v.Name) + escapedSize(v.Value) + 2
	}
	return n
}
