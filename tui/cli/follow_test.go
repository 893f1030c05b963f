package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

func TestLogs(t *testing.T) {
	f := newFake(t)
	f.logs = map[int]string{1: "first\n", 2: "one\ttwo\x1b[2J\r\n\xff\x00 世界\nno newline"}
	raw := f.logs[2]
	f.run("logs t").want(t, raw, "", Done)
	f.run("logs t --attempt 1").want(t, "first\n", "", Done)
	f.run("logs t", func(e *Env) { e.Terminal = true }).want(t, "one\ttwo\\x1b[2J\n\\xff\\x00 世界\nno newline\n", "", Done)
	f.run("logs t --json").want(t, `{"attempt":2,"text":"one\ttwo\u001b[2J"}`+"\n"+`{"attempt":2,"text":"\ufffd\u0000 世界"}`+"\n"+`{"attempt":2,"text":"no newline"}`+"\n", "", Done)
	f.logs[4] = ""
	f.run("logs t --attempt 4").want(t, "", "t: nothing printed\n", Done)
	f.run("logs t --attempt 3").want(t, "", "apollo11: logs: t: no output of it\nhint: apollo11 tasks\n", Failed)
}

// Following goes from attempt to attempt until the task has ended, through one
// that printed nothing.
func TestLogsFollow(t *testing.T) {
	f := newFake(t)
	f.logs, f.ended = map[int]string{1: "first\n"}, map[int]bool{1: true, 3: true}
	state := func(attempt int64, state string) view.Detail {
		return view.Detail{Task: view.Task{ID: "t", State: state, Attempt: attempt}}
	}
	f.details["t"] = []view.Detail{state(1, "retrying"), state(1, "queued"), state(2, "running"), state(3, "running"), state(3, "dead")}
	var out strings.Builder
	env := f.env()
	env.Stdout = writer(func(p []byte) {
		out.Write(p)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.logs[3] = "third\n"
	})
	r := run(t, env, "logs", "-f", "t")
	if r.code != Done || out.String() != "first\nthird\n" || r.stderr != "attempt 3:\n" {
		t.Errorf("code %d, %q, %q", r.code, out.String(), r.stderr)
	}
	f = newFake(t) // an attempt that was named is followed to its own end
	f.logs, f.ended = map[int]string{1: "first\n"}, map[int]bool{1: true}
	f.run("logs t -f --attempt 1").want(t, "first\n", "", Done)
	f = newFake(t) // no such task
	f.run("logs t -f").want(t, "", "apollo11: logs: t: not found\nhint: apollo11 tasks\n", Failed)
}

func story() []view.Event {
	event := func(seq int64, ms int, kind, id, exec string, pairs ...string) view.Event {
		return view.Event{Seq: seq, Time: view.Time{Time: noon.Add(time.Duration(ms) * time.Millisecond).UTC()}, Kind: kind, Task: id, Exec: exec, Values: object(pairs...)}
	}
	in := string(task.Values(object("url", "http://x", "text", hostile)).AppendText(nil))
	return []view.Event{
		event(1, -13*3600*1000, "start", "", "", "epoch", "3", "build", "v1"),
		event(2, 0, "exec.register", "", "host-1-ab12", "types", "echo=sha256:1\nfetch=", "proto", "2", "host", "host-1", "instance", "x"),
		event(3, 1, "task.submit", "t-1", "", "type", "fetch", "state", "queued", "in", in, "retries1", "3", "named", "1", "told", "1"),
		event(4, 2, "task.submit", "t-2", "", "type", "echo", "state", "scheduled", "not_before", "2026-11-30T11:00:00Z", "deadline", "2026-11-29T11:30:00Z", "timeout_us", "30000000", "key", "k"),
		event(5, 3, "task.start", "t-1", "host-1-ab12", "v", "3.1", "attempt", "1", "sv", "41", "in", "sha256:9", "ctx", "next_batch=7"),
		event(6, 53, "task.running", "t-1", "", "v", "3.1"),
		event(7, 415, "task.fail", "t-1", "host-1-ab12", "v", "3.1", "class", "execute_failed", "error", hostile, "exit", "7", "execute_us", "400000", "state", "retrying", "due", "2026-11-29T11:00:02.4Z", "tries", "1"),
		event(8, 2400, "task.queue", "t-1", "", "reason", "retry"),
		event(9, 2401, "task.start", "t-1", "host-1-ab12", "v", "3.2", "attempt", "2", "sv", "41"),
		event(10, 2900, "task.result", "t-1", "host-1-ab12", "v", "3.2", "out", "next=8\nrows=42", "set", "next_batch=8", "sv", "42", "prepare_us", "1000", "execute_us", "412000", "cleanup_us", "2000", "out_hash", "sha256:7"),
		event(11, 3000, "task.end", "t-2", "", "state", "dead", "class", "expired"),
		event(12, 3001, "task.fail", "t-3", "", "v", "3.9", "class", "executor_lost", "state", "dead", "crashes", "3"),
		event(13, 3002, "late", "t-1", "host-1-ab12", "v", "3.1", "current", "3.2", "reason", "superseded", "effect", "set next_batch=7"),
		event(14, 3003, "exec.offline", "", "host-1-ab12", "reason", "no beat for 30s"),
		event(15, 3004, "state.repair", "", "", "key", "next_batch", "value", "9", "by", "ada", "reason", "gap"),
		event(16, 3005, "pause", "", "", "on", "1"),
		event(17, 3006, "pause", "", "", "type", "fetch"),
		event(18, 3007, "task.end", "t-4", "", "state", "cancelled", "class", "cancelled", "by", "ada", "error", "not needed"),
		event(19, 3008, "config", "", "", "version", "2", "hash", "sha256:8", "why", "restart"),
		event(20, 3009, "some.future", "t-5", "", "novel", "field"),
	}
}

