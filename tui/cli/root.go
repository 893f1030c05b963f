package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"apollo11/engine/task"
)

// Program is the command tree. Main adds its own commands to Root and gives it
// a RunE, what the program does without a command.
type Program struct {
	Root *cobra.Command
	app  *app
}

// New makes the tree with the commands that talk to a controller. Root has the
// flags that all commands share: --config, --data, --addr, --token-file,
// --json and --no-color.
func New(env Env) *Program {
	a := &app{Env: env, out: bufio.NewWriterSize(stdout{env.Stdout}, 32<<10)}
	root := &cobra.Command{
		Use:           "apollo11",
		Short:         "a controller that gives tasks to executors and never loses one",
		Args:          a.noSuchCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(env.Stdin)
	root.SetOut(a.out)
	root.SetErr(env.Stderr)
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(helpCommand(a))
	flags := root.PersistentFlags()
	flags.StringVar(&a.config, "config", "", "config `FILE` (default ./config.toml if it is there)")
	flags.StringVar(&a.data, "data", "", "data folder `DIR` (default ./data)")
	flags.StringVar(&a.addr, "addr", "", "controller's `HOST:PORT` (default APOLLO_ADDR, then what stands in the data folder)")
	flags.StringVar(&a.tokenFile, "token-file", "", "`FILE` with the operators' token, readable by its owner only")
	flags.BoolVar(&a.json, "json", false, "print JSON, one object a line")
	flags.BoolVar(&a.noColor, "no-color", false, "no colour (as with NO_COLOR)")
	root.AddGroup(
		&cobra.Group{ID: groupWork, Title: "Work:"},
		&cobra.Group{ID: groupLook, Title: "Look:"},
		&cobra.Group{ID: groupSteer, Title: "Steer:"},
	)
	for group, commands := range a.commands() {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	return &Program{Root: root, app: a}
}

// commands are those of this package, by the help's groups.
func (a *app) commands() map[string][]*cobra.Command {
	return map[string][]*cobra.Command{
		groupWork: {
			a.submitCommand(), a.requeueCommand(), a.editCommand(), a.cancelCommand(), a.dropCommand(),
			a.runCommand(), a.resumeCommand(), a.rerunCommand(), a.forkCommand(), a.rollbackCommand(), a.eventCommand(),
		},
		groupLook: {
			a.statusCommand(), a.executorsCommand(), a.tasksCommand(), a.taskCommand(), a.explainCommand(), a.deadCommand(),
			a.stateCommand(), a.lateCommand(), a.logsCommand(), a.replayCommand(),
			a.missionsCommand(), a.runsCommand(), a.showCommand(), a.diffCommand(),
		},
		groupSteer: {a.pauseCommand(true), a.pauseCommand(false), a.drainCommand(), a.debugCommand()},
	}
}

// The groups of commands in the help.
const (
	groupWork  = "work"
	groupLook  = "look"
	groupSteer = "steer"
)

// Run runs the command that args name, says what went wrong, and returns the
// exit code.
func (p *Program) Run(ctx context.Context, args []string) Code {
	p.Root.SetArgs(commandFirst(p.Root, args))
	p.Root.PersistentPreRun = func(cmd *cobra.Command, _ []string) {
		p.app.dataSet = cmd.Flags().Changed("data")
	}
	err := p.Root.ExecuteContext(ctx)
	if flushed := p.app.out.Flush(); err == nil {
		err = flushed
	}
	return PrintError(p.app.Stderr, err, p.app.paint().on)
}

// commandFirst moves the command's name in front of the flags: only then does
// the library know which flags there are. So flags may stand anywhere.
func commandFirst(root *cobra.Command, args []string) []string {
	takesValue := map[string]bool{} // "--name" and "-n"; a test says that no name is of two kinds
	eachFlag(root, func(f *pflag.Flag) {
		takesValue["--"+f.Name] = f.NoOptDefVal == ""
		if f.Shorthand != "" {
			takesValue["-"+f.Shorthand] = f.NoOptDefVal == ""
		}
	})
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--" || arg == "-":
			return args
		case !strings.HasPrefix(arg, "-"):
			moved := append([]string{arg}, args[:i]...)
			return append(moved, args[i+1:]...)
		case takesValue[arg]:
			i++
		}
	}
	return args
}

// eachFlag visits the flags of a command and of all below it.
func eachFlag(c *cobra.Command, visit func(*pflag.Flag)) {
	c.PersistentFlags().VisitAll(visit)
	c.Flags().VisitAll(visit)
	for _, below := range c.Commands() {
		eachFlag(below, visit)
	}
}

// noSuchCommand is reached by a word that no command has taken.
func (a *app) noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return unknownCommand(cmd, args[0])
}

func unknownCommand(root *cobra.Command, word string) error {
	var names []string
	for _, c := range root.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	hint := root.CommandPath() + " help"
	best := task.Nearest(word, names)
	if i := slices.IndexFunc(names, func(name string) bool { return strings.HasPrefix(name, word) }); i >= 0 {
		best = names[i]
	}
	if best != "" {
		hint = root.CommandPath() + " " + best
	}
	return usage(hint, "unknown command: %s", clean(word))
}

func helpCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "how a command is used",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || found == nil || found == cmd.Root() && len(rest) > 0 {
				return unknownCommand(cmd.Root(), strings.Join(args, " "))
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}

// flagError names the flag that was meant.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	hint := cmd.CommandPath() + " --help"
	if errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "" {
		hint += ", or -- before a word that begins with -"
	} else if unknown != nil {
		var names []string
		visit := func(f *pflag.Flag) { names = append(names, f.Name) }
		cmd.Flags().VisitAll(visit)
		cmd.InheritedFlags().VisitAll(visit)
		if best := task.Nearest(unknown.GetSpecifiedName(), names); best != "" {
			hint = cmd.CommandPath() + " --" + best
		}
	}
	if !cmd.HasParent() {
		return usage(hint, "%w", err) // the program's name is said already
	}
	return usage(hint, "%s: %w", called(cmd), err)
}

// called is a command's name with those above it, as it is typed: state rollback.
func called(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}

// words checks how many arguments a command got; most -1: any number.
func words(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		hint := strings.TrimSuffix(cmd.CommandPath(), " "+cmd.Name()) + " " + cmd.Use
		switch {
		case len(args) < least:
			return usage(hint, "%s: %s", called(cmd), needs(least, len(args)))
		case most == 0 && len(args) > 0:
			return usage(hint, "%s: %s: takes flags only", called(cmd), clean(args[0]))
		case most > 0 && len(args) > most:
			return usage(hint, "%s: %s: one word too many: %s was the last", called(cmd), clean(args[most]), clean(args[most-1]))
		}
		return nil
	}
}

func needs(least, got int) string {
	if got == 0 && least == 1 {
		return "which one"
	}
	return fmt.Sprintf("wants %s, got %d", task.Plural(least, "word"), got)
}
