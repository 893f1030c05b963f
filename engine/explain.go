package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// explainer says in words why a task stands where it does. It only reads.
type explainer struct {
	m  *machine
	i  uint32
	t  taskAt
	id string
	view.Explanation
}

// explain answers why a task is not running, why it ran again, or why its result
// was refused.
func (m *machine) explain(id string) (*view.Explanation, error) {
	if m.find(id) == 0 && strings.HasPrefix(id, "r-") && !strings.Contains(id, ":") {
		r, err := m.lookupRun(id)
		if err != nil {
			return nil, err
		}
		return m.explainRun(r), nil
	}
	i, err := m.lookup(id, maxExamined)
	if err != nil {
		return nil, err
	}
	x := &explainer{m: m, i: i, t: m.at(i), id: m.id(i)}
	x.ID, x.State = x.id, x.t.state.String()
	x.Lines, x.Hints = []string{}, []string{}
	x.standing()
	x.run()
	x.past()
	return &x.Explanation, nil
}

func (x *explainer) say(format string, args ...any) {
	x.Lines = append(x.Lines, fmt.Sprintf(format, args...))
}

// hint adds what can be typed, once.
func (x *explainer) hint(format string, args ...any) {
	if hint := "apollo11 " + fmt.Sprintf(format, args...); !slices.Contains(x.Hints, hint) {
		x.Hints = append(x.Hints, hint)
	}
}

func (x *explainer) standing() {
	switch s := x.t.state; {
	case s == task.Scheduled:
		x.say("it waits for its time, %s", x.until(x.t.due))
		x.deadline()
		x.lasting()
	case s == task.Blocked:
		x.blocked()
	case s == task.Queued:
		x.queued()
	case s == task.Retrying:
		x.retrying()
	case s.Out():
		x.out()
	case s == task.Succeeded:
		x.say("it succeeded %s: attempt %d on executor %s, in %s", x.ago(x.t.finished), x.t.attempt, x.exec().id,
			roughly(x.m.resultOf(x.i).Timing.Total()))
	case s == task.Dead:
		x.dead()
	default:
		x.ended()
	}
}

// queued is a task that could be given out.
func (x *explainer) queued() {
	held := x.lasting()
	held = x.passing() || held
	name, before := x.m.types[x.t.typ].name, x.before()
	switch {
	case before > 0:
		x.say("%s of type %s %s before it in the queue", task.Plural(before, "task"), name, isAre(before))
	case held:
		x.say("it is the next of type %s", name)
	default:
		x.say("nothing holds it back: it is given out at once")
	}
	x.deadline()
}

// before is how many tasks of its type are given out first; it stops counting
// where a question has to end.
func (x *explainer) before() (n int) {
	for i := x.t.list[inQueue].older; i != 0 && n < maxExamined; i = x.m.at(i).list[inQueue].older {
		n++
	}
	return n
}

func (x *explainer) retrying() {
	x.say("it failed, and repeat %d of %d starts %s", x.t.tries, x.m.retries(x.i), x.until(x.t.due))
	x.deadline()
	x.lasting()
}

func (x *explainer) deadline() {
	if x.t.deadline != 0 {
		x.say("it has to start by its deadline, %s, or it expires", x.until(x.t.deadline))
	}
}

// lasting is what keeps any task of the type from being given out, until somebody
// does something about it.
func (x *explainer) lasting() (held bool) {
	before := len(x.Lines)
	t := x.m.types[x.t.typ]
	if x.m.stopping {
		x.say("the controller is stopping: nothing is given out any more")
	}
	if x.m.paused {
		x.say("everything is paused")
		x.hint("continue")
	}
	if t.paused {
		x.say("type %s is paused", t.name)
		x.hint("continue %s", t.name)
	}
	share := x.m.shareOf(x.i)
	if o := x.m.offersOf(t, share); o.all == 0 {
		text := "no executor offers type " + t.name
		if near := task.Nearest(t.name, x.m.offeredTypes()); near != "" {
			text += "; the nearest that one offers is " + near
		}
		x.say("%s", text)
		x.hint("executors")
	} else if share != "" && !x.m.seesShare(share) {
		x.say("%s", noShare(share))
		x.hint("executors")
	} else if o.connected() == 0 {
		x.say("%s", o.text())
		x.hint("executors")
	}
	if err := x.m.tooBig(t.name); err != nil {
		x.say("%v", err)
		x.hint("executors")
	}
	return len(x.Lines) > before
}

// passing is what keeps a task from being given out for now.
func (x *explainer) passing() (held bool) {
	before := len(x.Lines)
	t := x.m.types[x.t.typ]
	if limit := x.m.set.Limits[t.name]; limit > 0 && t.out >= limit {
		x.say("limits.%s is reached: %d of %d are out", t.name, t.out, limit)
		x.hint("tasks --type %s --state assigned,running", t.name)
	}
	if key, holder := x.m.keyHolder(t); holder != 0 {
		x.say("its unit is fresh, and task %s has the context key %s until it ends", x.m.id(holder), key)
		x.hint("explain %s", x.m.id(holder))
	}
	if o := x.m.offersOf(t, x.m.shareOf(x.i)); o.free == 0 && o.connected() > 0 {
		x.say("%s", o.text())
		x.short(o.full)
		x.hint("executors")
	}
	return len(x.Lines) > before
}

