package start

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"apollo11/engine/config"
	"apollo11/engine/mission"
	"apollo11/tui/cli"
	"apollo11/wire/controller"
)

func (p *program) demoCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "demo", Short: "the tour: real weather data, retries, a dead letter, the timeline", Args: cobra.NoArgs, RunE: p.demo,
	}
	c.Flags().Bool("no-tui", false, "headless: run to the end, print the timeline, verify the journal")
	return c
}

// demo runs the bundled work on a temporary folder, then checks the journal.
func (p *program) demo(cmd *cobra.Command, _ []string) error {
	dir, err := os.MkdirTemp("", "apollo11-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c, err := p.demoConfig(dir)
	if err != nil {
		return err
	}
	s := serve{program: p, config: c, words: io.Discard}
	examples, err := s.examples()
	if err != nil {
		return err
	}
	s.config.Local.Units = filepath.Join(examples, "units")
	err = s.run(cmd.Context(), func(ctx context.Context, addr string) error {
		return p.Tour(ctx, cli.Tour{Addr: addr, Data: filepath.Join(examples, "data", "seattle-weather.csv")})
	})
	if err != nil {
		return exit(err)
	}
	report, verified, err := controller.Verify(c.Data, nil)
	if err != nil {
		return exit(err)
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), sentence(report, verified))
	return err
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
		"data": filepath.Join(dir, "data"), "listen": "127.0.0.1:0", "local.executors": "2",
	})
}
