package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// journalDisk is a disk with a journal of many segments and batches up to seq n,
// stopped without a closing line.
func journalDisk(t testing.TB, r *rand.Rand, image bool) (d *memDisk, n uint64) {
	t.Helper()
	d = newDisk()
	s, err := openDisk(d, 1500)
	if err != nil {
		t.Fatal(err)
	}
	for range 12 {
		add(t, s, 1+r.IntN(1+r.IntN(12)))
	}
	if image {
		save(t, s, s.Last())
		for range 6 {
			add(t, s, 1+r.IntN(8))
		}
	}
	return d.clone(), s.Last()
}

// segmentsOf lists the journal's files on a disk, oldest first.
func segmentsOf(d *memDisk) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(d.names)) {
		if strings.HasSuffix(name, ".log") {
			out = append(out, name)
		}
	}
	return out
}

// linesOf splits a file and says where its last line and its last batch begin.
func linesOf(b []byte) (lines [][]byte, lastLine, lastBatch int) {
	lines = bytes.SplitAfter(b, []byte("\n"))
	lines = lines[:len(lines)-1]
	at, batch := 0, ""
	for _, l := range lines {
		if f := bytes.Fields(l); string(f[2]) != batch && l[0] != '#' {
			batch, lastBatch = string(f[2]), at
		}
		lastLine = at
		at += len(l)
	}
	return lines, lastLine, lastBatch
}

// A damage changes a file somewhere before limit, or says it cannot.
type damage struct {
	name   string
	spoils int // at most so many entries become unreadable
	do     func(r *rand.Rand, b []byte, newest bool) []byte
}

const flips = 2 // a newline joins two lines

var damages = []damage{
	{"flip", flips, func(r *rand.Rand, b []byte, newest bool) []byte {
		_, _, limit := linesOf(b)
		if !newest {
			limit = len(b)
		}
		if limit > 0 {
			b[r.IntN(limit)] ^= 1 << r.IntN(8)
		}
		return b
	}},
	{"zeroed sector", 9, func(r *rand.Rand, b []byte, newest bool) []byte {
		_, limit, batch := linesOf(b)
		if !newest {
			limit, batch = len(b), len(b)
		}
		// It begins before the last batch and leaves the last line.
		if n := min(limit/sector, (batch+sector-1)/sector); n > 0 {
			at := r.IntN(n) * sector
			clear(b[at : at+sector])
		}
		return b
	}},
	{"lost line", 1, func(r *rand.Rand, b []byte, newest bool) []byte {
		ls, _, _ := linesOf(b)
		n := len(ls)
		if newest {
			n--
		}
		if n == 0 {
			return b
		}
		i := r.IntN(n)
		return slices.Concat(append(slices.Clone(ls[:i]), ls[i+1:]...)...)
	}},
	{"doubled line", 0, func(r *rand.Rand, b []byte, _ bool) []byte {
		ls, _, _ := linesOf(b)
		i, at := r.IntN(len(ls)), r.IntN(len(ls)+1)
		return slices.Concat(slices.Insert(slices.Clone(ls), at, ls[i])...)
	}},
	{"swapped lines", 0, func(r *rand.Rand, b []byte, _ bool) []byte {
		ls, _, _ := linesOf(b)
		i, k := r.IntN(len(ls)), r.IntN(len(ls))
		ls[i], ls[k] = ls[k], ls[i]
		return slices.Concat(ls...)
	}},
	{"cut", 1000, func(r *rand.Rand, b []byte, newest bool) []byte {
		if newest {
			return b
		}
		return b[:r.IntN(len(b))]
	}},
	{"rubble behind the end", 0, func(r *rand.Rand, b []byte, newest bool) []byte {
		if newest {
			return b
		}
		return append(b, make([]byte, 1+r.IntN(100))...)
	}},
	{"bytes pushed in", 3, func(r *rand.Rand, b []byte, newest bool) []byte {
		_, _, limit := linesOf(b)
		return slices.Insert(b, r.IntN(max(limit, 1)), []byte("\n#\x00 rubble 0 = x\n")[:1+r.IntN(17)]...)
	}},
}

