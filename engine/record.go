package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"apollo11/engine/task"
)

// A record is what happened. It holds effects, not intentions: resolved values,
// due times with their jitter, the resulting state. Applying one reads only the
// state and the record, so a journal folds to the same state in every build.
//
// To change a record: add a field that is skipped when zero, or add a kind.
// Never change the meaning of a name; an old build refuses what it doesn't know.
type record interface {
	kind() string
	walk(*fields)        // the fields, in the order they are written
	apply(*state) uint32 // changes the state; returns the slot it touched, 0 for none
}

// newRecord makes an empty record of a kind.
var newRecord = map[string]func() record{
	"start":            func() record { return new(started) },
	"seal":             func() record { return new(sealed) },
	"clock.back":       func() record { return new(clockBack) },
	"config":           func() record { return new(configured) },
	"image":            func() record { return new(imaged) },
	"task.submit":      func() record { return new(submitted) },
	"task.start":       func() record { return new(dispatched) },
	"task.running":     func() record { return new(running) },
	"task.result":      func() record { return new(resulted) },
	"task.fail":        func() record { return new(failed) },
	"task.back":        func() record { return new(handedBack) },
	"task.queue":       func() record { return new(enqueued) },
	"task.end":         func() record { return new(ended) },
	"task.edit":        func() record { return new(edited) },
	"task.drop":        func() record { return new(dropped) },
	"task.forget":      func() record { return new(forgotten) },
	"key.forget":       func() record { return new(keysForgotten) },
	"exec.register":    func() record { return new(registered) },
	"exec.types":       func() record { return new(offered) },
	"exec.late":        func() record { return new(beatMissed) },
	"exec.offline":     func() record { return new(wentOffline) },
	"exec.drain":       func() record { return new(draining) },
	"exec.forget":      func() record { return new(executorForgotten) },
	"unit":             func() record { return new(unitDeclared) },
	"pause":            func() record { return new(paused) },
	"state.repair":     func() record { return new(repaired) },
	"late":             func() record { return new(lateResult) },
	"mission.spec":     func() record { return new(specStored) },
	"run.start":        func() record { return new(runStarted) },
	"run.go":           func() record { return new(runWent) },
	"run.stop":         func() record { return new(runStopped) },
	"run.cancel":       func() record { return new(runCancelledBy) },
	"run.end":          func() record { return new(runEnded) },
	"run.forget":       func() record { return new(runForgotten) },
	"task.ready":       func() record { return new(becameReady) },
	"mission.set":      func() record { return new(missionSet) },
	"mission.drop":     func() record { return new(missionDropped) },
	"trigger.next":     func() record { return new(triggerSet) },
	"trigger.drop":     func() record { return new(triggerDropped) },
	"trigger.fire":     func() record { return new(triggerFired) },
	"event":            func() record { return new(eventTold) },
	"task.settle":      func() record { return new(settled) },
	"task.skip":        func() record { return new(skipped) },
	"task.progress":    func() record { return new(progressed) },
	"state.restore":    func() record { return new(restored) },
	"nondeterministic": func() record { return new(varied) },
}

// Kinds is the name of every kind of record, in order.
func Kinds() []string { return slices.Sorted(maps.Keys(newRecord)) }

// appendRecord writes a record as a journal entry: time, kind, fields.
func appendRecord(f *fields, stamp []byte, r record) {
	f.out = append(f.out, stamp...)
	f.out = append(f.out, ' ')
	f.out = append(f.out, r.kind()...)
	r.walk(f)
}

// parseRecord reads a journal entry.
func parseRecord(entry string) (wall int64, r record, err error) { return new(fields).record(entry) }

