package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"apollo11/engine/view"
)

// Where the time of attempts went, record by record.
func TestSegments(t *testing.T) {
	for _, c := range []struct {
		name   string
		events string // at ms, kind, task, fields with commas
		want   string // unit try queue prepare execute cleanup rest outcome
	}{
		{"once", "0 task.ready a;5 task.start a attempt=1;105 task.result a prepare_us=1000,execute_us=90000,cleanup_us=2000", "a 1 5 1 90 2 7 succeeded"},
		{"a retry that waits", "0 task.ready a;1 task.start a attempt=1;11 task.fail a class=timeout,state=retrying,execute_us=9000;500 task.queue a;502 task.start a attempt=2;503 task.result a", "a 1 1 0 9 0 1 timeout|a 2 2 0 0 0 1 succeeded"},
		{"a retry at once", "0 task.ready a;1 task.start a attempt=1;11 task.fail a class=timeout,state=queued;15 task.start a attempt=2", "a 1 1 0 0 0 10 timeout|a 2 4 0 0 0 0 "},
		{"handed back", "0 task.submit a;1 task.start a attempt=1;3 task.back a;9 task.start a attempt=1", "a 1 1 0 0 0 2 handed back|a 1 6 0 0 0 0 "},
		{"cancelled while it runs", "0 task.ready a;1 task.start a attempt=1;4 task.end a state=cancelled", "a 1 1 0 0 0 3 cancelled"},
		{"two side by side", "0 task.ready a;0 task.ready b;1 task.start b attempt=1;2 task.start a attempt=1;3 task.result a;4 task.result b", "b 1 1 0 0 0 3 succeeded|a 1 2 0 0 0 1 succeeded"},
		{"its queue is before what is shown", "1 task.start a attempt=2;2 task.result a", "a 2 0 0 0 0 1 succeeded"},
		{"only its end is shown", "2 task.result a;3 task.fail a class=timeout,state=dead", ""},
		{"clocks that differ", "0 task.ready a;5 task.start a attempt=1;6 task.result a execute_us=90000", "a 1 5 0 90 0 0 succeeded"},
	} {
		var s segments
		for text := range strings.SplitSeq(c.events, ";") {
			words := append(strings.Fields(text), "")
			ms, pairs := 0, []string(nil)
			fmt.Sscan(words[0], &ms)
			for pair := range strings.SplitSeq(words[3], ",") {
				if name, value, ok := strings.Cut(pair, "="); ok {
					pairs = append(pairs, name, value)
				}
			}
			s.add(&view.Event{Kind: words[1], Task: "r-0001:" + words[2], Time: view.Time{Time: noon.Add(time.Duration(ms) * time.Millisecond)}, Values: object(pairs...)})
		}
		var got []string
		for _, a := range s.tries {
			line := a.unit + " " + a.number
			for _, d := range []time.Duration{a.queue, a.prepare, a.execute, a.cleanup, a.controller} {
				line += fmt.Sprintf(" %d", d.Milliseconds())
			}
			got = append(got, line+" "+a.outcome)
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestKeyChanges(t *testing.T) {
	keys := func(text string) (list []view.Key) {
		for _, pair := range strings.Fields(text) {
			name, value, _ := strings.Cut(pair, "=")
			list = append(list, view.Key{Key: name, Value: value})
		}
		return list
	}
	for _, c := range []struct{ before, after, want string }{
		{"", "", ""}, {"a=1", "a=1", ""}, {"a=1", "a=2", "a 1>2"}, {"a=1", "", "a 1>gone"}, {"", "a=1", "a new>1"}, {"", "a=", "a new>"},
		{"a=1 c=3 d=4", "b=2 c=5 d=4 e=6", "a 1>gone|b new>2|c 3>5|e new>6"},
	} {
		var got []string
		for _, k := range keyChanges(keys(c.before), keys(c.after)) {
			before, after := k.Before, k.After
			if k.New {
				before = "new"
			}
			if k.Gone {
				after = "gone"
			}
			got = append(got, k.Key+" "+before+">"+after)
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%q to %q: %q, want %q", c.before, c.after, got, c.want)
		}
	}
}

// On a terminal a bar stands below what happens, and never in the way of it.
func TestRunWaitBar(t *testing.T) {
	f := newFake(t)
	f.started = view.Run{ID: "r-0002", Mission: "weather", Units: 5}
	f.shown["r-0002"] = append(inFlight("r-0002", "succeeded")[:1], inFlight("r-0002", "succeeded")...)
	f.events = runStory("r-0002")
	passed := time.Duration(0)
	r := f.run("run weather --wait", func(e *Env) {
		e.Terminal, e.Width = true, 80
		e.Now = func() time.Time { passed += time.Second; return noon.Add(passed) }
	})
	if r.code != Done || !strings.Contains(r.stderr, "\r\x1b[K[====                ] 1 of 5 ended, ") {
		t.Errorf("%d, no bar in %q", r.code, r.stderr)
	}
	if at := strings.LastIndex(r.stderr, "1 of 5 ended"); !strings.Contains(r.stderr[at:], "\r\x1b[K") {
		t.Errorf("the bar is left standing: %q", r.stderr[at:])
	}
}
