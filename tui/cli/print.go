package cli

// How the program speaks to a person:
//
//   - What a program could read goes to stdout, words go to stderr.
//   - An error is one line, `apollo11: what failed: which thing: why`, lower case,
//     no full stop; several faults are several such lines.
//   - If there is something to do about it, one line follows, `hint: …`, that can
//     be typed as it stands or says what to look at.
//   - A command that did what it was asked says so in one line, in the past tense,
//     with the number and the thing. It doesn't cheer or apologise.
//   - What a warning warns of has happened already: `warning: …`; it never asks.
//   - Nothing that others wrote (units, executors, people) reaches the terminal
//     without task.Printable.
//   - Colour repeats what the words say; without it nothing is lost.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"apollo11/engine/task"
)

// Code is the exit code of the program.
type Code int

// The exit codes. They are documented and append-only.
const (
	Done        Code = iota // it is done
	Failed                  // the work failed, was refused by a rule, or is not there
	Usage                   // the command or the configuration is wrong
	Unreachable             // no controller answers
	Damaged                 // journal lost or damaged
	Refused                 // not authorised
	InUse                   // folder or port in use
)

// ExitError ends the program with a code.
type ExitError struct {
	Code Code
	Err  error  // nil: all has been said
	Hint string // what can be typed, or looked at; empty: nothing
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns the cause.
func (e *ExitError) Unwrap() error { return e.Err }

// usage is an error in what was typed.
func usage(hint, format string, args ...any) error {
	return &ExitError{Code: Usage, Err: fmt.Errorf(format, args...), Hint: hint}
}

// PrintError says an error in the program's voice and returns its exit code.
func PrintError(w io.Writer, err error, color bool) Code {
	if err == nil || quiet(err) {
		return Done
	}
	exit := &ExitError{Code: Failed, Err: err}
	errors.As(err, &exit)
	if exit.Err == nil {
		return exit.Code
	}
	p := palette{on: color}
	for line := range strings.SplitSeq(strings.TrimSpace(err.Error()), "\n") {
		fmt.Fprintf(w, "%s %s\n", p.paint(red, "apollo11:"), task.Printable(line))
	}
	if exit.Hint != "" {
		fmt.Fprintf(w, "%s %s\n", p.paint(dim, "hint:"), task.Printable(exit.Hint))
	}
	return exit.Code
}

// stdout marks the errors of writing to standard output, which are another
// matter than those of a connection.
type stdout struct{ w io.Writer }

// Write implements io.Writer.
func (s stdout) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	if err != nil {
		err = &outputError{err}
	}
	return n, err
}

type outputError struct{ err error }

func (e *outputError) Error() string { return "standard output: " + bare(e.err).Error() }
func (e *outputError) Unwrap() error { return e.err }

// quiet reports whether an error is only that nobody listens any more: the
// reader of a pipe has seen enough.
func quiet(err error) bool {
	output := (*outputError)(nil)
	return errors.As(err, &output) && (errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe))
}

// say tells a person what was done.
func (a *app) say(format string, args ...any) {
	fmt.Fprintln(a.Stderr, task.Printable(fmt.Sprintf(format, args...)))
}

func (a *app) warn(format string, args ...any) { a.say("warning: "+format, args...) }

// style is a colour of the terminal's own set, so that it fits any theme.
type style string

const (
	plain  style = ""
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	cyan   style = "36"
	dim    style = "2"
)

// palette colours text, or leaves it.
type palette struct{ on bool }

func (p palette) paint(s style, text string) string {
	if !p.on || s == plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// stateStyle is how states of tasks and executors look.
func stateStyle(state string) style {
	switch state {
	case "dead", "offline", "failed":
		return red
	case "succeeded", "idle":
		return green
	case "retrying", "cancelled", "aborted", "draining", "needs_person":
		return yellow
	case "running", "assigned":
		return cyan
	case "skipped", "scheduled", "blocked", "waiting":
		return dim
	}
	return plain
}

// moment is a time as a table shows it: as short as now allows.
func moment(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	t = t.In(now.Location())
	switch {
	case t.Format(time.DateOnly) == now.Format(time.DateOnly):
		return t.Format(time.TimeOnly)
	case t.Year() == now.Year():
		return t.Format("Jan _2 15:04")
	}
	return t.Format(time.DateOnly)
}

// span is a duration with two units at most: 12ms, 3.4s, 2m5s, 3h20m, 4d2h.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0:
		return "-" + span(-d)
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
}

// stopped reports whether a person ended it, by ctrl+c.
func stopped(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() != nil
}

// nearestOr is the word of a list that was meant, or the whole list.
func nearestOr(word string, list []string) string {
	if best := task.Nearest(word, list); best != "" {
		return best
	}
	return strings.Join(list, ",")
}
