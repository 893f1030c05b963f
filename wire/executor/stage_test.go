package executor

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
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
// sleep and, whatever one says, stubborn, durations; print, then-print and progress, texts.
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
		case "stubborn":
			d, _ := time.ParseDuration(v.Value)
			time.Sleep(d)
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

// types is the next change of what is offered.
func (c *controller) types() *wire.TypeChange {
	c.t.Helper()
	change, err := wire.ParseTypes(c.next(wire.TypeTypes))
	if err != nil {
		c.t.Fatal(err)
	}
	return change
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
