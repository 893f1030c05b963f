package wire

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// Op says what a control message asks.
type Op string

// The operations.
const (
	OpHello     Op = "hello"
	OpStatus    Op = "status"
	OpExecutors Op = "executors"
	OpTasks     Op = "tasks"
	OpTask      Op = "task"
	OpState     Op = "state"
	OpLate      Op = "late"
	OpQueues    Op = "queues"
	OpSubmit    Op = "submit"
	OpRequeue   Op = "requeue"
	OpCancel    Op = "cancel"
	OpDrop      Op = "drop"
	OpEdit      Op = "edit"
	OpExplain   Op = "explain"
	OpPause     Op = "pause"
	OpDrain     Op = "drain"
	OpDebug     Op = "debug"
	OpRepair    Op = "repair"
	OpLogs      Op = "logs"
	OpTimeline  Op = "timeline"
	OpUpload    Op = "upload"
	OpRun       Op = "run"
	OpResume    Op = "resume"
	OpRerun     Op = "rerun"
	OpFork      Op = "fork"
	OpCancelRun Op = "cancelrun"
	OpRollback  Op = "rollback"
	OpRestore   Op = "restore"
	OpEvent     Op = "event"
	OpRuns      Op = "runs"
	OpShow      Op = "show"
	OpSpec      Op = "spec"
	OpMissions  Op = "missions"
	OpStats     Op = "stats"
	OpMoment    Op = "moment"
)

// Ops lists all of them.
func Ops() []Op {
	return []Op{
		OpHello, OpStatus, OpExecutors, OpTasks, OpTask, OpState, OpLate, OpQueues, OpSubmit, OpRequeue,
		OpCancel, OpDrop, OpEdit, OpExplain, OpPause, OpDrain, OpDebug, OpRepair, OpLogs, OpTimeline,
		OpUpload, OpRun, OpResume, OpRerun, OpFork, OpCancelRun, OpRollback, OpRestore, OpEvent, OpRuns, OpShow, OpSpec,
		OpMissions, OpStats, OpMoment,
	}
}

// Reads reports whether an operation changes nothing.
func (o Op) Reads() bool {
	switch o {
	case OpStatus, OpExecutors, OpTasks, OpTask, OpState, OpLate, OpQueues, OpExplain, OpLogs, OpTimeline,
		OpRuns, OpShow, OpSpec, OpMissions, OpStats, OpMoment:
		return true
	}
	return false
}

func beginControl(dst []byte, op Op) ([]byte, int) {
	dst, at := beginMessage(dst, TypeControl)
	return appendText(dst, "op", string(op)), at
}

// AppendControl appends a control frame that has nothing more to say: status,
// executors, queues, missions, stats.
func AppendControl(dst []byte, op Op) []byte {
	dst, at := beginControl(dst, op)
	return endMessage(dst, at)
}

// Hello is the first message of an operator.
type Hello struct {
	Token  string
	Folder string // of the data folder that is meant; empty: any
	Actor  string // who asks, for the records
	Build  string
	Quiet  bool // what it reads is not for the log of every message
}

// AppendHello appends a control frame, op=hello.
func AppendHello(dst []byte, h *Hello) []byte {
	dst, at := beginControl(dst, OpHello)
	dst = appendSome(dst, "token", h.Token)
	dst = appendSome(dst, "folder", h.Folder)
	dst = appendSome(dst, "actor", h.Actor)
	dst = appendSome(dst, "build", h.Build)
	return endMessage(appendFlag(dst, "quiet", h.Quiet), at)
}

// ParseHello reads op=hello.
func ParseHello(m *Message) *Hello {
	return &Hello{
		Token: m.Text("token"), Folder: m.Text("folder"), Actor: m.Text("actor"), Build: m.Text("build"), Quiet: m.Text("quiet") == "true",
	}
}

// AppendTasks appends a control frame, op=tasks.
func AppendTasks(dst []byte, q *view.Query) []byte {
	dst, at := beginControl(dst, OpTasks)
	return endMessage(appendTaskQuery(dst, q), at)
}

func appendTaskQuery(dst []byte, q *view.Query) []byte {
	dst = appendSome(dst, "task_type", q.Type)
	names := make([]string, len(q.States))
	for i, s := range q.States {
		names[i] = s.String()
	}
	dst = appendSome(dst, "states", strings.Join(names, ","))
	dst = appendSome(dst, "error", q.Error)
	dst = appendMillis(dst, "older_ms", q.Older)
	dst = appendCount(dst, "limit", uint64(max(0, q.Limit)))
	dst = appendSome(dst, "cursor", q.Cursor)
	return appendFlag(dst, "oldest", q.Oldest)
}

