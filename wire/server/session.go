package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"runtime/debug"
	"time"

	"apollo11/engine"
	"apollo11/engine/task"
	"apollo11/wire"
)

// role is who sits at the other end. The zero value is a stranger.
type role uint8

const (
	stranger role = iota
	executor
	operator
)

func (r role) String() string { return [...]string{"stranger", "executor", "operator"}[r] }

// session is one connection. Its goroutine reads; the engine's loop calls Order,
// Answer, Flush and Heard.
type session struct {
	server *Server
	conn   *wire.Conn
	peer   string

	// Its own goroutine only.
	role   role
	id     string // executor_id, or who the operator says to be
	msg    wire.Message
	asks   []engine.Ask // of the frames of one read
	submit wire.Submission
	upload upload
	left   bool // said offline
	quiet  bool // what it reads is not tapped; Answer, which reads it, is called for what was asked after it was set

	// Guarded by conn's lock.
	proto    int
	sent     sent
	answers  answers
	silenced bool // its peer said offline: not a word more
}

func newSession(s *Server, nc net.Conn) *session {
	sess := &session{server: s, conn: wire.NewConn(nc, min(wire.FirstFrame, s.o.MaxFrame)), peer: peerName(nc)}
	sess.proto, sess.sent.most = 1, sentOne
	sess.conn.Within(admission)
	return sess
}

// run is the session's goroutine.
func (s *session) run() {
	err := s.serve()
	s.part(err)
	s.server.remove(s, s.role != stranger)
}

// serve reads until the connection ends; a panic ends only this one.
func (s *session) serve() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = s.fault("reading", p)
		}
	}()
	for {
		if err := s.conn.Fill(); err != nil {
			return err
		}
		end := s.handleAll()
		if len(s.asks) > 0 {
			s.server.o.Engine.Post(s.asks)
			s.asks = nil // the engine has it now
		}
		s.conn.Flush()
		if end != nil {
			return end
		}
	}
}

