package snapshot

import (
	"errors"
	"fmt"
	"io"
	"sort"
)

// seekSpan is how many bytes are read line by line rather than halved again; a
// segment that is no longer is read from its front. A test makes it small.
var seekSpan int64 = 256 << 10

// seekRead is how many bytes are read to look at one line.
const seekRead = 8 << 10

// Seek gives the first entry that is not before what is looked for, one above
// the last if all are. before has to be true of all entries up to some seq, and
// of none from there on. It halves: it looks at a few lines of a few files,
// however many there are. What is no longer kept counts as before.
func (s *Store) Seek(before func(body []byte) bool) (uint64, error) {
	s.mu.Lock()
	v := s.view
	s.mu.Unlock()
	return v.seek(s.files, s.dir, before)
}

// Seek is as Store.Seek.
func (r *Reader) Seek(before func(body []byte) bool) (uint64, error) {
	return r.view.seek(r.files, r.dir, before)
}

func (v view) seek(files Files, dir string, before func(body []byte) bool) (uint64, error) {
	var failed error
	n := sort.Search(len(v.segs), func(i int) bool {
		is, err := v.begins(files, dir, i, before)
		failed = errors.Join(failed, err)
		return !is
	})
	switch {
	case failed != nil:
		return 0, failed
	case len(v.segs) == 0:
		return v.last + 1, nil
	case n == 0:
		return v.segs[0].h.first, nil
	}
	seq := v.after(n - 1)
	err := v.opened(files, dir, n-1, func(b *book) error {
		l, _, ok, err := b.find(func(l line) bool { return before(l.body) })
		if ok {
			seq = l.seq
		}
		return err
	})
	if errors.Is(err, ErrGone) {
		err = nil
	}
	return seq, err
}

// begins reports whether the first entry from segment i on is before what is
// looked for; a segment without entries is as the one behind it.
func (v view) begins(files Files, dir string, i int, before func(body []byte) bool) (is bool, err error) {
	for i < len(v.segs) && v.after(i) == v.segs[i].h.first {
		i++
	}
	if i == len(v.segs) {
		return false, nil
	}
	err = v.opened(files, dir, i, func(b *book) error {
		l, _, ok, err := b.next(b.lines(b.seg.body))
		is = ok && before(l.body)
		return err
	})
	if errors.Is(err, ErrGone) {
		return true, nil
	}
	return is, err
}

// book is an open segment in which lines are looked up.
type book struct {
	seg segment
	f   File
	end int64 // bytes that count
}

// lines are the few that begin at an offset.
func (b *book) lines(at int64) *lines { return &lines{f: b.f, at: at, end: b.end, few: seekRead} }

// walk reads from the batch on that has an entry. Where the file does not check
// on the way there, it reads from the front, so that what is wrong is named.
func (b *book) walk(from uint64) *walk {
	at, batch, ok := b.batchOf(from)
	if !ok {
		return startWalk(b.seg.name, b.seg.h, lines{f: b.f, at: b.seg.body, end: b.end})
	}
	w := startWalk(b.seg.name, header{first: batch, salt: b.seg.h.salt}, lines{f: b.f, at: at, end: b.end})
	w.part = true
	return w
}

// batchOf finds where the batch begins that has an entry.
func (b *book) batchOf(seq uint64) (at int64, batch uint64, ok bool) {
	if seq <= b.seg.h.first || b.end-b.seg.body <= seekSpan {
		return 0, 0, false
	}
	l, _, ok, err := b.find(func(l line) bool { return l.seq < seq })
	if err != nil || !ok || l.seq != seq {
		return 0, 0, false
	}
	first, at, ok, err := b.find(func(x line) bool { return x.seq < l.batch })
	return at, l.batch, err == nil && ok && first.seq == l.batch && first.batch == l.batch
}

// find halves the file until little is left, and reads that: it gives the first
// line that is not before, and where it begins; ok is false if all are before.
func (b *book) find(before func(line) bool) (l line, at int64, ok bool, err error) {
	low, high := b.seg.body, b.end // the line looked for begins at low or behind, and before high or at it
	for high-low > seekSpan {
		mid := low + (high-low)/2
		l, at, ok, err := b.behind(mid, high)
		switch {
		case err != nil:
			return l, 0, false, err
		case !ok:
			high = mid + 1
		case before(l):
			low = at
		default:
			high = at
		}
	}
	for in := (&lines{f: b.f, at: low, end: b.end}); ; {
		if l, at, ok, err = b.next(in); err != nil || !ok || !before(l) {
			return l, at, ok, err
		}
	}
}

// behind is the first line that begins behind one offset and before another.
func (b *book) behind(at, high int64) (l line, begin int64, ok bool, err error) {
	in := b.lines(at)
	if _, whole, err := in.next(); err != nil && err != io.EOF {
		return l, 0, false, fmt.Errorf("read %s: %w", b.seg.name, err)
	} else if !whole {
		return l, 0, false, nil
	}
	if in.at >= high {
		return l, 0, false, nil
	}
	return b.next(in)
}

// next reads a line; ok is false at the end, which the closing line is too.
func (b *book) next(in *lines) (l line, at int64, ok bool, err error) {
	at = in.at
	text, whole, err := in.next()
	switch {
	case err == io.EOF:
		return l, at, false, nil
	case err != nil:
		return l, at, false, fmt.Errorf("read %s: %w", b.seg.name, err)
	case whole && isEnd(text, b.seg.h.salt):
		return l, at, false, nil
	}
	if l, err = parseLine(text, b.seg.h.salt); err != nil {
		return l, at, false, &Damage{File: b.seg.name, Offset: at, What: err.Error()}
	}
	return l, at, true, nil
}
