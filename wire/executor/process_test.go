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

	register *wire.Register
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
			Share:    filepath.Join(units, "share"),
			Work:     work,
			Environ:  os.Environ(),
			Defaults: unit.Defaults{Timeout: 20 * time.Second, Grace: 20 * time.Second, Backoff: 1, Env: []string{"PATH"}},
		})
	}()
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	p.conn = wire.NewConn(conn, wire.MaxFrame)
	p.register, err = wire.ParseRegister(p.next(wire.TypeRegister))
	if err != nil {
		t.Fatal(err)
	}
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

// does gives a task and takes its result.
func (p *peer) does(a task.Assignment) *task.Outcome {
	p.t.Helper()
	a.Type, a.Version, a.Attempt = "u", 1, 1
	p.send(wire.AppendTask(nil, &a, 2))
	o, err := wire.ParseResult(p.next(wire.TypeResult), 2)
	if err != nil || o.Task != a.Task {
		p.t.Fatalf("%+v %v", o, err)
	}
	p.send(wire.AppendAck(nil, &wire.Ack{Task: a.Task, Version: 1}))
	return o
}

// A task's run, sample and undo come to the unit, and its files and the hash of
// what ran come back.
func TestRealFiles(t *testing.T) {
	p := newPeer(t, `execute = """if test "$IN_FILE"; then cp "$IN_FILE" data; else echo "$APOLLO_RUN $APOLLO_SAMPLE" >data; fi
echo file=data >>"$APOLLO_OUTPUT"; cat data"""
undo = 'echo "undone $(cat "$OUT_FILE")"'
[in.file]
type = "path"
[out.file]
type = "path"`, nil)
	made := p.does(task.Assignment{Task: "r-1:a", Run: "r-1", Sample: 7})
	value, _ := made.Outputs.Get("file")
	f, handed, err := task.ParseFile(value)
	if made.Status != task.Success || !handed || err != nil || f.Share == "" || f.Share != p.register.Share || !strings.HasPrefix(f.Name, "r-1/") {
		t.Fatalf("%+v, register with share %q", made, p.register.Share)
	}
	if hash, _ := p.register.Hashes.Get("u"); made.UnitHash == "" || made.UnitHash != hash {
		t.Errorf("unit hash %q, registered %q", made.UnitHash, hash)
	}
	inputs := task.Values{{Name: "file", Value: value}}
	p.send(wire.AppendTask(nil, &task.Assignment{Task: "r-1:b", Run: "r-1", Type: "u", Version: 1, Attempt: 1, Inputs: inputs}, 2))
	p.logs("r-1 7\n")
	o, err := wire.ParseResult(p.next(wire.TypeResult), 2)
	if err != nil || o.Status != task.Success {
		t.Errorf("a consumer: %+v %v", o, err)
	}
	p.send(wire.AppendAck(nil, &wire.Ack{Task: o.Task, Version: 1}))
	f.Sum = strings.Repeat("0", 64)
	inputs[0].Value = f.String()
	if o := p.does(task.Assignment{Task: "r-1:c", Run: "r-1", Inputs: inputs}); o.Class != task.InputInvalid {
		t.Errorf("another file than was handed on: %+v", o)
	}
	p.send(wire.AppendTask(nil, &task.Assignment{Task: "r-2:a", Run: "r-2", Type: "u", Version: 1, Attempt: 1, Undo: true, Outputs: made.Outputs}, 2))
	p.logs("undone r-1 7\n")
	if o, err := wire.ParseResult(p.next(wire.TypeResult), 2); err != nil || o.Status != task.Success || len(o.Outputs) > 0 {
		t.Errorf("undo: %+v %v", o, err)
	}
	p.send(wire.AppendAck(nil, &wire.Ack{Task: "r-2:a", Version: 1}))
	p.leave()
}

// A resident unit's changes come while it runs, and when the executor leaves, it
// is ended in order and its last words come too.
func TestRealResident(t *testing.T) {
	p := newPeer(t, `kind = "resident"
execute = """trap 'echo set.last=words >>"$APOLLO_PROGRESS"; exit 0' TERM
echo add.n=2 >>"$APOLLO_PROGRESS"; echo set.k=v >>"$APOLLO_PROGRESS"
while :; do sleep 0.01; done"""`, nil)
	p.send(wire.AppendTask(nil, &task.Assignment{Task: "t", Type: "u", Version: 3, Attempt: 1}, 2))
	p.changes("add.n=2", "set.k=v")
	p.stop()
	p.next(wire.TypeTypes)
	p.send(wire.AppendAck(nil, &wire.Ack{Proto: 2}))
	p.changes("set.last=words")
	p.next(wire.TypeOffline)
	p.conn.Close(0)
	if err := <-p.ended; err != nil {
		t.Error(err)
	}
}

// changes waits for changes, in however many messages.
func (p *peer) changes(want ...string) {
	p.t.Helper()
	for len(want) > 0 {
		m, err := wire.ParseProgress(p.next(wire.TypeProgress))
		if err != nil {
			p.t.Fatal(err)
		}
		for _, c := range m.Changes {
			if c != change(want[0]) || m.Version != 3 {
				p.t.Fatalf("%+v at %d, want %s", c, m.Version, want[0])
			}
			want = want[1:]
		}
	}
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
