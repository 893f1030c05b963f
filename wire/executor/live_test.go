package executor

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"apollo11/engine/task"
	"apollo11/wire"
)

// change is one of a unit's changes, such as add.n=1.
func change(text string) task.Change {
	name, value, _ := strings.Cut(text, "=")
	word, key, _ := strings.Cut(name, ".")
	op, err := task.ParseOp(word)
	if err != nil {
		panic(err)
	}
	return task.Change{Op: op, Key: key, Value: value}
}

func changes(texts ...string) (list []task.Change) {
	for _, text := range texts {
		list = append(list, change(text))
	}
	return list
}

// collect is a resident unit: it makes changes, one piece of script after the
// other, and waits where the script has a duration. At its end it waits to be
// stopped, unless that is "end".
func collect(script ...string) func(context.Context, attempt) task.Outcome {
	return func(ctx context.Context, a attempt) task.Outcome {
		for _, piece := range script {
			if piece == "end" {
				return task.Outcome{Status: task.Success, Exit: 0}
			}
			if d, err := time.ParseDuration(piece); err == nil {
				select {
				case <-time.After(d):
				case <-ctx.Done():
				}
				continue
			}
			a.change(changes(strings.Fields(piece)...))
		}
		<-ctx.Done()
		a.change(changes("set.last=words"))
		return task.Outcome{Status: task.Stopped, Class: task.ByPerson, Exit: -1, Signal: "SIGTERM"}
	}
}

// resident makes the unit u one that is not expected to end.
func resident(script ...string) func(*Options) {
	return func(o *Options) {
		o.run = collect(script...)
		if err := os.WriteFile(filepath.Join(o.Units, "u.toml"), []byte("kind = 'resident'\nexecute = 'true'"), 0o600); err != nil {
			panic(err)
		}
	}
}

// live is the next messages with changes, as far as they come without a pause.
func (c *controller) live(want ...string) {
	c.t.Helper()
	for _, w := range want {
		p := c.progress()
		if written(p.Changes) != w || p.Task != "t" || p.Version == 0 {
			c.t.Errorf("%s %d: %s, want %s", p.Task, p.Version, written(p.Changes), w)
		}
	}
}

// written is changes as the unit wrote them.
func written(list []task.Change) string {
	var texts []string
	for _, c := range list {
		texts = append(texts, fmt.Sprintf("%s.%s=%s", c.Op, c.Key, c.Value))
	}
	return strings.Join(texts, " ")
}

func TestLiveChanges(t *testing.T) {
	staged(t, resident("set.a=1", "50ms", "set.b=1 add.n=1", "10ms", "add.n=2 set.b=2", "1s", "set.a=3", "end"), func(t *testing.T, s *stage) {
		c := s.accept()
		c.registered()
		began := time.Now()
		c.give(assign("t", 1))
		c.live("set.a=1")
		if waited := time.Since(began); waited > 0 {
			t.Errorf("the first change waited %v", waited)
		}
		if p := c.progress(); !p.Start {
			t.Errorf("%+v", p)
		}
		c.live("set.b=1 add.n=1", "add.n=2 set.b=2")
		if waited := time.Since(began); waited != liveEvery {
			t.Errorf("the next came after %v", waited)
		}
		c.live("set.a=3")
		c.result("t", task.Success)
		c.ack("t", 1)
		c.leave()
	})
}

// What cannot be said goes with the next link, in order, before the result.
func TestLiveChangesWithoutALink(t *testing.T) {
	staged(t, resident("add.n=1", "10s", "add.n=2", "1s", "add.n=3 set.k=v", "1s", "end"), func(t *testing.T, s *stage) {
		c := s.accept()
		c.registered()
		c.give(assign("t", 1))
		c.live("add.n=1")
		c.progress()
		c.raw.Close()
		c = s.accept()
		time.Sleep(registerIn - time.Second)
		c.raw.Close()
		time.Sleep(time.Minute)
		c = s.accept()
		c.registered()
		c.live("add.n=2", "add.n=3 set.k=v")
		c.result("t", task.Success)
		c.ack("t", 1)
		c.leave()
	})
}

