package executor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"apollo11/engine/task"
	"apollo11/wire"
)

func TestRegister(t *testing.T) {
	shared := func(o *Options) { o.Share = filepath.Join(o.Units, "share") }
	staged(t, shared, func(t *testing.T, s *stage) {
		c := s.accept()
		r := c.registered()
		if r.Exec != "e1" || r.Token != "secret" || r.Proto != 2 || r.Build != "test" || r.PID != os.Getpid() || r.Instance == "" || len(r.Running) != 0 {
			t.Errorf("%+v", r)
		}
		if !slices.Equal(r.Types, []string{"u"}) || len(r.Units) != 1 || r.Units[0].Name != "u" {
			t.Errorf("%v %v", r.Types, r.Units)
		}
		if hash, _ := r.Hashes.Get("u"); len(r.Hashes) != 1 || hash == "" {
			t.Errorf("hashes %v", r.Hashes)
		}
		if id, err := os.ReadFile(filepath.Join(s.o.Share, shareFile)); err != nil || r.Share == "" || string(id) != r.Share+"\n" {
			t.Errorf("share %q, its file %q %v", r.Share, id, err)
		}
		if host := hostCapacity(os.TempDir()); r.Capacity.CPU != host.CPU || r.Capacity.Memory != host.Memory || r.Capacity.CPU == 0 {
			t.Errorf("capacity %+v", r.Capacity)
		}
		c.leave()
	})
}

// An executor whose share cannot be made works on with units that need none.
func TestNoShare(t *testing.T) {
	noFolder := func(o *Options) { o.Share = filepath.Join(o.Units, "u.toml") }
	staged(t, noFolder, func(t *testing.T, s *stage) {
		c := s.accept()
		if r := c.registered(); r.Share != "" {
			t.Errorf("share %q", r.Share)
		}
		c.give(assign("t", 1))
		c.result("t", task.Success)
		c.ack("t", 1)
		c.leave()
		if !strings.Contains(s.log.String(), "no share") {
			t.Error(s.log.String())
		}
	})
}

func TestResultsComeInOrder(t *testing.T) {
	staged(t, nil, func(t *testing.T, s *stage) {
		c := s.accept()
		c.registered()
		var tasks []*task.Assignment
		for i := range 100 {
			tasks = append(tasks, assign(fmt.Sprint("t", i), 7, "k", "v"))
		}
		c.give(tasks...)
		c.give(tasks[99]) // again: not run twice
		for i := range 100 {
			o := c.result(fmt.Sprint("t", i), task.Success)
			if v, _ := o.Outputs.Get("k"); v != "v" || o.Version != 7 {
				t.Errorf("%+v", o)
			}
		}
		c.quiet(time.Second)
		if len(s.began) != 100 {
			t.Errorf("%d were run", len(s.began))
		}
		for i := range 100 {
			c.ack(fmt.Sprint("t", i), 7)
		}
		c.leave()
	})
}

func TestSentTwiceIsRunOnce(t *testing.T) {
	staged(t, nil, func(t *testing.T, s *stage) {
		c := s.accept()
		c.registered()
		runs, waits, done := assign("runs", 1, "sleep", "1s"), assign("waits", 1), assign("done", 1)
		began := time.Now()
		c.give(done)
		c.result("done", task.Success)
		if waited := time.Since(began); waited > 0 {
			t.Errorf("the only result waited %v for company", waited)
		}
		c.give(runs, waits)
		c.progress()
		c.give(done, runs, waits, runs)
		c.result("runs", task.Success)
		c.result("waits", task.Success)
		c.quiet(time.Minute)
		for _, id := range []string{"done", "runs", "waits"} {
			c.ack(id, 1)
		}
		c.leave()
	})
}

func TestStartIsToldAfter50ms(t *testing.T) {
	staged(t, nil, func(t *testing.T, s *stage) {
		c := s.accept()
		c.registered()
		c.give(assign("short", 1, "sleep", "49ms"), assign("long", 2, "sleep", "51ms"))
		c.result("short", task.Success)
		began := time.Now()
		if p := c.progress(); p.Task != "long" || p.Version != 2 || !p.Start || time.Since(began) > 51*time.Millisecond {
			t.Errorf("%+v after %v", p, time.Since(began))
		}
		c.result("long", task.Success)
		c.ack("short", 1)
		c.ack("long", 2)
		c.leave()
	})
}

func TestOutputIsPassedOn(t *testing.T) {
	staged(t, nil, func(t *testing.T, s *stage) {
		c := s.accept()
		c.registered()
		c.give(assign("t", 1, "print", "raw \x00 bytes", "progress", "of 100"))
		if p := c.progress(); string(p.Log) != "raw \x00 bytes" {
			t.Errorf("%+v", p)
		}
		if p := c.progress(); p.Percent != "40" || p.Message != "of 100" {
			t.Errorf("%+v", p)
		}
		c.result("t", task.Success)
		c.ack("t", 1)
		c.leave()
	})
}

