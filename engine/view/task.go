package view

import "apollo11/engine/task"

// Task is one task as a table shows it.
type Task struct {
	ID         string `json:"id"`
	Type       string `json:"type"`
	State      string `json:"state"`
	Attempt    int64  `json:"attempt"`
	Version    int64  `json:"version"` // of the present or the last dispatch
	Executor   string `json:"executor"`
	ErrorClass string `json:"error_class"`
	Error      string `json:"error"`
	Submitted  Time   `json:"submitted"`
	Started    Time   `json:"started"`
	Finished   Time   `json:"finished"`
	Outputs    Object `json:"outputs"`
}

// Fields implements Row.
func (t *Task) Fields(v Visitor) {
	v.Text("id", &t.ID)
	v.Text("type", &t.Type)
	v.Text("state", &t.State)
	v.Int("attempt", &t.Attempt)
	v.Int("version", &t.Version)
	v.Text("executor", &t.Executor)
	v.Text("error_class", &t.ErrorClass)
	v.Text("error", &t.Error)
	v.Time("submitted", &t.Submitted)
	v.Time("started", &t.Started)
	v.Time("finished", &t.Finished)
	v.Values("outputs", (*task.Values)(&t.Outputs))
}

// Detail is all that is known of one task.
type Detail struct {
	Task
	Key          string    `json:"key"`
	Inputs       Object    `json:"inputs"`
	Context      Object    `json:"context"`       // pinned at the last dispatch
	StateVersion int64     `json:"state_version"` // the global state's at the last dispatch
	StateNow     int64     `json:"state_version_now"`
	NotBefore    Time      `json:"not_before"`
	Deadline     Time      `json:"deadline"`
	Due          Time      `json:"due"` // when a scheduled or retrying task goes on
	Retries      int64     `json:"retries"`
	TimeoutMS    int64     `json:"timeout_ms"`
	Progress     string    `json:"progress"` // last heard of a running attempt
	Crashes      int64     `json:"crashes"`
	Late         string    `json:"late"` // what a late result would have brought
	Attempts     []Attempt `json:"attempts"`
}

// Fields implements Row; the attempts follow as rows of their own.
func (d *Detail) Fields(v Visitor) {
	d.Task.Fields(v)
	v.Text("key", &d.Key)
	v.Values("inputs", (*task.Values)(&d.Inputs))
	v.Values("context", (*task.Values)(&d.Context))
	v.Int("state_version", &d.StateVersion)
	v.Int("state_version_now", &d.StateNow)
	v.Time("not_before", &d.NotBefore)
	v.Time("deadline", &d.Deadline)
	v.Time("due", &d.Due)
	v.Int("retries", &d.Retries)
	v.Int("timeout_ms", &d.TimeoutMS)
	v.Text("progress", &d.Progress)
	v.Int("crashes", &d.Crashes)
	v.Text("late", &d.Late)
}

// Attempt is one try of a task, as its history keeps it.
type Attempt struct {
	Attempt  int64  `json:"attempt"`
	Version  int64  `json:"version"`
	Executor string `json:"executor"`
	Outcome  string `json:"outcome"` // succeeded, or the error class
	Error    string `json:"error"`
	Started  Time   `json:"started"`
	Finished Time   `json:"finished"`
	MS       int64  `json:"ms"` // on the executor: prepare, execute, cleanup
}

// Fields implements Row.
func (a *Attempt) Fields(v Visitor) {
	v.Int("attempt", &a.Attempt)
	v.Int("version", &a.Version)
	v.Text("executor", &a.Executor)
	v.Text("outcome", &a.Outcome)
	v.Text("error", &a.Error)
	v.Time("started", &a.Started)
	v.Time("finished", &a.Finished)
	v.Int("ms", &a.MS)
}
