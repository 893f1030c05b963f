package start

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"apollo11/engine/config"
	"apollo11/engine/mission"
	"apollo11/tui/cli"
	"apollo11/wire/controller"
)

func (p *program) demoCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "demo", Short: "the console on a demo at work: real weather data, retries, a dead letter", Args: cobra.NoArgs, RunE: p.demo,
		Long: "The mission weather on real data: units that are processes, files from unit to unit, retries and a dead letter,\n" +
			"on a temporary folder. In a terminal it opens the console on it; without one, or with --no-tui, it runs to the\n" +
			"end, prints the timeline, puts the dead letter right by a fork, and verifies the journal.",
	}
	c.Flags().Bool("no-tui", false, "headless: run to the end, print the timeline, verify the journal")
	return c
}

// pace is how long a unit of the watched demo takes, in seconds: long enough to
// be seen at work.
const pace = "5"

// watchedBeat is the watched demo's heartbeat: often enough to be seen.
const watchedBeat = 2 * time.Second

// demo runs the bundled work on a temporary folder: to be watched in the
// console, or, without a terminal, to its end.
func (p *program) demo(cmd *cobra.Command, _ []string) error {
	dir, err := os.MkdirTemp("", "apollo11-demo-")
	if err != nil {
		return err
	}
	if headless(cmd) || p.screen() != "" {
		defer os.RemoveAll(dir)
		return p.demoToEnd(cmd, dir)
	}
	return p.demoWatched(cmd, dir)
}

// demoServe is the demo's controller, with the bundled examples.
func (p *program) demoServe(dir string) (s serve, err error) {
	c, err := p.demoConfig(dir)
	if err != nil {
		return s, err
	}
	s = serve{program: p, config: c, words: io.Discard}
	examples, err := s.examples()
	s.config.Local.Units, s.config.Local.Missions = filepath.Join(examples, "units"), filepath.Join(examples, "missions")
	return s, err
}

// demoToEnd prints the timeline, then checks the journal.
func (p *program) demoToEnd(cmd *cobra.Command, dir string) error {
	s, err := p.demoServe(dir)
	if err != nil {
		return err
	}
	err = s.run(cmd.Context(), func(ctx context.Context, addr string) error {
		return p.Tour(ctx, cli.Tour{Addr: addr})
	})
	if err != nil {
		return exit(err)
	}
	report, verified, err := controller.Verify(s.config.Data, nil)
	if err != nil {
		return exit(err)
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), sentence(report, verified))
	return err
}

// demoWatched shows the console on the demo at work; its folder stays.
func (p *program) demoWatched(cmd *cobra.Command, dir string) error {
	s, err := p.demoServe(dir)
	if err != nil {
		return err
	}
	s.config.Heartbeat.Interval = watchedBeat
	err = s.withConsole(cmd.Context(), func(ctx context.Context, addr string) error {
		return p.Watched(ctx, cli.Tour{Addr: addr, Pace: pace})
	})
	if err != nil {
		return exit(err)
	}
	folder := s.config.Data
	fmt.Fprintf(p.Stderr, "apollo11: the demo's folder stays: %s\n", dir)
	for _, next := range []string{"replay --data " + folder, "verify " + folder, "--config " + filepath.Join(dir, "demo.toml") + " --data " + folder} {
		fmt.Fprintf(p.Stderr, "hint: %s %s\n", command(p.calledAs()), next)
	}
	return nil
}

// demoConfig is the demo's own configuration: none of the person's files.
func (p *program) demoConfig(dir string) (config.Config, error) {
	text, err := fs.ReadFile(mission.Examples(), "demo.toml")
	if err != nil {
		return config.Config{}, err
	}
	file := filepath.Join(dir, "demo.toml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return config.Config{}, err
	}
	return config.Load(p.Defaults, file, p.Environ, map[string]string{
		"data": filepath.Join(dir, "data"), "listen": "127.0.0.1:0", "local.executors": "2", "local.share": filepath.Join(dir, "share"),
	})
}
