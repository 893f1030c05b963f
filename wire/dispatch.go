package wire

import (
	"errors"
	"strings"

	"apollo11/engine/task"
)

// AppendTask appends a task frame in the form of the protocol.
func AppendTask(dst []byte, a *task.Assignment, proto int) []byte {
	dst, at := beginMessage(dst, TypeTask)
	dst = appendText(dst, "task_id", a.Task)
	dst = appendUint(dst, "version", uint64(a.Version))
	dst = appendText(dst, "task_type", a.Type)
	dst = appendUint(dst, "attempt", uint64(a.Attempt))
	dst = appendMillis(dst, "timeout_ms", a.Timeout)
	dst = appendUint(dst, "state_version", a.StateVersion)
	if proto < 2 {
		dst = appendValues(dst, "", a.Inputs)
		return endMessage(appendValues(dst, "ctx.", a.Context), at)
	}
	dst = appendSome(dst, "run", a.Run)
	dst = appendCount(dst, "sample", uint64(max(0, a.Sample)))
	if a.Undo {
		dst = appendText(dst, "step", stepUndo)
	}
	dst = appendValues(dst, "in.", a.Inputs)
	dst = appendValues(dst, "ctx.", a.Context)
	return endMessage(appendValues(dst, "out.", a.Outputs), at)
}

// stepUndo is the step of a task that is not the unit's execute.
const stepUndo = "undo"

// ParseTask reads a task message of the protocol.
func ParseTask(m *Message, proto int) (*task.Assignment, error) {
	r := taskReader{fields: fields{m: m}, proto: proto}
	for i := range m.fields {
		r.take(m.fields[i].Key, m.fields[i].Value)
	}
	if r.a.Task == "" || r.a.Type == "" {
		r.fail("task_id, task_type", errMissing)
	}
	r.a.Inputs, r.a.Context, r.a.Outputs = r.sorted(r.inputs), r.sorted(r.context), r.sorted(r.outputs)
	return &r.a, r.err
}

// taskReader takes a task's fields in the order they come: it and resultReader
// are what a busy connection spends its time in.
type taskReader struct {
	fields
	a       task.Assignment
	proto   int
	inputs  []task.Value
	context []task.Value
	outputs []task.Value
}

func (r *taskReader) take(key, value string) {
	var err error
	var n uint64
	switch key {
	case "type":
	case "task_id":
		r.a.Task = value
	case "task_type":
		r.a.Type = value
	case "version":
		r.a.Version, err = parseVersion(value)
	case "attempt":
		n, err = parseCount(value)
		r.a.Attempt = int(min(n, 1<<31-1))
	case "timeout_ms":
		r.a.Timeout, err = parseMillis(value)
	case "state_version":
		r.a.StateVersion, err = parseCount(value)
	default:
		err = r.free(key, value)
	}
	r.fail(key, err)
}

// free takes an input or a pinned context key; what else is the protocol's, is
// ignored here.
func (r *taskReader) free(key, value string) error {
	prefix, name, dotted := strings.Cut(key, ".")
	switch {
	case dotted && prefix == "ctx":
		return r.add(&r.context, name, value)
	case r.proto < 2 && task.Reserved(key):
		return nil
	case r.proto < 2:
		return r.add(&r.inputs, key, value)
	case dotted && prefix == "in":
		return r.add(&r.inputs, name, value)
	case dotted && prefix == "out":
		return r.add(&r.outputs, name, value)
	}
	return r.second(key, value)
}

// second takes what only protocol 2 says of a task: on protocol 1 an input may
// have these names.
func (r *taskReader) second(key, value string) (err error) {
	switch key {
	case "run":
		r.a.Run = value
	case "sample":
		var n uint64
		n, err = parseCount(value)
		r.a.Sample = int(min(n, 1<<31-1))
	case "step":
		if r.a.Undo = value == stepUndo; !r.a.Undo {
			err = errors.New("want undo, or nothing") // to run execute instead could do harm
		}
	}
	return err
}

// add appends a named value, with room for a few from the start.
func (f *fields) add(list *[]task.Value, name, value string) error {
	if *list == nil {
		*list = make([]task.Value, 0, 4)
	}
	*list = append(*list, task.Value{Name: name, Value: value})
	return checkName(name)
}

// checkName is task.CheckKey for what is known to be of a key's bytes.
func checkName(name string) error {
	if name == "" || len(name) > 128 {
		return task.CheckKey(name)
	}
	return nil
}

// Ref names one dispatch of a task.
type Ref struct {
	Task    string
	Version task.Version
}

// AppendCancel appends a cancel frame: end the task's processes.
func AppendCancel(dst []byte, r Ref, reason string) []byte {
	return appendRef(dst, TypeCancel, r, reason)
}

// AppendRecall appends a recall frame: give the task back if it was not started.
func AppendRecall(dst []byte, r Ref) []byte { return appendRef(dst, TypeRecall, r, "") }

// AppendReturned appends a returned frame: the task comes back unstarted.
func AppendReturned(dst []byte, r Ref) []byte { return appendRef(dst, TypeReturned, r, "") }

// ParseRef reads a cancel, recall or returned message.
func ParseRef(m *Message) (r Ref, reason string, err error) {
	f := fields{m: m}
	r = Ref{Task: f.need("task_id"), Version: f.version("version")}
	return r, f.text("reason"), f.err
}

