package wire

import (
	"strconv"
	"strings"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// line is a row of one text, whose name says what it is.
type line struct{ name, text string }

// Fields implements view.Row.
func (l *line) Fields(v view.Visitor) { v.Text(l.name, &l.text) }

// eachLine gives texts as rows.
func eachLine(name string, texts []string, yield func(view.Row) bool) bool {
	for _, text := range texts {
		if !yield(&line{name, cut(text, maxShown)}) {
			return false
		}
	}
	return true
}

// AppendRun appends the answer of op=show: the run, notes, a page of units.
func AppendRun(dst []byte, d *view.RunDetail, limit int) ([]byte, error) {
	return AppendRows(dst, head("cursor", d.Cursor), func(yield func(view.Row) bool) {
		if !yield(&d.Run) || !eachLine("note", d.Notes, yield) {
			return
		}
		for i := range d.Units {
			u := d.Units[i]
			u.Inputs, u.Outputs = shortened(u.Inputs), shortened(u.Outputs)
			if !yield(&u) {
				return
			}
		}
	}, limit)
}

// runRows reads the rows of op=show, frame by frame.
type runRows struct {
	view.RunDetail
	n int
}

func (r *runRows) read(m *Message) error {
	if cursor := m.Text("cursor"); r.n == 0 {
		r.Cursor = cursor
	}
	return eachRow(m, func(row *Message) error {
		r.n++
		if r.n == 1 {
			return ReadRow(row, &r.Run)
		}
		if note, ok := row.Get("note"); ok {
			r.Notes = append(r.Notes, note)
			return nil
		}
		r.Units = append(r.Units, view.RunUnit{})
		return ReadRow(row, &r.Units[len(r.Units)-1])
	})
}

// RunsHead is the head of a page of runs, for AppendRows.
func RunsHead(p *view.RunPage) []Field { return head("cursor", p.Cursor) }

// AppendUndone appends the answer of op=rollback: the run, what it undoes, what
// it can't.
func AppendUndone(dst []byte, u *view.Undone, limit int) ([]byte, error) {
	return AppendRows(dst, nil, func(yield func(view.Row) bool) {
		_ = yield(&u.Run) && eachLine("undo", u.Units, yield) && eachLine("without", u.Without, yield)
	}, limit)
}

// undoneRows reads the rows of op=rollback, frame by frame.
type undoneRows struct {
	view.Undone
	n int
}

func (u *undoneRows) read(m *Message) error {
	return eachRow(m, func(row *Message) error {
		u.n++
		if u.n == 1 {
			return ReadRow(row, &u.Run)
		}
		if unit, ok := row.Get("undo"); ok {
			u.Units = append(u.Units, unit)
		}
		if unit, ok := row.Get("without"); ok {
			u.Without = append(u.Without, unit)
		}
		return nil
	})
}

// AppendRestored appends the answer of op=restore. Of many changes the first are
// listed.
func AppendRestored(dst []byte, r *view.Restored, limit int) ([]byte, error) {
	list := r.Changed[:min(len(r.Changed), maxRestored)]
	count := head("at", strconv.FormatInt(r.Seq, 10), "total", strconv.Itoa(max(r.Total, len(r.Changed))))
	return AppendRows(dst, count, func(yield func(view.Row) bool) {
		for _, k := range list {
			k.Before, k.After = shorten(k.Before, maxShownKey), shorten(k.After, maxShownKey)
			if !yield(&k) {
				return
			}
		}
	}, limit)
}

// SpecPiece answers a SpecQuery.
type SpecPiece struct {
	Text string
	Next int64  // offset to go on from
	Size int64  // of the whole text
	Hash string // of the whole text; another one than before: it has changed meanwhile
}

// maxSpecPiece bounds one.
const maxSpecPiece = 256 << 10

// CutSpec is the piece of a text from an offset on.
func CutSpec(text string, offset int64) *SpecPiece {
	p := &SpecPiece{Size: int64(len(text)), Hash: task.HashText([]byte(text))}
	rest := text[min(offset, p.Size):]
	n := len(rest)
	if n > maxSpecPiece {
		n = wholeRunes(rest[:maxSpecPiece])
	}
	p.Text, p.Next = strings.ToValidUTF8(rest[:n], "\uFFFD"), p.Size-int64(len(rest)-n)
	return p
}

// AppendSpecPiece appends the answer of op=spec.
func AppendSpecPiece(dst []byte, p *SpecPiece) []byte {
	dst, at := beginMessage(dst, TypeRows)
	dst = appendText(dst, "hash", p.Hash)
	dst = appendUint(dst, "size", uint64(max(0, p.Size)))
	dst = appendUint(dst, "next", uint64(max(0, p.Next)))
	return endMessage(appendSome(dst, "text", p.Text), at)
}

// ParseSpecPiece reads the answer of op=spec.
func ParseSpecPiece(m *Message) (*SpecPiece, error) {
	f := fields{m: m}
	p := &SpecPiece{Text: f.text("text"), Next: int64(f.count("next")), Size: int64(f.count("size")), Hash: f.need("hash")}
	return p, f.err
}

// AppendMoment appends a control frame, op=moment.
func AppendMoment(dst []byte, when view.Time) []byte {
	dst, at := beginControl(dst, OpMoment)
	return endMessage(appendTime(dst, "time", when.Time), at)
}

// ParseMoment reads op=moment.
func ParseMoment(m *Message) (view.Time, error) {
	f := fields{m: m}
	f.need("time")
	when := view.Time{Time: f.time("time")}
	return when, f.err
}

// AppendSeq appends the answer of op=moment.
func AppendSeq(dst []byte, seq int64) []byte {
	dst, at := beginMessage(dst, TypeRows)
	return endMessage(appendUint(dst, "seq", uint64(max(0, seq))), at)
}

// ParseSeq reads the answer of op=moment.
func ParseSeq(m *Message) (int64, error) {
	f := fields{m: m}
	f.need("seq")
	seq := int64(f.count("seq"))
	return seq, f.err
}
