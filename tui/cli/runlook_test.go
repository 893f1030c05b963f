package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"apollo11/engine/view"
)

// jsonLine is a thing as --json prints it.
func jsonLine(t *testing.T, v any) []byte {
	t.Helper()
	line, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return append(printableJSON(line), '\n')
}

// runStory is the timeline of a run, with another run's events among them.
func runStory(run string) []view.Event {
	event := func(seq int64, ms int, kind, unit string, pairs ...string) view.Event {
		e := view.Event{Seq: seq, Time: view.Time{Time: noon.Add(time.Duration(ms) * time.Millisecond).UTC()}, Kind: kind, Run: run, Values: object(pairs...)}
		if unit != "" {
			e.Task = run + ":" + unit
		}
		return e
	}
	other := event(5, 10, "task.start", "", "v", "1.3", "attempt", "1")
	other.Run, other.Task = "r-0001", "r-0001:fetch"
	return []view.Event{
		{Seq: 1, Kind: "start", Time: view.Time{Time: noon.UTC()}},
		event(3, 0, "task.queue", "fetch"), event(4, 12, "task.start", "fetch", "v", "1.2", "attempt", "1"), other,
		event(6, 1012, "task.fail", "fetch", "v", "1.2", "class", "execute_failed", "error", "boom", "execute_us", "900000", "prepare_us", "50000", "state", "retrying"),
		event(7, 2000, "task.queue", "fetch"), event(8, 2001, "task.start", "fetch", "v", "1.4", "attempt", "2"),
		event(9, 2101, "task.result", "fetch", "v", "1.4", "execute_us", "90000", "cleanup_us", "4000"),
		event(10, 2102, "task.queue", "clean"), event(11, 2103, "task.start", "clean", "v", "1.5", "attempt", "1"),
		event(12, 2200, "task.back", "clean", "v", "1.5"), event(13, 2300, "task.start", "clean", "v", "1.6", "attempt", "1"),
		event(14, 2400, "task.end", "report", "state", "aborted"),
	}
}

// runWorld is a controller with runs.
func runWorld(t *testing.T) *fake {
	f := newFake(t)
	now, then := flight("r-0002"), flight("r-0001")
	then.Mode, then.Parent, then.Child, then.Cause, then.By, then.Notes = "start", "", "r-0002", "cron 0 2 * * *", "", nil
	then.Spec, then.Why, then.Params = "sha256:0000000000000000", "unit clean is dead: "+hostile, object("station", "boeing", "file", hostile)
	*unitNamed(&then, "fetch") = view.RunUnit{
		Unit: "fetch", State: "succeeded", Attempt: 1, ExecuteMS: 400, InputHash: "sha256:1111111122222222", OutputHash: "sha256:aaaaaaaabbbbbbbb", Outputs: object("rows", "366"),
	}
	clean := unitNamed(&then, "clean")
	clean.State, clean.ErrorClass, clean.Error, clean.Inputs, clean.InputHash, clean.Outputs, clean.OutputHash = "dead", "timeout", "after 30s", object("year", "2011"), "sha256:7777777744444444", nil, ""
	then.Units[2].State, then.Units[2].Reason, then.Units[2].ErrorClass, then.Units[2].Error, then.Units[2].Attempt = "skipped", "clean is dead", "", "", 0
	then.Units = append(then.Units[:4:4], view.RunUnit{Unit: "archive", State: "succeeded", Attempt: 1})
	f.shown["r-0002"], f.shown["r-0001"] = []view.RunDetail{now}, []view.RunDetail{then}
	waiting := view.Run{ID: "r-0003", Mission: "a-mission-with-a-name-that-is-far-too-long-for-a-table", State: "waiting", Mode: "sample", Units: 10000, By: hostile, Created: at(0)}
	going := view.Run{ID: "r-0004", Mission: "load", State: "running", Mode: "start", Units: 3, Done: 1, Created: at(30 * time.Hour), Started: at(time.Minute), Cause: "event arrived"}
	f.runs = []view.Run{going, waiting, now.Run, then.Run}
	f.missions = []view.Mission{
		{Name: "backfill", Hash: "sha256:1", File: "missions/backfill.toml", Units: 1, Template: true, Params: object("day", "string"), Fault: "missions/backfill.toml:4:8: " + hostile},
		{Name: "weather", Hash: "sha256:2", File: "missions/weather.toml", Units: 12, Params: object("extremes", "bool=true", "station", "string=sea-tac"), Triggers: "cron 0 2 * * *; after load", Next: view.Time{Time: noon.Add(14 * time.Hour)}, LastRun: "r-0002", State: "failed"},
	}
	f.events = runStory("r-0002")
	f.keys = []view.Key{{Key: "mode", Value: "fast"}, {Key: "new", Value: hostile}, {Key: "total", Value: "12"}}
	f.past = map[int64][]view.Key{5: {{Key: "gone", Value: "x"}, {Key: "mode", Value: "slow"}, {Key: "total", Value: "12"}}}
	return f
}