func TestLiveChangesWithoutRoom(t *testing.T) {
	flood := []string{"1s"}
	for i := range 400 {
		flood = append(flood, "set.k="+strconv.Itoa(i)+strings.Repeat("x", 3000))
	}
	staged(t, resident(flood...), func(t *testing.T, s *stage) {
		c := s.accept()
		c.registered()
		c.give(assign("t", 1))
		c.progress()
		c.raw.Close()
		time.Sleep(time.Minute)
		c = s.accept()
		c.registered()
		n := 0
		var o *task.Outcome
		for o == nil {
			switch m := <-c.queue; m.Type {
			case wire.TypeProgress:
				p, err := wire.ParseProgress(&m.Message)
				if err != nil || !strings.HasPrefix(p.Changes[0].Value, strconv.Itoa(n)+"x") {
					t.Fatalf("change %d: %+v %v", n, p.Changes, err)
				}
				n++
			case wire.TypeResult:
				o, _ = wire.ParseResult(&m.Message, 2)
			}
		}
		if n < 300 || n == 400 || o.Status != task.Failed || !strings.Contains(o.Error, "no room") {
			t.Errorf("%d changes came, then %+v", n, o)
		}
		c.ack("t", 1)
		c.leave()
	})
}

// Who leaves ends a resident unit, and says nothing of how it ended: the offline
// gives it to another executor.
func TestLeaveWithAResidentUnit(t *testing.T) {
	for name, leave := range map[string]func(c *controller){
		"stopped": func(c *controller) { c.stop(); c.withdrawn(); c.known() },
		"drained": func(c *controller) { c.send(wire.AppendDrain(nil, "by a test")) },
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, resident("set.a=1"), func(t *testing.T, s *stage) {
				c := s.accept()
				c.registered()
				c.give(assign("t", 1))
				c.live("set.a=1")
				c.progress()
				leave(c)
				c.live("set.last=words")
				c.next(wire.TypeOffline)
				if err := c.end(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A resident unit that fails, or that a person cancels, answers as any other.
func TestResidentUnitEnds(t *testing.T) {
	staged(t, resident("set.a=1"), func(t *testing.T, s *stage) {
		c := s.accept()
		c.registered()
		c.give(assign("t", 1))
		c.live("set.a=1")
		c.progress()
		c.send(wire.AppendCancel(nil, wire.Ref{Task: "t", Version: 1}, "by a test"))
		c.live("set.last=words")
		c.result("t", task.Stopped)
		c.ack("t", 1)
		c.leave()
	})
}

// However changes come, their messages hold all of them in order, each message
// those of one dispatch, no key twice, and none too large for a frame.
func TestLiveMessages(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var l live
		var want []liveChange
		for range random.IntN(60) {
			ref := wire.Ref{Task: "t" + strconv.Itoa(random.IntN(2)), Version: task.Version(1 + random.IntN(2))}
			c := task.Change{Op: task.Op(random.IntN(4)), Key: "k" + strconv.Itoa(random.IntN(9)), Value: strings.Repeat("=", random.IntN(1<<13))}
			if !l.add(ref, []task.Change{c}) {
				break
			}
			want = append(want, liveChange{ref, c})
		}
		var got []liveChange
		for _, p := range l.take(time.Time{}) {
			if frame := wire.AppendProgress(nil, &p); len(frame) > wire.MaxFrame {
				t.Errorf("a frame of %d bytes", len(frame))
			} else if _, err := wire.ParseMessage(frame[4:]); err != nil {
				t.Error(err)
			}
			for _, c := range p.Changes {
				got = append(got, liveChange{wire.Ref{Task: p.Task, Version: p.Version}, c})
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%d changes became %d, or in another order", len(want), len(got))
		}
		if l.size != 0 || len(l.list) != 0 {
			t.Errorf("%d bytes are left", l.size)
		}
	}
}
