package controller_test

import (
	"os"
	"strings"
	"testing"
)

// unitIn writes a manifest into a folder of its own world.
func (w *world) unitIn(folder, name, text string) {
	w.Helper()
	w.must(os.MkdirAll(w.path(folder), 0o755))
	w.write(folder+"/"+name+".toml", text)
}

// says waits until a process has printed a text.
func (p *process) says(want string) {
	p.Helper()
	eventually(p.TB, "a process that says "+want, func() bool {
		b, err := os.ReadFile(p.out)
		p.must(err)
		return strings.Contains(string(b), want)
	})
}

// Two executors with different contracts for a type: the newcomer is refused the
// type, and told what differs; what they agree on, both offer.
func TestContractConflict(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brisk)
	w.controller()
	const whole, words = "execute = 'true'\n[in.n]\ntype = 'int'\n", "execute = 'true'\n[in.n]\ntype = 'string'\n"
	for folder, text := range map[string]string{"one": whole, "two": words} {
		w.unitIn(folder, "differs", text)
		w.unitIn(folder, "same", "execute = 'true'")
	}
	first := w.executor("first", "--units", "one")
	second := w.executor("second", "--units", "two")
	second.says("differs: others have in.n:type=int, this one in.n:type=string")
	if _, words, code := w.cli("submit", "differs", "n=x"); code == 0 || !strings.Contains(words, "whole number") {
		t.Errorf("a text passed for a number: code %d, %s", code, words)
	}
	w.does("submit", "differs", "n=1", "--id", "t", "--wait")
	if by := w.task("t").Executor; by != "first" {
		t.Errorf("it ran on %s", by)
	}
	first.stop()
	w.does("submit", "same", "--id", "u", "--wait")
	if by := w.task("u").Executor; by != "second" {
		t.Errorf("it ran on %s", by)
	}
	w.unitIn("two", "differs", whole) // put right while it runs
	w.does("submit", "differs", "n=2", "--id", "v", "--wait")
	second.stop()
	w.verified()
}
