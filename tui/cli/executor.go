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

func (a *app) executorsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "executors", Short: "the executors and what each works on", Args: words(0, 0),
		RunE: a.online(func(ctx context.Context, c *wire.Client, _ []string) error {
			all, err := c.Executors(ctx)
			if err != nil {
				return fmt.Errorf("executors: %w", err)
			}
			if len(all) == 0 && !a.json {
				a.say("no executors: start one: apollo11 exec")
				return nil
			}
			return list(a, a.executorTable(), all, executorCells)
		}),
	}
}

func (a *app) executorTable() *table {
	return a.table(
		column{title: "ID", least: 16}, column{title: "STATE"}, column{title: "BEAT", right: true, drop: 6},
		column{title: "TASK", least: 12}, column{title: "VERSION", right: true, drop: 3},
		column{title: "SAW", right: true, drop: 3}, column{title: "LOAD", right: true, drop: 5},
		column{title: "DONE", right: true, drop: 4}, column{title: "FAILED", right: true, drop: 4},
		column{title: "TYPES", least: 10, drop: 5}, column{title: "HOST", least: 8, drop: 1}, column{title: "NOTE", least: 10, drop: 2},
	)
}

func executorCells(e *view.Executor) []cell {
	state := e.State
	if e.Late {
		state += ", late"
	}
	version, saw := "", ""
	if e.Task != "" {
		version, saw = task.Version(e.Version).String(), strconv.FormatInt(e.StateVersion, 10)
	}
	return []cell{
		{text: e.ID}, {state, executorStyle(e)}, {text: beat(e)}, {text: e.Task}, {text: version}, {text: saw},
		{text: strconv.FormatInt(e.Load, 10)}, {text: strconv.FormatInt(e.Done, 10)}, {text: strconv.FormatInt(e.Failed, 10)},
		{text: typesText(e.Types)}, {text: e.Host}, {e.Reason, dim},
	}
}

// widestTypes is how many columns of the types stand in a row; --json has them all.
const widestTypes = 32

// typesText is the types, of many the first and how many there are.
func typesText(list string) string {
	if textWidth(list) <= widestTypes {
		return list
	}
	names := view.Names(list)
	text := task.Plural(len(names), "type") + ": "
	for i, name := range names {
		if i > 0 && textWidth(text+name) > widestTypes {
			break
		}
		text += name + ", "
	}
	return text + "…"
}

func executorStyle(e *view.Executor) style {
	if e.Late {
		return yellow
	}
	return stateStyle(e.State)
}

// beat is how long ago an executor was heard.
func beat(e *view.Executor) string {
	age := span(time.Duration(e.HeartbeatMS) * time.Millisecond)
	switch {
	case e.State == "offline" && e.HeartbeatMS < 0:
		return "gone"
	case e.State == "offline":
		return "gone " + age
	case e.HeartbeatMS < 0:
		return "never"
	}
	return age
}

func (a *app) drainCommand() *cobra.Command {
	return &cobra.Command{
		Use: "drain EXECUTOR", Short: "let an executor finish what it runs and give it nothing new", Args: words(1, 1),
		RunE: a.online(func(ctx context.Context, c *wire.Client, args []string) error {
			if err := c.Drain(ctx, args[0]); err != nil {
				return hinted(fmt.Errorf("drain: %s: %w", args[0], err), wire.CodeNotFound, "apollo11 executors")
			}
			return a.done(map[string]any{"executor": args[0], "draining": true}, "draining %s", args[0])
		}),
	}
}
