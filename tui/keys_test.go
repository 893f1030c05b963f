package tui

import (
	"slices"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// Every key does one thing on a screen, and one that does nothing says why.
func TestRegistry(t *testing.T) {
	seen := map[action]bool{}
	for i := range registry {
		b := &registry[i]
		seen[b.act] = true
		if (b.why == "") == (b.act == later) {
			t.Errorf("%v: why is %q", b.keys, b.why)
		}
		if b.act != later && b.long == "" || b.short != "" && b.long == "" {
			t.Errorf("%v has no help", b.keys)
		}
		for _, k := range b.keys {
			for at := onMission; at < screens; at++ {
				if !b.here(at) {
					continue
				}
				got, why := bound(at, k)
				if b.why == "" && got != b && why == "" && !slices.Contains(got.keys, k) || got == nil && why == "" {
					t.Errorf("%s on %s: %v, %q", k, at, got, why)
				}
				for j := range registry[:i] {
					if o := &registry[j]; o.here(at) && slices.Contains(o.keys, k) && len(o.on) == len(b.on) {
						t.Errorf("%s is bound twice on %s", k, at)
					}
				}
			}
		}
	}
	for a := goMission; a < later; a++ {
		if !seen[a] {
			t.Errorf("action %d has no key", a)
		}
	}
}

// Each key that changes something is bound as such: the guard against bursts and
// in a console that only watches hangs on it.
func TestKeysThatAlter(t *testing.T) {
	for _, key := range []string{"r", "e", "X", "c", "p", "d", "m", "R"} {
		r := newRig(t, world(), 80, 24)
		for at := onMission; at < screens; at++ {
			if b, _ := bound(at, key); b != nil && !b.alters {
				t.Errorf("%s on %s is not guarded", key, at)
			}
		}
		r.press(key)
	}
	// All others, on every screen: nothing is asked of the Source that changes.
	for at := range []screenID{onMission, onExecutors, onQueue, onDead, onMissions, onTimeline, onState, onLog} {
		for i := range registry {
			if b := &registry[i]; !b.alters && b.act != leave {
				r := newRig(t, world(), 80, 24).press(string(rune('1' + at)))
				r.m.act(input{act: b.act})
				if len(r.f.did) > 0 {
					t.Errorf("%v did %+v", b.keys, r.f.did)
				}
			}
		}
	}
}

func TestWhyNot(t *testing.T) {
	for _, c := range []struct{ screen, key, why string }{
		{"1", "R", "R works on: missions"}, {"5", "f", "follow what happens"}, {"3", "X", "X works on: dead"}, {"4", "u", "nothing is taken back"}, {"2", "r", "r works on: dead"}, {"1", "W", "no key of the console"},
		{"6", "space", "like a film"}, {"4", "<", "one order"}, {"6", "<", "no film speeds"}, {"4", "ctrl+z", "left to your terminal"},
	} {
		newRig(t, world(), 100, 24).press(c.screen, c.key).sees(c.why)
	}
}

func TestKeysTable(t *testing.T) {
	table := Keys()
	for _, want := range []string{"| `r` | requeue one, the marked, or all that match; of a task of a run, the run is resumed | dead |", "| `q` `ctrl+c` | leave | everywhere |"} {
		if !strings.Contains(table, want) {
			t.Errorf("the table has no %s", want)
		}
	}
}

func TestHintsAlwaysSayHowToLeave(t *testing.T) {
	for at := onMission; at < screens; at++ {
		for w := leastWidth; w < 250; w++ {
			if h := hints(at, w); width(h) > w || !strings.HasSuffix(h, "? help · q leave") {
				t.Fatalf("%s at %d: %q", at, w, h)
			}
		}
	}
}

func runes(s string) tea.KeyMsg { return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(s)} }

