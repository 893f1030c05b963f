package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

func (a *app) resumeCommand() *cobra.Command {
	wait := false
	cmd := &cobra.Command{
		Use: "resume RUN", Short: "go on where a run failed; what succeeded with unchanged inputs is not run again", Args: words(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := wholeOnly("resume", args[0], "resume RUN"); err != nil {
				return err
			}
			return a.online(func(ctx context.Context, c *wire.Client, args []string) error {
				w, err := a.watcher(ctx, c, "resume", wait)
				if err != nil {
					return err
				}
				return w.again(ctx, func() (*view.Run, error) { return c.Resume(ctx, args[0]) })
			})(cmd, args)
		},
	}
	waitFlag(cmd, &wait)
	a.completeRuns(cmd)
	return cmd
}

// again starts a run that comes of another. If it was waited for it is the
// result, whatever the error says of it.
func (w *watcher) again(ctx context.Context, start func() (*view.Run, error)) error {
	run, err := start()
	if err != nil {
		return hinted(fmt.Errorf("%s: %w", w.command, err), wire.CodeNotFound, hintOf(err, "apollo11 runs"))
	}
	if run == nil {
		return nil // it was a task
	}
	return w.started(ctx, run)
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

// forking is the flags of fork.
type forking struct {
	wire.Fork
	with []string
	wait bool
}

func (a *app) forkCommand() *cobra.Command {
	f := &forking{}
	cmd := &cobra.Command{
		Use: "fork RUN --from UNIT [--with name=value…]", Short: "repeat a run from a unit on, with other inputs; reuses what is before it", Args: words(1, 1),
		Long: "Start a run that takes over the results of what does not depend on UNIT, gives UNIT other inputs, and\n" +
			"runs it and all that depends on it. With --wait the two runs are shown side by side at the end.",
		Example: "  apollo11 fork r-0001 --from clean --with limit=500 --wait",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.prepare(args[0]); err != nil {
				return err
			}
			return a.online(func(ctx context.Context, c *wire.Client, _ []string) error { return a.fork(ctx, c, f) })(cmd, args)
		},
	}
	cmd.Flags().StringVar(&f.From, "from", "", "the first `UNIT` that runs again")
	cmd.Flags().StringArrayVar(&f.with, "with", nil, "give it this input (`name=value`); may be repeated")
	waitFlag(cmd, &f.wait)
	a.completeRuns(cmd)
	return cmd
}

func (f *forking) prepare(run string) (err error) {
	const hint = "apollo11 fork RUN --from UNIT --with name=value"
	if err := wholeOnly("fork", run, "fork RUN --from UNIT --with name=value"); err != nil {
		return err
	}
	if f.Run = run; f.From == "" {
		return usage(hint, "fork: %s: from which unit", clean(run))
	}
	if f.With, err = parsePairs(f.with); err != nil {
		return usage(hint, "fork: --with: %w", err)
	}
	return nil
}

func (a *app) fork(ctx context.Context, c *wire.Client, f *forking) error {
	w, err := a.watcher(ctx, c, "fork", f.wait)
	if err != nil {
		return err
	}
	err = w.again(ctx, func() (*view.Run, error) {
		run, err := c.Fork(ctx, f.Fork)
		return run, noSuchUnit(err, f.Run)
	})
	_, failed := w.compare(ctx)
	return cmp.Or(err, failed)
}

// noSuchUnit hints at the units of a run, where one was named that it has not.
func noSuchUnit(err error, run string) error {
	if err != nil && strings.Contains(err.Error(), " has no unit ") {
		return hinted(err, wire.CodeNotFound, "apollo11 show "+Quoted(clean(run)))
	}
	return err
}

// rerunning is the flags of rerun.
type rerunning struct {
	id        string
	atContext bool
	wait      bool
}

func (a *app) rerunCommand() *cobra.Command {
	r := &rerunning{}
	cmd := &cobra.Command{
		Use: "rerun RUN|TASK", Short: "run again with the very same inputs; prints the new id", Args: words(1, 1),
		Long: "Run a run or a task again with the very same inputs. With --wait the results are compared at the end:\n" +
			"the exit code is 1 if the new one did not succeed, or came to something else.",
		RunE: a.online(func(ctx context.Context, c *wire.Client, args []string) error {
			r.id = args[0]
			return a.rerun(ctx, c, r)
		}),
	}
	cmd.Flags().BoolVar(&r.atContext, "at-context", false, "give it the state keys as it saw them then, not as they are now")
	waitFlag(cmd, &r.wait)
	a.completeRuns(cmd)
	return cmd
}

func (a *app) rerun(ctx context.Context, c *wire.Client, r *rerunning) error {
	w, err := a.watcher(ctx, c, "rerun", r.wait)
	if err != nil {
		return err
	}
	var tasks []view.Submitted
	err = w.again(ctx, func() (run *view.Run, err error) {
		run, tasks, err = c.Rerun(ctx, r.id, r.atContext)
		return run, err
	})
	if len(tasks) > 0 {
		return a.rerunTask(ctx, c, r, tasks)
	}
	same, failed := w.compare(ctx)
	if err = cmp.Or(err, failed); err == nil && !same {
		return &ExitError{Code: Failed, Err: fmt.Errorf("rerun: %s did not come to what %s came to", w.result.ID, w.result.Parent)}
	}
	return err
}

// rerunTask prints a task that does the work of another again and, if asked to,
// compares what came of it.
func (a *app) rerunTask(ctx context.Context, c *wire.Client, r *rerunning, tasks []view.Submitted) error {
	accepted := receipt{app: a, quiet: a.json && r.wait, warned: map[string]bool{}}
	if err := accepted.print(tasks); err != nil || !r.wait {
		return err
	}
	id := tasks[0].ID
	after, err := a.ended(ctx, c, id)
	if stopped(ctx, err) {
		return &ExitError{Code: Failed, Err: fmt.Errorf("rerun: interrupted; %s goes on", id), Hint: "apollo11 task " + id}
	}
	if err != nil {
		return fmt.Errorf("rerun: waiting for %s: %w", id, err)
	}
	before, err := c.Task(ctx, r.id)
	if err != nil {
		return fmt.Errorf("rerun: %s: %w", r.id, err)
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
