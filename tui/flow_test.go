package tui

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

func TestRequeueOne(t *testing.T) {
	r := newRig(t, world(), 80, 24).press("4").sees("dead letters: 3").sees("t-0008")
	r.press("j", "r")
	a, n := r.last()
	if n != 1 || a.Verb != Requeue || !slices.Equal(a.Tasks.IDs, []string{"t-0003"}) {
		t.Fatalf("did %d times, last %+v", n, a)
	}
	r.sees("1 requeued").press("4").poll()
	r.sees("dead letters: 2").misses("t-0003")
}

func TestRequeueMarked(t *testing.T) {
	r := newRig(t, world(), 80, 24).press("4", "space", "space").sees("2 marked")
	r.press("r").sees("Requeue 2 tasks?").sees("such as t-0008, t-0003")
	r.press("enter").misses("Requeue 2 tasks?") // cancel is the default
	if _, n := r.last(); n != 0 {
		t.Fatal("enter alone did it")
	}
	r.press("r", "y")
	if a, n := r.last(); n != 1 || !slices.Equal(a.Tasks.IDs, []string{"t-0008", "t-0003"}) {
		t.Fatalf("did %+v", a)
	}
	r.sees("2 requeued")
}

func TestRequeueAllThatMatch(t *testing.T) {
	r := newRig(t, world(), 80, 24).press("4", "/", "error~refused", "enter").sees("filter error~refused").sees("dead letters: 2")
	r.press("*").sees("ALL that match").press("r").sees("Requeue 2 tasks?").sees(`error has "refused"`)
	if a, _ := r.last(); !a.Tasks.Count {
		t.Fatal("did it before asking")
	}
	r.press("y").sees("2 requeued")
	a, _ := r.last()
	want := view.Selection{All: true, Query: view.Query{States: []task.State{task.Dead}, Error: "refused"}}
	if !reflect.DeepEqual(a.Tasks, want) {
		t.Fatalf("asked for %+v", a.Tasks)
	}
}

func TestOneThatIsNotDeadAnyMore(t *testing.T) {
	r := newRig(t, world(), 80, 24).press("4")
	r.f.tasks[7].State = "queued" // somebody else was faster
	r.press("r").sees("0 requeued, 1 not: t-0008: is queued")
}

func TestCancelManyWantsTheCount(t *testing.T) {
	r := newRig(t, world(), 80, 24).press("3", "*", "c").sees("Cancel 4 tasks?").sees("type 4 to do it")
	r.press("enter").misses("Cancel 4 tasks?")
	r.press("c", "5", "tab", "enter").sees("Cancel 4 tasks?") // the wrong number
	r.press("backspace", "4", "enter").sees("4 cancelled")
	if a, _ := r.last(); a.Verb != Cancel || a.Tasks.Count {
		t.Fatalf("did %+v", a)
	}
}

func TestCancelOne(t *testing.T) {
	r := newRig(t, world(), 80, 24).press("3", "c").sees("Cancel t-0004?").press("n")
	if _, n := r.last(); n != 0 {
		t.Fatal("no was a yes")
	}
	r.press("c", "y").sees("1 cancelled")
}

func TestPause(t *testing.T) {
	r := newRig(t, world(), 80, 24)
	r.press("p")
	if a, _ := r.last(); !reflect.DeepEqual(a, Action{Verb: Pause}) {
		t.Fatalf("did %+v", a)
	}
	r.f.over.Status.Paused = true
	r.poll()
	r.sees("PAUSED").press("p")
	if a, _ := r.last(); a.Verb != Continue {
		t.Fatalf("did %+v", a)
	}
	r.press("3", "tab", "j", "j", "p") // report, which is paused
	if a, _ := r.last(); !reflect.DeepEqual(a, Action{Verb: Continue, Name: "report"}) {
		t.Fatalf("did %+v", a)
	}
}

func TestDrain(t *testing.T) {
	r := newRig(t, world(), 80, 24).press("2", "p").sees("Drain ares-1?").press("y")
	if a, _ := r.last(); !reflect.DeepEqual(a, Action{Verb: Drain, Name: "ares-1"}) {
		t.Fatalf("did %+v", a)
	}
	r.press("j", "j", "p").sees("hera-1 is offline already")
}

