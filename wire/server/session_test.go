package server

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"apollo11/engine"
	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

var assignment = task.Assignment{
	Task: "t1", Type: "echo", Version: 3_000_001, Attempt: 1, StateVersion: 17,
	Inputs: task.Values{{Name: "a", Value: "x=\\\n"}}, Context: task.Values{{Name: "batch", Value: "7"}},
}

// give sends an order as the engine's loop does.
func (r *rig) give(o engine.Order) {
	link := r.engine.link()
	link.Order(o)
	link.Flush()
}

func TestProtocol1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, Options{})
		p := r.executor(registerOne)
		p.send("type=heartbeat\nexecutor_id=e1")
		synctest.Wait()
		find[engine.Ready](t, r.engine)
		r.give(engine.Assign{Assignment: assignment})
		p.want("type=task", "task_id=t1", "version=3000001", "a=x=\\\n", "ctx.batch=7")
		p.send("type=result\ntask_id=t1\nstatus=success\nout=42")
		m := p.want("type=ack", "status=ok", "state_version=18")
		if m.Text("task_id") != "" {
			t.Error("a protocol 1 ack names the task")
		}
		result := find[engine.Result](t, r.engine)
		if result.Exec != "e1" || result.Outcome.Version != 3_000_001 || result.Raw != nil {
			t.Errorf("result %+v", result)
		}
		p.send("type=heartbeat")
		synctest.Wait()
		r.give(engine.Beat{StateVersion: 19})
		p.want("type=ack", "status=ok", "state_version=19")
		r.give(engine.Revoke{Task: "t1"}) // protocol 1 has no words for these
		r.give(engine.Recall{Task: "t1"})
		r.give(engine.DrainOrder{})
		r.give(engine.StateChanged{Version: 20, Keys: []engine.KeyChange{{Key: "a", Version: 1}}})
		p.send("type=query\nkeys=batch")
		p.want("type=state", "state_version=17", "s.batch=7")
		p.send("type=types\nadd=more")
		p.want("type=ack", "status=ok")
		if types := find[engine.Types](t, r.engine); len(types.Add) != 1 || types.Add[0] != "more" {
			t.Errorf("types %+v", types)
		}
		p.send("", "type=progress\ntask_id=t1\nmessage=half", "type=offline\nreason=SIGTERM", "type=query")
		synctest.Wait()
		find[engine.Progress](t, r.engine)
		if find[engine.Offline](t, r.engine).Reason != "SIGTERM" {
			t.Error("the reason is lost")
		}
		r.give(engine.Dismiss{Reason: "offline"})
		p.wantEnd() // no answer to progress, offline, the empty frame, and none after offline
	})
}

