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
	Work       *Workplace
	Share      *Share           // for files that are handed on; nil: none
	Environ    []string         // name=value, of which the manifest's env picks
	Now        func() time.Time // for the durations in the outcome

	// Log gets what the unit prints, any bytes, in pieces it may keep; Progress
	// gets its progress lines, percent -1 where a line names none; Change gets what
	// a resident unit asks to be changed as it runs, of each key one change in a
	// call. All are called from Run's goroutine; nil: not wanted.
	Log      func([]byte)
	Progress func(percent int, message string)
	Change   func([]task.Change)
}

// attempt is one Run while it goes on.
type attempt struct {
	Job
	desk      desk
	place     place    // within the share; none unless the unit hands files on
	runDir    string   // of place
	undone    []string // of an undo: the folders of the files that its task handed on
	handed    []string // files of the share that it reads
	box       box      // of engine container
	secrets   secrets
	secretEnv []string
	env       []string
	printed   printed
	progress  follower
	outcome   task.Outcome
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
	if err := a.takeInputs(ctx); err != nil {
		a.fail(task.InputInvalid, err)
		a.stoppedBy(ctx)
		return
	}
	defer a.removeFolder()
	defer a.progress.close()
	if err := a.prepare(ctx); err != nil {
		a.fail(task.PrepareFailed, err)
		a.stoppedBy(ctx)
		return
	}
	a.work(ctx)
	a.endProgress()
	a.cleanup(ctx)
}

// prepare is what comes before the unit's own first step.
func (a *attempt) prepare(ctx context.Context) (err error) {
	if err := adopt(); err != nil {
		return fmt.Errorf("cannot become the reaper of the unit's processes: %w", err)
	}
	if err := a.takeSecrets(); err != nil {
		return err
	}
	if err := a.makeFolder(); err != nil {
		return err
	}
	if err := a.openBox(ctx); err != nil {
		return err
	}
	// What cannot be read may be run all the same; its hash is not known then.
	if hash, err := a.Manifest.Hash(); err == nil {
		a.outcome.UnitHash = withImage(hash, a.box.image)
	}
	return nil
}

// stoppedBy makes an attempt that failed because it was stopped one that was stopped.
func (a *attempt) stoppedBy(ctx context.Context) {
	if ctx.Err() != nil {
		a.outcome.Status, a.outcome.Class = task.Stopped, task.ByPerson
	}
}

// work is prepare, execute or undo, and the reading of the answer.
func (a *attempt) work(ctx context.Context) {
	m := a.Manifest
	if !m.Prepare.none() && !a.Assignment.Undo {
		end := a.step(ctx, m.Prepare, m.Unit.Prepare)
		a.outcome.Timing.Prepare = end.took
		if end.why != exitedWell {
			a.failStep("prepare", end, m.Unit.Prepare)
			return
		}
	}
	name, step, limit := a.mainStep()
	end := a.step(ctx, step, limit)
	a.outcome.Timing.Execute = end.took
	a.outcome.Exit, a.outcome.Signal = end.exit, end.signal
	if end.why != exitedWell {
		a.failStep(name, end, limit)
		return
	}
	if err := a.readAnswers(ctx); err != nil {
		a.fail(task.OutputInvalid, err)
		a.stoppedBy(ctx)
		return
	}
	a.outcome.Status = task.Success
}

// mainStep is execute with its limit, zero for a resident unit; or undo.
func (a *attempt) mainStep() (name string, s Step, limit time.Duration) {
	u := &a.Manifest.Unit
	limit = u.Timeout
	if a.Assignment.Timeout > 0 {
		limit = a.Assignment.Timeout
	}
	switch {
	case a.Assignment.Undo && limit <= 0:
		return "undo", a.Manifest.Undo, stepLimit
	case a.Assignment.Undo:
		return "undo", a.Manifest.Undo, limit
	case u.Resident:
		return "execute", a.Manifest.Execute, 0
	}
	return "execute", a.Manifest.Execute, limit
}

// endProgress takes the last of the progress; changes that are none are the
// attempt's failure.
func (a *attempt) endProgress() {
	err := a.progress.poll(true)
	if err != nil && a.outcome.Status == task.Success {
		a.outcome.Outputs, a.outcome.Changes = nil, nil
		a.fail(task.OutputInvalid, err)
	}
}

