package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

const hostile = "a\x1b[2J\tb\u202e\r\nc\x00\xff世界🚀é" // what nobody should be able to do to a terminal

func object(pairs ...string) view.Object {
	var list []task.Value
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, task.Value{Name: pairs[i], Value: pairs[i+1]})
	}
	set, err := task.NewValues(list)
	if err != nil {
		panic(err)
	}
	return view.Object(set)
}

// world fills the fake with one of everything, hostile text included.
func world(t *testing.T) *fake {
	f := newFake(t)
	f.status = view.Status{
		Epoch: 3, Seq: 123456, StateVersion: 42, ConfigVersion: 2, ConfigHash: "sha256:0123456789abcdef0123", Debug: true, DebugLeftMS: 14*60_000 + 12_000,
		PausedTypes: "fetch,clean", DiskFull: true, Late: 3, Duplicates: 1, Since: at(125 * time.Minute), Now: at(0),
		Executors: view.Counts{"idle": 2, "running": 1, "offline": 1}, Tasks: view.Counts{"queued": 12, "dead": 1, "succeeded": 100000},
	}
	f.executors = []view.Executor{
		{ID: "host-1-4711-ab12", State: "running", Types: "fetch,clean,analyse", Load: 3, Task: "t-7", Version: 3000002, StateVersion: 41, HeartbeatMS: 2300, Done: 120, Failed: 2, Proto: 2, Host: "host-1", PID: 4711, Build: "v1"},
		{ID: "host-2-1-ffff", State: "idle", Types: "echo", HeartbeatMS: 14000, Late: true, Done: 7, Proto: 1, Host: "host-2"},
		{ID: hostile, State: "offline", Types: "echo", HeartbeatMS: -1, Reason: "connection closed; raise heartbeat.timeout"},
	}
	f.tasks = []view.Task{
		{ID: "t-9", Type: "fetch", State: "queued", Submitted: at(5 * time.Second)},
		{ID: "t-8", Type: "analyse", State: "running", Attempt: 2, Version: 3000002, Executor: "host-1-4711-ab12", Submitted: at(time.Minute), Started: at(12 * time.Second)},
		{ID: "t-7", Type: "fetch", State: "dead", Attempt: 3, Version: 2000003, Executor: "host-1-4711-ab12", ErrorClass: "execute_failed", Error: hostile + strings.Repeat(" and more", 20), Submitted: at(26 * time.Hour), Started: at(26 * time.Hour), Finished: at(26*time.Hour - 1500*time.Millisecond)},
		{ID: "order-2026-11-29-from-a-very-long-idempotent-id", Type: "clean", State: "succeeded", Attempt: 1, Version: 1000001, Submitted: at(400 * 24 * time.Hour), Started: at(400 * 24 * time.Hour), Finished: at(400*24*time.Hour - 412*time.Millisecond), Outputs: object("rows", "42", "text", "世界世界世界世界世界世界世界世界世界世界世界世界")},
	}
	f.keys = []view.Key{
		{Key: "mode", Value: "slow", Version: 1, Seq: 7, Fault: "want one of fast, safe"},
		{Key: "next_batch", Value: "20240501", Version: 4, Seq: 123456, Task: "t-7"},
		{Key: "title", Value: hostile, Version: 1, Seq: 8, Task: "t-3"},
	}
	f.late = []view.Late{
		{Task: "t-7", Version: 2000003, Current: 3000001, Executor: "host-1-4711-ab12", Reason: "superseded", Effect: "set next_batch=7", Time: at(time.Minute)},
		{Task: "t-6", Version: 2000001, Executor: hostile, Reason: "dead", Effect: hostile, Time: at(48 * time.Hour)},
	}
	f.details["t-7"] = []view.Detail{{
		Task: f.tasks[2], Key: "job:7", Inputs: object("url", hostile, "n", "1"), Context: object("next_batch", "6"), StateVersion: 41, StateNow: 42,
		Deadline: view.Time{Time: noon.Add(90 * time.Minute)}, Retries: 2, TimeoutMS: 30000, Crashes: 1, Late: "rows=42",
		Attempts: []view.Attempt{
			{Attempt: 1, Version: 1000001, Executor: "host-2-1-ffff", Outcome: "executor_lost", Started: at(27 * time.Hour), Finished: at(27*time.Hour - time.Minute)},
			{Attempt: 2, Version: 2000003, Executor: "host-1-4711-ab12", Outcome: "execute_failed", Error: hostile, Started: at(26 * time.Hour), MS: 1500},
		},
	}}
	return f
}