func TestReplay(t *testing.T) {
	f := newFake(t)
	f.events = story()
	r := f.run("replay")
	golden(t, "replay", r.stdout)
	if r.code != Done || r.stderr != "" {
		t.Errorf("code %d, %q", r.code, r.stderr)
	}
	for line := range strings.Lines(r.stdout) {
		if line = strings.TrimSuffix(line, "\n"); clean(line) != line {
			t.Errorf("%q", line)
		}
	}
	if r := f.run("replay --json"); strings.Count(r.stdout, "\n") != 20 || !strings.Contains(r.stdout, `"out_hash":"sha256:7"`) {
		t.Errorf("JSON: %q", r.stdout)
	}
	f.run("replay nosuch").want(t, "# nothing happened\n", "", Done)
	if r := f.run("replay", func(e *Env) { e.Color = true }); !strings.Contains(r.stdout, "\x1b[31m!\x1b[0m") {
		t.Error("a failure does not stand out")
	}
}

// A record of any kind, even one without a field, is told in words.
func TestEveryKindIsTold(t *testing.T) {
	for kind := range tellers {
		text, _ := describe(&view.Event{Kind: kind}, noon.Location())
		if text == "" || strings.Contains(text, "%!") {
			t.Errorf("%s: %q", kind, text)
		}
	}
}

func TestReplayRange(t *testing.T) {
	f := newFake(t)
	f.events = story()
	for args, want := range map[string]string{
		"replay --from 5 --to 7":                  "timeline from=5 task= after= until=",
		"replay --from 10m --to 1m":               "timeline from=0 task= after=2026-11-29T10:50:00Z until=2026-11-29T10:59:00Z",
		"replay --from 2026-11-29T09:00:00+01:00": "timeline from=0 task= after=2026-11-29T08:00:00Z until=",
		"replay t-1":                              "timeline from=0 task=t-1 after= until=",
	} {
		f.asked = nil
		r := f.run(args)
		if i := slices.IndexFunc(f.asked, func(s string) bool { return strings.HasPrefix(s, "timeline") }); i < 0 || f.asked[i] != want {
			t.Errorf("%s: asked %q, want %q", args, f.asked, want)
		}
		if strings.Contains(args, "--to 7") && (!strings.Contains(r.stdout, "      7  ") || strings.Contains(r.stdout, "      8  ")) {
			t.Errorf("--to 7: %s", r.stdout)
		}
	}
	f.details["t"] = []view.Detail{{Task: view.Task{ID: "t-1"}}} // a prefix
	f.asked = nil
	f.run("replay t")
	if f.asked[2] != "timeline from=0 task=t-1 after= until=" {
		t.Errorf("a prefix asks %q", f.asked)
	}
}

func TestReplayFollow(t *testing.T) {
	f := newFake(t)
	f.events = story()[:3]
	ctx, cancel := context.WithCancel(t.Context())
	var out strings.Builder
	env := f.env()
	env.Stdout = writer(func(p []byte) {
		out.Write(p)
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.events = story()[:5]; strings.Contains(out.String(), "attempt 1") {
			cancel()
		}
	})
	if r := runContext(ctx, env, "replay", "-f"); r.code != Done || r.stderr != "" {
		t.Errorf("code %d, %q", r.code, r.stderr)
	}
	if n := strings.Count(out.String(), "task."); n != 3 || !strings.HasSuffix(out.String(), "# 5 events in 13h0m, 0 failed attempts, 0 dead letters\n") {
		t.Errorf("got %s", out.String())
	}
}

// closing is a Timeline that must be closed.
type closing struct {
	events
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }

func TestReplayOffline(t *testing.T) {
	source := &closing{events: events{list: story()}}
	env := Env{Now: func() time.Time { return noon }, Offline: func(path string) (Timeline, error) {
		if path != "backup/2026-11-29" {
			return nil, &ExitError{Code: Damaged, Err: fmt.Errorf("%s: no journal", path), Hint: "apollo11 verify"}
		}
		return source, nil
	}}
	r := run(t, env, "replay", "--data", "backup/2026-11-29", "t-2")
	if r.code != Done || strings.Count(r.stdout, "t-2") != 2 || !source.closed {
		t.Errorf("code %d, closed %v, %s%s", r.code, source.closed, r.stdout, r.stderr)
	}
	run(t, env, "replay", "--data", "x").want(t, "", "apollo11: replay: x: no journal\nhint: apollo11 verify\n", Damaged)
}
