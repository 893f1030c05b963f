package snapshot

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Action is one kind of change that a repair makes.
type Action uint8

const (
	Cut        Action = iota + 1 // keep the file up to From; the whole file is copied aside
	Keep                         // keep only [From, To) of the file, from entry Seq on; the whole file is copied aside
	Quarantine                   // move the file aside
	Begin                        // make an empty segment that begins at Seq
)

func (a Action) String() string {
	switch a {
	case Cut:
		return "cut"
	case Keep:
		return "keep part"
	case Quarantine:
		return "quarantine"
	case Begin:
		return "begin"
	}
	return fmt.Sprintf("action %d", uint8(a))
}

// Span is the entries First to Last; none when both are 0.
type Span struct{ First, Last uint64 }

// Step is one change.
type Step struct {
	Do       Action
	File     string
	From, To int64
	Seq      uint64
	History  Span   // entries that leave the readable journal by it, and not the state: an image covers them
	prev     uint32 // for Keep: checksum of the line before Seq, if that is kept
	head     header // for Keep: what the file's header says or should say
}

func (s Step) String() string {
	if s.History == (Span{}) {
		return s.change()
	}
	return fmt.Sprintf("%s; history that an image covers goes with it: seq %d to %d", s.change(), s.History.First, s.History.Last)
}

func (s Step) change() string {
	switch s.Do {
	case Cut:
		return fmt.Sprintf("cut %s at byte %d", s.File, s.From)
	case Keep:
		return fmt.Sprintf("keep only bytes %d to %d of %s, from seq %d on", s.From, s.To, s.File, s.Seq)
	case Begin:
		return fmt.Sprintf("begin a new journal at seq %d", s.Seq)
	}
	return fmt.Sprintf("%s %s", s.Do, s.File)
}

// RepairPlan is what Repair would do. No steps: nothing has to be done.
type RepairPlan struct {
	Dir      string
	Empty    bool   // starts with nothing, whatever could be kept
	Image    uint64 // seq of the image that is kept, 0 = none
	First    uint64 // entries that are kept; First is above Last if none
	Last     uint64
	History  Span // entries before First that go: an image covers them, Aside has them, the state keeps what they did
	Steps    []Step
	Aside    string // folder that gets the originals
	Problems []*Damage
	lost     []region
}

// Plan finds what a repair would do so that Open succeeds, and changes nothing.
// It keeps the newest good image and the longest journal that goes on from it.
// If there is neither an image nor the journal's beginning, the error is a
// *Damage that names the ways out: a backup, or PlanEmpty.
func Plan(dir string) (RepairPlan, error) { return plan(disk(), dir, false) }

// PlanEmpty is a plan that moves everything aside and starts with nothing.
func PlanEmpty(dir string) (RepairPlan, error) { return plan(disk(), dir, true) }

func plan(files Files, dir string, empty bool) (RepairPlan, error) {
	x, err := examine(files, dir)
	if err != nil {
		return RepairPlan{}, err
	}
	p := RepairPlan{Dir: dir, Empty: empty, First: 1, Aside: freeName(x.names), Problems: x.report().Problems}
	switch use, ok := x.usable(); {
	case empty:
		p.lost = x.rest(stretch{})
		p.quarantine(x.names, isJournal)
	case ok:
		p.keep(x, use)
	case x.base() > 0:
		p.restart(x)
	case len(x.scans) > 0:
		d := x.noStretch()
		d.hopeless = true
		return p, withHint(d, dir)
	default:
		p.badImages(x)
	}
	p.forget(x)
	return p, nil
}

// forget notes what of the history before First the steps take away.
func (p *RepairPlan) forget(x *exam) {
	for i := range p.Steps {
		s := &p.Steps[i]
		s.History = x.span(s.File, p.First)
		p.History = p.History.with(s.History)
	}
}

// span is what a segment holds, or held before it was damaged, before an entry.
func (x *exam) span(file string, before uint64) Span {
	i := slices.IndexFunc(x.scans, func(s scan) bool { return s.name == file })
	if i < 0 {
		return Span{}
	}
	seg, first, _ := parseSegmentName(file)
	last := first - 1
	for _, q := range x.scans[i].pieces {
		last = max(last, q.last)
	}
	if i+1 < len(x.scans) {
		if n, next, _ := parseSegmentName(x.scans[i+1].name); n == seg+1 {
			last = max(last, next-1)
		}
	}
	if last = min(last, before-1); last < first {
		return Span{}
	}
	return Span{first, last}
}

