package tui

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

func TestRunsAndUnits(t *testing.T) {
	r := newRig(t, world(), 80, 24).press("5").sees("runs: 2 · newest first").sees("3/5").sees("by ada")
	r.sees("fetch-2012  reused from r-0001").sees("↓ clean-2013  running 7m")
	r.press("j").sees("└─ merge  aborted; after clean-2012, clean-2013; beside fetch-2012").sees("clean-2013  dead 1.8s, try 3")
	r.press("enter").sees("r-0001 of weather · failed · 5 of 5 units ended, 1 dead").sees("r-0002 goes on from it").sees("> clean-2013")
	r.press("/", "x", "enter").sees("esc goes back to the list").press("enter").sees("r-0001:clean-2013  clean").sees("queued 240ms, prepare 12ms, execute 1.8s").sees("attempts").sees("run         r-0001")
	r.press("enter").sees("> clean-2013") // closed again
	r.press("j", "enter").sees("waits for   clean-2012, clean-2013").sees("reason      upstream clean-2013")
	r.press("esc", "esc").sees("runs: 2").sees("> r-0001")
	newRig(t, world(), 120, 36).press("5", "enter", "g").sees("> fetch-2012").sees("state       reused").misses("skipped")
}

func TestRunsFilter(t *testing.T) {
	r := newRig(t, world(), 80, 24).press("5", "/", "failed", "enter").sees("runs: 1 of 2 · filter failed").misses("r-0002   weather")
	r.press("esc").sees("runs: 2 ·")
	r.press("/", "nothing", "enter").sees("none that matches the filter").press("enter").sees("no run here")
	r.press("/", "type:dead", "enter").sees("words and !words only")
}

func TestResume(t *testing.T) {
	r := newRig(t, world(), 100, 24).press("5", "R").sees("r-0002 is running: it goes on by itself")
	r.press("j", "R").sees("r-0001 was resumed already, by r-0002")
	if a, n := r.last(); n != 0 {
		t.Fatalf("did %+v", a)
	}
	r.f.find("r-0001").Child = ""
	r.f.over.Status.Seq++
	r.poll()
	r.press("R")
	if a, n := r.last(); n != 1 || !reflect.DeepEqual(a, Action{Verb: ResumeRun, Name: "r-0001"}) {
		t.Fatalf("did %d times, %+v", n, a)
	}
	r.sees("r-0003 goes on from r-0001").sees("r-0003 of weather · running").press("esc").sees("> r-0003").sees("resume")
	r.f.refuse = errors.New("conflict: the mission is another now\x1b[2J")
	r.f.find("r-0001").Child, r.f.find("r-0001").State = "", "cancelled"
	r.f.over.Status.Seq++
	r.poll()
	r.press("G", "R").sees(`the mission is another now\x1b[2J`)
	for _, state := range []string{"succeeded"} {
		r.f.find("r-0001").State = state
		r.f.over.Status.Seq++
		r.poll()
		r.press("R").sees("nothing of it is left to do")
	}
}

func TestCancelRun(t *testing.T) {
	r := newRig(t, world(), 80, 24).press("5", "c").sees("Cancel r-0002 of weather?").sees("3 have ended and 1 run now").press("n")
	if _, n := r.last(); n != 0 {
		t.Fatal("no was a yes")
	}
	r.press("enter", "c", "y").sees("r-0002 is cancelled")
	if a, _ := r.last(); a.Verb != CancelRun || a.Name != "r-0002" || a.Reason == "" {
		t.Fatalf("did %+v", a)
	}
	r.poll()
	r.sees("· cancelled ·").press("c").sees("r-0002 has ended: it is cancelled")
	r.f.runs[1].State = "needs_person" // it has ended, and a person may end it otherwise
	r.f.over.Status.Seq++
	r.press("esc")
	r.poll()
	r.press("G", "c").sees("Cancel r-0001 of weather?")
}

