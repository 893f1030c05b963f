package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

// watcher is a command that starts a run and, if asked to, tells what happens
// until it has ended.
type watcher struct {
	app     *app
	client  *wire.Client
	command string // for messages
	wait    bool
	play    replay
	bar     *Progress
	result  *view.RunDetail // of a run that is over; nil: nobody waited for it
}

// watcher gets ready before the run starts, so that it misses none of it.
func (a *app) watcher(ctx context.Context, c *wire.Client, command string, wait bool) (*watcher, error) {
	w := &watcher{app: a, client: c, command: command, wait: wait, play: replay{app: a, w: a.Stderr}}
	if !wait {
		return w, nil
	}
	s, err := c.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", command, err)
	}
	w.play.query.From = s.Seq + 1
	return w, nil
}

// started prints the run; the timeline goes to stderr, so that the id alone is
// what a script gets.
func (w *watcher) started(ctx context.Context, run *view.Run) error {
	if run.Warning != "" {
		w.app.warn("%s: %s", run.ID, clean(run.Warning))
	}
	a := w.app
	if !w.wait {
		if err := a.printRunID(run); err != nil || a.json {
			return err
		}
		return w.notes(ctx, run)
	}
	if !a.json {
		if err := a.printRunID(run); err != nil {
			return err
		}
	}
	d, err := w.watch(ctx, run)
	if w.bar.Clear(); stopped(ctx, err) {
		return &ExitError{Code: Failed, Err: fmt.Errorf("%s: interrupted; %s goes on", w.command, run.ID), Hint: "apollo11 cancel " + run.ID}
	}
	if err != nil {
		return fmt.Errorf("%s: waiting for %s: %w", w.command, run.ID, err)
	}
	w.result = d
	return w.ended(d)
}

// notes says what a person should know of a run that goes on from another.
func (w *watcher) notes(ctx context.Context, run *view.Run) error {
	if run.Parent == "" {
		return nil
	}
	d, err := w.client.Run(ctx, run.ID, "")
	if err != nil {
		return fmt.Errorf("%s: %s: %w", w.command, run.ID, err)
	}
	for _, note := range d.Notes {
		w.app.say("%s: %s", run.ID, note)
	}
	w.app.say("hint: when it has ended: apollo11 diff %s", run.ID)
	return nil
}

// settled reports whether a run goes on only if somebody does something.
func settled(state string) bool { return state != "waiting" && state != "running" }

// watch tells what happens until the run is over. Its state is asked for before
// the events, so that those up to its end are among them.
func (w *watcher) watch(ctx context.Context, run *view.Run) (*view.RunDetail, error) {
	w.play.query.Run = run.ID
	w.bar = w.app.progress("ended", int(run.Units))
	for {
		d, err := w.client.Run(ctx, run.ID, "")
		if err != nil {
			return nil, err
		}
		if err := w.events(ctx); err != nil {
			return nil, err
		}
		if settled(d.State) {
			return wholeRun(ctx, w.client, run.ID)
		}
		w.bar.Show(int(d.Done))
		if err := w.app.pause(ctx, pollEvery); err != nil {
			return nil, err
		}
	}
}

// events prints what is new.
func (w *watcher) events(ctx context.Context) error {
	for {
		page, err := w.client.Timeline(ctx, w.play.query)
		if err != nil {
			return err
		}
		if len(page.Events) > 0 && !w.app.json {
			w.bar.Clear()
			if _, err := w.play.print(page.Events); err != nil {
				return err
			}
		}
		if page.More && page.Next <= w.play.query.From {
			return errors.New("the timeline's page never ends")
		}
		w.play.query.From = max(w.play.query.From, page.Next)
		if !page.More {
			return nil
		}
	}
}

// ended says how the run ended; the error is the exit code.
func (w *watcher) ended(d *view.RunDetail) error {
	a := w.app
	if a.json {
		if err := a.object(&d.Run); err != nil {
			return err
		}
	}
	for _, line := range failedUnits(d.Units) {
		a.say("%s", line)
	}
	said := fmt.Sprintf("%s %s: %s", d.ID, d.State, unitsText(&d.Run))
	if took := a.runTook(&d.Run); took != "" {
		said += ", in " + took
	}
	switch d.State {
	case task.Succeeded.String():
		a.say("%s", said)
		return nil
	case "needs_person":
		return &ExitError{Code: Failed, Err: fmt.Errorf("%s: %s waits for a person: %s", w.command, d.ID, d.Why), Hint: "apollo11 explain " + d.ID}
	}
	if d.Why != "" {
		said += ": " + once(d.Why)
	}
	return &ExitError{
		Code: Failed, Err: fmt.Errorf("%s: %s", w.command, said),
		Hint: fmt.Sprintf("look: apollo11 show %s; when the cause is gone: apollo11 resume %s", d.ID, d.ID),
	}
}

// failedUnits has a line for each unit that failed, the first ones.
func failedUnits(units []view.RunUnit) (lines []string) {
	failed := slices.DeleteFunc(slices.Clone(units), func(u view.RunUnit) bool { return u.State != task.Dead.String() })
	for i := range failed {
		if i == maxFaults {
			return append(lines, fmt.Sprintf("and %s more", task.Plural(len(failed)-i, "dead unit")))
		}
		lines = append(lines, failed[i].Unit+": "+unitOutcome(&failed[i]))
	}
	return lines
}
