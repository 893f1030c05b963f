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
	badProgress
)

// ending is how a step went.
type ending struct {
	why      reason
	err      error // why it did not start, or what was wrong with its progress
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
	case badProgress:
		text = fmt.Sprintf("%s wrote to $APOLLO_PROGRESS what is no change, and was ended: %v", step, e.err)
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
func (a *attempt) step(ctx context.Context, s Step, limit time.Duration) ending {
	c, err := a.command(s)
	if err != nil {
		return ending{why: notStarted, err: err, exit: -1}
	}
	var last tail
	masks := [2]masker{{secrets: &a.secrets}, {secrets: &a.secrets}}
	hand := func(stderr bool, masked []byte) {
		a.printed.add(masked)
		if stderr {
			last.add(masked)
		}
	}
	e := a.drive(ctx, c, limit, func(stderr bool, chunk []byte) {
		if len(a.secrets.texts) > 0 {
			chunk = masks[pipeOf(stderr)].mask(nil, chunk)
		}
		hand(stderr, chunk)
	})
	for i := range masks {
		hand(i == 1, masks[i].rest())
	}
	a.printed.flush()
	e.lastLine = last.line()
	e.lastLine += a.box.hint(e)
	a.closeBox(e)
	return e
}

func pipeOf(stderr bool) int {
	if stderr {
		return 1
	}
	return 0
}

// drive runs one process to its end, and everything it started.
func (a *attempt) drive(ctx context.Context, c command, limit time.Duration, take func(stderr bool, chunk []byte)) ending {
	began := a.Now()
	p, err := start(c.program, c.args, c.env, a.desk.folder)
	if err != nil {
		return ending{why: notStarted, err: err, exit: -1}
	}
	w := watch{attempt: a, p: p, looked: began}
	if limit > 0 {
		w.limit = began.Add(limit)
	}
	for !p.next(w.pause(), take) {
		w.look(ctx)
	}
	e := ending{why: w.why, err: w.fault}
	e.exit, e.signal, e.left = p.finish(take)
	e.took = a.Now().Sub(began)
	if e.why == exitedWell && e.exit != 0 {
		e.why = exitedBadly
	}
	return e
}

// watch ends a step's process that does not end by itself.
type watch struct {
	*attempt
	p      *process
	why    reason    // exitedWell until it is made to end
	now    time.Time // of the last look
	fault  error     // of its progress
	limit  time.Time // TERM then; zero: never, or that is done
	killAt time.Time // KILL then; zero: not yet decided
	killed bool      // the container was told
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
	case w.why == exitedWell && !w.limit.IsZero() && !w.now.Before(w.limit):
		w.end(tooLong, w.Manifest.Grace)
	case !w.killAt.IsZero() && !w.now.Before(w.killAt):
		w.kill()
	}
	if w.now.Sub(w.looked) < tick {
		return
	}
	w.looked = w.now
	w.printed.flush()
	if w.fault = w.progress.poll(false); w.fault != nil && w.why == exitedWell {
		w.end(badProgress, w.Manifest.Grace)
	}
	if w.why == exitedWell && w.forksTooMuch(w.p) {
		w.end(tooMany, 0)
	}
}

// end tells the process's group to end; what has not done so after the grace is killed.
func (w *watch) end(why reason, grace time.Duration) {
	w.why, w.limit, w.killAt = why, time.Time{}, w.now.Add(grace)
	w.p.terminate()
}

// clientGrace is how long the client of a container may take to notice that
// its container was killed.
const clientGrace = 10 * time.Second

func (w *watch) kill() {
	if w.box.name != "" && !w.killed {
		w.killed, w.killAt = true, w.now.Add(clientGrace)
		w.box.kill(w.Manifest.found)
		return
	}
	w.p.kill()
	w.killAt = w.now.Add(tick) // once more, should it have forked meanwhile
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
