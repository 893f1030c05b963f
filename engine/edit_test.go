package engine

import (
	"errors"
	"testing"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// What may be edited and dropped, state by state; what has ended and may be
// edited is requeued, so it must have that edge in the drawing.
func TestEditableAndDroppable(t *testing.T) {
	want := map[task.State][2]bool{
		task.Scheduled: {true, false}, task.Blocked: {true, false}, task.Queued: {true, false}, task.Assigned: {false, false},
		task.Running: {false, false}, task.Retrying: {true, false}, task.Succeeded: {false, false}, task.Dead: {true, true},
		task.Cancelled: {true, true}, task.Aborted: {true, true}, task.Skipped: {false, false},
	}
	for _, s := range task.States() {
		if got := [2]bool{editable(s), droppable(s)}; got != want[s] {
			t.Errorf("%s: edited, dropped %v, want %v", s, got, want[s])
		}
		if editable(s) && s.Terminal() && !s.May(task.Queued) {
			t.Errorf("%s is edited and can't be queued", s)
		}
	}
}

// The largest inputs that a person can give, as bad as can be, fit the journal.
func TestEditsAreBounded(t *testing.T) {
	b := newBounded(t, nil)
	id := b.do(Submit{Specs: []task.Spec{{Type: "a"}}})[0].answer.([]view.Submitted)[0].ID
	edit := func(n int) error {
		return b.do(Edit{ID: id, Set: task.Values{{Name: "x", Value: worst(n)}}, Actor: worst(1 << 20)})[0].err
	}
	if err := edit(task.MaxBytes - 1); err != nil {
		t.Error(err)
	}
	if err := edit(task.MaxBytes); !errors.Is(err, ErrTooLarge) {
		t.Errorf("one byte more: %v", err)
	}
	if err := b.do(Edit{ID: id, Unset: []string{worst(1 << 20)}})[0].err; err == nil || len(err.Error()) > 1000 {
		t.Errorf("an absurd name: %d bytes", len(err.Error()))
	}
	b.do(Cancel{Selection: view.Selection{IDs: []string{id}}})
	b.do(Drop{Selection: view.Selection{IDs: []string{id}}, Actor: worst(1 << 20), Reason: worst(1 << 20)})
	if b.m.find(id) != 0 {
		t.Error("it is still there")
	}
	b.m.stopping = true
	if err := edit(1); !errors.Is(err, ErrStopping) {
		t.Errorf("while the controller stops: %v", err)
	}
	b.m.stopping = false
	b.restart()
}

// A journal that edits or drops what it must not is refused, as is an image
// whose work is no hash.
func TestBadEditsAreRefused(t *testing.T) {
	for _, last := range []string{
		"task.edit task=nobody", "task.drop task=nobody", "task.drop task=one", "task.edit task=two", "task.drop task=two",
	} {
		s := newState()
		entries := []string{
			"start epoch=1", "exec.register exec=e", "task.submit task=one type=t state=queued",
			"task.submit task=two type=t state=queued", "task.start task=two v=1.1 exec=e attempt=1", last,
		}
		for n, entry := range entries {
			err := foldText(s, uint64(n+1), someTime+" "+entry)
			if (err != nil) != (n == len(entries)-1) {
				t.Errorf("%s: %v", entry, err)
			}
		}
	}
	l := loading{state: newState()}
	l.nums, l.stamps, l.tail = 9, 9, 9
	if err := loadText(&l, "task task=a type=t num=1 work=abc state=queued stamp=1 order=1"); err == nil {
		t.Error("a work that is no hash is taken")
	}
}
