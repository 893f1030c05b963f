package controller_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The data folder is deleted, moved or replaced under a controller with nothing
// to do: it ends within a few seconds, with the code and the words of a journal
// that cannot be written.
func TestFolderGoesUnderAnIdleController(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(w *world){
		"deleted": func(w *world) { w.must(os.RemoveAll(w.path("data"))) },
		"moved":   func(w *world) { w.must(os.Rename(w.path("data"), w.path("moved"))) },
		"lock": func(w *world) {
			w.must(os.Remove(w.path("data/LOCK")))
			w.write("data/LOCK", "1\n")
		},
		"journal": func(w *world) { removeAll(w, journals(w, w.path("data"))) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, brisk)
			c := w.controller()
			eventually(t, "its first words", func() bool { return strings.Contains(w.read("data/apollo11.log"), "controller ready") })
			spoil(w)
			c.endsMoved()
			if name == "deleted" && w.there("data") {
				t.Error("it made the folder again")
			}
		})
	}
}

// endsMoved waits for the end of a controller whose folder is not its own any more.
func (p *process) endsMoved() {
	p.Helper()
	code, words := p.wait(), p.read("controller.out")
	for _, want := range []string{"apollo11: ", "data folder data was deleted, moved or replaced", "hint: bring the folder back"} {
		if !strings.Contains(words, want) {
			p.Errorf("no %q in: %s", want, tail(words))
		}
	}
	if code != 4 {
		p.Errorf("code %d, want 4", code)
	}
}

// With work to take it ends at the first that it would write a moment later; a
// second controller that has the name by then keeps what is its own; whatever was
// acknowledged is in the folder that was moved.
func TestFolderIsReplacedUnderAController(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brisk)
	first := w.controller()
	w.does("submit", "a", "--id", "kept-0")
	kept := []string{"kept-0"}
	was := w.addr()
	w.must(os.Rename(w.path("data"), w.path("moved")))
	second := w.start("second", "--no-tui")
	eventually(t, "a second controller", func() bool { return w.there("data/ADDR") })
	eventually(t, "a refusal", func() bool {
		id := fmt.Sprint("kept-", len(kept))
		_, _, code := w.cli("submit", "a", "--id", id, "--addr", was)
		if code == 0 {
			kept = append(kept, id)
		}
		return code != 0
	})
	first.endsMoved()
	if now := w.addr(); now == was || now == "" {
		t.Errorf("the second controller's address is %q, the first had %q", now, was)
	}
	w.does("submit", "a", "--id", "other")
	second.stop()
	w.verified()
	w.must(os.RemoveAll(w.path("data")))
	w.must(os.Rename(w.path("moved"), w.path("data")))
	c := w.controller()
	for _, id := range kept {
		if d := w.task(id); d.State != "queued" {
			t.Errorf("%s is %s", id, d.State)
		}
	}
	if _, _, code := w.cli("task", "other"); code != 1 {
		t.Errorf("other: code %d", code)
	}
	c.stop()
	w.verified()
}
