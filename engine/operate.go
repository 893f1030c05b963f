package engine

import (
	"errors"
	"fmt"
	"strings"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// pause stops or continues dispatching.
func (m *machine) pause(c Pause) error {
	if c.Type != "" {
		if err := task.CheckType(c.Type); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	m.emit(&paused{Type: c.Type, On: c.On, By: cutText(c.Actor, maxActor)})
	return nil
}

// drain asks an executor to finish and go.
func (m *machine) drain(c Drain) error {
	x, ok := m.execAt[c.Exec]
	if !ok {
		return fmt.Errorf("%w: executor %s", ErrNotFound, task.Printable(c.Exec))
	}
	e := m.execs[x]
	if e.offline {
		return fmt.Errorf("%w: executor %s is offline", ErrInvalid, task.Printable(c.Exec))
	}
	if !e.draining {
		m.emit(&draining{Exec: c.Exec, By: cutText(c.Actor, maxActor)})
		m.dirty = append(m.dirty, x)
	}
	m.order(e, DrainOrder{Reason: "drained by an operator"})
	return nil
}

// repair sets or deletes a state key by hand.
func (m *machine) repair(c Repair) (view.Key, error) {
	rule, err := m.allowed(c.Key)
	if err != nil && !(rule == nil && task.CheckKey(c.Key) == nil && !strings.HasPrefix(c.Key, sysPrefix)) {
		return view.Key{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	now := m.keys[c.Key]
	switch {
	case strings.TrimSpace(c.Reason) == "":
		return view.Key{}, fmt.Errorf("%w: a repair needs a reason", ErrInvalid)
	case len(c.Value)+len(c.Key)+len(c.Reason) > task.MaxBytes:
		return view.Key{}, fmt.Errorf("%w: a repair of %d bytes, at most %d", ErrTooLarge, len(c.Value)+len(c.Key)+len(c.Reason), task.MaxBytes)
	case c.Delete && now == nil:
		return view.Key{}, fmt.Errorf("%w: state key %s", ErrNotFound, c.Key)
	case c.Delete && rule != nil && rule.Required:
		return view.Key{}, fmt.Errorf("%w: state key %s is required: it can't be deleted", ErrInvalid, c.Key)
	case !c.Delete && rule != nil:
		if err := rule.Check(c.Value); err != nil {
			return view.Key{}, fmt.Errorf("%w: state key %w", ErrInvalid, err)
		}
	}
	if c.Delete || now == nil || now.value != c.Value {
		m.emit(&repaired{Key: c.Key, Value: c.Value, Delete: c.Delete, Reason: c.Reason, By: cutText(c.Actor, maxActor)})
	}
	if c.Delete {
		return view.Key{Key: c.Key}, nil
	}
	return m.viewKey(c.Key), nil
}

// deed is what a bulk command does to each task it names.
type deed interface {
	// do changes a task, or says why it can't.
	do(m *machine, i uint32) error
}

type requeueing struct{ by string }

func (d *requeueing) do(m *machine, i uint32) error {
	t := m.at(i)
	if err := m.ofRun(i); err != nil {
		return err
	}
	if !t.state.May(task.Queued) || !t.state.Terminal() {
		return fmt.Errorf("is %s: only dead, cancelled and aborted tasks are requeued", t.state)
	}
	m.emit(&enqueued{Task: m.id(i), Reason: "requeue", By: cutText(d.by, maxActor), Head: t.deadline > m.now.wall, Fresh: true})
	return nil
}

// Bounds of what a person may say in a record that stands once per task.
const (
	maxActor  = 128
	maxReason = 1000
)

type cancelling struct{ by, reason string }

func (d *cancelling) do(m *machine, i uint32) error {
	t := m.at(i)
	if t.state.Terminal() {
		return fmt.Errorf("has ended already: %s", t.state)
	}
	if t.state.Out() {
		m.revoke(i, "cancelled", m.attemptEnd(i))
	}
	text := "cancelled"
	if d.reason != "" {
		text += ": " + cutText(d.reason, maxReason)
	}
	m.emit(&ended{Task: m.id(i), State: task.Cancelled, Class: task.ByPerson, Error: text, By: cutText(d.by, maxActor)})
	return nil
}

// job is a bulk command being worked off, a slice a turn, so that nobody waits
// behind it. First it collects what matches, then it acts; every task is looked
// at again at the moment it is changed.
type job struct {
	ask    Ask
	deed   deed
	sel    view.Selection
	match  func(i uint32) bool
	at     uint32 // collecting: the next slot to look at
	num    uint64 // and its task: the slot may be forgotten until then
	picked []pick
	done   int // of picked
	answer view.Changed
}

// pick is a task that matched; its number tells whether the slot still holds it.
type pick struct {
	slot uint32
	num  uint64
}

// bulk begins a command on many tasks.
func (m *machine) bulk(a Ask, sel view.Selection, d deed) {
	j := &job{ask: a, deed: d, sel: sel}
	if sel.All {
		match, err := m.matcher(sel.Query)
		if err != nil {
			m.answer(a, nil, err)
			return
		}
		j.match = match
		j.goOnAt(m, m.all.oldest)
	} else if err := m.pickNamed(j); err != nil {
		m.answer(a, nil, err)
		return
	}
	// What is named is changed at once: who comes first in the loop's order wins.
	if len(m.jobs) == 0 && !sel.All && m.act(j) {
		m.answer(a, &j.answer, nil)
		return
	}
	m.jobs = append(m.jobs, j)
}

// pickNamed finds the tasks that are named one by one; one that is not there
// fails the whole command.
func (m *machine) pickNamed(j *job) error {
	var missing []error
	for _, id := range j.sel.IDs {
		i, err := m.findNamed(id, maxExamined/len(j.sel.IDs))
		if err != nil {
			missing = append(missing, err)
			continue
		}
		j.picked = append(j.picked, pick{i, m.at(i).num})
	}
	if len(j.sel.IDs) == 0 {
		return fmt.Errorf("%w: no task named", ErrInvalid)
	}
	return errors.Join(missing...)
}

// findNamed is lookup for a command that changes the task: a prefix counts only
// if every task was looked at.
func (m *machine) findNamed(id string, most int) (uint32, error) {
	i, err := m.lookup(id, most)
	if err == nil && m.live > most && m.id(i) != id {
		return 0, fmt.Errorf("%w: task %s: with so many tasks, give the whole id", ErrNotFound, task.Printable(id))
	}
	return i, err
}

// work goes on with the first bulk command.
func (m *machine) work() {
	if len(m.jobs) == 0 || !m.room() {
		return
	}
	j := m.jobs[0]
	if j.at != 0 {
		m.collect(j)
		return
	}
	if m.act(j) {
		m.answer(j.ask, &j.answer, nil)
		m.jobs = m.jobs[1:]
	}
}

// maxExamined is how many rows a turn looks at for one question.
const maxExamined = 20_000

// collect looks at the next tasks, oldest first.
func (m *machine) collect(j *job) {
	if m.at(j.at).num != j.num {
		j.at = m.firstAfter(j.num) // it was forgotten between two turns
	}
	for range maxExamined {
		if j.at == 0 {
			return
		}
		t := m.at(j.at)
		if j.match(j.at) {
			j.picked = append(j.picked, pick{j.at, t.num})
		}
		j.at = t.list[byNum].newer
	}
	j.goOnAt(m, j.at)
}

// goOnAt notes where collecting goes on.
func (j *job) goOnAt(m *machine, i uint32) {
	if j.at = i; i != 0 {
		j.num = m.at(i).num
	}
}

// firstAfter is the oldest task submitted after number num.
func (m *machine) firstAfter(num uint64) uint32 {
	i := m.all.oldest
	for i != 0 && m.at(i).num <= num {
		i = m.at(i).list[byNum].newer
	}
	return i
}

// act changes the next tasks that matched; done is true when none is left.
func (m *machine) act(j *job) (done bool) {
	j.answer.Matched = len(j.picked)
	if j.sel.Count {
		for _, p := range j.picked {
			if len(j.answer.Samples) < 3 && m.at(p.slot).num == p.num {
				j.answer.Samples = append(j.answer.Samples, m.id(p.slot))
			}
		}
		return true
	}
	for range maxBulk {
		if j.done == len(j.picked) {
			return true
		}
		if !m.room() {
			return false
		}
		p := j.picked[j.done]
		j.done++
		err := errForgotten
		if m.at(p.slot).num == p.num {
			err = m.actOn(j, p.slot)
		}
		if err == nil {
			j.answer.Changed++
		} else if id := m.pickedID(j, p); id != "" && len(j.answer.Skipped) < 100 {
			j.answer.Skipped = append(j.answer.Skipped, id+": "+err.Error())
		}
	}
	return j.done == len(j.picked)
}

var errForgotten = errors.New("left memory meanwhile")

// pickedID is the task that was just looked at; empty if it was one of many and
// left memory.
func (m *machine) pickedID(j *job, p pick) string {
	switch {
	case m.at(p.slot).num == p.num:
		return m.id(p.slot)
	case !j.sel.All:
		return j.sel.IDs[j.done-1]
	}
	return ""
}

// actOn changes one task, if it is still what the command meant.
func (m *machine) actOn(j *job, i uint32) error {
	if j.match != nil && !j.match(i) {
		return fmt.Errorf("is %s now: the selection does not match any more", m.at(i).state)
	}
	return j.deed.do(m, i)
}
