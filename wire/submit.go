package wire

import (
	"errors"
	"fmt"
	"strconv"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// A submit is one command, all or none, in one control frame, or in several of
// which all but the last say part=true; only the last one is answered. Task N's
// keys start with "N."; numbers go on from frame to frame without a gap, so that
// a lost part is noticed.

const (
	// MaxSubmit is the most tasks of one submit.
	MaxSubmit = 100_000
	// MaxSubmitBytes is the most text of one submit, over all its parts.
	MaxSubmitBytes = 64 << 20
)

// AppendSubmit appends a submit in frames of at most limit bytes of text.
func AppendSubmit(dst []byte, specs []task.Spec, limit int) ([]byte, error) {
	return appendSubmit(dst, specs, limit, false)
}

// AppendCheck is AppendSubmit for tasks that are only checked.
func AppendCheck(dst []byte, specs []task.Spec, limit int) ([]byte, error) {
	return appendSubmit(dst, specs, limit, true)
}

func appendSubmit(dst []byte, specs []task.Spec, limit int, check bool) ([]byte, error) {
	if len(specs) > MaxSubmit {
		return dst, &Error{Code: CodeTooLarge, Message: fmt.Sprintf("%d tasks in one submit, want at most %d", len(specs), MaxSubmit)}
	}
	whole := len(dst)
	dst, at := beginControl(dst, OpSubmit)
	lines := 0
	for i := range specs {
		start := len(dst)
		dst = appendSpec(dst, i, &specs[i])
		if len(dst)-start+64 > limit || len(dst)-whole > MaxSubmitBytes {
			return dst[:whole], &Error{Code: CodeTooLarge, Message: fmt.Sprintf("task %d does not fit", i+1)}
		}
		mine := 8 + len(specs[i].Inputs)
		if lines > 0 && (len(dst)-at-header+64 > limit || lines+mine > MaxFields-8) {
			spec := string(dst[start:])
			dst = endMessage(appendFlag(dst[:start], "part", true), at)
			dst, at = beginControl(dst, OpSubmit)
			dst, lines = append(dst, spec...), 0
		}
		lines += mine
	}
	return endMessage(appendFlag(dst, "check", check), at), nil
}

func appendSpec(dst []byte, n int, s *task.Spec) []byte {
	number := strconv.Itoa(n) + "."
	add := func(key, value string) {
		if value != "" {
			dst = appendPrefixed(dst, number, key, value)
		}
	}
	dst = appendPrefixed(dst, number, "type", s.Type)
	add("id", s.ID)
	add("key", s.Key)
	dst = appendTime(dst, number+"not_before", s.NotBefore)
	dst = appendTime(dst, number+"deadline", s.Deadline)
	if s.Retries != task.Unset {
		add("retries", strconv.Itoa(s.Retries))
	}
	dst = appendMillis(dst, number+"timeout_ms", s.Timeout)
	return appendValues(dst, number+"in.", s.Inputs)
}

// Submission puts the parts of a submit together.
type Submission struct {
	Specs []task.Spec
	Check bool // nothing is queued
	bytes int
	err   error // the first fault; the parts after it are not kept
}

// Open reports whether a part has come and the last frame has not.
func (s *Submission) Open() bool { return s.bytes > 0 }

// Add takes a frame of a submit; done says that it was the last. The first
// fault is told when it is.
func (s *Submission) Add(m *Message) (done bool, err error) {
	f := fields{m: m}
	done = !f.flag("part")
	s.Check = f.flag("check") || s.Check
	s.bytes++
	if s.err == nil {
		s.err = f.err
	}
	err = eachNumbered(m, s.take)
	if s.err == nil {
		s.err = err
	}
	if s.err != nil {
		s.Specs = nil
	}
	if done && s.err == nil && len(s.Specs) == 0 {
		s.err = &Error{Code: CodeInvalid, Message: "submit without a task"}
	}
	return done, s.err
}

// take adds one task.
func (s *Submission) take(number string, row *Message) error {
	if s.err != nil {
		return s.err
	}
	if number != strconv.Itoa(len(s.Specs)) {
		return &Error{Code: CodeInvalid, Message: fmt.Sprintf("task number %s comes where %d was due", cut(number, 20), len(s.Specs))}
	}
	for key, value := range row.All() {
		s.bytes += len(key) + len(value) + 2
	}
	if len(s.Specs) == MaxSubmit || s.bytes > MaxSubmitBytes {
		return &Error{Code: CodeTooLarge, Message: fmt.Sprintf("a submit is over %d tasks or %d bytes", MaxSubmit, MaxSubmitBytes)}
	}
	spec, err := parseSpec(row)
	if err != nil {
		return &Error{Code: CodeInvalid, Message: fmt.Sprintf("task %d: %v", len(s.Specs)+1, err), Faults: []Fault{{len(s.Specs), err.Error()}}}
	}
	s.Specs = append(s.Specs, *spec)
	return nil
}

func parseSpec(row *Message) (*task.Spec, error) {
	f := fields{m: row}
	s := &task.Spec{
		Type:      f.text("type"),
		ID:        f.text("id"),
		Key:       f.text("key"),
		NotBefore: f.time("not_before"),
		Deadline:  f.time("deadline"),
		Retries:   task.Unset,
		Timeout:   f.millis("timeout_ms"),
		Inputs:    f.prefixed("in."),
	}
	if f.text("retries") != "" {
		s.Retries = int(min(f.count("retries"), 1<<31-1))
	}
	var bad *MalformedError
	if errors.As(f.err, &bad) {
		return nil, errors.New(bad.Reason)
	}
	return s, nil
}

// AppendSubmitted appends the answer of a submit in frames of at most limit
// bytes of text.
func AppendSubmitted(dst []byte, list []view.Submitted, limit int) ([]byte, error) {
	w := beginRows(dst, limit)
	for i := range list {
		w.add(func(p *rowPen) { submittedFields(&list[i], p) })
	}
	return w.end()
}

func submittedFields(s *view.Submitted, v view.Visitor) {
	state := s.State.String()
	v.Text("id", &s.ID)
	v.Text("state", &state)
	v.Bool("existed", &s.Existed)
	v.Text("warning", &s.Warning)
	s.State, _ = task.ParseState(state)
}

// ParseSubmitted appends the accepted tasks of one frame to list.
func ParseSubmitted(list []view.Submitted, m *Message) ([]view.Submitted, error) {
	err := eachRow(m, func(row *Message) error {
		r := rowReader{fields{m: row}}
		var s view.Submitted
		submittedFields(&s, &r)
		list = append(list, s)
		return r.err
	})
	return list, err
}
