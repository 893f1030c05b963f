package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// bubble runs a test with an engine in virtual time, and stops the engine.
func bubble(t *testing.T, store *memory, change func(*Settings), do func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, store, change)
		do(r)
		if err := r.stop(); err != nil {
			t.Error(err)
		}
		if _, err := recoverState(store, nil); err != nil {
			t.Error(err)
		}
	})
}

// exec is what the executors page says of one.
func (r *rig) exec(id string) view.Executor {
	r.Helper()
	for _, e := range ask[[]view.Executor](r, GetExecutors{}) {
		if e.ID == id {
			return e
		}
	}
	r.Fatalf("no executor %s", id)
	return view.Executor{}
}

func e1(types ...string) Register {
	return Register{Exec: "e1", Types: types, Proto: 2, Instance: "i"}
}

// Two beats missed and 30 s passed: offline. One beat missed: late. Any frame is
// life again.
func TestSilence(t *testing.T) {
	bubble(t, &memory{}, nil, func(r *rig) {
		l := newLink()
		r.register(l, e1("a"))
		time.Sleep(14 * time.Second)
		if e := r.exec("e1"); e.Late || e.State != "idle" {
			r.Errorf("after 14 s: %+v", e)
		}
		time.Sleep(2 * time.Second)
		if e := r.exec("e1"); !e.Late || e.State != "idle" {
			r.Errorf("after 16 s: %+v", e)
		}
		l.beat()
		time.Sleep(29 * time.Second)
		if e := r.exec("e1"); e.State != "idle" {
			r.Errorf("29 s after a beat: %+v", e)
		}
		time.Sleep(2 * time.Second)
		if e := r.exec("e1"); e.State != "offline" || e.Reason != "nothing heard for 30s" {
			r.Errorf("31 s after a beat: %+v", e)
		}
		receive[Dismiss](r.T, l)
	})
}

// A longer beat than the time-out allows: two of them have to be missed.
func TestSilenceOfSlowBeats(t *testing.T) {
	bubble(t, &memory{}, func(s *Settings) { s.Heartbeat = 40 * time.Second }, func(r *rig) {
		l := newLink()
		r.register(l, e1("a"))
		time.Sleep(79 * time.Second)
		if e := r.exec("e1"); e.State != "idle" {
			r.Errorf("after 79 s: %+v", e)
		}
		time.Sleep(2 * time.Second)
		if e := r.exec("e1"); e.State != "offline" {
			r.Errorf("after 81 s: %+v", e)
		}
	})
}

// A disk that takes 40 s proves nothing about executors that could not be heard.
func TestOversleptTurn(t *testing.T) {
	store := &memory{}
	bubble(t, store, nil, func(r *rig) {
		l, gone := newLink(), newLink()
		r.register(l, e1("a"))
		r.register(gone, Register{Exec: "e2", Types: []string{"b"}, Proto: 2, Instance: "j"})
		r.Post([]Ask{{Command: Disconnected{Exec: "e2"}, Link: gone}})
		synctest.Wait()
		store.mu.Lock()
		store.slow = 40 * time.Second
		store.mu.Unlock()
		r.submit(task.Spec{Type: "c"})
		time.Sleep(time.Second)
		if e := r.exec("e1"); e.State != "idle" {
			r.Errorf("after a turn of 40 s: %+v", e)
		}
		if e := r.exec("e2"); e.State != "registering" {
			r.Errorf("whose connection was lost, after a turn of 40 s: %+v", e)
		}
		time.Sleep(31 * time.Second)
		if a, b := r.exec("e1"), r.exec("e2"); a.State != "offline" || b.State != "offline" {
			r.Errorf("another 31 s later: %+v, %+v", a, b)
		}
	})
}

func TestReconnectGrace(t *testing.T) {
	bubble(t, &memory{}, nil, func(r *rig) {
		l := newLink()
		r.register(l, e1("a"))
		id := r.submit(task.Spec{Type: "a"})
		a := receive[Assign](r.T, l)
		r.Post([]Ask{{Command: Disconnected{Exec: "e1"}, Link: l}})
		time.Sleep(4 * time.Second)
		if s := r.state(id); s != "assigned" {
			r.Errorf("within the grace: %s", s)
		}
		again := newLink()
		c := e1("a")
		c.Running = []Held{{id, a.Version, PhaseRunning}}
		if reg := r.register(again, c); len(reg.Kept) != 1 {
			r.Errorf("came back: %+v", reg)
		}
		r.Post([]Ask{{Command: Disconnected{Exec: "e1"}, Link: again}})
		time.Sleep(6 * time.Second)
		if s := r.state(id); s != "queued" {
			r.Errorf("after the grace: %s", s)
		}
	})
}

