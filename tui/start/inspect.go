package start

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"apollo11/engine"
	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/snapshot"
	"apollo11/tui/cli"
	"apollo11/wire"
	"apollo11/wire/controller"
)

func (p *program) verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "verify [DIR]", Short: "check a data folder: every checksum, and the state folded anew", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := p.folder(cmd, args)
			if err != nil {
				return err
			}
			bar := p.Progress("records read", 0)
			report, verified, err := controller.Verify(dir, func(seq uint64) { bar.Show(int(seq)) })
			bar.Clear()
			for _, problem := range report.Problems {
				fmt.Fprintf(cmd.OutOrStdout(), "problem: %s\n", task.Printable(problem.Error()))
			}
			if err != nil {
				return exit(fmt.Errorf("verify: %s: %w", dir, err))
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), sentence(report, verified))
			return err
		},
	}
}

// sentence says what a verification found.
func sentence(r snapshot.Report, v engine.Verified) string {
	from := "the oldest image"
	if v.Whole {
		from = "the first record"
	}
	text := fmt.Sprintf("verified: %s in %s, folded from %s; %s, %s, state hash %s",
		task.Plural(r.Entries, "record"), task.Plural(len(r.Segments), "segment"), from,
		task.Plural(v.Tasks, "task"), task.Plural(v.Keys, "state key"), v.Hash)
	if v.Images > 0 {
		text += ", equal to that of " + task.Plural(v.Images, "saved image")
	}
	if r.Torn != nil {
		text += "; the last batch is torn, the next start cuts it"
	}
	return text
}

// folder is the data folder of an offline command.
func (p *program) folder(cmd *cobra.Command, args []string) (string, error) {
	if len(args) == 1 {
		return args[0], nil
	}
	c, err := p.flagged(cmd)
	return c.Data, err
}

func (p *program) repairCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "repair [DIR]", Short: "make a damaged data folder work again, listing exactly what is lost", Args: cobra.MaximumNArgs(1),
		RunE: p.repair,
	}
	c.Flags().Bool("start-empty", false, "set everything aside and start with nothing")
	c.Flags().Bool("yes", false, "do it without asking")
	return c
}

func (p *program) repair(cmd *cobra.Command, args []string) error {
	dir, err := p.folder(cmd, args)
	if err != nil {
		return err
	}
	plan := snapshot.Plan
	if empty, err := cmd.Flags().GetBool("start-empty"); err == nil && empty {
		plan = snapshot.PlanEmpty
	}
	todo, err := plan(dir)
	if err != nil {
		return exit(fmt.Errorf("repair: %s: %w", dir, err))
	}
	out := cmd.OutOrStdout()
	if len(todo.Steps) == 0 {
		_, err := fmt.Fprintln(out, "nothing to repair")
		return err
	}
	if err := tellPlan(out, todo); err != nil {
		return exit(err)
	}
	if err := p.agree(cmd, dir); err != nil {
		return err
	}
	if err := snapshot.Repair(dir, todo); err != nil {
		return exit(fmt.Errorf("repair: %s: %w", dir, err))
	}
	_, err = fmt.Fprintln(out, repaired(todo))
	return err
}

// repaired says what a repair kept: no records, if the image stands alone.
func repaired(plan snapshot.RepairPlan) string {
	kept := fmt.Sprintf("records %d to %d are kept", plan.First, plan.Last)
	if plan.First > plan.Last {
		kept = fmt.Sprintf("no records are kept, the next is %d", plan.First)
	}
	return fmt.Sprintf("repaired: %s; the originals are in %s", kept, plan.Aside)
}

// tellPlan prints what a repair would do, and every record that it would lose.
func tellPlan(out io.Writer, plan snapshot.RepairPlan) error {
	for _, problem := range plan.Problems {
		fmt.Fprintf(out, "problem: %s\n", task.Printable(problem.Error()))
	}
	for _, step := range plan.Steps {
		fmt.Fprintf(out, "step: %s\n", task.Printable(step.String()))
	}
	if h := plan.History; h.Last != 0 {
		fmt.Fprintf(out, "history that goes: records %d to %d, which an image covers; they stay in %s\n", h.First, h.Last, plan.Aside)
	}
	lost := 0
	err := plan.EachLost(func(e snapshot.Entry) error {
		lost++
		_, err := fmt.Fprintf(out, "lost: %d %s\n", e.Seq, task.Printable(string(e.Body)))
		return err
	})
	fmt.Fprintf(out, "records that the state would lose, as far as they can be read: %d\n", lost)
	return err
}