func TestStartMission(t *testing.T) {
	r := newRig(t, world(), 100, 30).press("1", "m").sees("Start a mission").sees("starts by itself: at 0 2 * * *").sees("last r-0000 succeeded")
	r.press("j").sees("parameters: year (int), region (string=north)").press("j", "enter").sees("wrong can't be started: missions/wrong.toml:7")
	r.press("k", "enter").sees("Start weather").sees("year   =").sees("int, required").press("enter").sees("has to be given")
	if _, n := r.last(); n != 0 {
		t.Fatal("it started without what it needs")
	}
	r.press("2014", "down", "ctrl+u", "down", "down", "up", "ctrl+x", "enter")
	want := Action{Verb: StartRun, Name: "weather", Set: task.Values{{Name: "year", Value: "2014"}, {Name: "region", Value: ""}}}
	if a, n := r.last(); n != 1 || !reflect.DeepEqual(a, want) {
		t.Fatalf("did %d times, %+v", n, a)
	}
	r.sees("r-0003 of weather is running").sees("[5 missions]").misses("Start weather")
	r.press("esc").sees("> r-0003")
}

func TestStartRefused(t *testing.T) {
	f := world()
	f.refuse = errors.New("invalid: weather.toml:3: params.year = x: not a whole number\nthere is no parameter regio")
	r := newRig(t, f, 100, 30).press("5", "m", "j", "enter", "x", "enter").sees("there is no parameter regio")
	lines := strings.Split(r.frame(), "\n")
	for i, line := range lines {
		if strings.Contains(line, "year   = x") && !strings.Contains(lines[i+1], "! year = x: not a whole number") {
			t.Errorf("under the parameter stands %s", lines[i+1])
		}
	}
	f.refuse = nil
	r.press("backspace", "7", "enter").misses("Start weather").sees("r-0003 of weather")
	r.press("m", "enter").sees("Start nightly").sees("it has no parameters").press("x", "down", "left", "enter")
	if a, _ := r.last(); !reflect.DeepEqual(a, Action{Verb: StartRun, Name: "nightly"}) {
		t.Fatalf("did %+v", a)
	}
	f.missions = nil
	r.press("m").sees("no mission is known")
}

func TestCompareRuns(t *testing.T) {
	r := newRig(t, world(), 120, 30).press("5", "space", "space").sees("2 marked, D compares them").press("D")
	r.sees("r-0001 beside r-0002 · 3 of 5 units differ, first fetch-2013").sees("! FIRST: outputs, prog").sees("· state, follows")
	r.sees("rows: 365 → 366").sees("> fetch-2013")
	r.press("R").sees("esc goes back").press("k").sees("differs     no").press("esc").sees("2 marked").press("esc").sees("runs: 2").misses("marked")
	r.press("g", "D").sees("r-0001 beside r-0002") // with the one that it goes on from
	r.press("esc", "G", "D").sees("r-0001 beside r-0002").press("esc")
	r.press("g", "enter", "D").sees("r-0001 beside r-0002").press("esc").sees("r-0002 of weather")
	narrow := newRig(t, world(), 80, 24).press("5", "D", "enter").sees("outputs that differ").sees("rows: 365 → 366").press("esc").sees("beside")
	narrow.f.runs = narrow.f.runs[:1]
	narrow.press("esc", "D").sees("not found: run r-0001").press("esc")
	narrow.f.runs[0].Parent = ""
	narrow.f.over.Status.Seq++
	narrow.poll()
	narrow.press("D").sees("space marks each")
	three := newRig(t, world(), 80, 24)
	three.f.runs = append(three.f.runs, view.RunDetail{Run: view.Run{ID: "r-0000", State: "succeeded"}})
	three.press("5", "space", "space", "space", "D").sees("D compares two runs: 3 are marked")
}

// Two runs whose units came to the same may still not have ended the same.
func TestCompareSame(t *testing.T) {
	f := world()
	f.runs[0].Units = slices.Clone(f.runs[1].Units)
	r := newRig(t, f, 120, 30).press("5", "D").sees("failed and running, with the same units")
	f.runs[0].State = "failed"
	r.press("esc", "D").sees("the same, unit by unit")
	f.runs[0].Spec, f.runs[0].Params = "else", nil
	r.press("esc", "D").sees("not the same mission text").sees("year: 2013 → (not there)")
}

// A file that is handed on is shown by its name, wherever values are.
func TestFilesAreNamed(t *testing.T) {
	f := world()
	file := func(run, sum string) view.Object {
		return view.Object{{Name: "data", Value: "share:03f1/" + run + "/fetch-2013/year.csv#12131," + strings.Repeat(sum, 32)}}
	}
	f.runs[0].Units[1].Outputs, f.runs[1].Units[1].Outputs = file("r-0002", "ab"), file("r-0001", "cd")
	r := newRig(t, f, 80, 24).press("5", "D", "enter").sees("data: year.csv (12131 bytes, cdcdcd) → year.csv (12131 bytes, ababab)")
	r.press("esc", "esc", "enter", "j", "enter").sees("data = year.csv (12131 bytes, ababab)").misses("share:")
}

