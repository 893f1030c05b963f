package server

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"apollo11/engine"
	"apollo11/engine/task"
)

// foreign are executors that were written from the document alone.
var foreign = map[string]string{"python3": "executor.py", "node": "executor.mjs"}

// work is an engine that gives out tasks one after the other.
type work struct {
	give chan task.Assignment
	got  chan engine.Command
}

func (w *work) script(a engine.Ask) (engine.Answer, error) {
	switch c := a.Command.(type) {
	case engine.Ready:
		go func() { // the loop never waits, and answers when there is something
			if next, ok := <-w.give; ok {
				a.Link.Order(engine.Assign{Assignment: next})
				a.Link.Flush()
			}
		}()
	case engine.Result, engine.Register, engine.Offline:
		w.got <- c
	case engine.Disconnected:
		w.got <- c
	}
	return nil, nil
}

func (w *work) wait(t *testing.T) engine.Command {
	t.Helper()
	select {
	case c := <-w.got:
		return c
	case <-time.After(30 * time.Second):
		t.Fatal("nothing came from the executor")
		return nil
	}
}

// Executors in other languages work as they are.
func TestForeignExecutors(t *testing.T) {
	for program, script := range foreign {
		t.Run(program, func(t *testing.T) {
			path, err := exec.LookPath(program)
			if err != nil {
				if os.Getenv("CI") == "true" {
					t.Fatal(err)
				}
				t.Skip(program + " is not installed")
			}
			testForeign(t, path, filepath.Join("..", "testdata", script))
		})
	}
}

func testForeign(t *testing.T, program, script string) {
	w := &work{give: make(chan task.Assignment), got: make(chan engine.Command, 10)}
	r := newRig(t, true, Options{})
	r.engine.play(w.script)
	defer close(w.give)
	host, port, err := net.SplitHostPort(r.server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, script, host, port, "foreign-1", "echo,count,sleep,fail")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if c, ok := w.wait(t).(engine.Register); !ok || c.Exec != "foreign-1" || len(c.Types) != 4 || c.Proto != 1 {
		t.Errorf("registered as %+v", c)
	}
	hard := task.Values{{Name: "a", Value: "x=\\\n\\n\\e\\\\=\n"}, {Name: "b.c", Value: ""}, {Name: "d", Value: "\u202e\U0001f680\r\t "}}
	for _, c := range []struct {
		typ     string
		in, out task.Values
		status  task.Status
		error   string
	}{
		{"echo", hard, hard, task.Success, ""},
		{"count", nil, task.Values{{Name: "next_batch", Value: "20240501"}, {Name: "output_count", Value: "42"}}, task.Success, ""},
		{"sleep", task.Values{{Name: "seconds", Value: "0.01"}}, nil, task.Success, ""},
		{"fail", nil, nil, task.Failed, "told to fail"},
	} {
		w.give <- task.Assignment{Task: "t-" + c.typ, Type: c.typ, Version: 1_000_001, Attempt: 1, Inputs: c.in, Context: task.Values{{Name: "k", Value: "v"}}}
		got, ok := w.wait(t).(engine.Result)
		o := got.Outcome
		if !ok || o.Task != "t-"+c.typ || o.Version != 1_000_001 || o.Status != c.status || o.Error != c.error ||
			string(o.Outputs.AppendText(nil)) != string(c.out.AppendText(nil)) {
			t.Errorf("%s: got %+v, raw %v", c.typ, o, got.Raw)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if c, ok := w.wait(t).(engine.Offline); !ok || !strings.HasPrefix(c.Reason, "SIGTERM") {
		t.Errorf("left with %+v", c)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%s ended in %v", program, err)
	}
}
