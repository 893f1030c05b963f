package controller_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// gate is a unit that says where it runs, and waits to be let through.
const gate = `
name = "gate"
engine = "shell"
execute = 'echo "$$ $APOLLO_VERSION" >>"$HOME/begun"; until test -e "$HOME/open"; do sleep 0.02; done; echo n=1 >>"$APOLLO_OUTPUT"'
env = ["PATH", "HOME"]
timeout = "60s"
`

// gateWorld has a controller and the unit.
func gateWorld(t *testing.T, config string) (*world, *process) {
	w := newWorld(t, config)
	w.write("units/gate.toml", gate)
	w.Cleanup(func() { w.write("open", "") }) // what still waits at the gate goes
	return w, w.controller()
}

// begun is how many attempts have begun to run.
func (w *world) begun() int { return strings.Count(w.read("begun"), "\n") }

// begins submits a task of the unit and waits until it runs.
func (w *world) begins(id string) {
	w.Helper()
	before := w.begun()
	w.does("submit", "gate", "--id", id)
	eventually(w.TB, id+" begins", func() bool { return w.begun() > before })
	w.becomes(id, "running")
}

// noLeftovers: executors that left in order clean up behind them.
func (w *world) noLeftovers() {
	w.Helper()
	entries, err := os.ReadDir(w.path("tmp"))
	w.must(err)
	for _, e := range entries {
		w.Errorf("left behind: %s", e.Name())
	}
}

// An executor that is told to end finishes what it runs, says that it goes, and
// leaves nothing behind.
func TestExecutorTerm(t *testing.T) {
	t.Parallel()
	w, c := gateWorld(t, brisk)
	e := w.executor("left")
	w.begins("a")
	e.signal(syscall.SIGTERM)
	w.does("submit", "gate", "--id", "b") // nobody's, until another comes
	w.write("open", "")
	if code := e.wait(); code != 0 {
		t.Errorf("it ended with code %d", code)
	}
	if d := w.task("a"); d.State != "succeeded" || d.Executor != "left" || len(d.Attempts) != 1 {
		t.Errorf("its task is %s on %s, attempt %d", d.State, d.Executor, d.Attempt)
	}
	if d := w.task("b"); d.State != "queued" || d.Crashes != 0 {
		t.Errorf("the task after it is %s", d.State)
	}
	if state := w.state("left"); state != "offline" {
		t.Errorf("it is %s", state)
	}
	w.noLeftovers()
	right := w.executor("right")
	w.becomes("b", "succeeded")
	right.stop()
	c.stop()
	w.noLeftovers()
	w.verified()
}

// Told twice, it ends what it runs and hands it back; nothing counts a crash.
func TestExecutorTermTwice(t *testing.T) {
	t.Parallel()
	w, c := gateWorld(t, brisk)
	e := w.executor("left")
	w.begins("a")
	e.signal(syscall.SIGTERM)
	eventually(t, "the first signal is taken", func() bool { return strings.Contains(w.read("left.out"), "leaving") })
	e.signal(syscall.SIGTERM)
	e.wait()
	if d := w.task("a"); d.State != "queued" || d.Crashes != 0 {
		t.Errorf("its task is %s, crashes %d", d.State, d.Crashes)
	}
	w.noLeftovers()
	w.dead(w.begunPIDs()...)
	w.write("open", "")
	w.executor("right")
	w.becomes("a", "succeeded")
	c.stop()
	w.verified()
}

// begunPIDs are the processes that stood at the gate.
func (w *world) begunPIDs() (pids []int) {
	for line := range strings.Lines(w.read("begun")) {
		pid, err := strconv.Atoi(strings.Fields(line)[0])
		w.must(err)
		pids = append(pids, pid)
	}
	return pids
}

// dead waits until processes are gone, or wait to be reaped.
func (w *world) dead(pids ...int) {
	w.Helper()
	if len(pids) == 0 {
		w.Fatal("no process to look for")
	}
	for _, pid := range pids {
		eventually(w.TB, "the end of process "+strconv.Itoa(pid), func() bool {
			stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
			return err != nil && syscall.Kill(pid, 0) != nil || strings.Contains(string(stat), ") Z ")
		})
	}
}

