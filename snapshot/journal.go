package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// put writes b behind the durable end and syncs it. A full disk gets a second
// try out of the reserve, from the same durable end.
func (s *Store) put(b []byte) error {
	err := writeWhole(s.active, b, s.end)
	if noRoom(err) {
		err = s.putFromReserve(b, err)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", s.activeName(), err)
	}
	if err := s.active.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", s.activeName(), err)
	}
	s.end += int64(len(b))
	return nil
}

func (s *Store) putFromReserve(b []byte, full error) error {
	if err := s.active.Truncate(s.end); err != nil {
		return fmt.Errorf("cut back after %w: %w", full, err)
	}
	if err := s.spare.release(); err != nil {
		return errors.Join(full, err)
	}
	return writeWhole(s.active, b, s.end)
}

// writeWhole leaves naming the file to the caller: a file keeps the temporary
// name it was opened under.
func writeWhole(f File, b []byte, at int64) error {
	n, err := f.WriteAt(b, at)
	if err != nil {
		return withoutName(err)
	}
	if n < len(b) {
		return fmt.Errorf("short write: %d of %d bytes", n, len(b))
	}
	return nil
}

func withoutName(err error) error {
	var named *fs.PathError
	if errors.As(err, &named) {
		return named.Err
	}
	return err
}

func (s *Store) activeName() string { return segmentName(s.head.seg, s.head.first) }

// rotate closes the active segment and begins the next. Time only goes forward
// in the headers, whatever the clock does.
func (s *Store) rotate(now time.Time) error {
	if err := s.Look(); err != nil { // the next would be another's
		return err
	}
	if err := s.put(encodeEnd(s.view.last, s.count, s.head.salt)); err != nil {
		return err
	}
	err := s.active.Close()
	s.active = nil
	if err != nil {
		return fmt.Errorf("close %s: %w", s.activeName(), err)
	}
	return s.begin(newHeader(s.head.seg+1, s.view.last+1, s.view.crc, later(now, s.head.opened)))
}

// begin makes a segment behind s.view and appends to it from now on.
func (s *Store) begin(h header) error {
	head := h.encode()
	name := segmentName(h.seg, h.first)
	f, full, err := s.create(name, head)
	if full {
		if no := s.spare.release(); no != nil {
			err = errors.Join(err, no)
		} else {
			f, _, err = s.create(name, head)
		}
	}
	if err != nil {
		return fmt.Errorf("new segment %s: %w", name, err)
	}
	y, m, d := h.opened.Date()
	s.tip = tip{active: f, head: h, end: int64(len(head)), dayEnd: time.Date(y, m, d+1, 0, 0, 0, 0, time.UTC)}
	s.mu.Lock()
	s.view.segs = append(slices.Clone(s.view.segs), segment{name: name, h: h, body: s.end})
	s.view.end = s.end
	s.newest = f
	s.mu.Unlock()
	return nil
}

// create makes the file appear whole and stay: aside, sync, rename, sync of the
// folder. full: there was no room, and nothing is left of the try. After a failed
// sync nothing is known, so that is never taken for a full disk.
func (s *Store) create(name string, head []byte) (f File, full bool, err error) {
	temp := s.path(name + tempEnd)
	f, err = s.files.Create(temp)
	if err != nil {
		return nil, noRoom(err), err
	}
	if err = writeWhole(f, head, 0); err != nil {
		return nil, noRoom(err), errors.Join(err, f.Close(), s.files.Remove(temp))
	}
	if err = f.Sync(); err == nil {
		err = s.files.Rename(temp, s.path(name))
	}
	if err == nil {
		err = s.files.SyncDir(s.dir)
	}
	if err != nil {
		return nil, false, errors.Join(err, f.Close())
	}
	return f, false, nil
}

// Prune removes closed segments that ended more than keep before now and that
// no kept image needs: replay from the older of the two stays possible. With
// fewer than two images, or a clock behind the journal's, it removes nothing.
func (s *Store) Prune(now time.Time, keep time.Duration) (removed int, err error) {
	if err := s.Look(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	n := prunable(s.view.segs, s.images, now, keep)
	gone := s.view.segs[:n]
	s.view.segs = s.view.segs[n:]
	s.mu.Unlock()
	for i, g := range gone { // one by one and oldest first: a crash leaves no gap
		if err = s.removeSegment(g.name); err == nil {
			err = s.files.SyncDir(s.dir)
		}
		if err != nil {
			return i, fmt.Errorf("prune %s: %w", g.name, err)
		}
	}
	return n, nil
}

// prunable counts the segments at the front that may go.
func prunable(segs []segment, g generations, now time.Time, keep time.Duration) int {
	n := 0
	if g.prev == nil || g.cur == nil || now.Before(segs[len(segs)-1].h.opened) {
		return 0
	}
	for ; n+1 < len(segs); n++ {
		next := segs[n+1].h
		if now.Sub(next.opened) <= keep || next.first-1 > g.prev.seq {
			break
		}
	}
	return n
}

// removeSegment also removes what recovery once cut from it, or from one before.
func (s *Store) removeSegment(name string) error {
	names, err := s.files.List(s.dir)
	if err != nil {
		return err
	}
	for _, n := range names {
		if strings.HasSuffix(n, tornEnd) && n <= name+tornEnd {
			err = errors.Join(err, s.files.Remove(s.path(n)))
		}
	}
	return errors.Join(err, s.files.Remove(s.path(name)))
}
