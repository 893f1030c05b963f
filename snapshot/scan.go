package snapshot

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
)

// lines reads a file line by line up to a fixed end, in a buffer that grows to
// one longest line and no further.
type lines struct {
	f    io.ReaderAt
	end  int64 // bytes of the file that count
	at   int64 // offset of the next line
	few  int   // bytes read at once by who wants a line or two; 0: readSize
	buf  []byte
	r, w int // buf[r:w] is read and not yet given out
}

// readSize is how much is read at once; a test makes it small.
var readSize = 256 << 10

// next gives the next line without its newline, valid until the next call.
// whole is false when no newline came before the end, or within MaxLine.
// After the last line the error is io.EOF.
func (l *lines) next() (b []byte, whole bool, err error) {
	seen := 0
	for {
		if i := bytes.IndexByte(l.buf[l.r+seen:l.w], '\n'); i >= 0 {
			return l.take(seen+i, 1), true, nil
		}
		seen = l.w - l.r
		rest := l.end - l.at - int64(seen)
		if seen > MaxLine || rest <= 0 {
			if seen == 0 {
				return nil, false, io.EOF
			}
			return l.take(seen, 0), false, nil
		}
		if err := l.fill(rest); err != nil {
			return nil, false, err
		}
	}
}

func (l *lines) take(n, newline int) []byte {
	b := l.buf[l.r : l.r+n]
	l.r += n + newline
	l.at += int64(n + newline)
	return b
}

