package engine

import (
	"fmt"
	"slices"

	"apollo11/engine/task"
)

// classWords says what a class means, as the end of a sentence.
var classWords = map[task.Class]string{
	task.PrepareFailed: "its prepare step failed",
	task.ExecuteFailed: "the unit ran and failed",
	task.Timeout:       "it took too long",
	task.OutputInvalid: "its result was refused: it breaks the contract of outputs",
	task.InputInvalid:  "the inputs break the unit's contract",
	task.StateRejected: "its result was refused: it breaks the contract of a state key",
	task.CrashLimit:    "executors were lost under it too often",
	task.ByPerson:      "a person cancelled it",
	task.Expired:       "its deadline passed before it started",
	task.TooLarge:      "it is over a limit of size",
	task.ExecutorLost:  "its executor was lost",
	task.StaleContext:  "its result was refused: a context key changed while it ran",
}

// failure is a class in words, with what was said.
func (x *explainer) failure(class task.Class, text string) string {
	if class == task.NoClass { // its run stopped
		return said(text)
	}
	out := classWords[class] + " (" + class.String() + ")"
	if text != "" && text != classWords[class] {
		out += ": " + said(text)
	}
	return out
}

// dead is a task that waits for a person.
func (x *explainer) dead() {
	class, text := x.m.lastError(x.i)
	x.say("dead letter, %s: %s", x.ago(x.t.finished), x.failure(class, text))
	x.say("%s", x.notRepeated(class))
	x.lostFiles(class)
	if class == task.Expired && x.t.deadline != 0 {
		x.say("a requeue takes the deadline away")
	}
	switch {
	case class == task.InputInvalid && x.m.runOfTask(x.i) == nil: // a run's unit gets its inputs from the run
		x.hint("edit %s NAME=VALUE", x.id)
	case class != task.InputInvalid && x.t.sent > 0:
		x.hint("logs %s", x.id)
	}
	x.goesOn()
}

// lostFiles says which units made files that this one found missing or changed:
// a resume makes those anew.
func (x *explainer) lostFiles(class task.Class) {
	r := x.m.runOfTask(x.i)
	if r == nil || class != task.InputInvalid || r.origin.Mode == modeRollback {
		return
	}
	for _, p := range r.spec.graph.Parents(int(x.t.unit)) {
		if file := x.m.fileLost(r.flow.units[p]); file != "" {
			x.say("unit %s handed on %s: a resume runs it again", r.spec.mission.Units[p].Name, said(file))
		}
	}
}

// notRepeated is why a failure was the last one.
func (x *explainer) notRepeated(class task.Class) string {
	retries, once := x.m.retries(x.i), !x.m.idempotent(x.i)
	switch {
	case once && class != task.PrepareFailed && (class.UsesRetry() || class == task.ExecutorLost || class == task.StaleContext):
		return "its unit is idempotent = false, by its own word or by retries = 0: what may have begun is never repeated by itself"
	case class.UsesRetry() && int(x.t.tries) <= retries:
		return fmt.Sprintf("its repeats were used up; it would have %s now", task.Plural(retries, "repeat"))
	case class.UsesRetry() && retries == 0:
		return "it is not repeated by itself: retries = 0"
	case class.UsesRetry():
		return fmt.Sprintf("%s did not help; no more are allowed", task.Plural(retries, "repeat"))
	case class == task.CrashLimit:
		return "a task under which scheduler.crash_limit executors were lost is not repeated by itself"
	case class == task.StaleContext:
		return fmt.Sprintf("that happened %d times in a row; more often it is not repeated by itself", x.t.stales)
	}
	return "this kind of failure is never repeated by itself"
}

// past is what happened before: failed attempts, oldest first, and what else
// explains why it ran again.
func (x *explainer) past() {
	if spec := x.m.specOf(x.i); spec.work != "" {
		x.say("its inputs were edited after it was submitted")
	}
	history := x.m.historyOf(x.i)
	if len(history) == maxHistory {
		x.say("of its failed attempts, memory has the last %d", maxHistory)
		x.hint("replay %s", x.id)
	}
	for n, p := range history {
		if n == len(history)-1 && x.t.state == task.Dead && p.Class == x.t.class {
			p.Error = "" // it was said first
		}
		x.say("attempt %d, version %s on executor %s, %s: %s", p.Attempt, p.Version, p.Exec, x.ago(p.Finished), x.failure(p.Class, p.Error))
	}
	if n := int(x.t.sent) - int(x.t.attempt); n > 0 {
		x.say("%s came to nothing, and does not count: never arrived, called back, or its executor left in order", task.Plural(n, "dispatch"))
		x.hint("replay %s", x.id)
	}
	x.late()
}