// What is told of runs, missions and triggers, in words and in full.
func TestRunWords(t *testing.T) {
	for _, c := range []struct {
		kind  string
		pairs []string
		want  string
		tone  style
	}{
		{"run.start", []string{"mode", "fork", "parent", "r-0001", "from", "clean", "with", "limit=5", "spec", "sha256:0123456789abcdef", "state", "running", "sample", "10", "key", "k", "params", "a=1\nb=2", "cause", "a person", "by", "ada", "order", "2,1"},
			"run: fork, of r-0001, from clean, with limit=5, spec sha256:0123456789ab, running, sample of 10, key k, a=1 b=2, by ada", cyan},
		{"run.start", []string{"mode", "start", "state", "waiting", "cause", "cron 0 2 * * *"}, "run: start, waiting, cron 0 2 * * *", cyan},
		{"run.stop", []string{"unit", "clean", "why", "unit clean is dead"}, "what waits for clean ends, unit clean is dead", yellow},
		{"run.stop", []string{"unit", "clean", "all", "true"}, "stopped: nothing of it begins any more", yellow},
		{"run.end", []string{"state", "succeeded"}, "run ended succeeded", green},
		{"run.end", []string{"state", "failed", "why", "clean dead"}, "run ended failed, clean dead", red},
		{"run.cancel", []string{"by", "ada", "why", "late"}, "run cancelled, by ada, late", yellow},
		{"task.ready", []string{"in", "n=7", "filled", "n", "when", "params.n > 3", "note", "input n is another"}, "ready, n=7, when params.n > 3, input n is another", plain},
		{"exec.offline", []string{"reason", "told to stop"}, "offline, told to stop", yellow},
		{"exec.offline", []string{"reason", "nothing heard for 1m0s"}, "offline, nothing heard for 1m0s", red},
		{"task.ready", []string{"in", "n=1", "undo", "1"}, "ready to be undone, n=1", plain},
		{"task.skip", []string{"reason", "reused from r-0001:fetch", "reused", "r-0001:fetch", "in", "n=1", "out", "rows=7", "unit", "sha256:1"}, "reused from r-0001:fetch, rows=7", dim},
		{"task.progress", []string{"v", "1.2", "set", "total=3", "del", "old", "sv", "8"}, "feeds the state, set total=3, deleted old, state 8, version 1.2", plain},
		{"state.restore", []string{"to", "17", "set", "total=7", "del", "x,y", "by", "ada", "reason", "oops"}, "state put back to record 17, set total=7, deleted x,y, by ada, oops", yellow},
		{"nondeterministic", []string{"other", "t-1", "unit", "sha256:1"}, "not what t-1 gave, from the same inputs, context and program", yellow},
		{"mission.spec", []string{"hash", "sha256:0123456789abcdef", "part", "2", "parts", "3", "text", "name = 1"}, "text of a mission, sha256:0123456789ab, part 2 of 3", dim},
		{"mission.spec", []string{"hash", "sha256:0123456789abcdef", "part", "1", "parts", "1", "text", "name = 1"}, "text of a mission, sha256:0123456789ab", dim},
		{"mission.set", []string{"mission", "load", "hash", "sha256:0123456789abcdef", "file", "missions/load.toml"}, "mission load can be started, sha256:0123456789ab, from missions/load.toml", dim},
		{"trigger.next", []string{"mission", "load", "trigger", "cron 0 2 * * *", "at", "2026-11-30T01:00:00Z", "seen", "7"}, "mission load, cron 0 2 * * *, next at Nov 30 02:00", dim},
		{"trigger.next", []string{"mission", "load", "trigger", "state total", "why", "its own change", "seen", "7"}, "mission load, state total, its own change, waits", dim},
		{"trigger.fire", []string{"mission", "load", "trigger", "file in/*.csv", "why", "in/a.csv came", "path", "/in/a.csv", "stamp", "1-2"}, "mission load, file in/*.csv, in/a.csv came, started r-0002, file /in/a.csv", cyan},
		{"trigger.fire", []string{"mission", "load", "trigger", "cron 0 2 * * *", "skipped", "r-0001 still runs"}, "mission load, cron 0 2 * * *, nothing started: r-0001 still runs", yellow},
		{"event", []string{"name", "arrived", "values", "file=x", "by", "ada"}, "event arrived, file=x, by ada", cyan},
	} {
		e := view.Event{Kind: c.kind, Run: "r-0002", Time: view.Time{Time: noon}, Values: object(c.pairs...)}
		if got, tone := describe(&e, noon.Location()); got != c.want || tone != c.tone {
			t.Errorf("%s: %q (%s), want %q (%s)", c.kind, got, tone, c.want, c.tone)
		}
	}
}