func TestProtocol2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, Options{})
		r.engine.script = func(a engine.Ask) (engine.Answer, error) {
			if c, ok := a.Command.(engine.Register); ok {
				return engine.Registered{Epoch: 3, StateVersion: 17, ConfigVersion: 2, Heartbeat: 20 * time.Second, Refused: []string{"count: differs"}, Kept: c.Running}, nil
			}
			return nil, nil
		}
		p := r.dial()
		p.send(registerTwo + "\nrunning=old:1:3000007:running")
		p.want("type=ack", "proto=2", "heartbeat_ms=20000", "epoch=3", "config_version=2", "refused.count=differs")
		if got := find[engine.Register](t, r.engine); got.Proto != 2 || got.Instance != "i1" || len(got.Running) != 1 ||
			got.Running[0] != (engine.Held{Task: "old:1", Version: 3_000_007, Phase: engine.PhaseRunning}) {
			t.Errorf("register %+v", got)
		}
		p.send("type=heartbeat\nload=1")
		p.want("type=ack", "status=ok", "state_version=17")
		for _, c := range r.engine.commands() {
			if _, ok := c.(engine.Ready); ok {
				t.Error("a protocol 2 heartbeat troubled the engine")
			}
		}
		for i := range 3 {
			a := assignment
			a.Task = fmt.Sprint("t", i)
			r.engine.link().Order(engine.Assign{Assignment: a})
		}
		r.engine.link().Flush()
		p.want("type=task", "task_id=t0", "in.a=x=\\\n")
		p.want("type=task", "task_id=t1")
		p.want("type=task", "task_id=t2")
		p.send("type=result\ntask_id=t0\nversion=3000001\nstatus=ok\nout.a=1\nset.k=2", "type=returned\ntask_id=t1\nversion=3000001")
		p.want("type=ack", "task_id=t0", "version=3000001")
		p.want("type=ack", "task_id=t1", "version=3000001")
		r.give(engine.Revoke{Task: "t2", Version: 3_000_001, Reason: "cancelled"})
		p.want("type=cancel", "task_id=t2", "reason=cancelled")
		r.give(engine.Recall{Task: "t2", Version: 3_000_001})
		p.want("type=recall", "task_id=t2")
		r.give(engine.DrainOrder{Reason: "stop"})
		p.want("type=drain", "reason=stop")
		// A kept task may be spoken about on the new connection.
		p.send("type=progress\ntask_id=old:1\nphase=start")
		synctest.Wait()
		if got := find[engine.Progress](t, r.engine); got.Version != 3_000_007 || !got.Start {
			t.Errorf("progress %+v", got)
		}
	})
}

func TestVerdicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, Options{})
		var next engine.Applied
		r.engine.script = func(a engine.Ask) (engine.Answer, error) {
			if _, ok := a.Command.(engine.Result); ok {
				return next, nil
			}
			return nil, nil
		}
		p := r.executor(registerOne)
		for _, c := range []struct {
			applied engine.Applied
			lines   []string
		}{
			{engine.Applied{Verdict: engine.Accepted}, []string{"status=ok"}},
			{engine.Applied{Verdict: engine.Duplicate}, []string{"status=ok", "duplicate=true"}},
			{engine.Applied{Verdict: engine.Stale, Reason: "superseded"}, []string{"status=stale", "reason=superseded"}},
			{engine.Applied{Verdict: engine.Rejected, Reason: "stale_context"}, []string{"status=rejected", "reason=stale_context"}},
		} {
			next = c.applied
			p.send("type=result\ntask_id=t1\nstatus=ok")
			p.want(append(c.lines, "type=ack")...)
		}
	})
}

// S3: whatever comes first without credentials: one error, and the end. S14:
// nothing that comes with it or after it is run.
func TestFirstFrame(t *testing.T) {
	texts := []string{"", "what is this", "a=\\x", "type=", "type=no_such_type", "type=control\nop=status", "type=control\nop=submit\n0.type=a", "type=control"}
	for _, typ := range wire.Types() {
		if typ != wire.TypeRegister {
			texts = append(texts, "type="+string(typ)+"\ntask_id=t\nexecutor_id=e\nid=x")
		}
	}
	texts = append(texts, registerOne, registerOne+"\ntoken=wrong", registerOne+"\ntoken=op", hello, hello+"\ntoken=wrong", hello+"\ntoken=ex",
		"type=register\nexecutor_id=e1\nexecutor_id=e2\ntoken=ex", "type=register\ntask_types=echo\ntoken=ex")
	for _, text := range texts {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, false, Options{ExecutorToken: "ex", OperatorToken: "op"})
			p := r.dial()
			p.send(text, registerOne+"\ntoken=ex", "type=control\nop=debug\nvalue=on")
			p.want("type=error", "fatal=true")
			p.wantEnd()
			if asked := r.engine.commands(); len(asked) != 0 {
				t.Errorf("%q: the engine was asked %v", text, asked)
			}
		})
	}
}

