package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

// filter is the flags that choose tasks.
type filter struct {
	typ    string
	state  string
	error  string
	older  time.Duration
	limit  int
	cursor string
}

func (f *filter) flags(cmd *cobra.Command, states bool) {
	cmd.Flags().StringVar(&f.typ, "type", "", "only tasks of this `TYPE`")
	if states {
		cmd.Flags().StringVar(&f.state, "state", "", "only tasks in these `STATES`, with commas")
		cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(taskStates(), cobra.ShellCompDirectiveNoFileComp))
	}
	cmd.Flags().StringVar(&f.error, "error", "", "only tasks whose last error has this `TEXT`, or class")
	cmd.Flags().DurationVar(&f.older, "older", 0, "only tasks submitted at least so long ago, such as 10m")
}

func (f *filter) pageFlags(cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.limit, "limit", 0, "at most `N` (default 500, on a terminal 50)")
	cmd.Flags().StringVar(&f.cursor, "cursor", "", "go on where the page before ended")
}

// set reports whether the flags choose at all.
func (f *filter) set() bool { return f.typ != "" || f.state != "" || f.error != "" || f.older != 0 }

// query checks the flags.
func (f *filter) query(command string) (view.Query, error) {
	q := view.Query{Type: f.typ, Error: f.error, Older: f.older, Cursor: f.cursor}
	if f.typ != "" {
		if err := task.CheckType(f.typ); err != nil {
			return q, usage("", "%s: --type: %w", command, err)
		}
	}
	if f.older < 0 || f.limit < 0 {
		return q, usage("", "%s: --older and --limit cannot be negative", command)
	}
	for name := range strings.SplitSeq(f.state, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		s, err := task.ParseState(name)
		if err != nil {
			hint := "apollo11 " + command + " --state " + strings.Join(taskStates(), ",")
			if best := task.Nearest(name, taskStates()); best != "" {
				hint = "apollo11 " + command + " --state " + best
			}
			return q, usage(hint, "%s: --state: %w", command, err)
		}
		q.States = append(q.States, s)
	}
	return q, nil
}

func (a *app) tasksCommand() *cobra.Command {
	var f filter
	cmd := &cobra.Command{
		Use: "tasks", Short: "the tasks, newest first", Args: words(0, 0),
		RunE: a.listTasks("tasks", &f),
	}
	f.flags(cmd, true)
	f.pageFlags(cmd)
	return cmd
}

func (a *app) deadCommand() *cobra.Command {
	f := filter{state: task.Dead.String()}
	cmd := &cobra.Command{
		Use: "dead", Short: "the dead letters, newest first", Args: words(0, 0),
		RunE: a.listTasks("dead", &f),
	}
	f.flags(cmd, false)
	f.pageFlags(cmd)
	return cmd
}

func (a *app) listTasks(command string, f *filter) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		q, err := f.query(command)
		if err != nil {
			return err
		}
		return a.online(func(ctx context.Context, c *wire.Client, _ []string) error {
			if err := a.pages(ctx, c, q, f.limit); err != nil {
				return fmt.Errorf("%s: %w", command, err)
			}
			return nil
		})(cmd, args)
	}
}

// pages prints up to limit tasks, page by page, so that a long list needs no
// memory.
func (a *app) pages(ctx context.Context, c *wire.Client, q view.Query, limit int) error {
	if limit == 0 {
		limit = view.MaxRows
		if a.Terminal && !a.json {
			limit = 50
		}
	}
	t := a.taskTable()
	for left := limit; left > 0; {
		q.Limit = min(left, view.MaxRows)
		page, err := c.Tasks(ctx, q)
		if err != nil {
			return err
		}
		left -= len(page.Tasks)
		if len(page.Tasks) > 0 {
			if err := list(a, t, page.Tasks, a.taskCells); err != nil {
				return err
			}
		}
		if page.Cursor == "" || page.Cursor == q.Cursor {
			q.Cursor = ""
			break
		}
		q.Cursor = page.Cursor
	}
	if q.Cursor != "" && !a.json {
		a.say("there are more: --cursor %s", q.Cursor)
	} else if t.widths == nil && !a.json {
		a.say("no tasks")
	}
	return nil
}

