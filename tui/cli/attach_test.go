package cli

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/tui"
	"apollo11/wire"
)

func newTestSource(t *testing.T, f *fake) *consoleSource {
	t.Helper()
	now := noon
	s := newConsoleSource(func(ctx context.Context, _ bool) (*wire.Client, error) {
		return wire.Dial(ctx, f.addr, wire.ClientOptions{Actor: "me@here"})
	}, func() time.Time { now = now.Add(time.Second); return now })
	t.Cleanup(s.close)
	return s
}

func TestConsoleReads(t *testing.T) {
	f := newFake(t)
	f.status = view.Status{Seq: 42, Debug: true, Executors: view.Counts{}, Tasks: view.Counts{}}
	f.executors = []view.Executor{{ID: "left", Done: 10}}
	f.queues = []view.Queue{{Type: "count", Queued: 3}}
	f.tasks = []view.Task{{ID: "t-1", State: "dead"}, {ID: "t-2", State: "queued"}}
	s, ctx := newTestSource(t, f), t.Context()
	o, err := s.Overview(ctx)
	if err != nil || o.Status.Seq != 42 || !o.Status.Debug || len(o.Executors) != 1 || len(o.Queues) != 1 || o.PerSecond != 0 {
		t.Fatalf("%+v, %v", o, err)
	}
	f.mu.Lock()
	f.executors[0].Done, f.executors[0].Failed = 13, 1
	f.mu.Unlock()
	if o, err = s.Overview(ctx); err != nil || o.PerSecond != 4 {
		t.Fatalf("%v a second, %v", o.PerSecond, err)
	}
	p, err := s.Tasks(ctx, view.Query{States: []task.State{task.Dead}, Limit: 10})
	if err != nil || len(p.Tasks) != 1 || p.Tasks[0].ID != "t-1" {
		t.Fatalf("%+v, %v", p, err)
	}
	if _, err := s.Task(ctx, "t-9"); !errors.Is(err, &wire.Error{Code: wire.CodeNotFound}) {
		t.Fatal(err)
	}
	if n := hellos(f); n != 1 {
		t.Errorf("%d connections", n)
	}
}

func hellos(f *fake) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, line := range f.asked {
		if strings.HasPrefix(line, "hello") {
			n++
		}
	}
	return n
}

func TestConsoleDoes(t *testing.T) {
	f := newFake(t)
	f.changed = view.Changed{Matched: 2, Changed: 1, Skipped: []string{"t-2: is queued"}}
	s := newTestSource(t, f)
	for _, c := range []struct {
		act   tui.Action
		asked string
	}{
		{tui.Action{Verb: tui.Requeue, Tasks: view.Selection{IDs: []string{"t-1", "t-2"}}}, "requeue ids=[t-1 t-2] all=false count=false states=[] type= error= reason="},
		{tui.Action{Verb: tui.Requeue, Tasks: view.Selection{All: true, Count: true, Query: view.Query{States: []task.State{task.Dead}, Error: "x"}}},
			"requeue ids=[] all=true count=true states=[dead] type= error=x reason="},
		{tui.Action{Verb: tui.Cancel, Tasks: view.Selection{IDs: []string{"t-1"}}, Reason: "why"}, "cancel ids=[t-1] all=false count=false states=[] type= error= reason=why"},
		{tui.Action{Verb: tui.Drop, Tasks: view.Selection{IDs: []string{"t-1"}}, Reason: "why"}, "drop ids=[t-1] all=false count=false states=[] type= error= reason=why"},
		{tui.Action{Verb: tui.Edit, Tasks: view.Selection{IDs: []string{"t-7"}}, Set: task.Values{{Name: "n", Value: "2"}}, Unset: []string{"url"}},
			"edit {ID:t-7 Set:[{Name:n Value:2}] Unset:[url]}"},
		{tui.Action{Verb: tui.Pause, Name: "count"}, `pause "count" true`},
		{tui.Action{Verb: tui.Continue}, `pause "" false`},
		{tui.Action{Verb: tui.Drain, Name: "left"}, "drain left"},
		{tui.Action{Verb: tui.DebugOn}, `debug "" true`},
		{tui.Action{Verb: tui.DebugOff}, `debug "" false`},
	} {
		n, err := s.Do(t.Context(), c.act)
		if err != nil {
			t.Fatal(err)
		}
		if bulk := len(c.act.Tasks.IDs) > 0 && c.act.Verb != tui.Edit || c.act.Tasks.All; bulk && !reflect.DeepEqual(*n, f.changed) {
			t.Errorf("%s: %+v", c.asked, n)
		}
		f.mu.Lock()
		if last := f.asked[len(f.asked)-1]; last != c.asked {
			t.Errorf("asked %q, want %q", last, c.asked)
		}
		f.mu.Unlock()
	}
	for _, a := range []tui.Action{{}, {Verb: tui.Edit}, {Verb: tui.Edit, Tasks: view.Selection{IDs: []string{"t-1", "t-2"}}}} {
		if _, err := s.Do(t.Context(), a); err == nil {
			t.Errorf("%+v: nothing was done, and no error", a)
		}
	}
}