var looks = []string{"status", "executors", "tasks", "dead", "task t-7", "state", "late"}

func TestTables(t *testing.T) {
	f := world(t)
	for _, width := range []int{60, 80, 120} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			var all strings.Builder
			for _, args := range looks {
				r := f.run(args, func(e *Env) { e.Terminal, e.Width = true, width })
				fmt.Fprintf(&all, "$ apollo11 %s\n%s%s\n", args, r.stdout, r.stderr)
				if r.code != Done {
					t.Errorf("%s: code %d", args, r.code)
				}
			}
			golden(t, fmt.Sprintf("tables-%d", width), all.String())
		})
	}
	t.Run("pipe", func(t *testing.T) {
		var all strings.Builder
		for _, args := range looks {
			fmt.Fprintf(&all, "$ apollo11 %s\n%s\n", args, f.run(args).stdout)
		}
		golden(t, "tables-pipe", all.String())
	})
	t.Run("json", func(t *testing.T) {
		var all strings.Builder
		for _, args := range looks {
			fmt.Fprintf(&all, "$ apollo11 %s --json\n%s\n", args, f.run(args+" --json").stdout)
		}
		golden(t, "tables-json", all.String())
	})
}

// At no width is a table's line wider than the terminal, ends in a space, or
// carries what a terminal acts on.
func TestTablesFit(t *testing.T) {
	f := world(t)
	for _, args := range []string{"executors", "tasks", "state", "late"} {
		for width := 20; width <= 200; width += 7 {
			r := f.run(args, func(e *Env) { e.Terminal, e.Width = true, width })
			for line := range strings.Lines(r.stdout) {
				line = strings.TrimSuffix(line, "\n")
				if textWidth(line) > width || strings.HasSuffix(line, " ") || clean(line) != line {
					t.Errorf("%s at %d: %q", args, width, line)
				}
			}
		}
	}
}

func TestTableColors(t *testing.T) {
	f := world(t)
	f.tasks = f.tasks[2:3]
	plain := f.run("tasks", func(e *Env) { e.Terminal, e.Width = true, 80 }).stdout
	colored := f.run("tasks", func(e *Env) { e.Terminal, e.Width, e.Color = true, 80, true }).stdout
	if !strings.Contains(colored, "\x1b[31mdead\x1b[0m") {
		t.Errorf("a dead letter does not stand out: %q", colored)
	}
	for _, code := range []string{"\x1b[31m", "\x1b[2m", "\x1b[0m"} {
		colored = strings.ReplaceAll(colored, code, "")
	}
	if colored != plain {
		t.Errorf("colour changes the text\n%s\n%s", colored, plain)
	}
}

func TestJSONIsWhole(t *testing.T) {
	f := world(t)
	for args, want := range map[string]int{"status": 1, "executors": 3, "tasks": 4, "task t-7": 1, "state": 3, "late": 2} {
		r := f.run(args + " --json")
		lines := strings.Split(strings.TrimSuffix(r.stdout, "\n"), "\n")
		if len(lines) != want || r.stderr != "" {
			t.Errorf("%s: %d lines, want %d, stderr %q", args, len(lines), want, r.stderr)
		}
		for _, line := range lines {
			if !json.Valid([]byte(line)) || clean(line) != line {
				t.Errorf("%s: %q", args, line)
			}
		}
	}
	var d struct{ Inputs map[string]string }
	if err := json.Unmarshal([]byte(f.run("task t-7 --json").stdout), &d); err != nil || d.Inputs["url"] != strings.ToValidUTF8(hostile, "\uFFFD") {
		t.Errorf("a value does not come through: %q, %v", d.Inputs["url"], err)
	}
}

