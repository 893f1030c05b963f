package engine

import (
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// Command is something asked of the controller: a closed set, one type each.
// The comment of each names the Answer it gets.
type Command interface{ command() }

// Register is an executor presenting itself. Answered Registered.
type Register struct {
	Exec     string
	Types    []string    // what it offers
	Units    []task.Unit // contracts of those that have one
	Proto    int         // 1 or 2
	Instance string      // random per process; empty on protocol 1
	Running  []Held      // tasks it holds
	Host     string
	PID      int
	Build    string
	Share    string         // the file tree it sees; empty: none
	Capacity task.Resources // of its host, shared with all executors of the same Host
	Hashes   task.Values    // type: hash of its manifest, program and image
	// Subscribe asks for StateChanged orders; protocol 1 has no word for them.
	Subscribe bool
}

// Held is a task that an executor says it has.
type Held struct {
	Task    string
	Version task.Version
	Phase   Phase
}

// Phase is how far an executor has come with a task that it holds.
type Phase uint8

const (
	PhaseQueued Phase = iota
	PhaseRunning
	PhaseDone // its result is kept, unacknowledged
)

// Types adds and removes task types of a registered executor. Answered Registered.
type Types struct {
	Exec   string
	Add    []string
	Remove []string
	Units  []task.Unit
	Hashes task.Values
}

// Ready is a protocol 1 heartbeat: the executor waits for a task now. It gets
// an Order later: a task, or a Beat when wire.hold has passed. Never answered.
type Ready struct{ Exec string }

// Result is an attempt's end. Answered Applied, or ErrUnregistered.
type Result struct {
	Exec    string
	Outcome task.Outcome
	Raw     error // the message was malformed but named its task: fails the attempt as output_invalid
}

// Returned hands a recalled or drained task back unstarted. Answered Applied.
type Returned struct {
	Exec    string
	Task    string
	Version task.Version
}

// Progress is a sign from a running attempt. Never answered.
type Progress struct {
	Exec    string
	Task    string
	Version task.Version // zero: what it was last sent
	Start   bool         // it still runs after 50 ms
	Percent string
	Message string
	Changes []task.Change // of a resident unit
}

// Offline is an executor leaving in order. Never answered.
type Offline struct{ Exec, Reason string }

// Disconnected says that an executor's link is gone. Never answered.
type Disconnected struct{ Exec, Reason string }

// Submit asks for tasks, all or none. Answered []view.Submitted in order of Specs; a fault in any of
// them is a *SubmitError, and nothing is queued.
type Submit struct {
	Specs []task.Spec
	Check bool // only check: queue nothing

	atContext bool        // pin context instead of the state as it is
	context   task.Values //
}

// Requeue gives dead, cancelled or aborted tasks a new life. Answered *view.Changed.
type Requeue struct {
	view.Selection
	Actor string
}

// Cancel ends tasks that have not ended. Answered *view.Changed.
type Cancel struct {
	view.Selection
	Actor  string
	Reason string
}

// Drop takes dead, cancelled or aborted tasks out of memory. Answered *view.Changed.
type Drop struct {
	view.Selection
	Actor  string
	Reason string
}

// Edit changes the inputs of a task that no executor has; one that has ended is
// requeued with them. Answered *view.Detail, as the task is now.
type Edit struct {
	ID    string // or a unique prefix
	Set   task.Values
	Unset []string
	Actor string
}

// Pause stops dispatching (On) or lets it go on: of one type, or all. Answered Done.
type Pause struct {
	Type  string // empty: everything
	On    bool
	Actor string
}

// Drain lets an executor finish what it runs and takes nothing new. Answered Done.
type Drain struct{ Exec, Actor string }

// Debug switches the wire tap; on, it goes off by itself after 15 minutes,
// unless the settings have it on. Answered Done.
type Debug struct{ On bool }

// Repair sets a state key by hand. Answered view.Key.
type Repair struct {
	Key    string
	Value  string
	Delete bool
	Reason string
	Actor  string
}

// GetStatus is answered *view.Status.
type GetStatus struct{}

// GetExecutors is answered []view.Executor, by id.
type GetExecutors struct{}

// GetQueues is answered []view.Queue, by type.
type GetQueues struct{}

// GetTasks is answered *view.Page.
type GetTasks struct{ Query view.Query }

// GetTask is answered *view.Detail, or ErrNotFound; ID may be a unique prefix.
type GetTask struct{ ID string }

// GetExplanation is answered *view.Explanation, or ErrNotFound; ID may be a unique prefix.
type GetExplanation struct{ ID string }

// GetState is answered *view.KeyPage.
type GetState struct{ Query view.KeyQuery }

// GetLate is answered []view.Late, newest first.
type GetLate struct{ Limit int }

// Registered answers Register and Types.
type Registered struct {
	Epoch         uint64
	StateVersion  uint64
	ConfigVersion uint64
	Heartbeat     time.Duration
	Refused       []string // "type: difference" of contracts that others hold otherwise
	Kept          []Held   // presented tasks that stay with the executor
	Stale         []Held   // presented tasks that it must end: each gets a cancel order
}

// Verdict is what became of a result.
type Verdict uint8

const (
	Accepted  Verdict = iota // applied
	Duplicate                // was applied before, same version
	Stale                    // dropped, in the late ledger
	Rejected                 // ends the attempt, but as a failure: Reason says why
)

// Applied answers Result and Returned.
type Applied struct {
	Verdict      Verdict
	Reason       string
	StateVersion uint64
}

// Done answers what has nothing to tell.
type Done struct{}

// Answer is what a Command gets: one of the types that the commands name.
type Answer any

// Order is sent to an executor unasked: a closed set.
type Order interface{ order() }

// Assign gives a task.
type Assign struct{ task.Assignment }

// Beat answers a held protocol 1 heartbeat when there is no task.
type Beat struct{ StateVersion uint64 }

// Revoke ends a task: cancel, deadline passed, or superseded.
type Revoke struct {
	Task    string
	Version task.Version
	Reason  string
}

// Recall asks for a task back if it has not been started.
type Recall struct {
	Task    string
	Version task.Version
}

// DrainOrder tells an executor to finish, give back the rest, and go.
type DrainOrder struct{ Reason string }

// StateChanged names the keys of the global state that changed, to those who
// subscribed: at most once a second, the latest version wins.
type StateChanged struct {
	Version uint64 // of the state
	Since   uint64 // keys that changed after this version of the state are named
	Keys    []KeyChange
	More    bool // not all of them: ask for what changed since Since
}

// KeyChange is a key with its version, zero if it is gone.
type KeyChange struct {
	Key     string
	Version uint64
}

// Dismiss closes the link: the executor was replaced, or its answer is no longer wanted.
type Dismiss struct {
	Reason   string
	Stopping bool // the controller stops: come back soon
}

func (Assign) order()       {}
func (StateChanged) order() {}
func (Beat) order()         {}
func (Revoke) order()       {}
func (Recall) order()       {}
func (DrainOrder) order()   {}
func (Dismiss) order()      {}

func (Register) command()       {}
func (Types) command()          {}
func (Ready) command()          {}
func (Result) command()         {}
func (Returned) command()       {}
func (Progress) command()       {}
func (Offline) command()        {}
func (Disconnected) command()   {}
func (Submit) command()         {}
func (Requeue) command()        {}
func (Cancel) command()         {}
func (Drop) command()           {}
func (Edit) command()           {}
func (Pause) command()          {}
func (Drain) command()          {}
func (Debug) command()          {}
func (Repair) command()         {}
func (GetStatus) command()      {}
func (GetExecutors) command()   {}
func (GetQueues) command()      {}
func (GetTasks) command()       {}
func (GetTask) command()        {}
func (GetExplanation) command() {}
func (GetState) command()       {}
func (GetLate) command()        {}

// Link is a connection as the loop sees it. The loop calls it only from its own
// goroutine and only after what led to the call is on disk; no method waits.
type Link interface {
	Order(Order)                            // adds to what the next Flush sends
	Answer(ref uint64, a Answer, err error) // likewise
	Flush()                                 // sends what was added, without blocking
	Heard() time.Time                       // when the last frame came (monotonic)
}

// Ask is a command with where its answer goes.
type Ask struct {
	Command Command
	Link    Link   // of a Register: the executor's link from now on
	Ref     uint64 // handed back with the answer
}