var runLooks = []string{"runs", "missions", "show r-0002", "show r-0001", "diff r-0001 r-0002", "replay r-0002", "state --at 5", "state diff 5"}

func TestRunTables(t *testing.T) {
	for _, width := range []int{0, 60, 80, 120} {
		f := runWorld(t)
		var all strings.Builder
		for _, args := range runLooks {
			r := f.run(args, func(e *Env) { e.Terminal, e.Width = width > 0, width })
			fmt.Fprintf(&all, "$ apollo11 %s\n%s%s\n", args, r.stdout, r.stderr)
			if want := strings.Contains(args, "diff"); (r.code == Failed) != want {
				t.Errorf("%s: code %d", args, r.code)
			}
		}
		golden(t, fmt.Sprintf("runs-%d", width), all.String())
	}
}

func TestRunJSON(t *testing.T) {
	f := runWorld(t)
	for args, want := range map[string]int{
		"runs": 4, "missions": 2, "show r-0002": 6, "diff r-0001 r-0002": 7, "state diff 5": 3, "state --at 5": 3, "replay r-0002": 11, "show r-0002 --state dead,aborted": 3,
	} {
		r := f.run(args + " --json")
		lines := strings.Split(strings.TrimSuffix(r.stdout, "\n"), "\n")
		if len(lines) != want || r.stderr != "" {
			t.Errorf("%s: %d lines, want %d, %q", args, len(lines), want, r.stderr)
		}
		for _, line := range lines {
			if !json.Valid([]byte(line)) || clean(line) != line {
				t.Errorf("%s: %q", args, line)
			}
		}
	}
}

