package executor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/unit"
	"apollo11/wire"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is an executor with a controller that the test plays, in virtual time.
type stage struct {
	t     *testing.T
	o     Options
	lines chan net.Conn // the controller's ends of new connections
	abort chan struct{}
	stop  context.CancelFunc
	ended chan error
	began []string // tasks in the order they were run
	log   bytes.Buffer
}

// newStage starts an executor with the unit u, whose inputs say what it does:
// sleep, a duration; print, then-print and progress, texts.
func newStage(t *testing.T, change func(*Options)) *stage {
	s := &stage{t: t, lines: make(chan net.Conn), abort: make(chan struct{}), ended: make(chan error, 1)}
	s.o = Options{
		Defaults: unit.Defaults{Timeout: time.Minute, Backoff: 1},
		ID:       "e1", Token: "secret", Units: t.TempDir(), Build: "test", Abort: s.abort, run: s.run,
		Log: slog.New(slog.NewTextHandler(&s.log, nil)),
		Dial: func(context.Context) (net.Conn, error) {
			ours, theirs := net.Pipe()
			s.lines <- theirs
			return ours, nil
		},
	}
	s.unit("u", "execute = 'true'")
	if change != nil {
		change(&s.o)
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() { s.ended <- Run(ctx, s.o) }()
	return s
}

func (s *stage) unit(name, text string) {
	if err := os.WriteFile(filepath.Join(s.o.Units, name+".toml"), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) run(ctx context.Context, a attempt) task.Outcome {
	s.began = append(s.began, a.Task)
	o := task.Outcome{Status: task.Success, Exit: -1, Outputs: a.Inputs}
	for _, v := range a.Inputs {
		switch v.Name {
		case "print", "then-print":
			a.log([]byte(v.Value))
		case "progress":
			a.progress(40, v.Value)
		case "sleep":
			d, _ := time.ParseDuration(v.Value)
			select {
			case <-time.After(d):
			case <-ctx.Done():
				return task.Outcome{Status: task.Stopped, Class: task.ByPerson, Error: "stopped", Exit: -1}
			}
		}
	}
	return o
}

// end waits for Run and gives what it returned.
func (s *stage) end() error { return <-s.ended }

// controller is the other end of one connection.
type controller struct {
	*stage
	conn  *wire.Conn
	raw   net.Conn
	queue chan arrival
}

// arrival is a message, or the end of the connection.
type arrival struct {
	wire.Message
	err error
}

// accept waits for the next connection.
func (s *stage) accept() *controller {
	raw := <-s.lines
	c := &controller{stage: s, raw: raw, conn: wire.NewConn(raw, wire.MaxFrame), queue: make(chan arrival, 1000)}
	go func() {
		for {
			if err := c.conn.Fill(); err != nil {
				c.queue <- arrival{err: err}
				c.conn.Close(0)
				return
			}
			for text, ok := c.conn.Next(); ok; text, ok = c.conn.Next() {
				m, err := wire.ParseMessage(text)
				if err != nil {
					t := fmt.Errorf("%q: %w", text, err)
					c.queue <- arrival{err: t}
					continue
				}
				c.queue <- arrival{Message: *m}
			}
		}
	}()
	return c
}

// next is the next message of a type; others are an error, heartbeats are answered.
func (c *controller) next(want wire.Type) *wire.Message {
	c.t.Helper()
	for {
		select {
		case m := <-c.queue:
			if m.err != nil {
				c.t.Fatalf("connection ended, want %s: %v\n%s", want, m.err, c.log.String())
			}
			if m.Type == wire.TypeHeartbeat && want != wire.TypeHeartbeat {
				c.send(wire.AppendAck(nil, &wire.Ack{}))
				continue
			}
			if m.Type != want {
				c.t.Fatalf("got %s, want %s", m.Append(nil)[4:], want)
			}
			return &m.Message
		case <-time.After(time.Hour):
			c.t.Fatalf("no %s within an hour", want)
		}
	}
}

// quiet checks that nothing but heartbeats comes for a while.
func (c *controller) quiet(d time.Duration) {
	c.t.Helper()
	for over := time.After(d); ; {
		select {
		case m := <-c.queue:
			if m.Type != wire.TypeHeartbeat {
				c.t.Fatalf("got %s %v", m.Append(nil)[4:], m.err)
			}
			c.send(wire.AppendAck(nil, &wire.Ack{}))
		case <-over:
			return
		}
	}
}

func (c *controller) send(frames []byte) {
	c.conn.Append(frames)
	c.conn.Flush()
}

// registered reads the register and accepts it.
func (c *controller) registered() *wire.Register {
	c.t.Helper()
	r, err := wire.ParseRegister(c.next(wire.TypeRegister))
	if err != nil {
		c.t.Fatal(err)
	}
	c.send(wire.AppendAck(nil, &wire.Ack{Proto: 2, Heartbeat: 10 * time.Second}))
	return r
}

func assign(id string, version int, pairs ...string) *task.Assignment {
	a := &task.Assignment{Task: id, Type: "u", Version: task.Version(version), Attempt: 1}
	for i := 0; i < len(pairs); i += 2 {
		a.Inputs = append(a.Inputs, task.Value{Name: pairs[i], Value: pairs[i+1]})
	}
	return a
}

func (c *controller) give(tasks ...*task.Assignment) {
	var frames []byte
	for _, a := range tasks {
		frames = wire.AppendTask(frames, a, 2)
	}
	c.send(frames)
}

func (c *controller) result(id string, status task.Status) *task.Outcome {
	c.t.Helper()
	o, err := wire.ParseResult(c.next(wire.TypeResult), 2)
	if err != nil || o.Task != id || o.Status != status {
		c.t.Fatalf("result %+v %v, want %s %v", o, err, id, status)
	}
	return o
}

func (c *controller) ack(id string, version int) {
	c.send(wire.AppendAck(nil, &wire.Ack{Task: id, Version: task.Version(version)}))
}

func (c *controller) ref(want wire.Type, id string, version int) {
	c.t.Helper()
	got, _, err := wire.ParseRef(c.next(want))
	if err != nil || got != (wire.Ref{Task: id, Version: task.Version(version)}) {
		c.t.Fatalf("%s %+v %v, want %s %d", want, got, err, id, version)
	}
}

func (c *controller) progress() *wire.Progress {
	c.t.Helper()
	p, err := wire.ParseProgress(c.next(wire.TypeProgress))
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

// withdrawn waits until the executor offers nothing any more.
func (c *controller) withdrawn(types ...string) {
	c.t.Helper()
	change, err := wire.ParseTypes(c.next(wire.TypeTypes))
	if err != nil || len(change.Add) > 0 || len(types) > 0 && !slices.Equal(change.Remove, types) {
		c.t.Fatalf("types %+v %v, want %q removed", change, err, types)
	}
}

// known answers a types message.
func (c *controller) known() { c.send(wire.AppendAck(nil, &wire.Ack{Proto: 2, Epoch: 1})) }

// leave stops the executor in order.
func (c *controller) leave() {
	c.t.Helper()
	synctest.Wait() // for what was sent to be taken
	c.stop()
	c.withdrawn()
	c.known()
	c.next(wire.TypeOffline)
	if err := c.end(); err != nil {
		c.t.Error(err)
	}
}

func staged(t *testing.T, change func(*Options), play func(t *testing.T, s *stage)) {
	synctest.Test(t, func(t *testing.T) { play(t, newStage(t, change)) })
}

func TestRegister(t *testing.T) {
	staged(t, nil, func(t *testing.T, s *stage) {
		c := s.accept()
		r := c.registered()
		if r.Exec != "e1" || r.Token != "secret" || r.Proto != 2 || r.Build != "test" || r.PID != os.Getpid() || r.Instance == "" || len(r.Running) != 0 {
			t.Errorf("%+v", r)
		}
		if !slices.Equal(r.Types, []string{"u"}) || len(r.Units) != 1 || r.Units[0].Name != "u" {
			t.Errorf("%v %v", r.Types, r.Units)
		}
		c.leave()
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

func TestRefusedTypes(t *testing.T) {
	staged(t, nil, func(t *testing.T, s *stage) {
		c := s.accept()
		c.next(wire.TypeRegister)
		c.send(wire.AppendAck(nil, &wire.Ack{Proto: 2, Refused: []string{"u: timeout differs: 1m, others 2m"}}))
		c.leave()
		if !strings.Contains(s.log.String(), "u: timeout differs: 1m, others 2m") {
			t.Error(s.log.String())
		}
	})
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

func TestUnknownUnitIsGivenBack(t *testing.T) {
	staged(t, nil, func(t *testing.T, s *stage) {
		c := s.accept()
		c.registered()
		a := assign("t", 1)
		a.Type = "x"
		c.give(a)
		if change, err := wire.ParseTypes(c.next(wire.TypeTypes)); err != nil || !slices.Equal(change.Remove, []string{"x"}) {
			t.Errorf("%+v %v", change, err)
		}
		c.ref(wire.TypeReturned, "t", 1)
		c.leave()
	})
}

func TestUnitsFolderChanges(t *testing.T) {
	staged(t, func(o *Options) { o.Types = []string{"u", "v"} }, func(t *testing.T, s *stage) {
		types := func(c *controller) *wire.TypeChange {
			t.Helper()
			change, err := wire.ParseTypes(c.next(wire.TypeTypes))
			if err != nil {
				t.Fatal(err)
			}
			return change
		}
		c := s.accept()
		c.registered()
		s.unit("v", "execute = 'true'")
		s.unit("not-offered", "execute = 'true'")
		if got := types(c); !slices.Equal(got.Add, []string{"v"}) || len(got.Units) != 1 || len(got.Remove) != 0 {
			t.Errorf("added: %+v", got)
		}
		s.unit("v", "execute = 'true'\nretries = 4")
		if got := types(c); !slices.Equal(got.Add, []string{"v"}) || got.Units[0].Retry.Retries != 4 {
			t.Errorf("changed: %+v", got)
		}
		s.unit("v", "execute = 'true'\nretries = 5x")
		c.quiet(10 * time.Second) // a slip while editing takes no unit out of work
		if !strings.Contains(s.log.String(), "v.toml:2") || !strings.Contains(s.log.String(), "stays as it was") {
			t.Error(s.log.String())
		}
		s.unit("v", "execute = 'true'\nretries = 6")
		time.Sleep(1500 * time.Millisecond)
		s.unit("v", "execute = 'true'\nretries = 77") // while it was about to be read
		if got := types(c); !slices.Equal(got.Add, []string{"v"}) || got.Units[0].Retry.Retries != 77 {
			t.Errorf("changed twice: %+v", got)
		}
		if err := os.RemoveAll(s.o.Units); err != nil { // gone for a moment: nothing is said
			t.Fatal(err)
		}
		c.quiet(10 * time.Second)
		c.leave()
	})
}

func TestManyContractsComeAfterTheRegister(t *testing.T) {
	many := func(o *Options) {
		for i := range 60 {
			text := fmt.Sprintf("execute = 'true'\n[in.a]\ndescription = '%s'\n", strings.Repeat("x", 20<<10))
			if err := os.WriteFile(filepath.Join(o.Units, fmt.Sprintf("m%02d.toml", i)), []byte(text), 0o600); err != nil {
				panic(err)
			}
		}
	}
	staged(t, many, func(t *testing.T, s *stage) {
		c := s.accept()
		if r := c.registered(); len(r.Types) != 0 {
			t.Errorf("%v", r.Types)
		}
		found := map[string]bool{}
		for len(found) < 61 {
			m := c.next(wire.TypeTypes)
			if n := len(m.Append(nil)); n > wire.MaxFrame {
				t.Fatalf("a frame of %d bytes", n)
			}
			change, err := wire.ParseTypes(m)
			if err != nil {
				t.Fatal(err)
			}
			for i, u := range change.Units {
				if found[u.Name] || change.Add[i] != u.Name {
					t.Errorf("%s twice, or not in add", u.Name)
				}
				found[u.Name] = true
			}
		}
		c.leave()
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
