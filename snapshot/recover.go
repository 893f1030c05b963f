package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"
)

// tornEnd marks what recovery cut from a segment. A new one makes room for
// itself: the newest maxTorn are kept, 2 MiB each at most, whatever crashes how
// often; pruning a segment takes its own earlier.
const (
	tornEnd = ".torn"
	maxTorn = 16
)

// found is what a look at a data folder shows, and what a start has to put in
// order. Looking changes nothing.
type found struct {
	view   view
	images generations
	torn   *torn
	stub   string   // a last segment whose header was never whole
	junk   []string // files that nothing refers to
	strays int      // oldest segments, beyond the budget, that a gap or damage cuts off
	empty  *header  // the last segment has no entries: a new one takes its place
}

// torn is a tail that a crash left.
type torn struct {
	file string
	end  int64  // where the last whole batch ends
	data []byte // what is behind it, at most MaxBatch
}

// coveredBudget is how many bytes of segments that the newest image covers a
// start reads, newest first. The one that passes it is read whole, so that a
// full segment is never out of reach; what is older is left to Check.
const coveredBudget = 64 << 20

// survey reads a data folder as a start does: all headers, every entry the
// newest image does not cover, and budget bytes of those it does. A *Damage
// means: refuse.
func survey(files Files, dir string, budget int64) (*found, error) {
	names, err := files.List(dir)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	f := &found{}
	segs, err := f.readHeaders(files, dir, names)
	if err != nil {
		return nil, err
	}
	if f.images, err = readGenerations(files, dir, names); err != nil {
		return nil, err
	}
	f.junk = junk(names, f.images)
	if err := f.check(files, dir, segs); err != nil {
		return nil, withHint(err, dir)
	}
	if err := f.checkCovered(files, dir, segs, budget); err != nil {
		return nil, withHint(err, dir)
	}
	if f.torn != nil || f.stub != "" {
		f.junk = append(f.junk, oldTorn(names)...)
	}
	return f, nil
}

// oldTorn are the .torn files that go when another comes.
func oldTorn(names []string) (old []string) {
	for _, name := range names {
		if strings.HasSuffix(name, tornEnd) {
			old = append(old, name)
		}
	}
	return old[:max(0, len(old)-maxTorn+1)]
}

func withHint(err error, dir string) error {
	var d *Damage
	if errors.As(err, &d) && d.Hint == "" {
		d.Hint = "apollo11 repair --data " + typed(dir)
		if d.hopeless {
			d.Hint += " --start-empty; or restore a backup of the folder"
		}
	}
	return err
}

// typed gives a name as a shell takes it.
func typed(name string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:@,", r)
	}
	if name != "" && strings.TrimLeftFunc(name, plain) == "" {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}

// candidate is a file named like a segment; bad is set if its header is.
type candidate struct {
	segment
	size int64
	bad  *Damage
}

func (f *found) readHeaders(files Files, dir string, names []string) ([]candidate, error) {
	var cs []candidate
	for _, name := range names {
		if _, _, ok := parseSegmentName(name); !ok {
			continue
		}
		c, stub, err := readHeader(files, dir, name)
		if errors.Is(err, fs.ErrNotExist) { // pruned beside a reader
			continue
		}
		if err != nil {
			return nil, err
		}
		c.checkName()
		f.stub = ""
		if stub {
			f.stub = name
		}
		cs = append(cs, c)
	}
	if f.stub != "" {
		cs = cs[:len(cs)-1]
	}
	return cs, nil
}

// readHeader reads the first line of a segment. stub: it is not whole, and
// nothing was ever written behind it.
func readHeader(files Files, dir, name string) (c candidate, stub bool, err error) {
	h, err := files.Open(filepath.Join(dir, name))
	if err != nil {
		return c, false, fmt.Errorf("read journal: %w", err)
	}
	defer h.Close()
	size, err := h.Size()
	if err != nil {
		return c, false, fmt.Errorf("read journal: %w", err)
	}
	b, err := readPart(h, 0, min(size, maxHeader))
	if err != nil {
		return c, false, fmt.Errorf("read %s: %w", name, err)
	}
	c.name, c.size = name, size
	n := bytes.IndexByte(b, '\n')
	if n < 0 {
		c.bad = &Damage{File: name, What: "header line has no end"}
		return c, size < maxHeader && maybeHeader(b), nil
	}
	c.body = int64(n + 1)
	c.h, err = parseHeader(b[:n])
	switch {
	case errors.Is(err, ErrVersion):
		return c, false, fmt.Errorf("%s: %w", name, err)
	case err != nil:
		c.bad = &Damage{File: name, What: "header: " + err.Error()}
	}
	return c, false, nil
}

