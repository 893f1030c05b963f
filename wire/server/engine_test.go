package server

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"apollo11/engine"
	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

var _ Engine = (*engine.Engine)(nil)

// noDisk is a store that keeps nothing but the count.
type noDisk struct{ last atomic.Uint64 }

func (d *noDisk) Append(_ time.Time, entries [][]byte) error {
	d.last.Add(uint64(len(entries)))
	return nil
}
func (d *noDisk) Last() uint64 { return d.last.Load() }
func (d *noDisk) Full() bool   { return false }

// runEngine runs a real engine until the test ends.
func runEngine(t testing.TB) *engine.Engine {
	t.Helper()
	e, err := engine.New(engine.Options{Store: &noDisk{}, Settings: engine.DefaultSettings()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	<-e.Booted()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return e
}

// realRig serves a real engine in memory.
func realRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, engine: &fakeEngine{}, pipes: newPipes(), log: &logBuffer{}}
	s, err := Listen(Options{Listener: r.pipes, Engine: runEngine(t)})
	if err != nil {
		t.Fatal(err)
	}
	r.server = s
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	t.Cleanup(func() { r.stop(served) })
	return r
}

// The document's conversation with a real engine, in virtual time.
func TestRealEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := realRig(t)
		c, err := r.client(wire.ClientOptions{})
		if err != nil {
			t.Fatal(err)
		}
		p := r.dial()
		p.send(registerOne)
		p.want("type=ack", "status=ok")
		start := time.Now()
		p.send("type=heartbeat")
		p.want("type=ack", "status=ok")
		if held := time.Since(start); held != 2*time.Second {
			t.Errorf("a heartbeat was held for %s", held)
		}
		p.send("type=heartbeat")
		synctest.Wait()
		list, err := c.Submit(t.Context(), []task.Spec{
			{ID: "a", Type: "echo", Retries: task.Unset, Inputs: task.Values{{Name: "x", Value: "=\\\n"}}},
			{ID: "b", Type: "echo", Retries: task.Unset},
		})
		if err != nil || len(list) != 2 {
			t.Fatalf("%v %v", list, err)
		}
		m := p.want("type=task", "task_id=a", "x==\\\n")
		p.send("type=heartbeat") // life, never a second task
		synctest.Wait()
		p.send("type=result\ntask_id=a\nstatus=success\ny=\\e\noutput_total=42\nadd.total=5")
		p.want("type=ack", "status=ok")
		p.want("type=task", "task_id=b") // the held heartbeat's answer
		p.send("type=result\ntask_id=a\nversion=" + m.Text("version") + "\nstatus=success")
		p.want("type=ack", "status=ok", "duplicate=true")
		p.send("type=result\ntask_id=a\nversion=7\nstatus=success")
		p.want("type=ack", "status=stale")
		p.send("type=result\ntask_id=b\nout=\\x")
		p.want("type=error", "code=malformed")
		d, err := c.Task(t.Context(), "a")
		if err != nil || d.State != "succeeded" || fmt.Sprint(d.Outputs) != "[{output_total 42} {y =}]" {
			t.Errorf("%+v %v", d, err)
		}
		if d, err = c.Task(t.Context(), "b"); err != nil || d.ErrorClass != "output_invalid" {
			t.Errorf("%+v %v", d, err)
		}
		keys, err := c.Keys(t.Context(), view.KeyQuery{Keys: []string{"total"}})
		if err != nil || len(keys.Keys) != 1 || keys.Keys[0].Value != "5" {
			t.Errorf("%+v %v", keys, err)
		}
		if late, err := c.Late(t.Context(), 10); err != nil || len(late) != 1 || late[0].Version != 7 {
			t.Errorf("%+v %v", late, err)
		}
		p.send("type=offline")
		p.wantEnd()
		s, err := c.Status(t.Context())
		if err != nil || s.Executors["offline"] != 1 || s.Tasks["succeeded"] != 1 {
			t.Errorf("%+v %v", s, err)
		}
		again := r.dial()
		again.send(registerOne)
		again.want("type=ack", "status=ok")
		third := r.dial()
		third.send(registerOne)
		third.want("type=ack", "status=ok")
		again.want("type=error", "code=unregistered", "fatal=true")
		again.wantEnd()
	})
}

