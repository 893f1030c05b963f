package engine

import (
	"fmt"
	"strings"
	"testing"

	"apollo11/engine/mission"
	"apollo11/engine/task"
)

// gridMission is width x height units, each of which waits for its neighbours
// above and to the left.
func gridMission(t testing.TB, width, height int) *mission.Mission {
	var b strings.Builder
	b.WriteString("name = \"grid\"\n")
	for y := range height {
		for x := range width {
			fmt.Fprintf(&b, "[[units]]\nname = \"u%d-%d\"\nuses = \"add\"\ndeps = [", x, y)
			if x > 0 {
				fmt.Fprintf(&b, "\"u%d-%d\",", x-1, y)
			}
			if y > 0 {
				fmt.Fprintf(&b, "\"u%d-%d\"", x, y-1)
			}
			b.WriteString("]\n")
		}
	}
	return parsed(t, b.String())
}

// fanMission is one unit, many that wait for it, and one that waits for them all.
func fanMission(t testing.TB, width int) *mission.Mission {
	var b, all strings.Builder
	b.WriteString("name = \"fan\"\n[[units]]\nname = \"first\"\nuses = \"add\"\n")
	for n := range width {
		fmt.Fprintf(&b, "[[units]]\nname = \"u%d\"\nuses = \"add\"\ndeps = [\"first\"]\n", n)
		fmt.Fprintf(&all, "\"u%d\",", n)
	}
	fmt.Fprintf(&b, "[[units]]\nname = \"last\"\nuses = \"add\"\ndeps = [%s]\n", all.String())
	return parsed(t, b.String())
}

func parsed(t testing.TB, text string) *mission.Mission {
	m, err := mission.Parse("m.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// runAll starts a mission so many times at once and works it off; it returns how
// many units that were.
func (b *bench) runAll(t testing.TB, m *mission.Mission, times int) (units int) {
	b.turn(func() {
		for range times {
			if _, err := b.startRun(StartRun{Mission: m, Actor: "bench"}); err != nil {
				t.Fatal(err)
			}
		}
	})
	for idle := 0; units < times*len(m.Units); idle++ {
		if n := b.answerAll(perTurn); n > 0 {
			units, idle = units+n, 0
		}
		if idle > 100 { // turns that were full of other things
			t.Fatalf("stuck after %d units", units)
		}
	}
	return units
}

// One operation is a unit's whole life, the start of its run included: the cost
// of a unit must not depend on how many others its mission has.
func BenchmarkRun(b *testing.B) {
	for _, shape := range []struct {
		name  string
		m     *mission.Mission
		times int
	}{
		{"units=10", gridMission(b, 5, 2), 1},
		{"units=10,runs=1000", gridMission(b, 5, 2), 1000},
		{"grid=100x100", gridMission(b, 100, 100), 1},
		{"chain=5000", gridMission(b, 5000, 1), 1},
		{"fan=5000", fanMission(b, 5000), 1},
	} {
		b.Run(shape.name, func(b *testing.B) {
			e := newBench(8)
			b.ReportAllocs()
			for done := 0; done < b.N; {
				done += e.runAll(b, shape.m, shape.times)
			}
		})
	}
}

// Large missions end, whatever their shape.
func TestLargeMissions(t *testing.T) {
	for name, m := range map[string]*mission.Mission{
		"grid": gridMission(t, 100, 100), "chain": gridMission(t, 5000, 1), "fan": fanMission(t, 5000), "small": gridMission(t, 3, 3),
	} {
		times := 1
		if name == "small" {
			times = 1000
		}
		e := newBench(8)
		e.runAll(t, m, times)
		e.turn(func() {})
		for _, r := range e.inOrder() {
			if r.state != runSucceeded {
				t.Errorf("%s: run %s is %s", name, r.id, r.state)
			}
		}
	}
}

// What had no room in the turn of a unit's success comes to the queue after a
// restart, too.
func TestFanSurvivesRestart(t *testing.T) {
	e := newBench(8)
	m := fanMission(t, 5000)
	e.turn(func() {
		if _, err := e.startRun(StartRun{Mission: m}); err != nil {
			t.Fatal(err)
		}
	})
	for e.states[task.Succeeded].len == 0 {
		e.answerAll(1)
	}
	left := e.states[task.Blocked].len
	if left < 1000 {
		t.Fatalf("only %d units are still blocked: this proves nothing", left)
	}
	g := e.newImaging()
	for !e.step(g, 1000) {
	}
	st, err := loadLines(string(g.take()))
	if err != nil {
		t.Fatal(err)
	}
	again := newMachine(st, e.set, quiet)
	again.set.base = e.set.base
	e.machine = again
	e.turn(e.boot)
	for range 100 {
		e.turn(func() {})
	}
	if n := e.states[task.Blocked].len; n != 1 {
		t.Errorf("%d units are blocked, want the last alone", n)
	}
}
