package start

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"apollo11/tui/cli"
	"apollo11/wire/bench"
)

// benchFlags are what bench is told.
type benchFlags struct {
	*program
	load    bench.Load
	only    []string
	profile string
}

func (p *program) benchCommand() *cobra.Command {
	f := &benchFlags{program: p, load: bench.DefaultLoad()}
	c := &cobra.Command{
		Use: "bench", Short: "measure a controller: load it and print one JSON line", Args: cobra.NoArgs, RunE: f.run,
		Long: "Load a private controller, a process of its own on a temporary folder, or the one at --addr, and print\n" +
			"one JSON line: tasks a second end to end, CPU and memory of the controller, and more. The phases:\n" +
			"  one      every task is a submit of its own      batch    tasks come by the batch\n" +
			"  latency  few tasks, each finds all idle         backlog  a long queue, SIGKILL, restart (never on --addr)\n" +
			"Workers are executors of this process that answer at once, so no unit is run. On --addr the tasks are of\n" +
			"the type bench, and stay in its journal.",
		Example: "  apollo11 bench\n  apollo11 bench --only latency,backlog\n  apollo11 bench --addr controller:7011 --tasks 1000",
	}
	l, flags := &f.load, c.Flags()
	flags.IntVar(&l.Producers, "producers", l.Producers, "so `MANY` connections that submit")
	flags.IntVar(&l.Workers, "workers", l.Workers, "so `MANY` executors")
	flags.IntVar(&l.Tasks, "tasks", l.Tasks, "at most so `MANY` tasks in one and in batch")
	flags.IntVar(&l.Payload, "payload", l.Payload, "`BYTES` of a task's input")
	flags.IntVar(&l.Batch, "batch", l.Batch, "tasks of one submit, in batch and backlog")
	flags.DurationVar(&l.Cap, "cap", l.Cap, "one and batch submit for at most `DURATION`")
	flags.IntVar(&l.Reps, "reps", l.Reps, "repeat each phase; the figures are medians")
	flags.IntVar(&l.Rate, "rate", l.Rate, "tasks a `SECOND` in latency")
	flags.DurationVar(&l.Low, "lat", l.Low, "latency submits for `DURATION`")
	flags.IntVar(&l.Backlog, "backlog", l.Backlog, "at most so `MANY` tasks in backlog")
	flags.DurationVar(&l.BacklogIn, "backcap", l.BacklogIn, "backlog submits for at most `DURATION`")
	flags.StringSliceVar(&f.only, "only", []string{"one", "batch"}, "`PHASES`: one, batch, latency, backlog")
	flags.StringVar(&f.profile, "cpuprofile", "", "CPU profiles of the private controller, in `FILE`.PHASE")
	return c
}

func (f *benchFlags) run(cmd *cobra.Command, _ []string) error {
	o := bench.Options{Load: f.load, Now: f.Now, Orderly: f.profile != ""}
	for _, name := range f.only {
		p, err := bench.ParsePhase(strings.TrimSpace(name))
		if err != nil {
			return &cli.ExitError{Code: cli.Usage, Err: fmt.Errorf("bench: --only: %w", err)}
		}
		o.Phases = append(o.Phases, p)
	}
	slices.Sort(o.Phases)
	if err := o.Load.Check(); err != nil {
		return &cli.ExitError{Code: cli.Usage, Err: fmt.Errorf("bench: %w", err), Hint: "apollo11 bench --help"}
	}
	forget, err := f.aim(cmd, &o)
	if err != nil {
		return err
	}
	defer forget()
	o.Show = f.show()
	report, failed := bench.Run(cmd.Context(), o)
	o.Show(0, 0, 0)
	tellBench(f.Stderr, report)
	line, err := json.Marshal(report)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), string(line)); err != nil {
		return err
	}
	if errors.Is(failed, bench.ErrNotOurs) {
		return &cli.ExitError{Code: cli.Usage, Err: fmt.Errorf("bench: %w", failed), Hint: "apollo11 bench --only backlog"}
	}
	if failed != nil {
		return &cli.ExitError{Code: cli.Failed, Err: fmt.Errorf("bench: %w", failed)}
	}
	return nil
}

