package tui

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"apollo11/engine/view"
)

var update = flag.Bool("update", false, "write the golden frames anew")

// hostile is text that others may send.
var hostile = []string{
	"\x1b[2J\x1b]0;owned\a", "\x1b]52;c;aGk=\x07", "a\rb\nc\td\x00e\x7f\x9b31m", "\u202egnorw\u2066", "\xff\xfe\xc3",
	"日本語のエラーが発生しました。接続が拒否されました", "👨‍👩‍👧‍👦 👍🏽 🇩🇪 ❤️ 1️⃣ 🏴‍☠️", "z̸̡̢̛̗͚͍̲̗a̷͎̰͓l̴̰̱g̵̛̰o̶̺", "नमस्ते สวัสดี ﷽ ㍿ ﾊﾝｶｸ",
	strings.Repeat("long ", 4000), "", " ", "'\"`$(rm)", "\u00ad\u200b\u2028\ufeff", "|│─",
}

// hostileWorld is the world with hostile text in every field.
func hostileWorld() *fake {
	f := world()
	n := 0
	next := func() string {
		n++
		return hostile[n%len(hostile)]
	}
	for i := range f.over.Executors {
		f.over.Executors[i].Fields(infect{next})
		f.over.Executors[i].State = []string{"running", "idle", "offline"}[i]
	}
	for i := range f.over.Queues {
		f.over.Queues[i].Fields(infect{next})
	}
	for i := range f.tasks {
		state := f.tasks[i].State
		f.tasks[i].Fields(infect{next})
		f.tasks[i].State, f.tasks[i].ID = state, fmt.Sprintf("%d%s", i, f.tasks[i].ID)
	}
	for i := range f.keys {
		f.keys[i].Fields(infect{next})
	}
	for i := range f.events {
		f.events[i].Fields(infect{next})
	}
	infectRuns(f, next)
	d := f.detail["t-0008"]
	d.Fields(infect{next})
	for i := range d.Attempts {
		d.Attempts[i].Fields(infect{next})
	}
	f.detail = map[string]view.Detail{}
	for _, t := range f.tasks {
		f.detail[t.ID] = d
	}
	f.over.Status.PausedTypes = next()
	return f
}

// infectRuns leaves ids, states and what waits for what.
func infectRuns(f *fake, next func() string) {
	for i := range f.runs {
		r := &f.runs[i]
		id, state, parent := r.ID, r.State, r.Parent
		r.Fields(infect{next})
		r.ID, r.State, r.Parent = id, state, parent
		r.Notes = append(r.Notes, next(), next())
		for j := range r.Units {
			u := &r.Units[j]
			deps, state, reason := u.Deps, u.State, u.Reason
			name := fmt.Sprint(j, hostile[j%len(hostile)]) // the same in all runs
			u.Fields(infect{next})
			u.Unit, u.State, u.Reason, u.Deps = name, state, reason, deps
			if j > 0 {
				u.Deps = r.Units[j-1].Unit
			}
		}
	}
	for i := range f.missions {
		fault := f.missions[i].Fault
		f.missions[i].Fields(infect{next})
		f.missions[i].Fault = strings.TrimSuffix(fault, ".") + map[bool]string{true: next()}[fault != ""]
	}
}

var sgr = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// checkFrame fails unless a frame is exactly w x h and all escapes in it are
// colours of ours.
func checkFrame(t *testing.T, what, frame string, w, h int) {
	t.Helper()
	lines := strings.Split(frame, "\n")
	if len(lines) != h {
		t.Errorf("%s: %d lines, want %d", what, len(lines), h)
	}
	for i, line := range lines {
		if n := ansi.StringWidth(line); n != w {
			t.Errorf("%s: line %d is %d wide, want %d: %q", what, i, n, w, line)
		}
		for _, r := range sgr.ReplaceAllString(line, "") {
			if !unicode.IsPrint(r) {
				t.Fatalf("%s: line %d has %q: %q", what, i, r, line)
			}
		}
	}
}

