package unit

import (
	"context"
	"fmt"
	"os"
	"syscall"
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
	// pipeGrace is how long a pipe may stay open once no process of ours is left.
	pipeGrace = time.Second
)

// step runs one step to its end, and everything it started.
func (a *attempt) step(ctx context.Context, argv []string, limit time.Duration) ending {
	began := a.Now()
	p, err := a.start(argv)
	if err != nil {
		return ending{why: notStarted, err: err, exit: -1}
	}
	defer p.close()
	why := a.watch(ctx, p, limit)
	state, left := p.finish()
	a.drain(p)
	e := ending{why: why, exit: -1, lastLine: p.lastLine, left: left, took: a.Now().Sub(began)}
	e.readState(state)
	if e.why == exitedWell && e.exit != 0 {
		e.why = exitedBadly
	}
	return e
}

func (e *ending) readState(state *os.ProcessState) {
	if state == nil {
		return // somebody else has waited for it: neither is known
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.signal = signalName(status.Signal())
		return
	}
	e.exit = state.ExitCode()
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
	return start(program, expanded, a.env, a.folder())
}

// watch returns when the step's own process has ended, by itself or because it
// was made to: TERM to its group, and KILL after the grace.
func (a *attempt) watch(ctx context.Context, p *process, limit time.Duration) (why reason) {
	tooLate := time.NewTimer(limit)
	defer tooLate.Stop()
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	atStart := hostProcesses()
	var graceOver <-chan time.Time
	chunks, timeUp, stop := p.chunks, tooLate.C, ctx.Done()
	end := func(because reason) {
		why, timeUp, stop = because, nil, nil
		p.terminate()
		graceOver = time.After(a.Manifest.Grace)
	}
	for {
		select {
		case <-p.exited:
			return why
		case chunk, open := <-chunks:
			if !open {
				chunks = nil
			}
			a.printed.add(chunk)
		case <-timeUp:
			end(tooLong)
		case <-stop:
			end(stopped)
		case <-graceOver:
			p.kill()
		case <-ticks.C:
			a.printed.flush()
			a.progress.poll(false)
			if timeUp != nil && a.forksTooMuch(p, atStart) {
				end(tooMany)
				p.kill()
			}
		}
	}
}

// forksTooMuch counts the unit's processes, but only when the host has that
// many more than before: a count of all reads all of /proc.
func (a *attempt) forksTooMuch(p *process, atStart int) bool {
	return hostProcesses()-atStart > mostProcesses && len(descendants(p.strangers)) > mostProcesses
}

// drain takes what is still in the pipes.
func (a *attempt) drain(p *process) {
	over := time.NewTimer(pipeGrace)
	defer over.Stop()
	for {
		select {
		case chunk, open := <-p.chunks:
			if !open {
				a.printed.flush()
				return
			}
			a.printed.add(chunk)
		case <-over.C:
			p.abandon()
		}
	}
}
