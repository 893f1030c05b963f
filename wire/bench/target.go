package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// target is the controller under load.
type target struct {
	addr string

	// Of a private one.
	dir    string // holds its data folder and its log; empty: it is not ours
	cmd    *exec.Cmd
	ended  chan struct{} // closed when the process has ended
	booted time.Duration // from the start to taking commands
}

const (
	startWithin = 2 * time.Minute // a restart folds a long journal
	stopWithin  = 30 * time.Second
	look        = 2 * time.Millisecond // between two looks at what another process does
)

// start starts a private controller, or takes the one that runs.
func (r *run) start(ctx context.Context) error {
	r.target = &target{addr: r.Addr}
	if r.Command == nil {
		return nil
	}
	dir, err := os.MkdirTemp("", "apollo11-bench-")
	if err != nil {
		return err
	}
	r.target.dir = dir
	if err := r.spawn(ctx); err != nil {
		return errors.Join(err, r.target.stop(false))
	}
	return nil
}

func (t *target) data() string { return filepath.Join(t.dir, "data") }

// spawn starts the process and waits until it takes commands.
func (r *run) spawn(ctx context.Context) error {
	t := r.target
	log, err := os.Create(filepath.Join(t.dir, "server.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	t.cmd = r.Command(r.phase, t.data())
	t.cmd.Stdout, t.cmd.Stderr = log, log
	tie(t.cmd)
	begun := r.now()
	if err := t.cmd.Start(); err != nil {
		return err
	}
	t.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		cmd.Wait() // how it ended, its log tells
		close(ended)
	}(t.cmd, t.ended)
	for r.now()-begun < startWithin {
		if b, err := os.ReadFile(filepath.Join(t.data(), "ADDR")); err == nil {
			t.addr, t.booted = strings.TrimSpace(string(b)), r.now()-begun
			return nil
		}
		select {
		case <-t.ended:
			return fmt.Errorf("the controller ended at its start: %s", t.lastWords())
		default:
		}
		if err := pause(ctx, look); err != nil {
			return err
		}
	}
	return fmt.Errorf("the controller took no commands within %s: %s", startWithin, t.lastWords())
}

// lastWords is the end of the controller's log.
func (t *target) lastWords() string {
	b, _ := os.ReadFile(filepath.Join(t.dir, "server.log"))
	b = bytes.TrimSpace(b)
	return string(b[max(0, len(b)-500):])
}

// kill ends a private controller as a crash would.
func (t *target) kill() {
	if t.ended == nil {
		return
	}
	t.cmd.Process.Kill() // an error means that it has ended
	<-t.ended
	t.ended = nil
}

// crash kills the controller and removes the address that it left behind.
func (t *target) crash() error {
	t.kill()
	err := os.Remove(filepath.Join(t.data(), "ADDR"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// stop ends a private controller and removes its folder.
func (t *target) stop(orderly bool) error {
	if t.dir == "" {
		return nil
	}
	if orderly && t.ended != nil {
		t.cmd.Process.Signal(syscall.SIGTERM)
		timer := time.NewTimer(stopWithin)
		defer timer.Stop()
		select {
		case <-t.ended:
		case <-timer.C:
		}
	}
	t.kill()
	return os.RemoveAll(t.dir)
}

// usage is the controller's process; not ok where it can't be known.
func (t *target) usage() (u usage, ok bool) {
	if t.ended == nil {
		return usage{}, false
	}
	return readUsage(t.cmd.Process.Pid)
}

// usage is what a process has taken.
type usage struct {
	cpu       float64 // seconds, user and system, ended children included
	rss, peak float64 // bytes
}

// pause waits, or says why it should not.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
