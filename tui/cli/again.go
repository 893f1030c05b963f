package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

func (a *app) resumeCommand() *cobra.Command {
	wait := false
	cmd := &cobra.Command{
		Use: "resume RUN", Short: "go on where a run failed; what succeeded with unchanged inputs is not run again", Args: words(1, 1),
		RunE: a.online(func(ctx context.Context, c *wire.Client, args []string) error {
			_, err := a.startAgain(ctx, c, "resume", wait, func() (*view.Run, error) { return c.Resume(ctx, args[0]) })
			return err
		}),
	}
	waitFlag(cmd, &wait)
	a.completeRuns(cmd)
	return cmd
}

// startAgain starts a run that comes of another. If it was waited for, it is the
// watcher's result, whatever the error says of it.
func (a *app) startAgain(ctx context.Context, c *wire.Client, command string, wait bool, start func() (*view.Run, error)) (*watcher, error) {
	w, err := a.watcher(ctx, c, command, wait)
	if err != nil {
		return w, err
	}
	run, err := start()
	if err != nil {
		return w, hinted(fmt.Errorf("%s: %w", command, err), wire.CodeNotFound, "apollo11 runs")
	}
	if run == nil {
		return w, nil // it was a task
	}
	return w, w.started(ctx, run)
}

// compare shows what was waited for beside its parent; same says that both came
// to the same.
func (w *watcher) compare(ctx context.Context) (same bool, err error) {
	if w.result == nil || w.result.Parent == "" {
		return true, nil
	}
	parent, err := wholeRun(ctx, w.client, w.result.Parent)
	if err != nil {
		return false, fmt.Errorf("%s: %s: %w", w.command, w.result.Parent, err)
	}
	d := view.Compare(parent, w.result)
	return d.Same(), w.app.printDiff(d, [2]string{parent.ID, w.result.ID})
}

func (a *app) forkCommand() *cobra.Command {
	var f wire.Fork
	var with []string
	wait := false
	cmd := &cobra.Command{
		Use: "fork RUN --from UNIT [--with name=value…]", Short: "repeat a run from a unit on, with other inputs; reuses what is before it", Args: words(1, 1),
		Long: "Start a run that takes over the results of what does not depend on UNIT, gives UNIT other inputs, and\n" +
			"runs it and all that depends on it. With --wait the two runs are shown side by side at the end.",
		Example: "  apollo11 fork r-0001 --from clean --with limit=500 --wait",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			const hint = "apollo11 fork RUN --from UNIT --with name=value"
			f.Run = args[0]
			if f.From == "" {
				return usage(hint, "fork: %s: from which unit", clean(f.Run))
			}
			if f.With, err = parsePairs(with); err != nil {
				return usage(hint, "fork: --with: %w", err)
			}
			return a.online(func(ctx context.Context, c *wire.Client, _ []string) error {
				again, err := a.startAgain(ctx, c, "fork", wait, func() (*view.Run, error) { return c.Fork(ctx, f) })
				if again == nil {
					return err
				}
				_, failed := again.compare(ctx)
				return cmp.Or(err, failed)
			})(cmd, args)
		},
	}
	cmd.Flags().StringVar(&f.From, "from", "", "the first `UNIT` that runs again")
	cmd.Flags().StringArrayVar(&with, "with", nil, "give it this input (`name=value`); may be repeated")
	waitFlag(cmd, &wait)
	a.completeRuns(cmd)
	return cmd
}

func (a *app) rerunCommand() *cobra.Command {
	atContext, wait := false, false
	cmd := &cobra.Command{
		Use: "rerun RUN|TASK", Short: "run again with the very same inputs; prints the new id", Args: words(1, 1),
		Long: "Run a run or a task again with the very same inputs. With --wait the results are compared at the end:\n" +
			"the exit code is 1 if the new one did not succeed, or came to something else.",
		RunE: a.online(func(ctx context.Context, c *wire.Client, args []string) error {
			return a.rerun(ctx, c, args[0], atContext, wait)
		}),
	}
	cmd.Flags().BoolVar(&atContext, "at-context", false, "give it the state keys as it saw them then, not as they are now")
	waitFlag(cmd, &wait)
	a.completeRuns(cmd)
	return cmd
}

func (a *app) rerun(ctx context.Context, c *wire.Client, id string, atContext, wait bool) error {
	var submitted []view.Submitted
	w, err := a.startAgain(ctx, c, "rerun", wait, func() (run *view.Run, err error) {
		run, submitted, err = c.Rerun(ctx, id, atContext)
		return run, err
	})
	if len(submitted) > 0 {
		return a.rerunTask(ctx, c, id, submitted, wait)
	}
	if w == nil {
		return err
	}
	same, failed := w.compare(ctx)
	if err = cmp.Or(err, failed); err == nil && !same {
		return &ExitError{Code: Failed, Err: fmt.Errorf("rerun: %s did not come to what %s came to", w.result.ID, w.result.Parent)}
	}
	return err
}

// rerunTask prints a task that does the work of another again and, if asked to,
// compares what came of it.
func (a *app) rerunTask(ctx context.Context, c *wire.Client, id string, list []view.Submitted, wait bool) error {
	r := receipt{app: a, quiet: a.json && wait, warned: map[string]bool{}}
	if err := r.print(list); err != nil || !wait {
		return err
	}
	after, err := a.ended(ctx, c, list[0].ID)
	if stopped(ctx, err) {
		return &ExitError{Code: Failed, Err: fmt.Errorf("rerun: interrupted; %s goes on", list[0].ID), Hint: "apollo11 task " + list[0].ID}
	}
	if err != nil {
		return fmt.Errorf("rerun: waiting for %s: %w", list[0].ID, err)
	}
	before, err := c.Task(ctx, id)
	if err != nil {
		return fmt.Errorf("rerun: %s: %w", id, err)
	}
	d := view.Compare(taskAlone(before), taskAlone(after))
	if err := a.printDiff(d, [2]string{before.ID, after.ID}); err != nil {
		return err
	}
	if !d.Same() || after.State != task.Succeeded.String() {
		return &ExitError{Code: Failed}
	}
	return nil
}

// taskAlone is a task as a run of nothing else, for comparing.
func taskAlone(d *view.Detail) *view.RunDetail {
	return &view.RunDetail{
		Run: view.Run{ID: d.ID, Mission: d.Type, State: d.State, Units: 1, Done: 1, Started: d.Started, Finished: d.Finished},
		Units: []view.RunUnit{{
			Unit: d.Type, Task: d.ID, Type: d.Type, State: d.State, Attempt: d.Attempt, Executor: d.Executor, ErrorClass: d.ErrorClass,
			Error: d.Error, Started: d.Started, Finished: d.Finished, Inputs: d.Inputs, Outputs: d.Outputs,
			InputHash: task.Values(d.Inputs).ContentHash(), OutputHash: task.Values(d.Outputs).ContentHash(),
		}},
	}
}