func TestHold(t *testing.T) {
	bubble(t, &memory{}, nil, func(r *rig) {
		l := newLink()
		r.register(l, Register{Exec: "p", Types: []string{"a"}, Proto: 1})
		start := time.Now()
		r.Post([]Ask{{Command: Ready{Exec: "p"}, Link: l}})
		receive[Beat](r.T, l)
		if took := time.Since(start); took != 2*time.Second {
			r.Errorf("a heartbeat was held %s", took)
		}
		r.Post([]Ask{{Command: Ready{Exec: "p"}, Link: l}})
		time.Sleep(time.Second)
		start = time.Now()
		r.submit(task.Spec{Type: "a"})
		receive[Assign](r.T, l)
		if took := time.Since(start); took != 0 {
			r.Errorf("a task waited %s though a heartbeat was held", took)
		}
	})
}

func TestAttemptDeadline(t *testing.T) {
	bubble(t, &memory{}, nil, func(r *rig) {
		l := newLink()
		defer l.beating()()
		u := task.Unit{Name: "a", Prepare: time.Minute, Timeout: time.Minute, Cleanup: time.Minute, Idempotent: true}
		c := e1("a")
		c.Units = []task.Unit{u}
		r.register(l, c)
		id := r.submit(task.Spec{Type: "a", Timeout: 2 * time.Minute})
		a := receive[Assign](r.T, l)
		start := time.Now()
		time.Sleep(30 * time.Second)
		r.Post([]Ask{{Command: Progress{Exec: "e1", Task: id, Version: a.Version, Start: true}, Link: l}})
		if v := receive[Revoke](r.T, l); v.Task != id || v.Version != a.Version {
			r.Errorf("revoked: %+v", v)
		}
		// It started after 30 s; then prepare, its own time-out, cleanup, and 15 s.
		if took := time.Since(start); took != 30*time.Second+4*time.Minute+15*time.Second {
			r.Errorf("fenced after %s", took)
		}
		if s := r.state(id); s != "dead" { // the unit has no retries
			r.Errorf("after its deadline: %s", s)
		}
		r.Post([]Ask{{Command: Result{Exec: "e1", Outcome: task.Outcome{Task: id, Version: a.Version, Status: task.Success}}, Link: l}})
		if v := receive[Applied](r.T, l); v.Verdict != Stale || v.Reason != "dead" {
			r.Errorf("its late result: %+v", v)
		}
	})
}

// Images are taken while turns go on; each is the state at its position.
func TestImagesWhileTurnsGoOn(t *testing.T) {
	store := &memory{}
	bubble(t, store, nil, func(r *rig) {
		l := newLink()
		defer l.beating()()
		r.register(l, e1("a"))
		// 6 MiB of journal, and far more than 100 state changes.
		big := task.Values{{Name: "x", Value: strings.Repeat("y", 4000)}}
		for n := range 1500 {
			id := r.submit(task.Spec{Type: "a", Inputs: big})
			a := receive[Assign](r.T, l)
			r.Post([]Ask{{Command: Result{Exec: "e1", Outcome: task.Outcome{
				Task: id, Version: a.Version, Status: task.Success, Changes: []task.Change{{Op: task.Set, Key: "n", Value: fmt.Sprint(n)}},
			}}, Link: l}})
			receive[Applied](r.T, l)
		}
		synctest.Wait()
	})
	if len(store.images) < 3 {
		t.Fatalf("%d images of a journal of 6 MiB", len(store.images))
	}
	taken := store.images
	for n := range taken {
		store.images = taken[:n+1] // as if this was the newest
		if _, err := recoverState(store, nil); err != nil {
			t.Errorf("image %d of seq %d: %v", n, taken[n].seq, err)
		}
	}
	if v, err := Verify(store, 1, nil); err != nil || v.Images < len(taken)-1 {
		t.Errorf("verify: %+v, %v", v, err)
	}
}

// Images that cannot be written harm nothing.
func TestImagesFail(t *testing.T) {
	store := &memory{broken: errors.New("read-only file system")}
	bubble(t, store, nil, func(r *rig) {
		for range 40 {
			r.submit(task.Spec{Type: "a", Inputs: task.Values{{Name: "x", Value: strings.Repeat("y", 100_000)}}})
		}
		time.Sleep(time.Minute)
	})
	if len(store.images) != 0 {
		t.Error("an image was taken all the same")
	}
}

