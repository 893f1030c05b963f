package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"apollo11/engine"
	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeEngine answers at once what a script says; it is its own loop.
type fakeEngine struct {
	mu     sync.Mutex
	asked  []engine.Ask
	script func(a engine.Ask) (engine.Answer, error) // a nil answer and error: none
	debug  bool
	panics bool // StateVersion panics
}

func (e *fakeEngine) Post(asks []engine.Ask) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range asks {
		e.asked = append(e.asked, a)
		answer, err := e.answer(a)
		if _, none := answer.(silent); none {
			continue
		}
		if answer != nil || err != nil {
			a.Link.Answer(a.Ref, answer, err)
			a.Link.Flush()
		}
	}
}

func (e *fakeEngine) Do(ctx context.Context, c engine.Command) (engine.Answer, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := engine.Ask{Command: c}
	e.asked = append(e.asked, a)
	return e.answer(a)
}

func (e *fakeEngine) answer(a engine.Ask) (engine.Answer, error) {
	if e.script != nil {
		if answer, err := e.script(a); answer != nil || err != nil {
			return answer, err
		}
	}
	return plain(a)
}

// play sets the script of an engine that is asked over real sockets.
func (e *fakeEngine) play(script func(engine.Ask) (engine.Answer, error)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.script = script
}

// plain is what an engine with nothing in it says.
func plain(a engine.Ask) (engine.Answer, error) {
	switch a.Command.(type) {
	case engine.Register, engine.Types:
		return engine.Registered{Epoch: 3, StateVersion: 17, ConfigVersion: 2, Heartbeat: 10 * time.Second}, nil
	case engine.Result, engine.Returned:
		return engine.Applied{StateVersion: 18}, nil
	case engine.GetState:
		return &view.KeyPage{Version: 17, Keys: []view.Key{{Key: "batch", Value: "7"}}}, nil
	case engine.GetStatus:
		return &view.Status{Epoch: 3, StateVersion: 17}, nil
	case engine.Submit:
		return []view.Submitted{{ID: "t1"}}, nil
	case engine.Pause, engine.Drain, engine.Debug:
		return engine.Done{}, nil
	case engine.GetTask:
		return nil, engine.ErrNotFound
	case engine.Ready, engine.Progress, engine.Offline, engine.Disconnected:
		return nil, nil
	}
	return nil, errors.New("not in the script")
}

func (e *fakeEngine) StateVersion() uint64 {
	if e.panics {
		panic("boom")
	}
	return 17
}

func (e *fakeEngine) Debugging() bool { return e.debug }

// commands is what was asked so far.
func (e *fakeEngine) commands() []engine.Command {
	e.mu.Lock()
	defer e.mu.Unlock()
	var list []engine.Command
	for _, a := range e.asked {
		list = append(list, a.Command)
	}
	return list
}

// link is the Link of the first Register.
func (e *fakeEngine) link() engine.Link {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.asked {
		if _, ok := a.Command.(engine.Register); ok {
			return a.Link
		}
	}
	return nil
}

// find is the first command of a type.
func find[T engine.Command](t *testing.T, e *fakeEngine) T {
	t.Helper()
	for _, c := range e.commands() {
		if got, ok := c.(T); ok {
			return got
		}
	}
	var none T
	t.Fatalf("no %T was asked, only %v", none, e.commands())
	return none
}

// pipes is a listener whose connections are made in memory.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

// rig is a server with a fake engine, and what it logged.
type rig struct {
	t      *testing.T
	engine *fakeEngine
	pipes  *pipes // nil: a real socket
	server *Server
	log    *logBuffer
}

