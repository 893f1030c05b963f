package engine

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// submit accepts tasks, all or none.
func (m *machine) submit(c Submit) ([]view.Submitted, error) {
	if err := m.mayTakeWork(c); err != nil {
		return nil, err
	}
	batch := intake{m: m}
	batch.records, batch.answers = make([]submitted, 0, len(c.Specs)), make([]view.Submitted, 0, len(c.Specs))
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
	for n := range batch.records {
		batch.records[n].Kept, batch.records[n].Context = c.atContext, c.context
		m.emit(&batch.records[n])
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
	records []submitted
	answers []view.Submitted
	ids     map[string]view.Submitted // of this submission
	works   map[string]string         // id: workHash
	keys    map[nameKey]string
	bytes   int
	given   uint64 // ids given so far
}

func (b *intake) add(spec *task.Spec) error {
	inputs, err := b.m.checkSpec(spec)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	// Before it is held against the present contract: the same submission again
	// is the same work, whatever became of the contract.
	if done, err := b.known(spec, inputs); done || err != nil {
		return err
	}
	r, err := b.m.accept(spec, inputs)
	if err != nil {
		return err
	}
	if r.Task == "" {
		r.Task = b.newID()
	}
	answer := view.Submitted{ID: r.Task, State: r.State, Warning: cmp.Or(b.m.warnType(r.Type), b.m.warnShare(r.Inputs))}
	if r.Named {
		b.note(&r, answer, inputs)
	}
	b.bytes += recordBytes(&r)
	b.records = append(b.records, r)
	b.answers = append(b.answers, answer)
	return nil
}

// note remembers what a new task is named by.
func (b *intake) note(r *submitted, answer view.Submitted, inputs task.Values) {
	if b.ids == nil {
		b.ids, b.works, b.keys = map[string]view.Submitted{}, map[string]string{}, map[nameKey]string{}
	}
	b.ids[r.Task], b.works[r.Task] = answer, workHash(r.Type, string(inputs.AppendText(nil)))
	if r.Key != "" {
		b.keys[nameKey{r.Type, r.Key}] = r.Task
	}
}

// known answers a submission of work that was named before.
func (b *intake) known(spec *task.Spec, inputs task.Values) (bool, error) {
	id, byKey := spec.ID, b.byKey(spec)
	switch {
	case id == "":
		id = byKey
	case byKey != "" && byKey != id:
		return true, fmt.Errorf("%w: key %s names task %s already, not %s", ErrConflict, spec.Key, byKey, id)
	}
	if id == "" {
		return false, nil
	}
	work, state, ok := b.work(id)
	if !ok {
		return false, nil
	}
	if work != workHash(spec.Type, string(inputs.AppendText(nil))) {
		return true, fmt.Errorf("%w: %s names other work already: another type or other inputs", ErrConflict, id)
	}
	b.answers = append(b.answers, view.Submitted{ID: id, State: state, Existed: true})
	return true, nil
}

// byKey is the task that the spec's key names already.
func (b *intake) byKey(spec *task.Spec) string {
	if spec.Key == "" {
		return ""
	}
	key := nameKey{spec.Type, spec.Key}
	if id := b.keys[key]; id != "" {
		return id
	}
	return b.m.names.keys[key]
}

// work is what an id names already: in this submission, in memory, or remembered.
func (b *intake) work(id string) (hash string, state task.State, ok bool) {
	if here, ok := b.ids[id]; ok {
		return b.works[id], here.State, true
	}
	if i := b.m.find(id); i != 0 {
		return b.m.workOf(i), b.m.at(i).state, true
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
		id := shortID("t-", b.m.nums+b.given)
		if _, _, taken := b.work(id); !taken {
			return id
		}
	}
}

func shortID(prefix string, n uint64) string {
	var text [2 + 13]byte
	id := append(text[:0], prefix...)
	for most := uint64(36 * 36 * 36); n < most && most > 1; most /= 36 { // at least four digits
		id = append(id, '0')
	}
	return string(strconv.AppendUint(id, n, 36))
}

// accept holds one spec against its type's contract, and fills in what follows.
func (m *machine) accept(spec *task.Spec, given task.Values) (r submitted, err error) {
	inputs, filled, err := m.fill(spec.Type, given)
	if err != nil {
		return r, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if n := inputs.Size(); n > task.MaxBytes {
		return r, fmt.Errorf("%w: inputs of %d bytes, at most %d: hand over a path instead", ErrTooLarge, n, task.MaxBytes)
	}
	if err := m.checkTime(spec); err != nil {
		return r, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	r = submitted{
		Task: spec.ID, Type: spec.Type, Key: spec.Key, State: task.Queued, Retries: spec.Retries + 1, Filled: filled,
		Timeout: spec.Timeout.Truncate(time.Microsecond), Inputs: inputs, Named: spec.ID != "" || spec.Key != "",
	}
	if !spec.Deadline.IsZero() {
		r.Deadline = wallOf(spec.Deadline)
	}
	if !spec.NotBefore.IsZero() && wallOf(spec.NotBefore) > m.now.raw {
		r.State, r.NotBefore = task.Scheduled, wallOf(spec.NotBefore)
	}
	return r, nil
}

// wallOf cuts a time to what records keep.
func wallOf(t time.Time) int64 { return t.Truncate(time.Microsecond).UnixNano() }

// checkSpec holds a spec against what is the same for all types, and sorts its
// inputs.
func (m *machine) checkSpec(spec *task.Spec) (task.Values, error) {
	var faults []error // nearly always none: nothing is allocated for them
	note := func(err error) {
		if err != nil {
			faults = append(faults, err)
		}
	}
	note(task.CheckType(spec.Type))
	if spec.ID != "" {
		note(task.CheckID(spec.ID))
		if runOf(spec.ID) != "" {
			note(fmt.Errorf("id %s: names like r-…:… belong to the tasks of runs", spec.ID))
		}
	}
	if spec.Key != "" {
		note(task.CheckID(spec.Key))
	}
	for _, v := range spec.Inputs {
		note(checkInputName(v.Name))
	}
	if spec.Retries < task.Unset || spec.Retries > task.MaxRetries {
		faults = append(faults, fmt.Errorf("retries %d: want 0 to %d", spec.Retries, task.MaxRetries))
	}
	if spec.Timeout < 0 || spec.Timeout > task.LongestStep {
		faults = append(faults, fmt.Errorf("timeout %s: want 0s to %s", spec.Timeout, task.LongestStep))
	}
	inputs, err := sortedValues(spec.Inputs)
	if err != nil {
		faults = append(faults, fmt.Errorf("input %w", err))
	}
	return inputs, errors.Join(faults...)
}

// sortedValues is a command's list as a set. Nearly always it is in order, and then
// it is not copied: who asks gives it away.
func sortedValues(list []task.Value) (task.Values, error) {
	for i := 1; i < len(list); i++ {
		if list[i-1].Name >= list[i].Name {
			return task.NewValues(list)
		}
	}
	return list, nil
}

// checkTime holds a new task's times against the clock.
func (m *machine) checkTime(spec *task.Spec) error {
	for _, at := range []time.Time{spec.Deadline, spec.NotBefore} {
		if y := at.Year(); !at.IsZero() && (y < firstYear || y > lastYear) {
			return fmt.Errorf("time %s: want a year from %d to %d", at.Format(time.RFC3339), firstYear, lastYear)
		}
	}
	switch {
	case spec.Deadline.IsZero():
	case wallOf(spec.Deadline) <= m.now.raw:
		return fmt.Errorf("deadline %s has passed", spec.Deadline.Format(time.RFC3339))
	case spec.Deadline.Before(spec.NotBefore):
		return errors.New("the deadline is before the time to start")
	}
	return nil
}

// fill checks inputs against the type's contract and adds its defaults; filled
// lists what it added.
func (m *machine) fill(typ string, given task.Values) (full task.Values, filled string, err error) {
	n, ok := m.typeAt[typ]
	if !ok || m.types[n].unit == nil {
		return given, "", nil
	}
	if full, err = m.types[n].unit.CheckInputs(given); err != nil || len(full) == len(given) {
		return full, "", err
	}
	var added []string
	for _, v := range full {
		if _, ok := given.Get(v.Name); !ok {
			added = append(added, v.Name)
		}
	}
	return full, strings.Join(added, ","), nil
}

// warnType says so when nobody offers a type.
func (m *machine) warnType(name string) string {
	if n, ok := m.typeAt[name]; ok && m.types[n].soft.offering > 0 {
		if err := m.tooBig(name); err != nil {
			return err.Error()
		}
		return ""
	}
	warning := "no executor offers type " + name + " now: the task waits for one"
	if near := task.Nearest(name, m.offeredTypes()); near != "" {
		warning += "; did you mean " + near + "?"
	}
	return warning
}

// recordBytes is an upper bound of a submission's record.
func recordBytes(r *submitted) int {
	n := 300 + len(r.Task) + len(r.Key) + len(r.Type) + len(r.Filled)
	for _, v := range r.Inputs {
		n += len(v.Name) + escapedSize(v.Value) + 2
	}
	return n
}