func TestCancel(t *testing.T) {
	staged(t, nil, func(t *testing.T, s *stage) {
		c := s.accept()
		c.registered()
		c.give(assign("runs", 1, "sleep", "1h"), assign("waits", 1))
		c.progress()
		c.send(wire.AppendCancel(nil, wire.Ref{Task: "waits", Version: 1}, ""))
		c.result("waits", task.Stopped)
		c.send(wire.AppendCancel(nil, wire.Ref{Task: "waits", Version: 1}, "")) // its result is on its way
		c.send(wire.AppendCancel(nil, wire.Ref{Task: "other", Version: 1}, ""))
		c.ref(wire.TypeReturned, "other", 1)
		c.send(wire.AppendCancel(nil, wire.Ref{Task: "runs", Version: 9}, "")) // another dispatch
		c.ref(wire.TypeReturned, "runs", 9)
		c.send(wire.AppendCancel(nil, wire.Ref{Task: "runs", Version: 1}, ""))
		c.result("runs", task.Stopped)
		c.ack("runs", 1)
		c.ack("waits", 1)
		if !slices.Equal(s.began, []string{"runs"}) {
			t.Errorf("ran %v", s.began)
		}
		c.leave()
	})
}

func TestRecall(t *testing.T) {
	staged(t, nil, func(t *testing.T, s *stage) {
		c := s.accept()
		c.registered()
		c.give(assign("runs", 1, "sleep", "1s"), assign("waits", 1), assign("stays", 1))
		c.progress()
		for _, id := range []string{"waits", "runs", "never"} {
			c.send(wire.AppendRecall(nil, wire.Ref{Task: id, Version: 1}))
		}
		c.ref(wire.TypeReturned, "waits", 1)
		c.ref(wire.TypeReturned, "never", 1)
		c.result("runs", task.Success)
		c.send(wire.AppendRecall(nil, wire.Ref{Task: "runs", Version: 1})) // has a result: nothing to say
		c.result("stays", task.Success)
		c.ack("runs", 1)
		c.ack("stays", 1)
		c.quiet(time.Second)
		c.leave()
	})
}

func TestResultsAreKeptUntilAcknowledged(t *testing.T) {
	staged(t, nil, func(t *testing.T, s *stage) {
		c := s.accept()
		first := c.registered()
		c.give(assign("a", 1), assign("b", 2), assign("runs", 3, "sleep", "2s", "then-print", "x"), assign("waits", 4))
		c.result("a", task.Success)
		c.result("b", task.Success)
		c.ack("a", 1)
		synctest.Wait()
		c.raw.Close()

		c = s.accept()
		r := c.registered()
		want := []wire.Held{{Task: "runs", Version: 3, Phase: wire.Running}, {Task: "b", Version: 2, Phase: wire.Ended}, {Task: "waits", Version: 4, Phase: wire.Waiting}}
		if !slices.Equal(r.Running, want) || r.Instance != first.Instance || r.Load != 2 {
			t.Errorf("%+v", r)
		}
		c.result("b", task.Success)
		c.send(wire.AppendAck(nil, &wire.Ack{Status: wire.AckStale, Task: "b", Version: 2, Reason: "superseded"})) // dealt with too
		if p := c.progress(); !p.Start {
			t.Errorf("%+v", p)
		}
		synctest.Wait()
		c.raw.Close()

		c = s.accept()
		<-time.After(3 * time.Second) // it ends, and the next, with no link up
		if r := c.registered(); len(r.Running) != 2 {
			t.Errorf("%+v", r.Running) // as it was when it registered
		}
		if p := c.progress(); string(p.Log) != "x" {
			t.Errorf("%+v: output of the time without a link", p)
		}
		c.result("runs", task.Success)
		c.result("waits", task.Success)
		c.ack("runs", 3)
		c.ack("waits", 4)
		c.leave()
		if !slices.Equal(s.began, []string{"a", "b", "runs", "waits"}) {
			t.Errorf("ran %v", s.began)
		}
	})
}

func TestHeartbeats(t *testing.T) {
	staged(t, nil, func(t *testing.T, s *stage) {
		c := s.accept()
		c.registered()
		began := time.Now()
		for i := range 3 {
			c.next(wire.TypeHeartbeat)
			c.send(wire.AppendAck(nil, &wire.Ack{}))
			if got, want := time.Since(began), time.Duration(i+1)*10*time.Second; got != want {
				t.Errorf("beat %d after %v", i, got)
			}
		}
		for _, want := range []time.Duration{40 * time.Second, 45 * time.Second, 50 * time.Second} {
			c.next(wire.TypeHeartbeat)
			if got := time.Since(began); got != want {
				t.Errorf("unanswered beat after %v, want %v", got, want)
			}
		}
		c = s.accept()
		if got := time.Since(began); got < 55*time.Second || got > 56*time.Second {
			t.Errorf("dialled again after %v", got)
		}
		c.registered()
		c.next(wire.TypeHeartbeat)
		c.give(assign("t", 1)) // life as good as an answer
		c.result("t", task.Success)
		c.ack("t", 1)
		c.quiet(time.Minute)
		c.leave()
	})
}

