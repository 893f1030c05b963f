package server

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"apollo11/engine"
	"apollo11/engine/mission"
	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

// codes maps our errors to the wire's; the first that fits counts.
var codes = []struct {
	err  error
	code wire.Code
}{
	{engine.ErrUnregistered, wire.CodeUnregistered},
	{engine.ErrNotFound, wire.CodeNotFound},
	{engine.ErrConflict, wire.CodeConflict},
	{engine.ErrTooLarge, wire.CodeTooLarge},
	{engine.ErrInvalid, wire.CodeInvalid},
	{engine.ErrDiskFull, wire.CodeDiskFull},
	{engine.ErrStopping, wire.CodeStopping},
	{errStopping, wire.CodeStopping},
	{context.Canceled, wire.CodeStopping},
	{context.DeadlineExceeded, wire.CodeTimeout},
	{wire.ErrSilent, wire.CodeTimeout},
	{wire.ErrDrip, wire.CodeTimeout},
}

// wireError is what a peer is told of err.
func wireError(err error) *wire.Error {
	var said *wire.Error
	var submit *engine.SubmitError
	var malformed *wire.MalformedError
	var size *wire.FrameSizeError
	var faults mission.Faults
	switch {
	case errors.As(err, &said):
		return said
	case errors.As(err, &malformed):
		return &wire.Error{Code: wire.CodeMalformed, Message: err.Error()}
	case errors.As(err, &size):
		return &wire.Error{Code: wire.CodeTooLarge, Message: err.Error(), Fatal: true}
	case errors.As(err, &faults):
		return &wire.Error{Code: wire.CodeInvalid, Message: faultLines(faults)}
	}
	e := &wire.Error{Code: wire.CodeInternal, Message: err.Error()}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			e.Code = c.code
			break
		}
	}
	if errors.As(err, &submit) {
		for _, f := range submit.Faults {
			e.Faults = append(e.Faults, wire.Fault{Index: f.Index, Message: f.Err.Error()})
		}
	}
	return e
}

// held turns an executor's list into the engine's, phase by phase.
func held(list []wire.Held) []engine.Held {
	out := make([]engine.Held, len(list))
	for i, h := range list {
		out[i] = engine.Held{Task: h.Task, Version: h.Version, Phase: phases[h.Phase]}
	}
	return out
}

var phases = [...]engine.Phase{
	wire.Waiting: engine.PhaseQueued, wire.Running: engine.PhaseRunning, wire.Ended: engine.PhaseDone,
}

// appendOrder encodes an order in the executor's protocol. What protocol 1 has
// no word for, its executors are not told.
func appendOrder(dst []byte, o engine.Order, proto int) []byte {
	switch o := o.(type) {
	case engine.Assign:
		return wire.AppendTask(dst, &o.Assignment, proto)
	case engine.Beat:
		return wire.AppendAck(dst, &wire.Ack{StateVersion: o.StateVersion})
	}
	if proto < 2 {
		return dst
	}
	switch o := o.(type) {
	case engine.Revoke:
		return wire.AppendCancel(dst, wire.Ref{Task: o.Task, Version: o.Version}, o.Reason)
	case engine.Recall:
		return wire.AppendRecall(dst, wire.Ref{Task: o.Task, Version: o.Version})
	case engine.DrainOrder:
		return wire.AppendDrain(dst, o.Reason)
	case engine.StateChanged:
		return wire.AppendStateChanged(dst, stateChanged(&o))
	}
	return dst
}

func stateChanged(o *engine.StateChanged) *wire.StateChanged {
	s := &wire.StateChanged{Version: o.Version, Since: o.Since, More: o.More, Keys: make([]wire.KeyChange, len(o.Keys))}
	for i, k := range o.Keys {
		s.Keys[i] = wire.KeyChange(k)
	}
	return s
}

// verdicts maps what became of a result.
var verdicts = [...]wire.AckStatus{
	engine.Accepted: wire.AckOK, engine.Duplicate: wire.AckOK, engine.Stale: wire.AckStale, engine.Rejected: wire.AckRejected,
}

// appendExecutorAnswer encodes an answer to an executor.
func (s *session) appendExecutorAnswer(dst []byte, p *promise, answer engine.Answer) ([]byte, error) {
	switch a := answer.(type) {
	case engine.Applied:
		ack := wire.Ack{Status: verdicts[a.Verdict], Duplicate: a.Verdict == engine.Duplicate, Reason: a.Reason, StateVersion: a.StateVersion}
		if s.proto > 1 {
			ack.Task, ack.Version = p.task, p.version
		}
		return wire.AppendAck(dst, &ack), nil
	case engine.Registered:
		ack := wire.Ack{StateVersion: a.StateVersion}
		if s.proto > 1 {
			ack.ConfigVersion, ack.Epoch, ack.Proto, ack.Heartbeat = a.ConfigVersion, a.Epoch, s.proto, a.Heartbeat
			ack.Refused = a.Refused
		}
		return wire.AppendAck(dst, &ack), nil
	case *view.KeyPage:
		return wire.AppendState(dst, a, s.server.o.MaxFrame), nil
	}
	return dst, fmt.Errorf("answer %T has no message", answer)
}

// appendOperatorAnswer encodes an answer to an operator.
func (s *session) appendOperatorAnswer(dst []byte, answer engine.Answer) ([]byte, error) {
	limit := s.server.o.MaxFrame
	switch a := answer.(type) {
	case engine.Done:
		return wire.AppendAck(dst, &wire.Ack{StateVersion: s.server.o.Engine.StateVersion()}), nil
	case []view.Submitted:
		return wire.AppendSubmitted(dst, a, limit)
	case *view.Changed:
		return wire.AppendChanged(dst, a), nil
	case *view.Status:
		return wire.AppendRows(dst, nil, slices.Values([]view.Row{a}), limit)
	case []view.Executor:
		return wire.AppendRows(dst, nil, rows(a), limit)
	case []view.Queue:
		return wire.AppendRows(dst, nil, rows(a), limit)
	case []view.Late:
		return wire.AppendRows(dst, nil, rows(a), limit)
	case *view.Page:
		return wire.AppendRows(dst, wire.PageHead(a), rows(a.Tasks), limit)
	case *view.Detail:
		return wire.AppendDetail(dst, a, limit)
	case *view.Explanation:
		return wire.AppendExplanation(dst, a), nil
	case *view.KeyPage:
		return wire.AppendRows(dst, wire.KeysHead(a), rows(a.Keys), limit)
	case view.Key:
		return wire.AppendRows(dst, nil, slices.Values([]view.Row{&a}), limit)
	case *view.EventPage:
		return wire.AppendEvents(dst, a, limit)
	case *wire.LogChunk:
		return wire.AppendLogChunk(dst, a), nil
	}
	return appendRunAnswer(dst, answer, limit)
}

// rows walks a list as rows.
func rows[T any, P interface {
	*T
	view.Row
}](list []T) func(yield func(view.Row) bool) {
	return func(yield func(view.Row) bool) {
		for i := range list {
			if !yield(P(&list[i])) {
				return
			}
		}
	}
}

// rawResult is a result that could not be read but names its task.
func rawResult(exec, id string, version task.Version, fault error) engine.Result {
	return engine.Result{
		Exec: exec, Raw: fault,
		Outcome: task.Outcome{Task: id, Version: version, Class: task.OutputInvalid, Error: fault.Error(), Exit: -1},
	}
}
