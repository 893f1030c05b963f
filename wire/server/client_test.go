package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"apollo11/engine"
	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

// client connects the operator's client to the server.
func (r *rig) client(o wire.ClientOptions) (*wire.Client, error) {
	o.Dial = func(context.Context, string) (net.Conn, error) {
		near, far := net.Pipe()
		r.pipes.conns <- far
		return near, nil
	}
	c, err := wire.Dial(r.t.Context(), "pipe", o)
	if err == nil {
		r.t.Cleanup(func() { c.Close() })
	}
	return c, err
}

func detail() *view.Detail {
	at := view.Time{Time: time.Date(2026, 1, 31, 8, 0, 0, 1000, time.UTC)}
	return &view.Detail{
		Task: view.Task{ID: "t1", Type: "echo", State: "running", Attempt: 2, Version: 3_000_002, Submitted: at},
		Key:  "k", Inputs: view.Object{{Name: "a", Value: "x=\\\n"}},
		Attempts: []view.Attempt{
			{Attempt: 1, Version: 3_000_001, Outcome: "timeout", Started: at, Finished: at, MS: 7},
			{Attempt: 2, Version: 3_000_002, Outcome: "running", Started: at},
		},
	}
}

// Every call of the client against the server: what is asked arrives, what is
// answered comes back.
func TestClient(t *testing.T) {
	page := &view.Page{Tasks: []view.Task{{ID: "t1"}, {ID: "t2", Error: "x=\n"}}, Cursor: "c", Examined: 2, Total: 9}
	keys := &view.KeyPage{Version: 4, Keys: []view.Key{{Key: "a", Value: "=", Version: 1}}, Cursor: "a"}
	events := view.EventPage{Events: []view.Event{{Seq: 7, Kind: "result", Values: view.Object{{Name: "a", Value: "b"}}}}, Next: 8, More: true}
	changed := &view.Changed{Matched: 3, Changed: 2, Skipped: []string{"t3: dead"}}
	explanation := &view.Explanation{ID: "t1", State: "dead", Lines: []string{"x=\n"}, Hints: []string{"apollo11 requeue t1"}}
	query := view.Query{Type: "echo", States: []task.State{task.Dead}, Older: time.Minute, Limit: 5}
	script := func(a engine.Ask) (engine.Answer, error) {
		switch c := a.Command.(type) {
		case engine.GetTasks:
			return page, nil
		case engine.GetState:
			return keys, nil
		case engine.GetTask:
			return detail(), nil
		case engine.GetExecutors:
			return []view.Executor{{ID: "e1", HeartbeatMS: -1}}, nil
		case engine.GetQueues:
			return []view.Queue{{Type: "echo", Queued: 5}}, nil
		case engine.GetLate:
			return []view.Late{}, nil
		case engine.Edit:
			return detail(), nil
		case engine.GetExplanation:
			return explanation, nil
		case engine.Requeue, engine.Cancel, engine.Drop:
			return changed, nil
		case engine.Repair:
			return view.Key{Key: c.Key, Value: c.Value}, nil
		}
		return nil, nil
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, Options{Folder: "f1", Build: "b1", Timeline: func(_ context.Context, q view.EventQuery) (view.EventPage, error) {
			if q.From != 7 || q.Task != "t1" {
				t.Errorf("timeline %+v", q)
			}
			return events, nil
		}})
		r.engine.script = script
		c, err := r.client(wire.ClientOptions{Folder: "f1", Actor: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		if h := c.Hello(); h.Folder != "f1" || h.Build != "b1" || h.StateVersion != 17 {
			t.Errorf("hello %+v", h)
		}
		ctx := t.Context()
		sel := view.Selection{IDs: []string{"t1", "t2:x"}}
		all := view.Selection{All: true, Query: query}
		for _, step := range []struct {
			call func() (any, error)
			want any
			ask  engine.Command
		}{
			{func() (any, error) { s, err := c.Status(ctx); return s.StateVersion, err }, int64(17), engine.GetStatus{}},
			{func() (any, error) { return c.Executors(ctx) }, []view.Executor{{ID: "e1", HeartbeatMS: -1}}, engine.GetExecutors{}},
			{func() (any, error) { return c.Queues(ctx) }, []view.Queue{{Type: "echo", Queued: 5}}, engine.GetQueues{}},
			{func() (any, error) { return c.Tasks(ctx, query) }, page, engine.GetTasks{Query: query}},
			{func() (any, error) { return c.Task(ctx, "t") }, detail(), engine.GetTask{ID: "t"}},
			{func() (any, error) { return c.Keys(ctx, view.KeyQuery{Prefix: "a", Limit: 3}) }, keys, engine.GetState{Query: view.KeyQuery{Prefix: "a", Limit: 3}}},
			{func() (any, error) { return c.Late(ctx, 9) }, []view.Late(nil), engine.GetLate{Limit: 9}},
			{func() (any, error) { return c.Timeline(ctx, view.EventQuery{From: 7, Task: "t1"}) }, &events, nil},
			{func() (any, error) { return c.Requeue(ctx, sel) }, changed, engine.Requeue{Selection: sel, Actor: "ann"}},
			{func() (any, error) { return c.Cancel(ctx, all, "why=") }, changed, engine.Cancel{Selection: all, Actor: "ann", Reason: "why="}},
			{func() (any, error) { return c.Drop(ctx, all, "") }, changed, engine.Drop{Selection: all, Actor: "ann"}},
			{func() (any, error) {
				return c.Edit(ctx, wire.Edit{ID: "t1", Set: task.Values{{Name: "a", Value: "=\n"}}, Unset: []string{"b"}})
			}, detail(), engine.Edit{ID: "t1", Set: task.Values{{Name: "a", Value: "=\n"}}, Unset: []string{"b"}, Actor: "ann"}},
			{func() (any, error) { return c.Explain(ctx, "t") }, explanation, engine.GetExplanation{ID: "t"}},
			{func() (any, error) { return nil, c.Pause(ctx, "echo", true) }, nil, engine.Pause{Type: "echo", On: true, Actor: "ann"}},
			{func() (any, error) { return nil, c.Drain(ctx, "e1") }, nil, engine.Drain{Exec: "e1", Actor: "ann"}},
			{func() (any, error) { return nil, c.Debug(ctx, false) }, nil, engine.Debug{}},
			{func() (any, error) {
				return c.Repair(ctx, wire.Repair{Key: "k", Value: "1", Delete: true, Reason: "r"})
			}, &view.Key{Key: "k", Value: "1"}, engine.Repair{Key: "k", Value: "1", Delete: true, Reason: "r", Actor: "ann"}},
			{func() (any, error) {
				return c.Submit(ctx, []task.Spec{{Type: "echo", Retries: task.Unset, Deadline: time.Unix(9, 0).UTC()}})
			}, []view.Submitted{{ID: "t1"}}, engine.Submit{Specs: []task.Spec{{Type: "echo", Retries: task.Unset, Deadline: time.Unix(9, 0).UTC()}}}},
		} {
			before := len(r.engine.commands())
			got, err := step.call()
			if err != nil || !reflect.DeepEqual(got, step.want) {
				t.Errorf("%T: got %+v, %v", step.ask, got, err)
			}
			asked := r.engine.commands()[before:]
			if step.ask == nil && len(asked) == 0 {
				continue
			}
			if len(asked) != 1 || !reflect.DeepEqual(asked[0], step.ask) {
				t.Errorf("asked %+v, want %+v", asked, step.ask)
			}
		}
	})
}

func TestClientErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, Options{Folder: "f1", OperatorToken: "op", ExecutorToken: "ex"})
		for _, c := range []struct {
			o    wire.ClientOptions
			code wire.Code
		}{
			{wire.ClientOptions{}, wire.CodeUnauthorized},
			{wire.ClientOptions{Token: "ex"}, wire.CodeForbidden},
			{wire.ClientOptions{Token: "op", Folder: "f2"}, wire.CodeWrongFolder},
		} {
			if _, err := r.client(c.o); !errors.Is(err, &wire.Error{Code: c.code}) {
				t.Errorf("%+v: %v", c.o, err)
			}
		}
		c, err := r.client(wire.ClientOptions{Token: "op"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Task(t.Context(), "t1"); !errors.Is(err, &wire.Error{Code: wire.CodeNotFound}) {
			t.Errorf("task: %v", err)
		}
		if _, err := c.Cancel(t.Context(), view.Selection{IDs: []string{"a,b"}}, ""); !errors.Is(err, &wire.Error{Code: wire.CodeInvalid}) {
			t.Errorf("a comma in an id: %v", err)
		}
		for _, bad := range []struct {
			edit wire.Edit
			code wire.Code
		}{
			{wire.Edit{ID: "t1", Unset: []string{"a,b"}}, wire.CodeInvalid},
			{wire.Edit{ID: "t1", Set: task.Values{{Name: "a b"}}}, wire.CodeInvalid},
			{wire.Edit{ID: "t1", Set: task.Values{{Name: "a", Value: strings.Repeat("x", task.MaxBytes)}}}, wire.CodeTooLarge},
			{wire.Edit{ID: "t1", Unset: slices.Repeat([]string{"a"}, 1025)}, wire.CodeTooLarge},
		} {
			if _, err := c.Edit(t.Context(), bad.edit); !errors.Is(err, &wire.Error{Code: bad.code}) {
				t.Errorf("edit %.60v: %v", bad.edit, err)
			}
		}
		if s, err := c.Status(t.Context()); err != nil || s.Epoch != 3 {
			t.Errorf("after errors: %v", err)
		}
	})
}