// record reads a journal entry; one f for many of them is the fastest.
func (f *fields) record(entry string) (wall int64, r record, err error) {
	stamp, rest, _ := strings.Cut(entry, " ")
	if wall, err = f.seen.parse(stamp); err != nil {
		return 0, nil, err
	}
	kind, rest, more := strings.Cut(rest, " ")
	empty := newRecord[kind]
	if empty == nil || more && rest == "" {
		return 0, nil, fmt.Errorf("unknown record kind %q: written by a newer build?", kind)
	}
	r = empty()
	if err = f.read(rest, r.walk); err != nil {
		return 0, nil, fmt.Errorf("%s: %w", kind, err)
	}
	return wall, r, nil
}

// started is a start of the controller; the epoch fences all before it.
type started struct {
	Epoch uint64
	Build string
}

func (*started) kind() string { return "start" }
func (r *started) walk(f *fields) {
	f.u64("epoch", &r.Epoch)
	f.str("build", &r.Build)
}

// sealed follows a second of quiet: what stands before it is no torn tail.
type sealed struct{}

func (*sealed) kind() string { return "seal" }
func (*sealed) walk(*fields) {}

// clockBack says that the wall clock was set back.
type clockBack struct{ By time.Duration }

func (*clockBack) kind() string     { return "clock.back" }
func (r *clockBack) walk(f *fields) { f.micros("us", &r.By) }

// configured is a change of configuration or contracts: what sys.config_version counts.
type configured struct {
	Version uint64
	Hash    string // of the configuration alone
	Why     string
}

func (*configured) kind() string { return "config" }
func (r *configured) walk(f *fields) {
	f.u64("version", &r.Version)
	f.str("hash", &r.Hash)
	f.str("why", &r.Why)
}

// imaged says that an image of an earlier position was committed.
type imaged struct {
	Seq  uint64
	Hash string // of the state at Seq
}

func (*imaged) kind() string { return "image" }
func (r *imaged) walk(f *fields) {
	f.u64("seq", &r.Seq)
	f.str("hash", &r.Hash)
}

// submitted is a task accepted.
type submitted struct {
	Task      string
	Type      string
	Key       string
	State     task.State // queued or scheduled
	NotBefore int64
	Deadline  int64
	Retries   int // plus one; 0: the unit's
	Timeout   time.Duration
	Inputs    task.Values
	Filled    string      // comma list of those that the contract's defaults gave
	Kept      bool        // its context is not the state as it is, but this
	Context   task.Values //
	Named     bool        // somebody chose the id or a key: it is remembered after the end
}

func (*submitted) kind() string { return "task.submit" }
func (r *submitted) walk(f *fields) {
	f.str("task", &r.Task)
	f.str("type", &r.Type)
	f.str("key", &r.Key)
	f.state("state", &r.State)
	f.moment("not_before", &r.NotBefore)
	f.moment("deadline", &r.Deadline)
	f.num("retries1", &r.Retries)
	f.micros("timeout_us", &r.Timeout)
	f.values("in", &r.Inputs)
	f.str("filled", &r.Filled)
	f.flag("named", &r.Named)
	f.flag("kept", &r.Kept)
	f.values("ctx", &r.Context)
}

// dispatched is a task given to an executor: document 004's start.
type dispatched struct {
	Task         string
	Version      task.Version
	Exec         string
	Attempt      int
	StateVersion uint64
	InputHash    string
	Context      task.Values // pinned keys
	ContextAt    task.Values // their versions; only of a fresh unit
}

func (*dispatched) kind() string { return "task.start" }
func (r *dispatched) walk(f *fields) {
	f.str("task", &r.Task)
	f.version("v", &r.Version)
	f.str("exec", &r.Exec)
	f.num("attempt", &r.Attempt)
	f.u64("sv", &r.StateVersion)
	f.str("in", &r.InputHash)
	f.values("ctx", &r.Context)
	f.values("ctx_at", &r.ContextAt)
}

// running says that the executor really works on it: told only by long tasks.
type running struct {
	Task    string
	Version task.Version
}

func (*running) kind() string { return "task.running" }
func (r *running) walk(f *fields) {
	f.str("task", &r.Task)
	f.version("v", &r.Version)
}

