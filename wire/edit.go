package wire

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// Edit changes the inputs of a task.
type Edit struct {
	ID    string // or a unique prefix
	Set   task.Values
	Unset []string
}

// maxUnset is the most inputs that an edit unsets.
const maxUnset = 1024

// check refuses what would not arrive as it was meant.
func (e *Edit) check() error {
	names := slices.Clone(e.Unset)
	for _, v := range e.Set {
		names = append(names, v.Name)
	}
	for _, name := range names {
		if err := task.CheckKey(name); err != nil {
			return &Error{Code: CodeInvalid, Message: "input " + err.Error()}
		}
	}
	if n := e.Set.Size(); n > task.MaxBytes || len(e.Unset) > maxUnset {
		return &Error{Code: CodeTooLarge, Message: fmt.Sprintf("inputs of %d bytes to set and %d to unset: want at most %d and %d", n,
			len(e.Unset), task.MaxBytes, maxUnset)}
	}
	return nil
}

// AppendEdit appends a control frame, op=edit.
func AppendEdit(dst []byte, e *Edit) []byte {
	dst, at := beginControl(dst, OpEdit)
	dst = appendText(dst, "id", e.ID)
	dst = appendSome(dst, "unset", strings.Join(e.Unset, ","))
	return endMessage(appendValues(dst, "in.", e.Set), at)
}

// ParseEdit reads op=edit.
func ParseEdit(m *Message) (*Edit, error) {
	f := fields{m: m}
	e := &Edit{ID: f.need("id"), Unset: f.list("unset"), Set: f.prefixed("in.")}
	if len(e.Unset) > maxUnset {
		f.fail("unset", fmt.Errorf("%d names, want at most %d", len(e.Unset), maxUnset))
	}
	for _, name := range e.Unset {
		f.fail("unset", task.CheckKey(name))
	}
	return e, f.err
}

// AppendExplanation appends the answer of op=explain.
func AppendExplanation(dst []byte, x *view.Explanation) []byte {
	dst, at := beginMessage(dst, TypeRows)
	dst = appendText(dst, "id", x.ID)
	dst = appendText(dst, "state", x.State)
	for i, line := range x.Lines {
		dst = appendText(dst, strconv.Itoa(i)+".line", cut(line, maxText))
	}
	for i, hint := range x.Hints {
		dst = appendText(dst, strconv.Itoa(len(x.Lines)+i)+".hint", cut(hint, maxText))
	}
	return endMessage(dst, at)
}

// ParseExplanation reads the answer of op=explain.
func ParseExplanation(m *Message) (*view.Explanation, error) {
	f := fields{m: m}
	x := &view.Explanation{ID: f.need("id"), State: f.text("state"), Lines: []string{}, Hints: []string{}}
	err := eachRow(m, func(row *Message) error {
		if line, ok := row.Get("line"); ok {
			x.Lines = append(x.Lines, line)
		}
		if hint, ok := row.Get("hint"); ok {
			x.Hints = append(x.Hints, hint)
		}
		return nil
	})
	if f.err != nil {
		err = f.err
	}
	return x, err
}
