package engine

import (
	"fmt"
	"slices"
	"strings"

	"apollo11/engine/mission"
	"apollo11/engine/task"
)

// Missions in the simulation: random graphs are started, resumed, forked, run
// again, rolled back and cancelled, and their rules hold after every turn.

// mission is a random graph over the simulation's types.
func (w *world) mission() *mission.Mission {
	var b strings.Builder
	fmt.Fprintf(&b, "name = \"m%d\"\non_failure = \"%s\"\n[params.p]\ntype = \"int\"\ndefault = 1\n", w.rand.IntN(3), []string{"stop", "continue"}[w.rand.IntN(2)])
	for n := range 2 + w.rand.IntN(7) {
		typ := []string{"a", "c", "fresh", "once"}[w.rand.IntN(4)]
		fmt.Fprintf(&b, "[[units]]\nname = \"u%d\"\nuses = %q\nwith = {x = \"${params.p}\"}\n", n, typ)
		var deps, weak []string
		for d := range n {
			switch w.rand.IntN(6) {
			case 0, 1:
				deps = append(deps, fmt.Sprintf("%q", fmt.Sprint("u", d)))
			case 2:
				weak = append(weak, fmt.Sprintf("%q", fmt.Sprint("u", d)))
			}
		}
		fmt.Fprintf(&b, "deps = [%s]\nweak = [%s]\n", strings.Join(deps, ","), strings.Join(weak, ","))
		switch w.rand.IntN(6) {
		case 0:
			b.WriteString("when = \"params.p > 1\"\n")
		case 1:
			b.WriteString("retries = 0\n")
		}
	}
	m, err := mission.Parse("m.toml", []byte(b.String()))
	if err != nil {
		w.fail("%v\n%s", err, b.String())
	}
	return m
}

// missions asks for something about missions; much of it is refused.
func (w *world) missions(kill bool) {
	run := "r-none"
	if all := w.m.inOrder(); len(all) > 0 {
		run = all[w.rand.IntN(len(all))].id
	}
	unit := fmt.Sprint("u", w.rand.IntN(5))
	var c Command
	switch w.rand.IntN(9) {
	case 0, 1, 2:
		c = StartRun{Mission: w.mission(), Params: task.Values{{Name: "p", Value: fmt.Sprint(w.rand.IntN(3))}}, Actor: "sim"}
	case 3, 4:
		c = Resume{Run: run, Actor: "sim"}
	case 5:
		c = Rerun{ID: run, AtContext: w.rand.IntN(2) == 0, Actor: "sim"}
	case 6:
		c = Fork{Run: run, From: unit, With: task.Values{{Name: "x", Value: fmt.Sprint(w.rand.IntN(3))}}, Actor: "sim"}
	case 7:
		c = Rollback{Run: run, Actor: "sim"}
	case 8:
		if c = (CancelRun{Run: run, Actor: "sim"}); w.rand.IntN(2) == 0 {
			c = cancelOne(runTaskID(run, unit))
		}
	}
	w.turn(kill, func() { w.m.decide(Ask{Command: c, Link: &simLink{w: w}}) })
}

func cancelOne(id string) Command {
	c := Cancel{Actor: "sim"}
	c.IDs = []string{id}
	return c
}

// runs holds every run against the rules of graphs.
func (w *world) runs() {
	for _, r := range w.m.inOrder() {
		open := 0
		for u, i := range r.flow.units {
			t := w.m.at(i)
			if w.m.runOfTask(i) != r || int(t.unit) != u {
				w.fail("unit %d of run %s is task %s of another", u, r.id, w.m.id(i))
			}
			if !t.state.Terminal() {
				open++
			}
			if t.state == task.Blocked && !w.m.more {
				w.waits(r, u)
			}
		}
		switch {
		case open != r.flow.open:
			w.fail("run %s counts %d open units, %d are", r.id, r.flow.open, open)
		case open > 0 && r.state.ended():
			w.fail("run %s is %s with %d open units", r.id, r.state, open)
		case open == 0 && r.state == runRunning && !w.m.more:
			w.fail("run %s goes on with nothing to do", r.id)
		}
	}
}

// waits checks that a blocked unit waits for something that goes on.
func (w *world) waits(r *run, u int) {
	if r.state.ended() || r.flow.stopping {
		w.fail("unit %d of run %s, which is %s, is still blocked", u, r.id, r.state)
	}
	waiting := 0
	for p, i := range r.flow.units {
		if !slices.Contains(r.next(p), int32(u)) || w.m.succeeded(i) {
			continue
		}
		waiting++
		if w.m.at(i).state.Terminal() {
			w.fail("unit %d of run %s waits for unit %d, which is %s", u, r.id, p, w.m.at(i).state)
		}
	}
	if waiting == 0 || int(r.flow.left[u]) != waiting {
		w.fail("unit %d of run %s waits for %d units, and counts %d", u, r.id, waiting, r.flow.left[u])
	}
}