// with is the least span that has both.
func (s Span) with(o Span) Span {
	switch {
	case s == Span{}:
		return o
	case o == Span{}:
		return s
	}
	return Span{min(s.First, o.First), max(s.Last, o.Last)}
}

// keep plans around a stretch of the journal that goes on from the image.
func (p *RepairPlan) keep(x *exam, use stretch) {
	p.Image, p.First, p.Last = x.base(), use.first(), use.last()
	p.lost = x.rest(use)
	inUse := make(map[string]bool)
	for _, u := range use.pieces {
		inUse[u.file] = true
	}
	p.quarantine(x.names, func(name string) bool {
		seg, torn := strings.CutSuffix(name, tornEnd)
		_, _, ok := parseSegmentName(seg)
		return ok && !inUse[seg] && seg != x.stub && (!torn || slices.Contains(x.names, seg))
	})
	p.badImages(x)
	if z := use.pieces[len(use.pieces)-1]; !z.tail && z.head {
		p.Steps = append(p.Steps, Step{Do: Cut, File: z.file, From: z.to})
	}
	for i, u := range use.pieces {
		if !u.head {
			s := Step{Do: Keep, File: u.file, From: u.from, To: u.to, Seq: u.first, head: x.header(u.file)}
			if i > 0 {
				s.prev = use.pieces[i-1].crc
			}
			p.Steps = append(p.Steps, s)
		}
	}
}

func (x *exam) header(file string) header {
	for _, s := range x.scans {
		if s.name == file {
			return s.h
		}
	}
	return header{}
}

// restart plans for an image that no journal goes on from.
func (p *RepairPlan) restart(x *exam) {
	p.Image, p.First, p.Last = x.base(), x.base()+1, x.base()
	p.lost = x.rest(stretch{})
	p.quarantine(x.names, func(name string) bool {
		_, _, ok := parseSegmentName(strings.TrimSuffix(name, tornEnd)) // numbers begin anew
		return ok
	})
	p.badImages(x)
	p.Steps = append(p.Steps, Step{Do: Begin, Seq: p.First})
}

// quarantine plans newest first, so that a repair cut short leaves no shorter
// journal that would pass for whole.
func (p *RepairPlan) quarantine(names []string, pick func(string) bool) {
	for _, name := range slices.Backward(names) {
		if pick(name) {
			p.Steps = append(p.Steps, Step{Do: Quarantine, File: name})
		}
	}
}

func (p *RepairPlan) badImages(x *exam) {
	p.quarantine(x.names, func(name string) bool { return x.bad[name] != nil })
}

// region is a part of a segment that the plan does not keep.
type region struct {
	file     string
	salt     uint32
	from, to int64
}

// rest lists what use does not keep of the segments.
func (x *exam) rest(use stretch) []region {
	var out []region
	for _, s := range x.scans {
		from := s.body
		for _, q := range use.pieces {
			if q.file == s.name {
				out = append(out, region{s.name, s.h.salt, from, q.from})
				from = q.to
			}
		}
		out = append(out, region{s.name, s.h.salt, from, s.acknowledged()})
	}
	return out
}

// acknowledged is where the part of a segment ends that callers were promised.
func (s scan) acknowledged() int64 {
	if s.torn != nil {
		return s.torn.end
	}
	return s.size
}

// EachLost gives every acknowledged entry that can still be read and that the
// state loses by this plan, in the order of the files; before Repair. An entry
// that stands twice is given twice. History is not among them, nor is a torn
// tail: the next start cuts that, whatever is repaired.
func (p RepairPlan) EachLost(fn func(Entry) error) error { return p.eachLost(disk(), fn) }

func (p RepairPlan) eachLost(files Files, fn func(Entry) error) error {
	for _, r := range p.lost {
		if r.from >= r.to {
			continue
		}
		if err := r.each(files, p.Dir, p.Last, fn); err != nil {
			return err
		}
	}
	return nil
}

// each gives the entries over seq in the lines that are good in themselves.
func (r region) each(files Files, dir string, seq uint64, fn func(Entry) error) error {
	f, err := files.Open(filepath.Join(dir, r.file))
	if err != nil {
		return fmt.Errorf("read journal: %w", err)
	}
	defer f.Close()
	in := lines{f: f, at: r.from, end: r.to}
	for {
		b, _, err := in.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", r.file, err)
		}
		at, l := goodLine(b, r.salt)
		if at < 0 || l.seq <= seq {
			continue
		}
		if err := fn(Entry{Seq: l.seq, Batch: l.batch, Body: l.body}); err != nil {
			return err
		}
	}
}