func TestDebug(t *testing.T) {
	r := newRig(t, world(), 80, 24).press("d").sees("DEBUG").press("d")
	if a, n := r.last(); n != 2 || a.Verb != DebugOff {
		t.Fatalf("did %+v", a)
	}
	r.misses("DEBUG")
	r.f.over.Status.Debug = true
	for ms, badge := range map[int64]string{0: "· DEBUG ·", 14*60_000 + 30_000: "· DEBUG 14m ·", 40_000: "· DEBUG <1m ·"} {
		r.f.over.Status.DebugLeftMS = ms
		r.f.over.Status.Paused = true
		r.poll()
		r.sees(badge)
	}
}

func TestReadOnly(t *testing.T) {
	r := newRig(t, world(), 80, 24, func(o *Options) { o.ReadOnly = true }).sees("watch")
	for _, keys := range [][]string{{"4", "r"}, {"3", "c"}, {"2", "p"}, {"1", "p"}, {"d"}, {"4", "e"}, {"3", "e"}, {"4", "X"}, {"4", ":", "requeue", "enter"}, {"4", ":", "drop", "enter"}, {"5", "m"}, {"5", "R"}, {"5", "c"}} {
		r.press(keys...).sees("only watches").press("esc")
	}
	if _, n := r.last(); n != 0 || r.m.s.box != nil {
		t.Fatalf("a console that only watches did %+v", r.f.did)
	}
	r.press("4", "i").sees("because the fake says so")
}

// Keys that come in one piece move, and change nothing (trap 8).
func TestBurst(t *testing.T) {
	r := newRig(t, world(), 80, 24).press("4")
	r.now = r.now.Add(time.Second)
	r.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("jjr")})
	if _, n := r.last(); n != 0 || r.m.screens[onDead].(*deadScreen).tasks.list.cursor != 2 {
		t.Fatalf("%d actions, cursor at %d", n, r.m.screens[onDead].(*deadScreen).tasks.list.cursor)
	}
	r.sees("came in a burst")
	// A dialog that has just opened is not answered by what was typed before it.
	r.press("3", "c").press("esc")
	r.now = r.now.Add(time.Second)
	r.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("c")})
	r.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("y")})
	if _, n := r.last(); n != 0 {
		t.Fatal("a dialog was answered at once")
	}
	r.sees("Cancel t-0004?")
	r.now = r.now.Add(time.Second)
	r.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("yy")})
	if _, n := r.last(); n != 0 {
		t.Fatal("a dialog was answered by a burst")
	}
	r.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("q"), Paste: true})
	if r.press("esc"); r.quit {
		t.Fatal("a paste left the console")
	}
}

func TestLeave(t *testing.T) {
	for _, c := range []struct {
		keys    []string
		quit    bool
		verdict Verdict
	}{
		{[]string{"q"}, false, Left}, {[]string{"q", "esc"}, false, Left}, {[]string{"q", "enter"}, false, Left},
		{[]string{"q", "d"}, true, Left}, {[]string{"q", "s"}, true, Stop}, {[]string{"ctrl+c", "s"}, true, Stop},
		{[]string{"ctrl+c", "ctrl+c"}, false, Left}, {[]string{"q", "tab", "tab", "enter"}, true, Stop},
	} {
		r := newRig(t, world(), 80, 24).press(c.keys...)
		if r.quit != c.quit || r.m.verdict != c.verdict {
			t.Errorf("%q: quit %v, verdict %v", c.keys, r.quit, r.m.verdict)
		}
	}
	if r := newRig(t, world(), 80, 24, func(o *Options) { o.Embedded = false }).press("q"); !r.quit || r.m.verdict != Left {
		t.Error("an attached console did not leave at once")
	}
}