func TestConsoleRuns(t *testing.T) {
	f := newFake(t)
	f.runs = []view.Run{{ID: "r-0002", Mission: "weather", State: "running", Units: 3}, {ID: "r-0001", Mission: "weather", State: "failed"}}
	f.missions = []view.Mission{{Name: "weather", Units: 3, Params: view.Object{{Name: "year", Value: "int"}}}}
	f.started = view.Run{ID: "r-0003", Mission: "weather", State: "running"}
	f.shown["r-0002"] = []view.RunDetail{{Run: f.runs[0], Notes: []string{"a note"}, Units: []view.RunUnit{{Unit: "a"}, {Unit: "b", Deps: "a"}, {Unit: "c"}}}}
	s, ctx := newTestSource(t, f), t.Context()
	p, err := s.Runs(ctx, view.RunQuery{State: "failed", Limit: 10})
	if err != nil || len(p.Runs) != 1 || p.Runs[0].ID != "r-0001" {
		t.Fatalf("%+v, %v", p, err)
	}
	d, err := s.Run(ctx, "r-0002", "")
	if err != nil || d.ID != "r-0002" || len(d.Units) != perShow || d.Cursor == "" || d.Units[1].Deps != "a" {
		t.Fatalf("%+v, %v", d, err)
	}
	if d, err = s.Run(ctx, "r-0002", d.Cursor); err != nil || len(d.Units) != 1 || d.Units[0].Unit != "c" {
		t.Fatalf("%+v, %v", d, err)
	}
	if list, err := s.Missions(ctx); err != nil || len(list) != 1 || list[0].Params[0].Value != "int" {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, c := range []struct {
		act        tui.Action
		asked, run string
	}{
		{tui.Action{Verb: tui.StartRun, Name: "weather", Set: task.Values{{Name: "year", Value: "2014"}}}, "run {Mission:weather File: Params:[{Name:year Value:2014}] Key: Sample:0 Check:false}", "r-0003"},
		{tui.Action{Verb: tui.ResumeRun, Name: "r-0001"}, "resume r-0001", "r-0003"},
		{tui.Action{Verb: tui.CancelRun, Name: "r-0002", Reason: "why"}, "cancelrun r-0002 why", "r-0002"},
	} {
		run, err := s.DoRun(ctx, c.act)
		if err != nil || run.ID != c.run {
			t.Fatalf("%s: %+v, %v", c.asked, run, err)
		}
		f.mu.Lock()
		if last := f.asked[len(f.asked)-1]; last != c.asked {
			t.Errorf("asked %q, want %q", last, c.asked)
		}
		f.mu.Unlock()
	}
	if _, err := s.DoRun(ctx, tui.Action{Verb: tui.Requeue, Name: "r-0001"}); err == nil {
		t.Error("nothing was done, and no error")
	}
	if _, err := s.DoRun(ctx, tui.Action{Verb: tui.CancelRun, Name: "r-9"}); !errors.Is(err, &wire.Error{Code: wire.CodeNotFound}) {
		t.Error(err)
	}
}

// What the console reads again and again is kept out of the log of every
// message; what it does is not.
func TestConsoleIsQuiet(t *testing.T) {
	f := newFake(t)
	f.status = view.Status{Executors: view.Counts{}, Tasks: view.Counts{}}
	var quiet []bool
	s := newConsoleSource(func(ctx context.Context, q bool) (*wire.Client, error) {
		quiet = append(quiet, q)
		return wire.Dial(ctx, f.addr, wire.ClientOptions{Quiet: q})
	}, func() time.Time { return noon })
	defer s.close()
	if _, err := s.Overview(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.explanation = view.Explanation{ID: "t-1"}
	if _, err := s.Explain(t.Context(), "t-1"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Do(t.Context(), tui.Action{Verb: tui.DebugOff}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(quiet, []bool{true, false}) {
		t.Errorf("dialled quiet %v", quiet)
	}
}

// A connection that breaks is made anew by the next question, a refusal keeps it.
func TestConsoleComesBack(t *testing.T) {
	f := newFake(t)
	f.status = view.Status{Seq: 1, Executors: view.Counts{}, Tasks: view.Counts{}}
	s, ctx := newTestSource(t, f), t.Context()
	f.hangUp = wire.OpTask
	if _, err := s.Task(ctx, "t-1"); err == nil {
		t.Fatal("no error of a connection that was cut")
	}
	if o, err := s.Overview(ctx); err != nil || o.Status.Seq != 1 {
		t.Fatalf("after the cut: %v", err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Overview(gone); err == nil {
		t.Fatal("no error of a question that was given up")
	}
	if _, err := s.Overview(ctx); err != nil {
		t.Fatalf("after one was given up: %v", err)
	}
	f.mu.Lock()
	f.refuse[wire.OpStatus] = &wire.Error{Code: wire.CodeBusy, Message: "later"}
	f.mu.Unlock()
	before := hellos(f)
	for range 3 {
		if _, err := s.Overview(ctx); !errors.Is(err, &wire.Error{Code: wire.CodeBusy}) {
			t.Fatal(err)
		}
	}
	if hellos(f) != before {
		t.Error("a refusal cost the connection")
	}
}

func TestRate(t *testing.T) {
	var r rate
	var got []float64
	for i, total := range []int64{0, 10, 20, 20, 20, 20, 20, 20, 5, 6} {
		got = append(got, r.add([]view.Executor{{Done: total}}, noon.Add(time.Duration(i)*time.Second)))
	}
	if want := []float64{0, 10, 10, 20.0 / 3, 5, 4, 2, 0, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("rates %v, want %v", got, want)
	}
}

func TestAttachWithoutATerminal(t *testing.T) {
	f := newFake(t)
	var out, words bytes.Buffer
	p := New(Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &words, Now: func() time.Time { return noon }, Actor: "me"})
	p.Root.AddCommand(p.AttachCommand())
	if code := p.Run(t.Context(), []string{"attach", "--addr", f.addr}); code != Usage || !strings.Contains(words.String(), "needs a terminal") {
		t.Errorf("code %d: %s", code, words.String())
	}
}

// The address that a controller left behind when it was killed says what to do,
// before there is any screen.
func TestAttachToAStaleAddress(t *testing.T) {
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	other := newFake(t)
	other.id = "other"
	for addr, want := range map[string]string{gone.Addr().String(): "connection refused", other.addr: "another data folder"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "ADDR"), []byte(addr+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, words bytes.Buffer
		p := New(Env{
			Stdin: strings.NewReader(""), Stdout: &out, Stderr: &words, Now: func() time.Time { return noon }, Actor: "me", Terminal: true, Ask: true,
			FolderID: func(string) string { return "mine" },
		})
		p.Root.AddCommand(p.AttachCommand())
		code := p.Run(t.Context(), []string{"attach", "--data", dir})
		if text := words.String(); code != Unreachable || !strings.Contains(text, want) || !strings.Contains(text, "start it: apollo11 --no-tui --data "+dir) {
			t.Errorf("%s: code %d: %s", want, code, text)
		}
		if out.Len() > 0 {
			t.Errorf("%s: the terminal was given %q", want, out.String())
		}
	}
}