// Repair does what a plan says. It locks the folder, refuses a plan that is no
// longer what Plan would say, keeps every original in the plan's Aside folder,
// and makes sure that Open will succeed. Cut short, it can be planned again.
func Repair(dir string, p RepairPlan) error { return repair(disk(), dir, p) }

func repair(files Files, dir string, p RepairPlan) (err error) {
	lock, err := files.Lock(filepath.Join(dir, lockFile))
	if err != nil {
		return fmt.Errorf("data folder %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	now, err := plan(files, dir, p.Empty)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(now.Steps, p.Steps) {
		return fmt.Errorf("data folder %s has changed since the repair was planned; plan it again", dir)
	}
	if len(p.Steps) == 0 {
		return nil
	}
	aside := filepath.Join(dir, now.Aside)
	if err := files.MakeDir(aside); err != nil {
		return fmt.Errorf("repair: %w", err)
	}
	for _, s := range p.Steps {
		if err := s.run(files, dir, aside); err != nil {
			_ = files.Remove(aside) // only if nothing came into it
			return fmt.Errorf("repair: %s: %w", s, err)
		}
	}
	if err := errors.Join(files.SyncDir(aside), files.SyncDir(dir)); err != nil {
		return fmt.Errorf("repair: %w", err)
	}
	_, err = survey(files, dir, coveredBudget)
	return err
}

func (s Step) run(files Files, dir, aside string) error {
	name, kept := filepath.Join(dir, s.File), filepath.Join(aside, s.File)
	switch s.Do {
	case Quarantine:
		return files.Rename(name, kept)
	case Cut:
		if err := files.copyFile(name, kept); err != nil {
			return err
		}
		return files.truncate(name, s.From)
	case Keep:
		if err := files.copyFile(name, kept); err != nil {
			return err
		}
		return s.keep(files, dir, name)
	case Begin:
		h := header{seg: 1, first: s.Seq}
		return files.writeAside(filepath.Join(dir, segmentName(h.seg, h.first)), h.encode())
	}
	return fmt.Errorf("unknown %s", s.Do)
}

// keep writes the part under the name it has now, with the salt it had, and then
// removes the original, of which a copy is aside.
func (s Step) keep(files Files, dir, name string) error {
	f, err := files.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := readPart(f, s.From, s.To)
	if err != nil {
		return err
	}
	h := s.head
	h.first, h.prevCRC = s.Seq, s.prev
	part := filepath.Join(dir, segmentName(h.seg, h.first))
	if err := files.writeAside(part, append(h.encode(), data...)); err != nil || part == name {
		return err
	}
	return files.Remove(name)
}

// copyFile makes a durable copy.
func (f Files) copyFile(from, to string) error {
	r, err := f.Open(from)
	if err != nil {
		return err
	}
	defer r.Close()
	size, err := r.Size()
	if err != nil {
		return err
	}
	data, err := readPart(r, 0, size)
	if err != nil {
		return err
	}
	return f.writeAside(to, data)
}

// truncate cuts a file durably.
func (f Files) truncate(name string, size int64) error {
	h, err := f.Edit(name)
	if err != nil {
		return err
	}
	if err = h.Truncate(size); err == nil {
		err = h.Sync()
	}
	return errors.Join(err, h.Close())
}

const asideEnd = ".broken"

// freeName is a folder name that is not taken.
func freeName(names []string) string {
	for i := 1; ; i++ {
		if name := fmt.Sprintf("%04d%s", i, asideEnd); !slices.Contains(names, name) {
			return name
		}
	}
}

// Repaired is when a repair last set something aside in the folder; zero: never.
// The journal may have forgotten numbers since then that others still know, so
// who counts on from what it says has to begin above them.
func Repaired(dir string) (last time.Time, err error) {
	all, err := os.ReadDir(dir)
	if err != nil {
		return last, err
	}
	for _, e := range all {
		if !e.IsDir() || !strings.HasSuffix(e.Name(), asideEnd) {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return last, err
		}
		last = later(last, info.ModTime())
	}
	return last, nil
}