func TestPausesBetweenDials(t *testing.T) {
	var at []time.Time
	refuse := func(o *Options) {
		dial := o.Dial
		o.Dial = func(ctx context.Context) (net.Conn, error) {
			at = append(at, time.Now())
			if len(at) < 10 {
				return nil, errors.New("refused")
			}
			return dial(ctx)
		}
	}
	staged(t, refuse, func(t *testing.T, s *stage) {
		c := s.accept()
		for i := 1; i < len(at); i++ {
			least := min(pauseFirst<<(i-1), pauseMost)
			if gap := at[i].Sub(at[i-1]); gap < least || gap > least*3/2 {
				t.Errorf("pause %d is %v, want %v to %v", i, gap, least, least*3/2)
			}
		}
		c.registered()
		synctest.Wait()
		c.quiet(time.Minute) // a pause counts from the loss, not from when something last happened
		lost := time.Now()
		c.raw.Close()
		c = s.accept()
		if gap := time.Since(lost); gap < pauseFirst || gap > pauseFirst*3/2 {
			t.Errorf("the pause after a register is %v", gap)
		}
		c.registered()
		c.leave()
	})
}

func TestRegisterUnanswered(t *testing.T) {
	staged(t, nil, func(t *testing.T, s *stage) {
		s.accept().next(wire.TypeRegister)
		began := time.Now()
		c := s.accept()
		if got := time.Since(began); got < registerIn || got > registerIn+time.Second {
			t.Errorf("gave up after %v", got)
		}
		c.registered()
		c.leave()
	})
}

func TestTokenRefused(t *testing.T) {
	for _, code := range []wire.Code{wire.CodeUnauthorized, wire.CodeForbidden} {
		staged(t, nil, func(t *testing.T, s *stage) {
			c := s.accept()
			c.next(wire.TypeRegister)
			c.send(wire.AppendError(nil, &wire.Error{Code: code, Message: "wrong token", Fatal: true}))
			if err := s.end(); !errors.Is(err, &wire.Error{Code: code}) {
				t.Errorf("%v", err)
			}
			if strings.Contains(s.log.String(), "secret") {
				t.Error("the token is in the log")
			}
		})
	}
}

func TestProtocol1ControllerIsNoUse(t *testing.T) {
	staged(t, nil, func(t *testing.T, s *stage) {
		c := s.accept()
		c.next(wire.TypeRegister)
		c.send(wire.AppendAck(nil, &wire.Ack{}))
		if end := <-c.queue; end.err == nil {
			t.Error("no end")
		}
		c = s.accept()
		c.registered()
		c.leave()
	})
}

