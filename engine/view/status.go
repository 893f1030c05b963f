package view

import "apollo11/engine/task"

// Status is the controller on one page: counters only, so it costs nothing to ask.
type Status struct {
	Epoch         int64  `json:"epoch"` // starts of the controller on this journal
	Seq           int64  `json:"seq"`   // last journal record
	StateVersion  int64  `json:"state_version"`
	ConfigVersion int64  `json:"config_version"`
	ConfigHash    string `json:"config_hash"`
	Debug         bool   `json:"debug"`
	DebugLeftMS   int64  `json:"debug_left_ms"` // until it goes off by itself; 0: it stays as it is
	Paused        bool   `json:"paused"`
	PausedTypes   string `json:"paused_types"` // comma list
	DiskFull      bool   `json:"disk_full"`
	Late          int64  `json:"late"`       // results ever that came and were not applied
	Duplicates    int64  `json:"duplicates"` // results ever that came again and changed nothing
	Executors     Counts `json:"executors"`  // by state, every state present
	Tasks         Counts `json:"tasks"`      // by state, every state present
	Since         Time   `json:"since"`      // when this controller started
	Now           Time   `json:"now"`
}

// Counts is how many things stand in each state.
type Counts map[string]int64

// ExecutorStates lists the states of an executor, in the order of its life.
var ExecutorStates = []string{"registering", "idle", "running", "draining", "offline"}

// Fields implements Row.
func (s *Status) Fields(v Visitor) {
	v.Int("epoch", &s.Epoch)
	v.Int("seq", &s.Seq)
	v.Int("state_version", &s.StateVersion)
	v.Int("config_version", &s.ConfigVersion)
	v.Text("config_hash", &s.ConfigHash)
	v.Bool("debug", &s.Debug)
	v.Int("debug_left_ms", &s.DebugLeftMS)
	v.Bool("paused", &s.Paused)
	v.Text("paused_types", &s.PausedTypes)
	v.Bool("disk_full", &s.DiskFull)
	v.Int("late", &s.Late)
	v.Int("duplicates", &s.Duplicates)
	v.Time("since", &s.Since)
	v.Time("now", &s.Now)
	s.Executors = s.Executors.fields(v, "executors.", ExecutorStates)
	names := make([]string, 0, len(task.States()))
	for _, state := range task.States() {
		names = append(names, state.String())
	}
	s.Tasks = s.Tasks.fields(v, "tasks.", names)
}

func (c Counts) fields(v Visitor, prefix string, names []string) Counts {
	if c == nil {
		c = make(Counts, len(names))
	}
	for _, name := range names {
		n := c[name]
		v.Int(prefix+name, &n)
		c[name] = n
	}
	return c
}

// Overview is what a console repaints from, published a few times a second.
type Overview struct {
	Status    Status
	Executors []Executor
	Queues    []Queue
	PerSecond float64 // results applied, over the last few seconds
}

// Queue is one type's line of waiting tasks.
type Queue struct {
	Type      string `json:"type"`
	Queued    int64  `json:"queued"`
	Out       int64  `json:"out"`   // assigned or running
	Limit     int64  `json:"limit"` // 0: none
	Paused    bool   `json:"paused"`
	Executors int64  `json:"executors"` // that offer it and are connected
	OldestMS  int64  `json:"oldest_ms"` // age of the head
}

// Fields implements Row.
func (q *Queue) Fields(v Visitor) {
	v.Text("type", &q.Type)
	v.Int("queued", &q.Queued)
	v.Int("out", &q.Out)
	v.Int("limit", &q.Limit)
	v.Bool("paused", &q.Paused)
	v.Int("executors", &q.Executors)
	v.Int("oldest_ms", &q.OldestMS)
}

// Event is one journal record as the timeline shows it.
type Event struct {
	Seq    int64  `json:"seq"`
	Time   Time   `json:"time"`
	Kind   string `json:"kind"`
	Task   string `json:"task"`   // empty: none
	Exec   string `json:"exec"`   // empty: none
	Run    string `json:"run"`    // empty: none
	Values Object `json:"values"` // the record's other fields
}

// Fields implements Row.
func (e *Event) Fields(v Visitor) {
	v.Int("seq", &e.Seq)
	v.Time("time", &e.Time)
	v.Text("kind", &e.Kind)
	v.Text("task", &e.Task)
	v.Text("exec", &e.Exec)
	v.Text("run", &e.Run)
	v.Values("values", (*task.Values)(&e.Values))
}