// Every screen, with everything that can lie over it, at every size: exactly h
// lines of w columns, and no escape from data.
func TestFramesOfHostileText(t *testing.T) {
	widths, heights := []int{20, 59, 60, 61, 80, 119, 120, 121, 160, 200, 250}, []int{5, 14, 15, 16, 24, 40, 60, 80}
	for _, ascii := range []bool{false, true} {
		r := newRig(t, hostileWorld(), 80, 24, func(o *Options) { o.ASCII, o.Theme, o.Title = ascii, "dark", hostile[0] })
		for _, text := range hostile {
			r.m.o.Log.Write([]byte("level=WARN " + text + "\n"))
		}
		for _, keys := range [][]string{
			{"1"}, {"2"}, {"2", "enter"}, {"3", "space"}, {"3", "enter"}, {"3", "v", "j"}, {"4"}, {"4", "enter"}, {"4", "j", "enter"}, {"4", "*", "r"},
			{"5"}, {"5", "enter"}, {"5", "enter", "enter"}, {"5", "enter", "j", "j", "j", "enter"}, {"5", "space", "space", "D"}, {"5", "D", "enter"}, {"5", "c"},
			{"5", "m"}, {"5", "m", "enter"}, {"5", "m", "j", "enter", "x"}, {"5", "m", "j", "j", "enter"}, {"5", "i"},
			{"6"}, {"6", "enter"}, {"7"}, {"7", "j", "j", "enter"}, {"8"}, {"8", "enter"}, {"?"}, {"!"}, {"/", "日本"}, {"q"},
		} {
			r.m.s.box, r.m.prompt, r.m.overlay, r.m.screens[onMissions] = nil, nil, noOverlay, newRunsScreen()
			r.press(keys...)
			for i, w := range widths {
				for j, h := range heights {
					if (i+j)%2 == 1 && (ascii || testing.Short()) {
						continue
					}
					r.m.w, r.m.h, r.m.s.split, r.m.frame = w, h, w >= splitFrom, ""
					frame := r.frame()
					checkFrame(t, fmt.Sprint(keys, w, h), frame, w, h)
					if ascii && !isASCII(strings.ReplaceAll(sgr.ReplaceAllString(frame, ""), "\n", "")) {
						t.Fatalf("%q at %dx%d is not ASCII", keys, w, h)
					}
				}
			}
			r.m.w, r.m.h, r.m.s.split = 80, 24, false
		}
	}
}

func TestEmptyFrames(t *testing.T) {
	for _, key := range []string{"1", "2", "3", "4", "5", "6", "7", "8"} {
		r := newRig(t, &fake{}, 80, 24).press(key)
		r.press("j", "k", "G", "g", "pgdown", "enter", "esc", "space", "J", "y", "S", "s", "[", "]", "r", "c", "p", "R", "D", "m", "esc")
		checkFrame(t, key, r.frame(), 80, 24)
		for _, a := range r.f.did {
			if a.Verb == Requeue || a.Verb == Cancel || a.Verb == Drain || a.Verb >= StartRun {
				t.Errorf("screen %s did %+v with nothing there", key, a)
			}
		}
	}
}

func TestGolden(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 60}} {
		for _, c := range []struct {
			name string
			keys []string
		}{
			{"mission", []string{"1"}}, {"executors", []string{"2"}}, {"queue", []string{"3", "j", "space"}}, {"dead", []string{"4"}},
			{"timeline", []string{"6"}}, {"state", []string{"7", "j"}}, {"log", []string{"8"}}, {"help", []string{"4", "?"}}, {"confirm", []string{"4", "*", "r"}},
			{"detail", []string{"4", "enter"}}, {"runs", []string{"5", "j"}}, {"units", []string{"5", "j", "enter"}},
			{"compare", []string{"5", "D"}}, {"start", []string{"5", "m", "j", "enter"}}, {"missions", []string{"5", "m", "j"}},
		} {
			r := newRig(t, world(), size[0], size[1])
			fmt.Fprintln(r.m.o.Log, `time=2026-11-29T12:00:00.000Z level=INFO msg="controller ready" addr=127.0.0.1:7011`)
			fmt.Fprintln(r.m.o.Log, `time=2026-11-29T12:00:01.000Z level=WARN msg="attempt failed" task=t-0002`)
			r.press(c.keys...)
			r.poll()
			frame := r.frame()
			checkFrame(t, c.name, frame, size[0], size[1])
			compare(t, fmt.Sprintf("%s-%dx%d", c.name, size[0], size[1]), ansi.Strip(frame))
		}
	}
}

