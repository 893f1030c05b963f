package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"apollo11/engine/mission"
	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

// starting is the flags of run and what came of them.
type starting struct {
	given string // as it was typed
	start wire.Start
	text  []byte // of the file
	wait  bool
}

const runHint = "apollo11 run MISSION name=value"

func (a *app) runCommand() *cobra.Command {
	s := &starting{}
	cmd := &cobra.Command{
		Use: "run MISSION [name=value…]", Short: "start a mission; prints the run's id", Args: words(1, -1),
		Long: "Start a mission that the controller knows by name, or one in a file, which is read here and sent. It is\n" +
			"checked first; if anything is wrong with it, every fault is named and nothing starts.",
		Example: "  apollo11 run weather extremes=false --wait\n  apollo11 run ./pipeline.yaml --check",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.prepare(cmd, args); err != nil {
				return err
			}
			return a.online(func(ctx context.Context, c *wire.Client, _ []string) error { return a.run(ctx, c, s) })(cmd, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&s.start.Key, "key", "", "names the run within its mission (`KEY`); the same again is the same run")
	flags.IntVar(&s.start.Sample, "sample", 0, "try it on `N` records; what it does to the global state is thrown away")
	flags.BoolVar(&s.start.Check, "check", false, "only check it")
	waitFlag(cmd, &s.wait)
	a.completeMission(cmd)
	return cmd
}

func waitFlag(cmd *cobra.Command, wait *bool) {
	cmd.Flags().BoolVar(wait, "wait", false, "tell what happens until the run has ended; exit 1 if it did not succeed")
}

// prepare checks all that can be checked here.
func (s *starting) prepare(cmd *cobra.Command, args []string) (err error) {
	s.given = args[0]
	switch {
	case cmd.Flags().Changed("sample") && s.start.Sample < 1:
		return usage("apollo11 run MISSION --sample 100", "run: --sample %d: want 1 or more", s.start.Sample)
	case cmd.Flags().Changed("key") && task.CheckID(s.start.Key) != nil:
		return usage("", "run: --key: %w", task.CheckID(s.start.Key))
	case s.start.Check && s.wait:
		return usage("", "run: --check together with --wait: want one of them")
	}
	if s.start.Params, err = parsePairs(args[1:]); err != nil {
		return usage(runHint, "run: %w", err)
	}
	if !isFile(s.given) {
		s.start.Mission = s.given
		return NoMissionFile("run", s.given)
	}
	s.start.File = s.given
	s.text, err = readMissionFile(s.given)
	return err
}

// missionFiles are the endings of mission files.
var missionFiles = []string{".toml", ".yaml", ".yml"}

// isFile tells a mission's file from a mission's name.
func isFile(what string) bool {
	return slices.Contains(missionFiles, filepath.Ext(what)) || strings.ContainsAny(what, `/\`)
}

// NoMissionFile refuses a file that is there under a name that no mission's file
// has; anything else is no business of its.
func NoMissionFile(command, what string) error {
	extension := filepath.Ext(what)
	if info, err := os.Stat(what); extension == "" || err != nil || info.IsDir() {
		return nil
	}
	return usage("", "%s: %s: a mission file ends in .toml, .yaml or .yml", command, clean(what))
}

// readMissionFile reads a file and refuses what nobody could read as a mission.
func readMissionFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, &ExitError{Code: Failed, Err: fmt.Errorf("run: mission file %s: %w", name, bare(err)), Hint: "apollo11 missions"}
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mission.MaxFile+1))
	if err != nil {
		return nil, &ExitError{Code: Failed, Err: fmt.Errorf("run: mission file %s: %w", name, bare(err))}
	}
	if _, err := mission.Parse(name, data); err != nil {
		return nil, &ExitError{Code: Usage, Err: err}
	}
	return data, nil
}

// run starts a mission and, if asked to, waits for its end.
func (a *app) run(ctx context.Context, c *wire.Client, s *starting) error {
	w, err := a.watcher(ctx, c, "run", s.wait)
	if err != nil {
		return err
	}
	if s.start.File != "" {
		err = c.Upload(ctx, s.start.File, s.text)
	}
	var run *view.Run
	if err == nil {
		run, err = c.Start(ctx, s.start)
	}
	if err != nil {
		return s.refused(err)
	}
	if s.start.Check {
		return a.done(run, "%s: %s, passed the check, %s", run.Mission, task.Plural(run.Units, "unit"), shortHash(run.Spec))
	}
	return w.started(ctx, run)
}

// refused is a mission that the controller did not start: its faults stand with
// their places, so nothing is put before them.
func (s *starting) refused(err error) error {
	switch {
	case isCode(err, wire.CodeInvalid):
		return &ExitError{Code: Usage, Err: err, Hint: "apollo11 plan " + Quoted(s.given) + s.typed()}
	case notFound(err):
		return hinted(fmt.Errorf("run: %s: %w", s.given, err), wire.CodeNotFound, "apollo11 missions, or the mission's file: apollo11 run ./"+s.given+".toml")
	}
	return fmt.Errorf("run: %s: %w", s.given, err)
}

// typed is the parameters as they were typed.
func (s *starting) typed() string {
	text := ""
	for _, v := range s.start.Params {
		text += " " + Quoted(v.Name+"="+v.Value)
	}
	return text
}

func (a *app) eventCommand() *cobra.Command {
	return &cobra.Command{
		Use: "event NAME [name=value…]", Short: "say that something happened; starts the missions that wait for it", Args: words(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			values, err := parsePairs(args[1:])
			if err == nil {
				err = task.CheckKey(args[0])
			}
			if err != nil {
				return usage("apollo11 event NAME name=value", "event: %w", err)
			}
			return a.online(func(ctx context.Context, c *wire.Client, _ []string) error {
				runs, err := c.Event(ctx, wire.Happening{Name: args[0], Params: values})
				if err != nil {
					return hinted(fmt.Errorf("event: %s: %w", args[0], err), wire.CodeNotFound, "apollo11 missions")
				}
				return a.eventDone(args[0], runs)
			})(cmd, args)
		},
	}
}

// eventDone prints the runs that an event started.
func (a *app) eventDone(name string, runs []view.Run) error {
	if len(runs) == 0 {
		a.say("event %s: nothing waits for it, so nothing started", name)
	}
	for i := range runs {
		if err := a.printRunID(&runs[i]); err != nil {
			return err
		}
		if !a.json {
			a.say("event %s: started %s of %s", name, runs[i].ID, runs[i].Mission)
		}
	}
	return nil
}

// printRunID prints a run for a program: its id, or all that is known.
func (a *app) printRunID(r *view.Run) error {
	if a.json {
		return a.object(r)
	}
	_, err := io.WriteString(a.out, clean(r.ID)+"\n")
	return err
}