func (a *attempt) fail(class task.Class, err error) {
	a.outcome.Status, a.outcome.Class = task.Failed, class
	a.outcome.Error = task.Printable(a.secrets.text(err.Error()))
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
	case end.why == badProgress:
		class = task.OutputInvalid
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
	if m.Cleanup.none() {
		return
	}
	os.MkdirAll(a.desk.folder, 0o700) // the unit may have deleted it
	end := a.step(context.WithoutCancel(ctx), m.Cleanup, m.Unit.Cleanup)
	a.outcome.Timing.Cleanup = end.took
	if end.why == exitedWell {
		return
	}
	text := a.secrets.text(end.describe("cleanup", m.Unit.Cleanup))
	a.printed.note(text)
	if a.outcome.Error != "" {
		text = a.outcome.Error + "; " + text
	}
	a.outcome.Error = task.Printable(text)
}

func (a *attempt) takeInputs(ctx context.Context) error {
	if a.Assignment.Undo && a.Manifest.Undo.none() {
		return fmt.Errorf("unit %s has no undo step", a.Manifest.Unit.Name)
	}
	inputs, err := a.Manifest.Unit.CheckInputs(a.Assignment.Inputs)
	if err != nil {
		return errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	a.Assignment.Inputs = inputs
	if err := a.takeFiles(ctx); err != nil {
		return err
	}
	return checkVariables(a.Assignment)
}

func (a *attempt) makeFolder() (err error) {
	if a.Manifest.handsOn() && !a.Assignment.Undo {
		if a.Share == nil {
			return errors.New("the unit hands files on, and this executor has no share for them: start it with one")
		}
		if a.place, err = a.Share.openPlace(a.Assignment); err != nil {
			return err
		}
		a.runDir = a.place.dir
	}
	if a.desk, err = a.Work.take(a.inputFile()); err != nil {
		return fmt.Errorf("work folder: %w", err)
	}
	a.progress = a.follow()
	a.env = append(a.environment(), a.secretEnv...)
	return nil
}

func (a *attempt) follow() follower {
	f := follower{file: a.desk.file(progressName), secrets: &a.secrets, report: a.Progress}
	if a.Manifest.Unit.Resident && !a.Assignment.Undo {
		f.resident, f.change = true, a.Change
	}
	return f
}

func (a *attempt) removeFolder() {
	if a.outcome.Status == task.Success {
		a.place.keep()
	} else {
		a.place.drop()
	}
	if a.desk == (desk{}) {
		return
	}
	if err := a.Work.give(a.desk); err != nil {
		a.printed.note(task.Printable("the work folder is left behind: " + err.Error()))
	}
}

// readAnswers takes outputs and state changes, all or nothing.
func (a *attempt) readAnswers(ctx context.Context) error {
	data, err := a.answer("$APOLLO_OUTPUT", outputName)
	if err != nil {
		return err
	}
	outputs, err := parseOutputs(data)
	if err != nil {
		return fmt.Errorf("$APOLLO_OUTPUT: %w", err)
	}
	if data, err = a.answer("$APOLLO_STATE", stateName); err != nil {
		return err
	}
	changes, err := parseChanges(data)
	if err != nil {
		return fmt.Errorf("$APOLLO_STATE: %w", err)
	}
	if a.Assignment.Undo {
		outputs = nil // what was undone has none
	} else if outputs, err = a.checkOutputs(ctx, outputs); err != nil {
		return err
	}
	if o, c := outputs.Size(), changesSize(changes); o+c > task.MaxBytes {
		return fmt.Errorf("outputs of %d and state changes of %d bytes: at most %d together; write large data to a file and hand on its name", o, c, task.MaxBytes)
	}
	a.outcome.Outputs, a.outcome.Changes = outputs, changes
	return nil
}

// answer reads one of the files that the unit answers by.
func (a *attempt) answer(variable, name string) ([]byte, error) {
	data, err := readAnswer(a.desk.file(name))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", variable, err)
	}
	return data, a.refuseSecrets(variable, data)
}

// checkOutputs publishes before it looks at the contract, so that it sees what
// the controller will.
func (a *attempt) checkOutputs(ctx context.Context, outputs task.Values) (_ task.Values, err error) {
	if a.runDir != "" {
		if outputs, err = a.publish(ctx, outputs); err != nil {
			return nil, err
		}
	}
	if outputs, err = a.Manifest.Unit.CheckOutputs(outputs); err != nil {
		return nil, errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return outputs, nil
}
