package wire

import (
	"errors"
	"fmt"
	"slices"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// Start starts a mission: one that the controller knows by name, or the file that
// was uploaded on this connection.
type Start struct {
	Mission string
	File    string // as it was uploaded; instead of Mission
	Params  task.Values
	Key     string // names the run within its mission: the same again is answered the first one
	Sample  int    // more than 0: a try on so much of the data
	Check   bool   // nothing is started
}

// checkValues refuses names that would not arrive as they were meant.
func checkValues(what string, values task.Values) error {
	for _, v := range values {
		if err := task.CheckKey(v.Name); err != nil {
			return &Error{Code: CodeInvalid, Message: what + " " + err.Error()}
		}
	}
	if n := values.Size(); n > task.MaxBytes {
		return &Error{Code: CodeTooLarge, Message: fmt.Sprintf("%ss of %d bytes: want at most %d", what, n, task.MaxBytes)}
	}
	return nil
}

// AppendStart appends a control frame, op=run.
func AppendStart(dst []byte, s *Start) []byte {
	dst, at := beginControl(dst, OpRun)
	dst = appendSome(dst, "mission", s.Mission)
	dst = appendSome(dst, "file", s.File)
	dst = appendSome(dst, "key", s.Key)
	dst = appendCount(dst, "sample", uint64(max(0, s.Sample)))
	dst = appendFlag(dst, "check", s.Check)
	return endMessage(appendValues(dst, "p.", s.Params), at)
}

// ParseStart reads op=run.
func ParseStart(m *Message) (*Start, error) {
	f := fields{m: m}
	s := &Start{
		Mission: f.text("mission"),
		File:    f.text("file"),
		Params:  f.prefixed("p."),
		Key:     f.text("key"),
		Sample:  int(min(f.count("sample"), 1<<31-1)),
		Check:   f.flag("check"),
	}
	if (s.Mission == "") == (s.File == "") {
		f.fail("mission", errors.New("want the name of a mission, or the file that was uploaded"))
	}
	return s, f.err
}

// AppendRerun appends a control frame, op=rerun; atContext pins the state keys
// that were seen then.
func AppendRerun(dst []byte, id string, atContext bool) []byte {
	dst, at := beginControl(dst, OpRerun)
	dst = appendText(dst, "id", id)
	return endMessage(appendFlag(dst, "at_context", atContext), at)
}

// ParseRerun reads op=rerun.
func ParseRerun(m *Message) (id string, atContext bool, err error) {
	f := fields{m: m}
	id, atContext = f.need("id"), f.flag("at_context")
	return id, atContext, f.err
}

// Fork starts a run that takes over what does not depend on a unit, and gives
// that unit other inputs.
type Fork struct {
	Run  string
	From string // unit
	With task.Values
}

// AppendFork appends a control frame, op=fork.
func AppendFork(dst []byte, r *Fork) []byte {
	dst, at := beginControl(dst, OpFork)
	dst = appendText(dst, "id", r.Run)
	dst = appendText(dst, "from", r.From)
	return endMessage(appendValues(dst, "w.", r.With), at)
}

// ParseFork reads op=fork.
func ParseFork(m *Message) (*Fork, error) {
	f := fields{m: m}
	r := &Fork{Run: f.need("id"), From: f.need("from"), With: f.prefixed("w.")}
	return r, f.err
}

// AppendCancelRun appends a control frame, op=cancelrun.
func AppendCancelRun(dst []byte, id, reason string) []byte {
	dst, at := beginControl(dst, OpCancelRun)
	dst = appendText(dst, "id", id)
	return endMessage(appendSome(dst, "reason", reason), at)
}

// ParseCancelRun reads op=cancelrun.
func ParseCancelRun(m *Message) (id, reason string, err error) {
	f := fields{m: m}
	id, reason = f.need("id"), f.text("reason")
	return id, reason, f.err
}

// Rollback undoes what a run did, the latest first.
type Rollback struct {
	Run   string
	To    string // unit: what ran before it stays; empty: everything is undone
	Check bool   // only tell what would be undone
}

// AppendRollback appends a control frame, op=rollback.
func AppendRollback(dst []byte, r *Rollback) []byte {
	dst, at := beginControl(dst, OpRollback)
	dst = appendText(dst, "id", r.Run)
	dst = appendSome(dst, "to", r.To)
	return endMessage(appendFlag(dst, "check", r.Check), at)
}

// ParseRollback reads op=rollback.
func ParseRollback(m *Message) (*Rollback, error) {
	f := fields{m: m}
	r := &Rollback{Run: f.need("id"), To: f.text("to"), Check: f.flag("check")}
	return r, f.err
}

// Restore puts the global state back to what record Seq left.
type Restore struct {
	Seq    int64
	Check  bool // only tell what would change
	Reason string
}

// AppendRestore appends a control frame, op=restore.
func AppendRestore(dst []byte, r *Restore) []byte {
	dst, at := beginControl(dst, OpRestore)
	dst = appendUint(dst, "at", uint64(max(0, r.Seq)))
	dst = appendFlag(dst, "check", r.Check)
	return endMessage(appendSome(dst, "reason", r.Reason), at)
}

// ParseRestore reads op=restore.
func ParseRestore(m *Message) (*Restore, error) {
	f := fields{m: m}
	r := &Restore{Seq: int64(f.count("at")), Check: f.flag("check"), Reason: f.text("reason")}
	if r.Seq == 0 {
		f.fail("at", errors.New("want the number of a record"))
	}
	return r, f.err
}

// Happening is an event by name, which starts the missions that wait for it.
type Happening struct {
	Name   string
	Params task.Values
}

// AppendEvent appends a control frame, op=event.
func AppendEvent(dst []byte, h *Happening) []byte {
	dst, at := beginControl(dst, OpEvent)
	dst = appendText(dst, "name", h.Name)
	return endMessage(appendValues(dst, "p.", h.Params), at)
}

// ParseEvent reads op=event.
func ParseEvent(m *Message) (*Happening, error) {
	f := fields{m: m}
	h := &Happening{Name: f.need("name"), Params: f.prefixed("p.")}
	return h, f.err
}

// AppendRuns appends a control frame, op=runs.
func AppendRuns(dst []byte, q *view.RunQuery) []byte {
	dst, at := beginControl(dst, OpRuns)
	dst = appendSome(dst, "mission", q.Mission)
	dst = appendSome(dst, "state", q.State)
	dst = appendCount(dst, "limit", uint64(max(0, q.Limit)))
	return endMessage(appendSome(dst, "cursor", q.Cursor), at)
}

// ParseRuns reads op=runs.
func ParseRuns(m *Message) (*view.RunQuery, error) {
	f := fields{m: m}
	q := &view.RunQuery{Mission: f.text("mission"), State: f.text("state"), Limit: f.limit(), Cursor: f.text("cursor")}
	if q.State != "" && !slices.Contains(view.RunStates, q.State) {
		f.fail("state", fmt.Errorf("unknown state of a run: %q", cut(q.State, 60)))
	}
	return q, f.err
}

// AppendShow appends a control frame, op=show; the cursor is of the page of units
// before, empty for the first.
func AppendShow(dst []byte, id, cursor string) []byte {
	dst, at := beginControl(dst, OpShow)
	dst = appendText(dst, "id", id)
	return endMessage(appendSome(dst, "cursor", cursor), at)
}

// ParseShow reads op=show.
func ParseShow(m *Message) (id, cursor string, err error) {
	f := fields{m: m}
	id, cursor = f.need("id"), f.text("cursor")
	return id, cursor, f.err
}

// SpecQuery asks for a piece of the text of the mission that a run executes, or
// that is known by a name.
type SpecQuery struct {
	Run     string
	Mission string // instead of Run
	Offset  int64
}

// AppendSpec appends a control frame, op=spec.
func AppendSpec(dst []byte, q *SpecQuery) []byte {
	dst, at := beginControl(dst, OpSpec)
	dst = appendSome(dst, "id", q.Run)
	dst = appendSome(dst, "mission", q.Mission)
	return endMessage(appendCount(dst, "offset", uint64(max(0, q.Offset))), at)
}

// ParseSpec reads op=spec.
func ParseSpec(m *Message) (*SpecQuery, error) {
	f := fields{m: m}
	q := &SpecQuery{Run: f.text("id"), Mission: f.text("mission"), Offset: int64(f.count("offset"))}
	if (q.Run == "") == (q.Mission == "") {
		f.fail("id", errors.New("want the id of a run, or the name of a mission"))
	}
	return q, f.err
}
