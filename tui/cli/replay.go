package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

// replay is the flags of the command and what has been read so far.
type replay struct {
	app    *app
	w      io.Writer // nil: standard output
	from   string
	to     string
	follow bool
	query  view.EventQuery
	last   int64           // seq to end with; 0: none
	day    string          // of the last line
	wide   [2]int          // columns of kind and task, as wide as any that was printed
	undone map[string]bool // tasks that take their effect back
	sum    replaySum
	times  segments
}

// replaySum is what the last line tells.
type replaySum struct {
	events, failed, dead int
	first, last          time.Time
}

func (a *app) replayCommand() *cobra.Command {
	r := &replay{app: a}
	cmd := &cobra.Command{
		Use: "replay [RUN|TASK]", Short: "all that happened, as the journal has it", Args: words(0, 1),
		Long: "All that happened, or what happened to one run or task, a line each, oldest first; of a run also where\n" +
			"the time of each attempt went: waiting in the queue, preparing, executing, cleaning up, and the rest,\n" +
			"which is the way to the executor and back, and the controller's own.\n" +
			"With --data DIR it reads a data folder, a backup or a journal file; no controller is needed.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.prepare(args); err != nil {
				return err
			}
			if a.dataSet && a.addr == "" {
				return r.offline(cmd.Context())
			}
			return a.online(r.online)(cmd, args)
		},
	}
	cmd.Flags().StringVar(&r.from, "from", "", "begin at `WHEN`: a time as printed (08:15:30) or RFC 3339, so long ago (10m), or a record's number")
	cmd.Flags().StringVar(&r.to, "to", "", "end at `WHEN`, likewise")
	cmd.Flags().BoolVarP(&r.follow, "follow", "f", false, "go on as things happen")
	a.completeRuns(cmd)
	return cmd
}

func (r *replay) prepare(args []string) (err error) {
	now := r.app.Now()
	if r.query.From, r.query.After, err = parseWhen(r.from, now); err != nil {
		return usage("apollo11 replay --from 10m", "replay: --from: %w", err)
	}
	if r.last, r.query.Until, err = parseEnd(r.to, now); err != nil {
		return usage("apollo11 replay --to 10m", "replay: --to: %w", err)
	}
	if r.follow && r.to != "" {
		return usage("", "replay: --follow together with --to: want one of them")
	}
	if len(args) == 1 {
		if err := task.CheckID(args[0]); err != nil {
			return usage("apollo11 tasks", "replay: %w", err)
		}
		if r.query.Task = args[0]; looksLikeRun(args[0]) {
			r.query.Task, r.query.Run = "", args[0]
		}
	}
	return nil
}

// parseWhen reads a record's number, or a moment.
func parseWhen(text string, now time.Time) (seq int64, at time.Time, err error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		if n < 1 {
			return 0, at, fmt.Errorf("%s: records are numbered from 1", text)
		}
		return n, at, nil
	}
	if text == "" {
		return 0, at, nil
	}
	if at, ok := asPrinted(text, now); ok {
		return 0, at, nil
	}
	if at, err = parseTime(text, now, -1); err != nil && !strings.HasSuffix(err.Error(), "is negative") {
		err = fmt.Errorf("%s: want a record's number, a time such as 08:15:30 or 2026-01-31T08:00:00Z, or so long ago, such as 10m", clean(text))
	}
	return 0, at, err
}

// parseEnd is parseWhen for what ends with a moment: what was printed as of a
// second happened before the next one.
func parseEnd(text string, now time.Time) (seq int64, at time.Time, err error) {
	seq, at, err = parseWhen(text, now)
	if _, second := time.Parse(time.TimeOnly, text); second == nil && !strings.Contains(text, ".") {
		at = at.Add(time.Second - time.Microsecond)
	}
	return seq, at, err
}

// asPrinted reads a moment in the forms in which tables and timelines print it:
// a time of today, a time of another day of the last twelve months, a day.
func asPrinted(text string, now time.Time) (at time.Time, ok bool) {
	for _, layout := range []string{time.TimeOnly, "15:04", "Jan _2 15:04", time.DateOnly} {
		at, err := time.ParseInLocation(layout, text, now.Location())
		if err != nil {
			continue
		}
		switch layout {
		case time.TimeOnly, "15:04":
			at = time.Date(now.Year(), now.Month(), now.Day(), at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), now.Location())
		case "Jan _2 15:04":
			if at = at.AddDate(now.Year(), 0, 0); at.After(now) {
				at = at.AddDate(-1, 0, 0)
			}
		}
		return at, true
	}
	return at, false
}

func (r *replay) online(ctx context.Context, c *wire.Client, _ []string) error {
	if err := r.resolve(ctx, c); err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	return r.play(ctx, c)
}

// resolve makes a whole id of a prefix. What the controller knows no more may
// still be in the journal.
func (r *replay) resolve(ctx context.Context, c *wire.Client) error {
	if r.query.Run != "" {
		d, err := c.Run(ctx, r.query.Run, "")
		if err == nil {
			r.query.Run = d.ID
		}
		if !notFound(err) {
			return err
		}
		if d, err := c.Task(ctx, r.query.Run); err == nil { // a person may call a task so
			r.query.Run, r.query.Task = "", d.ID
		}
		return nil
	}
	if r.query.Task == "" {
		return nil
	}
	d, err := c.Task(ctx, r.query.Task)
	if err == nil {
		r.query.Task = d.ID
	}
	if notFound(err) {
		return nil
	}
	return err
}