// An executor that is killed under a task costs it one crash; another does it.
func TestExecutorKilled(t *testing.T) {
	t.Parallel()
	w, c := gateWorld(t, brisk)
	e := w.executor("left")
	w.begins("a")
	e.kill()
	right := w.executor("right")
	eventually(t, "the other begins", func() bool { return w.begun() == 2 })
	if d := w.task("a"); d.Crashes != 1 {
		t.Errorf("it counts %d crashes", d.Crashes)
	}
	w.write("open", "")
	d := w.becomes("a", "succeeded")
	if d.Executor != "right" || len(d.Attempts) != 2 || d.Attempts[0].Outcome != "executor_lost" {
		t.Errorf("on %s, attempts %+v", d.Executor, d.Attempts)
	}
	if n := w.key("n"); n != "1" {
		t.Errorf("the state counted %s", n)
	}
	right.stop()
	c.stop()
	w.verified()
}

// The controller goes and comes back while an executor works: the task is not
// run again, and its result counts at the version it was sent at.
func TestControllerRestart(t *testing.T) {
	for name, end := range map[string]func(*process){"kill": (*process).kill, "term": (*process).stop} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, c := gateWorld(t, brisk)
			w.executor("left")
			w.begins("a")
			before := w.task("a")
			end(c)
			c = w.controller()
			w.registered("left")
			if d := w.task("a"); d.State != "running" || d.Version != before.Version {
				t.Errorf("after the restart it is %s at version %d, was %d", d.State, d.Version, before.Version)
			}
			w.write("open", "")
			d := w.becomes("a", "succeeded")
			if d.Version != before.Version || d.Crashes != 0 || len(d.Attempts) != 1 || w.begun() != 1 {
				t.Errorf("version %d, was %d; attempts %+v; begun %d times", d.Version, before.Version, d.Attempts, w.begun())
			}
			if n := w.key("n"); n != "1" {
				t.Errorf("the state counted %s", n)
			}
			c.stop()
			w.verified()
		})
	}
}

// The result comes while the controller is away: it is kept until it is back.
func TestResultWhileAway(t *testing.T) {
	t.Parallel()
	w, c := gateWorld(t, brisk)
	w.executor("left")
	w.begins("a")
	before := w.task("a")
	c.kill()
	w.write("open", "")
	w.dead(w.begunPIDs()...)
	c = w.controller()
	if d := w.becomes("a", "succeeded"); d.Version != before.Version || w.begun() != 1 || w.key("n") != "1" {
		t.Errorf("version %d, was %d; begun %d times; n=%s", d.Version, before.Version, w.begun(), w.key("n"))
	}
	c.stop()
	w.verified()
}

// A frozen executor is given up, and what it says when it wakes changes nothing.
func TestExecutorFrozen(t *testing.T) {
	t.Parallel()
	w, c := gateWorld(t, hasty)
	e := w.executor("left")
	w.begins("a")
	e.signal(syscall.SIGSTOP)
	w.overtaken("a", "left")
	e.signal(syscall.SIGCONT)
	w.tooLate("a", "left")
	c.stop()
	w.verified()
}

// overtaken waits until an executor is given up, lets the task through, and has
// another do it.
func (w *world) overtaken(id, exec string) {
	w.Helper()
	eventually(w.TB, exec+" is given up", func() bool { return w.state(exec) == "offline" })
	w.executor("right")
	eventually(w.TB, "the other begins", func() bool { return w.begun() == 2 })
	if d := w.task(id); d.Crashes != 1 {
		w.Errorf("%s counts %d crashes", id, d.Crashes)
	}
	w.write("open", "")
	if d := w.becomes(id, "succeeded"); d.Executor != "right" {
		w.Errorf("%s was done by %s", id, d.Executor)
	}
	w.dead(w.begunPIDs()...)
}

// tooLate waits for a result in the late ledger, and finds the state unchanged.
func (w *world) tooLate(id, exec string) {
	w.Helper()
	before := w.task(id)
	eventually(w.TB, "a late result", func() bool { return len(w.late()) > 0 })
	late := w.late()
	l := late[0]
	if len(late) != 1 || l.Task != id || l.Executor != exec || l.Version == before.Version || l.Reason != "superseded" || !strings.Contains(l.Effect, "n=1") {
		w.Errorf("the late ledger: %+v", late)
	}
	if after := w.task(id); after.State != "succeeded" || after.Version != before.Version || w.key("n") != "1" {
		w.Errorf("it is %s at version %d, n=%s", after.State, after.Version, w.key("n"))
	}
	w.registered(exec) // and it works on
}