func TestDrain(t *testing.T) {
	for _, how := range []string{"drain", "signal"} {
		staged(t, nil, func(t *testing.T, s *stage) {
			c := s.accept()
			c.registered()
			c.give(assign("runs", 1, "sleep", "1m"), assign("w1", 1), assign("w2", 1))
			c.progress()
			if how == "drain" {
				c.send(wire.AppendDrain(nil, "maintenance"))
			} else {
				s.stop()
				c.withdrawn("u")
			}
			c.ref(wire.TypeReturned, "w1", 1)
			c.ref(wire.TypeReturned, "w2", 1)
			c.give(assign("late", 1))
			c.ref(wire.TypeReturned, "late", 1)
			c.result("runs", task.Success)
			c.quiet(time.Second)
			c.ack("runs", 1)
			if how == "signal" {
				c.send(wire.AppendAck(nil, &wire.Ack{})) // a heartbeat's
				c.give(assign("crossing", 1))
				c.ref(wire.TypeReturned, "crossing", 1)
				c.known()
			}
			c.next(wire.TypeOffline)
			if err := s.end(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A task that crosses the wish to leave is given back before the offline: else
// it would count as lost under this executor, and it was never begun.
func TestStopWhileIdle(t *testing.T) {
	for _, answered := range []bool{true, false} {
		staged(t, nil, func(t *testing.T, s *stage) {
			c := s.accept()
			c.registered()
			synctest.Wait()
			s.stop()
			c.withdrawn("u")
			c.give(assign("crossing", 1))
			c.ref(wire.TypeReturned, "crossing", 1)
			began := time.Now()
			if answered {
				c.known()
			}
			c.next(wire.TypeOffline)
			if took := time.Since(began); took >= leaveWithin == answered {
				t.Errorf("answered %v: gone after %v", answered, took)
			}
			if err := s.end(); err != nil {
				t.Error(err)
			}
		})
	}
}

// With its last result unacknowledged and the link lost, a leaving executor
// comes back only to hand it in.
func TestLeavingRegistersWithoutTypes(t *testing.T) {
	staged(t, nil, func(t *testing.T, s *stage) {
		c := s.accept()
		c.registered()
		c.give(assign("t", 1))
		c.result("t", task.Success)
		s.stop()
		c.withdrawn("u")
		c.raw.Close()
		c = s.accept()
		r, err := wire.ParseRegister(c.next(wire.TypeRegister))
		if err != nil || len(r.Types) > 0 || len(r.Units) > 0 {
			t.Errorf("%+v %v", r, err)
		}
		c.known()
		c.result("t", task.Success)
		c.ack("t", 1)
		c.next(wire.TypeOffline)
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
}

func TestDrainWithoutAcknowledgement(t *testing.T) {
	staged(t, nil, func(t *testing.T, s *stage) {
		c := s.accept()
		c.registered()
		c.give(assign("t", 1))
		c.result("t", task.Success)
		s.stop()
		began := time.Now()
		c.withdrawn("u")
		c.known()
		c.next(wire.TypeOffline)
		if err := s.end(); err == nil || time.Since(began) < leaveWithin {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestAbort(t *testing.T) {
	staged(t, nil, func(t *testing.T, s *stage) {
		c := s.accept()
		c.registered()
		c.give(assign("runs", 1, "sleep", "1h"), assign("waits", 1))
		c.progress()
		s.stop()
		c.withdrawn("u")
		c.ref(wire.TypeReturned, "waits", 1)
		c.quiet(time.Minute)
		close(s.abort)
		c.next(wire.TypeOffline)
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
}

// An executor whose parent and controller are killed at once, with a unit that
// takes its time to end: it neither registers again, under a name that another
// has by now, nor looks for the controller without a pause.
func TestAbortWhileDialing(t *testing.T) {
	staged(t, nil, func(t *testing.T, s *stage) {
		c := s.accept()
		c.registered()
		c.give(assign("runs", 1, "stubborn", "1h"))
		c.progress()
		c.raw.Close()
		time.Sleep(time.Minute) // it has dialed again, and nobody answers yet
		close(s.abort)
		synctest.Wait()
		c = s.accept()
		if m := <-c.queue; m.err == nil {
			t.Errorf("it said %s", m.Append(nil)[4:])
		}
		began := time.Now()
		if err := s.end(); err != nil || time.Since(began) < 50*time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestStopWithoutController(t *testing.T) {
	refuse := func(o *Options) {
		o.Dial = func(ctx context.Context) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
	}
	staged(t, refuse, func(t *testing.T, s *stage) {
		time.Sleep(time.Minute)
		s.stop()
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
}

func TestNonsenseFromTheController(t *testing.T) {
	staged(t, nil, func(t *testing.T, s *stage) {
		c := s.accept()
		c.next(wire.TypeRegister)
		c.give(assign("early", 1))
		c.send(wire.AppendAck(nil, &wire.Ack{Proto: 2}))
		for _, text := range []string{"", "type=task", "type=task\ntask_id=x\ntask_id=y", "type=cancel", "type=ack", "type=nothing", "\xff", "type=error\ncode=malformed\nmessage=m\nfatal=false"} {
			c.send(wire.AppendFrame(nil, []byte(text)))
		}
		c.give(assign("t", 1))
		c.result("t", task.Success)
		c.ack("t", 1)
		c.leave()
	})
}

func TestTakenOver(t *testing.T) {
	staged(t, nil, func(t *testing.T, s *stage) {
		c := s.accept()
		c.registered()
		c.send(wire.AppendError(nil, &wire.Error{Code: wire.CodeUnregistered, Message: "another took the id over", Fatal: true}))
		began := time.Now()
		c = s.accept()
		if time.Since(began) < pauseMost {
			t.Errorf("came back after %v", time.Since(began))
		}
		c.registered()
		c.leave()
	})
}

func TestNewDispatchReplacesTheOld(t *testing.T) {
	staged(t, nil, func(t *testing.T, s *stage) {
		c := s.accept()
		c.registered()
		c.give(assign("runs", 1, "sleep", "1s"), assign("t", 1), assign("t", 2))
		c.progress()
		c.result("runs", task.Success)
		if o := c.result("t", task.Success); o.Version != 2 {
			t.Errorf("%+v", o)
		}
		c.ack("runs", 1)
		c.ack("t", 2)
		c.leave()
	})
}
