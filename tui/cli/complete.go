package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

// completed offers fixed words for a flag.
func completed(cmd *cobra.Command, flag string, words []string) {
	cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// completionPatience is how long a person who pressed tab waits.
const completionPatience = time.Second

// suggest asks the controller for words; one that is out of reach has none.
func (a *app) suggest(cmd *cobra.Command, ask func(context.Context, *wire.Client) []string) []string {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
	defer cancel()
	c, err := a.dialAs(ctx, true)
	if err != nil {
		return nil
	}
	defer c.Close()
	return ask(ctx, c)
}

// completeRuns offers the newest runs for a command's words.
func (a *app) completeRuns(cmd *cobra.Command) {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return a.suggest(cmd, runNames), cobra.ShellCompDirectiveNoFileComp
	}
}

func runNames(ctx context.Context, c *wire.Client) (names []string) {
	page, err := c.Runs(ctx, view.RunQuery{Limit: 50})
	if err != nil {
		return nil
	}
	for i := range page.Runs {
		r := &page.Runs[i]
		names = append(names, cobra.CompletionWithDesc(r.ID, clean(r.Mission+" "+r.State)))
	}
	return names
}

// missionNames offers the missions that are known.
func missionNames(ctx context.Context, c *wire.Client) (names []string) {
	missions, err := c.Missions(ctx)
	if err != nil {
		return nil
	}
	for i := range missions {
		m := &missions[i]
		names = append(names, cobra.CompletionWithDesc(m.Name, clean(task.Plural(m.Units, "unit")+" "+paramsText(m.Params))))
	}
	return names
}

// completeMission offers missions, or mission files, for a command's first word.
func (a *app) completeMission(cmd *cobra.Command) {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.suggest(cmd, missionNames), cobra.ShellCompDirectiveDefault
	}
}

// completeMissionFlag offers missions for --mission.
func (a *app) completeMissionFlag(cmd *cobra.Command) {
	cmd.RegisterFlagCompletionFunc("mission", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return a.suggest(cmd, missionNames), cobra.ShellCompDirectiveNoFileComp
	})
}