func TestExplainRun(t *testing.T) {
	f := world()
	f.detail["r-0001"] = view.Detail{Task: view.Task{ID: "r-0001", State: "failed"}}
	r := newRig(t, f, 100, 30).press("5", "j", "i").sees("why r-0001 stands where it does").sees("R resumes it")
	r.press("esc", "enter", "i").sees("why r-0001:clean-2013 stands").sees("r resumes its run, e says how").sees(" apollo11 fork r-0001 --from clean-2013 --with NAME=VALUE")
}

// What belongs to a run leads to it, and from it to what happened.
func TestRelatedRuns(t *testing.T) {
	f := world()
	f.tasks = append(f.tasks, runTask(), view.Task{ID: "r-0002:clean-2013", Type: "clean", State: "running", Submitted: ago(time.Minute)})
	f.events = append(f.events, view.Event{Seq: 41, Time: ago(0), Kind: "run.start", Run: "r-0002"}, view.Event{Seq: 42, Time: ago(0), Kind: "task.start", Task: "r-0002:clean-2013", Run: "r-0002"})
	f.over.Status.Seq = 42
	r := newRig(t, f, 100, 30).press("4").sees("> r-0001:clean-2013 ").press("J").sees("[5 missions]").sees("r-0001 of weather · failed")
	r.press("J").sees("[6 timeline]").sees("filter run:r-0001").misses("run.start").press("esc").sees("run.start").misses("filter run")
	r.press("-", "esc", "k", "J").sees("filter run:r-0002").sees("r-0002:clean-2013").misses("t-0001").press("k").sees("r-0002").press("J").sees("r-0002 of weather")
	r.press("3", "J").sees("it is of no run").press("G", "J").sees("r-0002 of weather")
}

// A dead letter of a run that ended is not requeued by itself; what can be done
// is offered.
func TestRequeueOfARunsTask(t *testing.T) {
	f := world()
	dead := runTask()
	dead.State = "dead"
	f.tasks = append(f.tasks, dead)
	f.skip = "r-0001 has ended: resume it"
	r := newRig(t, f, 100, 30).press("4", "r").sees("0 requeued, 1 not: r-0001:clean-2013: r-0001 has ended").sees("Resume r-0001?")
	r.press("y")
	if a, n := r.last(); n != 2 || !reflect.DeepEqual(a, Action{Verb: ResumeRun, Name: "r-0001"}) {
		t.Fatalf("did %d times, %+v", n, a)
	}
	r.sees("r-0003 goes on from r-0001")
	r.press("4", "e").sees("apollo11 fork r-0001 --from clean-2013 --with NAME=VALUE")
	f.skip = "belongs to run r-0001, which settles what becomes of it" // it goes on, or was resumed
	r.press("4", "r").sees("0 requeued, 1 not").misses("Resume r-0001?")
	r.press("X").sees("It stays with its run").press("n", "j", "X").sees("It leaves memory for good").press("n", "k")
	r.press("j", "r").misses("Resume ").press("4", "e").sees("Edit the inputs") // a task of no run
}

func TestRunsInMissionControl(t *testing.T) {
	f := world()
	r := newRig(t, f, 80, 24).sees("RUNS").sees("r-0002").misses("r-0001")
	for i := range 30 {
		f.runs = append(f.runs, view.RunDetail{Run: view.Run{ID: fmt.Sprintf("r-1%03d", i), Mission: "m", State: "needs_person", Why: "a unit was caught running"}})
	}
	f.over.Status.Seq++
	r.poll()
	r.sees("needs_person a unit was caught running").sees("… and 18 more: 5 shows them")
	f.runs = f.runs[:0]
	f.over.Status.Seq++
	r.poll()
	r.misses("RUNS")
	f.noRuns = errors.New("unknown op: runs\x1b[2J") // of an older controller
	f.over.Status.Seq++
	r.poll()
	r.sees(`not read: unknown op: runs\x1b[2J`).press("5").sees("unknown op: runs")
}