// S4: each role has its own token, and no token is ever logged, in debug mode
// neither (S18).
func TestTokens(t *testing.T) {
	for _, c := range []struct{ first, executor, operator, want string }{
		{registerOne, "", "", "ok"},
		{registerOne + "\ntoken=s3x", "", "", "ok"},
		{registerOne + "\ntoken=s3x", "s3x", "s3o", "ok"},
		{registerOne + "\ntoken=s3o", "s3x", "s3o", "forbidden"},
		{registerOne + "\ntoken=s3o", "", "s3o", "forbidden"},
		{registerOne + "\ntoken=s3", "s3x", "s3o", "unauthorized"},
		{registerOne, "s3x", "s3o", "unauthorized"},
		{hello, "", "", "ok"},
		{hello + "\ntoken=s3o", "s3x", "s3o", "ok"},
		{hello + "\ntoken=s3x", "s3x", "s3o", "forbidden"},
		{hello + "\ntoken=s3x", "s3x", "", "forbidden"},
		{hello + "\ntoken=s3xx", "s3x", "s3o", "unauthorized"},
		{hello, "s3x", "s3o", "unauthorized"},
		{hello, "s3x", "", "ok"},
		{hello + "\ntoken=s3x\\q", "s3x", "s3o", "malformed"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, false, Options{ExecutorToken: c.executor, OperatorToken: c.operator})
			r.engine.debug = true
			p := r.dial()
			p.send(c.first)
			m := p.next()
			if got := m.Text("status") + m.Text("code"); got != c.want {
				t.Errorf("%q with %q and %q: %s", c.first, c.executor, c.operator, got)
			}
			p.conn.Close(0)
			synctest.Wait()
			if log := r.log.String(); strings.Contains(log, "s3") || !strings.Contains(log, "direction=in") {
				t.Errorf("the log shows a token, or nothing:\n%s", log)
			}
		})
	}
}

// S12: one who drips is cut, and so is one who says nothing.
func TestDeadlines(t *testing.T) {
	for _, c := range []struct {
		name  string
		first string
		bytes string // sent one a second
		least time.Duration
		most  time.Duration
	}{
		{"silent stranger", "", "", admission, admission + time.Second},
		{"dripping stranger", "", strings.Repeat("\x00\x00\x01\x00", 30), admission, admission + time.Second},
		{"half a frame", registerOne, "\x00\x00", 10 * time.Second, 13 * time.Second},
		{"dripping executor", registerOne, "\x00\x00\x01\x00" + strings.Repeat("x", 60), 10 * time.Second, 12 * time.Second},
		{"dripping operator", hello, "\x00\x00\x01\x00" + strings.Repeat("x", 60), 10 * time.Second, 12 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, false, Options{})
			p := r.dial()
			if c.first != "" {
				p.send(c.first)
				p.want("type=ack")
			}
			start := time.Now()
			dripped := make(chan struct{})
			defer func() { <-dripped }()
			go func() {
				defer close(dripped)
				for i := range len(c.bytes) {
					if _, err := p.nc.Write([]byte(c.bytes[i : i+1])); err != nil {
						return
					}
					time.Sleep(time.Second)
				}
			}()
			p.want("type=error", "code=timeout", "fatal=true")
			p.wantEnd()
			if took := time.Since(start); took < c.least || took > c.most {
				t.Errorf("%s: cut after %s", c.name, took)
			}
		})
	}
}

// An executor that is registered may be silent for as long as the engine likes.
func TestSilenceOfTheKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, Options{})
		p := r.executor(registerOne)
		before := r.engine.link().Heard()
		time.Sleep(24 * time.Hour)
		p.send("")
		synctest.Wait()
		if got := r.engine.link().Heard().Sub(before); got != 24*time.Hour {
			t.Errorf("heard %s after the register", got)
		}
		p.send("type=query")
		p.want("type=state")
	})
}

