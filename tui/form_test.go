package tui

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

func TestEditAndRequeue(t *testing.T) {
	r := newRig(t, world(), 80, 24).press("4", "e").sees("Edit the inputs of t-0008, and requeue it").sees("url  = http://10.0.0.9/a")
	r.press("enter").sees("nothing is changed")
	r.press("backspace", "b c", "down", "mode = slow", "enter")
	want := Action{
		Verb: Edit, Tasks: view.Selection{IDs: []string{"t-0008"}},
		Set: task.Values{{Name: "url", Value: "http://10.0.0.9/b c"}, {Name: "mode", Value: "slow"}},
	}
	if a, n := r.last(); n != 1 || !reflect.DeepEqual(a, want) {
		t.Fatalf("did %d times, last %+v", n, a)
	}
	r.sees("t-0008 edited and requeued").misses("Edit the inputs").sees("dead letters: 2")
}

func TestEditInPlace(t *testing.T) {
	r := newRig(t, world(), 80, 24).press("4", "e", "ctrl+u", "ace", "left", "b", "home", "delete", "X", "end", "é", "ctrl+e", "!", "enter")
	if a, _ := r.last(); len(a.Set) != 1 || a.Set[0].Value != "Xcbeé!" {
		t.Fatalf("set %+v", a.Set)
	}
}

func TestEditTakesOut(t *testing.T) {
	r := newRig(t, world(), 80, 24).press("4", "e", "ctrl+x").sees("(taken out)").press("ctrl+x").misses("(taken out)")
	r.press("ctrl+x", "enter")
	if a, _ := r.last(); !reflect.DeepEqual(a.Unset, []string{"url"}) || len(a.Set) > 0 {
		t.Fatalf("did %+v", a)
	}
}

// What the controller refuses stands under the input it is about, and the form
// stays.
func TestEditRefused(t *testing.T) {
	f := world()
	f.refuse = errors.New("invalid: task t-0008: input url = gopher: does not match ^https?://\ninput days is missing\ninput mode is not declared: did you mean node?")
	r := newRig(t, f, 100, 24).press("4", "e", "x", "down", "mode=y", "enter")
	lines := strings.Split(r.frame(), "\n")
	for i, line := range lines {
		if strings.Contains(line, "url  = ") && !strings.Contains(lines[i+1], "! url = gopher: does not match ^https?://") {
			t.Errorf("under the input stands %s", lines[i+1])
		}
		if strings.Contains(line, " mode=y") && !strings.Contains(lines[i+1], "! mode is not declared: did you mean node?") {
			t.Errorf("under the new input stands %s", lines[i+1])
		}
	}
	r.sees("! input days is missing").sees("> url")
	f.refuse = nil
	r.press("backspace", "y", "enter").sees("edited and requeued")
	r.press("4", "e", "down", "noname", "enter").sees("want name = value")
}

// A task that waits is edited and goes on waiting; one that cannot be is said why.
func TestEditInTheQueue(t *testing.T) {
	r := newRig(t, world(), 80, 24).press("3", "j", "e").sees("Edit the inputs of t-0005").misses("requeue")
	r.press("x=1", "enter").sees("t-0005 edited: it goes on with these inputs")
	newRig(t, world(), 80, 24).press("4", "space", "e").sees("edits one task").press("esc", "*", "e").sees("edits one task")
	r = newRig(t, world(), 80, 24).press("4")
	delete(r.f.detail, "t-0008")
	r.f.tasks = r.f.tasks[:5]
	r.press("e").sees("not found: task t-0008")
}

// A paste goes into the line, line ends and all, and never sends the form.
func TestEditPaste(t *testing.T) {
	r := newRig(t, world(), 80, 24).press("4", "e", "ctrl+u")
	r.now = r.now.Add(time.Second)
	r.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("{\r\t\"a\": 1}\x00\u202e"), Paste: true})
	r.sees(`{\n\t"a": 1}`)
	r.send(tea.KeyMsg{Type: tea.KeyEnter}) // at once: part of the paste
	if _, n := r.last(); n != 0 {
		t.Fatal("a paste sent the form")
	}
	r.press("enter")
	if a, _ := r.last(); a.Set[0].Value != "{\n\t\"a\": 1}" {
		t.Fatalf("set %q", a.Set[0].Value)
	}
}

