package start

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"apollo11/engine/config"
	"apollo11/engine/unit"
	"apollo11/tui/cli"
	"apollo11/wire"
	"apollo11/wire/executor"
)

// final are the exit codes of an executor that starting again does not heal.
var final = []int{int(cli.Usage), int(cli.Refused)}

// maxInstances bounds the processes of one host: a slip of the finger must not
// bring it down.
const maxInstances = 1000

// execFlags are what exec is told.
type execFlags struct {
	*program
	units, share, name, types string
	instances                 int
	child                     bool
}

func (p *program) execCommand() *cobra.Command {
	f := &execFlags{program: p}
	c := &cobra.Command{
		Use: "exec", Short: "run an executor: take tasks from a controller and run their units", Args: cobra.NoArgs,
		Example: "  apollo11 exec --addr controller:7011 --units ./units --instances 4 --token-file executor.token",
		RunE:    f.run,
	}
	c.Flags().StringVar(&f.units, "units", "", "`DIR` of unit manifests (default local.units of the configuration)")
	c.Flags().StringVar(&f.share, "share", "", "`DIR` of files that units hand on; hosts that mount the same see the same (default local.share)")
	c.Flags().StringVar(&f.name, "name", "", "executor `ID` (default HOST-PID-xxxx); with --instances a number follows it")
	c.Flags().StringVar(&f.types, "types", "", "only these `TYPES` of the folder's units, comma separated (default all)")
	c.Flags().IntVar(&f.instances, "instances", 1, "so many executors, each a process of its own, restarted if it dies")
	c.Flags().BoolVar(&f.child, "child", false, "stdin is a pipe that ends with the parent")
	if err := c.Flags().MarkHidden("child"); err != nil {
		panic("start: " + err.Error())
	}
	return c
}

func (f *execFlags) run(cmd *cobra.Command, _ []string) error {
	c, err := f.flagged(cmd)
	if err != nil {
		return err
	}
	if f.instances < 1 || f.instances > maxInstances {
		return &cli.ExitError{Code: cli.Usage, Err: fmt.Errorf("exec: --instances %d: want 1 to %d", f.instances, maxInstances)}
	}
	log := slog.New(slog.NewTextHandler(f.Stderr, nil))
	if !f.child { // its parent has told
		f.warnOfVariables(log)
	}
	if f.instances > 1 {
		return f.parent(cmd.Context(), log)
	}
	o, err := f.options(cmd, &c)
	if err != nil {
		return err
	}
	o.Log = log
	err = executor.Run(cmd.Context(), o)
	var said *wire.Error
	switch {
	case errors.As(err, &said) && (said.Code == wire.CodeUnauthorized || said.Code == wire.CodeForbidden):
		return &cli.ExitError{Code: cli.Refused, Err: fmt.Errorf("exec: %w", err), Hint: "apollo11 exec … --token-file FILE, with the executors' token"}
	case err != nil && !errors.Is(err, context.Canceled):
		return &cli.ExitError{Code: cli.Failed, Err: fmt.Errorf("exec: %w", err)}
	}
	return nil
}

// options turns flags and configuration into the executor's.
func (f *execFlags) options(cmd *cobra.Command, c *config.Config) (executor.Options, error) {
	tokenFile := cmd.Flag("token-file").Value.String()
	if tokenFile == "" {
		tokenFile = c.Auth.ExecutorTokenFile
	}
	addr, err := f.address(cmd)
	if err != nil {
		return executor.Options{}, err
	}
	token, err := cli.ReadToken(tokenFile)
	if err != nil {
		return executor.Options{}, err
	}
	units := f.units
	if units == "" {
		units = c.Local.Units
	}
	if info, err := os.Stat(units); err != nil || !info.IsDir() {
		return executor.Options{}, &cli.ExitError{
			Code: cli.Usage, Err: fmt.Errorf("exec: units folder %s is not there", units), Hint: "apollo11 exec --units DIR",
		}
	}
	o := executor.Options{
		Dial: f.dial(addr, c.Data), Token: token, ID: f.name, Units: units, Share: cmp.Or(f.share, c.Local.Share),
		KeepRuns: c.Retention.Runs,
		Environ:  f.Environ, Build: build(),
		Abort: f.haste,
		Defaults: unit.Defaults{
			Retries: c.Unit.Retries, RetryInterval: c.Unit.RetryInterval, Backoff: c.Unit.Backoff, Jitter: c.Unit.Jitter,
			Timeout: c.Unit.Timeout, Grace: c.Unit.Grace, Env: c.Unit.Env,
			ContainerArgs: c.Unit.ContainerArgs,
		},
	}
	if f.types != "" {
		o.Types = strings.Split(f.types, ",")
	}
	if f.child {
		o.Abort = either(f.haste, executor.Orphaned(f.Stdin))
	}
	return o, nil
}

// address is where the controller is said to be: --addr or APOLLO_ADDR, "" if
// the data folder is to say it.
func (f *execFlags) address(cmd *cobra.Command) (string, error) {
	addr := cmp.Or(cmd.Flag("addr").Value.String(), f.variable("APOLLO_ADDR"))
	if _, _, err := net.SplitHostPort(addr); err != nil && addr != "" {
		return "", &cli.ExitError{
			Code: cli.Usage, Err: fmt.Errorf("exec: controller %s: want host:port", addr), Hint: "apollo11 exec --addr 127.0.0.1:7011",
		}
	}
	return addr, nil
}

// dial finds the controller anew at each attempt: at addr, or, if that is
// empty, where the data folder says that it is now.
func (f *execFlags) dial(addr, data string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		at := addr
		if at == "" {
			b, err := os.ReadFile(filepath.Join(data, "ADDR"))
			if err != nil {
				return nil, fmt.Errorf("no controller found: neither --addr nor %s/ADDR", data)
			}
			at = strings.TrimSpace(string(b))
		}
		return wire.DialTCP(ctx, at)
	}
}

// either is closed when one of two is.
func either(a, b <-chan struct{}) <-chan struct{} {
	c := make(chan struct{})
	go func() {
		select {
		case <-a:
		case <-b:
		}
		close(c)
	}()
	return c
}

// parent runs the instances as children with this command line.
func (f *execFlags) parent(ctx context.Context, log *slog.Logger) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	name := cmp.Or(f.name, executor.NewID()) // a child that is started again has the name it had
	err = executor.Parent(ctx, executor.ParentOptions{
		Instances: f.instances, Final: final, Log: log, Abort: f.haste,
		Command: func(n int) *exec.Cmd {
			args := append(append([]string{}, f.Args...), "--instances", "1", "--child", "--name", name+"-"+strconv.Itoa(n+1))
			cmd := exec.Command(program, args...)
			cmd.Env, cmd.Stdout, cmd.Stderr = f.Environ, f.Stderr, f.Stderr
			return cmd
		},
	})
	var child *executor.ChildError
	switch {
	case errors.As(err, &child): // it has said why
		return &cli.ExitError{Code: cli.Code(child.Code), Err: fmt.Errorf("exec: %w", err)}
	case err != nil:
		return &cli.ExitError{Code: cli.Failed, Err: fmt.Errorf("exec: %w", err)}
	}
	return nil
}
