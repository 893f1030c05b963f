package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// explainOf folds records about a task x and explains it; what the scripts can't
// reach by commands is reached so.
func explainOf(t *testing.T, change func(*machine), entries ...string) *view.Explanation {
	t.Helper()
	s := newState()
	for n, entry := range append([]string{"start epoch=1", "exec.register exec=e proto=2"}, entries...) {
		if err := foldText(s, uint64(n+1), someTime+" "+entry); err != nil {
			t.Fatal(err)
		}
	}
	m := newMachine(s, DefaultSettings(), quiet)
	m.now = moment{raw: s.wall, wall: s.wall}
	if change != nil {
		change(m)
	}
	was, said := m.hash(), len(m.batch.ends)+len(m.batch.sends)
	x, err := m.explain("x")
	if err != nil {
		t.Fatal(err)
	}
	if m.hash() != was || len(m.batch.ends)+len(m.batch.sends) > said {
		t.Error("explaining changed the state")
	}
	return x
}

func TestExplainWhatNoCommandReaches(t *testing.T) {
	queued := "task.submit task=x type=t state=queued"
	once := `unit type=t text="backoff=0\ncleanup=0s\ncontext=\nfresh=false\nidempotent=false\njitter=0\nname=t\nprepare=0s\nretries=1\nretry_interval=0s\ntimeout=0s\nversion=0"`
	sent := "task.start task=x v=1.1 exec=e attempt=1"
	for name, c := range map[string]struct {
		entries []string
		change  func(*machine)
		lines   []string // beginnings
		hints   int
	}{
		"blocked, of no run": {entries: []string{"task.submit task=x type=t state=blocked"}, lines: []string{"it waits for other tasks"}},
		"aborted": {entries: []string{queued, `task.end task=x state=aborted error="its run stopped"`},
			lines: []string{"its run stopped, just now"}, hints: 3},
		"skipped": {entries: []string{"task.submit task=x type=t state=blocked", "task.end task=x state=skipped"},
			lines: []string{"skipped, just now"}},
		"stopping": {entries: []string{queued}, change: func(m *machine) { m.stopping = true },
			lines: []string{"the controller is stopping", "no executor offers type t", "it is the next"}, hints: 1},
		"stale, and must not begin twice": {entries: []string{queued, once, sent, "task.fail task=x v=1.1 exec=e class=stale_context state=dead stales=1"},
			lines: []string{"dead letter", "its unit is idempotent = false", "attempt 1"}, hints: 4},
		"lost, and must not begin twice": {entries: []string{queued, once, sent, "task.fail task=x v=1.1 exec=e class=executor_lost error=gone state=dead"},
			lines: []string{"dead letter, just now: its executor was lost (executor_lost): gone", "its unit is idempotent = false", "attempt 1"}, hints: 4},
		"prepare failed, and must not begin twice": {entries: []string{queued, once, sent, "task.fail task=x v=1.1 exec=e class=prepare_failed state=dead tries=2"},
			lines: []string{"dead letter", "1 repeat did not help", "attempt 1"}, hints: 4},
		"too large before it was ever sent": {entries: []string{queued, "task.end task=x state=dead class=too_large error=much"},
			lines: []string{"dead letter, just now: it is over a limit of size (too_large): much", "this kind of failure is never repeated"}, hints: 3},
		"out since before the restart": {entries: []string{queued, sent},
			change: func(m *machine) { m.boot() },
			lines:  []string{"it was sent to executor e just now", "that executor has no connection (not back since the controller's restart); if it is not back in 30s", "the controller waits 10m0s more"}, hints: 1},
		"its time has come": {entries: []string{"task.submit task=x type=t state=scheduled not_before=2026-01-01T00:00:00.000000Z"},
			lines: []string{"it waits for its time, now", "no executor offers type t"}, hints: 1},
	} {
		x := explainOf(t, c.change, c.entries...)
		ok := len(x.Lines) == len(c.lines) && len(x.Hints) == c.hints
		for n := range c.lines {
			ok = ok && strings.HasPrefix(x.Lines[n], c.lines[n])
		}
		if !ok {
			t.Errorf("%s:\n%s\n%s", name, strings.Join(x.Lines, "\n"), strings.Join(x.Hints, "\n"))
		}
	}
}

// Of many attempts memory has the last, and the explanation stays a page.
func TestExplainIsBounded(t *testing.T) {
	entries := []string{"task.submit task=x type=t state=queued"}
	for n := 1; n <= maxHistory+5; n++ {
		entries = append(entries, fmt.Sprintf("task.start task=x v=1.%d exec=e attempt=%d", n, n),
			fmt.Sprintf(`task.fail task=x v=1.%d exec=e class=stale_context error="%s" state=queued`, n, strings.Repeat("long ", 1000)))
	}
	x := explainOf(t, nil, entries...)
	if i := slices.IndexFunc(x.Lines, func(s string) bool { return strings.Contains(s, "memory has the last 20") }); i < 0 || len(x.Lines) != 23 {
		t.Errorf("%d lines: %q", len(x.Lines), x.Lines)
	}
	if n := len(strings.Join(x.Lines, "")); n > 20<<10 {
		t.Errorf("%d bytes", n)
	}
}

func TestEveryClassHasWords(t *testing.T) {
	for c := task.NoClass + 1; !strings.HasPrefix(c.String(), "class("); c++ {
		if classWords[c] == "" {
			t.Errorf("%s has no words", c)
		}
	}
}