func TestFilters(t *testing.T) {
	for _, c := range []struct {
		screen, text  string
		sees, doesNot string
	}{
		{"2", "late", "ares-2", "ares-1 "},
		{"2", "!hera", "ares-1", "hera-1 "},
		{"3", "type:fetch", "t-0007", "t-0005"},
		{"3", "state:running", "t-0004", "t-0005"},
		{"3", "!state:queued", "t-0004", "t-0005"},
		{"4", "refused", "t-0008", "t-0003"},
		{"6", "fail", "task.fail", "task.start"},
		{"6", "task:t-0002", "t-0002", "t-0003"},
		{"7", "days", "days_total", "next_batch"},
		{"8", "!quiet", "loud line", "quiet line"},
		{"4", "state:running", "state:running: want dead", "~~"},
		{"4", "state:running2", "state:running2: want dead", "~~"},
		{"2", "type:x", "words and !words only", "~~"},
		{"4", "older:soon", "want a time such as 10m", "~~"},
	} {
		r := newRig(t, world(), 80, 24)
		r.m.o.Log.Write([]byte("level=INFO msg=\"loud line\"\nlevel=INFO msg=\"quiet line\"\n"))
		r.press(c.screen, "/", c.text, "enter")
		r.poll()
		r.sees(c.sees).misses(c.doesNot)
		if c.doesNot != "~~" {
			r.press("esc")
			r.poll()
			r.poll()
			r.sees(strings.TrimSpace(c.doesNot))
		}
	}
}

func TestTimelineMoves(t *testing.T) {
	f := world()
	for i := range 5000 {
		f.events = append(f.events, view.Event{Seq: int64(41 + i), Time: view.Time{Time: noon.Add(time.Duration(i) * time.Millisecond)}, Kind: "exec.late"})
	}
	f.over.Status.Seq = 5040
	r := newRig(t, f, 100, 24).press("6")
	x := r.m.screens[onTimeline].(*timelineScreen)
	at := func() int64 { return x.list.at().Seq }
	r.poll()
	if at() != 5040 || !x.live {
		t.Fatalf("begins at %d, live %v", at(), x.live)
	}
	f.events = append(f.events, view.Event{Seq: 5041, Kind: "exec.late"})
	f.over.Status.Seq = 5041
	r.poll()
	r.poll()
	if at() != 5041 {
		t.Fatalf("live, at %d", at())
	}
	r.press("k", ",")
	f.over.Status.Seq = 5041
	if at() != 5039 || x.live {
		t.Fatalf("stepped back to %d, live %v", at(), x.live)
	}
	r.press(":", "30", "enter")
	if at() != 30 {
		t.Fatalf("jumped to %d", at())
	}
	r.press("]")
	if at() != 40 {
		t.Fatalf("next failure at %d", at())
	}
	r.press("[", "[")
	if at() != 20 {
		t.Fatalf("failure before at %d", at())
	}
	r.press("g")
	if at() != 1 {
		t.Fatalf("g is at %d", at())
	}
	for range 40 { // down through pages that are read as they are reached
		r.press("pgdown")
		r.poll()
	}
	if at() < 600 {
		t.Fatalf("40 pages down are at %d", at())
	}
	was := at()
	for range 20 {
		r.press("k")
	}
	if at() != was-20 {
		t.Fatalf("20 up from %d are at %d", was, at())
	}
	r.press("L")
	r.poll()
	if at() != 5041 || !x.live {
		t.Fatalf("live again at %d", at())
	}
	for range 15 { // up, through pages before
		r.press("pgup")
		r.m.act(input{act: pageUp})
		r.poll()
	}
	r.press(":", "12:00:01", "enter")
	if e := x.list.at(); e.Time.Before(noon.Add(time.Second)) || e.Time.After(noon.Add(time.Second+time.Millisecond)) {
		t.Fatalf("jumped to %s", e.Time)
	}
	if len(x.all) > eventWindow {
		t.Fatalf("%d records kept", len(x.all))
	}
}

// What marks quiet is hidden until it is asked for.
func TestMarksOfQuiet(t *testing.T) {
	f := world()
	for i := range f.events {
		if i%2 == 0 {
			f.events[i].Kind = "seal"
		}
	}
	r := newRig(t, f, 80, 24).misses("seal").press("6").sees("20 quiet marks hidden, a shows all").misses("words of seal")
	r.press("a").sees("words of seal").misses("hidden").press("a").misses("words of seal")
	r.press("/", "seal", "enter").sees("words of seal").misses("hidden").press("esc")
	r.poll()
	r.misses("words of seal").press(":", "31", "enter").sees("words of task.start")
	if at := r.m.screens[onTimeline].(*timelineScreen).list.at(); at.Seq != 32 {
		t.Errorf("a jump to a hidden record went to %d", at.Seq)
	}
}

