package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"
)

// ParentOptions say which children are kept alive.
type ParentOptions struct {
	Instances int
	Command   func(instance int) *exec.Cmd // a new child, not started; Parent sets its standard input
	Final     []int                        // exit codes that starting again does not heal
	Log       *slog.Logger                 // nil: nowhere
	Abort     <-chan struct{}              // closed: tell the children a second time; nil: never
}

const (
	restartFirst = 100 * time.Millisecond
	restartMost  = 5 * time.Second
	settledAfter = 10 * time.Second // a child that lived so long is started again without haste
)

// ChildError is Parent's error when a child ended with a final code.
type ChildError struct{ Code int }

func (e *ChildError) Error() string {
	return fmt.Sprintf("an executor cannot work: exit code %d", e.Code)
}

// Parent keeps a number of executors running, each in a process of its own,
// until ctx ends; then it tells them to stop and waits for them. One that
// leaves in order, code 0, is not started again: it was drained. A child's
// standard input is a pipe that ends with this process; see Orphaned.
func Parent(ctx context.Context, o ParentOptions) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	alive, hold, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("pipe to executors: %w", err)
	}
	defer alive.Close()
	defer hold.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	faults := make([]error, o.Instances)
	var group sync.WaitGroup
	for i := range o.Instances {
		c := child{ParentOptions: o, instance: i, alive: alive}
		group.Go(func() {
			if faults[i] = c.keep(ctx); faults[i] != nil {
				stop() // the others cannot work either
			}
		})
	}
	group.Wait()
	return errors.Join(slices.CompactFunc(faults, sameText)...)
}

func sameText(a, b error) bool { return a != nil && b != nil && a.Error() == b.Error() }

// child is one of the processes, over its restarts.
type child struct {
	ParentOptions
	instance int
	alive    *os.File
}

func (c *child) keep(ctx context.Context) error {
	pause := restartFirst
	for ctx.Err() == nil { // a child that was not started yet stays so
		settled := time.NewTimer(settledAfter)
		err := c.once(ctx)
		long := !settled.Stop()
		switch code := exitCode(err); {
		case ctx.Err() != nil || err == nil:
			return nil
		case slices.Contains(c.Final, code):
			return &ChildError{code}
		case long:
			pause = restartFirst
		}
		c.Log.Warn("an executor ended", "instance", c.instance, "error", err, "again in", pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
		pause = min(2*pause, restartMost)
	}
	return nil
}

// once runs the child to its end, and tells it to stop when ctx ends.
func (c *child) once(ctx context.Context) error {
	cmd := c.Command(c.instance)
	cmd.Stdin = c.alive
	apart(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stop, abort := ctx.Done(), c.Abort
	for {
		select {
		case err := <-ended:
			return err
		case <-stop:
			stop = nil
			askToStop(cmd.Process)
		case <-abort:
			abort = nil
			askToStop(cmd.Process)
		}
	}
}

func exitCode(err error) int {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	return -1
}

// Orphaned is closed when the parent that holds the other end of in is gone,
// for a child to take as Options.Abort. It reads until then.
func Orphaned(in io.Reader) <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		io.Copy(io.Discard, in)
		close(gone)
	}()
	return gone
}
