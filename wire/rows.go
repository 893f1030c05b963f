package wire

import (
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// An answer of rows is one type=rows frame, or several of which all but the
// last end in part=true. Row N's keys start with "N."; numbers go on from frame
// to frame, a row's keys stand together. Empty and zero fields are left out,
// but a row's first field never is.

// maxRowsFrame keeps a frame of rows under MaxFields.
const maxRowsFrame = 1000

// rowsWriter appends an answer of rows, cutting it into frames.
type rowsWriter struct {
	dst   []byte
	at    int // where the present frame starts
	limit int // of a frame's text
	n     int // rows so far
	inN   int // rows in the present frame
	err   error
}

func beginRows(dst []byte, limit int) *rowsWriter {
	w := &rowsWriter{limit: limit}
	w.dst, w.at = beginMessage(dst, TypeRows)
	return w
}

// add appends one row; what write appends has no number yet.
func (w *rowsWriter) add(write func(p *rowPen)) {
	start := len(w.dst)
	p := rowPen{dst: w.dst, n: w.n, first: true}
	write(&p)
	w.dst = p.dst
	size := len(w.dst) - start
	if size+64 > w.limit {
		w.err = &Error{Code: CodeTooLarge, Message: fmt.Sprintf("a row of %d bytes does not fit a frame", size)}
		w.dst = w.dst[:start]
		return
	}
	if w.inN > 0 && (len(w.dst)-w.at-header+64 > w.limit || w.inN == maxRowsFrame) {
		w.split(start)
	}
	w.n++
	w.inN++
}

// split moves the row that starts at start into a frame of its own.
func (w *rowsWriter) split(start int) {
	row := string(w.dst[start:])
	w.dst = endMessage(appendFlag(w.dst[:start], "part", true), w.at)
	w.dst, w.at = beginMessage(w.dst, TypeRows)
	w.dst = append(w.dst, row...)
	w.inN = 0
}

func (w *rowsWriter) end() ([]byte, error) { return endMessage(w.dst, w.at), w.err }

// AppendRows appends an answer of rows in frames of at most limit bytes of text.
func AppendRows(dst []byte, head []Field, rows iter.Seq[view.Row], limit int) ([]byte, error) {
	w := beginRows(dst, limit)
	for _, f := range head {
		w.dst = appendText(w.dst, f.Key, f.Value)
	}
	for row := range rows {
		w.add(func(p *rowPen) { row.Fields(p) })
	}
	return w.end()
}

// rowPen is the one writer of rows: a view.Visitor that appends.
type rowPen struct {
	dst   []byte
	n     int
	first bool
}

func (p *rowPen) key(name string) {
	p.first = false
	p.dst = append(strconv.AppendInt(p.dst, int64(p.n), 10), '.')
	p.dst = append(p.dst, name...)
}

// Text implements view.Visitor.
func (p *rowPen) Text(name string, v *string) {
	if *v != "" || p.first {
		p.key(name)
		p.dst = appendValue(p.dst, strings.ToValidUTF8(*v, "\uFFFD"))
	}
}

// Int implements view.Visitor.
func (p *rowPen) Int(name string, v *int64) {
	if *v != 0 || p.first {
		p.key(name)
		p.dst = append(strconv.AppendInt(append(p.dst, '='), *v, 10), '\n')
	}
}

// Bool implements view.Visitor.
func (p *rowPen) Bool(name string, v *bool) {
	if *v || p.first {
		p.key(name)
		p.dst = appendValue(p.dst, strconv.FormatBool(*v))
	}
}

// Time implements view.Visitor.
func (p *rowPen) Time(name string, v *view.Time) {
	if v.IsZero() && !p.first {
		return
	}
	text := ""
	if !v.IsZero() {
		text = v.UTC().Format(time.RFC3339Nano)
	}
	p.key(name)
	p.dst = appendValue(p.dst, text)
}

// Values implements view.Visitor: the canonical text rides as one value.
func (p *rowPen) Values(name string, v *task.Values) {
	if len(*v) > 0 || p.first {
		p.key(name)
		p.dst = appendValue(p.dst, strings.ToValidUTF8(string(v.AppendText(nil)), "\uFFFD"))
	}
}

// rowReader is the one reader of rows: a view.Visitor that fills.
type rowReader struct{ fields }

// ReadRow fills row from the fields of one row.
func ReadRow(m *Message, row view.Row) error {
	r := rowReader{fields{m: m}}
	row.Fields(&r)
	return r.err
}

// Text implements view.Visitor.
func (r *rowReader) Text(name string, v *string) { *v = r.text(name) }

// Int implements view.Visitor.
func (r *rowReader) Int(name string, v *int64) { *v = r.int(name) }

// Bool implements view.Visitor.
func (r *rowReader) Bool(name string, v *bool) { *v = r.flag(name) }

// Time implements view.Visitor.
func (r *rowReader) Time(name string, v *view.Time) { v.Time = r.time(name) }

// Values implements view.Visitor.
func (r *rowReader) Values(name string, v *task.Values) {
	values, err := task.ParseValues(r.text(name))
	r.fail(name, err)
	*v = values
}

func (f *fields) int(key string) int64 {
	text := f.text(key)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		f.fail(key, errors.New("not a whole number"))
	}
	return n
}

// eachRow calls read for every row of m, with the row's fields under their own
// names. The message that read gets is good only during the call.
func eachRow(m *Message, read func(row *Message) error) error {
	return eachNumbered(m, func(_ string, row *Message) error { return read(row) })
}

func eachNumbered(m *Message, read func(number string, row *Message) error) error {
	row := Message{Type: m.Type}
	current := ""
	for i := range m.fields {
		number, name, ok := strings.Cut(m.fields[i].Key, ".")
		if !ok || !digits(number) {
			continue
		}
		if number != current && current != "" {
			if err := read(current, &row); err != nil {
				return err
			}
			row.fields = row.fields[:0]
		}
		current = number
		row.fields = append(row.fields, Field{name, m.fields[i].Value})
	}
	if current == "" {
		return nil
	}
	return read(current, &row)
}

func digits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