// shadowRuns is what the second opinion knows of runs.
type shadowRuns struct {
	texts map[string]string
	runs  map[string]*shadowRun
	of    map[string]*shadowRun // by task
}

type shadowRun struct {
	rollback bool
	order    []string // of a rollback: tasks
	units    map[string]*mission.Unit
	done     map[string]bool // tasks with a result
	over     bool
}

func newShadowRuns() shadowRuns {
	return shadowRuns{texts: map[string]string{}, runs: map[string]*shadowRun{}, of: map[string]*shadowRun{}}
}

// noteRun takes a record about runs.
func (s *shadow) noteRun(r record) (broken string) {
	switch r := r.(type) {
	case *specStored:
		s.runs.texts[r.Hash] += r.Text
	case *runStarted:
		return s.noteRunStart(r)
	case *becameReady:
		s.inputs[r.Task] = r.Inputs.Hash()
		return s.mayBegin(r.Task)
	case *skipped:
		if broken = s.mayBegin(r.Task); broken != "" {
			return broken
		}
		s.ended[r.Task] = task.Skipped
		if r.Reused != "" {
			s.runs.of[r.Task].done[r.Task] = true
			return ""
		}
		s.endBelow(s.runs.of[r.Task], r.Task, task.Skipped)
	case *runStopped:
		run := s.runs.runs[r.Run]
		if !r.All {
			s.endBelow(run, runTaskID(r.Run, r.Unit), task.Aborted)
			return ""
		}
		s.endAll(run, task.Aborted, false)
	case *runCancelledBy:
		s.endAll(s.runs.runs[r.Run], task.Cancelled, true)
		s.runs.runs[r.Run].over = true
	case *runEnded:
		s.runs.runs[r.Run].over = true
	}
	return ""
}

func (s *shadow) noteRunStart(r *runStarted) string {
	m, err := mission.ParseSpec(s.runs.texts[r.Spec])
	if err != nil {
		return err.Error()
	}
	run := &shadowRun{units: map[string]*mission.Unit{}, done: map[string]bool{}, rollback: r.Origin.Mode == modeRollback}
	s.runs.runs[r.Run] = run
	for i := range m.Units {
		id := runTaskID(r.Run, m.Units[i].Name)
		s.types[id], run.units[id], s.runs.of[id] = m.Units[i].Uses, &m.Units[i], run
		if run.rollback {
			s.ended[id] = task.Skipped
		}
	}
	order, err := parseOrder(r.Order, len(m.Units))
	for _, u := range order {
		id := runTaskID(r.Run, m.Units[u].Name)
		run.order = append(run.order, id)
		delete(s.ended, id)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// mayBegin says what stands in the way of a unit.
func (s *shadow) mayBegin(id string) string {
	run := s.runs.of[id]
	if run == nil || run.over {
		return fmt.Sprintf("%s begins, and its run is over", id)
	}
	if run.rollback {
		if n := slices.Index(run.order, id); n < 0 || n > 0 && !run.done[run.order[n-1]] {
			return fmt.Sprintf("%s is undone before its turn", id)
		}
		return ""
	}
	name, _, _ := strings.Cut(id, ":")
	for _, d := range run.units[id].Deps {
		if !run.done[runTaskID(name, d)] {
			return fmt.Sprintf("%s begins before %s has succeeded", id, d)
		}
	}
	return ""
}

// endBelow ends what depends on a task: again and again, until nothing changes.
func (s *shadow) endBelow(run *shadowRun, of string, as task.State) {
	name, _, _ := strings.Cut(of, ":")
	below := map[string]bool{of: true}
	for grown := true; grown; {
		grown = false
		for id, u := range run.units {
			for _, d := range u.Deps {
				if below[runTaskID(name, d)] && !below[id] {
					below[id], grown = true, true
					if _, over := s.ended[id]; !over {
						s.ended[id] = as
					}
				}
			}
		}
	}
}

// endAll ends every unit that has not ended; those that are out only if it says so.
func (s *shadow) endAll(run *shadowRun, as task.State, out bool) {
	for id := range run.units {
		if _, sent := s.out[id]; sent {
			if !out {
				continue
			}
			delete(s.out, id)
		}
		if _, over := s.ended[id]; !over {
			s.ended[id] = as
		}
	}
}