// A value that the screen shows cleaned goes on as it was.
func TestEditKeepsWhatItDoesNotTouch(t *testing.T) {
	raw := func() *fake {
		f := world()
		d := f.detail["t-0008"]
		d.Inputs = view.Object{{Name: "raw", Value: "a\nb\xff\x1b"}, {Name: "url", Value: "u"}}
		f.detail["t-0008"] = d
		return f
	}
	r := newRig(t, raw(), 80, 24).press("4", "e").sees(`raw  = a\nb`).press("down", "v", "enter")
	if a, _ := r.last(); !reflect.DeepEqual(a.Set, task.Values{{Name: "url", Value: "uv"}}) {
		t.Fatalf("set %q", a.Set)
	}
	r = newRig(t, raw(), 80, 24).press("4", "e", "home", "right", "delete", "enter")
	if a, _ := r.last(); !strings.HasPrefix(a.Set[0].Value, "ab") {
		t.Fatalf("set %q", a.Set)
	}
}

// The form at every size, with hostile inputs, the cursor anywhere in them.
func TestFormFrames(t *testing.T) {
	f := world()
	d := f.detail["t-0008"]
	d.Inputs = nil
	for i, text := range hostile {
		d.Inputs = append(d.Inputs, task.Value{Name: fmt.Sprintf("in%d", i), Value: text})
	}
	f.detail["t-0008"] = d
	f.refuse = errors.New("invalid: input in1: " + hostile[3] + "\ninput in2 " + hostile[9] + "\n" + hostile[6])
	r := newRig(t, f, 80, 24, func(o *Options) { o.Theme = "dark" }).press("4", "e", "x", "enter")
	for range len(hostile) + 1 {
		for _, keys := range [][]string{{"home"}, {"right", "right", "right"}, {"end"}, {"left", "left"}} {
			r.press(keys...)
			for _, w := range []int{60, 61, 120} {
				for _, h := range []int{15, 24} {
					r.m.w, r.m.h, r.m.s.split, r.m.frame = w, h, w >= splitFrom, ""
					checkFrame(t, fmt.Sprint(keys, w, h), r.frame(), w, h)
				}
			}
		}
		if r.m.w, r.m.h, r.m.frame = 80, 24, ""; !strings.Contains(r.frame(), "> ") {
			t.Fatal("the cursor's line is out of sight")
		}
		r.press("down")
	}
}

func TestDrop(t *testing.T) {
	r := newRig(t, world(), 80, 24).press("4", "X").sees("Drop t-0008?").sees("stays in the journal").press("enter")
	if _, n := r.last(); n != 0 {
		t.Fatal("enter alone did it")
	}
	r.press("X", "y").sees("1 dropped").sees("dead letters: 2")
	r.press("*", "X").sees("Drop 2 tasks?").sees("They leave memory").sees("type 2 to do it").press("2", "enter").sees("2 dropped")
	a, _ := r.last()
	want := view.Selection{All: true, Query: view.Query{States: []task.State{task.Dead}}}
	if a.Verb != Drop || !reflect.DeepEqual(a.Tasks, want) {
		t.Fatalf("did %+v", a)
	}
	newRig(t, world(), 80, 24).press("4", "space", "space", "X").sees("type 2 to do it").press("2", "enter").sees("2 dropped")
}

func TestExplain(t *testing.T) {
	r := newRig(t, world(), 80, 24).press("4", "i").sees("why t-0008 stands where it does").sees("because the fake says so")
	r.sees("r requeues it, e edits its inputs first").sees("apollo11 logs t-0008").press("esc").misses("why t-0008").sees("dead letters: 3")
	r.press("3", "i").sees("why t-0004").sees("c cancels it").press("i").sees("why t-0004")
	r.press("2", "i").sees("why t-0004").press("j", "esc", "j", "i").sees("no task here to explain")
	r.press("6", "i").sees("why t-0008").press("7", "i").sees("why t-0001").press("j", "esc", "j", "i").sees("no task here to explain")
	r.press("4")
	r.f.tasks, r.f.detail = nil, nil
	r.press("i").sees("not found: task t-0008").misses("why t")
	// An answer that comes when the person has gone elsewhere opens nothing.
	r = newRig(t, world(), 80, 24).press("4")
	r.frozen = true
	r.press("i")
	late := r.kept
	r.frozen, r.kept = false, nil
	r.press("3")
	for _, cmd := range late {
		r.run(cmd)
	}
	r.misses("why t-0008")
}
