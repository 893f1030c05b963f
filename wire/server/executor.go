package server

import (
	"fmt"
	"slices"

	"apollo11/engine"
	"apollo11/engine/task"
	"apollo11/wire"
)

// register lets an executor in; on a connection that is one already, it presents
// itself anew.
func (s *session) register() error {
	r, err := wire.ParseRegister(&s.msg)
	if err != nil {
		return err
	}
	o := &s.server.o
	if refused := checkToken(r.Token, o.ExecutorToken, o.OperatorToken); refused != nil {
		return refused
	}
	if s.role == executor && r.Exec != s.id {
		s.say(&wire.Error{Code: wire.CodeInvalid, Message: "this connection is registered as " + s.id})
		return nil
	}
	s.letIn(executor, r.Exec)
	s.speak(r.Proto)
	s.ask(engine.Register{
		Exec: r.Exec, Types: r.Types, Units: r.Units, Proto: r.Proto, Instance: r.Instance, Running: held(r.Running),
		Host: r.Host, PID: r.PID, Build: r.Build, Share: r.Share, Capacity: r.Capacity, Hashes: r.Hashes,
		Subscribe: slices.Contains(r.Subscribe, wire.SubscribeState),
	}, promise{enters: true})
	return nil
}

// speak sets the protocol for what is encoded from now on.
func (s *session) speak(proto int) {
	dst := s.conn.Open()
	defer func() { s.conn.Commit(dst) }()
	s.proto = proto
	if proto > 1 {
		s.sent.most = sentMany
	}
}

// takeExecutor asks for what an executor's message wants.
func (s *session) takeExecutor() error {
	switch s.msg.Type {
	case wire.TypeRegister:
		return s.register()
	case wire.TypeHeartbeat:
		s.heartbeat()
	case wire.TypeResult:
		return s.result()
	case wire.TypeReturned:
		return s.returned()
	case wire.TypeProgress:
		return s.progress()
	case wire.TypeQuery:
		q, err := wire.ParseQuery(&s.msg)
		if err != nil {
			return err
		}
		s.ask(engine.GetState{Query: *q}, promise{})
	case wire.TypeTypes:
		c, err := wire.ParseTypes(&s.msg)
		if err != nil {
			return err
		}
		s.ask(engine.Types{Exec: s.id, Add: c.Add, Remove: c.Remove, Units: c.Units, Hashes: c.Hashes}, promise{})
	case wire.TypeOffline:
		s.offline()
	case wire.TypeControl:
		s.say(&wire.Error{Code: wire.CodeForbidden, Message: "an executor's connection takes no control message"})
	default:
		s.unknown()
	}
	return nil
}

// unknown answers a type that is not for us; an error or ack is not answered,
// for a peer that does as we do would never end.
func (s *session) unknown() {
	if t := s.msg.Type; t != wire.TypeError && t != wire.TypeAck {
		s.say(&wire.Error{Code: wire.CodeUnknownType, Message: fmt.Sprintf("unknown message type %q", task.Printable(string(t)))})
	}
}

// heartbeat asks for work on protocol 1. On protocol 2 it is life, which the
// session notes and acknowledges without troubling the engine.
func (s *session) heartbeat() {
	if s.spoken() < 2 {
		s.tell(engine.Ready{Exec: s.id})
		return
	}
	ack := wire.Ack{StateVersion: s.server.o.Engine.StateVersion()}
	s.send(func(dst []byte) []byte { return wire.AppendAck(dst, &ack) })
}

// spoken is the protocol; only this goroutine changes it, so it needs no lock here.
func (s *session) spoken() int { return s.proto }

// sentVersion fills in the version that an executor left out.
func (s *session) sentVersion(id string, told task.Version) task.Version {
	if told != 0 {
		return told
	}
	dst := s.conn.Open()
	defer func() { s.conn.Commit(dst) }()
	return s.sent.version(id)
}

func (s *session) result() error {
	o, err := wire.ParseResult(&s.msg, s.spoken())
	if err != nil {
		return err
	}
	o.Version = s.sentVersion(o.Task, o.Version)
	s.ask(engine.Result{Exec: s.id, Outcome: *o}, promise{task: o.Task, version: o.Version})
	return nil
}

// askRaw fails the attempt of a result that cannot be read; its one answer is
// the error.
func (s *session) askRaw(bad *wire.MalformedError, said *wire.Error) {
	version := s.sentVersion(bad.Task, bad.Version)
	s.ask(rawResult(s.id, bad.Task, version, bad), promise{task: bad.Task, version: version, fault: said})
}

func (s *session) returned() error {
	r, _, err := wire.ParseRef(&s.msg)
	if err != nil {
		return err
	}
	r.Version = s.sentVersion(r.Task, r.Version)
	s.ask(engine.Returned{Exec: s.id, Task: r.Task, Version: r.Version}, promise{task: r.Task, version: r.Version})
	return nil
}

// progress takes a sign from an attempt that was sent here, and what it printed.
func (s *session) progress() error {
	p, err := wire.ParseProgress(&s.msg)
	if err != nil {
		return err
	}
	last := s.sentVersion(p.Task, 0)
	if last == 0 || p.Version != 0 && p.Version != last {
		s.server.log.Debug("progress of a task that was not sent here", "peer", s.peer, "name", s.id, "task", task.Printable(p.Task))
		return nil
	}
	if len(p.Log) > 0 && s.server.logs != nil {
		if err := s.server.logs.append(p.Task, last, p.Log); err != nil {
			s.server.log.Warn("a unit's output is lost", "task", p.Task, "error", err)
		}
	}
	if p.Start || p.Percent != "" || p.Message != "" || len(p.Changes) > 0 {
		s.tell(engine.Progress{
			Exec: s.id, Task: p.Task, Version: last, Start: p.Start, Percent: p.Percent, Message: p.Message, Changes: p.Changes,
		})
	}
	return nil
}

// offline takes leave: nothing is sent any more.
func (s *session) offline() {
	s.left = true
	dst := s.conn.Open()
	defer func() { s.conn.Commit(dst) }()
	s.silenced = true
	s.tell(engine.Offline{Exec: s.id, Reason: wire.ParseReason(&s.msg)})
}
