package unit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"apollo11/engine/task"
)

// Job is what Run needs for one attempt.
type Job struct {
	Manifest   *Manifest
	Assignment task.Assignment
	Run        string // the run the task belongs to; empty: none
	Work       *Workplace
	Environ    []string         // name=value, of which the manifest's env picks
	Now        func() time.Time // for the durations in the outcome

	// Log gets what the unit prints, any bytes, in pieces it may keep; Progress
	// gets its progress lines, percent -1 where a line names none. Both are called
	// from Run's goroutine; nil: not wanted.
	Log      func([]byte)
	Progress func(percent int, message string)
}

// attempt is one Run while it goes on.
type attempt struct {
	Job
	desk     desk
	env      []string
	printed  printed
	progress follower
	outcome  task.Outcome
}

// running counts the attempts of this process.
var running atomic.Int32

// Run carries out one attempt and returns how it ended. When ctx ends the unit
// is stopped, cleaned up after, and the outcome is task.Stopped. No process of
// the unit is left when Run returns. Only one Run may be active in a process:
// descendants are told apart by having none but those of one attempt.
func Run(ctx context.Context, job Job) task.Outcome {
	if running.Add(1) != 1 {
		panic("unit: a second attempt in this process")
	}
	defer running.Add(-1)
	a := &attempt{Job: job, printed: printed{log: job.Log, room: mostPrinted}}
	a.outcome = task.Outcome{Task: job.Assignment.Task, Version: job.Assignment.Version, Exit: -1}
	a.run(ctx)
	a.outcome.Truncated = a.printed.cut
	a.printed.flush()
	return a.outcome
}

func (a *attempt) run(ctx context.Context) {
	if err := a.takeInputs(); err != nil {
		a.fail(task.InputInvalid, err)
		return
	}
	if err := adopt(); err != nil {
		a.fail(task.PrepareFailed, fmt.Errorf("cannot become the reaper of the unit's processes: %w", err))
		return
	}
	if err := a.makeFolder(); err != nil {
		a.fail(task.PrepareFailed, err)
		return
	}
	defer a.removeFolder()
	defer a.progress.close()
	a.work(ctx)
	a.progress.poll(true)
	a.cleanup(ctx)
}

// work is prepare, execute and the reading of the answer.
func (a *attempt) work(ctx context.Context) {
	m := a.Manifest
	if len(m.Prepare) > 0 {
		end := a.step(ctx, m.Prepare, m.Unit.Prepare)
		a.outcome.Timing.Prepare = end.took
		if end.why != exitedWell {
			a.failStep("prepare", end, m.Unit.Prepare)
			return
		}
	}
	limit := m.Unit.Timeout
	if a.Assignment.Timeout > 0 {
		limit = a.Assignment.Timeout
	}
	end := a.step(ctx, m.Execute, limit)
	a.outcome.Timing.Execute = end.took
	a.outcome.Exit, a.outcome.Signal = end.exit, end.signal
	if end.why != exitedWell {
		a.failStep("execute", end, limit)
		return
	}
	if err := a.readAnswers(); err != nil {
		a.fail(task.OutputInvalid, err)
		return
	}
	a.outcome.Status = task.Success
}

func (a *attempt) fail(class task.Class, err error) {
	a.outcome.Status, a.outcome.Class, a.outcome.Error = task.Failed, class, task.Printable(err.Error())
}

func (a *attempt) failStep(name string, end ending, limit time.Duration) {
	class := task.ExecuteFailed
	switch {
	case end.why == stopped:
		class = task.ByPerson
	case name == "prepare" || end.why == notStarted:
		class = task.PrepareFailed
	case end.why == tooLong:
		class = task.Timeout
	}
	a.fail(class, errors.New(end.describe(name, limit)))
	if end.why == stopped {
		a.outcome.Status = task.Stopped
	}
	if name == "prepare" {
		a.outcome.Exit, a.outcome.Signal = end.exit, end.signal
	}
}

// cleanup runs whatever became of the attempt, and cannot change that.
func (a *attempt) cleanup(ctx context.Context) {
	m := a.Manifest
	if len(m.Cleanup) == 0 {
		return
	}
	os.MkdirAll(a.desk.folder, 0o700) // the unit may have deleted it
	end := a.step(context.WithoutCancel(ctx), m.Cleanup, m.Unit.Cleanup)
	a.outcome.Timing.Cleanup = end.took
	if end.why == exitedWell {
		return
	}
	text := end.describe("cleanup", m.Unit.Cleanup)
	a.printed.note(text)
	if a.outcome.Error != "" {
		text = a.outcome.Error + "; " + text
	}
	a.outcome.Error = task.Printable(text)
}

func (a *attempt) takeInputs() error {
	inputs, err := a.Manifest.Unit.CheckInputs(a.Assignment.Inputs)
	if err != nil {
		return errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	a.Assignment.Inputs = inputs
	return checkVariables(a.Assignment)
}

func (a *attempt) makeFolder() (err error) {
	if a.desk, err = a.Work.take(a.inputFile()); err != nil {
		return fmt.Errorf("work folder: %w", err)
	}
	a.progress = follower{file: a.desk.file(progressName), report: a.Progress}
	a.env = a.environment()
	return nil
}

func (a *attempt) removeFolder() {
	if err := a.Work.give(a.desk); err != nil {
		a.printed.note(task.Printable("the work folder is left behind: " + err.Error()))
	}
}

// readAnswers takes outputs and state changes, all or nothing.
func (a *attempt) readAnswers() error {
	data, err := readAnswer(a.desk.file(outputName))
	if err != nil {
		return fmt.Errorf("$APOLLO_OUTPUT: %w", err)
	}
	outputs, err := parseOutputs(data)
	if err != nil {
		return fmt.Errorf("$APOLLO_OUTPUT: %w", err)
	}
	if data, err = readAnswer(a.desk.file(stateName)); err != nil {
		return fmt.Errorf("$APOLLO_STATE: %w", err)
	}
	changes, err := parseChanges(data)
	if err != nil {
		return fmt.Errorf("$APOLLO_STATE: %w", err)
	}
	if outputs, err = a.Manifest.Unit.CheckOutputs(outputs); err != nil {
		return errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if o, c := outputs.Size(), changesSize(changes); o+c > task.MaxBytes {
		return fmt.Errorf("outputs of %d and state changes of %d bytes: at most %d together; write large data to a file and hand on its name", o, c, task.MaxBytes)
	}
	a.outcome.Outputs, a.outcome.Changes = outputs, changes
	return nil
}
