package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// stoppedDisk is a folder after a clean stop: the image covers every entry.
func stoppedDisk(t testing.TB) (d *memDisk, n uint64) {
	t.Helper()
	d = newDisk()
	s, err := openDisk(d, 1500)
	if err != nil {
		t.Fatal(err)
	}
	for range 6 {
		add(t, s, 7, 5)
	}
	save(t, s, s.Last())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return d.settle(), s.Last()
}

// A flipped bit refuses wherever it is in an old segment, also in its header,
// although the image covers it.
func TestFlippedBitInOldSegment(t *testing.T) {
	d, n := stoppedDisk(t)
	names := segmentsOf(d)
	if len(names) < 4 || !slices.IsSorted(names) {
		t.Fatalf("only %q", names)
	}
	step := 1
	if testing.Short() {
		step = 13
	}
	for _, name := range names[:len(names)-1] {
		f := d.names[name]
		for at := 0; at < len(f.data); at += step {
			bit := byte(1) << (at % 8)
			f.data[at] ^= bit
			s, err := openDisk(d, 1500)
			var dmg *Damage
			switch {
			case err == nil:
				s.Close()
				t.Fatalf("byte %d of %s: accepted", at, name)
			case !errors.As(err, &dmg) || "d/"+dmg.File != name || int(dmg.Offset) > at || dmg.Hint != "apollo11 repair --data d":
				t.Fatalf("byte %d of %s: %v", at, name, err)
			case !strings.Contains(dmg.What, fmt.Sprintf("only history, snapshot.json at seq %d covers it", n)):
				t.Fatalf("byte %d of %s: %v", at, name, err)
			}
			f.data[at] ^= bit
		}
	}
	if before, _ := stoppedDisk(t); !sameFiles(d, before) {
		t.Error("refusing changed files")
	}
	if s, err := openDisk(d, 1500); err != nil || s.Last() != n {
		t.Errorf("sound again: %v", err)
	}
}

// Newest first, a start reads covered segments until the budget is spent, and
// leaves older ones to Check.
func TestOldSegmentBudget(t *testing.T) {
	sound, _ := stoppedDisk(t)
	names := segmentsOf(sound)
	size := func(i int) int64 { return int64(len(sound.names[names[i]].data)) }
	z := len(names) - 2 // the newest closed one
	for _, tc := range []struct {
		seg    int
		budget int64
		reads  bool
	}{
		{z, 0, false},
		{z, 1, true}, // begun is read whole
		{z - 1, 1, false},
		{z - 1, size(z), false},
		{z - 1, size(z) + 1, true},
		{z - 2, size(z) + size(z-1), false},
		{z - 2, size(z) + size(z-1) + 1, true},
		{0, 1 << 40, true},
	} {
		for what, do := range map[string]func(d *memDisk, f *memNode){
			"entry":  func(_ *memDisk, f *memNode) { f.data[len(f.data)/2] ^= 1 },
			"header": func(_ *memDisk, f *memNode) { f.data[20] ^= 1 },
			"gone":   func(d *memDisk, _ *memNode) { delete(d.names, names[tc.seg]) },
		} {
			if what == "gone" && tc.seg == 0 {
				continue // as a pruned one is
			}
			d := sound.clone()
			do(d, d.names[names[tc.seg]])
			_, err := survey(d.files(), "d", tc.budget)
			if errors.Is(err, ErrDamaged) != tc.reads || !tc.reads && err != nil {
				t.Errorf("%s of segment %d, budget %d: %v", what, tc.seg, tc.budget, err)
			}
			x, err := examine(d.files(), "d")
			if err != nil || x.report().OK() {
				t.Errorf("%s of segment %d: check finds nothing, %v", what, tc.seg, err)
			}
		}
	}
}