func compare(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	var b strings.Builder
	for line := range strings.SplitSeq(got, "\n") {
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != b.String() {
		t.Errorf("%s differs (go test ./tui -update):\n%s", name, b.String())
	}
}

// infect puts hostile text into every field.
type infect struct{ next func() string }

func TestText(t *testing.T) {
	for _, c := range []struct {
		in string
		w  int
		to string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"abc", 0, ""}, {"日本語", 4, "日… "}, {"日本語", 6, "日本語"}, {"日", 1, "…"}, {"", 2, "  "},
	} {
		if got := fit(c.in, c.w); got != c.to {
			t.Errorf("fit(%q, %d) = %q, want %q", c.in, c.w, got, c.to)
		}
	}
	for _, s := range hostile {
		for w := range 30 {
			if got := fit(clean(s), w); width(got) != w {
				t.Errorf("fit(%q, %d) is %d wide", s, w, width(got))
			}
			for _, line := range wrap(clean(s), w) {
				if width(line) > w {
					t.Errorf("wrap(%q, %d) has a line %d wide", s, w, width(line))
				}
			}
		}
		if got := toASCII(clean(s)); !isASCII(got) || width(got) != width(clean(s)) {
			t.Errorf("toASCII(%q) = %q", s, got)
		}
	}
}

func TestAgeBucket(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "<2s", 0: "<2s", 2 * time.Second: "<5s", 9 * time.Second: "<10s", 29 * time.Second: "<30s", 59 * time.Second: "<1m",
		time.Minute: "1m", 90 * time.Minute: "1h", 47 * time.Hour: "47h", 48 * time.Hour: "2d",
	} {
		if got := ageBucket(d); got != want {
			t.Errorf("%s is %s, want %s", d, got, want)
		}
	}
}

func BenchmarkFrame(b *testing.B) {
	f := world()
	f.over.Executors = nil
	for i := range 10_000 {
		f.over.Executors = append(f.over.Executors, view.Executor{ID: fmt.Sprintf("host-%05d", i), State: "running", Task: "t-1", HeartbeatMS: 500})
	}
	now := noon
	m := newModel(Options{Source: f, Now: func() time.Time { return now }, Theme: "dark"})
	m.w, m.h, m.s.split = 200, 60, true
	over, _ := f.Overview(b.Context())
	m.s.takeOverview(over, now)
	for _, id := range []screenID{onMission, onExecutors, onDead} {
		m.at = id
		m.screens[id].ask(m.s)
		if d, ok := m.screens[id].(*deadScreen); ok {
			rows := make([]view.Task, 1_000_000)
			for i := range rows {
				rows[i] = view.Task{ID: fmt.Sprintf("t-%07d", i), Type: "count", State: "dead", Error: "connection refused"}
			}
			d.tasks.pages, d.tasks.list.rows = []taskPage{{rows: len(rows)}}, rows
			d.tasks.list.move(moveBottom)
		}
		b.Run(id.String(), func(b *testing.B) {
			for b.Loop() {
				m.frame = ""
				m.View()
			}
		})
	}
}

func BenchmarkRunFrame(b *testing.B) {
	f := world()
	run := &f.runs[0]
	run.Units = nil
	for i := range mostDrawn {
		u := view.RunUnit{Unit: fmt.Sprintf("unit-%03d", i), State: "succeeded", ExecuteMS: 1200}
		if i >= 20 {
			u.Deps = fmt.Sprintf("unit-%03d,unit-%03d", i-20, (i-20)/20*20+(i+1)%20)
		}
		run.Units = append(run.Units, u)
	}
	r := newRig(&testing.T{}, f, 200, 60).press("5")
	for b.Loop() {
		r.m.frame = ""
		r.m.View()
	}
}