// fill moves what is left to the front and reads up to rest more bytes.
func (l *lines) fill(rest int64) error {
	l.w = copy(l.buf, l.buf[l.r:l.w])
	l.r = 0
	if l.w == len(l.buf) {
		l.buf = append(l.buf, make([]byte, max(cmp.Or(l.few, readSize), len(l.buf)))...)
	}
	part := l.buf[l.w:]
	if int64(len(part)) > rest {
		part = part[:rest]
	}
	n, err := l.f.ReadAt(part, l.at+int64(l.w))
	l.w += n
	if n > 0 {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// walk reads the entries of one file strictly: every checksum, every sequence
// number, every batch whole, nothing after the closing line.
type walk struct {
	name string
	salt uint32
	in   lines
	next uint64 // seq the next line must have
	open uint64 // batch that is not whole yet, 0 = none
	from int64  // where the open batch starts
	part bool   // lines before the first were skipped

	// Up to the last whole batch:
	good    int64 // offset behind it, before any closing line
	last    uint64
	crc     uint32 // of its last line
	entries uint64
	closed  bool // the closing line was read
}

// startWalk reads the lines of in, which begin behind the header line.
func startWalk(name string, h header, in lines) *walk {
	return &walk{
		name: name, salt: h.salt,
		in:   in,
		next: h.first, last: h.first - 1, crc: h.prevCRC, good: in.at,
	}
}

// line gives the next entry; io.EOF at a clean end, a *Damage where the file
// stops making sense (which a torn tail may explain, see judge).
func (w *walk) line() (line, error) {
	at := w.in.at
	b, whole, err := w.in.next()
	switch {
	case err == io.EOF && w.open != 0:
		return line{}, w.fault(at, "the last batch is cut short")
	case err == io.EOF:
		return line{}, err
	case err != nil:
		return line{}, fmt.Errorf("read %s: %w", w.name, err)
	case w.closed:
		return line{}, w.fault(at, "something follows the closing line")
	case !whole:
		return line{}, w.fault(at, "line has no end")
	case len(b) > 0 && b[0] == '#':
		return w.end(b, at)
	}
	l, err := parseLine(b, w.salt)
	if err != nil {
		return line{}, w.fault(at, err.Error())
	}
	return l, w.accept(l, at)
}

// accept checks the place of a line that is good in itself.
func (w *walk) accept(l line, at int64) error {
	if l.seq != w.next {
		return w.fault(at, fmt.Sprintf("seq %d stands where %d should", l.seq, w.next))
	}
	if w.open == 0 {
		w.open, w.from = w.next, at
	}
	if l.batch != w.open {
		return w.fault(at, fmt.Sprintf("batch %d stands where %d should", l.batch, w.open))
	}
	if l.seq-l.batch >= MaxLines || w.in.at-w.from > MaxBatch {
		return w.fault(at, "batch is over its limit")
	}
	w.next++
	w.entries++
	if l.last {
		w.open, w.last, w.crc, w.good = 0, l.seq, l.crc, w.in.at
	}
	return nil
}

func (w *walk) end(b []byte, at int64) (line, error) {
	if w.open != 0 || !w.fits(b) {
		return line{}, w.fault(at, "closing line does not fit")
	}
	w.closed = true
	return w.line()
}

func (w *walk) fits(b []byte) bool {
	if w.part {
		return isEnd(b, w.salt) && bytes.HasPrefix(b, fmt.Appendf(nil, "#end last=%d ", w.last))
	}
	return same(encodeEnd(w.last, w.entries, w.salt), b)
}

func (w *walk) fault(at int64, what string) *Damage {
	return &Damage{File: w.name, Offset: at, Seq: w.next, What: what}
}

// rest reads on to the end.
func (w *walk) rest() error {
	for {
		if _, err := w.line(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// judge decides whether the bytes behind the last whole batch can be what a
// crash left of the one batch that was being written; otherwise it says why
// not. The next batch is only written once the last is durable, so a sign of
// anything later proves that what does not check was acknowledged.
func judge(b []byte, salt uint32, last uint64) (why string) {
	if len(b) > MaxBatch {
		return "more than one batch does not check"
	}
	j := judgement{b: b, salt: salt, batch: last + 1, next: last + 1}
	for i := 0; i < len(b); {
		n, why := j.at(i)
		if why != "" {
			return why
		}
		i += max(n, 1)
	}
	return ""
}

type judgement struct {
	b      []byte
	salt   uint32
	batch  uint64
	next   uint64 // smallest seq that may come
	behind int    // offset behind the last good line
}

// at looks for a good line that starts at i, also in the middle of what used to
// be a line: a newline may be what is broken. n is the length of what it found.
func (j *judgement) at(i int) (n int, why string) {
	if !j.mayStart(i) {
		return 0, ""
	}
	n = bytes.IndexByte(j.b[i:], '\n')
	if n < 0 {
		n = len(j.b) - i
	}
	if isEnd(j.b[i:i+n], j.salt) {
		return 0, "the closing line follows"
	}
	if _, err := parseHeader(j.b[i : i+n]); err == nil {
		return 0, "a header follows"
	}
	l, err := parseLine(j.b[i:i+n], j.salt)
	if err != nil {
		return 0, ""
	}
	return n + 1, j.place(l, i, n+1)
}

// mayStart is a cheap filter: a checksum and a space, or the closing line.
func (j *judgement) mayStart(i int) bool {
	b := j.b[i:]
	if len(b) < 9 {
		return false
	}
	_, hex := parseHex(b[:8])
	return hex && b[8] == ' ' || b[0] == '#'
}

func (j *judgement) place(l line, i, n int) string {
	switch {
	case l.batch > j.batch:
		return fmt.Sprintf("entry %d of a later batch follows", l.seq)
	case l.batch < j.batch || l.seq < j.next:
		return fmt.Sprintf("entry %d stands twice", l.seq)
	case i == j.behind && l.seq != j.next:
		return fmt.Sprintf("entry %d is missing", j.next)
	case i != j.behind && l.seq == j.next:
		return fmt.Sprintf("something stands before entry %d that was not written", l.seq)
	case l.last && i+n < len(j.b):
		return "something follows the end of the batch"
	}
	j.next, j.behind = l.seq+1, i+n
	return ""
}