func (a *app) taskTable() *table {
	return a.table(
		column{title: "ID", least: 14}, column{title: "TYPE", least: 8, drop: 6}, column{title: "STATE"},
		column{title: "TRY", right: true, drop: 5}, column{title: "EXECUTOR", least: 8, drop: 1},
		column{title: "SUBMITTED", right: true, drop: 3}, column{title: "TOOK", right: true, drop: 2},
		column{title: "RESULT", least: 12},
	)
}

func (a *app) taskCells(t *view.Task) []cell {
	result := cell{text: pairs(t.Outputs)}
	if t.ErrorClass != "" || t.Error != "" {
		result = cell{failText(t.ErrorClass, t.Error), red}
		if t.State == task.Succeeded.String() {
			result = cell{text: pairs(t.Outputs)}
		}
	}
	return []cell{
		{text: t.ID}, {text: t.Type}, {t.State, stateStyle(t.State)}, {text: strconv.FormatInt(t.Attempt, 10)},
		{text: t.Executor}, {text: moment(t.Submitted.Time, a.Now())}, {text: a.took(t)}, result,
	}
}

// took is how long the last attempt ran, or runs.
func (a *app) took(t *view.Task) string {
	switch {
	case t.Started.IsZero():
		return ""
	case t.Finished.After(t.Started.Time):
		return span(t.Finished.Sub(t.Started.Time))
	case t.State == task.Running.String() || t.State == task.Assigned.String():
		return span(max(0, a.Now().Sub(t.Started.Time)))
	}
	return ""
}

func failText(class, text string) string {
	text = once(text)
	switch {
	case class == "":
		return text
	case text == "":
		return class
	case text == class || strings.HasPrefix(text, class+":"):
		return text // it says so itself
	}
	return class + ": " + text
}

// once leaves out what begins a text twice: a class or a state, before a colon.
func once(text string) string {
	for {
		head, rest, ok := strings.Cut(text, ": ")
		if !ok || rest != head && !strings.HasPrefix(rest, head+": ") {
			return text
		}
		text = rest
	}
}

// widestValue is how many characters of a value stand in a line with others;
// --json, and task ID, have all of it.
const widestValue = 200

// cutRunes shortens a text, and says how long it was.
func cutRunes(s string, most int) string {
	n := 0
	for i := range s {
		if n == most {
			return fmt.Sprintf("%s… (%d bytes)", s[:i], len(s))
		}
		n++
	}
	return s
}

// pairs shows values in one line, the long ones cut.
func pairs(values view.Object) string {
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = v.Name + "=" + cutRunes(task.Shown(v.Value), widestValue)
	}
	return strings.Join(parts, " ")
}

// selection is what a command on many tasks acts on.
func (f *filter) selection(command string, ids []string, all bool, states []task.State) (view.Selection, error) {
	what := "ID…"
	if command == "cancel" {
		what = "RUN, or ID…"
	}
	hint := "apollo11 " + command + " " + what + ", or --type TYPE, --error TEXT, or --all"
	switch {
	case len(ids) > 0 && (all || f.set()):
		return view.Selection{}, usage(hint, "%s: ids together with a filter: want one of them", command)
	case len(ids) == 0 && !all && !f.set():
		return view.Selection{}, usage(hint, "%s: which tasks", command)
	}
	for _, id := range ids {
		if err := task.CheckID(id); err != nil {
			return view.Selection{}, usage("", "%s: %w", command, err)
		}
	}
	q, err := f.query(command)
	if len(q.States) == 0 {
		q.States = slices.Clone(states)
	}
	if len(ids) > 0 {
		q = view.Query{}
	}
	return view.Selection{IDs: ids, All: len(ids) == 0, Query: q}, err
}