// agree asks, where there is somebody to ask.
func (p *program) agree(cmd *cobra.Command, dir string) error {
	if yes, err := cmd.Flags().GetBool("yes"); err == nil && yes {
		return nil
	}
	way := "apollo11 repair " + cli.Quoted(dir) + " --yes"
	if empty, err := cmd.Flags().GetBool("start-empty"); err == nil && empty {
		way += " --start-empty"
	}
	no := &cli.ExitError{Code: cli.Failed, Err: fmt.Errorf("repair: nothing was changed"), Hint: "to do it: " + way}
	if !term.IsTerminal(int(p.Stdin.Fd())) {
		return no
	}
	if f, ok := cmd.OutOrStdout().(interface{ Flush() error }); ok {
		if err := f.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprint(p.Stderr, "repair? [y/N] ")
	line, err := bufio.NewReader(p.Stdin).ReadString('\n')
	if err != nil || !strings.EqualFold(strings.TrimSpace(line), "y") {
		return no
	}
	return nil
}

// files answers a command out of files, in the controller's words.
type files struct {
	from *controller.Offline
	bar  *cli.Progress
}

// offline opens a data folder, a backup or a journal file.
func (p *program) offline(path string) (cli.Timeline, error) {
	from, err := controller.OpenOffline(path)
	if err != nil {
		return nil, exit(err)
	}
	f := files{from, p.Progress("records read", 0)}
	from.Progress = func(seq uint64) { f.bar.Show(int(seq)) }
	return f, nil
}

// Timeline implements cli.Past.
func (f files) Timeline(ctx context.Context, q view.EventQuery) (*view.EventPage, error) {
	page, err := f.from.Timeline(ctx, q)
	return page, f.said(err)
}

// Run implements cli.Past.
func (f files) Run(ctx context.Context, id, cursor string) (*view.RunDetail, error) {
	d, err := f.from.Run(ctx, id, cursor)
	return d, f.said(err)
}

// Runs is as wire.Client.Runs.
func (f files) Runs(ctx context.Context, q view.RunQuery) (*view.RunPage, error) {
	page, err := f.from.Runs(ctx, q)
	return page, f.said(err)
}

// RunSpec is as wire.Client.RunSpec.
func (f files) RunSpec(ctx context.Context, run string) (string, error) {
	text, err := f.from.RunSpec(ctx, run)
	return text, f.said(err)
}

// KeysAt implements cli.Past.
func (f files) KeysAt(ctx context.Context, seq int64, q view.KeyQuery) (*view.KeyPage, error) {
	page, err := f.from.KeysAt(ctx, seq, q)
	return page, f.said(err)
}

// Moment is as wire.Client.Moment.
func (f files) Moment(ctx context.Context, when time.Time) (int64, error) {
	seq, err := f.from.Moment(ctx, when)
	return seq, f.said(err)
}

// Task is as wire.Client.Task.
func (f files) Task(ctx context.Context, id string) (*view.Detail, error) {
	d, err := f.from.Task(ctx, id)
	return d, f.said(err)
}

// Explain is as wire.Client.Explain.
func (f files) Explain(ctx context.Context, id string) (*view.Explanation, error) {
	x, err := f.from.Explain(ctx, id)
	return x, f.said(err)
}

// said ends an answer: nothing stays of the bar, and what is not found is said
// with the code that a controller says it with.
func (f files) said(err error) error {
	f.bar.Clear()
	switch {
	case errors.Is(err, engine.ErrNotFound):
		return &wire.Error{Code: wire.CodeNotFound, Message: err.Error()}
	case errors.Is(err, controller.ErrTimelineOnly):
		return &cli.ExitError{Code: cli.Usage, Err: err}
	}
	return exit(err)
}