// A call that its context ends closes the client; the others are told.
func TestClientContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, Options{})
		r.engine.script = func(a engine.Ask) (engine.Answer, error) { return silent{}, nil }
		c, err := r.client(wire.ClientOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		waiting, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		second := make(chan error)
		go func() {
			synctest.Wait()
			_, err := c.Status(waiting) // waits for its turn only
			second <- err
		}()
		_, err = c.Status(ctx)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("first: %v", err)
		}
		if err := <-second; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("second: %v", err)
		}
		if _, err := c.Status(t.Context()); err == nil {
			t.Error("the client goes on")
		}
	})
}

// Many submits on the way, answered in order.
func TestPipeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, Options{})
		r.engine.script = func(a engine.Ask) (engine.Answer, error) {
			c, ok := a.Command.(engine.Submit)
			if !ok {
				return nil, nil
			}
			var list []view.Submitted
			for _, s := range c.Specs {
				list = append(list, view.Submitted{ID: s.ID, State: task.Queued})
			}
			return list, nil
		}
		c, err := r.client(wire.ClientOptions{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := c.Pipeline(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		const many = 200
		sent := make(chan error, 1)
		go func() {
			for i := range many {
				if err := p.Send([]task.Spec{{ID: fmt.Sprint("a", i), Type: "echo"}, {ID: fmt.Sprint("b", i), Type: "echo"}}); err != nil {
					sent <- err
					return
				}
			}
			sent <- nil
		}()
		for i := range many {
			list, err := p.Receive()
			if err != nil || len(list) != 2 || list[1].ID != fmt.Sprint("b", i) {
				t.Fatalf("answer %d: %v, %v", i, list, err)
			}
		}
		if err := <-sent; err != nil {
			t.Error(err)
		}
		p.Close()
		if _, err := c.Status(t.Context()); err != nil {
			t.Errorf("after the pipeline: %v", err)
		}
	})
}

// What a unit prints can be read while it runs and after; only who was sent the
// task may print for it (S22).
func TestLogs(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, Options{LogDir: dir})
		d := detail()
		r.engine.script = func(a engine.Ask) (engine.Answer, error) {
			if c, ok := a.Command.(engine.GetTask); ok && c.ID == "t1" {
				return d, nil
			}
			return nil, nil
		}
		c, err := r.client(wire.ClientOptions{})
		if err != nil {
			t.Fatal(err)
		}
		p := r.executor(registerTwo)
		a := assignment
		a.Version = 3_000_002
		r.give(engine.Assign{Assignment: a})
		p.want("type=task")
		thief := r.executor(strings.Replace(registerTwo, "e1", "e2", 1))
		thief.send("type=progress\ntask_id=t1\nversion=3000002\nlog=forged\nmessage=forged")
		for _, log := range [][]byte{[]byte("one\n"), {0xff, 0xfe, '\n'}} {
			p.raw(wire.AppendProgress(nil, &wire.Progress{Task: "t1", Version: 3_000_002, Log: log}))
		}
		p.send("type=progress\ntask_id=t1\nversion=3000001\nlog=old version", "type=progress\ntask_id=t9\nlog=not sent")
		synctest.Wait()
		chunk, err := c.Logs(t.Context(), wire.LogQuery{Task: "t1"})
		if err != nil || string(chunk.Data) != "one\n\xff\xfe\n" || chunk.Attempt != 2 || chunk.Ended {
			t.Errorf("%+v, %v", chunk, err)
		}
		d.Attempts[1].Finished = d.Submitted
		chunk, err = c.Logs(t.Context(), wire.LogQuery{Task: "t1", Attempt: 2, Offset: 4})
		if err != nil || string(chunk.Data) != "\xff\xfe\n" || chunk.Next != 7 || !chunk.Ended {
			t.Errorf("%+v, %v", chunk, err)
		}
		chunk, err = c.Logs(t.Context(), wire.LogQuery{Task: "t1", Attempt: 1})
		if err != nil || len(chunk.Data) != 0 || !chunk.Ended {
			t.Errorf("an attempt that printed nothing: %+v, %v", chunk, err)
		}
		if _, err = c.Logs(t.Context(), wire.LogQuery{Task: "t1", Attempt: 3}); !errors.Is(err, &wire.Error{Code: wire.CodeNotFound}) {
			t.Errorf("an attempt that is not: %v", err)
		}
		if slices.ContainsFunc(r.engine.commands(), func(c engine.Command) bool { _, ok := c.(engine.Progress); return ok }) {
			t.Error("forged progress reached the engine")
		}
	})
}
