package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"apollo11/engine/view"
	"apollo11/wire"
)

// What was asked after the hello.
func (f *fake) questions() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []string
	for _, line := range f.asked {
		if !strings.HasPrefix(line, "hello ") {
			list = append(list, line)
		}
	}
	return list
}

func (f *fake) wantAsked(t *testing.T, want ...string) {
	t.Helper()
	if got := f.questions(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("asked\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

const pipeline = "units:\n  - name: fetch\n"

func TestRun(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "pipeline.yaml")
	if err := os.WriteFile(file, []byte(pipeline), 0o600); err != nil {
		t.Fatal(err)
	}
	f := newFake(t)
	f.started = view.Run{ID: "r-0007", Mission: "weather", Units: 12, Spec: "sha256:ed1b068a5e13ff"}
	f.run("run weather year=2012 --key monday --sample 10").want(t, "r-0007\n", "", Done)
	f.run("run weather --json").want(t, string(jsonLine(t, &f.started)), "", Done)
	f.run("run weather --check").want(t, "", "weather: 12 units, passed the check, sha256:ed1b068a5e13\n", Done)
	f.run("run "+file).want(t, "r-0007\n", "", Done)
	f.wantAsked(t,
		"run {Mission:weather File: Params:[{Name:year Value:2012}] Key:monday Sample:10 Check:false}",
		"run {Mission:weather File: Params:[] Key: Sample:0 Check:false}",
		"run {Mission:weather File: Params:[] Key: Sample:0 Check:true}",
		"upload "+file+" true",
		"run {Mission: File:"+file+" Params:[] Key: Sample:0 Check:false}",
	)
	if f.uploaded != pipeline {
		t.Errorf("uploaded %q", f.uploaded)
	}
}

// Every fault stands on its line with its place, and nothing before it.
func TestRunRefused(t *testing.T) {
	f := newFake(t)
	f.refuse[wire.OpRun] = &wire.Error{Code: wire.CodeInvalid, Message: "missions/weather.toml:2:8: params.day has no value\nmissions/weather.toml:9:8: unit x: uses: there is no unit x"}
	f.run("run weather day=a'b").want(t, "",
		"apollo11: missions/weather.toml:2:8: params.day has no value\napollo11: missions/weather.toml:9:8: unit x: uses: there is no unit x\n"+
			`hint: apollo11 plan weather 'day=a'\''b'`+"\n", Usage)
	f.refuse[wire.OpRun] = &wire.Error{Code: wire.CodeNotFound, Message: "no mission weathr"}
	f.run("run weathr").want(t, "", "apollo11: run: weathr: no mission weathr\nhint: apollo11 missions, or the mission's file: apollo11 run ./weathr.toml\n", Failed)
	f.refuse[wire.OpRun] = &wire.Error{Code: wire.CodeDiskFull, Message: "the disk is full"}
	if r := f.run("run weather"); r.code != Failed || !strings.HasPrefix(r.stderr, "apollo11: run: weather: the disk is full\n") {
		t.Errorf("%d %q", r.code, r.stderr)
	}

	bad := filepath.Join(t.TempDir(), "bad.toml")
	if err := os.WriteFile(bad, []byte("[[units]]\nname = \"a\"\nretires = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.asked = nil
	f.run("run "+bad).want(t, "", "apollo11: "+bad+":3:1: unit a: retires: unknown key: did you mean retries?\n", Usage)
	f.run("run ./nosuch.toml").want(t, "", "apollo11: run: mission file ./nosuch.toml: no such file or directory\nhint: apollo11 missions\n", Failed)
	if len(f.asked) > 0 {
		t.Errorf("it reached the controller: %q", f.asked)
	}
}

// The id is on stdout, what happens on stderr, up to the end and not beyond.
func TestRunWait(t *testing.T) {
	f := newFake(t)
	f.status.Seq = 2
	f.started = view.Run{ID: "r-0002", Mission: "weather", Units: 5}
	f.shown["r-0002"] = inFlight("r-0002", "failed")
	f.events = runStory("r-0002")
	r := f.run("run weather --wait")
	if r.code != Failed || r.stdout != "r-0002\n" {
		t.Errorf("code %d, %q", r.code, r.stdout)
	}
	for _, want := range []string{
		"# 2026-11-29 +01:00\n", "attempt 1, version 1.2", "failed: execute_failed: boom", "\nmerge: dead: execute_failed: exit 1: ",
		"apollo11: run: r-0002 failed: 5 of 5 ended, 1 dead, 3 skipped, 1 reused, in 8s: unit merge is dead\n",
		"hint: look: apollo11 show r-0002; when the cause is gone: apollo11 resume r-0002\n",
	} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("no %q in\n%s", want, r.stderr)
		}
	}
	if strings.Contains(r.stderr, "r-0001") || strings.Contains(r.stderr, "controller started") {
		t.Errorf("what belongs to others:\n%s", r.stderr)
	}
	if asked := f.questions(); asked[1] != "timeline of r-0002 from=3" {
		t.Errorf("asked %q", asked)
	}

	f.shown["r-0002"] = inFlight("r-0002", "succeeded")
	f.shown["r-0002"][1].Units = f.shown["r-0002"][1].Units[:2]
	if r := f.run("run weather --wait"); r.code != Done || !strings.HasSuffix(r.stderr, "\nr-0002 succeeded: 5 of 5 ended, 1 dead, 3 skipped, 1 reused, in 8s\n") {
		t.Errorf("code %d, %q", r.code, r.stderr)
	}
	f.shown["r-0002"] = inFlight("r-0002", "needs_person")
	if r := f.run("run weather --wait"); r.code != Failed || !strings.HasSuffix(r.stderr, "hint: apollo11 explain r-0002\n") {
		t.Errorf("code %d, %q", r.code, r.stderr)
	}
	f.shown["r-0002"] = inFlight("r-0002", "failed")
	last := f.shown["r-0002"][1].Run
	if r := f.run("run weather --wait --json"); r.code != Failed || r.stdout != string(jsonLine(t, &last)) {
		t.Errorf("code %d, %q", r.code, r.stdout)
	}
}

// Who stops waiting is told that the run goes on.
func TestRunWaitInterrupted(t *testing.T) {
	f := newFake(t)
	f.started = view.Run{ID: "r-0002", Units: 5}
	f.shown["r-0002"] = inFlight("r-0002", "failed")[:1]
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	r := runContext(ctx, f.env(), "run", "weather", "--wait")
	r.want(t, "r-0002\n", "apollo11: run: interrupted; r-0002 goes on\nhint: apollo11 cancel r-0002\n", Failed)
}

func TestResumeAndFork(t *testing.T) {
	f := newFake(t)
	f.started = view.Run{ID: "r-0002", Mission: "weather", Parent: "r-0001"}
	f.shown["r-0002"] = []view.RunDetail{flight("r-0002")}
	notes := "r-0002: fetch: reused from r-0001\nr-0002: clean: input year is another: 2012, was 2011\nhint: when it has ended: apollo11 diff r-0002\n"
	f.run("resume r-0001").want(t, "r-0002\n", notes, Done)
	f.run("fork r-0001 --from clean --with year=2012 --with limit=a=b").want(t, "r-0002\n", notes, Done)
	f.run("rerun r-0001 --at-context").want(t, "r-0002\n", notes, Done)
	f.wantAsked(t, "resume r-0001", "fork {Run:r-0001 From:clean With:[{Name:limit Value:a=b} {Name:year Value:2012}]}", "rerun r-0001 true")
	f.refuse[wire.OpResume] = &wire.Error{Code: wire.CodeNotFound, Message: "no run has the id r-9"}
	f.run("resume r-9").want(t, "", "apollo11: resume: no run has the id r-9\nhint: apollo11 runs\n", Failed)
}

// A rerun that was waited for is held against its parent.
func TestRerunWait(t *testing.T) {
	f := newFake(t)
	f.started = view.Run{ID: "r-0002", Mission: "count", Parent: "r-0001", Units: 1}
	f.shown["r-0001"], f.shown["r-0002"] = []view.RunDetail{alone("r-0001", "366")}, []view.RunDetail{alone("r-0002", "366")}
	if r := f.run("rerun r-0001 --wait"); r.code != Done || !strings.Contains(r.stdout, "# 1 unit, no difference\n") {
		t.Errorf("code %d, %q, %q", r.code, r.stdout, r.stderr)
	}
	f.shown["r-0002"] = []view.RunDetail{alone("r-0002", "365")}
	r := f.run("rerun r-0001 --wait")
	if r.code != Failed || !strings.HasSuffix(r.stderr, "apollo11: rerun: r-0002 did not come to what r-0001 came to\n") || !strings.Contains(r.stdout, "  - 366\n  + 365\n") {
		t.Errorf("code %d, %q, %q", r.code, r.stdout, r.stderr)
	}
	// A fork is meant to differ.
	if r := f.run("fork r-0001 --from count --wait"); r.code != Done || !strings.Contains(r.stdout, "  - 366\n  + 365\n") {
		t.Errorf("code %d, %q, %q", r.code, r.stdout, r.stderr)
	}

	f.again = []view.Submitted{{ID: "t-9"}}
	f.details["t-1"] = []view.Detail{{Task: view.Task{ID: "t-1", Type: "count", State: "succeeded", Outputs: object("rows", "1")}}}
	f.details["t-9"] = []view.Detail{{Task: view.Task{ID: "t-9", Type: "count", State: "queued"}}, {Task: view.Task{ID: "t-9", Type: "count", State: "succeeded", Outputs: object("rows", "1")}}}
	f.run("rerun t-1").want(t, "t-9\n", "", Done)
	if r := f.run("rerun t-1 --wait"); r.code != Done || !strings.HasPrefix(r.stdout, "t-9\n") || !strings.Contains(r.stdout, "# 1 unit, no difference\n") {
		t.Errorf("code %d, %q, %q", r.code, r.stdout, r.stderr)
	}
	f.details["t-9"] = []view.Detail{{Task: view.Task{ID: "t-9", Type: "count", State: "succeeded", Outputs: object("rows", "2")}}}
	if r := f.run("rerun t-1 --wait"); r.code != Failed || !strings.Contains(r.stdout, "output rows\n  - 1\n  + 2\n") {
		t.Errorf("code %d, %q, %q", r.code, r.stdout, r.stderr)
	}
}

// Long values are shown from where they begin to differ.
func TestValueContrast(t *testing.T) {
	long := strings.Repeat("世界", 100)
	for _, c := range []struct {
		v    view.ValueDiff
		want contrast
	}{
		{view.ValueDiff{A: "1", B: "2", InA: true, InB: true}, contrast{"output n", "1", "2"}},
		{view.ValueDiff{A: "1", InA: true}, contrast{"output n", "1", "(not given)"}},
		{view.ValueDiff{A: long + "1", B: long + "2", InA: true, InB: true}, contrast{"output n, from byte 558 on", "…" + strings.Repeat("世界", 7) + "1", "…" + strings.Repeat("世界", 7) + "2"}},
		{view.ValueDiff{A: long, B: long + "2", InA: true, InB: true}, contrast{"output n, from byte 558 on", "…" + strings.Repeat("世界", 7), "…" + strings.Repeat("世界", 7) + "2"}},
		{view.ValueDiff{A: "1" + strings.Repeat("x", 500), B: "2", InA: true, InB: true}, contrast{"output n", "1" + strings.Repeat("x", 199) + "… (501 bytes)", "2"}},
		{view.ValueDiff{B: strings.Repeat("é", 300), InB: true}, contrast{"output n", "(not given)", strings.Repeat("é", 200) + "… (600 bytes)"}},
	} {
		if got := valueContrast("output n", &c.v); got != c.want {
			t.Errorf("%+v\nwant %+v", got, c.want)
		}
	}
}

// A run that has no parent, and one whose parent is forgotten.
func TestDiffWithoutParent(t *testing.T) {
	f := newFake(t)
	lonely := alone("r-0001", "1")
	lonely.Parent = ""
	f.shown["r-0001"], f.shown["r-0003"] = []view.RunDetail{lonely}, []view.RunDetail{alone("r-0003", "1")}
	f.run("diff r-0001").want(t, "", "apollo11: diff: r-0001: has no parent to compare with\nhint: apollo11 diff r-0001 RUN\n", Usage)
	delete(f.shown, "r-0001")
	f.run("diff r-0003").want(t, "", "apollo11: diff: r-0001: not found\nhint: apollo11 runs\n", Failed)
}

// alone is a run of one unit with one output.
func alone(id, rows string) view.RunDetail {
	return view.RunDetail{
		Run:   view.Run{ID: id, Mission: "count", State: "succeeded", Mode: "rerun", Parent: "r-0001", Units: 1, Done: 1},
		Units: []view.RunUnit{{Unit: "count", State: "succeeded", Attempt: 1, Outputs: object("rows", rows)}},
	}
}

func TestEvent(t *testing.T) {
	f := newFake(t)
	f.run("event arrived file=x.csv").want(t, "", "event arrived: nothing waits for it, so nothing started\n", Done)
	f.happened = []view.Run{{ID: "r-0003", Mission: "load"}, {ID: "r-0004", Mission: "check"}}
	f.run("event arrived").want(t, "r-0003\nr-0004\n", "event arrived: started r-0003 of load\nevent arrived: started r-0004 of check\n", Done)
	if r := f.run("event arrived --json"); strings.Count(r.stdout, "\n") != 2 || r.stderr != "" {
		t.Errorf("%q %q", r.stdout, r.stderr)
	}
	f.wantAsked(t, "event {Name:arrived Params:[{Name:file Value:x.csv}]}", "event {Name:arrived Params:[]}", "event {Name:arrived Params:[]}")
}

// An id that is a run's ends the run; RUN:UNIT, and a task that somebody called
// like a run, are tasks.
func TestCancelRun(t *testing.T) {
	f := newFake(t)
	f.shown["r-0002"] = []view.RunDetail{flight("r-0002")}
	f.changed = view.Changed{Matched: 2, Changed: 2}
	f.run("cancel r-0002 --reason late").want(t, "", "cancelled r-0002: 5 of 5 ended, 1 dead, 3 skipped, 1 reused\n", Done)
	f.run("cancel r-0002:clean r-0002 r-mine").want(t, "", "cancelled r-0002: 5 of 5 ended, 1 dead, 3 skipped, 1 reused\n2 cancelled\n", Done)
	f.wantAsked(t, "cancelrun r-0002 late", "cancelrun r-0002 ", "cancelrun r-mine ",
		"cancel ids=[r-0002:clean r-mine] all=false count=false states=[] type= error= reason=")
}

// A task of a run is not requeued by itself; the way is said.
func TestRequeueOfRunTask(t *testing.T) {
	f := newFake(t)
	f.changed = view.Changed{Matched: 1, Skipped: []string{"r-0002:clean: belongs to run r-0002"}}
	for _, command := range []string{"requeue", "drop"} {
		r := f.run(command + " r-0002:clean")
		if r.code != Failed || !strings.HasSuffix(r.stderr, "hint: a run's tasks go on with it: apollo11 resume r-0002\n") || !strings.Contains(r.stderr, "belongs to run r-0002\n") {
			t.Errorf("%s: %d %q", command, r.code, r.stderr)
		}
	}
	if r := f.run("requeue t-1"); strings.Contains(r.stderr, "resume") {
		t.Errorf("%q", r.stderr)
	}
}

func TestRollback(t *testing.T) {
	f := newFake(t)
	f.undone = view.Undone{Run: view.Run{ID: "r-0005"}, Units: []string{"merge", "clean"}, Without: []string{"fetch"}}
	shown := "rollback: in this order: merge, clean\nrollback: have no undo, and stay: fetch\n"
	f.run("rollback r-0002 --to clean").want(t, "", shown+
		"apollo11: rollback: 2 units of r-0002: not done without --yes, since nobody can be asked here\nhint: apollo11 rollback r-0002 --to clean --yes\n", Usage)
	f.wantAsked(t, "rollback {Run:r-0002 To:clean Check:true}")
	ask := func(answer string) func(*Env) {
		return func(e *Env) { e.Ask, e.Stdin = true, strings.NewReader(answer) }
	}
	f.run("rollback r-0002", ask("n\n")).want(t, "", shown+"rollback 2 units of r-0002? [y/N] apollo11: rollback: nothing changed\n", Failed)
	f.asked = nil
	f.run("rollback r-0002", ask("y\n")).want(t, "r-0005\n", shown+"rollback 2 units of r-0002? [y/N] ", Done)
	f.run("rollback r-0002 --yes").want(t, "r-0005\n", shown, Done)
	f.wantAsked(t, "rollback {Run:r-0002 To: Check:true}", "rollback {Run:r-0002 To: Check:false}", "rollback {Run:r-0002 To: Check:true}", "rollback {Run:r-0002 To: Check:false}")
	f.undone.Units = nil
	f.run("rollback r-0002 --yes").want(t, "", "rollback: have no undo, and stay: fetch\napollo11: rollback: r-0002: nothing that it did can be undone\nhint: apollo11 show r-0002\n", Failed)
}