type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// newRig serves in memory, or on a loopback socket if tcp is set.
func newRig(t *testing.T, tcp bool, o Options) *rig {
	t.Helper()
	r := &rig{t: t, engine: &fakeEngine{}, log: &logBuffer{}}
	o.Engine = r.engine
	o.Log = slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if tcp {
		o.Addr = "127.0.0.1:0"
	} else {
		r.pipes = newPipes()
		o.Listener = r.pipes
	}
	var err error
	if r.server, err = Listen(o); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- r.server.Serve() }()
	t.Cleanup(func() { r.stop(served) })
	return r
}

func (r *rig) stop(served chan error) {
	r.server.Stop()
	if err := <-served; err != nil {
		r.t.Errorf("Serve: %v", err)
	}
	if n := len(r.server.sessions) + len(r.server.strange) + r.server.stranger; n != 0 {
		r.t.Errorf("%d sessions are still counted after Stop", n)
	}
	if n := r.server.counts.Panics.Load(); n != 0 && !r.engine.panics {
		r.t.Errorf("%d panics:\n%s", n, r.log)
	}
}

// peer is the other end of a connection.
type peer struct {
	t    *testing.T
	nc   net.Conn
	conn *wire.Conn
}

func (r *rig) dial() *peer {
	r.t.Helper()
	var nc net.Conn
	if r.pipes != nil {
		near, far := net.Pipe()
		r.pipes.conns <- far
		nc = near
	} else {
		var err error
		if nc, err = net.Dial("tcp", r.server.Addr().String()); err != nil {
			r.t.Fatal(err)
		}
	}
	p := &peer{r.t, nc, wire.NewConn(nc, wire.MaxFrame)}
	r.t.Cleanup(func() { p.conn.Close(0) })
	return p
}

// send sends texts as frames, all in one write.
func (p *peer) send(texts ...string) {
	p.t.Helper()
	var frames []byte
	for _, text := range texts {
		frames = wire.AppendFrame(frames, []byte(text))
	}
	p.raw(frames)
}

func (p *peer) raw(frames []byte) {
	p.t.Helper()
	p.conn.Append(frames)
	if err := p.conn.Wait(); err != nil {
		p.t.Fatalf("send: %v", err)
	}
}

// next is the next message.
func (p *peer) next() *wire.Message {
	p.t.Helper()
	text, err := p.read()
	if err != nil {
		p.t.Fatalf("nothing came: %v", err)
	}
	m, err := wire.ParseMessage([]byte(text))
	if err != nil {
		p.t.Fatalf("%q: %v", text, err)
	}
	return m
}

func (p *peer) read() (string, error) {
	for {
		if text, ok := p.conn.Next(); ok {
			return string(text), nil
		}
		if err := p.conn.Fill(); err != nil {
			return "", err
		}
	}
}

// want is the next message, which must hold these lines.
func (p *peer) want(lines ...string) *wire.Message {
	p.t.Helper()
	m := p.next()
	for _, line := range lines {
		key, value, _ := strings.Cut(line, "=")
		if got, ok := m.Get(key); !ok || got != value {
			p.t.Errorf("want %s in %q", line, m.Append(nil))
		}
	}
	return m
}

// wantEnd fails if anything but the end comes.
func (p *peer) wantEnd() {
	p.t.Helper()
	text, err := p.read()
	if err == nil {
		p.t.Errorf("%q came where the end was due", text)
	} else if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) && !strings.Contains(err.Error(), "reset") {
		p.t.Errorf("ended in %v", err)
	}
}

const (
	registerOne = "type=register\nexecutor_id=e1\ntask_types=echo\nload=0"
	registerTwo = registerOne + "\nproto=2\ninstance=i1"
	hello       = "type=control\nop=hello\nactor=ann"
)

func (r *rig) executor(register string) *peer {
	r.t.Helper()
	p := r.dial()
	p.send(register)
	p.want("type=ack", "status=ok", "state_version=17")
	return p
}

func (r *rig) operator() *peer {
	r.t.Helper()
	p := r.dial()
	p.send(hello)
	p.want("type=ack", "status=ok")
	return p
}

func taskVersion(v uint64) task.Version { return task.Version(v) }