func appendRef(dst []byte, t Type, r Ref, reason string) []byte {
	dst, at := beginMessage(dst, t)
	dst = appendText(dst, "task_id", r.Task)
	dst = appendUint(dst, "version", uint64(r.Version))
	return endMessage(appendSome(dst, "reason", cut(reason, maxText)), at)
}

// AppendDrain appends a drain frame: finish what runs, give back the rest, go.
func AppendDrain(dst []byte, reason string) []byte { return appendReason(dst, TypeDrain, reason) }

// AppendOffline appends an offline frame: the executor leaves in order.
func AppendOffline(dst []byte, reason string) []byte { return appendReason(dst, TypeOffline, reason) }

// ParseReason reads a drain or offline message.
func ParseReason(m *Message) string { return m.Text("reason") }

func appendReason(dst []byte, t Type, reason string) []byte {
	dst, at := beginMessage(dst, t)
	return endMessage(appendSome(dst, "reason", cut(reason, maxText)), at)
}

// AppendResult appends a result frame in the form of the protocol.
func AppendResult(dst []byte, o *task.Outcome, proto int) []byte {
	dst, at := beginMessage(dst, TypeResult)
	dst = appendText(dst, "task_id", o.Task)
	dst = appendCount(dst, "version", uint64(o.Version))
	dst = appendText(dst, "status", o.Status.String())
	if o.Class != task.NoClass {
		dst = appendText(dst, "class", o.Class.String())
	}
	dst = appendSome(dst, "error", o.Error)
	if o.Exit >= 0 {
		dst = appendUint(dst, "exit", uint64(o.Exit))
	}
	dst = appendSome(dst, "signal", o.Signal)
	dst = appendFlag(dst, "truncated", o.Truncated)
	dst = appendMillis(dst, "prepare_ms", o.Timing.Prepare)
	dst = appendMillis(dst, "execute_ms", o.Timing.Execute)
	dst = appendMillis(dst, "cleanup_ms", o.Timing.Cleanup)
	if proto > 1 {
		dst = appendSome(dst, "unit_hash", o.UnitHash)
		dst = appendValues(dst, "out.", o.Outputs)
	} else {
		dst = appendValues(dst, "", o.Outputs)
	}
	return endMessage(appendChanges(dst, o.Changes), at)
}

func appendChanges(dst []byte, changes []task.Change) []byte {
	for _, c := range changes {
		dst = append(append(dst, c.Op.String()...), '.')
		dst = appendText(dst, c.Key, c.Value)
	}
	return dst
}

// ParseResult reads a result message of the protocol. An error is a
// *MalformedError that names the task if the message does.
func ParseResult(m *Message, proto int) (*task.Outcome, error) {
	r := resultReader{fields: fields{m: m}, o: task.Outcome{Exit: -1}, proto: proto}
	for i := range m.fields {
		r.take(m.fields[i].Key, m.fields[i].Value)
	}
	r.o.Outputs = r.sorted(r.outputs)
	if r.o.Task == "" {
		r.fail("task_id", errMissing)
	}
	return &r.o, r.err
}

type resultReader struct {
	fields
	o       task.Outcome
	proto   int
	outputs []task.Value
}

func (r *resultReader) take(key, value string) {
	var err error
	switch key {
	case "type":
	case "task_id":
		r.o.Task = value
	case "version":
		r.o.Version, err = parseVersion(value)
	case "status":
		r.status(value)
	case "error":
		r.o.Error = value
	case "class":
		if r.o.Class, err = task.ParseClass(value); err != nil {
			err = errors.New("unknown error class")
		}
	case "exit":
		var n uint64
		n, err = parseCount(value)
		r.o.Exit = int(min(n, 1<<31-1))
	case "signal":
		r.o.Signal = value
	case "truncated":
		r.o.Truncated, err = parseFlag(value)
	case "prepare_ms":
		r.o.Timing.Prepare, err = parseMillis(value)
	case "execute_ms":
		r.o.Timing.Execute, err = parseMillis(value)
	case "cleanup_ms":
		r.o.Timing.Cleanup, err = parseMillis(value)
	default:
		err = r.free(key, value)
	}
	r.fail(key, err)
}

// status takes the document's words, and any other text as a failure that is
// its own error.
func (r *resultReader) status(value string) {
	switch value {
	case "success", "ok":
		r.o.Status = task.Success
	case "cancelled":
		r.o.Status = task.Stopped
	default:
		r.o.Status = task.Failed
		if r.o.Error == "" && value != "failed" {
			r.o.Error = value
		}
	}
}

// free takes an output or a change of state; what else is the protocol's, is
// ignored here.
func (r *resultReader) free(key, value string) error {
	prefix, name, dotted := strings.Cut(key, ".")
	if r.proto > 1 && key == "unit_hash" {
		r.o.UnitHash = value
		return checkHash(value)
	}
	if dotted && r.proto > 1 && prefix == "out" {
		return r.add(&r.outputs, name, value)
	}
	if dotted && len(prefix) == len("set") {
		if op, err := task.ParseOp(prefix); err == nil {
			r.o.Changes = append(r.o.Changes, task.Change{Op: op, Key: name, Value: value})
			return checkName(name)
		}
	}
	if r.proto > 1 || task.Reserved(key) {
		return nil
	}
	return r.add(&r.outputs, key, value)
}
