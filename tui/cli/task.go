package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

func (a *app) taskCommand() *cobra.Command {
	return &cobra.Command{
		Use: "task ID", Short: "all that is known of one task", Args: words(1, 1),
		RunE: a.online(func(ctx context.Context, c *wire.Client, args []string) error {
			d, err := c.Task(ctx, args[0])
			if err != nil {
				return nowhere(fmt.Errorf("task: %s: %w", args[0], err), args[0])
			}
			if a.json {
				if d.Attempts == nil {
					d.Attempts = []view.Attempt{}
				}
				return a.object(d)
			}
			return a.printTask(d)
		}),
	}
}

func (a *app) printTask(d *view.Detail) error {
	fields := []field{
		{name: "task", text: d.ID},
		{name: "type", text: d.Type},
		{name: "key", text: d.Key},
		{name: "state", text: d.State, style: stateStyle(d.State)},
		{name: "error", text: failText(d.ErrorClass, d.Error), style: red},
		{name: "attempt", text: attemptText(d)},
		{name: "version", text: versionText(d.Version)},
		{name: "executor", text: d.Executor},
		{name: "progress", text: d.Progress},
		{name: "submitted", text: a.when(d.Submitted)},
		{name: "not before", text: a.when(d.NotBefore)},
		{name: "deadline", text: a.when(d.Deadline)},
		{name: "due", text: a.when(d.Due)},
		{name: "started", text: a.when(d.Started)},
		{name: "finished", text: a.when(d.Finished)},
		{name: "saw state", text: sawText(d)},
	}
	fields = append(fields, valueFields("input", d.Inputs)...)
	fields = append(fields, valueFields("context", d.Context)...)
	fields = append(fields, valueFields("output", d.Outputs)...)
	fields = append(fields, field{"late result", d.Late, yellow})
	if err := a.page(a.out, fields); err != nil || len(d.Attempts) == 0 {
		return err
	}
	fmt.Fprintln(a.out)
	t := a.table(
		column{title: "TRY", right: true}, column{title: "VERSION", right: true, drop: 2}, column{title: "EXECUTOR", least: 8, drop: 1},
		column{title: "OUTCOME"}, column{title: "STARTED", right: true, drop: 3}, column{title: "TOOK", right: true, drop: 4},
		column{title: "ERROR", least: 12},
	)
	return list(a, t, d.Attempts, a.attemptCells)
}

func (a *app) attemptCells(t *view.Attempt) []cell {
	outcome := cell{t.Outcome, red}
	if t.Outcome == task.Succeeded.String() {
		outcome.style = green
	}
	took := time.Duration(t.MS) * time.Millisecond
	if took == 0 && !t.Finished.IsZero() {
		took = t.Finished.Sub(t.Started.Time)
	}
	return []cell{
		{text: strconv.FormatInt(t.Attempt, 10)}, {text: versionText(t.Version)}, {text: t.Executor}, outcome,
		{text: moment(t.Started.Time, a.Now())}, {text: span(took)}, {text: t.Error},
	}
}

func valueFields(name string, values view.Object) []field {
	fields := make([]field, len(values))
	for i, v := range values {
		fields[i] = field{name: name, text: v.Name + " = " + v.Value}
	}
	return fields
}

// when is a moment with how far away it is.
func (a *app) when(t view.Time) string {
	if t.IsZero() {
		return ""
	}
	now := a.Now()
	if t.After(now) {
		return fmt.Sprintf("%s (in %s)", moment(t.Time, now), span(t.Sub(now)))
	}
	return fmt.Sprintf("%s (%s ago)", moment(t.Time, now), span(now.Sub(t.Time)))
}

func attemptText(d *view.Detail) string {
	if d.Attempt == 0 {
		return "none yet"
	}
	text := strconv.FormatInt(d.Attempt, 10)
	if d.Retries >= 0 {
		text += fmt.Sprintf(", %s allowed", task.Plural(d.Retries, "repeat"))
	}
	if d.Crashes > 0 {
		text += fmt.Sprintf(", %s lost under it", task.Plural(d.Crashes, "executor"))
	}
	return text
}

func versionText(version int64) string {
	if version == 0 {
		return ""
	}
	return task.Version(version).String()
}

// sawText is the state that the last attempt worked on, beside the present one.
func sawText(d *view.Detail) string {
	if d.Attempt == 0 {
		return ""
	}
	return fmt.Sprintf("version %d, now %d", d.StateVersion, d.StateNow)
}