// What an executor and an operator may not send.
func TestWrongState(t *testing.T) {
	for _, c := range []struct {
		name, first, text string
		want              string // empty: no answer, and the connection lives
		ends              bool
	}{
		{"control by an executor", registerOne, "type=control\nop=status", "forbidden", false},
		{"hello by an executor", registerOne, hello, "forbidden", false},
		{"task by an executor", registerOne, "type=task\ntask_id=t", "unknown_type", false},
		{"cancel by an executor", registerOne, "type=cancel\ntask_id=t", "unknown_type", false},
		{"state by an executor", registerOne, "type=state", "unknown_type", false},
		{"rows by an executor", registerOne, "type=rows", "unknown_type", false},
		{"no type", registerOne, "a=1", "unknown_type", false},
		{"nonsense", registerOne, "what is this", "unknown_type", false},
		{"unknown type", registerOne, "type=\x1b[2J", "unknown_type", false},
		{"malformed", registerOne, "type=query\na=\\x", "malformed", false},
		{"malformed query", registerOne, "type=query\nlimit=x", "malformed", false},
		{"malformed returned", registerOne, "type=returned", "malformed", false},
		{"malformed progress", registerOne, "type=progress\nmessage=x", "", false},
		{"malformed offline", registerOne, "type=offline\na=\\x", "", false},
		{"malformed result without a task", registerOne, "type=result\nstatus=ok", "malformed", false},
		{"malformed result of a bad task", registerOne, "type=result\ntask_id=a b\nexit=x", "malformed", false},
		{"error by an executor", registerOne, "type=error\ncode=x", "", false},
		{"ack by an executor", registerOne, "type=ack", "", false},
		{"another id", registerOne, "type=register\nexecutor_id=e2\ntask_types=a", "invalid", false},
		{"register by an operator", hello, registerOne, "forbidden", false},
		{"result by an operator", hello, "type=result\ntask_id=t", "forbidden", false},
		{"heartbeat by an operator", hello, "type=heartbeat", "forbidden", false},
		{"offline by an operator", hello, "type=offline", "", false},
		{"unknown type by an operator", hello, "type=whatever", "unknown_type", false},
		{"hello again", hello, hello, "invalid", false},
		{"no op", hello, "type=control", "unknown_op", false},
		{"unknown op", hello, "type=control\nop=explode", "unknown_op", false},
		{"malformed control", hello, "type=control\nop=pause\nvalue=perhaps", "malformed", false},
		{"empty frame by an operator", hello, "", "", false},
		{"malformed within a submit", hello, "type=control\nop=submit\npart=true\n0.type=a\x00type=control\na=\\x", "malformed", true},
		{"no timeline", hello, "type=control\nop=timeline", "unavailable", false},
		{"no logs", hello, "type=control\nop=logs\nid=t", "unavailable", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, false, Options{})
			p := r.dial()
			p.send(c.first)
			p.want("type=ack")
			before := len(r.engine.commands())
			p.send(strings.Split(c.text, "\x00")...)
			if c.want != "" {
				p.want("type=error", "code="+c.want, fmt.Sprintf("fatal=%v", c.ends))
			}
			if c.ends {
				p.wantEnd()
			} else { // the next message is answered as if nothing had been
				p.send(map[string]string{registerOne: "type=query", hello: "type=control\nop=status"}[c.first])
				if m := p.next(); m.Type == wire.TypeError {
					t.Errorf("%s: after it came %q", c.name, m.Append(nil))
				}
				before++
			}
			p.conn.Close(0)
			synctest.Wait()
			for _, asked := range r.engine.commands()[before:] {
				if _, ok := asked.(engine.Disconnected); !ok {
					t.Errorf("%s: the engine was asked %T", c.name, asked)
				}
			}
		})
	}
}

// A result that cannot be read, of a task that can, fails the attempt at once;
// it has one answer, the error.
func TestMalformedResult(t *testing.T) {
	for _, text := range []string{
		"type=result\ntask_id=t1\nout.a=\\x\nstatus=ok",
		"type=result\na=1\na=2\ntask_id=t1",
		"type=result\ntask_id=t1\nb=\xff",
		"type=result\ntask_id=t1\nexit=minus one",
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, false, Options{})
			p := r.executor(registerOne)
			r.give(engine.Assign{Assignment: assignment})
			p.want("type=task")
			p.send(text, "type=query")
			p.want("type=error", "code=malformed", "fatal=false")
			p.want("type=state")
			got := find[engine.Result](t, r.engine)
			var bad *wire.MalformedError
			if got.Outcome.Task != "t1" || got.Outcome.Version != 3_000_001 || !errors.As(got.Raw, &bad) {
				t.Errorf("%q: %+v", text, got)
			}
			if r.server.Counts().Malformed.Load() != 1 || !strings.Contains(r.log.String(), "malformed message") {
				t.Errorf("%q was not counted or not logged", text)
			}
		})
	}
}

