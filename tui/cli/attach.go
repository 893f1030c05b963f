package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"apollo11/engine/view"
	"apollo11/tui"
	"apollo11/wire"
)

// Console is a screen on a controller, in its own process or not.
type Console struct {
	Addr     string   // of the controller; empty: found as any command finds it
	Token    string   // with Addr: the operators'; empty: none
	Title    string   // what is looked at
	Theme    string   // console.theme
	Log      *tui.Log // of this process; nil: none
	Embedded bool     // the controller is in this process
	ReadOnly bool
}

// Console shows the console until it is left.
func (p *Program) Console(ctx context.Context, c Console) (tui.Verdict, error) {
	a := p.app
	in, okIn := a.Stdin.(*os.File)
	out, okOut := a.Stdout.(*os.File)
	if !okIn || !okOut || !a.Terminal || !a.Ask {
		return tui.Left, usage("apollo11 status", "console: needs a terminal")
	}
	if err := a.out.Flush(); err != nil {
		return tui.Left, err
	}
	dial := a.dialAs
	if c.Addr != "" {
		dial = func(ctx context.Context, quiet bool) (*wire.Client, error) {
			return wire.Dial(ctx, c.Addr, wire.ClientOptions{Token: c.Token, Actor: a.Actor, Build: a.Build, Quiet: quiet})
		}
	}
	source := newConsoleSource(dial, a.Now)
	defer source.close()
	return tui.Run(ctx, tui.Options{
		Source: source, Input: in, Output: out, Now: a.Now, Log: c.Log, Title: c.Title, Theme: c.Theme,
		NoColor: !a.Color || a.noColor, ASCII: a.ASCII, ReadOnly: c.ReadOnly, Embedded: c.Embedded,
		Describe: func(e *view.Event) (string, bool) {
			text, tone := describe(e, a.Now().Location())
			return text, tone == red
		},
	})
}

// AttachCommand is the console on a running controller; leaving it stops nothing.
func (p *Program) AttachCommand() *cobra.Command {
	var readOnly bool
	cmd := &cobra.Command{
		Use: "attach", Short: "the console on a running controller; leaving it stops nothing", Args: words(0, 0), GroupID: groupLook,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.attach(cmd.Context(), readOnly) },
	}
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "only watch")
	return cmd
}

func (p *Program) attach(ctx context.Context, readOnly bool) error {
	a := p.app
	c, err := a.dial(ctx) // says what is wrong while there is no screen yet
	if err != nil {
		return err
	}
	c.Close()
	at, err := a.find()
	if err != nil {
		return err
	}
	settings, err := a.settings()
	if err != nil && a.addr == "" {
		return err
	}
	_, err = p.Console(ctx, Console{Title: at.addr, Theme: settings.Theme, ReadOnly: readOnly})
	if errors.Is(err, tui.ErrScreen) {
		return &ExitError{Code: Failed, Err: fmt.Errorf("attach: %w", err)}
	}
	return err
}

// consoleSource is a tui.Source over the wire: one connection for what is read,
// one for what is changed, so that a bulk command holds up no screen. A
// connection that breaks is dialled anew by the next call. What is read again
// and again is kept out of the controller's log of every message.
type consoleSource struct {
	reads, acts link
	now         func() time.Time

	mu   sync.Mutex // the rate, between overviews
	rate rate
}

func newConsoleSource(dial dialer, now func() time.Time) *consoleSource {
	as := func(quiet bool) func(context.Context) (*wire.Client, error) {
		return func(ctx context.Context) (*wire.Client, error) { return dial(ctx, quiet) }
	}
	return &consoleSource{reads: newLink(as(true)), acts: newLink(as(false)), now: now}
}

// dialer makes a connection; quiet: what it reads is not to be logged.
type dialer func(ctx context.Context, quiet bool) (*wire.Client, error)

func (s *consoleSource) close() {
	s.reads.close()
	s.acts.close()
}

// link is a connection that comes back.
type link struct {
	dial func(context.Context) (*wire.Client, error)
	turn chan struct{} // holds one value while nobody dials or drops
	c    *wire.Client  // under turn
}

func newLink(dial func(context.Context) (*wire.Client, error)) link {
	l := link{dial: dial, turn: make(chan struct{}, 1)}
	l.turn <- struct{}{}
	return l
}

