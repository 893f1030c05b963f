package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"apollo11/engine/view"
	"apollo11/wire"
)

func (a *app) explainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "explain ID", Short: "why a task or run is not running, ran again, or had its result refused", Args: words(1, 1),
		RunE: a.online(func(ctx context.Context, c *wire.Client, args []string) error {
			x, err := c.Explain(ctx, args[0])
			if err != nil {
				err = fmt.Errorf("explain: %s: %w", args[0], err)
				if looksLikeRun(args[0]) {
					err = hinted(err, wire.CodeNotFound, "apollo11 runs")
				}
				return nowhere(err, args[0])
			}
			if a.json {
				return a.object(x)
			}
			return a.printExplanation(x)
		}),
	}
	a.completeRuns(cmd)
	return cmd
}

// printExplanation prints what matters most first; the hints belong to it, and
// can be typed.
func (a *app) printExplanation(x *view.Explanation) error {
	p := a.paint()
	fmt.Fprintf(a.out, "%s: %s\n", clean(x.ID), p.paint(stateStyle(x.State), clean(x.State)))
	for _, line := range x.Lines {
		fmt.Fprintf(a.out, "  %s\n", clean(line))
	}
	for _, hint := range x.Hints {
		fmt.Fprintf(a.out, "%s %s\n", p.paint(dim, "hint:"), clean(hint))
	}
	return nil
}