func TestNothingThere(t *testing.T) {
	f := newFake(t)
	for args, want := range map[string]string{
		"executors": "no executors: start one: apollo11 exec\n", "tasks": "no tasks\n", "dead": "no tasks\n", "state": "no keys\n", "late": "no late results\n",
	} {
		f.run(args).want(t, "", want, Done)
		f.run(args+" --json").want(t, "", "", Done)
	}
}

func TestFilters(t *testing.T) {
	f := newFake(t)
	f.run("tasks --type fetch --state dead,queued --error boom --older 10m --limit 3 --cursor 5 --json").want(t, "", "", Done)
	if want := "tasks type=fetch states=[dead queued] error=boom older=10m0s limit=3 cursor=5"; f.asked[1] != want {
		t.Errorf("asked %q, want %q", f.asked[1], want)
	}
	f.run("dead --type fetch")
	if want := "tasks type=fetch states=[dead] error= older=0s limit=500 cursor="; f.asked[3] != want {
		t.Errorf("asked %q, want %q", f.asked[3], want)
	}
}

func TestPages(t *testing.T) {
	f := newFake(t)
	for i := range 1201 {
		f.tasks = append(f.tasks, view.Task{ID: fmt.Sprintf("t-%04d", i), Type: "x", State: "queued", Submitted: at(0)})
	}
	tests := []struct {
		args     string
		terminal bool
		lines    int
		words    string
	}{
		{"tasks", false, 501, "there are more: --cursor 500\n"},
		{"tasks", true, 51, "there are more: --cursor 50\n"},
		{"tasks --limit 1200", false, 1201, "there are more: --cursor 1200\n"},
		{"tasks --limit 5000", true, 1202, ""},
		{"tasks --limit 5000 --cursor 1200", true, 2, ""},
		{"tasks --limit 700 --json", false, 700, ""},
		{"tasks --json", true, 500, ""},
	}
	for _, tt := range tests {
		r := f.run(tt.args, func(e *Env) { e.Terminal, e.Width = tt.terminal, 80 })
		if n := strings.Count(r.stdout, "\n"); n != tt.lines || r.stderr != tt.words {
			t.Errorf("%s: %d lines, %q, want %d, %q", tt.args, n, r.stderr, tt.lines, tt.words)
		}
	}
}

func TestStateKeys(t *testing.T) {
	f := world(t)
	if r := f.run("state next_batch mode --json"); strings.Count(r.stdout, "\n") != 2 || r.code != Done {
		t.Errorf("two keys: %d, %q", r.code, r.stdout)
	}
	r := f.run("state mode nosuch")
	if r.code != Failed || r.stderr != "apollo11: state: nosuch: not found\nhint: apollo11 state\n" || !strings.Contains(r.stdout, "mode") {
		t.Errorf("a missing key: %d, %q, %q", r.code, r.stdout, r.stderr)
	}
	if r := f.run("state --prefix t --json"); strings.Count(r.stdout, "\n") != 1 {
		t.Errorf("prefix: %q", r.stdout)
	}
}

func TestWhoChangedAKey(t *testing.T) {
	for want, k := range map[string]view.Key{
		"t-1": {Key: "a", Task: "t-1"}, "operator": {Key: "a"}, "controller": {Key: "sys.config_version"},
	} {
		if got := keyCells(&k)[4].text; got != want {
			t.Errorf("%+v: changed by %q, want %q", k, got, want)
		}
	}
}

func TestWidth(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 3, "é": 1, "e\u0301": 1, "世界": 4, "🚀": 2, "ｱ": 1, "Ａ": 2, "한": 2, "✅": 2, "→": 1} {
		if got := textWidth(text); got != want {
			t.Errorf("%q: %d columns, want %d", text, got, want)
		}
	}
	for _, tt := range []struct {
		text string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"世界人", 5, "世界…"}, {"世界人", 4, "世…"}, {"abc", 1, "…"}, {"abc", 0, ""}} {
		if got := cutWidth(tt.text, tt.n); got != tt.want {
			t.Errorf("%q to %d: %q, want %q", tt.text, tt.n, got, tt.want)
		}
	}
}

