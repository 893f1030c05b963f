package snapshot

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"sort"
)

// Entry is one durable entry. Body is valid only during the call it is given to.
type Entry struct {
	Seq, Batch uint64
	Body       []byte
}

// segment is one file of the journal whose header checks.
type segment struct {
	name string
	h    header
	body int64 // offset behind the header
}

// view is a stretch of the journal that can be read: whole segments, each
// following the one before. It is copied freely; segs is never written in place.
type view struct {
	segs []segment
	end  int64  // bytes of the last segment that count
	last uint64 // newest entry
	crc  uint32 // of its line
}

// Read gives every entry with a seq of at least from, in order, up to the last
// one durable when it was called; from 0 begins at the oldest kept. Each is
// checked. An error of fn ends it and is returned as it is. Any goroutine may
// call it; appending goes on meanwhile.
func (s *Store) Read(from uint64, fn func(Entry) error) error {
	s.mu.Lock()
	v := s.view
	s.mu.Unlock()
	return v.read(s.files, s.dir, from, fn)
}

func (v view) read(files Files, dir string, from uint64, fn func(Entry) error) error {
	if len(v.segs) == 0 || from > v.last {
		return nil
	}
	if first := v.segs[0].h.first; from == 0 {
		from = first
	} else if from < first {
		return &Gone{First: first}
	}
	i := sort.Search(len(v.segs), func(i int) bool { return v.segs[i].h.first > from }) - 1
	for ; i < len(v.segs); i++ {
		err := v.readFrom(files, dir, i, from, func(l line) error {
			if l.seq < from {
				return nil
			}
			return fn(Entry{Seq: l.seq, Batch: l.batch, Body: l.body})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readSegment reads segment i whole and checks that the next one follows it.
func (v view) readSegment(files Files, dir string, i int, fn func(line) error) error {
	return v.readFrom(files, dir, i, 0, fn)
}

// readFrom is readSegment from the batch on that has an entry.
func (v view) readFrom(files Files, dir string, i int, from uint64, fn func(line) error) error {
	return v.opened(files, dir, i, func(b *book) error {
		w := b.walk(from)
		for {
			l, err := w.line()
			if err == io.EOF {
				return v.joins(w, i)
			}
			if err == nil {
				err = fn(l)
			}
			if err != nil {
				return err
			}
		}
	})
}

// opened opens segment i.
func (v view) opened(files Files, dir string, i int, fn func(*book) error) error {
	seg := v.segs[i]
	f, err := files.Open(filepath.Join(dir, seg.name))
	if errors.Is(err, fs.ErrNotExist) { // pruned since the view was taken
		return &Gone{First: v.after(i)}
	}
	if err != nil {
		return fmt.Errorf("read journal: %w", err)
	}
	defer f.Close()
	end := v.end
	if i+1 < len(v.segs) {
		if end, err = f.Size(); err != nil {
			return fmt.Errorf("read journal: %w", err)
		}
	}
	return fn(&book{seg: seg, f: f, end: end})
}

// joins checks that segment i, read to its end, ends where it should.
func (v view) joins(w *walk, i int) error {
	last, crc := v.last, v.crc
	if i+1 < len(v.segs) {
		last, crc = v.after(i)-1, v.segs[i+1].h.prevCRC
	}
	if w.last != last || w.crc != crc {
		return w.fault(w.good, fmt.Sprintf("ends at seq %d, but what follows continues from %d", w.last, last))
	}
	return nil
}

// after is the first seq behind segment i.
func (v view) after(i int) uint64 {
	if i+1 < len(v.segs) {
		return v.segs[i+1].h.first
	}
	return v.last + 1
}
