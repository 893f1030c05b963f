package view

import "apollo11/engine/task"

// Run is one execution of a mission, as a table shows it.
type Run struct {
	ID       string `json:"id"`
	Mission  string `json:"mission"`
	State    string `json:"state"`          // waiting running needs_person succeeded failed cancelled aborted
	Mode     string `json:"mode"`           // start resume rerun fork sample rollback
	Parent   string `json:"parent"`         // the run it goes on from, or is compared with; empty: none
	Child    string `json:"child"`          // the run that resumed it; empty: none
	Cause    string `json:"cause"`          // what started it: a person, or the trigger in words
	By       string `json:"by"`             // the person; empty: a trigger
	Why      string `json:"why"`            // why it did not succeed, or waits
	Spec     string `json:"spec"`           // hash of the mission as it was
	Config   int64  `json:"config_version"` // of configuration, missions and contracts at its start
	Units    int64  `json:"units"`
	Done     int64  `json:"done"`    // units that have ended
	Running  int64  `json:"running"` // units that an executor has
	Failed   int64  `json:"failed"`  // dead
	Skipped  int64  `json:"skipped"` // condition false, or upstream skipped
	Reused   int64  `json:"reused"`  // results taken over from the parent
	Created  Time   `json:"created"`
	Started  Time   `json:"started"`
	Finished Time   `json:"finished"`
	MS       int64  `json:"ms"` // from start to end, or to now
	Params   Object `json:"params"`
	Warning  string `json:"warning,omitempty"` // to who started it, such as: no executor offers a type
}

// RunStates lists the states of a run, in the order of its life.
var RunStates = []string{"waiting", "running", "needs_person", "succeeded", "failed", "cancelled", "aborted"}

// Fields implements Row.
func (r *Run) Fields(v Visitor) {
	v.Text("id", &r.ID)
	v.Text("mission", &r.Mission)
	v.Text("state", &r.State)
	v.Text("mode", &r.Mode)
	v.Text("parent", &r.Parent)
	v.Text("child", &r.Child)
	v.Text("cause", &r.Cause)
	v.Text("by", &r.By)
	v.Text("why", &r.Why)
	v.Text("spec", &r.Spec)
	v.Int("config_version", &r.Config)
	v.Int("units", &r.Units)
	v.Int("done", &r.Done)
	v.Int("running", &r.Running)
	v.Int("failed", &r.Failed)
	v.Int("skipped", &r.Skipped)
	v.Int("reused", &r.Reused)
	v.Time("created", &r.Created)
	v.Time("started", &r.Started)
	v.Time("finished", &r.Finished)
	v.Int("ms", &r.MS)
	v.Values("params", (*task.Values)(&r.Params))
	v.Text("warning", &r.Warning)
}

// RunUnit is one unit of a run: its place in the graph, and what became of its task.
type RunUnit struct {
	Unit       string `json:"unit"` // name in the mission
	Task       string `json:"task"` // id
	Type       string `json:"type"`
	State      string `json:"state"`
	Reason     string `json:"reason"` // why it was skipped, reused, rerun or aborted
	Deps       string `json:"deps"`   // comma list of units it waits for
	Weak       string `json:"weak"`   // comma list
	Attempt    int64  `json:"attempt"`
	Version    int64  `json:"version"` // of the present or the last dispatch
	Executor   string `json:"executor"`
	ErrorClass string `json:"error_class"`
	Error      string `json:"error"`
	InputHash  string `json:"input_hash"` // empty: its inputs are not known yet
	OutputHash string `json:"output_hash"`
	UnitHash   string `json:"unit_hash"` // of the manifest and program that ran
	Ready      Time   `json:"ready"`     // when it came to the queue
	Started    Time   `json:"started"`
	Finished   Time   `json:"finished"`
	QueueMS    int64  `json:"queue_ms"` // from ready to the last dispatch
	PrepareMS  int64  `json:"prepare_ms"`
	ExecuteMS  int64  `json:"execute_ms"`
	CleanupMS  int64  `json:"cleanup_ms"`
	Inputs     Object `json:"inputs"`
	Outputs    Object `json:"outputs"`
}