// fault notes a panic of ours.
func (s *session) fault(doing string, p any) error {
	s.server.counts.Panics.Add(1)
	s.server.log.Error("connection closed for a fault of the controller", "peer", s.peer, "doing", doing,
		"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	return &wire.Error{Code: wire.CodeInternal, Message: "a fault of the controller; its log says more", Fatal: true}
}

// part says why, if the peer may still hear it, and hangs up.
func (s *session) part(err error) {
	defer s.conn.Close(0)
	if s.role == executor && !s.left {
		s.server.o.Engine.Post([]engine.Ask{{Command: engine.Disconnected{Exec: s.id, Reason: task.Printable(err.Error())}, Link: s}})
	}
	level := s.server.log.Info
	switch {
	case s.role == operator && errors.Is(err, io.EOF):
		level = s.server.log.Debug // every command ends so
	case s.role == stranger:
		level = s.server.log.Warn
		s.server.counts.Refused.Add(1)
	}
	level("connection closed", "peer", s.peer, "role", s.role.String(), "name", task.Printable(s.id), "reason", task.Printable(err.Error()))
	said := s.lastWord(err)
	if said != nil {
		said.Fatal = true
		s.send(func(dst []byte) []byte { return wire.AppendError(dst, said) })
	}
	s.conn.Close(parting)
}

// lastWord is the error that the peer should know; nil if it cannot listen, or
// was told.
func (s *session) lastWord(err error) *wire.Error {
	var said *wire.Error
	var size *wire.FrameSizeError
	switch {
	case s.left, errors.Is(err, errTold):
		return nil
	case errors.As(err, &said), errors.As(err, &size), errors.Is(err, wire.ErrDrip), errors.Is(err, errStopping),
		errors.Is(err, wire.ErrSilent):
		return wireError(err)
	}
	return nil
}

// errTold ends a connection whose peer has been told why.
var errTold = errors.New("refused")

// handleAll takes every frame that has come; an error ends the connection, and
// what comes after it is not looked at.
func (s *session) handleAll() error {
	for {
		text, ok := s.conn.Next()
		if !ok {
			return nil
		}
		if err := s.handle(text); err != nil {
			return err
		}
	}
}

func (s *session) handle(text []byte) error {
	err := s.msg.Parse(text)
	if s.server.o.Engine.Debugging() && !(err == nil && s.unheard(s.asked())) {
		s.tap("in", text)
	}
	if len(text) == 0 && s.role != stranger {
		return nil
	}
	if err != nil {
		return s.malformed(err, text)
	}
	if s.msg.Skipped > 0 {
		s.server.counts.Skipped.Add(int64(s.msg.Skipped))
		s.server.log.Debug("lines without an equals sign", "peer", s.peer, "lines", s.msg.Skipped)
	}
	err = s.take()
	var bad *wire.MalformedError
	if errors.As(err, &bad) {
		return s.malformed(bad, text)
	}
	return err
}

// take asks for what the message wants.
func (s *session) take() error {
	switch s.role {
	case executor:
		return s.takeExecutor()
	case operator:
		return s.takeOperator()
	}
	switch {
	case s.msg.Type == wire.TypeRegister:
		return s.register()
	case s.msg.Type == wire.TypeControl && wire.Op(s.msg.Text("op")) == wire.OpHello:
		return s.hello()
	}
	return &wire.Error{Code: wire.CodeUnregistered, Message: "the first message must be a register or a control op=hello", Fatal: true}
}

// letIn makes a stranger somebody.
func (s *session) letIn(r role, id string) {
	if s.role == stranger {
		s.server.known(s)
	}
	s.role, s.id = r, id
	s.conn.Within(0)
	s.conn.SetCap(s.server.o.MaxFrame)
}

// malformed answers a message that cannot be read. A result fails its attempt.
func (s *session) malformed(err error, text []byte) error {
	s.server.counts.Malformed.Add(1)
	shown := redact(text)
	quoted := task.Printable(string(shown[:min(len(shown), 4<<10)]))
	s.server.log.Warn("malformed message", "peer", s.peer, "name", task.Printable(s.id), "error", err, "bytes", len(text), "text", quoted)
	said := wireError(err)
	var bad *wire.MalformedError
	switch {
	case s.role == stranger, s.submit.Open(), s.upload.parts.Open(): // nobody could tell which answer is whose
		said.Fatal = true
		return said
	case errors.As(err, &bad) && s.role == executor && bad.Type == wire.TypeProgress,
		errors.As(err, &bad) && s.role == executor && bad.Type == wire.TypeOffline:
		return nil // never answered, whatever it says
	case errors.As(err, &bad) && s.role == executor && bad.Type == wire.TypeResult && task.CheckID(bad.Task) == nil:
		s.askRaw(bad, said)
	default:
		s.say(said)
	}
	return nil
}

// ask adds a command to those of this read; its answer comes in turn.
func (s *session) ask(c engine.Command, p promise) {
	s.asks = append(s.asks, engine.Ask{Command: c, Link: s, Ref: s.promise(p)})
}

// tell adds a command that has no answer.
func (s *session) tell(c engine.Command) { s.asks = append(s.asks, engine.Ask{Command: c, Link: s}) }

func (s *session) promise(p promise) uint64 {
	dst := s.conn.Open()
	defer func() { s.conn.Commit(dst) }()
	return s.answers.due(p)
}

// reply gives an answer that does not come from the engine, in turn.
func (s *session) reply(answer engine.Answer, err error) {
	s.Answer(s.promise(promise{op: wire.Op(s.msg.Text("op"))}), answer, err)
}

// say answers with an error, in turn.
func (s *session) say(e *wire.Error) { s.reply(nil, e) }

// send appends frames out of turn.
func (s *session) send(encode func(dst []byte) []byte) {
	dst := s.conn.Open()
	defer func() { s.conn.Commit(dst) }()
	if s.silenced {
		return
	}
	before := len(dst)
	dst = encode(dst)
	s.tapOut(dst, before)
}

// Order implements engine.Link.
func (s *session) Order(o engine.Order) {
	defer s.guard("order")
	dst := s.conn.Open()
	defer func() { s.conn.Commit(dst) }()
	before := len(dst)
	switch o := o.(type) {
	case engine.Assign:
		if o.Undo && s.proto < 2 { // it would run execute instead
			s.server.log.Error("an undo is not for an executor of protocol 1", "peer", s.peer, "name", s.id, "task", o.Task)
			s.conn.End(errNoUndo)
			return
		}
		s.sent.add(o.Task, o.Version)
	case engine.Dismiss:
		if !s.silenced {
			code := wire.CodeUnregistered
			if o.Stopping {
				code = wire.CodeStopping
			}
			dst = wire.AppendError(dst, &wire.Error{Code: code, Message: o.Reason, Fatal: true})
		}
		s.silenced = true
		s.conn.End(errDismissed)
	}
	if !s.silenced {
		dst = appendOrder(dst, o, s.proto)
	}
	s.tapOut(dst, before)
}

var errNoUndo = errors.New("an executor of protocol 1 cannot undo")

var errDismissed = fmt.Errorf("%w: dismissed", errTold)

// Answer implements engine.Link.
func (s *session) Answer(ref uint64, answer engine.Answer, err error) {
	defer s.guard("answer")
	dst := s.conn.Open()
	defer func() { s.conn.Commit(dst) }()
	p := s.answers.at(ref)
	if p == nil || s.silenced {
		return
	}
	if !s.answers.next(ref) {
		if !s.answers.keep(p, s.appendAnswer(nil, p, answer, err)) {
			s.conn.End(wire.ErrSlowReader)
		}
		return
	}
	before := len(dst)
	dst = s.appendAnswer(dst, p, answer, err)
	if s.unheard(p.op) {
		before = len(dst)
	}
	dst = s.answers.pass(dst)
	s.tapOut(dst, before)
}

// appendAnswer encodes what a promise gets.
func (s *session) appendAnswer(dst []byte, p *promise, answer engine.Answer, err error) []byte {
	if r, ok := answer.(engine.Registered); ok && err == nil {
		for _, h := range r.Kept {
			s.sent.add(h.Task, h.Version)
		}
	}
	if err == nil && p.fault != nil {
		err = p.fault
	}
	start := len(dst)
	if err == nil {
		if p.op != "" {
			dst, err = s.appendOperatorAnswer(dst, answer)
		} else {
			dst, err = s.appendExecutorAnswer(dst, p, answer)
		}
	}
	if err == nil {
		return dst
	}
	said := *wireError(err)
	if said.Code == wire.CodeUnregistered || p.enters {
		said.Fatal = true
		s.conn.End(errTold)
	}
	if said.Code == wire.CodeInternal {
		s.server.log.Error("no answer", "peer", s.peer, "op", p.op, "error", err)
	}
	return wire.AppendError(dst[:start], &said)
}

// Flush implements engine.Link.
func (s *session) Flush() { s.conn.Flush() }

// Heard implements engine.Link.
func (s *session) Heard() time.Time { return s.conn.Heard() }

// guard keeps a panic of ours in the engine's calls to this connection.
func (s *session) guard(doing string) {
	if p := recover(); p != nil {
		s.conn.End(s.fault(doing, p))
	}
}

// asked is what the operator's message at hand asks.
func (s *session) asked() wire.Op {
	if s.msg.Type != wire.TypeControl {
		return ""
	}
	return wire.Op(s.msg.Text("op"))
}

// unheard reports whether messages about an operation are not tapped here: a
// console that asks four times a second would bury all others.
func (s *session) unheard(op wire.Op) bool { return s.quiet && op.Reads() }

// tapOut logs the frames that were appended to dst, in debug mode.
func (s *session) tapOut(dst []byte, before int) {
	if before == len(dst) || !s.server.o.Engine.Debugging() {
		return
	}
	frames := wire.NewFrames(wire.MaxFrame)
	r := bytes.NewReader(dst[before:])
	for r.Len() > 0 || frames.Pending() > 0 {
		text, ok, err := frames.Next()
		switch {
		case err != nil:
			return
		case ok:
			s.tap("out", text)
		default:
			frames.ReadOnce(r)
		}
	}
}

// tap logs a message in full.
func (s *session) tap(direction string, text []byte) {
	m, _ := wire.ParseMessage(text) // what is malformed is shown all the same
	s.server.log.Info("message", "direction", direction, "peer", s.peer,
		"type", task.Printable(string(m.Type)), "text", task.Printable(string(redact(text))))
}

var tokenLine = regexp.MustCompile(`(?mi)^([^=\n]*token[^=\n]*=).*$`)

// redact takes secrets out of a text: the value of any key that speaks of a token.
func redact(text []byte) []byte { return tokenLine.ReplaceAll(text, []byte("${1}[redacted]")) }