func TestTimes(t *testing.T) {
	for before, want := range map[time.Duration]string{
		0: "12:00:00", 11 * time.Hour: "01:00:00", 13 * time.Hour: "Nov 28 23:00", 365 * 24 * time.Hour: "2025-11-29",
	} {
		if got := moment(at(before).Time, noon); got != want {
			t.Errorf("%s ago: %q, want %q", before, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		0: "0s", 812 * time.Microsecond: "812µs", 412*time.Millisecond + 300*time.Microsecond: "412ms", 3440 * time.Millisecond: "3.4s", 125 * time.Second: "2m5s",
		200 * time.Minute: "3h20m", 98 * time.Hour: "4d2h", -time.Second: "-1s",
	} {
		if got := span(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

// A column that could be of any length says what it leaves out.
func TestLongColumns(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{typesText(""), ""}, {typesText("a,b"), "a,b"}, {typesText(strings.Repeat("long", 20)), "1 type: " + strings.Repeat("long", 20) + ", …"},
		{typesText("archive_year,clean_weather,fetch_weather,file_report,merge"), "5 types: archive_year, …"},
		{firstFault(""), ""}, {firstFault("m.toml:1:2: no"), "m.toml:1:2: no"}, {firstFault("a\nb"), "a (1 more)"}, {firstFault("a\nb\nc\nd\ne"), "a (4 more)"},
		{beat(&view.Executor{State: "offline", HeartbeatMS: -1}), "gone"}, {beat(&view.Executor{State: "offline", HeartbeatMS: 180_000}), "gone 3m0s"},
		{beat(&view.Executor{State: "idle", HeartbeatMS: -1}), "never"}, {beat(&view.Executor{State: "idle", HeartbeatMS: 1500}), "1.5s"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
	a := &app{Env: Env{Now: func() time.Time { return noon }}}
	if cells := a.runCells(&view.Run{Why: strings.Repeat("why ", 100)}); textWidth(cells[len(cells)-1].text) != widestWhy {
		t.Errorf("why is %q", cells[len(cells)-1].text)
	}
}

// What a page has decides the columns, so that no line of it is shifted.
func TestTimelineColumns(t *testing.T) {
	var out strings.Builder
	a := &app{Env: Env{Now: func() time.Time { return noon }}}
	r := &replay{app: a, w: &out}
	long := "r-0001:" + strings.Repeat("x", 60)
	for _, ids := range [][]string{{"t-0001", "r-0001:fetch_2012", ""}, {"t-0002"}, {long, "t-0003"}} {
		var events []view.Event
		for _, id := range ids {
			events = append(events, view.Event{Seq: 1, Time: at(0), Kind: "nondeterministic", Task: id, Exec: "ares-1"})
		}
		if _, err := r.print(events); err != nil {
			t.Fatal(err)
		}
	}
	var where []int
	for line := range strings.Lines(out.String()) {
		if at := strings.Index(line, "ares-1"); at > 0 {
			where = append(where, at)
		}
	}
	first := len("  12:00:00.000        1  nondeterministic  ")
	want := []int{first + 19, first + 19, first + 19, first + 19, first + len(long) + 2, first + 42}
	if fmt.Sprint(where) != fmt.Sprint(want) {
		t.Errorf("%v, want %v:\n%s", where, want, out.String())
	}
}

// Nothing is said twice.
func TestOnce(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{failText("cancelled", "cancelled: cancelled"), "cancelled"}, {failText("cancelled", "cancelled: cancelled: tired"), "cancelled: tired"},
		{failText("cancelled", "tired"), "cancelled: tired"}, {failText("timeout", "timeout: 1: 1"), "timeout: 1: 1"}, {failText("", ""), ""},
		{unitOutcome(&view.RunUnit{State: "cancelled", ErrorClass: "cancelled", Error: "cancelled: cancelled"}), "cancelled"},
		{unitOutcome(&view.RunUnit{State: "aborted", ErrorClass: "cancelled", Error: "cancelled: tired"}), "aborted: cancelled: tired"},
		{(&app{}).unitNote(&view.RunUnit{State: "cancelled", ErrorClass: "cancelled"}), "cancelled"},
		{(&app{}).unitNote(&view.RunUnit{State: "dead", ErrorClass: "timeout"}), "dead: timeout"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