// At no width is a line wider than the terminal, ends in a space, or carries what
// a terminal acts on; and colour adds nothing that is not said.
func TestRunTablesFit(t *testing.T) {
	f := runWorld(t)
	for _, args := range []string{"runs", "missions", "diff r-0001 r-0002", "state diff 5"} {
		for width := 40; width <= 200; width += 9 {
			r := f.run(args, func(e *Env) { e.Terminal, e.Width = true, width })
			for line := range strings.Lines(r.stdout) {
				line = strings.TrimSuffix(line, "\n")
				if textWidth(line) > width || strings.HasSuffix(line, " ") || clean(line) != line {
					t.Errorf("%s at %d: %q", args, width, line)
				}
			}
		}
	}
	for _, args := range runLooks {
		plain := f.run(args, func(e *Env) { e.Terminal, e.Width = true, 100 }).stdout
		colored := f.run(args, func(e *Env) { e.Terminal, e.Width, e.Color = true, 100, true }).stdout
		for _, code := range []string{"31", "32", "33", "36", "2", "0"} {
			colored = strings.ReplaceAll(colored, "\x1b["+code+"m", "")
		}
		if colored != plain {
			t.Errorf("%s: colour changes the text\n%s\n%s", args, colored, plain)
		}
		if again := f.run(args+" --no-color", func(e *Env) { e.Terminal, e.Width, e.Color = true, 100, true }).stdout; again != plain {
			t.Errorf("%s: --no-color is not heeded", args)
		}
	}
	if r := f.run("show r-0002", func(e *Env) { e.ASCII = true }); strings.ContainsAny(r.stdout, "├└↓") || !strings.Contains(r.stdout, "v clean  succeeded 816ms") {
		t.Errorf("not plain: %s", r.stdout)
	}
	if r := f.run("diff r-0001 r-0002", func(e *Env) { e.ASCII = true }); strings.Contains(r.stdout, "→") || !strings.Contains(r.stdout, "dead -> succeeded") {
		t.Errorf("not plain: %s", r.stdout)
	}
}

func TestRunFilters(t *testing.T) {
	f := runWorld(t)
	f.run("runs --mission weather --state failed --limit 1 --json").want(t, string(jsonLine(t, &f.runs[2])), "", Done)
	f.wantAsked(t, "runs mission=weather state=failed limit=1 cursor=")
	if r := f.run("runs --limit 3"); r.stderr != "there are more: --cursor 3\n" {
		t.Errorf("%q", r.stderr)
	}
	if r := f.run("runs --limit 3 --cursor 3"); strings.Count(r.stdout, "\n") != 2 || r.stderr != "" {
		t.Errorf("%q %q", r.stdout, r.stderr)
	}
	f.runs, f.missions = nil, nil
	f.run("runs").want(t, "", "no runs\n", Done)
	f.run("missions").want(t, "", "no missions: put files into the missions folder, see local.missions\n", Done)
	f.run("runs --json").want(t, "", "", Done)
	f.run("missions --json").want(t, "", "", Done)
	f.run("show r-9").want(t, "", "apollo11: show: r-9: not found\nhint: apollo11 runs\n", Failed)
	if r := f.run("show r-0002 --state reused"); !strings.Contains(r.stdout, "fetch  fetch_year  reused") || strings.Contains(r.stdout, "skipped\n") {
		t.Errorf("reused: %s", r.stdout)
	}
	if r := f.run("show r-0002 --state skipped"); strings.Contains(r.stdout, "fetch  ") {
		t.Errorf("what is reused is skipped too: %s", r.stdout)
	}
	if r := f.run("show r-0002 --state dead"); !strings.Contains(r.stdout, "merge  ") || strings.Contains(r.stdout, "clean  ") {
		t.Errorf("%s", r.stdout)
	}
}

