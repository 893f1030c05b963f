package start

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"gopkg.in/natefinch/lumberjack.v2"

	"apollo11/engine"
	"apollo11/engine/config"
	"apollo11/engine/mission"
	"apollo11/engine/task"
	"apollo11/tui/cli"
	"apollo11/wire/controller"
	"apollo11/wire/executor"
	"apollo11/wire/server"
)

// controller is the program without a command: the controller on its folder,
// with the console on it where there is a terminal.
func (p *program) controller(cmd *cobra.Command, _ []string) error {
	c, err := p.flagged(cmd)
	if err != nil {
		return err
	}
	if err := served(&c); err != nil {
		return err
	}
	s := serve{program: p, config: c, file: cmd.Flag("config").Value.String(), words: p.Stdout}
	if headless(cmd) {
		return exit(s.run(cmd.Context(), nil))
	}
	if why := p.screen(); why != "" {
		fmt.Fprintf(p.Stderr, "apollo11: %s: running headless; log lines follow\n", why)
		return exit(s.run(cmd.Context(), nil))
	}
	return exit(s.withConsole(cmd.Context(), nil))
}

// headless reports whether a person wants no console.
func headless(cmd *cobra.Command) bool {
	no, err := cmd.Flags().GetBool("no-tui")
	return err == nil && no
}

// serve is one controller with its log and its local executors.
type serve struct {
	*program
	config  config.Config
	file    string    // of --config, for the executors
	words   io.Writer // where log lines go beside the file
	out     io.Writer // both
	log     *slog.Logger
	ballast []byte // see collectOften
	bundled string // where the examples are unpacked; empty: nowhere yet
}

// localGrace is how long local executors may finish what they run at a stop.
const localGrace = 10 * time.Second

// tour is work given to a controller once it is ready; its end ends the controller.
type tour func(ctx context.Context, addr string) error

// run works until ctx ends, or the tour, if there is one. What stops first is
// the tour, then the local executors, then the controller, so that results
// under way are still taken.
func (s *serve) run(ctx context.Context, t tour) error {
	s.collectOften()
	closeLog := s.openLog()
	defer closeLog()
	options, err := s.options()
	if err != nil {
		return err
	}
	c, err := controller.Open(options)
	if err != nil {
		return err
	}
	s.warnOfVariables(s.log)
	if s.usesExamples() { // now that the folder is ours, and before its missions are read
		if _, err := s.examples(); err != nil {
			s.log.Error("the bundled examples can't be unpacked", "error", err)
		}
	}
	running, stop := context.WithCancel(context.Background())
	defer stop()
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- c.Run(running, func() { close(ready) }) }()
	select {
	case err := <-ended:
		return err
	case <-ready:
	}
	work, enough := context.WithCancel(ctx)
	defer enough()
	locals, toured := make(chan error, 1), make(chan error, 1)
	go func() { locals <- s.locals(work, c.Addr().String()) }()
	if t != nil {
		go func() { toured <- t(work, c.Addr().String()) }()
	}
	select {
	case err = <-ended:
		ended <- nil
	case err = <-toured:
		toured <- nil
	case <-ctx.Done():
		s.log.Info("stopping: what runs may finish; a second signal ends it at once", "longest", localGrace)
	}
	enough()
	if t != nil {
		err = errors.Join(err, <-toured)
	}
	if failed := <-locals; failed != nil {
		s.log.Error("local executors", "error", failed)
	}
	stop()
	return errors.Join(err, <-ended)
}

// collectOften trades collections for memory, unless GOGC says otherwise. Tasks
// hold no pointers, so that a collection costs next to nothing with a million of
// them, and garbage need not take as much room as they do. Next to the ballast,
// which is never touched and so takes none, a small heap is not collected all
// the time.
func (s *serve) collectOften() {
	if slices.ContainsFunc(s.Environ, func(entry string) bool { return strings.HasPrefix(entry, "GOGC=") }) {
		return
	}
	s.ballast = make([]byte, 32<<20)
	debug.SetGCPercent(25)
}

// openLog opens the log: the file, and the words beside it.
func (s *serve) openLog() (closeLog func()) {
	var out io.Writer = s.words
	closeLog = func() {}
	if name := s.config.Log.File; name != "" {
		if !filepath.IsAbs(name) {
			name = filepath.Join(s.config.Data, name)
		}
		const mebibyte = 1 << 20
		file := &lumberjack.Logger{
			Filename: name, MaxSize: int((s.config.Log.MaxSize + mebibyte - 1) / mebibyte), MaxBackups: s.config.Log.Keep,
		}
		out, closeLog = both{file, s.words}, func() { file.Close() }
	}
	s.out = out
	s.log = slog.New(slog.NewTextHandler(out, nil))
	return closeLog
}

// both writes to the file, and to the terminal as long as that takes it.
type both struct{ file, words io.Writer }