// A connection that is open at one end only: the executor is given up, its result
// comes late.
func TestHalfOpen(t *testing.T) {
	t.Parallel()
	w, c := gateWorld(t, hasty)
	p := newProxy(t, w.addr())
	w.executor("left", "--addr", p.listener.Addr().String())
	w.begins("a")
	p.hole()
	w.overtaken("a", "left")
	p.heal()
	w.tooLate("a", "left")
	c.stop()
	w.verified()
}

// proxy stands between executors and the controller.
type proxy struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	black bool // what comes is swallowed, and nothing is closed
	open  []net.Conn
	group sync.WaitGroup
}

func newProxy(t *testing.T, to string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, to: to}
	p.group.Go(p.accept)
	t.Cleanup(func() {
		l.Close()
		p.heal()
		p.group.Wait()
	})
	return p
}

func (p *proxy) accept() {
	for {
		a, err := p.listener.Accept()
		if err != nil {
			return
		}
		b, err := net.Dial("tcp", p.to)
		if err != nil {
			a.Close()
			continue
		}
		p.mu.Lock()
		p.open = append(p.open, a, b)
		p.mu.Unlock()
		p.group.Go(func() { p.pass(a, b) })
		p.group.Go(func() { p.pass(b, a) })
	}
}

func (p *proxy) pass(from, to net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		black := p.black
		p.mu.Unlock()
		if n > 0 && !black {
			to.Write(buf[:n])
		}
		if err != nil {
			if !black { // a black hole does not tell
				to.Close()
			}
			return
		}
	}
}

func (p *proxy) hole() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.black = true
}

// heal closes what was open and lets new connections through.
func (p *proxy) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.black = false
	for _, c := range p.open {
		c.Close()
	}
	p.open = nil
}

// A unit that ignores TERM and hides a grandchild in a session of its own dies
// whole when it is cancelled.
func TestCancelTree(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("setsid is not installed")
	}
	w := newWorld(t, brisk)
	w.write("units/stubborn.toml", `
name = "stubborn"
engine = "shell"
execute = '''trap "" TERM INT HUP
setsid sh -c 'trap "" TERM INT HUP; echo $$ >>"$HOME/begun"; while :; do sleep 1; done' &
(trap "" TERM; echo $(exec sh -c 'echo $PPID') >>"$HOME/begun"; while :; do sleep 1; done) &
echo $$ >>"$HOME/begun"
while :; do echo still here; sleep 1; done'''
env = ["PATH", "HOME"]
grace = "100ms"
`)
	c := w.controller()
	e := w.executor("left")
	w.does("submit", "stubborn", "--id", "a")
	eventually(t, "the whole tree", func() bool { return w.begun() == 3 })
	for _, pid := range w.begunPIDs() {
		if syscall.Kill(pid, 0) != nil {
			t.Fatalf("process %d does not run: this proves nothing", pid)
		}
	}
	w.does("cancel", "a", "--reason", "enough")
	w.dead(w.begunPIDs()...)
	if d := w.becomes("a", "cancelled"); !strings.Contains(d.Error, "enough") {
		t.Errorf("it was cancelled for %q", d.Error)
	}
	eventually(t, "the executor is free", func() bool { return w.state("left") == "idle" })
	e.stop()
	w.noLeftovers()
	c.stop()
	w.verified()
}

// An executor of protocol 1 that leaves under a task hands it back at once.
func TestForeignLeaves(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brisk)
	c := w.controller()
	e := w.foreigner("foreign", look(t, "python3"), "executor.py")
	w.does("submit", "sleep", "--id", "a", "seconds=600")
	w.becomes("a", "assigned")
	e.signal(syscall.SIGTERM)
	if d := w.becomes("a", "queued"); d.Crashes != 0 {
		t.Errorf("an executor that says goodbye counted %d crashes", d.Crashes)
	}
	c.stop()
	w.verified()
}