// maybeHeader reports whether b, which has no newline, can be what was left of a
// header: its beginning, or sectors that were never written.
func maybeHeader(b []byte) bool {
	const begin = "#a11 v="
	b = bytes.TrimRight(b, "\x00")
	n := min(len(b), len(begin))
	return string(b[:n]) == begin[:n]
}

// checkName holds a good header against the name of the file.
func (c *candidate) checkName() {
	if seg, first, _ := parseSegmentName(c.name); c.bad == nil && (seg != c.h.seg || first != c.h.first) {
		c.bad = &Damage{File: c.name, What: "header is not that of a file of this name"}
	}
}

// follows reports whether b can be the segment after a, by their headers.
func follows(a, b candidate) bool {
	return a.bad == nil && b.bad == nil && a.h.seg+1 == b.h.seg && a.h.first <= b.h.first
}

// check finds the stretch of segments up to the newest, and reads those a start
// needs: from the one behind the newest image on.
func (f *found) check(files Files, dir string, cs []candidate) error {
	base, baseFile := f.images.base()
	if len(cs) == 0 {
		return f.ahead(base, baseFile)
	}
	n := len(cs) - 1
	if cs[n].bad != nil {
		return cs[n].bad
	}
	start := f.take(cs)
	if d := missing(cs[start].segment, base); d.Seq < cs[start].h.first {
		if start > 0 && cs[start-1].bad != nil {
			return cs[start-1].bad
		}
		return d
	}
	if err := f.checkTail(files, dir); err != nil {
		return err
	}
	if err := f.ahead(base, baseFile); err != nil {
		return err
	}
	return f.checkFrom(files, dir, base+1)
}

// take makes the stretch up to the newest candidate the view, and says where it starts.
func (f *found) take(cs []candidate) int {
	start := len(cs) - 1
	for start > 0 && follows(cs[start-1], cs[start]) {
		start--
	}
	for _, c := range cs[start:] {
		f.view.segs = append(f.view.segs, c.segment)
	}
	f.strays = start
	return start
}

// missing names what stands between an image at seq base, or the beginning, and
// the oldest segment there is.
func missing(oldest segment, base uint64) *Damage {
	return &Damage{
		File: oldest.name, Seq: base + 1,
		What:     fmt.Sprintf("entries %d to %d are missing before it, and no good image covers them", base+1, oldest.h.first-1),
		hopeless: true,
	}
}

func (f *found) ahead(base uint64, file string) error {
	if base <= f.view.last {
		return nil
	}
	return &Damage{
		File: file, Seq: f.view.last + 1,
		What: fmt.Sprintf("image at seq %d is ahead of the journal, which ends at %d", base, f.view.last),
	}
}

// checkTail reads the last segment and finds where its last whole batch ends.
func (f *found) checkTail(files Files, dir string) error {
	seg := f.view.segs[len(f.view.segs)-1]
	return seg.walked(files, dir, func(w *walk) error {
		data, err := w.tail()
		f.view.end, f.view.last, f.view.crc = w.good, w.last, w.crc
		switch {
		case err != nil:
			return err
		case data != nil && f.stub != "":
			return w.fault(w.good, "does not check, and a later segment follows")
		case data != nil:
			f.torn = &torn{file: seg.name, end: w.good, data: data}
		case w.entries == 0:
			f.empty = &seg.h
		}
		return nil
	})
}

// walked opens the segment for one walk from its header to its end.
func (seg segment) walked(files Files, dir string, fn func(*walk) error) error {
	h, err := files.Open(filepath.Join(dir, seg.name))
	if err != nil {
		return fmt.Errorf("read journal: %w", err)
	}
	defer h.Close()
	size, err := h.Size()
	if err != nil {
		return fmt.Errorf("read journal: %w", err)
	}
	return fn(startWalk(seg.name, seg.h, lines{f: h, at: seg.body, end: size}))
}

// tail reads to the end and returns what is behind the last whole batch, nil if
// nothing; or a *Damage if a crash cannot have left that.
func (w *walk) tail() ([]byte, error) {
	err := w.rest()
	var d *Damage
	if err == nil || !errors.As(err, &d) {
		return nil, err
	}
	if w.closed || w.in.end-w.good > MaxBatch {
		return nil, d
	}
	data, err := readPart(w.in.f, w.good, w.in.end)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", w.name, err)
	}
	if why := judge(data, w.salt, w.last); why != "" {
		d.What += ", and " + why
		return nil, d
	}
	return data, nil
}

