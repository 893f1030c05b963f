package start

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"os/user"
	"runtime/debug"
	"strings"
	"syscall"
	"time"
	_ "time/tzdata" // time zones of triggers, also on a machine that has none

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"apollo11/engine"
	"apollo11/engine/config"
	"apollo11/engine/unit"
	"apollo11/snapshot"
	"apollo11/tui/cli"
	"apollo11/wire/controller"
	"apollo11/wire/server"
)

// World is what main found: nothing else here reads the environment.
type World struct {
	Args     []string
	Environ  []string
	Stdin    *os.File
	Stdout   *os.File
	Stderr   *os.File
	Defaults []byte // config.toml as embedded
	Now      func() time.Time
}

// variable is an environment variable's value, empty if it is not set.
func (w *World) variable(name string) string {
	value := ""
	for _, entry := range w.Environ {
		if k, v, ok := strings.Cut(entry, "="); ok && k == name {
			value = v
		}
	}
	return value
}

// program is the command tree with what this package's commands share.
type program struct {
	World
	*cli.Program
	listen string
	haste  chan struct{} // closed by the second signal: end at once
}

// Run runs the program and returns its exit code.
func Run(w World) int {
	p := &program{World: w, haste: make(chan struct{})}
	p.Program = cli.New(p.env())
	p.Root.Version = build()
	p.Root.RunE = p.controller
	p.Root.Flags().Bool("no-tui", false, "headless: log lines, no console")
	p.Root.Flags().StringVar(&p.listen, "listen", "", "`HOST:PORT` to listen on; port 0 takes a free one")
	p.Root.AddCommand(
		&cobra.Command{Use: "version", Short: "print the version", Args: cobra.NoArgs, RunE: p.version},
		p.execCommand(), p.demoCommand(), p.planCommand(), p.verifyCommand(), p.repairCommand(), p.AttachCommand(),
	)
	p.addBench()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go p.signals(cancel)
	return int(p.Program.Run(ctx, w.Args))
}

// signals ends the context at the first signal, and asks for haste at the
// second. A terminal that goes away, or stops reading, ends nothing.
func (p *program) signals(cancel func()) {
	signal.Ignore(syscall.SIGHUP)
	asked := make(chan os.Signal, 2)
	signal.Notify(asked, syscall.SIGINT, syscall.SIGTERM)
	<-asked
	cancel()
	<-asked
	close(p.haste)
}

func (p *program) env() cli.Env {
	stdout := int(p.Stdout.Fd())
	terminal := term.IsTerminal(stdout)
	width, _, err := term.GetSize(stdout)
	if err != nil {
		width = 0
	}
	return cli.Env{
		Stdin: p.Stdin, Stdout: p.Stdout, Stderr: p.Stderr, Terminal: terminal, Ask: term.IsTerminal(int(p.Stdin.Fd())),
		Color: terminal && p.variable("NO_COLOR") == "", ASCII: p.ascii(), Width: width, Now: p.Now, AddrEnv: p.variable("APOLLO_ADDR"),
		Actor: actor(), Build: build(), FolderID: controller.FolderID,
		Settings: func(file string) (cli.Settings, error) {
			c, err := p.config(file, nil)
			return cli.Settings{Data: c.Data, TokenFile: c.Auth.OperatorTokenFile, Theme: p.theme(c.Console.Theme)}, err
		},
		Offline: p.offline,
	}
}

// actor is who asks, for the records.
func actor() string {
	name, host := "somebody", "somewhere"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return name + "@" + host
}

// build is the program's version, from what the compiler knows.
func build() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (version == "" || version == "(devel)") {
			version = s.Value[:min(12, len(s.Value))]
		}
	}
	return cmp.Or(version, "(devel)")
}

func (p *program) version(cmd *cobra.Command, _ []string) error {
	_, err := fmt.Fprintln(cmd.OutOrStdout(), "apollo11", build())
	return err
}

// config reads file, or ./config.toml if there is one, over the defaults; then
// variables, then flags.
func (p *program) config(file string, flags map[string]string) (config.Config, error) {
	if file == "" {
		if _, err := os.Stat("config.toml"); err == nil {
			file = "config.toml"
		}
	}
	c, err := config.Load(p.Defaults, file, p.Environ, flags)
	if err != nil {
		return c, &cli.ExitError{Code: cli.Usage, Err: err}
	}
	return c, nil
}

// flagged is the configuration of a command that starts something.
func (p *program) flagged(cmd *cobra.Command) (config.Config, error) {
	flags := map[string]string{}
	for _, name := range []string{"data", "listen"} {
		if f := cmd.Flag(name); f != nil && f.Changed {
			flags[name] = f.Value.String()
		}
	}
	return p.config(cmd.Flag("config").Value.String(), flags)
}

// warnOfVariables names those that were likely meant as settings and set nothing.
func (p *program) warnOfVariables(log *slog.Logger) {
	for _, m := range config.Misspelt(p.Environ, unit.OwnVariables()) {
		log.Warn("an environment variable sets nothing: is its name misspelt?", "variable", m.Variable, "nearest", m.Meant)
	}
}

// served refuses what the configuration asks for and this version does not do:
// to start without it would leave open what somebody means to have closed.
func served(c *config.Config) error {
	for _, asked := range []struct{ setting, value string }{
		{"auth.tls_cert", c.Auth.TLSCert}, {"console.ssh_listen", c.Console.SSHListen},
	} {
		if asked.value != "" {
			return &cli.ExitError{
				Code: cli.Usage, Err: fmt.Errorf("%s: is not there yet in this version", asked.setting),
				Hint: "leave it empty, and reach the controller through a tunnel, such as ssh -L",
			}
		}
	}
	return nil
}

// exit gives an error of the controller's parts its exit code and its way out.
func exit(err error) error {
	var already *cli.ExitError
	if err == nil || errors.As(err, &already) {
		return err
	}
	e := &cli.ExitError{Code: cli.Failed, Err: err}
	var damage *snapshot.Damage
	switch {
	case errors.As(err, &damage):
		e.Code, e.Hint = cli.Damaged, damage.Hint
	case errors.Is(err, snapshot.ErrMoved):
		e.Code, e.Hint = cli.Damaged, "bring the folder back and start again: what was acknowledged is in it; if it was meant to go, only start again"
	case errors.Is(err, engine.ErrJournal), errors.Is(err, snapshot.ErrLost), errors.Is(err, snapshot.ErrVersion), errors.Is(err, snapshot.ErrGone):
		e.Code = cli.Damaged
	case errors.Is(err, snapshot.ErrLocked):
		e.Code, e.Hint = cli.InUse, "talk to the one that runs: apollo11 status; or choose another folder with --data DIR"
	case errors.Is(err, server.ErrOpenAddress):
		e.Code, e.Hint = cli.Usage, "set auth.executor_token_file and auth.operator_token_file, or listen on 127.0.0.1"
	case errors.Is(err, syscall.EADDRINUSE):
		e.Code, e.Hint = cli.InUse, "another port: --listen 127.0.0.1:0 takes a free one"
	case errors.Is(err, controller.ErrAddress):
		e.Code = cli.Usage
	}
	return e
}
