// Package controller_test runs the real program: real processes, real files,
// real signals.
//
// go test ./wire/controller                     what every change is held to
// go test ./wire/controller -run Kills -kills 1000 -timeout 20m
// go test ./wire/controller -full -timeout 10m  the long and the measured cases
package controller_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"apollo11/engine"
	"apollo11/engine/view"
	"apollo11/snapshot"
	"apollo11/wire"
)

var (
	kills = flag.Int("kills", 100, "so many times the controller is killed under load")
	seed  = flag.Uint64("seed", 0, "of the moments and the load; 0: another one each time")
	full  = flag.Bool("full", false, "the long and the measured cases too")
	built = flag.String("program", "", "test this binary, such as one built with -race; empty: build it")
)

// program is the binary under test.
var program string

func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := os.MkdirTemp("", "apollo11-test-")
	if err == nil {
		err = os.Chmod(dir, 0o755) // one case runs it as another user
	}
	if program = *built; program == "" && err == nil {
		program = filepath.Join(dir, "apollo11")
		build := exec.Command("go", "build", "-o", program, "apollo11")
		build.Stderr = os.Stderr
		err = build.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// patience is how long is waited for what other processes do: far more than it
// takes, for the machine may be busy.
const patience = 30 * time.Second

// eventually asks again and again until it is told yes.
func eventually(t testing.TB, what string, yes func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !yes(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// world is a folder with a configuration, and the processes that run in it.
type world struct {
	testing.TB
	dir string
}

// brisk holds heartbeats and retries for less than a moment; state keys are as
// the document has them.
const brisk = `
listen = "127.0.0.1:0"
[local]
executors = 0
[heartbeat]
interval = "500ms"
timeout = "15s"
reconnect_grace = "500ms"
[wire]
hold = "200ms"
[unit]
retry_interval = "10ms"
[state.next_batch]
type = "int"
from = "next_batch"
apply = "set"
min = 0
[state.output_total]
type = "int"
from = "output_count"
apply = "add"
[state.n]
type = "int"
from = "n"
apply = "add"
`

// hasty also gives up executors after 2 s.
var hasty = strings.Replace(brisk, `timeout = "15s"`, `timeout = "2s"`, 1)

func newWorld(t testing.TB, config string) *world {
	w := &world{t, t.TempDir()}
	w.write("config.toml", config)
	for _, name := range []string{"tmp", "units"} {
		w.must(os.Mkdir(filepath.Join(w.dir, name), 0o755))
	}
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) write(name, text string) { w.must(os.WriteFile(w.path(name), []byte(text), 0o600)) }

// read is a file's text, empty as long as it is not there.
func (w *world) read(name string) string {
	b, err := os.ReadFile(w.path(name))
	if !errors.Is(err, os.ErrNotExist) {
		w.must(err)
	}
	return string(b)
}

func (w *world) there(name string) bool {
	_, err := os.Stat(w.path(name))
	return err == nil
}

func (w *world) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Dir = w.dir
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir, "TMPDIR=" + w.path("tmp"), "TZ=UTC", "PYTHONUTF8=1"}
	return c
}

// process is one of the world's, until the test ends at the latest.
type process struct {
	*world
	cmd   *exec.Cmd
	out   string // file of what it printed
	ended chan struct{}
}

// start starts the program, or with run another one; name is that of its output.
func (w *world) start(name string, args ...string) *process {
	return w.run(name, w.command(program, args...))
}

func (w *world) run(name string, c *exec.Cmd) *process {
	w.Helper()
	p := &process{w, c, w.path(name + ".out"), make(chan struct{})}
	out, err := os.OpenFile(p.out, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	w.must(err)
	defer out.Close()
	c.Stdout, c.Stderr = out, out
	w.must(c.Start())
	go func() {
		c.Wait()
		close(p.ended)
	}()
	w.Cleanup(func() {
		p.kill()
		if w.Failed() {
			w.Logf("%s printed:\n%s", name, tail(w.read(name+".out")))
		}
	})
	return p
}

func tail(text string) string { return text[max(0, len(text)-3000):] }

func (p *process) signal(s syscall.Signal) {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.Fatal(err)
	}
}

// kill is kill -9.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.ended
}

// wait is the exit code, when it has ended by itself or by a signal sent before.
func (p *process) wait() int {
	p.Helper()
	eventually(p.TB, "the end of "+filepath.Base(p.out), p.gone)
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) gone() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// stop ends it in order.
func (p *process) stop() {
	p.Helper()
	p.signal(syscall.SIGTERM)
	if code := p.wait(); code != 0 {
		p.Fatalf("%s ended with code %d", filepath.Base(p.out), code)
	}
}

// controller starts a controller and waits until it takes commands.
func (w *world) controller(args ...string) *process {
	w.Helper()
	p := w.start("controller", w.quiet(args)...)
	p.ready()
	return p
}

