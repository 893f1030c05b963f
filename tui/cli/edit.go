package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

const editHint = "apollo11 edit ID name=value, or --unset NAME"

func (a *app) editCommand() *cobra.Command {
	e := &wire.Edit{}
	cmd := &cobra.Command{
		Use: "edit ID name=value… [--unset NAME]", Short: "change a task's inputs, and requeue it if it has ended", Args: words(1, -1),
		Long: "Change the inputs of a task that no executor has. One that is dead, cancelled or aborted goes to the\n" +
			"queue with them and a new life; one that waits goes on waiting. What it was submitted with goes on\n" +
			"naming it: the same submit again is answered with this task.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkEdit(e, args); err != nil {
				return usage(editHint, "edit: %w", err)
			}
			return a.online(func(ctx context.Context, c *wire.Client, _ []string) error { return a.edit(ctx, c, e) })(cmd, args)
		},
	}
	cmd.Flags().StringSliceVar(&e.Unset, "unset", nil, "take the input `NAME` out; a contract's default comes back")
	return cmd
}

// checkEdit reads the arguments, and refuses what the controller would.
func checkEdit(e *wire.Edit, args []string) (err error) {
	e.ID = args[0]
	if err := task.CheckID(e.ID); err != nil {
		return err
	}
	if e.Set, err = parsePairs(args[1:]); err != nil {
		return err
	}
	if len(e.Set)+len(e.Unset) == 0 {
		return fmt.Errorf("%s: which input", e.ID)
	}
	for _, v := range e.Set {
		if slices.Contains(e.Unset, v.Name) {
			return fmt.Errorf("input %s is set and unset", clean(v.Name))
		}
		if err := checkInput(v.Name); err != nil {
			return err
		}
	}
	for _, name := range e.Unset {
		if err := checkInput(name); err != nil {
			return err
		}
	}
	if size := e.Set.Size(); size > task.MaxBytes {
		return fmt.Errorf("inputs of %d bytes: want at most %d", size, task.MaxBytes)
	}
	return nil
}

func (a *app) edit(ctx context.Context, c *wire.Client, e *wire.Edit) error {
	d, err := c.Edit(ctx, *e)
	if err != nil {
		return hinted(fmt.Errorf("edit: %w", err), wire.CodeInvalid, "apollo11 task "+e.ID)
	}
	if d.Attempts == nil {
		d.Attempts = []view.Attempt{}
	}
	return a.done(d, "edited %s: it is %s now", d.ID, d.State)
}