// keyHolder is a task that is out with a context key of a fresh type.
func (m *machine) keyHolder(t *workType) (key string, holder uint32) {
	if t.unit == nil || !t.unit.Fresh {
		return "", 0
	}
	for _, key := range t.unit.Context {
		if i := m.held[key]; i != 0 {
			return key, i
		}
	}
	return "", 0
}

// out is a task that an executor has.
func (x *explainer) out() {
	e := x.exec()
	if x.t.state == task.Running || e.proto < 2 {
		since := max(x.t.started, x.t.entered)
		x.say("executor %s runs it, since %s: attempt %d, version %s", e.id, x.span(since), x.t.attempt, x.t.version)
		x.progress(e)
		x.hint("logs %s -f", x.id)
	} else if first := e.held.oldest; first != x.i {
		x.say("it waits at executor %s behind what that one has: task %s first", e.id, x.m.id(first))
		x.hint("explain %s", x.m.id(first))
	} else {
		x.say("it was sent to executor %s %s, which has not said that it works on it: attempt %d, version %s", e.id, x.ago(x.t.started),
			x.t.attempt, x.t.version)
	}
	x.life(e)
	if left := x.m.attemptEnd(x.i) - x.m.now.mono; left > 0 {
		limit := ""
		if timeout := x.m.timeoutOf(x.i); timeout > 0 {
			limit = fmt.Sprintf("its time-out is %s; ", roughly(timeout))
		}
		x.say("%sthe controller waits %s more for a result, prepare, cleanup and the way included; then the attempt ends as timed out", limit, roughly(time.Duration(left)))
	}
}

// progress is what was heard of a running attempt.
func (x *explainer) progress(e *executor) {
	if note := e.soft.progress; note.task == x.id {
		x.say("it said %s: %s", x.ago(note.wall), note.text)
	} else {
		x.say("it has said nothing of its progress")
	}
}

// life is whether the executor that has it is alive.
func (x *explainer) life(e *executor) {
	m := x.m
	if e.soft.link == nil {
		back := time.Duration(e.soft.silent + int64(e.soft.grace) - m.now.mono)
		x.say("that executor has no connection (%s); if it is not back in %s, the task goes to another", e.soft.why, roughly(max(back, 0)))
		x.hint("executors")
		return
	}
	silence := time.Duration(m.now.mono - max(e.soft.linked, m.mono(e.soft.link.Heard())))
	if e.soft.late {
		x.say("that executor missed a heartbeat: nothing was heard of it for %s, and at %s it is lost", roughly(silence), roughly(m.lostAfter(e)))
		x.hint("executors")
	} else {
		x.say("that executor was last heard %s", longAgo(silence))
	}
	if e.draining {
		x.say("that executor is draining: it ends what it has, and goes")
	}
}

// ended is an end without a result that no failure led to.
func (x *explainer) ended() {
	r := x.m.resultOf(x.i)
	text := x.State
	if r.Error != "" {
		text = said(r.Error)
	}
	if r.By != "" {
		text += ", by " + said(r.By)
	}
	if r.Settled != "" {
		text = "it died, and " + said(r.Settled) + ": " + x.failure(x.t.class, r.Error)
	}
	if x.t.state == task.Skipped && r.Reused == "" && r.Error != "" {
		text = "skipped: " + text
	}
	x.say("%s, %s", text, x.ago(x.t.finished))
	if droppable(x.t.state) {
		x.goesOn()
	}
}

// goesOn hints at what a person can do with what has ended.
func (x *explainer) goesOn() {
	if r := x.m.runOfTask(x.i); r != nil {
		if r.state.ended() && r.child == "" {
			x.hint("resume %s", r.id)
		}
		return
	}
	x.hint("requeue %s", x.id)
	x.hint("edit %s NAME=VALUE", x.id)
	x.hint("drop %s", x.id)
}

func (x *explainer) exec() *executor { return x.m.execs[x.t.exec] }

// ago is how long ago a moment was.
func (x *explainer) ago(wall int64) string { return longAgo(time.Duration(x.m.now.wall - wall)) }

func longAgo(d time.Duration) string {
	if d < time.Millisecond {
		return "just now"
	}
	return roughly(d) + " ago"
}

func (x *explainer) span(wall int64) string {
	return roughly(time.Duration(max(0, x.m.now.wall-wall)))
}

// until is a moment to come.
func (x *explainer) until(wall int64) string {
	at := viewTime(wall).Format(time.RFC3339)
	if left := time.Duration(wall - x.m.now.raw); left > 0 {
		return "in " + roughly(left) + " (" + at + ")"
	}
	return "now (" + at + ")"
}

// roughly is a duration as people say it.
func roughly(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// said is somebody's text within a sentence.
func said(text string) string { return printableCut(strings.TrimSpace(text), 300) }

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
