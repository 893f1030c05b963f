package unit

import (
	"context"
	"fmt"
	"time"
)

// reason is why a step is over.
type reason uint8

const (
	exitedWell reason = iota
	exitedBadly
	notStarted
	tooLong
	stopped
	tooMany // processes
)

// ending is how a step went.
type ending struct {
	why      reason
	err      error // why it did not start
	exit     int   // -1: it did not exit by itself
	signal   string
	lastLine string // of what it printed to stderr
	left     int    // processes that could not be ended
	took     time.Duration
}

// describe says it in a sentence.
func (e ending) describe(step string, limit time.Duration) string {
	var text string
	switch e.why {
	case notStarted:
		return fmt.Sprintf("%s could not start: %v", step, e.err)
	case tooLong:
		text = fmt.Sprintf("%s took longer than %v and was ended", step, limit)
	case stopped:
		text = step + " was stopped on request"
	case tooMany:
		text = fmt.Sprintf("%s ran more than %d processes and was ended", step, mostProcesses)
	case exitedBadly:
		text = fmt.Sprintf("%s ended with exit code %d", step, e.exit)
		if e.signal != "" {
			text = fmt.Sprintf("%s was ended by %s", step, e.signal)
		}
	case exitedWell:
		text = step + " succeeded"
	}
	if e.lastLine != "" {
		text += ": " + e.lastLine
	}
	if e.left > 0 {
		text += fmt.Sprintf(" (%d of its processes could not be ended)", e.left)
	}
	return text
}

const (
	// tick is how often held output is handed on and progress is looked for.
	tick = 100 * time.Millisecond
	// mostProcesses ends a unit that forks without end.
	mostProcesses = 1000
)

// step runs one step to its end, and everything it started.
func (a *attempt) step(ctx context.Context, argv []string, limit time.Duration) ending {
	began := a.Now()
	p, err := a.start(argv)
	if err != nil {
		return ending{why: notStarted, err: err, exit: -1}
	}
	var last tail
	take := func(stderr bool, chunk []byte) {
		a.printed.add(chunk)
		if stderr {
			last.add(chunk)
		}
	}
	w := watch{attempt: a, p: p, limit: began.Add(limit), looked: began}
	for !p.next(w.pause(), take) {
		w.look(ctx)
	}
	e := ending{why: w.why}
	e.exit, e.signal, e.left = p.finish(take)
	a.printed.flush()
	e.lastLine, e.took = last.line(), a.Now().Sub(began)
	if e.why == exitedWell && e.exit != 0 {
		e.why = exitedBadly
	}
	return e
}

func (a *attempt) start(argv []string) (*process, error) {
	lookup := func(name string) string { return valueOf(a.env, name) }
	expanded := make([]string, len(argv))
	for i, arg := range argv {
		expanded[i] = arg
		if a.Manifest.Engine == Exec {
			expanded[i] = expand(arg, lookup)
		}
	}
	program, err := a.Manifest.program(expanded[0], lookup("PATH"))
	if err != nil {
		return nil, err
	}
	return start(program, expanded, a.env, a.desk.folder)
}

// watch ends a step's process that does not end by itself.
type watch struct {
	*attempt
	p      *process
	why    reason    // exitedWell until it is made to end
	now    time.Time // of the last look
	limit  time.Time // TERM then, zero once that is done
	killAt time.Time // KILL then; zero: not yet decided
	looked time.Time // when the slow things were looked at
}

// pause is how long nothing needs a look.
func (w *watch) pause() time.Duration {
	until := w.looked.Add(tick)
	for _, at := range []time.Time{w.limit, w.killAt} {
		if !at.IsZero() && at.Before(until) {
			until = at
		}
	}
	return until.Sub(w.Now())
}

func (w *watch) look(ctx context.Context) {
	w.now = w.Now()
	switch {
	case w.why == exitedWell && ctx.Err() != nil:
		w.end(stopped, w.Manifest.Grace)
	case w.why == exitedWell && !w.now.Before(w.limit):
		w.end(tooLong, w.Manifest.Grace)
	case !w.killAt.IsZero() && !w.now.Before(w.killAt):
		w.p.kill()
		w.killAt = w.now.Add(tick) // once more, should it have forked meanwhile
	}
	if w.now.Sub(w.looked) < tick {
		return
	}
	w.looked = w.now
	w.printed.flush()
	w.progress.poll(false)
	if w.why == exitedWell && w.forksTooMuch(w.p) {
		w.end(tooMany, 0)
	}
}

// end tells the process's group to end; what has not done so after the grace is killed.
func (w *watch) end(why reason, grace time.Duration) {
	w.why, w.limit, w.killAt = why, time.Time{}, w.now.Add(grace)
	w.p.terminate()
}

// forksTooMuch counts the unit's processes, but only when the host has that
// many more than it once had without them: a count of all reads all of /proc.
func (a *attempt) forksTooMuch(p *process) bool {
	host := hostProcesses()
	if host-a.Work.quiet <= mostProcesses {
		return false
	}
	count := len(descendants(p.strangers))
	a.Work.quiet = host - count
	return count > mostProcesses
}
