package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// tmux runs the terminal multiplexer, with a server of the script's own.
func tmux(ts *testscript.TestScript, args ...string) (string, error) {
	cmd := exec.Command("tmux", append([]string{"-S", ts.MkAbs("tmux"), "-f", "/dev/null"}, args...)...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{
		"PATH", "HOME", "TMPDIR", "TZ", "LANG", "TERM", "APOLLO_LISTEN", "APOLLO_LOCAL_EXECUTORS",
	} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// terminal NAME WIDTH HEIGHT COMMAND: a real terminal in which a command runs.
// It stays when the command ends, so that its last words can be read.
func terminal(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 4 {
		ts.Fatalf("usage: terminal NAME WIDTH HEIGHT COMMAND")
	}
	ts.Defer(func() {
		tmux(ts, "kill-server")
		locks, _ := filepath.Glob(ts.MkAbs("apollo11-demo-*/data/LOCK"))
		for _, lock := range locks { // a controller outlives its terminal
			text, _ := os.ReadFile(lock)
			if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
	out, err := tmux(ts, "new-session", "-d", "-s", args[0], "-x", args[1], "-y", args[2], args[3]+"; exec sleep 600")
	if err != nil {
		ts.Fatalf("tmux: %v: %s", err, out)
	}
}

// press NAME KEY…: presses keys, by tmux's names or letter by letter.
func press(ts *testscript.TestScript, _ bool, args []string) {
	time.Sleep(200 * time.Millisecond) // a person reads first; the console insists on it in its dialogs
	if out, err := tmux(ts, append([]string{"send-keys", "-t", args[0]}, args[1:]...)...); err != nil {
		ts.Fatalf("tmux: %v: %s", err, out)
	}
}

// resize NAME WIDTH HEIGHT: another size for a terminal.
func resize(ts *testscript.TestScript, _ bool, args []string) {
	if out, err := tmux(ts, "resize-window", "-t", args[0], "-x", args[1], "-y", args[2]); err != nil {
		ts.Fatalf("tmux: %v: %s", err, out)
	}
}

// sees NAME PATTERN: waits until a terminal shows it, or, with !, does not.
func sees(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: sees NAME PATTERN")
	}
	pattern, err := regexp.Compile(args[1])
	ts.Check(err)
	screen := ""
	for deadline := time.Now().Add(3 * patience); ; time.Sleep(20 * time.Millisecond) {
		if screen, err = tmux(ts, "capture-pane", "-p", "-t", args[0]); err == nil && pattern.MatchString(screen) != neg {
			return
		}
		if time.Now().After(deadline) { // the demo takes its time, and a busy machine more
			ts.Fatalf("%s: not within %s; the terminal shows:\n%s", args[1], 3*patience, screen)
		}
	}
}

// worksOn: waits until more tasks have succeeded than had at first.
func worksOn(ts *testscript.TestScript, _ bool, _ []string) {
	succeeded := func() int64 {
		ts.Check(ts.Exec("apollo11", "status", "--json"))
		var status struct{ Tasks map[string]int64 }
		ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &status))
		return status.Tasks["succeeded"]
	}
	before := succeeded()
	poll(ts, "another task", func() bool { return succeeded() > before })
}
