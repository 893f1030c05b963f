package snapshot

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Report is what Check found in a data folder.
type Report struct {
	Dir      string
	Segments []SegmentReport
	Images   []ImageReport
	First    uint64 // of the entries that can be read on end; above Last if none
	Last     uint64
	Entries  uint64 // good ones, in all segments
	Bytes    int64
	Problems []*Damage
	Torn     *TornReport // the next start cuts it; no problem
}

// SegmentReport is one file of the journal. First is above Last if it is empty.
type SegmentReport struct {
	File        string
	First, Last uint64
	Entries     uint64
	Bytes       int64
	Closed      bool // it has its closing line
}

// ImageReport is one generation.
type ImageReport struct {
	File  string
	Seq   uint64
	Lines uint64
}

// TornReport is a batch that was being written when the controller died.
type TornReport struct {
	File   string
	Offset int64
	Bytes  int
}

// OK reports that everything checks.
func (r Report) OK() bool { return len(r.Problems) == 0 }

// Check reads every byte of a data folder, or of a backup, and holds it against
// every checksum and sequence there is: all segments and both images. It takes
// no lock and changes nothing. The error is for what could not be read at all.
func Check(dir string) (Report, error) {
	x, err := examine(disk(), dir)
	if err != nil {
		return Report{}, err
	}
	return x.report(), nil
}

// exam is everything there is to know about a folder.
type exam struct {
	dir    string
	names  []string
	stub   string
	scans  []scan
	parts  []stretch
	breaks []*Damage // where one segment does not continue the one before
	images [2]*envelope
	bad    map[string]*Damage // images that do not check
}

func examine(files Files, dir string) (*exam, error) {
	x := &exam{dir: dir, bad: make(map[string]*Damage)}
	var err error
	if x.names, err = files.List(dir); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	f := &found{}
	cs, err := f.readHeaders(files, dir, x.names)
	if err != nil {
		return nil, err
	}
	x.stub = f.stub
	for i, c := range cs {
		s, err := scanSegment(files, dir, c, i == len(cs)-1 && f.stub == "")
		if err != nil {
			return nil, err
		}
		x.scans = append(x.scans, s)
	}
	x.parts, x.breaks = stretches(x.scans)
	return x, x.readImages(files)
}

func (x *exam) readImages(files Files) error {
	for i, name := range []string{imageFile, prevFile} {
		if !slices.Contains(x.names, name) {
			continue
		}
		e, err := wholeImage(files, x.dir, name)
		if err == nil {
			err = e.withFile(files, x.dir, func(f File) error {
				return e.eachLine(f, func([]byte) error { return nil })
			})
		}
		var d *Damage
		switch {
		case errors.As(err, &d):
			x.bad[name] = d
		case err != nil:
			return err
		default:
			e.content = nil
			x.images[i] = e
		}
	}
	return nil
}

// base is the seq of the newest good image; 0 = none.
func (x *exam) base() uint64 {
	for _, e := range x.images {
		if e != nil {
			return e.seq
		}
	}
	return 0
}

// usable is the stretch that goes on from the newest good image; of several, the
// one that goes furthest.
func (x *exam) usable() (stretch, bool) {
	base := x.base()
	var best stretch
	for _, s := range x.parts {
		if s.first() <= base+1 && s.last() >= base && (best.pieces == nil || s.last() > best.last()) {
			best = s
		}
	}
	return best, best.pieces != nil
}

func (x *exam) report() Report {
	r := Report{Dir: x.dir, First: 1}
	for _, s := range x.scans {
		r.Problems = append(r.Problems, s.faults...)
		sr := s.report()
		r.Segments = append(r.Segments, sr)
		r.Entries += sr.Entries
		r.Bytes += sr.Bytes
		if s.torn != nil {
			r.Torn = &TornReport{File: s.torn.file, Offset: s.torn.end, Bytes: len(s.torn.data)}
		}
	}
	r.Problems = append(r.Problems, x.breaks...)
	for i, name := range []string{imageFile, prevFile} {
		if e := x.images[i]; e != nil {
			r.Images = append(r.Images, ImageReport{File: name, Seq: e.seq, Lines: e.lines})
		} else if d := x.bad[name]; d != nil {
			r.Problems = append(r.Problems, d)
		}
	}
	if use, ok := x.usable(); ok {
		r.First, r.Last = use.first(), use.last()
	} else if len(x.scans) > 0 || x.base() > 0 {
		r.Problems = append(r.Problems, x.noStretch())
	}
	return r
}

// noStretch says that no journal goes on from the newest image.
func (x *exam) noStretch() *Damage {
	d := &Damage{File: imageFile, Seq: x.base() + 1, What: fmt.Sprintf("no good journal goes on behind seq %d", x.base())}
	if len(x.scans) > 0 {
		d.File = x.scans[len(x.scans)-1].name
	}
	return d
}

func (s scan) report() SegmentReport {
	r := SegmentReport{File: s.name, First: 1, Bytes: s.size, Closed: s.closed}
	for i, p := range s.pieces {
		if i == 0 {
			r.First = p.first
		}
		r.Last = p.last
		r.Entries += p.lines
	}
	return r
}

// isJournal reports files that repair may have to set aside.
func isJournal(name string) bool {
	_, _, ok := parseSegmentName(name)
	return ok || isTaskFile(name) || strings.HasSuffix(name, tornEnd) || name == imageFile || name == prevFile
}