// A graph of many units is drawn when it is asked for.
func TestShowManyUnits(t *testing.T) {
	f := newFake(t)
	d := flight("r-0002")
	for i := range drawnUnits {
		d.Units = append(d.Units, view.RunUnit{Unit: fmt.Sprintf("more-%d", i), State: "queued"})
	}
	f.shown["r-0002"] = []view.RunDetail{d}
	if r := f.run("show r-0002"); r.stderr != "the graph of 105 units is drawn by: apollo11 show r-0002 --graph\n" || strings.Contains(r.stdout, "↓ clean") {
		t.Errorf("%q", r.stderr)
	}
	if r := f.run("show r-0002 --graph"); r.stderr != "" || !strings.Contains(r.stdout, "↓ clean") {
		t.Errorf("%q", r.stderr)
	}
	d.Units = d.Units[:5]
	f.shown["r-0002"] = []view.RunDetail{d}
	if r := f.run("show r-0002 --graph=false"); r.stderr != "" || strings.Contains(r.stdout, "↓ clean") {
		t.Errorf("%q %s", r.stderr, r.stdout)
	}
}

// pastFiles is a folder's past, without a controller.
type pastFiles struct {
	closing
	runs map[string]view.RunDetail
	keys []view.Key
}

func (p *pastFiles) Run(_ context.Context, id, _ string) (*view.RunDetail, error) {
	d, ok := p.runs[id]
	if !ok {
		return nil, fmt.Errorf("no run has the id %s", id)
	}
	return &d, nil
}

func (p *pastFiles) Runs(context.Context, view.RunQuery) (*view.RunPage, error) {
	page := &view.RunPage{}
	for _, d := range p.runs {
		page.Runs = append(page.Runs, d.Run)
	}
	return page, nil
}

func (p *pastFiles) KeysAt(_ context.Context, seq int64, q view.KeyQuery) (*view.KeyPage, error) {
	if seq == 7 && q.Keys == nil {
		return &view.KeyPage{Keys: p.keys}, nil
	}
	return &view.KeyPage{}, nil
}

func (p *pastFiles) Moment(context.Context, time.Time) (int64, error) { return 7, nil }

func TestOffline(t *testing.T) {
	files := map[string]*pastFiles{
		"a": {runs: map[string]view.RunDetail{"r-0001": alone("r-0001", "1"), "r-0002": alone("r-0002", "1")}, keys: []view.Key{{Key: "k", Value: "v"}}},
		"b": {runs: map[string]view.RunDetail{"r-0001": alone("r-0001", "2")}},
	}
	env := Env{Now: func() time.Time { return noon }, Offline: func(path string) (Timeline, error) {
		if files[path] == nil {
			return nil, &ExitError{Code: Damaged, Err: fmt.Errorf("%s: no journal", path)}
		}
		return files[path], nil
	}}
	if r := run(t, env, "show", "r-0001", "--data", "a"); r.code != Done || !strings.Contains(r.stdout, "count  ") || !files["a"].closed {
		t.Errorf("%d %q %q", r.code, r.stdout, r.stderr)
	}
	if r := run(t, env, "diff", "r-0002", "--data", "a"); r.code != Done || !strings.Contains(r.stdout, "no difference") {
		t.Errorf("%d %q %q", r.code, r.stdout, r.stderr)
	}
	if r := run(t, env, "runs", "--data", "b", "--json"); r.code != Done || !strings.HasPrefix(r.stdout, `{"id":"r-0001"`) {
		t.Errorf("%d %q %q", r.code, r.stdout, r.stderr)
	}
	r := run(t, env, "diff", "a:r-0001", "b:r-0001")
	if r.code != Failed || !strings.Contains(r.stdout, "a:r-0001") || !strings.Contains(r.stdout, "  - 1\n  + 2\n") {
		t.Errorf("%d %q %q", r.code, r.stdout, r.stderr)
	}
	if r := run(t, env, "state", "--at", "10m", "--data", "a", "--json"); r.code != Done || !strings.Contains(r.stdout, `"key":"k","value":"v"`) {
		t.Errorf("%d %q %q", r.code, r.stdout, r.stderr)
	}
	run(t, env, "state", "diff", "7", "now", "--data", "a").want(t, "KEY  BEFORE  AFTER\nk    v       (not there)\n", "", Failed)
	run(t, env, "diff", "c:r-0001", "b:r-0001").want(t, "", "apollo11: diff: c: no journal\n", Damaged)
	run(t, env, "diff", "a:r-0009", "b:r-0001").want(t, "", "apollo11: diff: a:r-0009: no run has the id r-0009\n", Failed)
	env.Offline = func(string) (Timeline, error) { return &events{}, nil }
	run(t, env, "show", "r-0001", "--data", "a").want(t, "", "apollo11: show: a: this build reads only the timeline of files\n", Usage)
	env.Offline = nil
	run(t, env, "show", "r-0001", "--data", "a").want(t, "", "apollo11: show: a: this build reads no files\n", Usage)
}

