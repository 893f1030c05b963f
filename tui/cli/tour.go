package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

// Tour is the demo's part of the program: it gives a fresh controller the bundled
// mission weather, waits for its end, and shows what happened.
type Tour struct {
	Addr string // of the controller
	Pace string // seconds that a unit takes, so that a person can watch; empty: none
}

// The mission of the demo, the unit of it that fails, and what puts that right.
const (
	tourMission = "weather"
	tourUnit    = "archive"
	tourInput   = "year"
	tourValue   = "2014"
)

// guide is a tour on its way.
type guide struct {
	*app
	client *wire.Client
}

// Tour runs the demo: a run with a dead letter, and a fork that goes through.
func (p *Program) Tour(ctx context.Context, t Tour) error {
	g, done, err := p.guide(ctx, t)
	if err != nil {
		return err
	}
	defer done()
	return g.failure(g.show(ctx, t))
}

// Watched is the demo for the console: the same mission, at a pace that a person
// can follow. It returns when the run has started; the dead letter is the person's.
func (p *Program) Watched(ctx context.Context, t Tour) error {
	g, done, err := p.guide(ctx, t)
	if err != nil {
		return err
	}
	defer done()
	_, err = g.start(ctx, t)
	return err
}

func (p *Program) guide(ctx context.Context, t Tour) (g guide, done func(), err error) {
	a := p.app
	c, err := wire.Dial(ctx, t.Addr, wire.ClientOptions{Actor: a.Actor, Build: a.Build})
	if err != nil {
		return g, nil, err
	}
	return guide{a, c}, func() { c.Close() }, nil
}

// start starts the mission once there are executors that offer its units.
func (g guide) start(ctx context.Context, t Tour) (*view.Run, error) {
	if err := g.offered(ctx); err != nil {
		return nil, err
	}
	s := wire.Start{Mission: tourMission}
	if t.Pace != "" {
		s.Params = task.Values{{Name: "pace", Value: t.Pace}}
	}
	return g.client.Start(ctx, s)
}

// offered waits for two executors, so that a person sees two at work; one is
// enough after a while.
func (g guide) offered(ctx context.Context) error {
	const wanted, enough = 2, 100 // executors, looks
	for looks := 0; ; looks++ {
		list, err := g.client.Executors(ctx)
		if err != nil {
			return err
		}
		ready := 0
		for i := range list {
			if slices.Contains(view.Names(list[i].Types), "file_report") {
				ready++
			}
		}
		if ready >= wanted || ready > 0 && looks > enough {
			return nil
		}
		if err := g.pause(ctx, pollEvery); err != nil {
			return err
		}
	}
}

// show is the whole tour.
func (g guide) show(ctx context.Context, t Tour) error {
	first, err := g.follow(ctx, func() (*view.Run, error) { return g.start(ctx, t) }, "the weather of Seattle, four years side by side")
	if err != nil {
		return err
	}
	fmt.Fprintln(g.out)
	if err := g.draw(first.Units); err != nil {
		return err
	}
	before, err := g.answer(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(g.out, "\n%s", before)
	if err := g.deadLetter(first); err != nil {
		return err
	}
	return g.repair(ctx, first, before)
}

// follow starts a run and prints its timeline until it has ended.
func (g guide) follow(ctx context.Context, start func() (*view.Run, error), what string) (*view.RunDetail, error) {
	w, err := g.watcher(ctx, g.client, "demo", true)
	if err != nil {
		return nil, err
	}
	w.play.w = g.out
	run, err := start()
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(g.out, "%s: %s, %s: %s\n", clean(run.ID), clean(run.Mission), task.Plural(run.Units, "unit"), what)
	d, err := w.watch(ctx, run)
	if w.bar.Clear(); err != nil {
		return nil, err
	}
	return d, w.play.summary()
}

// deadLetter names what waits for a person, and what can be typed.
func (g guide) deadLetter(d *view.RunDetail) error {
	dead := slices.DeleteFunc(slices.Clone(d.Units), func(u view.RunUnit) bool { return u.State != task.Dead.String() })
	if len(dead) != 1 || dead[0].Unit != tourUnit {
		return &ExitError{Code: Failed, Err: fmt.Errorf("demo: want one dead letter, %s; there are %d: %s", tourUnit, len(dead), strings.Join(failedUnits(d.Units), "; "))}
	}
	u := &dead[0]
	fmt.Fprintf(g.out, "dead letter: %s %s: %s\n", clean(u.Task), clean(u.Type), clean(failText(u.ErrorClass, u.Error)))
	fmt.Fprintln(g.out, "what to type then, with a controller that goes on (this one ends with the demo):")
	for _, typed := range []string{"explain " + u.Task, "logs " + u.Task, "resume " + d.ID, forkTyped(d.ID)} {
		fmt.Fprintf(g.out, "  apollo11 %s\n", clean(typed))
	}
	return nil
}

func forkTyped(run string) string {
	return fmt.Sprintf("fork %s --from %s --with %s=%s", run, tourUnit, tourInput, tourValue)
}

// repair forks the run with a year that the archive takes, and shows that this
// is all that changed.
func (g guide) repair(ctx context.Context, first *view.RunDetail, before string) error {
	fmt.Fprintf(g.out, "\nput right: apollo11 %s\n", clean(forkTyped(first.ID)))
	fork, err := g.follow(ctx, func() (*view.Run, error) {
		with := task.Values{{Name: tourInput, Value: tourValue}}
		return g.client.Fork(ctx, wire.Fork{Run: first.ID, From: tourUnit, With: with})
	}, "what is the same up to "+tourUnit+" is reused")
	if err != nil {
		return err
	}
	g.changes(view.Compare(first, fork))
	after, err := g.answer(ctx)
	switch {
	case err != nil:
		return err
	case fork.State != task.Succeeded.String():
		return &ExitError{Code: Failed, Err: fmt.Errorf("demo: %s %s: %s", fork.ID, fork.State, strings.Join(failedUnits(fork.Units), "; "))}
	case after != before:
		return &ExitError{Code: Failed, Err: errors.New("demo: the fork counted twice: " + strings.TrimSpace(after))}
	}
	_, err = fmt.Fprintln(g.out, "the totals are what they were: nothing was counted twice")
	return err
}

// changes is a diff in short: only what is not the same.
func (g guide) changes(d *view.Diff) {
	fmt.Fprintf(g.out, "\nwhat is not the same in %s and %s: apollo11 diff %s\n", clean(d.A.ID), clean(d.B.ID), clean(d.B.ID))
	differ := 0
	for i := range d.Units {
		if d.Units[i].Differs() {
			differ++
			g.printContrasts(&d.Units[i])
		}
	}
	fmt.Fprintf(g.out, "\n# %s\n", clean(diffSum(d, differ, 0)))
}

// answer is what the mission found, in the global state.
func (g guide) answer(ctx context.Context) (string, error) {
	page, err := g.client.Keys(ctx, view.KeyQuery{})
	if err != nil {
		return "", err
	}
	value := map[string]string{}
	for _, k := range page.Keys {
		value[k.Key] = clean(k.Value)
	}
	return fmt.Sprintf("answer: days_total=%s rain_total=%s (tenths of a millimetre) warmest=%s next_batch=%s\n",
		value["days_total"], value["rain_total"], value["warmest"], value["next_batch"]), nil
}
