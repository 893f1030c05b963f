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
	if proto > 1 {
		dst = appendValues(dst, "in.", a.Inputs)
	} else {
		dst = appendValues(dst, "", a.Inputs)
	}
	return endMessage(appendValues(dst, "ctx.", a.Context), at)
}

// ParseTask reads a task message of the protocol.
func ParseTask(m *Message, proto int) (*task.Assignment, error) {
	f := fields{m: m}
	a := &task.Assignment{
		Task:         f.need("task_id"),
		Version:      f.version("version"),
		Type:         f.need("task_type"),
		Attempt:      int(min(f.count("attempt"), 1<<31-1)),
		Timeout:      f.millis("timeout_ms"),
		StateVersion: f.count("state_version"),
		Context:      f.prefixed("ctx."),
	}
	if proto > 1 {
		a.Inputs = f.prefixed("in.")
	} else {
		a.Inputs = f.free()
	}
	return a, f.err
}

// free collects the keys that are not the protocol's.
func (f *fields) free() task.Values {
	var list []task.Value
	for key, value := range f.m.All() {
		if task.Reserved(key) {
			continue
		}
		f.fail(key, task.CheckKey(key))
		list = append(list, task.Value{Name: key, Value: value})
	}
	return f.sorted(list)
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
	if n := m.Len(); n > 4 {
		r.outputs = make([]task.Value, 0, min(n, 64))
	}
	for key, value := range m.All() {
		r.take(key, value)
	}
	r.o.Outputs = r.sorted(r.outputs)
	if r.o.Task == "" {
		r.fail("task_id", errors.New("is missing"))
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
	if dotted {
		if op, err := task.ParseOp(prefix); err == nil {
			r.o.Changes = append(r.o.Changes, task.Change{Op: op, Key: name, Value: value})
			return task.CheckKey(name)
		}
	}
	switch {
	case r.proto > 1:
		if !dotted || prefix != "out" {
			return nil
		}
		key = name
	case task.Reserved(key):
		return nil
	}
	r.outputs = append(r.outputs, task.Value{Name: key, Value: value})
	return task.CheckKey(key)
}