// Whatever happened to history, repair keeps the image and every entry behind
// the damage, loses no state, and says which history goes.
func TestRepairOldSegments(t *testing.T) {
	sound, n := stoppedDisk(t)
	names := segmentsOf(sound)
	first := func(i int) uint64 { _, q, _ := parseSegmentName(names[i][2:]); return q }
	for name, tc := range map[string]struct {
		do       func(d *memDisk, f *memNode) // to segment 2 of 0 to 4 or more
		from, to uint64                       // first kept, between these
	}{
		"entry":  {func(_ *memDisk, f *memNode) { f.data[len(f.data)/2] ^= 1 }, first(2) + 1, first(3)},
		"header": {func(_ *memDisk, f *memNode) { f.data[20] ^= 1 }, 1, 1}, // written anew
		"header gone": {func(_ *memDisk, f *memNode) { // the salt is lost, and with it the segment
			clear(f.data[:bytes.IndexByte(f.data, '\n')])
		}, first(3), first(3)},
		"gone":         {func(d *memDisk, _ *memNode) { delete(d.names, names[2]) }, first(3), first(3)},
		"empty":        {func(_ *memDisk, f *memNode) { f.data = nil }, first(3), first(3)},
		"closing line": {func(_ *memDisk, f *memNode) { f.data[len(f.data)-2] ^= 1 }, first(3), first(3)},
		"two":          {func(d *memDisk, f *memNode) { f.data[300] ^= 1; d.names[names[1]].data[30] ^= 1 }, first(2) + 1, first(3)},
	} {
		t.Run(name, func(t *testing.T) {
			d := sound.clone()
			tc.do(d, d.names[names[2]])
			before := d.clone()
			if !checkDamaged(t, d, n) {
				t.Fatal("accepted")
			}
			p, err := plan(d.files(), "d", false)
			if err != nil {
				t.Fatal(err)
			}
			if p.Image != n || p.Last != n || p.First < tc.from || p.First > tc.to {
				t.Errorf("keeps the image at %d and %d to %d, want first %d to %d", p.Image, p.First, p.Last, tc.from, tc.to)
			}
			switch {
			case name == "header" && p.History != (Span{}):
				t.Errorf("history %v goes, and all could be kept", p.History)
			case name == "gone" && p.History != (Span{1, first(2) - 1}):
				t.Errorf("history %v goes, want up to the file that is gone", p.History)
			case name != "header" && name != "gone" && p.History != (Span{1, p.First - 1}): // also what cannot be read
				t.Errorf("history %v goes, what is kept begins at %d", p.History, p.First)
			}
			checkHistory(t, p)
			if err := p.eachLost(d.files(), func(e Entry) error { return fmt.Errorf("entry %d", e.Seq) }); err != nil {
				t.Errorf("lost to the state: %v", err)
			}
			if err := repair(d.files(), "d", p); err != nil {
				t.Fatal(err)
			}
			checkRepaired(t, d, before, p)
			s, err := openDisk(d, 1500) // and on, with entries and another image
			if err != nil {
				t.Fatal(err)
			}
			add(t, s, 9)
			save(t, s, s.Last())
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if s, err = openDisk(d, 1500); err != nil || s.Last() != n+9 || loadSeq(t, s) != n+9 {
				t.Errorf("after another stop: %v", err)
			}
		})
	}
}

// checkHistory holds the steps against the whole.
func checkHistory(t *testing.T, p RepairPlan) {
	t.Helper()
	var all Span
	for _, s := range p.Steps {
		all = all.with(s.History)
		if said := strings.Contains(s.String(), fmt.Sprintf("seq %d to %d", s.History.First, s.History.Last)); said != (s.History != Span{}) {
			t.Errorf("step %q, history %v", s, s.History)
		}
	}
	if all != p.History {
		t.Errorf("steps take %v, the plan says %v", all, p.History)
	}
}

// A torn tail was never acknowledged: beside other damage it is not listed as
// lost either, and the next start cuts it.
func TestTornTailIsNotLost(t *testing.T) {
	d, n := journalDisk(t, rand.New(rand.NewPCG(5, 6)), true)
	names := segmentsOf(d)
	f := d.names[names[len(names)-1]]
	head, _, _ := bytes.Cut(f.data, []byte("\n"))
	f.data, _ = appendLine(f.data, saltOf(t, append(head, '\n')), line{seq: n + 1, batch: n + 1, body: body(n + 1)})
	d.names[names[0]].data[300] ^= 1
	p, err := plan(d.settle().files(), "d", false)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.eachLost(d.files(), func(e Entry) error { return fmt.Errorf("entry %d of %d", e.Seq, n) }); err != nil {
		t.Error(err)
	}
	if err := repair(d.files(), "d", p); err != nil {
		t.Fatal(err)
	}
	if s, err := openDisk(d, 1500); err != nil || s.Last() != n {
		t.Errorf("open: %v", err)
	}
	if kept := d.names[names[len(names)-1]+tornEnd]; kept == nil {
		t.Error("the torn tail was not kept")
	}
}

