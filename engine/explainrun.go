package engine

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// explainRun says why a run stands where it does.
func (m *machine) explainRun(r *run) *view.Explanation {
	x := &runExplainer{m: m, r: r}
	x.ID, x.State = r.id, r.state.String()
	x.Lines, x.Hints = []string{}, []string{}
	x.origin()
	switch {
	case r.state == runWaiting:
		x.say("it waits: %s", said(r.why))
	case r.state == runRunning:
		x.running()
	default:
		x.ended()
	}
	for _, note := range r.notes {
		x.say("%s", said(note))
	}
	return &x.Explanation
}

// runExplainer is an explanation of a run while it is made.
type runExplainer struct {
	m *machine
	r *run
	view.Explanation
}

func (x *runExplainer) say(format string, args ...any) {
	x.Lines = append(x.Lines, fmt.Sprintf(format, args...))
}

func (x *runExplainer) hint(format string, args ...any) {
	x.Hints = append(x.Hints, "apollo11 "+fmt.Sprintf(format, args...))
}

// origin is what the run is.
func (x *runExplainer) origin() {
	o := &x.r.origin
	text := fmt.Sprintf("run of mission %s, started by %s", x.r.spec.mission.Name, said(o.Cause))
	if o.By != "" {
		text = fmt.Sprintf("run of mission %s, started by %s", x.r.spec.mission.Name, said(o.By))
	}
	switch o.Mode {
	case modeResume:
		text += fmt.Sprintf("; it goes on from %s: what succeeded there with the same inputs is not run again", o.Parent)
	case modeRerun:
		text += fmt.Sprintf("; it runs %s again with the very same inputs", o.Parent)
	case modeFork:
		text += fmt.Sprintf("; it changes the inputs of %s and what depends on it, the rest is taken from %s", o.From, o.Parent)
	case modeRollback:
		text += fmt.Sprintf("; it undoes what %s did, the latest first", o.Parent)
	}
	if o.Sample > 0 {
		text += fmt.Sprintf("; a try on a sample of %d: changes of the state are thrown away", o.Sample)
	}
	x.say("%s", text)
}

// running is what the run waits for.
func (x *runExplainer) running() {
	if x.r.flow.stopping {
		x.say("%s: nothing new starts, what runs is waited for", said(x.r.why))
	}
	n := 0
	for u, i := range x.r.flow.units {
		t := x.m.at(i)
		if t.state.Terminal() || t.state == task.Blocked {
			continue
		}
		if n++; n <= 10 {
			x.say("unit %s is %s, since %s", x.r.spec.mission.Units[u].Name, t.state, roughly(time.Duration(max(0, x.m.now.wall-t.entered))))
			x.hint("explain %s", x.m.id(i))
		}
	}
	if n > 10 {
		x.say("and %d more units", n-10)
	}
	if blocked := x.r.flow.counts[task.Blocked]; blocked > 0 {
		x.say("%s for those before", task.Plural(int(blocked), "unit")+" "+waitWaits(int(blocked)))
	}
}

func waitWaits(n int) string {
	if n == 1 {
		return "waits"
	}
	return "wait"
}

// ended is what it came to, and what a person can do.
func (x *runExplainer) ended() {
	text := x.State
	if why := strings.TrimPrefix(strings.TrimPrefix(x.r.why, x.State), ": "); why != "" {
		text += ": " + said(why)
	}
	x.say("%s, %s", text, longAgo(time.Duration(x.m.now.wall-x.r.times.finished)))
	n := 0
	for _, i := range x.r.flow.units {
		t := x.m.at(i)
		if t.state != task.Dead && t.state != task.Cancelled {
			continue
		}
		if n++; n <= 5 {
			class, words := x.m.lastError(i)
			x.say("unit %s is %s: %s", x.r.unit(t).Name, t.state, said(classText(class, words)))
			x.hint("explain %s", x.m.id(i))
		}
	}
	switch {
	case x.r.child != "":
		x.say("run %s goes on from it", x.r.child)
		x.hint("explain %s", x.r.child)
	case x.r.state != runSucceeded:
		x.hint("resume %s", x.r.id)
	}
}

// blocked is a unit that waits for others of its run.
func (x *explainer) blocked() {
	r := x.m.runOfTask(x.i)
	if r == nil {
		x.say("it waits for other tasks")
		return
	}
	if r.state == runWaiting {
		x.say("its run %s waits: %s", r.id, said(r.why))
		x.hint("explain %s", r.id)
		return
	}
	var open []string
	for u, i := range r.flow.units {
		if x.m.succeeded(i) || len(open) == 10 {
			continue
		}
		for _, next := range r.next(u) {
			if uint32(next) == x.t.unit {
				open = append(open, fmt.Sprintf("%s (%s)", r.spec.mission.Units[u].Name, x.m.at(i).state))
				x.hint("explain %s", x.m.id(i))
			}
		}
	}
	x.say("it waits for %s of its run %s", strings.Join(open, ", "), r.id)
}

// run is what a task's run has to do with it.
func (x *explainer) run() {
	r := x.m.runOfTask(x.i)
	if r == nil {
		return
	}
	unit := r.unit(x.t)
	x.say("it is unit %s of run %s of mission %s (%s)", unit.Name, r.id, r.spec.mission.Name, r.state)
	if x.m.optional(r, x.t) {
		x.say("nothing waits for it: the mission can do without")
	}
	for _, note := range r.notes {
		if strings.HasPrefix(note, unit.Name+" ") || strings.HasPrefix(note, unit.Name+":") {
			x.say("%s", said(note))
		}
	}
	if x.t.state != task.Blocked {
		x.hint("show %s", r.id)
	}
}

// classText is a class with what was said, which may begin with it.
func classText(class task.Class, words string) string {
	if strings.HasPrefix(words, class.String()) || words == "" {
		return cmp.Or(words, class.String())
	}
	return class.String() + ": " + words
}
