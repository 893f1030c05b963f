package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

// undoing is the flags of rollback.
type undoing struct {
	run  string
	to   string
	yes  bool
	wait bool
}

func (a *app) rollbackCommand() *cobra.Command {
	u := &undoing{}
	cmd := &cobra.Command{
		Use: "rollback RUN [--to UNIT]", Short: "undo what a run did, the latest first; shown before it is done", Args: words(1, 1),
		Long: "Undo what a run did: the undo steps of its units, the latest first. What would be undone, and what has\n" +
			"no undo and stays, is shown first. The state keys are another matter, see state rollback.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := wholeOnly("rollback", args[0], "rollback RUN --to UNIT"); err != nil {
				return err
			}
			u.run = args[0]
			return a.online(func(ctx context.Context, c *wire.Client, _ []string) error { return a.rollback(ctx, c, u) })(cmd, args)
		},
	}
	cmd.Flags().StringVar(&u.to, "to", "", "what ran before this `UNIT` stays (default nothing does)")
	cmd.Flags().BoolVar(&u.yes, "yes", false, "do not ask")
	waitFlag(cmd, &u.wait)
	a.completeRuns(cmd)
	return cmd
}

func (a *app) rollback(ctx context.Context, c *wire.Client, u *undoing) error {
	would, err := c.Rollback(ctx, wire.Rollback{Run: u.run, To: u.to, Check: true})
	if err != nil {
		return hinted(fmt.Errorf("rollback: %w", err), wire.CodeNotFound, hintOf(noSuchUnit(err, u.run), "apollo11 runs"))
	}
	a.sayUndone(would)
	if len(would.Units) == 0 {
		return &ExitError{Code: Failed, Err: fmt.Errorf("rollback: %s: nothing that it did can be undone", clean(u.run)), Hint: "apollo11 show " + clean(u.run)}
	}
	if !u.yes {
		if err := a.agree("rollback", task.Plural(len(would.Units), "unit")+" of "+u.run, u.typed()); err != nil {
			return err
		}
	}
	w, err := a.watcher(ctx, c, "rollback", u.wait)
	if err != nil {
		return err
	}
	did, err := c.Rollback(ctx, wire.Rollback{Run: u.run, To: u.to})
	if err != nil {
		return fmt.Errorf("rollback: %w", err)
	}
	return w.started(ctx, &did.Run)
}

// sayUndone says what is undone, in which order, and what stays.
func (a *app) sayUndone(u *view.Undone) {
	if len(u.Units) > 0 {
		a.say("rollback: in this order: %s", strings.Join(u.Units, ", "))
	}
	if len(u.Without) > 0 {
		a.say("rollback: have no undo, and stay: %s", strings.Join(u.Without, ", "))
	}
}

// typed is the command as it can be typed to do it without a question.
func (u *undoing) typed() string {
	text := "apollo11 rollback " + Quoted(u.run)
	if u.to != "" {
		text += " --to " + Quoted(u.to)
	}
	if u.wait {
		text += " --wait"
	}
	return text + " --yes"
}