// Fields implements Row.
func (u *RunUnit) Fields(v Visitor) {
	v.Text("unit", &u.Unit)
	v.Text("task", &u.Task)
	v.Text("task_type", &u.Type)
	v.Text("state", &u.State)
	v.Text("reason", &u.Reason)
	v.Text("deps", &u.Deps)
	v.Text("weak", &u.Weak)
	v.Int("attempt", &u.Attempt)
	v.Int("version", &u.Version)
	v.Text("executor", &u.Executor)
	v.Text("error_class", &u.ErrorClass)
	v.Text("error", &u.Error)
	v.Text("input_hash", &u.InputHash)
	v.Text("output_hash", &u.OutputHash)
	v.Text("unit_hash", &u.UnitHash)
	v.Time("ready", &u.Ready)
	v.Time("started", &u.Started)
	v.Time("finished", &u.Finished)
	v.Int("queue_ms", &u.QueueMS)
	v.Int("prepare_ms", &u.PrepareMS)
	v.Int("execute_ms", &u.ExecuteMS)
	v.Int("cleanup_ms", &u.CleanupMS)
	v.Values("inputs", (*task.Values)(&u.Inputs))
	v.Values("outputs", (*task.Values)(&u.Outputs))
}

// RunQuery asks for a page of runs, newest first.
type RunQuery struct {
	Mission string // empty: any
	State   string // empty: any
	Limit   int    // 0: MaxRows
	Cursor  string // of the page before
}

// RunPage answers a RunQuery.
type RunPage struct {
	Runs   []Run
	Cursor string // where the next page starts; empty: that was the last
}

// RunDetail is a run with a page of its units, in the mission's order.
type RunDetail struct {
	Run
	Notes  []string // what a person should know: reused results, changed inputs, changed units
	Units  []RunUnit
	Cursor string // where the next page of units starts; empty: that was the last
}

// Mission is a mission that the controller knows by name.
type Mission struct {
	Name     string `json:"name"`
	Hash     string `json:"hash"`
	File     string `json:"file"`
	Units    int64  `json:"units"`
	Template bool   `json:"template"`
	Params   Object `json:"params"`   // name: type, and its default behind an equals sign
	Triggers string `json:"triggers"` // in words, separated by semicolons
	Next     Time   `json:"next"`     // when a time table starts it next
	LastRun  string `json:"last_run"`
	State    string `json:"state"` // of the last run
	Fault    string `json:"fault"` // why it can't be started as things are
}

// Fields implements Row.
func (m *Mission) Fields(v Visitor) {
	v.Text("name", &m.Name)
	v.Text("hash", &m.Hash)
	v.Text("file", &m.File)
	v.Int("units", &m.Units)
	v.Bool("template", &m.Template)
	v.Values("params", (*task.Values)(&m.Params))
	v.Text("triggers", &m.Triggers)
	v.Time("next", &m.Next)
	v.Text("last_run", &m.LastRun)
	v.Text("state", &m.State)
	v.Text("fault", &m.Fault)
}

// TypeStats is what is known of how long a type's attempts take.
type TypeStats struct {
	Type    string `json:"type"`
	Samples int64  `json:"samples"`
	MeanUS  int64  `json:"mean_us"`
	P50US   int64  `json:"p50_us"`
	P99US   int64  `json:"p99_us"`
	MaxUS   int64  `json:"max_us"`
	Execs   int64  `json:"executors"` // that offer it and are connected
	Unit    string `json:"unit"`      // the contract's canonical text; empty: none is known
}

// Fields implements Row.
func (t *TypeStats) Fields(v Visitor) {
	v.Text("task_type", &t.Type)
	v.Int("samples", &t.Samples)
	v.Int("mean_us", &t.MeanUS)
	v.Int("p50_us", &t.P50US)
	v.Int("p99_us", &t.P99US)
	v.Int("max_us", &t.MaxUS)
	v.Int("executors", &t.Execs)
	v.Text("unit", &t.Unit)
}

// Undone answers a rollback: what is undone, in order, and what has no undo.
type Undone struct {
	Run     Run      // the run that carries it out; empty id: it was only asked for
	Units   []string // in the order in which they are undone
	Without []string // units that succeeded and have no undo
}

// Restored answers a state rollback.
type Restored struct {
	Seq     int64 // the moment that the state is put back to
	Total   int   // keys that change, more than Changed lists if those are many; the engine leaves it zero
	Changed []KeyChange
}

// KeyChange is a key with its values before and after.
type KeyChange struct {
	Key    string `json:"key"`
	Before string `json:"before"`
	After  string `json:"after"`
	Gone   bool   `json:"gone"` // there is no key after
	New    bool   `json:"new"`  // there was none before
}

// Fields implements Row.
func (k *KeyChange) Fields(v Visitor) {
	v.Text("key", &k.Key)
	v.Text("before", &k.Before)
	v.Text("after", &k.After)
	v.Bool("gone", &k.Gone)
	v.Bool("new", &k.New)
}