// checkFrom reads the closed segments that have entries from seq on.
func (f *found) checkFrom(files Files, dir string, seq uint64) error {
	for i := range f.view.segs[1:] {
		if f.view.after(i) <= seq {
			continue
		}
		if err := f.view.readSegment(files, dir, i, func(line) error { return nil }); err != nil {
			return err
		}
	}
	return nil
}

// checkCovered reads the closed segments without an entry that a start needs,
// newest first, and sees that nothing older is cut off from them.
func (f *found) checkCovered(files Files, dir string, cs []candidate, budget int64) error {
	base, baseFile := f.images.base()
	for i := len(f.view.segs) - 2; i >= 0 && budget > 0; i-- {
		if f.view.after(i) > base+1 {
			continue
		}
		if err := f.view.readSegment(files, dir, i, func(line) error { return nil }); err != nil {
			return history(err, base, baseFile)
		}
		budget -= cs[f.strays+i].size
	}
	if budget <= 0 || f.strays == 0 {
		return nil
	}
	if d := cs[f.strays-1].bad; d != nil {
		return history(d, base, baseFile)
	}
	return history(cutOff(cs[f.strays-1].segment, cs[f.strays].segment), base, baseFile)
}

// history says of damage that the state does not need what it spoils.
func history(err error, base uint64, file string) error {
	var d *Damage
	if errors.As(err, &d) && base > 0 {
		d.What += fmt.Sprintf("; only history, %s at seq %d covers it", file, base)
	}
	return err
}

// cutOff says that b does not stand where the segment after a should.
func cutOff(a, b segment) *Damage {
	d := &Damage{File: b.name, Seq: b.h.first, What: fmt.Sprintf("begins at seq %d, the segment before it at %d", b.h.first, a.h.first)}
	if a.h.seg+1 != b.h.seg {
		d.What = fmt.Sprintf("segment %d stands where %d should", b.h.seg, a.h.seg+1)
	}
	return d
}

// junk lists files left over by a start, an image or a repair that was cut
// short. Task files are judged only while the newest image's envelope is good.
func junk(names []string, g generations) []string {
	var out []string
	for _, name := range names {
		orphan := isTaskFile(name) && g.cur != nil && !g.refer(name)
		if strings.HasSuffix(name, tempEnd) || orphan {
			out = append(out, name)
		}
	}
	return out
}

// nextHeader is that of the segment a start begins.
func (f *found) nextHeader(now time.Time) header {
	seg := uint64(1)
	if n := len(f.view.segs); n > 0 {
		seg = f.view.segs[n-1].h.seg + 1
		now = later(now, f.view.segs[n-1].h.opened)
	}
	if f.empty != nil {
		seg, now = f.empty.seg, later(now, f.empty.opened)
	}
	return newHeader(seg, f.view.last+1, f.view.crc, now)
}

// tidy puts in order what survey found. Done half, the next start does it again.
func (s *Store) tidy(f *found) error {
	for _, name := range f.junk {
		s.log.Info("left-over file removed", "file", name)
		if err := s.files.Remove(s.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if f.strays > 0 {
		s.log.Warn("older segments cannot be read on from, run verify", "segments", f.strays, "readable_from", f.view.segs[0].h.first)
	}
	if f.stub != "" {
		s.log.Warn("segment without a whole header set aside", "file", f.stub, "kept", f.stub+tornEnd)
		if err := s.files.Rename(s.path(f.stub), s.path(f.stub+tornEnd)); err != nil {
			return err
		}
	}
	if f.torn != nil {
		if err := s.cut(f.torn); err != nil {
			return err
		}
	}
	if f.empty != nil {
		f.view.segs = f.view.segs[:len(f.view.segs)-1]
	}
	return nil
}

// cut keeps the torn bytes in a file of their own, then takes them off.
func (s *Store) cut(t *torn) error {
	s.log.Warn("torn tail cut", "file", t.file, "at", t.end, "bytes", len(t.data),
		"lines", bytes.Count(t.data, []byte("\n")), "kept", t.file+tornEnd)
	if err := s.files.writeAside(s.path(t.file+tornEnd), t.data); err != nil {
		return err
	}
	return s.files.truncate(s.path(t.file), t.end)
}
