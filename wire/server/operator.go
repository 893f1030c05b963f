package server

import (
	"errors"
	"fmt"

	"apollo11/engine"
	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

// hello lets an operator in.
func (s *session) hello() error {
	h := wire.ParseHello(&s.msg)
	o := &s.server.o
	if refused := checkToken(h.Token, o.OperatorToken, o.ExecutorToken); refused != nil {
		return refused
	}
	if h.Folder != "" && o.Folder != "" && h.Folder != o.Folder {
		return &wire.Error{Code: wire.CodeWrongFolder, Message: "this controller serves another data folder", Fatal: true}
	}
	actor := h.Actor
	if actor == "" {
		actor = s.peer
	}
	s.quiet = h.Quiet
	s.letIn(operator, task.Printable(actor[:min(len(actor), 128)]))
	ack := wire.Ack{StateVersion: o.Engine.StateVersion(), Folder: o.Folder, Build: o.Build}
	s.send(func(dst []byte) []byte { return wire.AppendAck(dst, &ack) })
	return nil
}

// takeOperator asks for what an operator's message wants.
func (s *session) takeOperator() error {
	if s.msg.Type != wire.TypeControl {
		s.notControl()
		return nil
	}
	op := wire.Op(s.msg.Text("op"))
	switch op {
	case wire.OpHello:
		s.say(&wire.Error{Code: wire.CodeInvalid, Message: "hello was said already"})
		return nil
	case wire.OpSubmit:
		s.takeSubmit()
		return nil
	case wire.OpUpload:
		s.takeUpload()
		return nil
	}
	if look := s.lookUp(op); look != nil {
		s.settle()
		s.reply(look())
		return nil
	}
	command, err := s.command(op)
	if refused, ok := err.(*wire.Error); ok {
		s.say(refused)
		return nil
	}
	if err != nil {
		return err
	}
	if command == nil {
		s.say(&wire.Error{Code: wire.CodeUnknownOp, Message: fmt.Sprintf("unknown operation %q", task.Printable(string(op)))})
		return nil
	}
	s.ask(command, promise{op: op})
	return nil
}

// notControl answers what an operator has no business to send.
func (s *session) notControl() {
	switch s.msg.Type {
	case wire.TypeRegister, wire.TypeHeartbeat, wire.TypeQuery, wire.TypeTypes, wire.TypeResult, wire.TypeReturned:
		s.say(&wire.Error{Code: wire.CodeForbidden, Message: "an operator's connection takes control messages only"})
	case wire.TypeProgress, wire.TypeOffline: // never answered
	default:
		s.unknown()
	}
}

// command translates a control message; nil is an operation that nobody knows.
func (s *session) command(op wire.Op) (engine.Command, error) {
	m := &s.msg
	switch op {
	case wire.OpStatus:
		return engine.GetStatus{}, nil
	case wire.OpExecutors:
		return engine.GetExecutors{}, nil
	case wire.OpQueues:
		return engine.GetQueues{}, nil
	case wire.OpTasks:
		q, err := wire.ParseTasks(m)
		return engine.GetTasks{Query: q}, err
	case wire.OpTask:
		id, err := wire.ParseName(m)
		return engine.GetTask{ID: id}, err
	case wire.OpState:
		q, _, err := wire.ParseKeys(m)
		return engine.GetState{Query: q}, err
	case wire.OpLate:
		limit, err := wire.ParseLate(m)
		return engine.GetLate{Limit: limit}, err
	case wire.OpRequeue:
		sel, _, err := wire.ParseSelect(m)
		return engine.Requeue{Selection: sel, Actor: s.id}, err
	case wire.OpCancel:
		sel, reason, err := wire.ParseSelect(m)
		return engine.Cancel{Selection: sel, Actor: s.id, Reason: reason}, err
	case wire.OpDrop:
		sel, reason, err := wire.ParseSelect(m)
		return engine.Drop{Selection: sel, Actor: s.id, Reason: reason}, err
	case wire.OpEdit:
		e, err := wire.ParseEdit(m)
		return engine.Edit{ID: e.ID, Set: e.Set, Unset: e.Unset, Actor: s.id}, err
	case wire.OpExplain:
		id, err := wire.ParseName(m)
		return engine.GetExplanation{ID: id}, err
	case wire.OpPause:
		typ, on, err := wire.ParseSwitch(m)
		return engine.Pause{Type: typ, On: on, Actor: s.id}, err
	case wire.OpDrain:
		id, err := wire.ParseName(m)
		return engine.Drain{Exec: id, Actor: s.id}, err
	case wire.OpDebug:
		_, on, err := wire.ParseSwitch(m)
		return engine.Debug{On: on}, err
	case wire.OpRepair:
		r, err := wire.ParseRepair(m)
		return engine.Repair{Key: r.Key, Value: r.Value, Delete: r.Delete, Reason: r.Reason, Actor: s.id}, err
	}
	return s.runCommand(op)
}

const (
	submitTasks = 1000      // what the engine takes as one command
	submitBytes = 512 << 10 // likewise, with room for escapes
)

// takeSubmit takes a frame of a submit, and asks when it is the last.
func (s *session) takeSubmit() {
	done, err := s.submit.Add(&s.msg)
	if !done {
		return
	}
	specs, check := s.submit.Specs, s.submit.Check
	s.submit = wire.Submission{}
	chunks := cutSpecs(specs)
	switch {
	case err != nil:
		s.reply(nil, err)
	case check:
		s.settle()
		s.reply(engine.Done{}, s.checkSubmit(chunks))
	case len(chunks) == 1:
		s.ask(engine.Submit{Specs: specs}, promise{op: wire.OpSubmit})
	default:
		answer, err := s.submitLarge(chunks)
		s.reply(answer, err)
	}
}

// cutSpecs cuts a submit into what the engine takes at once.
func cutSpecs(specs []task.Spec) (chunks [][]task.Spec) {
	start, size := 0, 0
	for i := range specs {
		mine := len(specs[i].ID) + len(specs[i].Key) + specs[i].Inputs.Size()
		if i > start && (i-start == submitTasks || size+mine > submitBytes) {
			chunks = append(chunks, specs[start:i])
			start, size = i, 0
		}
		size += mine
	}
	return append(chunks, specs[start:])
}

// submitLarge checks every chunk before it queues the first. What can go wrong
// after that (a full disk, another operator's submit between the two) leaves a
// part queued, and the error says how many tasks.
func (s *session) submitLarge(chunks [][]task.Spec) (list []view.Submitted, err error) {
	s.settle()
	if err := s.checkSubmit(chunks); err != nil {
		return nil, err
	}
	for _, chunk := range chunks {
		answer, err := s.server.o.Engine.Do(s.server.ctx, engine.Submit{Specs: chunk})
		if err != nil {
			said := submitFault(err, len(list))
			if len(list) > 0 {
				said.Message = fmt.Sprintf("%s (the first %d tasks were queued)", said.Message, len(list))
			}
			return nil, said
		}
		some, ok := answer.([]view.Submitted)
		if !ok {
			return nil, fmt.Errorf("a submit was answered %T", answer)
		}
		list = append(list, some...)
	}
	return list, nil
}

// checkSubmit asks about every chunk, so that all faults are named at once.
func (s *session) checkSubmit(chunks [][]task.Spec) error {
	var all *wire.Error
	before := 0
	for _, chunk := range chunks {
		_, err := s.server.o.Engine.Do(s.server.ctx, engine.Submit{Specs: chunk, Check: true})
		var faults *engine.SubmitError
		switch {
		case err == nil:
		case !errors.As(err, &faults):
			return submitFault(err, before)
		case all == nil:
			all = submitFault(err, before)
		default:
			all.Faults = append(all.Faults, submitFault(err, before).Faults...)
		}
		before += len(chunk)
	}
	if all != nil {
		return all
	}
	return nil
}

// submitFault numbers the faults of a chunk as those of the whole.
func submitFault(err error, before int) *wire.Error {
	said := *wireError(err)
	for i := range said.Faults {
		said.Faults[i].Index += before
	}
	var faults *engine.SubmitError
	if errors.As(err, &faults) && len(said.Faults) > 0 {
		said.Message = fmt.Sprintf("task %d: %s", said.Faults[0].Index+1, said.Faults[0].Message)
	}
	return &said
}

// settle posts what was read so far, so that what is asked now comes after it.
func (s *session) settle() {
	if len(s.asks) > 0 {
		s.server.o.Engine.Post(s.asks)
		s.asks = nil
	}
}

// lookUp is how an operation is answered that takes its time: reading from disk
// is this connection's own. Nil: the engine answers it.
func (s *session) lookUp(op wire.Op) func() (engine.Answer, error) {
	switch op {
	case wire.OpLogs:
		return s.readLog
	case wire.OpTimeline:
		return s.readTimeline
	case wire.OpSpec:
		return s.readSpec
	case wire.OpMoment:
		return s.readMoment
	case wire.OpRestore:
		return s.restore
	case wire.OpState:
		if _, seq, err := wire.ParseKeys(&s.msg); seq > 0 || err != nil {
			return s.readState
		}
	}
	return nil
}

func (s *session) readTimeline() (engine.Answer, error) {
	q, err := wire.ParseTimeline(&s.msg)
	if err != nil {
		return nil, err
	}
	if s.server.o.Timeline == nil {
		return nil, &wire.Error{Code: wire.CodeUnavailable, Message: "this controller shows no timeline"}
	}
	page, err := s.server.o.Timeline(s.server.ctx, q)
	return &page, err
}

// readLog reads what an attempt printed. The task is looked at first: if the
// attempt has ended then, all it printed is in the file.
func (s *session) readLog() (engine.Answer, error) {
	q, err := wire.ParseLogs(&s.msg)
	if err != nil {
		return nil, err
	}
	if s.server.logs == nil {
		return nil, &wire.Error{Code: wire.CodeUnavailable, Message: "this controller keeps no logs"}
	}
	answer, err := s.server.o.Engine.Do(s.server.ctx, engine.GetTask{ID: q.Task})
	if err != nil {
		return nil, err
	}
	d, ok := answer.(*view.Detail)
	if !ok {
		return nil, fmt.Errorf("a task was answered %T", answer)
	}
	attempt, version, ended := pickAttempt(d, q.Attempt)
	if version == 0 {
		if q.Attempt == 0 {
			return &wire.LogChunk{}, nil // not dispatched yet: there will be something
		}
		return nil, &wire.Error{Code: wire.CodeNotFound, Message: fmt.Sprintf("task %s has no attempt %d in memory", d.ID, q.Attempt)}
	}
	chunk, err := s.server.logs.read(d.ID, version, q.Offset)
	if err != nil {
		return nil, err
	}
	chunk.Attempt, chunk.Ended = attempt, ended && chunk.Ended
	return chunk, nil
}

// pickAttempt finds an attempt's version; 0 is the last. What is listed with an
// end has ended.
func pickAttempt(d *view.Detail, wanted int) (attempt int, version task.Version, ended bool) {
	for _, a := range d.Attempts {
		if wanted == 0 || int(a.Attempt) == wanted { // a later one of the same number is the one that ran
			attempt, version, ended = int(a.Attempt), task.Version(a.Version), !a.Finished.IsZero()
		}
	}
	return attempt, version, ended
}
