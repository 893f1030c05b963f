package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"apollo11/engine/view"
	"apollo11/wire"
)

func (a *app) runsCommand() *cobra.Command {
	var q view.RunQuery
	limit := 0
	cmd := &cobra.Command{
		Use: "runs", Short: "the runs of missions, newest first", Args: words(0, 0),
		Long: "The runs of missions, newest first. With --data DIR it reads a data folder or a backup; no controller is\n" +
			"needed.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return usage("", "runs: --limit cannot be negative")
			}
			if q.State != "" && !slices.Contains(view.RunStates, q.State) {
				return usage("apollo11 runs --state "+nearestOr(q.State, view.RunStates), "runs: --state: unknown state of a run: %s", clean(q.State))
			}
			return a.reading(cmd.Context(), "runs", func(ctx context.Context, past Past) error {
				return a.listRuns(ctx, past, q, limit)
			})
		},
	}
	cmd.Flags().StringVar(&q.Mission, "mission", "", "only runs of this mission (`NAME`)")
	cmd.Flags().StringVar(&q.State, "state", "", "only runs in this `STATE`")
	cmd.Flags().IntVar(&limit, "limit", 0, "at most `N` (default 500, on a terminal 50)")
	cmd.Flags().StringVar(&q.Cursor, "cursor", "", "go on where the page before ended")
	completed(cmd, "state", view.RunStates)
	a.completeMissionFlag(cmd)
	return cmd
}

// listRuns prints page after page.
func (a *app) listRuns(ctx context.Context, r RunReader, q view.RunQuery, limit int) error {
	if limit == 0 {
		limit = view.MaxRows
		if a.Terminal && !a.json {
			limit = 50
		}
	}
	t := a.runTable()
	for left := limit; left > 0; {
		q.Limit = min(left, view.MaxRows)
		page, err := r.Runs(ctx, q)
		if err != nil {
			return fmt.Errorf("runs: %w", err)
		}
		left -= len(page.Runs)
		if len(page.Runs) > 0 {
			if err := list(a, t, page.Runs, a.runCells); err != nil {
				return err
			}
		}
		if page.Cursor == "" || page.Cursor == q.Cursor {
			q.Cursor = ""
			break
		}
		q.Cursor = page.Cursor
	}
	switch {
	case a.json:
	case q.Cursor != "":
		a.say("there are more: --cursor %s", q.Cursor)
	case t.widths == nil:
		a.say("no runs")
	}
	return nil
}

func (a *app) runTable() *table {
	return a.table(
		column{title: "RUN", least: 8}, column{title: "MISSION", least: 8}, column{title: "STATE"},
		column{title: "UNITS", right: true, drop: 4}, column{title: "MODE", least: 6, drop: 3},
		column{title: "CREATED", right: true, drop: 2}, column{title: "TOOK", right: true, drop: 5},
		column{title: "WHY", least: 12, drop: 1},
	)
}

// widestWhy is how many columns of the reason stand in a row; show, and --json,
// have all of it.
const widestWhy = 100

func (a *app) runCells(r *view.Run) []cell {
	why := cell{cutWidth(clean(once(r.Why)), widestWhy), stateStyle(r.State)}
	if r.Why == "" {
		why = cell{causeText(r), dim}
	}
	mode := r.Mode
	if r.Parent != "" {
		mode = modeText(r)
	}
	return []cell{
		{text: r.ID}, {text: r.Mission}, {r.State, stateStyle(r.State)}, {text: fmt.Sprintf("%d/%d", r.Done, r.Units)}, {text: mode},
		{text: moment(r.Created.Time, a.Now())}, {text: a.runTook(r)}, why,
	}
}

func (a *app) missionsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "missions", Short: "the missions that can be started by name", Args: words(0, 0),
		RunE: a.online(func(ctx context.Context, c *wire.Client, _ []string) error {
			missions, err := c.Missions(ctx)
			if err != nil {
				return fmt.Errorf("missions: %w", err)
			}
			if len(missions) == 0 && !a.json {
				a.say("no missions: put files into the missions folder, see local.missions")
				return nil
			}
			t := a.table(
				column{title: "MISSION", least: 8}, column{title: "UNITS", right: true, drop: 2}, column{title: "PARAMETERS", least: 10, drop: 4},
				column{title: "STARTS", least: 10, drop: 1}, column{title: "NEXT", right: true, drop: 5}, column{title: "LAST RUN", least: 8, drop: 3},
				column{title: "STATE", least: 8}, column{title: "FAULT", least: 12, drop: 6},
			)
			return list(a, t, missions, a.missionCells)
		}),
	}
}

func (a *app) missionCells(m *view.Mission) []cell {
	triggers := m.Triggers
	if m.Template {
		triggers = "a template: with parameters only"
	}
	next := ""
	if !m.Next.IsZero() {
		next = moment(m.Next.Time, a.Now())
	}
	return []cell{
		{text: m.Name}, {text: fmt.Sprint(m.Units)}, {text: paramsText(m.Params)}, {text: triggers}, {text: next},
		{text: m.LastRun}, {m.State, stateStyle(m.State)}, {firstFault(m.Fault), red},
	}
}

// firstFault is the first of a mission's faults, a line each, and how many more
// there are; plan names them all.
func firstFault(faults string) string {
	first, rest, _ := strings.Cut(faults, "\n")
	if rest == "" {
		return first
	}
	return fmt.Sprintf("%s (%d more)", first, strings.Count(rest, "\n")+1)
}

// paramsText is the parameters as they are typed: year=2012, and day=… for one
// that has to be given.
func paramsText(params view.Object) string {
	parts := make([]string, len(params))
	for i, p := range params {
		_, value, ok := strings.Cut(p.Value, "=")
		if !ok {
			value = "…"
		}
		parts[i] = p.Name + "=" + value
	}
	return strings.Join(parts, " ")
}