func TestStateMoments(t *testing.T) {
	f := runWorld(t)
	f.moment = 5
	f.run("state --at 10m mode").want(t, "KEY   VALUE  VERSION  RECORD  BY        FAULT\nmode  slow         0       0  operator\n", "", Done)
	f.run("state --at 6").want(t, "", "apollo11: state --at: 6: the journal ends at record 5\nhint: apollo11 state --at 5\n", Failed)
	f.run("state diff 5 77").want(t, "", "apollo11: state diff: 77: the journal ends at record 5\nhint: apollo11 state --at 5\n", Failed)
	f.asked = nil
	f.run("state diff 5 10m").want(t, "", "no difference\n", Done)
	f.run("state diff 5 10m --json").want(t, "", "", Done)
	one := []string{"moment 9999-01-01T00:00:00Z", "state at 5", "state at 5", "moment 2026-11-29T10:50:00Z", "state at 5", "state at 5"}
	f.wantAsked(t, append(one, one...)...)
	f.moment = 0
	f.run("state --at 10m").want(t, "", "apollo11: state --at: 10m: nothing that is kept happened before\nhint: apollo11 replay --to 10m\n", Failed)
	f.run("state --at soon").want(t, "", "apollo11: state --at: soon: want a record's number, a time such as 08:15:30 or 2026-01-31T08:00:00Z, or so long ago, such as 10m\nhint: apollo11 state --at 10m\n", Usage)
}

func TestStateRollback(t *testing.T) {
	f := runWorld(t)
	f.restored = view.Restored{Seq: 5, Total: 700, Changed: []view.KeyChange{{Key: "mode", Before: "fast", After: "slow"}, {Key: "new", Before: "1", Gone: true}}}
	shown := "KEY   BEFORE  AFTER\nmode  fast    slow\nnew   1       (not there)\n"
	f.run("state rollback 5 --reason oops").want(t, shown, "apollo11: state rollback: 700 keys back to what record 5 left: not done without --yes, since nobody can be asked here\n"+
		"hint: apollo11 state rollback 5 --reason oops --yes\n", Usage)
	f.run("state rollback 5 --reason oops --yes").want(t, shown, "state rollback: put 700 keys back to what record 5 left\n", Done)
	if r := f.run("state rollback 5 --reason oops --yes --json"); r.code != Done || !strings.HasPrefix(r.stdout, `{"seq":5,"total":700,"changed":[{"key":"mode",`) || r.stderr != "" {
		t.Errorf("%q %q", r.stdout, r.stderr)
	}
	f.wantAsked(t, "restore {Seq:5 Check:true Reason:oops}", "restore {Seq:5 Check:true Reason:oops}", "restore {Seq:5 Check:false Reason:oops}",
		"restore {Seq:5 Check:true Reason:oops}", "restore {Seq:5 Check:false Reason:oops}")
	f.restored = view.Restored{Seq: 5}
	f.asked = nil
	f.run("state rollback 5 --reason oops --yes").want(t, "", "state rollback: the state is as record 5 left it already\n", Done)
	f.wantAsked(t, "restore {Seq:5 Check:true Reason:oops}")
	f.run("state rollback now --reason oops").want(t, "", "apollo11: state rollback: now: the state is that already\nhint: apollo11 state rollback 10m --reason TEXT\n", Usage)
}