// Answers keep the order of the questions, whatever the engine's order.
func TestAnswersInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, Options{})
		var bulk []engine.Ask
		r.engine.script = func(a engine.Ask) (engine.Answer, error) {
			switch a.Command.(type) {
			case engine.Requeue, engine.Cancel: // these take several turns
				bulk = append(bulk, a)
				return silent{}, nil
			}
			return nil, nil
		}
		p := r.operator()
		p.send("type=control\nop=requeue\nall=true", "type=control\nop=status", "type=control\nop=nonsense",
			"type=control\nop=cancel\nids=t1,t2\nreason=because", "type=control\nop=pause\nvalue=on", "type=control\nop=state")
		synctest.Wait()
		if len(bulk) != 2 {
			t.Fatalf("%d bulk commands", len(bulk))
		}
		if c := bulk[1].Command.(engine.Cancel); c.Actor != "ann" || c.Reason != "because" || len(c.IDs) != 2 {
			t.Errorf("cancel %+v", c)
		}
		bulk[1].Link.Answer(bulk[1].Ref, &view.Changed{Matched: 2}, nil)
		bulk[1].Link.Flush()
		synctest.Wait()
		bulk[0].Link.Answer(bulk[0].Ref, &view.Changed{Matched: 9}, nil)
		bulk[0].Link.Answer(bulk[0].Ref, &view.Changed{Matched: 8}, nil) // a second answer is nobody's
		bulk[0].Link.Flush()
		p.want("type=rows", "matched=9")
		p.want("type=rows", "0.epoch=3")
		p.want("type=error", "code=unknown_op")
		p.want("type=rows", "matched=2")
		p.want("type=ack")
		p.want("type=rows", "0.key=batch")
	})
}

// silent is an answer that Post does not pass on.
type silent struct{}

// Answers that wait for an earlier one are bounded too.
func TestHeldAnswersAreBounded(t *testing.T) {
	var a answers
	first := a.due(promise{})
	page := make([]byte, 1<<20)
	for i := range 20 {
		if !a.keep(a.at(a.due(promise{})), page) {
			if i < maxHeld>>20 {
				t.Errorf("full at %d MiB", i)
			}
			return
		}
	}
	t.Errorf("20 MiB wait for answer %d", first)
}

func TestReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, Options{})
		p := r.executor(registerOne)
		r.give(engine.Dismiss{Reason: "another connection registered as e1"})
		r.give(engine.Assign{Assignment: assignment}) // too late: it must not be sent
		p.want("type=error", "code=unregistered", "fatal=true", "message=another connection registered as e1")
		p.wantEnd()
	})
}

// A controller that stops says so: an executor comes back soon, and does not
// think that somebody took its id over.
func TestDismissedByAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, Options{})
		p := r.executor(registerOne)
		r.give(engine.Dismiss{Reason: "controller is stopping", Stopping: true})
		p.want("type=error", "code=stopping", "fatal=true")
		p.wantEnd()
	})
}

func TestRefusedByTheEngine(t *testing.T) {
	for err, code := range map[error]string{
		engine.ErrStopping: "stopping", engine.ErrInvalid: "invalid", engine.ErrUnregistered: "unregistered", errors.New("odd"): "internal",
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, false, Options{})
			r.engine.script = func(a engine.Ask) (engine.Answer, error) {
				if _, ok := a.Command.(engine.Register); ok {
					return nil, err
				}
				return nil, nil
			}
			p := r.dial()
			p.send(registerOne)
			p.want("type=error", "code="+code, "fatal=true")
			p.wantEnd()
		})
	}
}