// client is the connection, made if there is none.
func (l *link) client(ctx context.Context) (c *wire.Client, err error) {
	select {
	case <-l.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { l.turn <- struct{}{} }()
	if l.c == nil {
		l.c, err = l.dial(ctx)
	}
	return l.c, err
}

// drop gives a connection up that failed, unless that was done already.
func (l *link) drop(c *wire.Client) {
	<-l.turn
	defer func() { l.turn <- struct{}{} }()
	c.Close()
	if l.c == c {
		l.c = nil
	}
}

func (l *link) close() {
	<-l.turn
	defer func() { l.turn <- struct{}{} }()
	if l.c != nil {
		l.c.Close()
		l.c = nil
	}
}

// over asks over a link. Whatever is not the controller's own refusal is the
// connection's fault.
func over[T any](ctx context.Context, l *link, ask func(*wire.Client) (T, error)) (T, error) {
	var none T
	c, err := l.client(ctx)
	if err != nil {
		return none, err
	}
	answer, err := ask(c)
	var said *wire.Error
	if err != nil && (!errors.As(err, &said) || said.Fatal) {
		l.drop(c)
	}
	return answer, err
}

// Overview implements tui.Source.
func (s *consoleSource) Overview(ctx context.Context) (*view.Overview, error) {
	return over(ctx, &s.reads, func(c *wire.Client) (*view.Overview, error) {
		status, err := c.Status(ctx)
		if err != nil {
			return nil, err
		}
		o := &view.Overview{Status: *status}
		if o.Executors, err = c.Executors(ctx); err != nil {
			return nil, err
		}
		if o.Queues, err = c.Queues(ctx); err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		o.PerSecond = s.rate.add(o.Executors, s.now())
		return o, nil
	})
}

// Tasks implements tui.Source.
func (s *consoleSource) Tasks(ctx context.Context, q view.Query) (*view.Page, error) {
	return over(ctx, &s.reads, func(c *wire.Client) (*view.Page, error) { return c.Tasks(ctx, q) })
}

// Task implements tui.Source.
func (s *consoleSource) Task(ctx context.Context, id string) (*view.Detail, error) {
	return over(ctx, &s.reads, func(c *wire.Client) (*view.Detail, error) { return c.Task(ctx, id) })
}

// Explain implements tui.Source.
func (s *consoleSource) Explain(ctx context.Context, id string) (*view.Explanation, error) {
	return over(ctx, &s.reads, func(c *wire.Client) (*view.Explanation, error) { return c.Explain(ctx, id) })
}

// Keys implements tui.Source.
func (s *consoleSource) Keys(ctx context.Context, q view.KeyQuery) (*view.KeyPage, error) {
	return over(ctx, &s.reads, func(c *wire.Client) (*view.KeyPage, error) { return c.Keys(ctx, q) })
}

// Timeline implements tui.Source.
func (s *consoleSource) Timeline(ctx context.Context, q view.EventQuery) (*view.EventPage, error) {
	return over(ctx, &s.reads, func(c *wire.Client) (*view.EventPage, error) { return c.Timeline(ctx, q) })
}

// Do implements tui.Source.
func (s *consoleSource) Do(ctx context.Context, act tui.Action) (*view.Changed, error) {
	return over(ctx, &s.acts, func(c *wire.Client) (*view.Changed, error) {
		switch act.Verb {
		case tui.Requeue:
			return c.Requeue(ctx, act.Tasks)
		case tui.Cancel:
			return c.Cancel(ctx, act.Tasks, act.Reason)
		case tui.Drop:
			return c.Drop(ctx, act.Tasks, act.Reason)
		case tui.Edit:
			if len(act.Tasks.IDs) != 1 {
				return nil, fmt.Errorf("%d tasks to edit, want one", len(act.Tasks.IDs))
			}
			_, err := c.Edit(ctx, wire.Edit{ID: act.Tasks.IDs[0], Set: act.Set, Unset: act.Unset})
			return nil, err
		case tui.Pause, tui.Continue:
			return nil, c.Pause(ctx, act.Name, act.Verb == tui.Pause)
		case tui.Drain:
			return nil, c.Drain(ctx, act.Name)
		case tui.DebugOn, tui.DebugOff:
			return nil, c.Debug(ctx, act.Verb == tui.DebugOn)
		}
		return nil, fmt.Errorf("the console can't %s over the wire", act.Verb)
	})
}

// Runs implements tui.Source.
func (s *consoleSource) Runs(ctx context.Context, q view.RunQuery) (*view.RunPage, error) {
	return over(ctx, &s.reads, func(c *wire.Client) (*view.RunPage, error) { return c.Runs(ctx, q) })
}

// Run implements tui.Source.
func (s *consoleSource) Run(ctx context.Context, id, cursor string) (*view.RunDetail, error) {
	return over(ctx, &s.reads, func(c *wire.Client) (*view.RunDetail, error) { return c.Run(ctx, id, cursor) })
}

// Missions implements tui.Source.
func (s *consoleSource) Missions(ctx context.Context) ([]view.Mission, error) {
	return over(ctx, &s.reads, func(c *wire.Client) ([]view.Mission, error) { return c.Missions(ctx) })
}

// DoRun implements tui.Source.
func (s *consoleSource) DoRun(ctx context.Context, act tui.Action) (*view.Run, error) {
	return over(ctx, &s.acts, func(c *wire.Client) (*view.Run, error) {
		switch act.Verb {
		case tui.StartRun:
			return c.Start(ctx, wire.Start{Mission: act.Name, Params: act.Set})
		case tui.ResumeRun:
			return c.Resume(ctx, act.Name)
		case tui.CancelRun:
			return c.CancelRun(ctx, act.Name, act.Reason)
		}
		return nil, fmt.Errorf("the console can't %s a run over the wire", act.Verb)
	})
}

// rateWindow is the time over which results a second are counted.
const rateWindow = 5 * time.Second

// rate counts results a second from the executors' own counts.
type rate struct {
	seen []counted
}

type counted struct {
	at    time.Time
	total int64
}

func (r *rate) add(all []view.Executor, now time.Time) float64 {
	total := int64(0)
	for i := range all {
		total += all[i].Done + all[i].Failed
	}
	r.seen = append(r.seen, counted{now, total})
	for len(r.seen) > 2 && now.Sub(r.seen[1].at) >= rateWindow {
		r.seen = r.seen[1:]
	}
	first := r.seen[0]
	if span := now.Sub(first.at).Seconds(); span > 0 && total > first.total { // less: an executor was forgotten
		return float64(total-first.total) / span
	}
	return 0
}
