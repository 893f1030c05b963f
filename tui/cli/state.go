package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

func (a *app) stateCommand() *cobra.Command {
	var prefix, at string
	cmd := &cobra.Command{
		Use: "state [KEY…]", Short: "the keys of the global state, now or at a past moment", Args: words(0, -1),
		Long: "The keys of the global state, as they are or, with --at, as a record of the journal left them. With\n" +
			"--at and --data DIR it reads a data folder or a backup; no controller is needed.",
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, key := range args {
				if err := task.CheckKey(key); err != nil {
					return usage("apollo11 state", "state: %w", err)
				}
			}
			if at != "" {
				return a.stateAt(cmd.Context(), at, view.KeyQuery{Keys: args, Prefix: prefix})
			}
			return a.online(func(ctx context.Context, c *wire.Client, args []string) error {
				return a.printKeys(view.KeyQuery{Keys: args, Prefix: prefix}, func(q view.KeyQuery) (*view.KeyPage, error) { return c.Keys(ctx, q) })
			})(cmd, args)
		},
	}
	cmd.Flags().StringVar(&prefix, "prefix", "", "only keys that begin with `TEXT`")
	cmd.Flags().StringVar(&at, "at", "", "as it was at `WHEN`: a record's number, a time as printed (08:15:30) or RFC 3339, or so long ago (10m)")
	cmd.AddCommand(a.repairCommand(), a.stateDiffCommand(), a.restoreCommand())
	return cmd
}

// printKeys prints page after page.
func (a *app) printKeys(q view.KeyQuery, read func(view.KeyQuery) (*view.KeyPage, error)) error {
	t := a.table(
		column{title: "KEY", least: 12}, column{title: "VALUE", least: 12}, column{title: "VERSION", right: true, drop: 3},
		column{title: "RECORD", right: true, drop: 1}, column{title: "BY", least: 8, drop: 2}, column{title: "FAULT", least: 10, drop: 4},
	)
	missing := slices.Clone(q.Keys)
	for {
		page, err := read(q)
		if err != nil {
			return fmt.Errorf("state: %w", err)
		}
		for i := range page.Keys {
			missing = slices.DeleteFunc(missing, func(key string) bool { return key == page.Keys[i].Key })
		}
		if len(page.Keys) > 0 {
			if err := list(a, t, page.Keys, keyCells); err != nil {
				return err
			}
		}
		if page.Cursor == "" || page.Cursor == q.Cursor {
			break
		}
		q.Cursor = page.Cursor
	}
	if len(missing) > 0 {
		return &ExitError{Code: Failed, Err: fmt.Errorf("state: %s: not found", strings.Join(missing, ", ")), Hint: "apollo11 state"}
	}
	if t.widths == nil && !a.json {
		a.say("no keys")
	}
	return nil
}

func keyCells(k *view.Key) []cell {
	by := k.Task
	switch {
	case by != "":
	case strings.HasPrefix(k.Key, "sys."):
		by = "controller"
	default:
		by = "operator"
	}
	return []cell{
		{text: k.Key}, {text: k.Value}, {text: strconv.FormatInt(k.Version, 10)}, {text: strconv.FormatInt(k.Seq, 10)},
		{text: by}, {k.Fault, red},
	}
}

func (a *app) repairCommand() *cobra.Command {
	var r wire.Repair
	cmd := &cobra.Command{
		Use: "repair KEY VALUE --reason TEXT", Short: "set a key by hand, or --delete it; the record says who and why", Args: words(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Key = args[0]
			if len(args) == 2 {
				r.Value = args[1]
			}
			if err := checkRepair(&r, len(args) == 2); err != nil {
				return err
			}
			return a.online(func(ctx context.Context, c *wire.Client, _ []string) error { return a.repair(ctx, c, r) })(cmd, args)
		},
	}
	cmd.Flags().StringVar(&r.Reason, "reason", "", "why (`TEXT`), for the record")
	cmd.Flags().BoolVar(&r.Delete, "delete", false, "delete the key")
	return cmd
}

func checkRepair(r *wire.Repair, valued bool) error {
	hint := "apollo11 state repair KEY VALUE --reason TEXT"
	switch err := task.CheckKey(r.Key); {
	case err != nil:
		return usage(hint, "state repair: %w", err)
	case r.Delete && valued:
		return usage("apollo11 state repair KEY --delete --reason TEXT", "state repair: a value together with --delete: want one of them")
	case !r.Delete && !valued:
		return usage(hint, "state repair: %s: to which value", r.Key)
	case strings.TrimSpace(r.Reason) == "":
		return usage(hint, "state repair: %s: --reason is missing", r.Key)
	}
	return nil
}

func (a *app) repair(ctx context.Context, c *wire.Client, r wire.Repair) error {
	k, err := c.Repair(ctx, r)
	if err != nil {
		return hinted(fmt.Errorf("state repair: %s: %w", r.Key, err), wire.CodeNotFound, "apollo11 state")
	}
	if r.Delete {
		return a.done(k, "deleted %s, record %d", k.Key, k.Seq)
	}
	return a.done(k, "set %s = %s, version %d, record %d", k.Key, k.Value, k.Version, k.Seq)
}