// A run's prefix, a task that is called like a run, and what only the journal
// still knows.
func TestReplayOfRun(t *testing.T) {
	f := runWorld(t)
	f.shown["r-2"] = f.shown["r-0002"]
	f.details["r-mine"] = []view.Detail{{Task: view.Task{ID: "r-mine-1"}}}
	for _, id := range []string{"r-2", "r-mine", "r-gone"} {
		f.run("replay " + id)
	}
	var got []string
	for _, line := range f.questions() {
		if strings.HasPrefix(line, "timeline") && strings.Contains(line, "from=0") {
			got = append(got, line)
		}
	}
	if want := "timeline of r-0002 from=0|timeline from=0 task=r-mine-1 after= until=|timeline of r-gone from=0"; strings.Join(got, "|") != want {
		t.Errorf("asked %q", got)
	}
}

func TestCompletion(t *testing.T) {
	f := runWorld(t)
	for args, want := range map[string]string{
		"__complete show r-":         "r-0004\tload running\n",
		"__complete run w":           "weather\t12 units extremes=true station=sea-tac\n",
		"__complete runs --mission ": "backfill\t1 unit day=…\n",
		"__complete runs --state ":   "needs_person\n",
		"__complete fork r-":         "r-0002\tweather failed\n",
		"__complete cancel r-0":      "r-0001\tweather failed\n",
		"__complete replay r-0":      "r-0001\tweather failed\n",
		"__complete rollback r-0":    "r-0001\tweather failed\n",
		"__complete explain r-0":     "r-0001\tweather failed\n",
	} {
		words := strings.Split(args, " ")
		if r := run(t, f.env(), words...); !strings.Contains(r.stdout, want) {
			t.Errorf("%s: %q %q", args, r.stdout, r.stderr)
		}
	}
	env := f.env()
	env.AddrEnv = "127.0.0.1:1"
	if r := run(t, env, "__complete", "show", ""); !strings.HasPrefix(r.stdout, ":") {
		t.Errorf("without a controller: %q", r.stdout)
	}
}

// Moments are taken as tables and timelines print them.
func TestWhen(t *testing.T) {
	zone := time.FixedZone("", 3600)
	now := time.Date(2026, 3, 1, 12, 30, 15, 0, zone)
	for _, c := range []struct{ text, want string }{
		{"08:15:30", "2026-03-01T08:15:30+01:00"}, {"08:15:30.250", "2026-03-01T08:15:30.25+01:00"}, {"8:15", "2026-03-01T08:15:00+01:00"},
		{"Feb 28 10:00", "2026-02-28T10:00:00+01:00"}, {"Feb  3 10:00", "2026-02-03T10:00:00+01:00"}, {"Nov 28 10:00", "2025-11-28T10:00:00+01:00"},
		{"2025-11-28", "2025-11-28T00:00:00+01:00"}, {"10m", "2026-03-01T12:20:15+01:00"}, {"2026-02-28T10:00:00Z", "2026-02-28T10:00:00Z"}, {"", "0001-01-01T00:00:00Z"},
	} {
		seq, at, err := parseWhen(c.text, now)
		if got := at.Format(time.RFC3339Nano); err != nil || seq != 0 || got != c.want {
			t.Errorf("%q: %d, %s, %v, want %s", c.text, seq, got, err, c.want)
		}
	}
	for text, want := range map[string]string{"08:15:30": "08:15:30.999999", "08:15:30.25": "08:15:30.25", "08:15": "08:15:00", "10m": "12:20:15"} {
		if _, at, err := parseEnd(text, now); err != nil || at.Format("15:04:05.999999") != want {
			t.Errorf("%q ends at %s, %v, want %s", text, at, err, want)
		}
	}
	for _, text := range []string{"25:00", "-10m", "soon", "0", "-1"} {
		if _, at, err := parseWhen(text, now); err == nil {
			t.Errorf("%q is %s", text, at)
		}
	}
}