// tellBench says in words what the JSON line says in full.
func tellBench(w io.Writer, r *bench.Report) {
	for _, s := range []struct {
		phase  bench.Phase
		format string
		fields []string
	}{
		{bench.One, "%.0f tasks/s end to end, each submitted alone; %.3g s of CPU per 1000", []string{"end_to_end_tasks_per_s", "server_cpu_s_per_1000"}},
		{bench.Batch, "%.0f tasks/s end to end, by the batch; %.3g s of CPU per 1000", []string{"end_to_end_tasks_per_s", "server_cpu_s_per_1000"}},
		{bench.Latency, "%.3g ms from submit to start (99%%: %.3g ms)", []string{"start_p50_ms", "start_p99_ms"}},
		{bench.Backlog, "%.0f tasks queued at %.0f/s, %.0f bytes of memory each; back after SIGKILL in %.0f ms", []string{
			"backlog_tasks", "backlog_enqueue_per_s", "rss_bytes_per_queued", "restart_ready_ms"}},
	} {
		figures := r.Phases[s.phase]
		if len(figures) == 0 {
			continue
		}
		values := make([]any, len(s.fields))
		for i, name := range s.fields {
			values[i] = figures[name].Med
		}
		fmt.Fprintf(w, "%-8s "+s.format+"\n", append([]any{s.phase.String() + ":"}, values...)...)
	}
}

// show is one progress bar per phase; a total of zero takes it away.
func (f *benchFlags) show() func(p bench.Phase, done, total int) {
	var bar *cli.Progress
	var of [2]int
	return func(p bench.Phase, done, total int) {
		if at := [2]int{int(p), total}; bar == nil || at != of {
			if bar != nil {
				bar.Clear()
			}
			bar, of = f.Progress("tasks, "+p.String(), total), at
		}
		if total > 0 {
			bar.Show(done)
		}
	}
}

// aim says what is loaded: the controller at --addr, or private ones, whose
// configuration is the program's defaults.
func (f *benchFlags) aim(cmd *cobra.Command, o *bench.Options) (forget func(), err error) {
	forget = func() {}
	if o.Addr = cmd.Flag("addr").Value.String(); o.Addr != "" {
		return forget, f.tokens(cmd, o)
	}
	program, err := os.Executable()
	if err != nil {
		return forget, err
	}
	dir, err := os.MkdirTemp("", "apollo11-bench-")
	if err != nil {
		return forget, err
	}
	forget = func() { os.RemoveAll(dir) }
	defaults := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(defaults, nil, 0o600); err != nil {
		return forget, err
	}
	environ := slices.DeleteFunc(slices.Clone(f.Environ), func(entry string) bool { return strings.HasPrefix(entry, "APOLLO_") })
	environ = append(environ, "APOLLO_LOCAL_EXECUTORS=0")
	o.Command = func(p bench.Phase, data string) *exec.Cmd {
		args := []string{"--no-tui", "--config", defaults, "--data", data, "--listen", "127.0.0.1:0"}
		if f.profile != "" {
			args = append(args, "--cpuprofile", f.profile+"."+p.String())
		}
		c := exec.Command(program, args...)
		c.Env = environ
		return c
	}
	return forget, nil
}

// tokens are those that a running controller asks for.
func (f *benchFlags) tokens(cmd *cobra.Command, o *bench.Options) error {
	c, err := f.flagged(cmd)
	if err != nil {
		return err
	}
	operators := cmd.Flag("token-file").Value.String()
	if operators == "" {
		operators = c.Auth.OperatorTokenFile
	}
	if o.Token, err = cli.ReadToken(operators); err != nil {
		return err
	}
	o.ExecutorToken, err = cli.ReadToken(c.Auth.ExecutorTokenFile)
	return err
}

// addBench adds the command, and the flag by which it has its controllers
// profiled.
func (p *program) addBench() {
	p.Root.AddCommand(p.benchCommand())
	p.Root.Flags().String("cpuprofile", "", "write a CPU profile to `FILE`")
	if err := p.Root.Flags().MarkHidden("cpuprofile"); err != nil {
		panic("start: " + err.Error())
	}
	headless := p.Root.RunE
	p.Root.RunE = func(cmd *cobra.Command, args []string) error {
		return profiled(cmd.Flag("cpuprofile").Value.String(), func() error { return headless(cmd, args) })
	}
}

// profiled runs do, with a profile of it in the file name; empty: none.
func profiled(name string, do func() error) (err error) {
	if name == "" {
		return do()
	}
	f, err := os.Create(name)
	if err != nil {
		return &cli.ExitError{Code: cli.Usage, Err: fmt.Errorf("--cpuprofile: %w", err)}
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return do()
}
