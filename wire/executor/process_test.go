package executor

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/unit"
	"apollo11/wire"
)

// peer is the controller's end of a real connection to an executor that runs
// real processes.
type peer struct {
	t     testing.TB
	conn  *wire.Conn
	msg   wire.Message
	stop  context.CancelFunc
	ended chan error
	work  string
}

func newPeer(t testing.TB, manifest string, run func(context.Context, attempt) task.Outcome) *peer {
	units, work := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(units, "u.toml"), []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, stop := context.WithCancel(context.Background())
	p := &peer{t: t, stop: stop, ended: make(chan error, 1), work: work}
	go func() {
		p.ended <- Run(ctx, Options{
			Dial:     func(ctx context.Context) (net.Conn, error) { return wire.DialTCP(ctx, listener.Addr().String()) },
			run:      run,
			Units:    units,
			Work:     work,
			Environ:  os.Environ(),
			Defaults: unit.Defaults{Timeout: 20 * time.Second, Grace: 100 * time.Millisecond, Backoff: 1, Env: []string{"PATH"}},
		})
	}()
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	p.conn = wire.NewConn(conn, wire.MaxFrame)
	p.next(wire.TypeRegister)
	p.send(wire.AppendAck(nil, &wire.Ack{Proto: 2}))
	return p
}

func (p *peer) send(frames []byte) {
	p.conn.Append(frames)
	p.conn.Flush()
}

// next is the next message of a type; others are passed over.
func (p *peer) next(want wire.Type) *wire.Message {
	p.t.Helper()
	p.conn.Within(30 * time.Second)
	for {
		for text, ok := p.conn.Next(); ok; text, ok = p.conn.Next() {
			if err := p.msg.Parse(text); err != nil {
				p.t.Fatal(err)
			}
			if p.msg.Type == want {
				return &p.msg
			}
		}
		if err := p.conn.Fill(); err != nil {
			p.t.Fatalf("%v, want %s", err, want)
		}
	}
}

// logs waits for what the unit prints.
func (p *peer) logs(want string) {
	p.t.Helper()
	for {
		m, err := wire.ParseProgress(p.next(wire.TypeProgress))
		if err != nil {
			p.t.Fatal(err)
		}
		if strings.Contains(string(m.Log), want) {
			return
		}
	}
}

// leave ends the executor and checks that nothing of it is left on disk.
func (p *peer) leave() {
	p.t.Helper()
	p.stop()
	p.next(wire.TypeTypes)
	p.send(wire.AppendAck(nil, &wire.Ack{Proto: 2}))
	p.next(wire.TypeOffline)
	p.conn.Close(0)
	if err := <-p.ended; err != nil {
		p.t.Error(err)
	}
	if left, err := os.ReadDir(p.work); err != nil || len(left) > 0 {
		p.t.Errorf("left on disk: %v %v", left, err)
	}
}

func TestRealUnit(t *testing.T) {
	p := newPeer(t, `execute = '''printf 'a\377'; echo "20 half" >> "$APOLLO_PROGRESS"; echo "sum=$((IN_A + CTX_B))" >> "$APOLLO_OUTPUT"; echo "add.total=1" >> "$APOLLO_STATE"'''
context = ["b"]
[in.a]
type = "int"`, nil)
	p.send(wire.AppendTask(nil, &task.Assignment{
		Task: "t", Type: "u", Version: 1, Attempt: 1,
		Inputs: task.Values{{Name: "a", Value: "40"}}, Context: task.Values{{Name: "b", Value: "2"}},
	}, 2))
	p.logs("a\xff")
	o, err := wire.ParseResult(p.next(wire.TypeResult), 2)
	if err != nil || o.Status != task.Success || len(o.Changes) != 1 || o.Changes[0] != (task.Change{Op: task.Add, Key: "total", Value: "1"}) {
		t.Errorf("%+v %v", o, err)
	}
	if sum, _ := o.Outputs.Get("sum"); sum != "42" {
		t.Errorf("%+v", o)
	}
	p.send(wire.AppendAck(nil, &wire.Ack{Task: "t", Version: 1}))
	p.leave()
}

func TestRealCancel(t *testing.T) {
	p := newPeer(t, `execute = '''echo "1 up" >> "$APOLLO_PROGRESS"; exec sleep 40'''`+"\ncleanup = 'echo cleaned'", nil)
	p.send(wire.AppendTask(nil, &task.Assignment{Task: "t", Type: "u", Version: 1, Attempt: 1}, 2))
	for up := false; !up; {
		m, err := wire.ParseProgress(p.next(wire.TypeProgress))
		if err != nil {
			t.Fatal(err)
		}
		up = m.Message == "up"
	}
	p.send(wire.AppendCancel(nil, wire.Ref{Task: "t", Version: 1}, "by a test"))
	p.logs("cleaned")
	if o, err := wire.ParseResult(p.next(wire.TypeResult), 2); err != nil || o.Status != task.Stopped || o.Signal != "SIGTERM" {
		t.Errorf("%+v %v", o, err)
	}
	p.send(wire.AppendAck(nil, &wire.Ack{Task: "t", Version: 1}))
	p.leave()
}

// BenchmarkExecutor is a task through an executor that has work waiting: with
// /bin/true, and with nothing to run, so that the difference is the process;
// see BenchmarkTrue in engine/unit for what a bare one takes.
func BenchmarkExecutor(b *testing.B) {
	b.Run("true", func(b *testing.B) { benchmarkExecutor(b, nil) })
	b.Run("nothing", func(b *testing.B) {
		benchmarkExecutor(b, func(context.Context, attempt) task.Outcome { return task.Outcome{Status: task.Success} })
	})
}

func benchmarkExecutor(b *testing.B, run func(context.Context, attempt) task.Outcome) {
	p := newPeer(b, `engine = "exec"`+"\nexecute = ['/bin/true']", run)
	const depth = 20
	sent, id := 0, func(i int) string { return fmt.Sprint("t", i) }
	give := func() {
		if sent < b.N {
			p.conn.Append(wire.AppendTask(nil, &task.Assignment{Task: id(sent), Type: "u", Version: 1, Attempt: 1}, 2))
			sent++
		}
	}
	b.ResetTimer()
	for range depth {
		give()
	}
	p.conn.Flush()
	for i := range b.N {
		o, err := wire.ParseResult(p.next(wire.TypeResult), 2)
		if err != nil || o.Status != task.Success || o.Task != id(i) {
			b.Fatalf("%+v %v", o, err)
		}
		p.conn.Append(wire.AppendAck(nil, &wire.Ack{Task: o.Task, Version: 1}))
		give()
		p.conn.Flush()
	}
	b.StopTimer()
	p.leave()
}
