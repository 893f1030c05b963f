package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// What the journal takes: snapshot's limits, which its tests hold.
const (
	journalLine  = 1<<20 - 200 // with room for what frames it
	journalBatch = 2 << 20
	journalLines = 4096
)

// bounded is a script's machine whose batches are held against the journal's limits.
type bounded struct {
	*script
	answers []told
}

func newBounded(t *testing.T, change func(*Settings)) *bounded {
	b := &bounded{script: newScript(t)}
	if change != nil {
		change(&b.set)
	}
	b.start(newState())
	return b
}

// Link: what is answered is kept.
func (b *bounded) Order(Order)      {}
func (b *bounded) Flush()           {}
func (b *bounded) Heard() time.Time { return time.Unix(0, b.now.mono) }
func (b *bounded) Answer(_ uint64, a Answer, err error) {
	b.answers = append(b.answers, told{a, err})
}

// do decides commands in one turn and gives their answers.
func (b *bounded) do(commands ...Command) []told {
	b.t.Helper()
	b.answers = nil
	from := len(b.journal)
	b.turn(func() {
		for _, c := range commands {
			if !b.m.room() {
				b.t.Fatal("the turn has no room for the next command")
			}
			b.m.decide(Ask{Command: c, Link: b})
		}
	})
	size := 0
	for _, entry := range b.journal[from:] {
		if size += len(entry) + 100; len(entry) > journalLine {
			b.t.Errorf("a line of %d bytes: %.80s", len(entry), entry)
		}
	}
	if size > journalBatch || len(b.journal)-from > journalLines {
		b.t.Errorf("a batch of %d bytes, %d lines", size, len(b.journal)-from)
	}
	return b.answers
}

// worst is the text that takes most room in the journal for its bytes.
func worst(n int) string { return strings.Repeat("\x01", n) }

func (b *bounded) register(types ...string) {
	b.t.Helper()
	if a := b.do(Register{Exec: "e1", Types: types, Proto: 2, Instance: "i"}); a[0].err != nil {
		b.t.Fatal(a[0].err)
	}
}

// one submits a task of type a and gives back its dispatch.
func (b *bounded) one() (id string, v task.Version) {
	b.t.Helper()
	a := b.do(Submit{Specs: []task.Spec{{Type: "a"}}})
	id = a[0].answer.([]view.Submitted)[0].ID
	return id, b.m.at(b.m.find(id)).version
}

// No text of an executor or a person can make a line that the journal refuses:
// that would end the controller.
func TestTextsAreBounded(t *testing.T) {
	b := newBounded(t, nil)
	b.register("a")
	id, v := b.one()
	long := worst(1 << 20)
	b.do(Result{Exec: "e1", Outcome: task.Outcome{Task: id, Version: v, Error: long, Signal: long}})
	if p, ok := b.m.lastFailure(b.m.find(id)); !ok || len(p.Error) < 1000 {
		t.Errorf("the error's beginning is not kept: %.50q", p.Error)
	}
	id, v = b.one()
	b.do(Result{Exec: "e1", Outcome: task.Outcome{Task: id, Version: v}, Raw: errors.New(long)})
	id, _ = b.one()
	b.do(Progress{Exec: "e1", Task: id, Version: 1, Message: long})
	b.do(Cancel{Selection: view.Selection{IDs: []string{id}}, Actor: long, Reason: long})
	b.do(Requeue{Selection: view.Selection{IDs: []string{id}}, Actor: long})
	b.do(Result{Exec: "e1", Outcome: task.Outcome{Task: long, Version: 3, Status: task.Success, Outputs: task.Values{{Name: "a", Value: long}}}})
	b.do(Repair{Key: "k", Value: worst(100_000), Reason: worst(20_000), Actor: long})
	if a := b.do(Repair{Key: "k", Value: long, Reason: "x"}); !errors.Is(a[0].err, ErrTooLarge) {
		t.Errorf("a state key of a megabyte: %v", a[0].err)
	}
	b.do(Offline{Exec: "e1", Reason: long})
	b.register("a")
	b.one()
	b.do(Disconnected{Exec: "e1", Reason: long})
	b.move(time.Minute)
	b.do()
	b.restart()
}

