package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// memory is a Store, Source and Images in memory.
type memory struct {
	mu      sync.Mutex
	entries []string
	images  []*memoryImage
	fail    error // of the next Append
	full    bool
	appends int
	slow    time.Duration // what the next Append takes
	broken  error         // of images
	drag    time.Duration // what a line of an image takes
	failAt  int           // entries at which Append fails; 0: never
}

type memoryImage struct {
	m       *memory
	seq     uint64
	lines   []string
	content []byte
}

func (s *memory) Append(_ time.Time, entries [][]byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	if s.failAt != 0 && len(s.entries) >= s.failAt {
		return errors.New("input/output error")
	}
	s.appends++
	time.Sleep(s.slow)
	s.slow = 0
	for _, e := range entries {
		s.entries = append(s.entries, string(e))
	}
	return nil
}

func (s *memory) Last() uint64 { return uint64(len(s.entries)) }
func (s *memory) Full() bool   { return s.full }

func (s *memory) NewImage(seq uint64) (ImageWriter, error) {
	if s.broken != nil {
		return nil, s.broken
	}
	return &memoryImage{m: s, seq: seq}, nil
}

func (i *memoryImage) Abort() error { return nil }

func (i *memoryImage) Line(b []byte) error {
	time.Sleep(i.m.drag)
	i.lines = append(i.lines, string(b))
	return nil
}

func (i *memoryImage) Commit(content []byte) error {
	i.m.mu.Lock()
	defer i.m.mu.Unlock()
	i.content = append([]byte(nil), content...)
	i.m.images = append(i.m.images, i)
	return nil
}

func (s *memory) ReadImage(load func(uint64, []byte) error, line func([]byte) error) (bool, error) {
	if len(s.images) == 0 {
		return false, nil
	}
	i := s.images[len(s.images)-1]
	if err := load(i.seq, i.content); err != nil {
		return false, err
	}
	for _, l := range i.lines {
		if err := line([]byte(l)); err != nil {
			return false, err
		}
	}
	return true, nil
}

func (s *memory) Read(from uint64, fn func(uint64, []byte) error) error {
	for n := from; n <= uint64(len(s.entries)); n++ {
		if err := fn(n, []byte(s.entries[n-1])); err != nil {
			return err
		}
	}
	return nil
}

// rig is an engine at work in a synctest bubble.
type rig struct {
	*testing.T
	*Engine
	store *memory
	stop  func() error
}

func newRig(t *testing.T, store *memory, change func(*Settings)) *rig {
	t.Helper()
	set := DefaultSettings()
	if change != nil {
		change(&set)
	}
	e, err := New(Options{Store: store, Images: store, Source: store, Settings: set})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	<-e.Booted()
	return &rig{T: t, Engine: e, store: store, stop: func() error { cancel(); return <-ended }}
}

func ask[A any](r *rig, c Command) A {
	r.Helper()
	a, err := r.Do(context.Background(), c)
	if err != nil {
		r.Fatalf("%T: %v", c, err)
	}
	return a.(A)
}

func (r *rig) submit(spec task.Spec) string {
	r.Helper()
	spec.Retries = task.Unset
	return ask[[]view.Submitted](r, Submit{Specs: []task.Spec{spec}})[0].ID
}

func (r *rig) state(id string) string {
	r.Helper()
	return ask[*view.Detail](r, GetTask{ID: id}).State
}

// wireLink is a connection in a bubble: a channel of what was sent.
type wireLink struct {
	mu    sync.Mutex
	sent  chan any
	heard time.Time
}

func newLink() *wireLink { return &wireLink{sent: make(chan any, 1000), heard: time.Now()} }

func (l *wireLink) Order(o Order) { l.sent <- o }
func (l *wireLink) Answer(_ uint64, a Answer, err error) {
	if err != nil {
		l.sent <- err
		return
	}
	l.sent <- a
}
func (l *wireLink) Flush() {}
func (l *wireLink) Heard() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.heard
}
func (l *wireLink) beat() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = time.Now()
}

// beating keeps a link alive until stop is called.
func (l *wireLink) beating() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for ctx.Err() == nil {
			l.beat()
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Second):
			}
		}
	}()
	return cancel
}

func receive[T any](t *testing.T, l *wireLink) T {
	t.Helper()
	for {
		select {
		case v := <-l.sent:
			if v, ok := v.(T); ok {
				return v
			}
		case <-time.After(time.Hour):
			var want T
			t.Fatalf("no %T came within an hour", want)
		}
	}
}

func (r *rig) register(l *wireLink, c Register) Registered {
	r.Helper()
	r.Post([]Ask{{Command: c, Link: l}})
	return receive[Registered](r.T, l)
}

func TestLoopEndToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memory{}
		r := newRig(t, store, nil)
		l := newLink()
		r.register(l, Register{Exec: "e1", Types: []string{"add"}, Proto: 2, Instance: "i"})
		id := r.submit(task.Spec{Type: "add", Inputs: task.Values{{Name: "x", Value: "1"}}})
		a := receive[Assign](t, l)
		if a.Task != id || a.Version != task.MakeVersion(1, 1) || a.Attempt != 1 {
			t.Fatalf("assigned %+v", a)
		}
		r.Post([]Ask{{Command: Result{Exec: "e1", Outcome: task.Outcome{
			Task: id, Version: a.Version, Status: task.Success, Outputs: task.Values{{Name: "sum", Value: "2"}},
			Changes: []task.Change{{Op: task.Add, Key: "n", Value: "2"}},
		}}, Link: l}})
		if v := receive[Applied](t, l); v.Verdict != Accepted {
			t.Fatalf("result: %+v", v)
		}
		d := ask[*view.Detail](r, GetTask{ID: id})
		if d.State != "succeeded" || len(d.Outputs) != 1 || d.Outputs[0].Value != "2" || len(d.Attempts) != 1 {
			t.Errorf("task: %+v", d)
		}
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		if len(store.images) == 0 {
			t.Error("no image taken at the stop")
		}

		r = newRig(t, store, nil)
		if got := ask[*view.KeyPage](r, GetState{}); len(got.Keys) != 2 || got.Keys[0].Value != "2" {
			t.Errorf("state after restart: %+v", got)
		}
		if s := ask[*view.Status](r, GetStatus{}); s.Epoch != 2 || s.Tasks["succeeded"] != 1 {
			t.Errorf("status after restart: %+v", s)
		}
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		if v, err := Verify(store, 1, nil); err != nil || !v.Whole || v.Images == 0 {
			t.Errorf("verify: %+v, %v", v, err)
		}
	})
}

func TestJournalFailureEndsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memory{}
		r := newRig(t, store, nil)
		disk := errors.New("input/output error")
		store.mu.Lock()
		store.fail = disk
		store.mu.Unlock()
		if a, err := r.Do(context.Background(), Submit{Specs: []task.Spec{{Type: "a"}}}); !errors.Is(err, ErrStopping) {
			t.Errorf("submit was answered %v, %v though nothing is on disk", a, err)
		}
		if err := r.stop(); !errors.Is(err, ErrJournal) || !errors.Is(err, disk) {
			t.Errorf("Run ended with %v", err)
		}
	})
}

func TestDiskFullRefusesNewWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memory{}
		r := newRig(t, store, nil)
		id := r.submit(task.Spec{Type: "a"})
		store.full = true
		_, err := r.Do(context.Background(), Submit{Specs: []task.Spec{{Type: "a"}}})
		if !errors.Is(err, ErrDiskFull) {
			t.Errorf("submit on a full disk: %v", err)
		}
		ask[*view.Changed](r, Cancel{Selection: view.Selection{IDs: []string{id}}})
		store.full = false
		r.submit(task.Spec{Type: "a"})
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
}

// One write to disk serves everything that waits.
func TestGroupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memory{}
		r := newRig(t, store, nil)
		before := store.appends
		l := newLink()
		var asks []Ask
		for n := range 500 {
			asks = append(asks, Ask{Command: Submit{Specs: []task.Spec{{Type: "a", ID: fmt.Sprint("x", n)}}}, Link: l})
		}
		r.Post(asks)
		for range asks {
			receive[[]view.Submitted](t, l)
		}
		if n := store.appends - before; n > 3 {
			t.Errorf("%d writes for 500 submissions that waited together", n)
		}
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestSealAfterQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memory{}
		r := newRig(t, store, nil)
		r.submit(task.Spec{Type: "a"})
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		seals := 0
		for _, e := range store.entries {
			if event, err := Describe(1, e); err != nil {
				t.Error(err)
			} else if event.Kind == "seal" {
				seals++
			}
		}
		if seals != 1 {
			t.Errorf("%d seals after one burst and a long quiet", seals)
		}
	})
}

// A state that is not that of the journal's end is no state to go on from.
func TestNewChecksTheEnd(t *testing.T) {
	store := &memory{}
	bubble(t, store, nil, func(r *rig) { r.submit(task.Spec{Type: "a"}) })
	if _, err := New(Options{Store: store}); !errors.Is(err, ErrJournal) {
		t.Errorf("started from nothing on a journal of %d: %v", store.Last(), err)
	}
	if _, err := New(Options{Store: store, Source: store}); err != nil {
		t.Error(err)
	}
	if _, err := New(Options{}); err == nil {
		t.Error("started without a store")
	}
	short := &memory{entries: store.entries[:len(store.entries)-1], images: store.images}
	if _, err := New(Options{Store: short, Source: short}); !errors.Is(err, ErrJournal) {
		t.Errorf("started from an image ahead of its journal: %v", err)
	}
}