func TestReadLog(t *testing.T) {
	for line, want := range map[string][3]string{
		`time=2026-11-29T12:00:00.5Z level=WARN msg="a \"b\"" task=t-1`: {"13:00:00.500", "WARN", `a "b"  task=t-1`},
		`time=2026-11-29T12:00:00+00:00 level=INFO msg=ready`:           {"13:00:00.000", "INFO", "ready"},
		`time=2026-11-29T12:00:00Z msg="\x1b[2J\n"`:                     {"13:00:00.000", "", `\x1b[2J\n`},
		`time=2026-11-29T12:00:00Z`:                                     {"13:00:00.000", "", ""},
		`time=yesterday level=INFO msg=x`:                               {"", "", `time=yesterday level=INFO msg=x`},
		`time=2026-11-29T12:00:00Z level=INFO msg=message direction=in peer=1.2.3.4:5 type=ack text="type=ack\\nstatus=ok"`: {
			"13:00:00.000", "INFO", "<- 1.2.3.4:5             type=ack status=ok"},
		`time=2026-11-29T12:00:00Z level=INFO msg=message direction=out peer=pipe`: {"13:00:00.000", "INFO", "-> pipe"},
		`time=2026-11-29T12:00:00Z level=INFO msg=message other=1`:                 {"13:00:00.000", "INFO", "other=1"},
		`panic: oh`: {"", "", `panic: oh`}, ``: {},
		`time=2026-11-29T12:00:00Z level=INFO msg="torn`: {"13:00:00.000", "INFO", `"torn`},
	} {
		at, level, text := readLog(line, noon.Location())
		if got := [3]string{at, level, text}; got != want {
			t.Errorf("%s is %q, want %q", line, got, want)
		}
	}
}

// The list is read page by page, and only what is in sight is read again.
func TestPages(t *testing.T) {
	f := world()
	f.tasks = nil
	for i := range 1000 {
		f.tasks = append(f.tasks, view.Task{ID: "t-" + strings.Repeat("0", i/100) + string(rune('a'+i%26)) + time.Duration(i).String(), State: "dead", Type: "x"})
	}
	r := newRig(t, f, 80, 24).press("4").sees("200 loaded of 1000")
	x := &r.m.screens[onDead].(*deadScreen).tasks
	r.press("G")
	r.poll()
	r.sees("400 loaded of 1000")
	id := x.list.at().ID
	f.asked = nil
	f.over.Status.Seq++
	r.poll()
	if len(f.asked) > 3 { // what has the cursor, and what follows it
		t.Errorf("a poll read %q", f.asked)
	}
	if x.list.at().ID != id {
		t.Errorf("the cursor went from %s to %s", id, x.list.at().ID)
	}
	f.asked = nil
	r.poll()
	if len(f.asked) != 0 {
		t.Errorf("nothing happened, and a poll read %q", f.asked)
	}
	for range 5 {
		r.press("G")
		r.poll()
	}
	r.sees("dead letters: 1000 ·")
	for i, id := range ids(x.list.rows) {
		if want := f.tasks[len(f.tasks)-1-i].ID; id != want {
			t.Fatalf("row %d is %s, want %s", i, id, want)
		}
	}
	r.press("S").sees("oldest first").sees("200 loaded of 1000")
}

func ids(rows []view.Task) []string {
	out := make([]string, len(rows))
	for i := range rows {
		out[i] = rows[i].ID
	}
	return out
}

func TestDetailAndRelated(t *testing.T) {
	r := newRig(t, world(), 80, 24).press("4", "enter").sees("attempts").sees("url = http://10.0.0.9/a").sees("executor lost")
	r.press("esc").misses("url =").sees("dead letters")
	r.press("2", "J", "enter").sees("t-0004  count").press("esc")
	r.press("6", "k", "J", "enter").sees("t-0007  fetch").press("esc")
	r.press("7", "J", "enter").sees("changed last by").sees("t-0001  count")
	wide := newRig(t, world(), 140, 40).press("4").sees("url = http://10.0.0.9/a")
	wide.press("l", "G").press("h", "j")
	wide.poll()
	wide.sees("t-0003  report")
}