// The journal fails while an image is being written: Run ends, and the image's
// writer with it (a goroutine left over fails the bubble).
func TestJournalFailsWhileImaging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memory{drag: time.Minute}
		r := newRig(t, store, nil)
		small := Submit{Specs: slices.Repeat([]task.Spec{{Type: "a"}}, maxBulk)}
		ask[[]view.Submitted](r, small) // an image of several chunks
		time.Sleep(imageEvery)          // and one that is due
		store.mu.Lock()
		store.failAt = len(store.entries) + 60
		store.mu.Unlock()
		var asks []Ask
		l := newLink()
		for range 40 {
			asks = append(asks, Ask{Command: Submit{Specs: []task.Spec{{Type: "a", Inputs: task.Values{{Name: "x", Value: strings.Repeat("y", 100_000)}}}}}, Link: l})
		}
		for range 5 {
			r.Post(asks)
		}
		<-r.Done()
		if err := r.stop(); !errors.Is(err, ErrJournal) {
			t.Errorf("Run ended with %v, %d of %d entries", err, len(store.entries), store.failAt)
		}
	})
}

// Stop: what was asked is decided, executors are told last, nothing is taken any more.
func TestStopInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memory{}
		r := newRig(t, store, nil)
		l := newLink()
		r.register(l, e1("a"))
		id := r.submit(task.Spec{Type: "a"})
		a := receive[Assign](t, l)
		store.mu.Lock() // the loop is held up in its next append
		r.Post([]Ask{{Command: Submit{Specs: []task.Spec{{Type: "b"}}}, Link: newLink()}})
		r.Post([]Ask{{Command: Result{Exec: "e1", Outcome: task.Outcome{Task: id, Version: a.Version, Status: task.Success}}, Link: l}})
		ended := make(chan error)
		go func() { ended <- r.stop() }()
		store.mu.Unlock()
		if v := receive[Applied](t, l); v.Verdict != Accepted {
			t.Errorf("a result that was under way: %+v", v)
		}
		if d := receive[Dismiss](t, l); d.Reason != "controller is stopping" {
			t.Errorf("told: %+v", d)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if _, err := r.Do(context.Background(), GetStatus{}); !errors.Is(err, ErrStopping) {
			t.Errorf("asked after the end: %v", err)
		}
		r.Post([]Ask{{Command: GetStatus{}, Link: l}}) // returns though nobody takes it
		if s, err := recoverState(store, nil); err != nil || s.states[task.Succeeded].len != 1 {
			t.Errorf("after the stop: %v", err)
		}
	})
}

// durableLink fails the test when something is told before it is on disk.
type durableLink struct {
	*wireLink
	t     *testing.T
	store *memory
}

func (l *durableLink) has(words string) {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	for n := len(l.store.entries) - 1; n >= 0; n-- {
		if strings.Contains(l.store.entries[n], words) {
			return
		}
	}
	l.t.Errorf("told before it was on disk: %s", words)
}

func (l *durableLink) Order(o Order) {
	if a, ok := o.(Assign); ok {
		l.has(fmt.Sprintf("task.start task=%s v=%s ", a.Task, a.Version))
	}
	l.wireLink.Order(o)
}

func (l *durableLink) Answer(ref uint64, a Answer, err error) {
	switch a := a.(type) {
	case []view.Submitted:
		l.has("task.submit task=" + a[0].ID + " ")
	case Registered:
		l.has("exec.register exec=e1 ")
	case Applied:
		l.has("task.result task=")
	case view.Key:
		l.has("state.repair key=" + a.Key + " ")
	}
	l.wireLink.Answer(ref, a, err)
}

func TestNothingIsToldBeforeItIsOnDisk(t *testing.T) {
	store := &memory{}
	bubble(t, store, nil, func(r *rig) {
		l := &durableLink{newLink(), r.T, store}
		id := "x1"
		r.Post([]Ask{{Command: e1("a"), Link: l}, {Command: Submit{Specs: []task.Spec{{Type: "a", ID: id}}}, Link: l}})
		a := receive[Assign](r.T, l.wireLink)
		r.Post([]Ask{
			{Command: Result{Exec: "e1", Outcome: task.Outcome{Task: id, Version: a.Version, Status: task.Success}}, Link: l},
			{Command: Repair{Key: "k", Value: "1", Reason: "x"}, Link: l},
		})
		receive[view.Key](r.T, l.wireLink)
	})
}

// A loop that is behind takes no more than a turn can hold; whoever asks waits.
func TestBacklogIsBounded(t *testing.T) {
	e := &Engine{asks: make(chan []Ask, 1)}
	if e.incoming() == nil {
		t.Error("an idle loop takes nothing")
	}
	e.pending = make([]Ask, turnRecords)
	e.asks <- nil
	if e.takeMore(); e.incoming() != nil || len(e.asks) != 1 {
		t.Error("a loop that is behind takes more")
	}
}