func (w *world) quiet(args []string) []string {
	os.Remove(w.path("data/ADDR")) // one that was killed left it
	return append([]string{"--no-tui"}, args...)
}

func (p *process) ready() {
	p.Helper()
	eventually(p.TB, "a controller", func() bool {
		if p.gone() {
			p.Fatalf("the controller ended with code %d: %s", p.cmd.ProcessState.ExitCode(), tail(p.read("controller.out")))
		}
		return p.there("data/ADDR")
	})
}

func (w *world) addr() string { return strings.TrimSpace(w.read("data/ADDR")) }

// executor starts an executor and waits until it is registered.
func (w *world) executor(id string, args ...string) *process {
	w.Helper()
	p := w.start(id, append([]string{"exec", "--units", "units", "--name", id}, args...)...)
	w.registered(id)
	return p
}

func (w *world) registered(id string) {
	w.Helper()
	eventually(w.TB, id+" registers", func() bool { return w.state(id) != "" && w.state(id) != "offline" })
}

// state is an executor's; empty: unknown.
func (w *world) state(id string) string {
	var state string
	w.ask(func(ctx context.Context, c *wire.Client) error {
		list, err := c.Executors(ctx)
		for _, e := range list {
			if e.ID == id {
				state = e.State
			}
		}
		return err
	})
	return state
}

// ask asks the controller something that must work.
func (w *world) ask(what func(context.Context, *wire.Client) error) {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := wire.Dial(ctx, w.addr(), wire.ClientOptions{Actor: "test"})
	w.must(err)
	defer c.Close()
	w.must(what(ctx, c))
}

func (w *world) task(id string) (d *view.Detail) {
	w.Helper()
	w.ask(func(ctx context.Context, c *wire.Client) (err error) {
		d, err = c.Task(ctx, id)
		return err
	})
	return d
}

// becomes waits until a task has a state.
func (w *world) becomes(id, state string) *view.Detail {
	w.Helper()
	var d *view.Detail
	eventually(w.TB, id+" is "+state, func() bool {
		d = w.task(id)
		return d.State == state
	})
	return d
}

func (w *world) status() (s *view.Status) {
	w.Helper()
	w.ask(func(ctx context.Context, c *wire.Client) (err error) {
		s, err = c.Status(ctx)
		return err
	})
	return s
}

func (w *world) late() (list []view.Late) {
	w.Helper()
	w.ask(func(ctx context.Context, c *wire.Client) (err error) {
		list, err = c.Late(ctx, 100)
		return err
	})
	return list
}

// key is a state key's value; empty: there is none.
func (w *world) key(name string) (value string) {
	w.Helper()
	w.ask(func(ctx context.Context, c *wire.Client) error {
		p, err := c.Keys(ctx, view.KeyQuery{Keys: []string{name}})
		for _, k := range p.Keys {
			value = k.Value
		}
		return err
	})
	return value
}

// events reads the journal, also beside a running controller.
func (w *world) events(take func(view.Event)) (last uint64) {
	w.Helper()
	r, err := snapshot.OpenReader(w.path("data"))
	w.must(err)
	w.must(r.Read(1, func(e snapshot.Entry) error {
		event, err := engine.Describe(e.Seq, string(e.Body))
		take(event)
		return err
	}))
	return r.Last()
}

// recorded is how many records of a kind the journal holds.
func (w *world) recorded(kind string) (n int) {
	w.Helper()
	w.events(func(e view.Event) {
		if e.Kind == kind {
			n++
		}
	})
	return n
}

// cli runs a command of the program to its end.
func (w *world) cli(args ...string) (stdout, stderr string, code int) {
	w.Helper()
	var out, words bytes.Buffer
	c := w.command(program, args...)
	c.Stdout, c.Stderr = &out, &words
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.Fatal(err)
	}
	return out.String(), words.String(), c.ProcessState.ExitCode()
}

// does runs a command that must work.
func (w *world) does(args ...string) string {
	w.Helper()
	out, words, code := w.cli(args...)
	if code != 0 {
		w.Fatalf("%q ended with code %d: %s", args, code, words)
	}
	return out
}

// verified holds the whole journal against its checksums and saved hashes.
func (w *world) verified() {
	w.Helper()
	w.Log(strings.TrimSpace(w.does("verify", "data")))
}

// busy is the processor time that a process has used.
func busy(t testing.TB, pid int) time.Duration {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])) // from field 3 on
	var ticks int64
	for _, text := range fields[11:13] { // utime, stime
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100 // USER_HZ is 100 wherever Linux runs
}

// copyFolder copies a data folder without what is in its folders.
func copyFolder(t testing.TB, from, to string) {
	t.Helper()
	entries, err := os.ReadDir(from)
	if err == nil {
		err = os.MkdirAll(to, 0o700)
	}
	for _, e := range entries {
		if err == nil && e.Type().IsRegular() {
			err = copyFile(filepath.Join(from, e.Name()), filepath.Join(to, e.Name()))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
