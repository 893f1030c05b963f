package engine

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

func (r *rig) repair(key, value string) {
	r.Helper()
	ask[view.Key](r, Repair{Key: key, Value: value, Reason: "test"})
}

// news is what a link was told of the state so far.
func news(l *wireLink) (list []StateChanged) {
	for {
		select {
		case v := <-l.sent:
			if v, ok := v.(StateChanged); ok {
				list = append(list, v)
			}
		default:
			return list
		}
	}
}

// The loop tells at once after a quiet second, then at most once a second, with
// no timer while there is nothing to tell.
func TestStateIsTold(t *testing.T) {
	bubble(t, &memory{}, nil, func(r *rig) {
		l, other := newLink(), newLink()
		defer l.beating()()
		c := e1("a")
		c.Subscribe = true
		r.register(l, c)
		c.Exec, c.Subscribe = "e2", false
		r.register(other, c)
		time.Sleep(5 * time.Second)
		start := time.Now()
		for n := range 100 { // ten a second, for ten seconds
			r.repair("n", fmt.Sprint(n))
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		list := news(l)
		if took := time.Since(start); len(list) != 11 || took != 15*time.Second {
			r.Fatalf("told %d times in %s: %+v", len(list), took, list)
		}
		since := list[0].Since
		for n, told := range list {
			if told.Since != since || told.More || len(told.Keys) != 1 || told.Keys[0].Key != "n" {
				r.Errorf("%d: %+v", n, told)
			}
			since = told.Version
		}
		if last := list[10]; last.Keys[0].Version != 100 || last.Version != r.StateVersion() {
			r.Errorf("the last is %+v", last)
		}
		if len(news(other)) > 0 {
			r.Error("who did not subscribe is told")
		}
		r.Post([]Ask{{Command: Disconnected{Exec: "e1"}, Link: l}})
		r.repair("n", "x")
		time.Sleep(2 * time.Second)
		if len(news(l)) > 0 {
			r.Error("a connection that is gone is told")
		}
	})
}

// What would not fit a message is cut, and says so; nobody subscribed costs nothing.
func TestStateNewsAreBounded(t *testing.T) {
	b := newBounded(t, nil)
	link := newLink()
	do := func(commands ...Command) {
		b.turn(func() {
			for _, c := range commands {
				b.m.decide(Ask{Command: c, Link: link})
			}
		})
	}
	do(Register{Exec: "e1", Types: []string{"a"}, Proto: 2})
	b.do(Repair{Key: "x", Value: "1", Reason: "r"})
	if b.m.feed.changed != nil {
		t.Error("changes are kept for nobody")
	}
	do(Register{Exec: "e1", Types: []string{"a"}, Proto: 2, Subscribe: true})
	for _, c := range []struct {
		name       string // of keys
		many, most int
	}{{"short%04d", maxFeedKeys + 1, maxFeedKeys}, {"%0128d", 450, maxFeedBytes / (128 + 32)}, {"few%d", maxFeedKeys, maxFeedKeys}} {
		b.move(time.Minute)
		id, v := b.one()
		o := task.Outcome{Task: id, Version: v, Status: task.Success}
		for n := range c.many {
			o.Changes = append(o.Changes, task.Change{Op: task.Set, Key: fmt.Sprintf(c.name, n), Value: "1"})
		}
		do(Result{Exec: "e1", Outcome: o})
		list := news(link)
		if len(list) != 1 || len(list[0].Keys) != c.most || list[0].More != (c.many > c.most) {
			t.Errorf("%d keys as %s: %d messages", c.many, c.name, len(list))
		}
	}
	do(Offline{Exec: "e1"})
	if f := b.m.feed; f.readers != 0 || f.changed != nil || f.heap != 0 {
		t.Errorf("left behind: %+v", f)
	}
}