// One read may hold several keys, or half a sequence (trap 8).
func TestKeystream(t *testing.T) {
	esc := tea.KeyMsg{Type: tea.KeyEsc}
	for _, c := range []struct {
		name string
		in   []tea.KeyMsg
		out  string // keys, those of a burst with a !
	}{
		{"one", []tea.KeyMsg{runes("j")}, "j"},
		{"a burst", []tea.KeyMsg{runes("jjr")}, "j! j! r!"},
		{"a paste", []tea.KeyMsg{{Type: tea.KeyRunes, Runes: []rune("r"), Paste: true}}, "r!"},
		{"space", []tea.KeyMsg{{Type: tea.KeySpace, Runes: []rune{' '}}}, "space"},
		{"alt", []tea.KeyMsg{{Type: tea.KeyRunes, Runes: []rune("r"), Alt: true}}, "alt+r"},
		{"escape alone", []tea.KeyMsg{esc}, "esc"},
		{"escape, then a key", []tea.KeyMsg{esc, runes("j")}, "esc j"},
		{"torn up", []tea.KeyMsg{esc, runes("[A")}, "up!"},
		{"torn twice", []tea.KeyMsg{esc, runes("["), runes("B")}, "down"},
		{"torn page", []tea.KeyMsg{esc, runes("[5"), runes("~")}, "pgup"},
		{"escape, then a bracket", []tea.KeyMsg{esc, runes("[")}, "esc [!"},
		{"no sequence of ours", []tea.KeyMsg{esc, runes("["), runes("x")}, "esc [! x"},
		{"two escapes", []tea.KeyMsg{esc, esc}, "esc esc"},
	} {
		var k keystream
		var got []string
		now := noon
		add := func(list []stroke) {
			for _, s := range list {
				name := s.key
				if s.burst {
					name += "!"
				}
				got = append(got, name)
			}
		}
		for _, msg := range c.in {
			now = now.Add(20 * time.Millisecond)
			out, _ := k.take(msg, now)
			add(out)
		}
		add(k.flush(k.turns - 1)) // of a wait that is over
		add(k.flush(k.turns))
		if s := strings.Join(got, " "); s != c.out {
			t.Errorf("%s: %s, want %s", c.name, s, c.out)
		}
	}
	var k keystream
	k.take(runes("a"), noon)
	if out, _ := k.take(runes("r"), noon.Add(time.Millisecond)); !out[0].burst {
		t.Error("two keys within a millisecond are no burst")
	}
}

func TestFilterText(t *testing.T) {
	for _, c := range []struct{ text, err string }{
		{"type:count state:dead,queued error~\"a b\" older:10m", ""}, {"12:30", ""}, {"a:b c~d", ""}, {"state:", "state: needs a value"},
		{"!type:x", "!type: ! goes before a word"}, {"!", "! needs a word"}, {"older:-1s", "older:-1s"}, {"type:a/b", "type"}, {"state:nope", "nope"},
	} {
		f, err := parseFilter(c.text, stateNames(task.States()))
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %+v, %v", c.text, f, err)
		}
	}
	f, _ := parseFilter(`type:count state:dead error~"a b" older:10m`, stateNames(task.States()))
	if f.typ != "count" || f.error != "a b" || f.older != 10*time.Minute || len(f.states) != 1 {
		t.Errorf("%+v", f)
	}
	for _, text := range []string{"state:x", "!state:x"} {
		if f, err := parseFilter(text, nil); err != nil || f.plain() == nil {
			t.Errorf("%s where there are no states: %+v, %v", text, f, err)
		}
	}
	f, _ = parseFilter("One !two", nil)
	if !f.match("ONE three") || f.match("one TWO") || f.match("three") {
		t.Error("words do not match as they should")
	}
}

func FuzzFilter(f *testing.F) {
	for _, text := range append(hostile, `type:x !state:dead "a`, "~:~", "!!") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parseFilter(text, view.RunStates)
		if err != nil {
			return
		}
		again, err := parseFilter(p.text, view.RunStates)
		if err != nil || again.typ != p.typ || len(again.words) != len(p.words) {
			t.Errorf("%q reads as %+v, then as %+v, %v", text, p, again, err)
		}
		p.match(text)
	})
}
