package start

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// TestMain is the program itself when it is called by its name.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "apollo11" {
		os.Exit(m.Run())
	}
	defaults, err := os.ReadFile(os.Getenv("TEST_DEFAULTS"))
	if err != nil {
		panic(err)
	}
	os.Exit(Run(World{
		Args: os.Args[1:], Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Defaults: defaults, Now: time.Now,
	}))
}

// terminal is a program on a terminal that answers nothing.
type terminal struct {
	t      *testing.T
	cmd    *exec.Cmd
	master *os.File
	mu     sync.Mutex // out
	out    bytes.Buffer
	ended  chan error
	over   chan struct{} // closed when there is nothing more to read
}

func onTerminal(t *testing.T, dir string, args ...string) *terminal {
	t.Helper()
	return onTerminalAs(t, dir, "xterm-256color", args...)
}

func onTerminalAs(t *testing.T, dir, kind string, args ...string) *terminal {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "apollo11")
	if err := os.Symlink(self, name); err != nil {
		t.Fatal(err)
	}
	defaults, err := filepath.Abs("../../config.toml")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"TEST_DEFAULTS=" + defaults, "TERM=" + kind, "LANG=C.UTF-8", "HOME=" + dir, "TMPDIR=" + dir, "PATH=" + os.Getenv("PATH"),
		"APOLLO_LISTEN=127.0.0.1:0", "APOLLO_LOCAL_EXECUTORS=0",
		"GORACE=atexit_sleep_ms=0", // built with -race, a program sleeps a second before it ends
	}
	master, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal("no terminals here, and CI=true:", err)
	}
	if err != nil {
		t.Skip("no terminals here:", err)
	}
	p := &terminal{t: t, cmd: cmd, master: master, ended: make(chan error, 1), over: make(chan struct{})}
	go p.read()
	go func() { p.ended <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Kill()
		master.Close()
	})
	return p
}

func (p *terminal) read() {
	defer close(p.over)
	buf := make([]byte, 64<<10)
	for {
		n, err := p.master.Read(buf)
		p.mu.Lock()
		p.out.Write(buf[:n])
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (p *terminal) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

func (p *terminal) await(what string, done func() bool) {
	p.t.Helper()
	for deadline := time.Now().Add(15 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("%s: not in time; the terminal has %q", what, p.text())
		}
	}
}

func (p *terminal) sees(text string) {
	p.t.Helper()
	p.await(text, func() bool { return strings.Contains(p.text(), text) })
}

// end is how the program ended.
func (p *terminal) end() error {
	p.t.Helper()
	select {
	case err := <-p.ended:
		<-p.over
		return err
	case <-time.After(15 * time.Second):
		p.t.Fatalf("it does not end; the terminal has %q", p.text())
		return nil
	}
}

// asked fails if the terminal was asked anything: one that does not answer
// would hold the command up for seconds (trap 1).
func (p *terminal) asked() {
	p.t.Helper()
	for _, query := range []string{"\x1b]11", "\x1b]10", "\x1b[6n", "\x1b[c"} {
		if strings.Contains(p.text(), query) {
			p.t.Errorf("%q asks the terminal %q", p.cmd.Args[1:], query)
		}
	}
}

func TestMuteTerminal(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"version"}, {"status"}, {"exec", "--units", "nowhere"}} {
		// The stall would be 5 s, each time; 200 ms is the aim, and a busy machine may
		// need more, but not each time.
		var p *terminal
		took := time.Hour
		for try := 0; try < 5 && took > time.Second; try++ {
			begun := time.Now()
			p = onTerminal(t, t.TempDir(), args...)
			p.end()
			took = time.Since(begun)
		}
		t.Logf("%q took %s", args, took)
		if took > time.Second {
			t.Errorf("%q took %s", args, took)
		}
		p.asked()
		if args[0] == "--help" && !strings.Contains(p.text(), "attach") {
			t.Errorf("--help says %q", p.text())
		}
	}
}

func TestMuteTerminalHeadless(t *testing.T) {
	p := onTerminal(t, t.TempDir(), "--no-tui")
	p.sees("controller ready")
	p.asked()
	p.cmd.Process.Signal(syscall.SIGTERM)
	if err := p.end(); err != nil {
		t.Fatal(err)
	}
	p.asked()
}

// What ends the screen ends no controller: not leaving it, not SIGHUP, not a
// terminal that goes away (trap 5). SIGTERM does, in order.
func TestTheControllerOutlivesTheScreen(t *testing.T) {
	for name, leave := range map[string]func(*terminal){
		"detach": func(p *terminal) {
			p.master.WriteString("q")
			p.sees("leave it running")
			time.Sleep(300 * time.Millisecond) // a person reads
			p.master.WriteString("d")
			p.sees(" attach --data " + filepath.Join(p.cmd.Dir, "data"))
		},
		"hangup": func(p *terminal) {
			p.cmd.Process.Signal(syscall.SIGHUP)
			p.sees("the controller goes on")
		},
		"closed": func(p *terminal) { p.master.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p := onTerminal(t, dir)
			p.sees("LIVE seq")
			p.asked()
			if strings.Contains(p.text(), "level=INFO") {
				t.Error("a log line reached the screen")
			}
			leave(p)
			log := filepath.Join(dir, "data", "apollo11.log")
			if name != "detach" {
				p.await("the log", func() bool {
					text, err := os.ReadFile(log)
					return err == nil && strings.Contains(string(text), "the controller goes on")
				})
			}
			status := onTerminal(t, dir, "status")
			if err := status.end(); err != nil || !strings.Contains(status.text(), "executors") {
				t.Errorf("status: %v, %q", err, status.text())
			}
			p.cmd.Process.Signal(syscall.SIGTERM)
			if err := p.end(); err != nil {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

// A signal to stop reaches the controller through the screen.
func TestStopWhileTheScreenIsUp(t *testing.T) {
	p := onTerminal(t, t.TempDir())
	p.sees("LIVE seq")
	p.cmd.Process.Signal(syscall.SIGTERM)
	if err := p.end(); err != nil {
		t.Fatal(err)
	}
	p.sees("\x1b[?1049l")
}
