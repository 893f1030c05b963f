package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"apollo11/engine/task"
	"apollo11/wire"
)

// done reports a change: as an object for programs, else in words.
func (a *app) done(object any, format string, args ...any) error {
	if a.json {
		return a.object(object)
	}
	a.say(format, args...)
	return nil
}

// hinted gives a controller's refusal a better hint than its code alone has.
func hinted(err error, code wire.Code, hint string) error {
	if isCode(err, code) {
		exit, _ := meaning(code)
		return &ExitError{Code: exit, Err: err, Hint: hint}
	}
	return err
}

// hintOf is the hint that an error has already, else another.
func hintOf(err error, other string) string {
	var exit *ExitError
	if errors.As(err, &exit) && exit.Hint != "" {
		return exit.Hint
	}
	return other
}

// pauseCommand is `pause` and its opposite.
func (a *app) pauseCommand(on bool) *cobra.Command {
	name, did, short := "pause", "paused", "stop giving tasks out, of one type or of all"
	if !on {
		name, did, short = "continue", "continued", "give tasks out again"
	}
	return &cobra.Command{
		Use: name + " [TYPE]", Short: short, Args: words(0, 1),
		RunE: a.online(func(ctx context.Context, c *wire.Client, args []string) error {
			typ, what := "", "everything"
			if len(args) == 1 {
				typ, what = args[0], args[0]
				if err := task.CheckType(typ); err != nil {
					return usage("apollo11 "+name+" TYPE", "%s: %w", name, err)
				}
			}
			warning, err := unheardOf(ctx, c, typ)
			if err == nil {
				err = c.Pause(ctx, typ, on)
			}
			if err != nil {
				return fmt.Errorf("%s: %s: %w", name, what, err)
			}
			if warning != "" {
				a.warn("%s", warning)
			}
			return a.done(map[string]any{"type": typ, "paused": on}, "%s %s", did, what)
		}),
	}
}

// unheardOf warns of a type that neither a task nor an executor has: it may be a
// slip, and a person would think that the right one is paused.
func unheardOf(ctx context.Context, c *wire.Client, typ string) (string, error) {
	if typ == "" {
		return "", nil
	}
	queues, err := c.Queues(ctx)
	if err != nil {
		return "", err
	}
	names := make([]string, len(queues))
	for i, q := range queues {
		if names[i] = q.Type; q.Type == typ {
			return "", nil
		}
	}
	warning := "no task and no executor has type " + typ
	const most = 8
	near := task.Nearest(typ, names)
	switch {
	case near != "":
		warning += ": did you mean " + near + "?"
	case len(names) > 0 && len(names) <= most:
		warning += "; known are " + strings.Join(names, ", ")
	}
	return warning, nil
}

func (a *app) debugCommand() *cobra.Command {
	return &cobra.Command{
		Use: "debug on|off", Short: "every message in and out in full to the log, or not", Args: words(1, 1),
		ValidArgs: []string{"on", "off"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] != "on" && args[0] != "off" {
				return usage("apollo11 debug on", "debug: %s: want on or off", args[0])
			}
			return a.online(a.setDebug)(cmd, args)
		},
	}
}

func (a *app) setDebug(ctx context.Context, c *wire.Client, args []string) error {
	if err := c.Debug(ctx, args[0] == "on"); err != nil {
		return fmt.Errorf("debug: %w", err)
	}
	return a.done(map[string]any{"debug": args[0] == "on"}, "debug is %s", args[0])
}
