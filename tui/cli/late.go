package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"apollo11/engine/view"
	"apollo11/wire"
)

func (a *app) lateCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "late", Short: "results that came and were not applied, newest first", Args: words(0, 0),
		RunE: a.online(func(ctx context.Context, c *wire.Client, _ []string) error {
			if limit < 0 || limit > view.MaxRows {
				return usage("", "late: --limit %d: want 1 to %d", limit, view.MaxRows)
			}
			lines, err := c.Late(ctx, limit)
			if err != nil {
				return fmt.Errorf("late: %w", err)
			}
			if len(lines) == 0 && !a.json {
				a.say("no late results")
				return nil
			}
			t := a.table(
				column{title: "TIME", right: true, drop: 2}, column{title: "TASK", least: 12}, column{title: "VERSION", right: true},
				column{title: "CURRENT", right: true, drop: 3}, column{title: "EXECUTOR", least: 8, drop: 1},
				column{title: "REASON", least: 10}, column{title: "WOULD HAVE", least: 12, drop: 4},
			)
			return list(a, t, lines, a.lateCells)
		}),
	}
	cmd.Flags().IntVar(&limit, "limit", 0, "at most `N` (default and most 500)")
	return cmd
}

func (a *app) lateCells(l *view.Late) []cell {
	return []cell{
		{text: moment(l.Time.Time, a.Now())}, {text: l.Task}, {text: versionText(l.Version)}, {text: versionText(l.Current)},
		{text: l.Executor}, {l.Reason, yellow}, {text: l.Effect},
	}
}