// resulted is a success with its outputs and state changes, all or nothing.
type resulted struct {
	Task         string
	Version      task.Version
	Exec         string
	Outputs      task.Values
	OutputHash   string
	Timing       task.Timing
	Set          task.Values // resolved
	Del          string      // comma list of keys
	StateVersion uint64      // after it
	Unit         string      // hash of what ran
}

func (*resulted) kind() string { return "task.result" }
func (r *resulted) walk(f *fields) {
	f.str("task", &r.Task)
	f.version("v", &r.Version)
	f.str("exec", &r.Exec)
	f.values("out", &r.Outputs)
	f.str("out_hash", &r.OutputHash)
	walkTiming(f, &r.Timing)
	f.values("set", &r.Set)
	f.str("del", &r.Del)
	f.u64("sv", &r.StateVersion)
	f.str("unit", &r.Unit)
}

func walkTiming(f *fields, t *task.Timing) {
	f.micros("prepare_us", &t.Prepare)
	f.micros("execute_us", &t.Execute)
	f.micros("cleanup_us", &t.Cleanup)
}

// failed is an attempt that did not succeed, with what follows from it.
type failed struct {
	Task    string
	Version task.Version
	Exec    string
	Class   task.Class
	Error   string
	Timing  task.Timing
	Exit    int
	Signal  string
	Outputs task.Values // only those of a result that was refused
	Next    task.State  // retrying, queued, dead, or aborted: its run stopped
	Due     int64       // of retrying
	Head    bool        // of queued
	Told    bool        // the executor's own result, not the controller's verdict
	Tries   uint32      // failures that used a retry, after this
	Crashes uint32      // executors lost, after this
	Stales  uint32      // stale contexts in a row, after this
}

func (*failed) kind() string { return "task.fail" }
func (r *failed) walk(f *fields) {
	f.str("task", &r.Task)
	f.version("v", &r.Version)
	f.str("exec", &r.Exec)
	f.class("class", &r.Class)
	f.str("error", &r.Error)
	walkTiming(f, &r.Timing)
	f.num("exit", &r.Exit)
	f.str("signal", &r.Signal)
	f.values("out", &r.Outputs)
	f.state("state", &r.Next)
	f.moment("due", &r.Due)
	f.flag("head", &r.Head)
	f.flag("told", &r.Told)
	f.u32("tries", &r.Tries)
	f.u32("crashes", &r.Crashes)
	f.u32("stales", &r.Stales)
}

// handedBack is a dispatch that came to nothing and counts for nothing: it never
// arrived, was recalled, or its executor left in order.
type handedBack struct {
	Task    string
	Version task.Version
	Exec    string
	Reason  string
	Head    bool
	Attempt int // the task's, after this
}

func (*handedBack) kind() string { return "task.back" }
func (r *handedBack) walk(f *fields) {
	f.str("task", &r.Task)
	f.version("v", &r.Version)
	f.str("exec", &r.Exec)
	f.str("reason", &r.Reason)
	f.flag("head", &r.Head)
	f.num("attempt", &r.Attempt)
}

// enqueued is a task that comes to the queue from waiting, or by a person.
type enqueued struct {
	Task   string
	Reason string // due, retry, requeue, edit
	By     string
	Head   bool
	Fresh  bool // a new life: retry and crash counts start anew
}

func (*enqueued) kind() string { return "task.queue" }
func (r *enqueued) walk(f *fields) {
	f.str("task", &r.Task)
	f.str("reason", &r.Reason)
	f.str("by", &r.By)
	f.flag("head", &r.Head)
	f.flag("anew", &r.Fresh)
}

// ended is an end without a result: cancelled by a person, or expired.
type ended struct {
	Task  string
	State task.State
	Class task.Class
	Error string
	By    string
}

func (*ended) kind() string { return "task.end" }
func (r *ended) walk(f *fields) {
	f.str("task", &r.Task)
	f.state("state", &r.State)
	f.class("class", &r.Class)
	f.str("error", &r.Error)
	f.str("by", &r.By)
}

