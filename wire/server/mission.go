package server

import (
	"fmt"
	"slices"
	"strings"

	"apollo11/engine"
	"apollo11/engine/mission"
	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

// upload is a mission file that a connection keeps for the runs it asks for.
type upload struct {
	parts   wire.Upload // of one that has not all come
	name    string
	mission *mission.Mission // nil: none has come, or the last was no mission
}

// takeUpload takes a frame of an upload; when it is the last, the file is read,
// on this connection's own time.
func (s *session) takeUpload() {
	u := &s.upload
	done, err := u.parts.Add(&s.msg)
	if !done {
		return
	}
	file, text := u.parts.File, u.parts.Text
	*u = upload{name: file}
	if err == nil {
		s.settle()
		u.mission, err = mission.Parse(file, text)
	}
	s.reply(engine.Done{}, err)
}

// maxFaultText bounds what is said of a mission's faults.
const maxFaultText = 12 << 10

// faultLines is a line for each fault, as many as a person reads.
func faultLines(faults mission.Faults) string {
	var b strings.Builder
	for i := range faults {
		line := faults[i].Error()
		if i > 0 && b.Len()+len(line) > maxFaultText {
			fmt.Fprintf(&b, "\nand %s more", task.Plural(len(faults)-i, "fault"))
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(line)
	}
	return b.String()
}

// runCommand translates what concerns missions and their runs; nil is an
// operation that nobody knows.
func (s *session) runCommand(op wire.Op) (engine.Command, error) {
	m := &s.msg
	switch op {
	case wire.OpRun:
		return s.startRun()
	case wire.OpResume:
		id, err := wire.ParseName(m)
		return engine.Resume{Run: id, Actor: s.id}, err
	case wire.OpRerun:
		id, atContext, err := wire.ParseRerun(m)
		return engine.Rerun{ID: id, AtContext: atContext, Actor: s.id}, err
	case wire.OpFork:
		f, err := wire.ParseFork(m)
		return engine.Fork{Run: f.Run, From: f.From, With: f.With, Actor: s.id}, err
	case wire.OpCancelRun:
		id, reason, err := wire.ParseCancelRun(m)
		return engine.CancelRun{Run: id, Reason: reason, Actor: s.id}, err
	case wire.OpRollback:
		r, err := wire.ParseRollback(m)
		return engine.Rollback{Run: r.Run, To: r.To, Check: r.Check, Actor: s.id}, err
	case wire.OpEvent:
		h, err := wire.ParseEvent(m)
		return engine.Happening{Name: h.Name, Values: h.Params, Actor: s.id}, err
	case wire.OpRuns:
		q, err := wire.ParseRuns(m)
		return engine.GetRuns{Query: *q}, err
	case wire.OpShow:
		id, cursor, err := wire.ParseShow(m)
		return engine.GetRun{ID: id, Cursor: cursor}, err
	case wire.OpMissions:
		return engine.GetMissions{}, nil
	case wire.OpStats:
		return engine.GetStats{}, nil
	}
	return nil, nil
}

// startRun starts a mission by name, or the file that was uploaded here.
func (s *session) startRun() (engine.Command, error) {
	q, err := wire.ParseStart(&s.msg)
	if err != nil {
		return nil, err
	}
	start := engine.StartRun{Name: q.Mission, Params: q.Params, Key: q.Key, Sample: q.Sample, Check: q.Check, Actor: s.id}
	if q.File != "" {
		if s.upload.mission == nil || s.upload.name != q.File {
			return nil, &wire.Error{Code: wire.CodeInvalid, Message: fmt.Sprintf("%s was not uploaded on this connection", task.Printable(q.File))}
		}
		start.Mission = s.upload.mission
	}
	return start, nil
}

// readSpec reads a piece of a mission's text.
func (s *session) readSpec() (engine.Answer, error) {
	q, err := wire.ParseSpec(&s.msg)
	if err != nil {
		return nil, err
	}
	answer, err := s.server.o.Engine.Do(s.server.ctx, engine.GetSpec{Run: q.Run, Mission: q.Mission})
	if err != nil {
		return nil, err
	}
	text, ok := answer.(string)
	if !ok {
		return nil, fmt.Errorf("a mission's text was answered %T", answer)
	}
	return wire.CutSpec(text, q.Offset), nil
}

var errNoPast = &wire.Error{Code: wire.CodeUnavailable, Message: "this controller cannot look back"}

// readState is a page of the state as it was.
func (s *session) readState() (engine.Answer, error) {
	q, seq, err := wire.ParseKeys(&s.msg)
	switch {
	case err != nil:
		return nil, err
	case s.server.o.Past == nil:
		return nil, errNoPast
	}
	return s.server.o.Past.State(s.server.ctx, seq, q)
}

// moment is a record's seq as an answer.
type moment int64

func (s *session) readMoment() (engine.Answer, error) {
	when, err := wire.ParseMoment(&s.msg)
	switch {
	case err != nil:
		return nil, err
	case s.server.o.Past == nil:
		return nil, errNoPast
	}
	seq, err := s.server.o.Past.At(s.server.ctx, when.Time)
	return moment(seq), err
}

// restore reads what the state was, and asks for it.
func (s *session) restore() (engine.Answer, error) {
	r, err := wire.ParseRestore(&s.msg)
	switch {
	case err != nil:
		return nil, err
	case s.server.o.Past == nil:
		return nil, errNoPast
	}
	keys, err := s.server.o.Past.Keys(s.server.ctx, r.Seq)
	if err != nil {
		return nil, err
	}
	return s.server.o.Engine.Do(s.server.ctx, engine.Restore{Seq: r.Seq, Keys: keys, Check: r.Check, Reason: r.Reason, Actor: s.id})
}

// appendRunAnswer encodes an answer about missions and runs.
func appendRunAnswer(dst []byte, answer engine.Answer, limit int) ([]byte, error) {
	switch a := answer.(type) {
	case *view.Run:
		return wire.AppendRows(dst, nil, slices.Values([]view.Row{a}), limit)
	case []view.Run:
		return wire.AppendRows(dst, nil, rows(a), limit)
	case *view.RunPage:
		return wire.AppendRows(dst, wire.RunsHead(a), rows(a.Runs), limit)
	case *view.RunDetail:
		return wire.AppendRun(dst, a, limit)
	case *view.Undone:
		return wire.AppendUndone(dst, a, limit)
	case *view.Restored:
		return wire.AppendRestored(dst, a, limit)
	case []view.Mission:
		return wire.AppendRows(dst, nil, rows(a), limit)
	case []view.TypeStats:
		return wire.AppendRows(dst, nil, rows(a), limit)
	case *wire.SpecPiece:
		return wire.AppendSpecPiece(dst, a), nil
	case moment:
		return wire.AppendSeq(dst, int64(a)), nil
	}
	return dst, fmt.Errorf("answer %T has no message", answer)
}
