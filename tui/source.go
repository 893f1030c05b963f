package tui

import (
	"context"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// Source is what the console asks. A call may wait; it is made by a command,
// never by Update or View, several at once.
type Source interface {
	TaskSource
	RunSource
	Overview(context.Context) (*view.Overview, error)
	Keys(context.Context, view.KeyQuery) (*view.KeyPage, error)
	Timeline(context.Context, view.EventQuery) (*view.EventPage, error)
}

// TaskSource is what the console asks about tasks, and wants done.
type TaskSource interface {
	Tasks(context.Context, view.Query) (*view.Page, error)
	Task(ctx context.Context, id string) (*view.Detail, error)
	Explain(ctx context.Context, id string) (*view.Explanation, error)
	Do(context.Context, Action) (*view.Changed, error)
}

// RunSource is what the console asks about runs of missions, and wants done.
type RunSource interface {
	Runs(context.Context, view.RunQuery) (*view.RunPage, error)
	// Run is a run with a page of its units; cursor is of the page before.
	Run(ctx context.Context, id, cursor string) (*view.RunDetail, error)
	Missions(context.Context) ([]view.Mission, error)
	// DoRun does StartRun, ResumeRun or CancelRun, and answers the run that came
	// of it.
	DoRun(context.Context, Action) (*view.Run, error)
}

// Verb is what an Action does.
type Verb uint8

// The verbs.
const (
	Requeue  Verb = iota + 1 // Tasks
	Cancel                   // Tasks, with Reason
	Drop                     // Tasks, with Reason
	Edit                     // the one task of Tasks: Set and Unset
	Pause                    // Name is a type; empty: everything
	Continue                 // likewise
	Drain                    // Name is an executor
	DebugOn
	DebugOff
	StartRun  // Name is a mission, Set its parameters
	ResumeRun // Name is a run
	CancelRun // Name is a run, with Reason
)

var verbNames = [...]string{"nothing", "requeue", "cancel", "drop", "edit", "pause", "continue", "drain", "debug on", "debug off", "start", "resume", "cancel"}

func (v Verb) String() string {
	if int(v) < len(verbNames) {
		return verbNames[v]
	}
	return "unknown"
}

// Action is a change that a person asks for. The engine checks it again when it
// writes.
type Action struct {
	Verb   Verb
	Name   string
	Tasks  view.Selection
	Reason string
	Set    task.Values // inputs, parameters
	Unset  []string    // names of inputs
}