// ParseTasks reads op=tasks.
func ParseTasks(m *Message) (view.Query, error) {
	f := fields{m: m}
	q := f.taskQuery()
	return q, f.err
}

func (f *fields) taskQuery() view.Query {
	q := view.Query{
		Type:   f.text("task_type"),
		Error:  f.text("error"),
		Older:  f.millis("older_ms"),
		Limit:  f.limit(),
		Cursor: f.text("cursor"),
		Oldest: f.flag("oldest"),
	}
	for _, name := range f.list("states") {
		s, err := task.ParseState(cut(name, 60))
		f.fail("states", err)
		q.States = append(q.States, s)
	}
	return q
}

// AppendName appends a control frame with an id: op=task, op=explain, op=drain,
// op=resume.
func AppendName(dst []byte, op Op, id string) []byte {
	dst, at := beginControl(dst, op)
	return endMessage(appendText(dst, "id", id), at)
}

// ParseName reads op=task, op=explain, op=drain or op=resume.
func ParseName(m *Message) (string, error) {
	f := fields{m: m}
	id := f.need("id")
	return id, f.err
}

// AppendKeys appends a control frame, op=state: of the state as record seq left
// it, or, with 0, as it is.
func AppendKeys(dst []byte, q *view.KeyQuery, seq int64) []byte {
	dst, at := beginControl(dst, OpState)
	dst = appendCount(dst, "at", uint64(max(0, seq)))
	return endMessage(appendKeyQuery(dst, q), at)
}

// ParseKeys reads op=state.
func ParseKeys(m *Message) (q view.KeyQuery, seq int64, err error) {
	f := fields{m: m}
	q, seq = f.keyQuery(), int64(f.count("at"))
	return q, seq, f.err
}

// AppendLate appends a control frame, op=late.
func AppendLate(dst []byte, limit int) []byte {
	dst, at := beginControl(dst, OpLate)
	return endMessage(appendCount(dst, "limit", uint64(max(0, limit))), at)
}

// ParseLate reads op=late.
func ParseLate(m *Message) (limit int, err error) {
	f := fields{m: m}
	limit = f.limit()
	return limit, f.err
}

// maxIDs is the most tasks that a selection names one by one.
const maxIDs = 5000

// AppendSelect appends a control frame that acts on tasks: op=requeue,
// op=cancel, op=drop.
func AppendSelect(dst []byte, op Op, s *view.Selection, reason string) []byte {
	dst, at := beginControl(dst, op)
	dst = appendSome(dst, "ids", strings.Join(s.IDs, ","))
	dst = appendFlag(dst, "all", s.All)
	dst = appendFlag(dst, "count", s.Count)
	dst = appendSome(dst, "reason", reason)
	return endMessage(appendTaskQuery(dst, &s.Query), at)
}

// ParseSelect reads op=requeue, op=cancel or op=drop.
func ParseSelect(m *Message) (s view.Selection, reason string, err error) {
	f := fields{m: m}
	s = view.Selection{IDs: f.list("ids"), All: f.flag("all"), Count: f.flag("count"), Query: f.taskQuery()}
	if len(s.IDs) > maxIDs {
		f.fail("ids", fmt.Errorf("%d ids, want at most %d", len(s.IDs), maxIDs))
	}
	for _, id := range s.IDs {
		f.fail("ids", task.CheckID(id))
	}
	if s.All == (len(s.IDs) > 0) {
		f.fail("ids", errors.New("want ids, or all=true"))
	}
	return s, f.text("reason"), f.err
}

// AppendSwitch appends a control frame that turns something on or off:
// op=pause (of a type; empty: everything) and op=debug.
func AppendSwitch(dst []byte, op Op, typ string, on bool) []byte {
	dst, at := beginControl(dst, op)
	value := "off"
	if on {
		value = "on"
	}
	dst = appendText(dst, "value", value)
	return endMessage(appendSome(dst, "task_type", typ), at)
}

// ParseSwitch reads op=pause or op=debug.
func ParseSwitch(m *Message) (typ string, on bool, err error) {
	f := fields{m: m}
	value := f.text("value")
	if value != "on" && value != "off" {
		f.fail("value", errors.New("want on or off"))
	}
	return f.text("task_type"), value == "on", f.err
}

// Repair sets or deletes a state key by hand.
type Repair struct {
	Key    string
	Value  string
	Delete bool
	Reason string
}