// An executor that subscribed is told what changed, at most once a second.
func TestRealEngineState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := realRig(t)
		c, err := r.client(wire.ClientOptions{})
		if err != nil {
			t.Fatal(err)
		}
		repair := func(key, value string) {
			if _, err := c.Repair(t.Context(), wire.Repair{Key: key, Value: value, Delete: value == "", Reason: "test"}); err != nil {
				t.Error(err)
			}
		}
		one, two := r.dial(), r.dial()
		one.send(registerOne + "\nsubscribe=state") // protocol 1 has no word for it
		one.want("type=ack", "status=ok")
		two.send("type=register\nexecutor_id=e2\ntask_types=echo\nproto=2\nsubscribe=news,state")
		two.want("type=ack", "proto=2", "state_version=1")
		time.Sleep(2 * time.Second)
		start := time.Now()
		repair("batch", "7")
		repair("batch", "8")
		repair("gone", "1")
		repair("gone", "")
		two.want("type=state", "state_version=2", "since=1", "v.batch=1")
		two.want("type=state", "state_version=5", "since=2", "v.batch=2", "v.gone=0")
		if took := time.Since(start); took != time.Second {
			t.Errorf("told again after %s", took)
		}
		two.send("type=query\nsince=2")
		if m := two.want("type=state", "state_version=5", "s.batch=8"); m.Text("since") != "" {
			t.Error("an answer looks as if nobody had asked for it")
		}
		one.send("type=query\nkeys=batch")
		one.want("type=state", "s.batch=8") // the first that it gets
	})
}

// A submit over what the engine takes at once, and what protocol 2 makes of it.
func TestRealEngineManyTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := realRig(t)
		c, err := r.client(wire.ClientOptions{})
		if err != nil {
			t.Fatal(err)
		}
		p := r.dial()
		p.send(registerTwo)
		p.want("type=ack", "proto=2")
		const many = 3000
		done := make(chan error, 1)
		go func() { done <- work2(p, many) }()
		specs := slices.Repeat([]task.Spec{{Type: "echo", Retries: task.Unset, Inputs: task.Values{{Name: "x", Value: "1"}}}}, many)
		list, err := c.Submit(t.Context(), specs)
		if err != nil || len(list) != many {
			t.Fatalf("%d, %v", len(list), err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if s, err := c.Status(t.Context()); err != nil || s.Tasks["succeeded"] != many {
			t.Errorf("%v %v", s.Tasks, err)
		}
	})
}

// work2 is a protocol 2 executor that succeeds at everything, until many acks
// have come.
func work2(p *peer, many int) error {
	var m wire.Message
	for acks := 0; acks < many; {
		if err := p.conn.Fill(); err != nil {
			return err
		}
		for text, ok := p.conn.Next(); ok; text, ok = p.conn.Next() {
			if err := m.Parse(text); err != nil {
				return err
			}
			switch m.Type {
			case wire.TypeAck:
				acks++
			case wire.TypeTask:
				a, err := wire.ParseTask(&m, 2)
				if err != nil {
					return err
				}
				p.conn.Commit(wire.AppendResult(p.conn.Open(), &task.Outcome{Task: a.Task, Version: a.Version, Status: task.Success, Exit: -1}, 2))
			}
		}
		p.conn.Flush()
	}
	return nil
}

// BenchmarkTasks is what a task costs from submit to result, over sockets, with
// a disk that takes no time.
func BenchmarkTasks(b *testing.B) {
	s, err := Listen(Options{Addr: "127.0.0.1:0", Engine: runEngine(b)})
	if err != nil {
		b.Fatal(err)
	}
	go s.Serve()
	b.Cleanup(s.Stop)
	c, err := wire.Dial(b.Context(), s.Addr().String(), wire.ClientOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	const executors, batch = 8, 800
	done := make(chan error, executors)
	n := max(b.N/executors/batch, 1) * batch
	for i := range executors {
		nc, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		p := &peer{nil, nc, wire.NewConn(nc, wire.MaxFrame)}
		defer p.conn.Close(0)
		p.conn.Append(wire.AppendRegister(nil, &wire.Register{Exec: fmt.Sprint("e", i), Types: []string{fmt.Sprint("t", i)}, Proto: 2}))
		p.conn.Flush()
		go func() { done <- work2(p, n+1) }() // the register's ack too
	}
	b.ResetTimer()
	specs := make([]task.Spec, batch)
	for i := 0; i < n*executors; i += batch {
		for k := range specs {
			specs[k] = task.Spec{Type: fmt.Sprint("t", k%executors), Retries: task.Unset, Inputs: task.Values{{Name: "x", Value: "0123456789012345678901234567890123456789"}}}
		}
		if _, err := c.Submit(b.Context(), specs); err != nil {
			b.Fatal(err)
		}
	}
	for range executors {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n*executors)/b.Elapsed().Seconds(), "tasks/s")
}