// An executor that the engine has given up is told to come again.
func TestGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, Options{})
		r.engine.script = func(a engine.Ask) (engine.Answer, error) {
			if _, ok := a.Command.(engine.Result); ok {
				return nil, fmt.Errorf("%w: e1", engine.ErrUnregistered)
			}
			return nil, nil
		}
		p := r.executor(registerOne)
		p.send("type=result\ntask_id=t1\nstatus=ok")
		p.want("type=error", "code=unregistered", "fatal=true")
		p.wantEnd()
	})
}

func TestDisconnectedIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, Options{})
		p := r.executor(registerTwo)
		p.conn.Close(0)
		synctest.Wait()
		if got := find[engine.Disconnected](t, r.engine); got.Exec != "e1" || got.Reason == "" {
			t.Errorf("%+v", got)
		}
	})
}

// S16, S22: the specs of a submit reach the engine as one command or not at all.
func TestSubmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, Options{})
		r.engine.script = func(a engine.Ask) (engine.Answer, error) {
			if c, ok := a.Command.(engine.Submit); ok && len(c.Specs) == 3 {
				return nil, &engine.SubmitError{Faults: []engine.SubmitFault{{Index: 2, Err: fmt.Errorf("%w: id t7 names other work", engine.ErrConflict)}}}
			}
			return nil, nil
		}
		p := r.operator()
		p.send("type=control\nop=submit\n0.type=a\n0.in.x=1\n1.type=b\n1.retries=bad")
		p.want("type=error", "code=invalid", "0.index=1")
		p.send("type=control\nop=submit\n0.type=a\n1.type=b\npart=true", "type=control\nop=submit\n2.type=c")
		p.want("type=error", "code=conflict", "0.index=2", "0.message=conflict: id t7 names other work")
		p.send("type=control\nop=submit\n0.type=a\n0.in.x=1")
		p.want("type=rows", "0.id=t1")
		if n := len(r.engine.commands()); n != 2 {
			t.Errorf("%d commands", n)
		}
	})
}

// A submit over what the engine takes at once is checked whole before the first
// part is queued.
func TestLargeSubmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, Options{})
		bad := -1
		r.engine.script = func(a engine.Ask) (engine.Answer, error) {
			c, ok := a.Command.(engine.Submit)
			if !ok {
				return nil, nil
			}
			var list []view.Submitted
			for i, s := range c.Specs {
				if fmt.Sprint("t", bad) == s.ID || fmt.Sprint("t", bad-1500) == s.ID {
					return nil, &engine.SubmitError{Faults: []engine.SubmitFault{{Index: i, Err: engine.ErrInvalid}}}
				}
				list = append(list, view.Submitted{ID: s.ID, State: task.Queued})
			}
			return list, nil
		}
		var specs []task.Spec
		for i := range 2500 {
			specs = append(specs, task.Spec{ID: fmt.Sprint("t", i), Type: "echo", Retries: task.Unset})
		}
		frames, err := wire.AppendSubmit(nil, specs, 64<<10)
		if err != nil {
			t.Fatal(err)
		}
		p := r.operator()
		p.raw(frames)
		var list []view.Submitted
		for more := true; more; {
			m := p.want("type=rows")
			if list, err = wire.ParseSubmitted(list, m); err != nil {
				t.Fatal(err)
			}
			more = m.Text("part") == "true"
		}
		if len(list) != 2500 || list[2499].ID != "t2499" || list[0].State != task.Queued {
			t.Errorf("%d answers", len(list))
		}
		bad = 2100
		before := len(r.engine.commands())
		p.raw(frames)
		p.want("type=error", "code=invalid", "0.index=600", "1.index=2100") // all that is wrong
		if frames, err = wire.AppendCheck(nil, specs, 64<<10); err != nil {
			t.Fatal(err)
		}
		p.raw(frames)
		p.want("type=error", "code=invalid", "0.index=600", "1.index=2100")
		bad = -1
		p.raw(frames)
		p.want("type=ack", "status=ok") // only checked
		for _, c := range r.engine.commands()[before:] {
			if s, ok := c.(engine.Submit); ok && !s.Check {
				t.Error("a part was queued although another is faulty")
			}
		}
	})
}