func (r *replay) offline(ctx context.Context) error {
	if r.app.Offline == nil {
		return usage("", "replay: --data: this build reads no files")
	}
	source, err := r.app.Offline(r.app.data)
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	if closer, ok := source.(interface{ Close() error }); ok {
		defer closer.Close()
	}
	return r.play(ctx, source)
}

// play prints page after page until the end, or until a person stops it.
func (r *replay) play(ctx context.Context, source Timeline) error {
	for over := false; !over; {
		page, err := source.Timeline(ctx, r.query)
		if err == nil {
			over, err = r.page(ctx, page)
		}
		if stopped(ctx, err) {
			break
		}
		if err != nil {
			return fmt.Errorf("replay: %w", err)
		}
	}
	return r.summary()
}

// page prints a page and gets ready for the next, for which it may have to wait.
func (r *replay) page(ctx context.Context, page *view.EventPage) (over bool, err error) {
	over, err = r.print(page.Events)
	if err != nil || over || !page.More && !r.follow {
		return true, err
	}
	if page.More && page.Next <= r.query.From {
		return true, fmt.Errorf("the page after record %d never ends", page.Next)
	}
	r.query.From = max(r.query.From, page.Next)
	if page.More {
		return false, nil
	}
	return false, r.app.pause(ctx, pollEvery)
}

// print prints events; over says that the last one wanted is among them.
func (r *replay) print(events []view.Event) (over bool, err error) {
	for i := range events {
		r.wide[0] = max(r.wide[0], textWidth(clean(events[i].Kind)))
		r.wide[1] = max(r.wide[1], min(textWidth(clean(owner(&events[i]))), widestOwner))
	}
	for i := range events {
		e := &events[i]
		if r.last > 0 && e.Seq > r.last {
			return true, nil
		}
		r.sum.count(e)
		if r.query.Run != "" {
			r.times.add(e)
		}
		if r.app.json {
			err = r.app.object(e)
		} else {
			err = r.line(e)
		}
		if err != nil {
			return true, err
		}
	}
	return false, nil
}

func (s *replaySum) count(e *view.Event) {
	if s.events == 0 {
		s.first = e.Time.Time
	}
	s.events++
	s.last = e.Time.Time
	if e.Kind == kindFail {
		s.failed++
	}
	if (e.Kind == kindFail || e.Kind == kindEnd) && valueOf(e, "state") == task.Dead.String() {
		s.dead++
	}
}

func (r *replay) out() io.Writer {
	if r.w == nil {
		return r.app.out
	}
	return r.w
}

// line prints one event; a line that begins with # says which day follows.
func (r *replay) line(e *view.Event) error {
	p := r.app.paint()
	at := e.Time.In(r.app.Now().Location())
	if day := at.Format("2006-01-02 -07:00"); day != r.day {
		r.day = day
		fmt.Fprintln(r.out(), p.paint(dim, "# "+day))
	}
	text, tone := describe(e, r.app.Now().Location())
	if r.undoes(e) {
		text = "undo: " + text
	}
	mark := " "
	if tone == red {
		mark = p.paint(red, "!")
	}
	_, err := fmt.Fprintf(r.out(), "%s %s %8d  %s  %s  %s  %s\n", mark, p.paint(dim, at.Format("15:04:05.000")), e.Seq,
		padded(e.Kind, max(13, r.wide[0])), padded(owner(e), max(12, r.wide[1])), padded(e.Exec, 16), p.paint(tone, clean(text)))
	return err
}

// undoes reports whether a record is of a task that takes its effect back, which
// the record of its being ready says.
func (r *replay) undoes(e *view.Event) bool {
	if e.Kind != kindReady {
		return e.Task != "" && r.undone[e.Task]
	}
	if valueOf(e, "undo") != "" {
		if r.undone == nil {
			r.undone = map[string]bool{}
		}
		r.undone[e.Task] = true
	}
	return false // it says so itself
}

// owner is what a record is about.
func owner(e *view.Event) string { return cmp.Or(e.Task, e.Run) }

// widestOwner bounds the column of tasks: a longer id shifts its own line only.
const widestOwner = 40

// padded is a column of a list whose widths nobody can know beforehand.
func padded(text string, width int) string {
	if text == "" {
		text = "-"
	}
	text = clean(text)
	return text + strings.Repeat(" ", max(0, width-textWidth(text)))
}

func (r *replay) summary() error {
	if r.app.json {
		return nil
	}
	if err := r.app.printSegments(&r.times); err != nil {
		return err
	}
	s := r.sum
	text := "# nothing happened"
	if s.events > 0 {
		text = fmt.Sprintf("# %s in %s, %s, %s", task.Plural(s.events, "event"), span(s.last.Sub(s.first)),
			task.Plural(s.failed, "failed attempt"), task.Plural(s.dead, "dead letter"))
	}
	_, err := fmt.Fprintln(r.app.out, r.app.paint().paint(dim, text))
	return err
}