func TestWhatAnExecutorPresentsIsBounded(t *testing.T) {
	b := newBounded(t, nil)
	unit := func(name, description string) task.Unit {
		u := task.Unit{Name: name, In: []task.Rule{{Name: "x", Description: description}}}
		if err := u.ReadyRules(); err != nil {
			t.Fatal(err)
		}
		return u
	}
	var types []string
	var units []task.Unit
	for n := range maxOffered {
		types = append(types, fmt.Sprint("t", n))
		units = append(units, unit(types[n], worst(150)))
	}
	if a := b.do(Register{Exec: "all", Types: types, Units: units, Proto: 2}); a[0].err != nil {
		t.Errorf("as many as may be: %v", a[0].err)
	}
	for name, c := range map[string]Register{
		"too many types":      {Types: append(types, "more")},
		"contracts too large": {Types: []string{"a"}, Units: []task.Unit{unit("a", worst(200_000))}},
		"a contract's name":   {Types: []string{"a"}, Units: []task.Unit{{Name: "a b"}}},
		"a long build":        {Build: worst(1000)},
		"a long host":         {Host: worst(1000)},
		"a long instance":     {Instance: worst(1000)},
		"too many tasks":      {Running: make([]Held, maxPresented+1)},
		"a type that is none": {Types: []string{"a b"}},
	} {
		c.Exec, c.Proto = "e9", 2
		if a := b.do(c); a[0].err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	for _, id := range []string{"", worst(3), strings.Repeat("x", 129), "\u202e"} {
		if a := b.do(Register{Exec: id, Proto: 2}); !errors.Is(a[0].err, ErrInvalid) {
			t.Errorf("executor %q: %v", id, a[0].err)
		}
	}
	// Within the bytes of a register, but over those of one contract.
	a := b.do(Register{Exec: "e1", Types: []string{"big"}, Units: []task.Unit{unit("big", strings.Repeat("x", 200_000))}, Proto: 2})
	if a[0].err != nil || len(a[0].answer.(Registered).Refused) != 1 {
		t.Errorf("a contract of 200 KB: %+v", a[0])
	}
	// A contract that does not read back is refused, and harms nobody.
	a = b.do(Types{Exec: "e1", Units: []task.Unit{{Name: "odd", Context: []string{"a\nb"}}}})
	if a[0].err != nil || len(a[0].answer.(Registered).Refused) != 1 {
		t.Errorf("a contract with a line in a key: %+v", a[0])
	}
	b.restart()
}

func TestResultsAreBounded(t *testing.T) {
	b := newBounded(t, func(s *Settings) {
		for n := range 8 { // eight keys that all keep the same output
			s.Keys = append(s.Keys, KeyRule{Rule: task.Rule{Name: fmt.Sprint("k", n)}, From: "text"})
		}
	})
	b.register("a")
	result := func(outputs task.Values, changes ...task.Change) told {
		id, v := b.one()
		return b.do(Result{Exec: "e1", Outcome: task.Outcome{Task: id, Version: v, Status: task.Success, Outputs: outputs, Changes: changes}})[0]
	}
	if a := result(task.Values{{Name: "text", Value: worst(1000)}}); a.answer.(Applied).Verdict != Accepted {
		t.Errorf("a small one: %+v", a)
	}
	if a := result(task.Values{{Name: "text", Value: worst(100_000)}}); a.answer.(Applied).Verdict != Rejected {
		t.Errorf("800 KB of state out of 100 KB of output: %+v", a)
	}
	if a := result(task.Values{{Name: "other", Value: worst(task.MaxBytes - 5)}}); a.answer.(Applied).Verdict != Accepted {
		t.Errorf("as much as may be: %+v", a)
	}
	for name, a := range map[string]told{
		"outputs":         result(task.Values{{Name: "other", Value: worst(task.MaxBytes - 4)}}),
		"changes":         result(nil, task.Change{Key: "a", Value: worst(70_000)}, task.Change{Key: "b", Value: worst(70_000)}),
		"a name twice":    result(task.Values{{Name: "x"}, {Name: "x"}}),
		"a name's length": result(task.Values{{Name: strings.Repeat("x", 129)}}),
	} {
		if a.answer.(Applied).Verdict != Rejected {
			t.Errorf("%s: %+v", name, a)
		}
	}
	b.restart()
}

// A context that no message could carry ends the task, and says why.
func TestContextIsBounded(t *testing.T) {
	b := newBounded(t, nil)
	u := task.Unit{Name: "a", Context: []string{"k1", "k2"}, Idempotent: true}
	b.do(Register{Exec: "e1", Types: []string{"a"}, Units: []task.Unit{u}, Proto: 2})
	for _, key := range u.Context {
		b.do(Repair{Key: key, Value: worst(70_000), Reason: "x"})
	}
	id, _ := b.one()
	d, err := b.m.detail(id)
	if err != nil || d.State != "dead" || d.ErrorClass != "too_large" || !strings.Contains(d.Error, "140004 bytes") {
		t.Errorf("%+v, %v", d, err)
	}
	b.do(Repair{Key: "k1", Value: worst(10), Reason: "x"})
	b.do(Requeue{Selection: view.Selection{IDs: []string{id}}})
	if d, _ := b.m.detail(id); d.State != "assigned" {
		t.Errorf("requeued: %+v", d)
	}
	b.restart()
}

func TestSubmissionsAreBounded(t *testing.T) {
	b := newBounded(t, nil)
	spec := func(n int) task.Spec {
		return task.Spec{Type: "a", Inputs: task.Values{{Name: "x", Value: worst(n)}}}
	}
	if a := b.do(Submit{Specs: []task.Spec{spec(task.MaxBytes - 1), spec(task.MaxBytes - 1)}}); a[0].err != nil {
		t.Errorf("two as large as may be: %v", a[0].err)
	}
	if a := b.do(Submit{Specs: []task.Spec{spec(100_000), spec(100_000), spec(100_000), spec(100_000)}}); !errors.Is(a[0].err, ErrTooLarge) {
		t.Errorf("more than a batch: %v", a[0].err)
	}
	for _, at := range []time.Time{time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(1815, 1, 1, 0, 0, 0, 0, time.UTC)} {
		for _, s := range []task.Spec{{Type: "a", NotBefore: at}, {Type: "a", Deadline: at}} {
			if a := b.do(Submit{Specs: []task.Spec{s}}); !errors.Is(a[0].err, ErrInvalid) {
				t.Errorf("%+v: %v", s, a[0].err)
			}
		}
	}
	// A filled default counts as an input's bytes do.
	u := task.Unit{Name: "u", In: []task.Rule{{Name: "x"}, {Name: "y", HasDefault: true, Default: worst(50_000)}}}
	b.do(Register{Exec: "e1", Types: []string{"u"}, Units: []task.Unit{u}, Proto: 2})
	s := spec(100_000)
	if s.Type = "u"; !errors.Is(b.do(Submit{Specs: []task.Spec{s}})[0].err, ErrTooLarge) {
		t.Error("150 KB of inputs are taken, 50 of them a default")
	}
	b.restart()
}

// Names that nobody knows any more leave memory: types, executors.
func TestNamesAreForgotten(t *testing.T) {
	b := newBounded(t, func(s *Settings) { s.RetainTasks = 0 })
	b.register("a")
	for n := range 3 * manyTypes {
		name := fmt.Sprint("typo", n)
		a := b.do(Submit{Specs: []task.Spec{{Type: name, ID: name}}})
		if a[0].err != nil {
			t.Fatal(a[0].err)
		}
		b.do(Cancel{Selection: view.Selection{IDs: []string{name}}})
		id := fmt.Sprint("x", n)
		b.do(Register{Exec: id, Proto: 2})
		b.do(Offline{Exec: id})
		b.now.raw += int64(10 * time.Second)
	}
	b.now.raw += int64(2 * execMemory)
	for range 300 {
		b.do()
	}
	if n := len(b.m.typeAt); n > manyTypes+300 {
		t.Errorf("%d types are known", n)
	}
	if n := len(b.m.execAt); n != 1 {
		t.Errorf("%d executors are known", n)
	}
	if q := b.m.queues(); len(q) != len(b.m.typeAt) {
		t.Errorf("%d queues of %d types", len(q), len(b.m.typeAt))
	}
	id, _ := b.one()
	if d, err := b.m.detail(id); err != nil || d.State != "assigned" || d.Type != "a" {
		t.Errorf("the type that is offered: %+v, %v", d, err)
	}
	b.restart()
}

// A failing task keeps the newest attempts only, and little of each.
func TestHistoryIsBounded(t *testing.T) {
	b := newBounded(t, func(s *Settings) { s.Retry.Retries, s.Retry.Interval = 1000, 0 })
	b.register("a")
	id := b.do(Submit{Specs: []task.Spec{{Type: "a", Retries: task.Unset}}})[0].answer.([]view.Submitted)[0].ID
	i := b.m.find(id)
	for n := range 60 {
		b.do(Result{Exec: "e1", Outcome: task.Outcome{Task: id, Version: b.m.at(i).version, Error: fmt.Sprint(n, worst(20_000))}})
		b.do()
	}
	past := b.m.historyOf(i)
	if len(past) != maxHistory || !strings.HasPrefix(past[maxHistory-1].Error, "59") || past[0].Attempt != 41 {
		t.Errorf("%d attempts are kept, the first %d", len(past), past[0].Attempt)
	}
	if n := b.m.texts.used; n > 300<<10 {
		t.Errorf("they take %d bytes", n)
	}
	reload(t, b.m.state)
	b.restart()
}

// An executor is judged by the beat it was told, though they have become fewer.
func TestBeatsOfMany(t *testing.T) {
	b := newBounded(t, nil)
	for n := range slowBeats {
		b.do(Register{Exec: fmt.Sprint("e", n), Proto: 2})
	}
	a := b.do(Register{Exec: "last", Proto: 2})
	if beat := a[0].answer.(Registered).Heartbeat; beat != 20*time.Second {
		t.Fatalf("the %d. executor beats every %s", slowBeats+1, beat)
	}
	last := b.m.execs[b.m.execAt["last"]]
	if got := b.m.lateAfter(last); got != 30*time.Second {
		t.Errorf("it is late after %s", got)
	}
	for n := range slowBeats { // they leave, and the beat is short again
		delete(b.m.execAt, fmt.Sprint("e", n))
	}
	if got := b.m.lateAfter(last); got != 30*time.Second || b.m.heartbeat() != 10*time.Second {
		t.Errorf("alone, it is late after %s", got)
	}
}

// States that are none select nothing, rather than everything.
func TestSelectionsAreChecked(t *testing.T) {
	b := newBounded(t, nil)
	b.one()
	for _, s := range []task.State{task.New, 40, 255} {
		q := view.Query{States: []task.State{s}}
		if a := b.do(Cancel{Selection: view.Selection{All: true, Query: q}}); !errors.Is(a[0].err, ErrInvalid) {
			t.Errorf("cancel of all that are %s: %+v", s, a[0])
		}
		if a := b.do(GetTasks{Query: q}); !errors.Is(a[0].err, ErrInvalid) {
			t.Errorf("page of all that are %s: %+v", s, a[0])
		}
	}
	ids := make([]string, 30_000)
	for n := range ids {
		ids[n] = fmt.Sprint("none", n)
	}
	if a := b.do(Cancel{Selection: view.Selection{IDs: ids}}); !errors.Is(a[0].err, ErrNotFound) {
		t.Errorf("cancel of many that are not there: %+v", a[0])
	}
}

// A bulk command looks again at the moment it changes a task, and survives that
// tasks are forgotten between its turns.
func TestBulkLooksAgain(t *testing.T) {
	b := newBounded(t, nil)
	specs := make([]task.Spec, maxBulk)
	for n := range specs {
		specs[n] = task.Spec{Type: "a", ID: fmt.Sprint("x", n)}
	}
	b.do(Submit{Specs: specs})
	for n := range specs {
		specs[n].ID = fmt.Sprint("y", n)
	}
	b.do(Submit{Specs: specs})
	// It collects; one of them is dispatched before it is looked at again.
	b.do(
		Cancel{Selection: view.Selection{All: true, Query: view.Query{States: []task.State{task.Queued}}}},
		Register{Exec: "e1", Types: []string{"a"}, Proto: 2},
	)
	for range 5 {
		b.do()
	}
	if n := b.m.states[task.Cancelled].len; n != 2*maxBulk-1 {
		t.Errorf("%d of %d are cancelled", n, 2*maxBulk)
	}
	if n := b.m.states[task.Assigned].len; n != 1 {
		t.Errorf("%d are out; what was dispatched meanwhile was not queued any more", n)
	}
	// Counting, while what was counted is forgotten.
	b.do(GetStatus{}, Cancel{Selection: view.Selection{All: true, Count: true}})
	b.m.set.RetainTasks = 0
	for range 5 {
		b.do()
	}
	b.restart()
}

// A bulk command that waits behind another begins at the oldest task, though
// that one was forgotten meanwhile.
func TestBulkWaits(t *testing.T) {
	b := newBounded(t, nil)
	b.register("a")
	id, v := b.one()
	b.do(Result{Exec: "e1", Outcome: task.Outcome{Task: id, Version: v, Status: task.Success}})
	id, _ = b.one()
	b.do(
		Cancel{Selection: view.Selection{All: true, Query: view.Query{Type: "none"}}},
		Cancel{Selection: view.Selection{All: true, Query: view.Query{Type: "a"}}},
	)
	b.m.set.RetainTasks = 0
	for range 5 {
		b.do()
	}
	if b.m.find(id) != 0 || b.m.states[task.Assigned].len != 0 {
		t.Error("the second command did not reach its task")
	}
}

// A missions folder that is all new, with as much in it as is taken, and all that
// was there before gone, fits a turn that has much else to record.
func TestMissionsFitATurn(t *testing.T) {
	folder := func(name string, missions, triggers, bytes int) (c SetMissions) {
		for n := range missions {
			var text strings.Builder
			fmt.Fprintf(&text, "name = '%s%d'\n[[units]]\nname = 'work'\n", name, n)
			for i := range triggers {
				fmt.Fprintf(&text, "[[triggers]]\nfile = '%s%04d'\n", strings.Repeat("=", bytes), i)
			}
			m := parsed(t, text.String())
			c.Missions = append(c.Missions, NamedMission{Name: m.Name, File: m.Name + ".toml", Mission: m})
		}
		return c
	}
	b := newBounded(t, nil)
	for _, tt := range []struct {
		name                      string
		missions, triggers, bytes int
		taken                     bool
	}{
		{"many", 500, 1, 1, true}, {"others", 500, 1, 1, true}, {"long", 10, 9, 1400, true}, {"few", 1, 1, 1, true},
		{"toomany", 501, 1, 1, false}, {"toolong", 11, 18, 8000, false},
	} {
		busy := Submit{}
		for range maxBulk {
			busy.Specs = append(busy.Specs, task.Spec{Type: "a", Retries: task.Unset})
		}
		told := b.do(busy, folder(tt.name, tt.missions, tt.triggers, tt.bytes))
		if err := told[1].err; (err == nil) != tt.taken || err != nil && !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