// Runs are read page by page; new ones come at the top without moving the cursor.
func TestManyRuns(t *testing.T) {
	f := world()
	f.runs = nil
	for i := range 500 {
		f.runs = append(f.runs, view.RunDetail{Run: view.Run{ID: fmt.Sprintf("r-%04d", 500-i), State: "succeeded", Finished: ago(0)}})
	}
	r := newRig(t, f, 80, 24).press("5").sees("runs: 200 loaded, more below")
	for range 4 {
		r.press("G")
		r.poll()
	}
	r.sees("runs: 500 ·").sees("> r-0001")
	f.runs = append([]view.RunDetail{{Run: view.Run{ID: "r-0501", State: "running"}}}, f.runs...)
	f.over.Status.Seq++
	r.press("k", "k")
	r.poll()
	r.sees("runs: 501 ·").sees("> r-0003").press("g").sees("> r-0501")
	f.asked = nil
	r.poll()
	if len(f.asked) != 0 {
		t.Errorf("nothing happened, and a poll read %q", f.asked)
	}
	x := r.m.screens[onMissions].(*runsScreen)
	for i := range x.runs.all {
		if want := fmt.Sprintf("r-%04d", 501-i); x.runs.all[i].ID != want {
			t.Fatalf("row %d is %s, want %s", i, x.runs.all[i].ID, want)
		}
	}
}

// A large run is read in pages, not all of it, and less often.
func TestLargeRun(t *testing.T) {
	f := world()
	big := &f.runs[0]
	big.Units, big.Run.Units, f.unitPage = nil, 10_000, view.MaxRows
	for i := range 10_000 {
		big.Units = append(big.Units, view.RunUnit{Unit: fmt.Sprintf("u-%05d", i), State: "queued"})
	}
	r := newRig(t, f, 80, 24).press("5").sees("too many to draw").press("enter").sees("the first 2000 of 10000 units; apollo11 show r-0002")
	r.press("G").sees("u-01999")
	r.poll()
	f.asked = nil
	for range 4 {
		f.over.Status.Seq++
		r.now = r.now.Add(250 * time.Millisecond)
		r.run(r.m.poll())
	}
	n := 0
	for _, line := range f.asked {
		if strings.HasPrefix(line, "run ") {
			n++
		}
	}
	if n != 4 {
		t.Errorf("read %d pages in a second, want those of one time: %q", n, f.asked)
	}
	r.press("-", "D").press("5", "esc", "D").sees("too many to compare here: apollo11 diff")
}

// What a narrow screen has no room for is counted; a trigger is named as a person is.
func TestRunBesideTheList(t *testing.T) {
	f := world()
	for i := range 30 {
		f.runs[0].Units = append(f.runs[0].Units, view.RunUnit{Unit: fmt.Sprint("more-", i), State: "queued"})
	}
	f.runs[0].By, f.runs[0].Cause = "", "cron 0 2 * * *"
	r := newRig(t, f, 80, 24).press("5").sees("cron 0 2 * * *").sees("more lines: enter").misses("more-29")
	r.press("enter", "G").sees("> more-29")
	f.runs[0].Units = nil
	f.over.Status.Seq++
	r.press("esc")
	r.poll()
	r.sees("it has no units").press("enter", "enter").sees("no unit here")
	ring := world()
	ring.runs[0].Units[0].Deps, ring.runs[0].Units[2].Deps = "clean-2012", "fetch-2012" // which no controller sends
	newRig(t, ring, 80, 24).press("5").sees("wait for each other in a ring")
}

// A run that is over is read once.
func TestEndedRun(t *testing.T) {
	f := world()
	r := newRig(t, f, 80, 24).press("5", "j", "enter")
	r.poll()
	f.asked = nil
	f.over.Status.Seq++
	r.poll()
	if slices.ContainsFunc(f.asked, func(s string) bool { return strings.HasPrefix(s, "run ") }) {
		t.Errorf("read %q", f.asked)
	}
	f.runs = f.runs[:1]
	r.press("esc")
	r.poll()
	r.sees("runs: 1")
}

func TestRunOf(t *testing.T) {
	for id, want := range map[string]string{
		"r-0001:fetch": "r-0001", "r-12:a:b": "r-12", "r-000a:fetch": "r-000a", "r-zz1x:y": "r-zz1x", "r-0001": "", "t-0001": "", "r-:x": "", "r-1X:y": "", "": "", "x:y": "", "r--1:x": "",
	} {
		if got := runOf(id); got != want {
			t.Errorf("%q is of %q, want %q", id, got, want)
		}
	}
}