func tornsOf(d *memDisk) (out []string) {
	names, _ := d.list("d")
	for _, name := range names {
		if strings.HasSuffix(name, tornEnd) {
			out = append(out, name)
		}
	}
	return out
}

// However often it crashes, the newest maxTorn tails are kept, and repair takes
// those of the segments that it sets aside with them.
func TestTornFilesAreBounded(t *testing.T) {
	d := newDisk()
	var log bytes.Buffer
	want := []string{}
	for i := range 3 * maxTorn {
		s, err := Open(Options{Dir: "d", Files: d.files(), Log: slog.New(slog.NewTextHandler(&log, nil))}, day)
		if err != nil {
			t.Fatal(err)
		}
		add(t, s, 2)
		active := d.names["d/"+s.activeName()]
		active.data = append(active.data, fmt.Sprintf("torn %d", i)...)
		want = append(want, s.activeName()+tornEnd)
		d = d.settle().clone()
	}
	if got := tornsOf(d); !slices.Equal(got, want[2*maxTorn-1:3*maxTorn-1]) {
		t.Errorf("kept %d: %q", len(got), got)
	}
	if n := strings.Count(log.String(), "left-over file removed"); n != 2*maxTorn-1 {
		t.Errorf("%d removals were logged", n)
	}
	names := segmentsOf(d)
	d.names[names[len(names)-4]].data[150] ^= 1 // three more behind it, one of them with its tail still on
	p, err := plan(d.files(), "d", false)
	if err == nil {
		err = repair(d.files(), "d", p)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := tornsOf(d); len(got) != maxTorn-2 {
		t.Errorf("%d are left: %q", len(got), got)
	}
	if d.names["d/"+p.Aside+"/"+names[len(names)-2][2:]+tornEnd] == nil {
		t.Error("a tail did not go aside with its segment")
	}
}

// Pruning takes the tails of what it removes, and those that lost their segment.
func TestPruneTakesTorn(t *testing.T) {
	d := newDisk()
	s, err := openDisk(d, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if err := s.Append(day.AddDate(0, 0, i), bodies(s.Last()+1, 3)); err != nil {
			t.Fatal(err)
		}
	}
	save(t, s, 9)
	save(t, s, 12)
	for _, seg := range []string{segmentName(1, 2), segmentName(2, 4), segmentName(4, 10)} {
		d.names["d/"+seg+tornEnd] = &memNode{}
	}
	if n, err := s.Prune(day.AddDate(0, 0, 9), 0); n != 3 || err != nil {
		t.Errorf("removed %d, %v", n, err)
	}
	if got := tornsOf(d); !slices.Equal(got, []string{segmentName(4, 10) + tornEnd}) {
		t.Errorf("left %q", got)
	}
}

// A repair that could do nothing leaves no folder behind, however often it is tried.
func TestFailedRepairLeavesNoFolder(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	add(t, s, 5)
	s.Close()
	change(t, filepath.Join(dir, segmentName(1, 1)), func(b []byte) []byte { b[200] ^= 1; return b })
	p, err := Plan(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := disk()
	files.Rename = func(string, string) error { return syscall.ENOSPC }
	for range 3 {
		if err := repair(files, dir, p); !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "*.broken")); len(found) > 0 {
		t.Errorf("left %q", found)
	}
	if err := Repair(dir, p); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, p.Aside)); err != nil {
		t.Error(err)
	}
}

func TestHintCanBeTyped(t *testing.T) {
	for dir, want := range map[string]string{
		"data":           "apollo11 repair --data data",
		"/var/lib/a.b_1": "apollo11 repair --data /var/lib/a.b_1",
		"":               "apollo11 repair --data ''",
		"my data":        "apollo11 repair --data 'my data'",
		"it's":           `apollo11 repair --data 'it'\''s'`,
		"$(x)":           "apollo11 repair --data '$(x)'",
		"ü":              "apollo11 repair --data 'ü'",
	} {
		d := &Damage{}
		if withHint(d, dir); d.Hint != want {
			t.Errorf("%q: %s, want %s", dir, d.Hint, want)
		}
	}
	d := missing(segment{}, 0)
	if withHint(d, "data"); !strings.HasPrefix(d.Hint, "apollo11 repair --data data --start-empty; ") {
		t.Error(d.Hint)
	}
}