// sameFiles reports whether nothing was changed; LOCK is not a file here.
func sameFiles(a, b *memDisk) bool {
	return maps.EqualFunc(a.names, b.names, func(x, y *memNode) bool { return bytes.Equal(x.data, y.data) })
}

// checkDamaged wants a refusal that changed nothing, or a journal that is all there.
func checkDamaged(t *testing.T, d *memDisk, n uint64) (refused bool) {
	t.Helper()
	before := d.settle().clone()
	s, err := openDisk(d, 1500)
	if err == nil {
		first, last := seqs(t, s, loadSeq(t, s)+1)
		if last != n {
			t.Errorf("accepted with %d..%d of %d", first, last, n)
		}
		return false
	}
	var dmg *Damage
	if !errors.As(err, &dmg) || !errors.Is(err, ErrDamaged) || dmg.File == "" || dmg.Hint == "" {
		t.Fatalf("refused with %v", err)
	}
	if !sameFiles(d, before) {
		t.Fatalf("refused, but files changed: %v", err)
	}
	return true
}

func TestDamagedMiddle(t *testing.T) {
	rounds := 250 * *effort
	if testing.Short() {
		rounds = 100
	}
	for _, dm := range damages {
		t.Run(dm.name, func(t *testing.T) {
			refused, same := 0, 0
			for i := range uint64(rounds) {
				r := rand.New(rand.NewPCG(i, 7))
				d, n := journalDisk(t, r, i%4 == 3)
				names := segmentsOf(d)
				k := r.IntN(len(names))
				f := d.names[names[k]]
				changed := dm.do(r, bytes.Clone(f.data), k == len(names)-1)
				if bytes.Equal(changed, f.data) {
					same++
					continue
				}
				was := f.data
				f.data = changed
				if checkDamaged(t, d, n) {
					refused++
					checkRepair(t, d, n, dm.spoils)
				}
				if t.Failed() {
					t.Fatalf("round %d: %s in %s, from\n%s\nto\n%s", i, dm.name, names[k], was, changed)
				}
			}
			t.Logf("%d refused, %d harmless, %d unchanged", refused, rounds-refused-same, same)
			if refused < (rounds-same)/2 {
				t.Errorf("only %d of %d were refused", refused, rounds)
			}
		})
	}
}