// The states of a filter are those of what the screen lists.
func TestFilterByState(t *testing.T) {
	r := newRig(t, world(), 80, 24).press("5", "/", "state:failed", "enter").sees("runs: 1 of 2 · filter state:failed").sees("r-0001   weather").misses("r-0002   weather")
	r.press("/", "!state:failed,needs_person", "enter").sees("r-0002   weather").misses("r-0001   weather")
	r.press("/", "state:dead", "enter").sees("filter: state:dead: want waiting, running, needs_person, succeeded, failed")
	r.press("/", "type:fetch", "enter").sees("filter: this screen takes state:, words and !words only")
	r.press("4", "/", "state:failed", "enter").sees("filter: state:failed: want dead")
	r.press("/", "!state:dead", "enter").sees("filter: !state:dead leaves nothing here").sees("dead letters: 3")
	r.press("3", "/", "state:dead", "enter").sees("filter: state:dead: want scheduled, blocked, queued").press("/", "state:running", "enter").sees("tasks that have not ended: 1")
	r.press("7", "/", "state:x", "enter").sees("this screen takes words and !words only")
}

// Who left in order is no alarm, and who is lost is one for a while.
func TestWhoIsGone(t *testing.T) {
	f := world()
	gone := &f.over.Executors[2]
	for _, c := range []struct {
		reason       string
		ms           int64
		beat, detail string
		alarm        bool
	}{
		{"told to stop", 180_000, "gone offline", "gone, for 3m", false}, {"drained: drained by an operator", -1, "gone offline", "gone, not there any", false},
		{"went offline in order", -1, "gone offline", "gone, not there", false}, {"connection lost: reset", 180_000, "lost offline", "lost, for 3m", true},
		{"nothing heard for 1m0s", -1, "lost offline", "lost, not there any more", true}, {"", -1, "lost offline", "lost", true}, {"nothing heard for 1m0s", 3_600_000, "lost offline", "lost, for 1h", false},
	} {
		gone.Reason, gone.HeartbeatMS = c.reason, c.ms
		r := newRig(t, f, 120, 40).sees("executor ares-2 is late")
		if c.alarm {
			r.sees("executor hera-1 is lost")
		} else {
			r.misses("executor hera-1")
		}
		r.press("2", "j", "j").sees(c.beat).sees("heartbeat   " + c.detail)
	}
}

// Whatever there is no room for, the task stays, as wide as its id.
func TestTimelineIsNarrow(t *testing.T) {
	f := world()
	const id = "r-0001:fetch_2012"
	f.events = append(f.events, view.Event{Seq: 41, Time: ago(0), Kind: "task.start", Task: id, Run: "r-0001", Exec: "ares-1"})
	f.over.Status.Seq = 41
	r := newRig(t, f, 120, 24).press("6").misses("nondet")
	f.events = append(f.events, view.Event{Seq: 42, Time: ago(0), Kind: "nondeterministic", Task: id, Run: "r-0001", Exec: "ares-1"})
	f.over.Status.Seq = 42
	r.poll()
	r.sees(" nondeterministic " + id)
	for w := leastWidth; w <= 210; w++ {
		r := newRig(t, f, w, 24).press("6").sees(" " + id + " ").sees("words of nondet")
		for line := range strings.Lines(sgr.ReplaceAllString(r.frame(), "")) {
			if strings.Contains(line, " TIME ") && strings.Contains(line, "…") {
				t.Errorf("at %d: %q", w, line)
			}
		}
		for _, title := range []string{"TIME ", "TASK ", "WHAT "} {
			r.sees(title)
		}
		if w >= 80 {
			r.sees("RECORD")
		}
	}
}

// How long somebody is gone is no beat; that he is heard again is one.
func TestGoneBeatsNot(t *testing.T) {
	var p pulse
	at := func(state string, ms int64) string {
		now := &view.Overview{Executors: []view.Executor{{ID: "a", State: state, HeartbeatMS: ms}}}
		p.take(&view.Overview{Executors: []view.Executor{{ID: "a", State: "idle", HeartbeatMS: 5000}}}, now, noon)
		return p.mark("a", noon)
	}
	if got := at("offline", 10); got != "♡" {
		t.Errorf("gone: %s", got)
	}
	if got := at("idle", 10); got != "♥" {
		t.Errorf("heard: %s", got)
	}
}