func (b both) Write(p []byte) (int, error) {
	b.words.Write(p)
	return b.file.Write(p)
}

// options turns the configuration into the controller's.
func (s *serve) options() (controller.Options, error) {
	c := &s.config
	executors, err := cli.ReadToken(c.Auth.ExecutorTokenFile)
	if err != nil {
		return controller.Options{}, err
	}
	operators, err := cli.ReadToken(c.Auth.OperatorTokenFile)
	if err != nil {
		return controller.Options{}, err
	}
	settings := s.settings()
	settings.Zone = time.Local
	return controller.Options{
		Dir: c.Data, Missions: s.missions(), Addr: c.Listen, Settings: settings, Keep: c.Retention.Journal, Log: s.log, Now: s.Now,
		Server: server.Options{
			ExecutorToken: executors, OperatorToken: operators, Insecure: c.Auth.Insecure, MaxFrame: int(c.Wire.MaxFrame),
			MaxConnections: c.Wire.MaxConnections, Build: build(),
			LogKeep: c.Retention.Logs, LogSize: int64(c.Retention.LogsSize),
		},
		Progress: func(seq uint64) { s.log.Info("reading the journal", "seq", seq) },
	}, nil
}

// settings turns the configuration into the engine's.
func (s *serve) settings() engine.Settings {
	c := &s.config
	keys := make([]engine.KeyRule, len(c.State))
	for i, k := range c.State {
		keys[i] = engine.KeyRule{Rule: k.Rule, From: k.From, Apply: k.Apply}
	}
	return engine.Settings{
		Heartbeat: c.Heartbeat.Interval, Misses: c.Heartbeat.Misses, Timeout: c.Heartbeat.Timeout,
		ReconnectGrace: c.Heartbeat.ReconnectGrace, Hold: c.Wire.Hold, QueueThreshold: c.Scheduler.QueueThreshold,
		CrashLimit: c.Scheduler.CrashLimit, Limits: c.Limits, Undeclared: c.Engine.UndeclaredState, Keys: keys,
		Retry:       task.Retry{Retries: c.Unit.Retries, Interval: c.Unit.RetryInterval, Backoff: c.Unit.Backoff, Jitter: c.Unit.Jitter},
		RetainTasks: c.Retention.Tasks, RetainAge: c.Retention.TasksAge, RetainKeys: c.Retention.Keys,
		ConfigHash: c.Hash(), Build: build(), Debug: c.Debug, Seed: uint64(s.Now().UnixNano()),
	}
}

// locals keeps the local executors until ctx ends; then they have a while to
// finish what they run.
func (s *serve) locals(ctx context.Context, addr string) error {
	n := s.config.Local.Executors
	if n == 0 {
		<-ctx.Done()
		return nil
	}
	units, err := s.units()
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	args := []string{"exec", "--child", "--addr", addr, "--units", units, "--share", s.config.Local.Share}
	if s.file != "" {
		args = append(args, "--config", s.file)
	}
	haste := make(chan struct{})
	go func() {
		<-ctx.Done()
		select {
		case <-s.haste:
		case <-time.After(localGrace):
		}
		close(haste)
	}()
	return executor.Parent(ctx, executor.ParentOptions{
		Instances: n, Final: final, Log: s.log, Abort: haste,
		Command: func(n int) *exec.Cmd {
			// The same names at each start: what a killed controller's had is given on
			// as soon as they register, and the list of executors does not grow.
			cmd := exec.Command(program, append(slices.Clone(args), "--name", executor.ID("local-"+strconv.Itoa(n+1)))...)
			cmd.Env, cmd.Stdout, cmd.Stderr = s.Environ, s.out, s.out
			return cmd
		},
	})
}

// units is the folder of manifests: the configured one, or the embedded examples
// unpacked into the data folder.
func (s *serve) units() (string, error) {
	if isFolder(s.config.Local.Units) {
		return filepath.Abs(s.config.Local.Units)
	}
	dir, err := s.examples()
	return filepath.Join(dir, "units"), err
}

// missions is the folder of mission files: the configured one, or the examples'
// if their units are offered too.
func (s *serve) missions() string {
	if isFolder(s.config.Local.Missions) || !s.usesExamples() {
		return s.config.Local.Missions
	}
	return filepath.Join(s.config.Data, "examples", "missions")
}

// usesExamples reports whether the local executors offer the bundled units.
func (s *serve) usesExamples() bool {
	return s.config.Local.Executors > 0 && !isFolder(s.config.Local.Units)
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// examples unpacks the bundled examples, once; what an earlier start unpacked goes.
func (s *serve) examples() (string, error) {
	if s.bundled != "" {
		return s.bundled, nil
	}
	dir, err := filepath.Abs(filepath.Join(s.config.Data, "examples"))
	if err != nil {
		return "", err
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := os.CopyFS(dir, mission.Examples()); err != nil {
		return "", err
	}
	s.bundled = dir
	return dir, nil
}