// checkRepair repairs a refused disk: it opens, holds what the plan says, and
// every entry that could be read is either kept or listed as lost.
func checkRepair(t *testing.T, d *memDisk, n uint64, spoils int) {
	t.Helper()
	p, err := plan(d.files(), "d", false)
	if errors.Is(err, ErrDamaged) {
		p, err = plan(d.files(), "d", true)
	}
	if err != nil {
		t.Fatalf("plan: %v", err)
	}
	if len(p.Problems) == 0 || len(p.Steps) == 0 {
		t.Fatalf("open refused, but the plan is %+v", p)
	}
	lost := make(map[uint64]bool)
	err = p.eachLost(d.files(), func(e Entry) error {
		if !bytes.Equal(e.Body, body(e.Seq)) || e.Seq <= p.Last || e.Seq > n {
			t.Errorf("lost entry %d: %q", e.Seq, e.Body)
		}
		lost[e.Seq] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// A segment is unreadable when more of its header than a bit is gone.
	header := spoils != flips && slices.ContainsFunc(p.Problems, func(d *Damage) bool { return strings.Contains(d.What, "header") })
	if unread := int(n-p.Last) - len(lost); unread > spoils && !header {
		t.Errorf("kept to %d of %d, and only %d are listed as lost", p.Last, n, len(lost))
	}
	before := d.clone()
	if err := repair(d.files(), "d", p); err != nil {
		t.Fatalf("repair: %v, steps %v", err, p.Steps)
	}
	checkRepaired(t, d, before, p)
}

func checkRepaired(t *testing.T, d, before *memDisk, p RepairPlan) {
	t.Helper()
	for _, s := range p.Steps {
		if s.File == "" {
			continue
		}
		kept := d.names["d/"+p.Aside+"/"+s.File]
		if kept == nil || !bytes.Equal(kept.data, before.names["d/"+s.File].data) {
			t.Errorf("%s: the original is not kept", s)
		}
	}
	x, err := examine(d.files(), "d")
	if err != nil || !x.report().OK() {
		t.Fatalf("after repair: %v, %v", err, x.report().Problems)
	}
	s, err := openDisk(d.crash(chance(0)), 1500)
	if err != nil {
		t.Fatalf("open after repair: %v", err)
	}
	if s.Last() != p.Last || loadSeq(t, s) != p.Image {
		t.Errorf("ends at %d with image %d, planned %d with %d", s.Last(), loadSeq(t, s), p.Last, p.Image)
	}
	if first, last := seqs(t, s, 0); p.First <= p.Last && (first != p.First || last != p.Last) {
		t.Errorf("holds %d..%d, planned %d..%d", first, last, p.First, p.Last)
	}
	add(t, s, 3)
}

func TestDamagedSegments(t *testing.T) {
	for name, do := range map[string]func(d *memDisk, names []string){
		"first gone":  func(d *memDisk, n []string) { delete(d.names, n[0]) },
		"middle gone": func(d *memDisk, n []string) { delete(d.names, n[1]) },
		"contents swapped": func(d *memDisk, n []string) {
			d.names[n[0]], d.names[n[1]] = d.names[n[1]], d.names[n[0]]
		},
		"copy under a later name": func(d *memDisk, n []string) {
			d.names["d/"+segmentName(99, 1)] = d.names[n[0]]
		},
		"empty": func(d *memDisk, n []string) { d.names[n[1]].data = nil },
		"cut at a batch": func(d *memDisk, n []string) {
			f := d.names[n[0]]
			_, _, last := linesOf(f.data[:bytes.Index(f.data, []byte("#end"))])
			f.data = f.data[:last]
		},
		"of another history": func(d *memDisk, n []string) { // all good in itself, same seqs
			f := d.names[n[0]]
			other := newHeader(1, 1, 0, day.Add(1e9))
			out := other.encode()
			ls, _, _ := linesOf(f.data)
			for i, l := range ls[1 : len(ls)-1] {
				e, err := parseLine(l[:len(l)-1], saltOf(t, ls[0]))
				if err != nil {
					t.Fatalf("line %d: %v", i, err)
				}
				out, _ = appendLine(out, other.salt, e)
			}
			f.data = append(out, encodeEnd(uint64(len(ls)-2), uint64(len(ls)-2), other.salt)...)
		},
		"torn before a stub": func(d *memDisk, n []string) {
			f := d.names[n[len(n)-1]]
			f.data = f.data[:len(f.data)-1]
			seg, _, _ := parseSegmentName(n[len(n)-1][2:])
			d.names["d/"+segmentName(seg+1, 100)] = &memNode{data: []byte("#a11 v=1 se")}
		},
		"rubble behind the closing line": func(d *memDisk, n []string) {
			s, err := openDisk(d, 0)
			if err != nil {
				t.Fatal(err)
			}
			name := "d/" + s.activeName()
			add(t, s, 1)
			s.Close()
			d.names[name].data = append(d.names[name].data, "rubble"...)
		},
		"entry behind the closing line": func(d *memDisk, n []string) {
			s, err := openDisk(d, 0)
			if err != nil {
				t.Fatal(err)
			}
			f := d.names["d/"+s.activeName()]
			add(t, s, 1)
			s.Close()
			f.data, _ = appendLine(f.data, s.head.salt, line{seq: 61, batch: 61, last: true, body: body(61)})
		},
		"torn batch before the closing line": func(d *memDisk, n []string) {
			s, err := openDisk(d, 0)
			if err != nil {
				t.Fatal(err)
			}
			name := "d/" + s.activeName()
			s.Append(day, bodies(s.Last()+1, 1))
			s.Close()
			d.names[name].data[200] ^= 1
		},
		"batch over its limit": func(d *memDisk, n []string) {
			f := d.names[n[len(n)-1]]
			f.data = append(f.data, make([]byte, MaxBatch+1)...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, n := journalDisk(t, rand.New(rand.NewPCG(3, 4)), false)
			do(d, segmentsOf(d))
			if !checkDamaged(t, d, n) {
				t.Fatal("accepted")
			}
			checkRepair(t, d, n+2, 1000) // some add up to two
		})
	}
}

func saltOf(t *testing.T, head []byte) uint32 {
	h, err := parseHeader(head[:len(head)-1])
	if err != nil {
		t.Fatal(err)
	}
	return h.salt
}

func TestNewestSegmentStub(t *testing.T) {
	for _, head := range []string{"", "#a11 v=1 seg=", strings.Repeat("\x00", 150), "#a11 v=1 seg=3 fir\x00\x00"} {
		d, n := journalDisk(t, rand.New(rand.NewPCG(3, 4)), false)
		seg, _, _ := parseSegmentName(segmentsOf(d)[len(segmentsOf(d))-1][2:])
		stub := "d/" + segmentName(seg+1, n+1)
		d.names[stub] = &memNode{data: []byte(head)}
		s, err := openDisk(d, 0)
		if err != nil || s.Last() != n {
			t.Fatalf("stub %q: %v", head, err)
		}
		if kept := d.names[stub+tornEnd]; kept == nil || string(kept.data) != head {
			t.Errorf("stub %q was not kept", head)
		}
	}
}

func TestImageAhead(t *testing.T) {
	d, _ := journalDisk(t, rand.New(rand.NewPCG(5, 6)), true)
	names := segmentsOf(d)
	for _, name := range names[1:] {
		delete(d.names, name)
	}
	_, err := openDisk(d.settle(), 0)
	if !errors.Is(err, ErrDamaged) || !strings.Contains(fmt.Sprint(err), "ahead") {
		t.Fatalf("journal behind the image: %v", err)
	}
	p, err := plan(d.files(), "d", false)
	if err != nil {
		t.Fatal(err)
	}
	before := d.clone()
	if err := repair(d.files(), "d", p); err != nil {
		t.Fatal(err)
	}
	checkRepaired(t, d, before, p)
}

func TestRepairRefusesOldPlan(t *testing.T) {
	d, _ := journalDisk(t, rand.New(rand.NewPCG(5, 6)), false)
	names := segmentsOf(d)
	d.names[names[1]].data[300] ^= 1
	p, err := plan(d.files(), "d", false)
	if err != nil {
		t.Fatal(err)
	}
	d.names[names[0]].data[300] ^= 1
	before := d.clone()
	if err := repair(d.files(), "d", p); err == nil || !sameFiles(d, before) {
		t.Errorf("an old plan was followed: %v", err)
	}
	d.locked = true
	if err := repair(d.files(), "d", p); !errors.Is(err, ErrLocked) {
		t.Errorf("repair beside a controller: %v", err)
	}
}

// A repair cut short by the power loses nothing: planned again, it ends as well.
func TestRepairCrash(t *testing.T) {
	for at := range 40 {
		for seed := range uint64(4) {
			d, n := journalDisk(t, rand.New(rand.NewPCG(5, seed)), seed%2 == 0)
			names := segmentsOf(d)
			f := d.names[names[len(names)-2]]
			f.data[len(f.data)/3] ^= 1
			p, err := plan(d.files(), "d", false)
			if err != nil {
				t.Fatal(err)
			}
			d.settle().stopAt(at)
			done := repair(d.files(), "d", p) == nil
			d = d.crash(chance(seed))
			again, err := plan(d.files(), "d", false)
			if err != nil {
				t.Fatalf("op %d: %v", at, err)
			}
			if again.Last != p.Last || done && len(again.Steps) > 0 {
				t.Errorf("op %d, seed %d: planned %d of %d, then %d with %v", at, seed, p.Last, n, again.Last, again.Steps)
			}
			if err := repair(d.files(), "d", again); err != nil {
				t.Fatalf("op %d: %v", at, err)
			}
			if s, err := openDisk(d, 0); err != nil || s.Last() != p.Last {
				t.Fatalf("op %d: %v", at, err)
			}
		}
	}
}
