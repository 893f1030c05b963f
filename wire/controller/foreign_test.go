package controller_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// foreign are executors that were written from the document alone.
var foreign = map[string]string{"python3": "executor.py", "node": "executor.mjs"}

// look finds a language's program; without it the test is skipped, but not in CI.
func look(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(name + " is not installed")
	}
	return path
}

// foreigner starts an executor in another language and waits until it is registered.
func (w *world) foreigner(id, path, script string) *process {
	w.Helper()
	p := w.run(id, w.foreignCommand(id, path, script))
	w.registered(id)
	return p
}

func (w *world) foreignCommand(id, path, script string) *exec.Cmd {
	w.Helper()
	script, err := filepath.Abs(filepath.Join("..", "testdata", script))
	w.must(err)
	host, port, err := net.SplitHostPort(w.addr())
	w.must(err)
	return w.command(path, script, host, port, id, "echo,count,sleep,fail")
}

// hard are values that an encoding may lose.
var hard = map[string]string{
	"backslashes": `\ \\ \n \e \\n \\\e \`,
	"newlines":    "\n\na\nb\r\n\n",
	"equals":      "=a==b=\\=\n=",
	"unicode":     "温度 é e\u0301 \U0001f680 \u202e \u00a0 \u2028",
	"control":     "\t\x1b[31m\x7f\x01",
	"spaces":      "  a  ",
	"empty":       "",
	"json":        `{"a":[1,"\u0000"]}`,
	"a.b-c_D":     "$(touch x) `id` %s ' \"",
}

// Executors of protocol 1 in other languages work with the program as they are.
func TestForeign(t *testing.T) {
	for name, script := range foreign {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := look(t, name)
			w := newWorld(t, hasty)
			c := w.controller()
			e := w.foreigner("foreign", path, script)
			w.echoes()
			w.counts()
			w.fails()
			w.worksLong("3", 2*time.Second)
			e.signal(syscall.SIGTERM)
			if code := e.wait(); code != 0 {
				t.Errorf("told to leave, it ended with code %d", code)
			}
			eventually(t, "its leave", func() bool { return w.state("foreign") == "offline" })
			if n := w.recorded("exec.offline"); n != 1 {
				t.Errorf("its leave was recorded %d times", n)
			}
			c.stop()
			w.verified()
		})
	}
}

// echoes sends values through the command line, the journal, the executor and
// back.
func (w *world) echoes() {
	w.Helper()
	args := []string{"submit", "echo", "--id", "echo-1", "--wait"}
	for name, value := range hard {
		args = append(args, name+"="+value)
	}
	w.does(args...)
	var d struct {
		Inputs, Outputs map[string]string
		State           string
	}
	w.must(json.Unmarshal([]byte(w.does("task", "echo-1", "--json")), &d))
	if !maps.Equal(d.Inputs, hard) || !maps.Equal(d.Outputs, hard) || d.State != "succeeded" {
		w.Errorf("%s: sent %q, inputs %q, outputs %q", d.State, hard, d.Inputs, d.Outputs)
	}
}

// counts: the document's own result changes the state by contract.
func (w *world) counts() {
	w.Helper()
	for i, total := range []string{"42", "84"} {
		w.does("submit", "count", "--id", fmt.Sprint("count-", i), "--wait")
		if got := w.key("output_total"); got != total {
			w.Errorf("output_total is %q, want %s", got, total)
		}
		if got := w.key("next_batch"); got != "20240501" {
			w.Errorf("next_batch is %q", got)
		}
	}
}

func (w *world) fails() {
	w.Helper()
	out, words, code := w.cli("submit", "fail", "--id", "fail-1", "--retries", "1", "--wait")
	if code != 1 || !strings.Contains(words, "dead: execute_failed: told to fail") {
		w.Errorf("code %d: %s%s", code, out, words)
	}
	if d := w.task("fail-1"); d.Attempt != 2 || d.State != "dead" {
		w.Errorf("attempt %d, %s", d.Attempt, d.State)
	}
}

// worksLong: a protocol 1 executor cannot beat while it works, and keeps its task
// for longer than heartbeat.timeout.
func (w *world) worksLong(seconds string, timeout time.Duration) {
	w.Helper()
	w.does("submit", "sleep", "--id", "long-1", "seconds="+seconds)
	w.becomes("long-1", "assigned")
	if state := w.state("foreign"); state != "running" {
		w.Errorf("the executor is %s", state)
	}
	limit := time.Now().Add(timeout + patience)
	for w.task("long-1").State == "assigned" && time.Now().Before(limit) {
		time.Sleep(timeout / 100)
	}
	d := w.task("long-1")
	if d.State != "succeeded" || d.Crashes != 0 || len(d.Attempts) != 1 {
		w.Errorf("it is %s, attempts %+v", d.State, d.Attempts)
	}
	if took := d.Finished.Sub(d.Started.Time); took <= timeout {
		w.Errorf("it took %s: this proves nothing", took)
	}
	if n := w.recorded("exec.offline"); n != 0 {
		w.Errorf("the executor was given up %d times", n)
	}
}

// The document's case itself: 45 s of work under the default 30 s.
func TestForeignLong(t *testing.T) {
	if !*full {
		t.Skip("45 s: with -full")
	}
	t.Parallel()
	w := newWorld(t, "listen = \"127.0.0.1:0\"\n[local]\nexecutors = 0\n")
	w.controller()
	w.foreigner("foreign", look(t, "python3"), "executor.py")
	w.worksLong("45", 30*time.Second)
}

// A protocol 1 executor may be silent while it works, until the attempt's
// deadline: timeout and 15 s. Frozen past it, it is too late when it wakes.
func TestForeignFrozen(t *testing.T) {
	if !*full {
		t.Skip("16 s: with -full")
	}
	t.Parallel()
	w := newWorld(t, brisk)
	w.controller()
	python := look(t, "python3")
	e := w.foreigner("left", python, "executor.py")
	w.does("submit", "count", "--id", "a", "--timeout", "1s", "--at", "300ms")
	w.does("submit", "sleep", "--id", "b", "--timeout", "1s", "seconds=0.5")
	w.becomes("b", "assigned")
	e.signal(syscall.SIGSTOP)
	eventually(t, "its deadline", func() bool { return w.task("b").State != "assigned" })
	w.foreigner("right", python, "executor.py")
	d := w.becomes("b", "succeeded")
	if d.Executor != "right" || d.Attempts[0].Outcome != "timeout" {
		t.Errorf("it is %s on %s, attempts %+v", d.State, d.Executor, d.Attempts)
	}
	w.becomes("a", "succeeded")
	e.signal(syscall.SIGCONT)
	eventually(t, "a late result", func() bool { return len(w.late()) == 1 })
	if l := w.late()[0]; l.Task != "b" || l.Executor != "left" || l.Reason != "superseded" {
		t.Errorf("the late ledger: %+v", l)
	}
	if after := w.task("b"); after.Version != d.Version || w.key("output_total") != "42" {
		t.Errorf("version %d, was %d; output_total=%s", after.Version, d.Version, w.key("output_total"))
	}
}