// S17: what a peer says shows escaped in the log.
func TestLogIsEscaped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, Options{})
		r.engine.debug = true
		p := r.executor(registerOne)
		p.send("type=query\na=\x1b[2J\u202e\nmissing", "type=\x1b]0;owned\nb=\\x")
		p.want("type=state")
		p.want("type=error")
		synctest.Wait()
		log := r.log.String()
		if strings.ContainsAny(log, "\x1b\u202e") {
			t.Errorf("control characters in the log:\n%q", log)
		}
		for _, want := range []string{"direction=in", "direction=out", "type=register", "type=ack", "type=query", "s.batch=7"} {
			if !strings.Contains(log, want) {
				t.Errorf("no %s in the log:\n%s", want, log)
			}
		}
		if r.server.Counts().Skipped.Load() != 1 {
			t.Error("the line without an equals sign was not counted")
		}
	})
}

// What a quiet connection reads is not in the log of every message; what it
// changes is, and so is all that others do.
func TestQuietIsNotTapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, Options{})
		r.engine.debug = true
		quiet, loud := r.dial(), r.dial()
		quiet.send("type=control\nop=hello\nquiet=true", "type=control\nop=state", "type=control\nop=timeline")
		quiet.want("type=ack")
		quiet.want("type=rows")
		quiet.want("type=error", "code=unavailable")
		quiet.send("type=control\nop=pause\nvalue=on")
		quiet.want("type=ack")
		quiet.send("type=control\nop=nonsense", "type=query")
		quiet.want("type=error", "code=unknown_op")
		quiet.want("type=error", "code=forbidden")
		synctest.Wait()
		log := r.log.String()
		for _, want := range []string{"op=hello", "op=pause", "op=nonsense", "type=query", "code=unknown_op"} {
			if !strings.Contains(log, want) {
				t.Errorf("no %s in the log:\n%s", want, log)
			}
		}
		for _, not := range []string{"op=state", "op=timeline", "type=rows", "unavailable"} {
			if strings.Contains(log, not) {
				t.Errorf("%s is in the log:\n%s", not, log)
			}
		}
		loud.send("type=control\nop=hello", "type=control\nop=state")
		loud.want("type=ack")
		loud.want("type=rows")
		synctest.Wait()
		for _, want := range []string{"op=state", "type=rows"} {
			if !strings.Contains(r.log.String(), want) {
				t.Errorf("no %s of a connection that is not quiet", want)
			}
		}
	})
}

// S23: a fault of ours in a connection closes that one only.
func TestPanicClosesOneConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, Options{})
		other := r.executor(registerOne)
		victim := r.executor(strings.Replace(registerTwo, "e1", "e2", 1))
		r.engine.panics = true
		victim.send("type=heartbeat") // reading panics
		victim.want("type=error", "code=internal", "fatal=true")
		victim.wantEnd()
		other.send("type=query")
		other.want("type=state")
		var asked engine.Ask
		r.engine.script = func(a engine.Ask) (engine.Answer, error) {
			if _, ok := a.Command.(engine.GetState); ok {
				asked = a
				return silent{}, nil
			}
			return nil, nil
		}
		other.send("type=query")
		synctest.Wait()
		asked.Link.Answer(asked.Ref, (*view.KeyPage)(nil), nil) // encoding panics, on the engine's goroutine
		asked.Link.Flush()
		other.want("type=error", "code=internal", "fatal=true")
		other.wantEnd()
		if r.server.Counts().Panics.Load() != 2 || !strings.Contains(r.log.String(), "boom") {
			t.Errorf("log:\n%s", r.log)
		}
	})
}
