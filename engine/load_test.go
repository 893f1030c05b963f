package engine

import (
	"strings"
	"testing"

	"apollo11/engine/task"
)

// loadText takes one line of an image.
func loadText(s *loading, text string) error {
	l, err := new(fields).imageLine(text)
	if err != nil {
		return err
	}
	return s.take(l)
}

// loadLines reads an image's lines, the lists included.
func loadLines(lines string) (*state, error) {
	l := loading{state: newState()}
	for line := range strings.Lines(lines) {
		if err := loadText(&l, strings.TrimSuffix(line, "\n")); err != nil {
			return nil, err
		}
	}
	return l.state, l.linkAll()
}

const smallImage = "counters epoch=1 seq=9 wall=2026-01-02T03:04:05.678901Z nums=3 stamps=7 tail=6 head=-2\n" +
	"key key=k value=v version=1 seq=2 at=1\n" +
	"exec exec=e proto=2\n" +
	"name task=old type=t state=succeeded work=w\n"

const someTask = "task task=a type=t num=1 state=queued stamp=3 order=2"

func TestLoadRefuses(t *testing.T) {
	if _, err := loadLines(smallImage + someTask + "\ntask.past task=a attempt=1\ntask.context task=a ctx=\"k=v\"\ntask.result task=a by=ann\n"); err != nil {
		t.Fatalf("a good image: %v", err)
	}
	for name, lines := range map[string]string{
		"an unknown line":               "dance a=b",
		"an empty line":                 "\n",
		"counters twice":                "counters epoch=1 seq=9",
		"a key twice":                   "key key=k value=w",
		"a key that is none":            `key key="a b" value=w`,
		"an executor twice":             "exec exec=e",
		"an executor without a name":    "exec proto=1",
		"a name twice":                  "name task=old type=t state=dead work=w",
		"a type twice":                  "type type=x paused=1\ntype type=x paused=1",
		"a type that is none":           `type type="a b" paused=1`,
		"a unit that is none":           "type type=x unit=\"nonsense here\"",
		"a task twice":                  someTask + "\n" + strings.Replace(someTask, "num=1", "num=2", 1),
		"a task that left memory":       "task task=old type=t num=1 state=queued stamp=3 order=2",
		"a number twice":                someTask + "\n" + "task task=b type=t num=1 state=queued stamp=4 order=3",
		"a stamp twice":                 someTask + "\n" + "task task=b type=t num=2 state=queued stamp=3 order=3",
		"a key of two tasks":            "task task=b type=t key=k num=1 state=queued stamp=3\ntask task=c type=t key=k num=2 state=queued stamp=4",
		"a number beyond":               "task task=b type=t num=4 state=queued stamp=3",
		"no number":                     "task task=b type=t state=queued stamp=3",
		"a stamp beyond":                "task task=b type=t num=1 state=queued stamp=8",
		"an order beyond the tail":      "task task=b type=t num=1 state=queued stamp=3 order=7",
		"an order beyond the head":      "task task=b type=t num=1 state=queued stamp=3 order=-3",
		"no state":                      "task task=b type=t num=1 stamp=3",
		"no type":                       "task task=b num=1 state=queued stamp=3",
		"an id that is none":            `task task="a b" type=t num=1 state=queued stamp=3`,
		"an id of 300 bytes":            "task task=" + strings.Repeat("a", 300) + " type=t num=1 state=queued stamp=3",
		"out without an executor":       "task task=b type=t num=1 state=running stamp=3 v=1.1",
		"out without a version":         "task task=b type=t num=1 state=assigned stamp=3 exec=e",
		"succeeded without an executor": "task task=b type=t num=1 state=succeeded stamp=3 v=1.1",
		"an executor that is not there": "task task=b type=t num=1 state=queued stamp=3 exec=ghost",
		"a part of no task":             "task.past task=zz attempt=1",
		"an empty part":                 someTask + "\ntask.past task=a",
		"a part twice":                  someTask + "\ntask.result task=a by=x\ntask.result task=a by=y",
		"a part that is none":           someTask + "\ntask.context task=a sky=1",
		"more attempts than are kept":   someTask + strings.Repeat("\ntask.past task=a attempt=1", maxHistory+1),
		"an unknown field":              someTask + " speed=9",
	} {
		if _, err := loadLines(smallImage + lines + "\n"); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// Every durable field of a task stands in an image: one that is changed in
// memory alone changes the hash.
func TestHashCoversEveryField(t *testing.T) {
	s, err := loadLines(smallImage + "task task=a type=t num=1 state=running stamp=3 order=2 exec=e v=1.1\n")
	if err != nil {
		t.Fatal(err)
	}
	last := s.hash()
	changes := map[string]func(){}
	slot := s.at(s.find("a"))
	for name, change := range map[string]func(){
		"submitted": func() { slot.submitted = 1000 }, "notBefore": func() { slot.notBefore = 1000 }, "deadline": func() { slot.deadline = 1000 },
		"named": func() { slot.named = true }, "class": func() { slot.class = task.Timeout }, "fresh": func() { slot.fresh = true }, "moved": func() { slot.moved = true },
		"stamp": func() { slot.stamp = 4 }, "order": func() { slot.order = 1 }, "due": func() { slot.due = 1000 }, "entered": func() { slot.entered = 1000 },
		"version": func() { slot.version = 7 }, "applied": func() { slot.applied = 7 }, "seen": func() { slot.seen = 7 },
		"started": func() { slot.started = 1000 }, "finished": func() { slot.finished = 1000 }, "sent": func() { slot.sent = 7 },
		"attempt": func() { slot.attempt = 7 }, "tries": func() { slot.tries = 7 }, "crashes": func() { slot.crashes = 7 }, "stales": func() { slot.stales = 7 },
		"state": func() { slot.state = task.Queued }, "num": func() { slot.num = 2 },
	} {
		changes["slot."+name] = change
	}
	for name, change := range map[string]func(){
		"context": func() { s.replace(&slot.context, []byte("ctx=\"a=1\"")) },
		"result":  func() { s.replace(&slot.result, []byte("by=a")) },
		"history": func() { s.replace(&slot.history, []byte("attempt=1\n")) },
		"spec": func() {
			s.replace(&slot.spec, append((&taskSpec{id: "a", key: "k", filled: "x", retries: 3, timeout: 5000}).append(nil), "x=1"...))
		},
		"epoch": func() { s.epoch++ }, "seq": func() { s.seq++ }, "wall": func() { s.wall += 1000 }, "nums": func() { s.nums++ }, "stamps": func() { s.stamps++ },
		"tail": func() { s.tail++ }, "head": func() { s.head-- }, "stateVersion": func() { s.stateVersion++ }, "configVersion": func() { s.configVersion++ },
		"configHash": func() { s.configHash = "x" }, "lates": func() { s.lates++ }, "paused": func() { s.paused = true },
		"key value": func() { s.keys["k"].value = "w" }, "key version": func() { s.keys["k"].version++ }, "key seq": func() { s.keys["k"].seq++ },
		"key at": func() { s.keys["k"].at++ }, "key task": func() { s.keys["k"].task = "a" }, "a key": func() { s.keys["l"] = &stateKey{} },
		"type paused": func() { s.types[1].paused = true }, "type text": func() { s.types[1].text = "x" },
		"offers": func() { s.execs[1].offers = task.Values{{Name: "t"}} }, "proto": func() { s.execs[1].proto++ }, "instance": func() { s.execs[1].instance = "i" },
		"host": func() { s.execs[1].host = "h" }, "pid": func() { s.execs[1].pid++ }, "build": func() { s.execs[1].build = "b" },
		"offline": func() { s.execs[1].offline = true }, "reason": func() { s.execs[1].reason = "r" }, "draining": func() { s.execs[1].draining = true },
		"since": func() { s.execs[1].since = 1000 }, "done": func() { s.execs[1].done++ }, "failed": func() { s.execs[1].failed++ },
		"a name": func() { s.names.add(&tomb{ID: "older"}) }, "a late result": func() { s.ledger.add(ledgerLine{Time: 1000}) },
	} {
		changes[name] = change
	}
	for name, change := range changes {
		change()
		now := s.hash()
		if now == last {
			t.Errorf("%s does not stand in the image", name)
		}
		last = now
	}
}

// An image's lines in another order, cut or mixed, give a state or an error.
func FuzzLoad(f *testing.F) {
	f.Add(smallImage + someTask + "\ntask.past task=a attempt=1 told=1\ntask.context task=a ctx=\"k=v\" ctx_at=\"k=1\"\ntask.result task=a by=ann\n")
	w := newWorld(f, 3)
	for range 120 {
		w.step()
	}
	g := w.m.newImaging()
	for !w.m.step(g, 100) {
	}
	f.Add(string(g.take()))
	f.Add(smallImage + "task task=b type=t num=1 state=running stamp=3 exec=e v=1.1\n")
	f.Fuzz(func(t *testing.T, lines string) {
		s, err := loadLines(lines)
		if err != nil || !strings.Contains(lines, "counters ") {
			return
		}
		again := reload(t, s)
		m := newMachine(again, DefaultSettings(), quiet)
		for i := uint32(1); i < again.slots.made; i++ { // whatever a page shows reads its texts
			if again.at(i).num != 0 {
				if _, err := m.detail(again.id(i)); err != nil {
					t.Fatal(err)
				}
			}
		}
		m.status()
		m.queues()
		m.executors()
		m.late(10)
	})
}