// No answer of the Source reaches a screen that has asked anew since (stale
// answers), and no key waits for one.
func TestStaleAnswers(t *testing.T) {
	r := newRig(t, world(), 80, 24)
	r.frozen = true
	r.press("4")
	r.press("/", "refused", "enter")
	late := r.kept
	r.frozen, r.kept = false, nil
	for _, cmd := range slices.Backward(late) { // the newest first
		r.run(cmd)
	}
	r.sees("dead letters: 2").misses("t-0003")
}

func TestNoData(t *testing.T) {
	r := newRig(t, world(), 80, 24).sees("LIVE seq 40")
	r.f.broken = errors.New("connection refused\x1b[2J")
	r.now = r.now.Add(12 * time.Second)
	r.poll()
	r.sees("NO DATA <30s").sees(`connection refused\x1b[2J`).press("d").sees("connection refused")
	r.f.broken = nil
	r.poll()
	r.sees("LIVE seq 40")
	f := world()
	f.broken = errors.New("refused")
	newRig(t, f, 80, 24).sees("NO DATA · refused")
}

func TestHelpAndPalette(t *testing.T) {
	r := newRig(t, world(), 120, 60).press("4", "?").sees("on this screen").sees("requeue one, the marked").press("esc")
	r.press(":", "nonsense", "enter").sees("no such thing here")
	r.press(":", "the", "enter").sees("which one: ")
	r.press(":", "state", "enter").sees("[7 state]")
	r.press("-").sees("[4 dead]")
	r.press("!").sees("what was said").sees("no such thing here").press("!").misses("what was said")
	r.press("T").sees("theme colour-blind").press("t")
}

func TestSize(t *testing.T) {
	r := newRig(t, world(), 59, 24).sees("too small")
	r.send(tea.WindowSizeMsg{Width: 60, Height: 15})
	r.misses("too small")
}

// The heart beats when a beat comes, and only then.
func TestPulse(t *testing.T) {
	f := world()
	r := newRig(t, f, 80, 24).press("2")
	r.poll()
	r.misses("♥")
	f.over.Executors[0].HeartbeatMS = 100
	r.poll()
	r.sees("♥ ares-1").sees("♡ ares-2")
	f.over.Executors[0].HeartbeatMS = 1100
	r.poll()
	r.misses("♥")
}

// Nothing that ticks changes a frame but the status line: an idle console costs
// a remote terminal next to nothing.
func TestIdleFrames(t *testing.T) {
	f := world()
	f.over.Executors = nil
	r := newRig(t, f, 200, 60)
	for _, key := range []string{"1", "2", "3", "4", "5", "6", "7"} {
		r.press(key)
		for range 8 { // let notices and pulses pass
			r.poll()
		}
		one := strings.Split(r.frame(), "\n")
		r.poll()
		for i, line := range strings.Split(r.frame(), "\n") {
			if line != one[i] && i != 58 && !strings.Contains(line, "results/s") {
				t.Errorf("screen %s line %d changed:\n%s\n%s", key, i, one[i], line)
			}
		}
	}
}

// What was said stands until the next key, or for a few seconds.
func TestWhatWasSaidGoes(t *testing.T) {
	r := newRig(t, world(), 80, 24).press("4", "r").sees("1 requeued").press("j").misses("1 requeued").press("r").sees("1 requeued")
	r.poll()
	r.sees("1 requeued").poll()
	r.poll()
	r.misses("1 requeued").press("!").sees("1 requeued")
}

// Over a screen stand the keys of what lies over it.
func TestKeysOfOverlays(t *testing.T) {
	r := newRig(t, world(), 80, 24).press("4").misses("esc closes")
	r.press("?").sees("esc closes · j k scroll · q leave").misses("r requeue ·").press("esc").misses("esc closes")
	r.press("i").sees("esc closes · j k scroll · i asks again · ? help · q leave").press("esc").misses("esc closes")
	r.press("!").sees("esc closes · j k scroll").press("esc")
	r.press("enter").sees("esc closes · ").sees("r requeue").press("esc").misses("esc closes")
}

// A window that is too small says what it wants.
func TestTooSmall(t *testing.T) {
	r := newRig(t, world(), 30, 8).sees("apollo11 wants 60x15: 30x8 is").sees("too small").sees("q leaves")
	r.send(tea.WindowSizeMsg{Width: 20, Height: 4})
	r.sees("60x15: 20x4 is").sees("q leaves")
}