// late is the newest result of it that was not applied.
func (x *explainer) late() {
	for n := range x.m.ledger.lines {
		line := x.m.ledger.newest(n)
		if line.Task != x.id {
			continue
		}
		effect := "nothing"
		if line.Effect != "" {
			effect = said(line.Effect)
		}
		x.say("a late result of executor %s, version %s, was dropped %s (%s); it would have brought: %s", line.Exec, line.Version,
			x.ago(line.Time), line.Reason, effect)
		x.hint("late")
		return
	}
}

// offers counts the executors that offer a type, by what keeps them from taking
// a task of it.
type offers struct {
	free, busy, between, cramped            int // connected, and would take one sooner or later
	offline, away, resting, draining, blind int
	all                                     int
	one, why                                string  // the last one, and the reason of its absence
	full                                    []*host // those of the cramped
}

// connected is how many will take a task in their turn.
func (o *offers) connected() int { return o.free + o.busy + o.between + o.cramped }

// offersOf looks at every executor that offers a type, for a task with files in a
// share.
func (m *machine) offersOf(t *workType, share string) (o offers) {
	for _, e := range m.execs[1:] {
		if e == nil {
			continue
		}
		contract, ok := e.offers.Get(t.name)
		if !ok {
			continue
		}
		o.all++
		o.one, o.why = e.id, ""
		switch {
		case e.offline:
			o.offline++
			o.why = e.reason
		case e.soft.link == nil:
			o.away++
			o.why = e.soft.why
		case contract != "" && contract != textHash(t.text):
			o.resting++
		case e.draining:
			o.draining++
		case share != "" && e.soft.share != share:
			o.blind++
		case e.soft.bucket != 0 && e.load() <= m.depth(t) && !e.soft.site.fits(t.needs()):
			o.cramped++
			if !slices.Contains(o.full, e.soft.host) {
				o.full = append(o.full, e.soft.host)
			}
		case e.soft.bucket != 0 && e.load() <= m.depth(t):
			o.free++
		case e.proto < 2 && !e.soft.ready && e.load() == 0:
			o.between++
		default:
			o.busy++
		}
	}
	return o
}

// text says why none of them takes a task.
func (o *offers) text() string {
	kinds := []struct {
		n    int
		text string
	}{
		{o.busy, "busy"}, {o.between, "between two heartbeats"}, {o.draining, "draining"}, {o.offline, "offline"}, {o.away, "without a connection"},
		{o.resting, "resting, for their contract is another"}, {o.blind, "without the share that its files are in"},
		{o.cramped, "on a host without room for it"},
	}
	list := ""
	for _, k := range kinds {
		switch {
		case k.n == 0:
		case o.all == 1 && o.why != "":
			return fmt.Sprintf("the one executor that offers it, %s, is %s: %s", o.one, k.text, o.why)
		case o.all == 1:
			return fmt.Sprintf("the one executor that offers it, %s, is %s", o.one, k.text)
		case k.n == o.all:
			return fmt.Sprintf("all %d executors that offer it are %s", o.all, k.text)
		case list != "":
			list += fmt.Sprintf(", %d %s", k.n, k.text)
		default:
			list = fmt.Sprintf("%d %s", k.n, k.text)
		}
	}
	return fmt.Sprintf("none of the %d executors that offer it can take it: %s", o.all, list)
}

// short says what some hosts lack for the task now.
func (x *explainer) short(full []*host) {
	const most = 3
	needs := x.m.types[x.t.typ].needs()
	for n, h := range full {
		if n == most {
			x.say("and so it is with %d more", len(full)-most)
			return
		}
		x.say("host %s has %s", h, needs.Lacking(h.room(), h.capacity))
	}
}

// offeredTypes is the types that a connected executor offers.
func (m *machine) offeredTypes() (names []string) {
	for _, t := range m.types[1:] {
		if t.soft.offering > 0 {
			names = append(names, t.name)
		}
	}
	return names
}