// forgotten drops the oldest finished tasks from memory.
type forgotten struct{ Count int }

func (*forgotten) kind() string     { return "task.forget" }
func (r *forgotten) walk(f *fields) { f.num("count", &r.Count) }

// keysForgotten drops the oldest remembered ids and keys.
type keysForgotten struct{ Count int }

func (*keysForgotten) kind() string     { return "key.forget" }
func (r *keysForgotten) walk(f *fields) { f.num("count", &r.Count) }

// registered is an executor that presented itself.
type registered struct {
	Exec     string
	Types    task.Values // offered type: hash of its contract, empty without one
	Proto    int
	Instance string
	Host     string
	PID      int
	Build    string
}

func (*registered) kind() string { return "exec.register" }
func (r *registered) walk(f *fields) {
	f.str("exec", &r.Exec)
	f.values("types", &r.Types)
	f.num("proto", &r.Proto)
	f.str("instance", &r.Instance)
	f.str("host", &r.Host)
	f.num("pid", &r.PID)
	f.str("build", &r.Build)
}

// offered is a change of what an executor offers: the whole new list.
type offered struct {
	Exec  string
	Types task.Values
}

func (*offered) kind() string { return "exec.types" }
func (r *offered) walk(f *fields) {
	f.str("exec", &r.Exec)
	f.values("types", &r.Types)
}

// beatMissed marks an executor late.
type beatMissed struct{ Exec string }

func (*beatMissed) kind() string     { return "exec.late" }
func (r *beatMissed) walk(f *fields) { f.str("exec", &r.Exec) }

// wentOffline is an executor lost, or gone in order.
type wentOffline struct {
	Exec   string
	Reason string
}

func (*wentOffline) kind() string { return "exec.offline" }
func (r *wentOffline) walk(f *fields) {
	f.str("exec", &r.Exec)
	f.str("reason", &r.Reason)
}

// draining lets an executor finish and take nothing new.
type draining struct{ Exec, By string }

func (*draining) kind() string { return "exec.drain" }
func (r *draining) walk(f *fields) {
	f.str("exec", &r.Exec)
	f.str("by", &r.By)
}

// executorForgotten drops an executor that has been offline for long.
type executorForgotten struct{ Exec string }

func (*executorForgotten) kind() string     { return "exec.forget" }
func (r *executorForgotten) walk(f *fields) { f.str("exec", &r.Exec) }

// unitDeclared is a type's contract, from now on.
type unitDeclared struct {
	Type string
	Text string // task.Unit's canonical text
}

func (*unitDeclared) kind() string { return "unit" }
func (r *unitDeclared) walk(f *fields) {
	f.str("type", &r.Type)
	f.str("text", &r.Text)
}

// paused stops or continues dispatching, of one type or of all.
type paused struct {
	Type string
	On   bool
	By   string
}

func (*paused) kind() string { return "pause" }
func (r *paused) walk(f *fields) {
	f.str("type", &r.Type)
	f.flag("on", &r.On)
	f.str("by", &r.By)
}

// repaired is a state key set by a person.
type repaired struct {
	Key    string
	Value  string
	Delete bool
	Reason string
	By     string
}

func (*repaired) kind() string { return "state.repair" }
func (r *repaired) walk(f *fields) {
	f.str("key", &r.Key)
	f.str("value", &r.Value)
	f.flag("delete", &r.Delete)
	f.str("reason", &r.Reason)
	f.str("by", &r.By)
}

// lateResult is a line of the late ledger.
type lateResult struct {
	Task    string
	Version task.Version
	Current task.Version
	Exec    string
	Reason  string
	Effect  string
}

func (*lateResult) kind() string { return "late" }
func (r *lateResult) walk(f *fields) {
	f.str("task", &r.Task)
	f.version("v", &r.Version)
	f.version("current", &r.Current)
	f.str("exec", &r.Exec)
	f.str("reason", &r.Reason)
	f.str("effect", &r.Effect)
}