// AppendRepair appends a control frame, op=repair.
func AppendRepair(dst []byte, r *Repair) []byte {
	dst, at := beginControl(dst, OpRepair)
	dst = appendText(dst, "key", r.Key)
	dst = appendSome(dst, "value", r.Value)
	dst = appendFlag(dst, "delete", r.Delete)
	return endMessage(appendSome(dst, "reason", r.Reason), at)
}

// ParseRepair reads op=repair.
func ParseRepair(m *Message) (*Repair, error) {
	f := fields{m: m}
	r := &Repair{Key: f.need("key"), Value: f.text("value"), Delete: f.flag("delete"), Reason: f.text("reason")}
	return r, f.err
}

// LogQuery asks for a piece of what an attempt printed.
type LogQuery struct {
	Task    string
	Attempt int // 0: the last
	Offset  int64
}

// LogChunk answers a LogQuery.
type LogChunk struct {
	Data    []byte
	Next    int64 // offset to go on from
	Attempt int
	Ended   bool // nothing will be added
}

// AppendLogs appends a control frame, op=logs.
func AppendLogs(dst []byte, q *LogQuery) []byte {
	dst, at := beginControl(dst, OpLogs)
	dst = appendText(dst, "id", q.Task)
	dst = appendCount(dst, "attempt", uint64(max(0, q.Attempt)))
	return endMessage(appendCount(dst, "offset", uint64(max(0, q.Offset))), at)
}

// ParseLogs reads op=logs.
func ParseLogs(m *Message) (*LogQuery, error) {
	f := fields{m: m}
	q := &LogQuery{Task: f.need("id"), Attempt: int(min(f.count("attempt"), 1<<31-1)), Offset: int64(f.count("offset"))}
	return q, f.err
}

// AppendLogChunk appends the answer of op=logs.
func AppendLogChunk(dst []byte, c *LogChunk) []byte {
	dst, at := beginMessage(dst, TypeRows)
	dst = appendBytes(dst, "data", c.Data)
	dst = appendUint(dst, "next", uint64(max(0, c.Next)))
	dst = appendUint(dst, "attempt", uint64(max(0, c.Attempt)))
	return endMessage(appendFlag(dst, "ended", c.Ended), at)
}

// ParseLogChunk reads the answer of op=logs.
func ParseLogChunk(m *Message) (*LogChunk, error) {
	f := fields{m: m}
	c := &LogChunk{
		Data: f.bytes("data"), Next: int64(f.count("next")), Attempt: int(min(f.count("attempt"), 1<<31-1)),
		Ended: f.flag("ended"),
	}
	return c, f.err
}

// AppendTimeline appends a control frame, op=timeline.
func AppendTimeline(dst []byte, q *view.EventQuery) []byte {
	dst, at := beginControl(dst, OpTimeline)
	dst = appendCount(dst, "from", uint64(max(0, q.From)))
	dst = appendTime(dst, "after", q.After)
	dst = appendTime(dst, "until", q.Until)
	dst = appendSome(dst, "id", q.Task)
	dst = appendSome(dst, "run", q.Run)
	return endMessage(appendCount(dst, "limit", uint64(max(0, q.Limit))), at)
}

// ParseTimeline reads op=timeline.
func ParseTimeline(m *Message) (view.EventQuery, error) {
	f := fields{m: m}
	q := view.EventQuery{
		From: int64(f.count("from")), After: f.time("after"), Until: f.time("until"), Task: f.text("id"), Run: f.text("run"),
		Limit: f.limit(),
	}
	return q, f.err
}

// AppendChanged appends the answer of op=requeue, op=cancel and op=drop.
func AppendChanged(dst []byte, c *view.Changed) []byte {
	dst, at := beginMessage(dst, TypeRows)
	dst = appendUint(dst, "matched", uint64(max(0, c.Matched)))
	dst = appendUint(dst, "changed", uint64(max(0, c.Changed)))
	dst = appendSome(dst, "samples", strings.Join(c.Samples, ","))
	for i, s := range c.Skipped {
		dst = appendText(dst, strconv.Itoa(i)+".skipped", cut(s, maxFault))
	}
	return endMessage(dst, at)
}

// ParseChanged reads the answer of op=requeue, op=cancel and op=drop.
func ParseChanged(m *Message) (*view.Changed, error) {
	f := fields{m: m}
	c := &view.Changed{
		Matched: int(min(f.count("matched"), 1<<31-1)), Changed: int(min(f.count("changed"), 1<<31-1)),
		Samples: f.list("samples"),
	}
	err := eachRow(m, func(row *Message) error {
		c.Skipped = append(c.Skipped, row.Text("skipped"))
		return nil
	})
	if f.err != nil {
		err = f.err
	}
	return c, err
}
