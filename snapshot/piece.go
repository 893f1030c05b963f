package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"
)

// piece is a run of whole batches inside one segment that checks from its first
// line to its last.
type piece struct {
	file     string
	salt     uint32
	from, to int64  // offsets of its first byte and behind its last
	first    uint64 // empty when first is last+1
	last     uint64
	crc      uint32 // of its last line
	lines    uint64
	head     bool // begins right behind the header
	tail     bool // nothing bad follows it in its file
}

// scan is what one segment holds: its good pieces, and what is bad between them.
type scan struct {
	candidate
	pieces   []piece
	faults   []*Damage
	torn     *torn // only of the newest segment
	salvaged bool  // read in spite of its header, which has to be written anew
	closed   bool
}

// scanSegment reads all of a segment; after something bad it looks for the next
// batch that is good in itself. newest: a torn tail is no fault.
func scanSegment(files Files, dir string, c candidate, newest bool) (scan, error) {
	s := scan{candidate: c}
	if c.bad != nil {
		s.faults = []*Damage{c.bad}
		h, body, err := salvage(files, dir, c.name)
		if err != nil || h.seg == 0 {
			return s, err
		}
		s.h, s.body, s.salvaged = h, body, true
	}
	return s, s.walked(files, dir, func(w *walk) error { return s.all(w, newest) })
}

// salvage finds what a damaged header said, without prevcrc: number and first
// entry stand in the file's name too, and the salt follows from the other fields.
// It counts if the first entry fits; else h.seg is 0.
func salvage(files Files, dir, name string) (h header, body int64, err error) {
	f, err := files.Open(filepath.Join(dir, name))
	if err != nil {
		return h, 0, fmt.Errorf("read journal: %w", err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return h, 0, fmt.Errorf("read journal: %w", err)
	}
	b, err := readPart(f, 0, min(size, maxHeader))
	if err != nil {
		return h, 0, fmt.Errorf("read %s: %w", name, err)
	}
	seg, first, _ := parseSegmentName(name)
	body = int64(headerEnd(b))
	for _, salt := range salts(string(b[:body]), seg, first) {
		w := startWalk(name, header{first: first, salt: salt}, lines{f: f, at: body, end: size})
		if _, err := w.line(); err == nil {
			return header{seg: seg, first: first, salt: salt, opened: openedOf(string(b[:body]))}, body, nil
		}
	}
	return h, 0, nil
}

// headerEnd is behind the newline of the header, or behind where it should be.
func headerEnd(b []byte) int {
	const tail = len(" crc=00000000\n")
	if i := bytes.Index(b, []byte(" crc=")); i >= 0 && i+tail <= len(b) {
		return i + tail
	}
	return bytes.IndexByte(b, '\n') + 1
}

// salts are the one that stands in the header and the one that should.
func salts(head string, seg, first uint64) []uint32 {
	read, _ := parseHex([]byte(behind(head, "salt=", 8)))
	prev, _ := parseHex([]byte(behind(head, "prevcrc=", 8)))
	return []uint32{read, newHeader(seg, first, prev, openedOf(head)).salt}
}

func openedOf(head string) time.Time {
	t, _ := time.Parse(stamp, behind(head, "opened=", len(stamp)))
	return t
}

// behind gives the n bytes after a key, whatever stands around them.
func behind(s, key string, n int) string {
	_, v, _ := strings.Cut(s, key)
	return v[:min(n, len(v))]
}

func (s *scan) all(w *walk, newest bool) error {
	for w != nil {
		start := w.good
		first := w.last + 1
		err := w.rest()
		s.closed = s.closed || w.closed
		s.keep(w, start, first)
		var d *Damage
		if err != nil && !errors.As(err, &d) {
			return err
		}
		if d == nil {
			return nil
		}
		// Half a batch that follows damage is no torn tail: it may be anything.
		if newest && (len(s.faults) == 0 || w.last >= first) && s.tornAt(w) {
			return nil
		}
		s.pieces[len(s.pieces)-1].tail = false
		s.faults = append(s.faults, d)
		if w, err = w.resync(d.Offset); err != nil {
			return err
		}
	}
	return nil
}

func (s *scan) keep(w *walk, start int64, first uint64) {
	s.pieces = append(s.pieces, piece{
		file: s.name, salt: w.salt, from: start, to: w.good, first: first, last: w.last,
		crc: w.crc, lines: w.last + 1 - first, head: start == s.body && first == s.h.first && !s.salvaged, tail: true,
	})
}

// tornAt reports whether what is behind w.good is a torn tail, and keeps it.
func (s *scan) tornAt(w *walk) bool {
	data, err := w.again().tail()
	if err != nil || data == nil {
		return false
	}
	s.torn = &torn{file: s.name, end: w.good, data: data}
	return true
}

// again is a walk over what w found bad.
func (w *walk) again() *walk {
	n := *w
	n.in = lines{f: w.in.f, at: w.good, end: w.in.end}
	n.next, n.open = w.last+1, 0
	return &n
}

// resync finds the first good line at or behind an offset that begins a batch,
// and starts a walk there; nil when there is none.
func (w *walk) resync(at int64) (*walk, error) {
	in := lines{f: w.in.f, at: at, end: w.in.end}
	for {
		at := in.at
		b, whole, err := in.next()
		if err == io.EOF {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", w.name, err)
		}
		if i, l := goodLine(b, w.salt); whole && i >= 0 && l.seq == l.batch {
			start := at + int64(i)
			n := startWalk(w.name, header{first: l.seq, salt: w.salt}, lines{f: w.in.f, at: start, end: w.in.end})
			n.part = true
			return n, nil
		}
	}
}

// goodLine looks in what should be one line for one that checks; it may stand
// behind rubble that lost its newline.
// at is -1 if there is none.
func goodLine(b []byte, salt uint32) (at int, l line) {
	j := judgement{b: b}
	for i := range b {
		if !j.mayStart(i) {
			continue
		}
		if l, err := parseLine(b[i:], salt); err == nil {
			return i, l
		}
	}
	return -1, line{}
}

// stretch is pieces of consecutive segments that continue each other.
type stretch struct {
	pieces []piece
}

func (s stretch) first() uint64 { return s.pieces[0].first }
func (s stretch) last() uint64  { return s.pieces[len(s.pieces)-1].last }

// stretches joins what continues. breaks are the places where nothing is bad in
// itself and yet one segment does not continue the one before.
func stretches(scans []scan) (out []stretch, breaks []*Damage) {
	for i, s := range scans {
		for k, p := range s.pieces {
			if i > 0 && k == 0 {
				joined, d := continues(scans[i-1], s)
				if joined {
					last := &out[len(out)-1]
					last.pieces = append(last.pieces, p)
					continue
				}
				if d != nil {
					breaks = append(breaks, d)
				}
			}
			out = append(out, stretch{pieces: []piece{p}})
		}
	}
	return out, breaks
}

// continues reports whether b can be read on from a; d says why not, unless
// that is a fault inside a, which a has.
func continues(a, b scan) (ok bool, d *Damage) {
	if len(a.pieces) == 0 {
		return false, nil
	}
	p := a.pieces[len(a.pieces)-1]
	switch {
	case a.h.seg+1 != b.h.seg:
		return false, cutOff(a.segment, b.segment)
	case !p.tail:
		return false, nil
	case p.last+1 != b.h.first || p.crc != b.h.prevCRC && !b.salvaged:
		return false, &Damage{File: b.name, Seq: p.last + 1, What: fmt.Sprintf("does not continue from seq %d of the segment before it", p.last)}
	}
	return true, nil
}
