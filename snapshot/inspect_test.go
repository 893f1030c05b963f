package snapshot

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func reader(t *testing.T, name string) *Reader {
	t.Helper()
	r, err := OpenReader(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReaderBesideController(t *testing.T) {
	dir := t.TempDir()
	if _, err := OpenReader(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	if r := reader(t, dir); r.First() <= r.Last() {
		t.Errorf("empty folder has %d..%d", r.First(), r.Last())
	}
	s, err := Open(Options{Dir: dir, SegmentSize: 1000}, day)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	add(t, s, 15, 15, 15)
	save(t, s, 30)
	r := reader(t, dir)
	if first, last := seqs(t, r, 0); first != 1 || last != 45 || r.First() != 1 || r.Last() != 45 {
		t.Errorf("read %d..%d of %d..%d", first, last, r.First(), r.Last())
	}
	if loadSeq(t, r) != 30 {
		t.Error("no image")
	}
	add(t, s, 15)
	if _, last := seqs(t, r, 20); last != 45 {
		t.Errorf("an old reader sees up to %d", last)
	}
	if _, last := seqs(t, reader(t, dir), 20); last != 60 {
		t.Errorf("a new reader sees up to %d", last)
	}
	rep, err := Check(dir)
	if err != nil || !rep.OK() || rep.Entries != 60 || rep.First != 1 || rep.Last != 60 || len(rep.Segments) != 4 || len(rep.Images) != 1 {
		t.Errorf("check: %v %+v", err, rep)
	}
}

func TestReaderOfOneFile(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir, SegmentSize: 1000}, day)
	if err != nil {
		t.Fatal(err)
	}
	add(t, s, 15, 15, 15)
	save(t, s, 30)
	s.Close()
	name := filepath.Join(t.TempDir(), "copy")
	if err := os.Rename(filepath.Join(dir, segmentName(2, 16)), name); err != nil {
		t.Fatal(err)
	}
	r := reader(t, name)
	if first, last := seqs(t, r, 0); first != 16 || last != 30 {
		t.Errorf("read %d..%d", first, last)
	}
	var gone *Gone
	if err := r.Read(15, nil); !errors.As(err, &gone) || gone.First != 16 {
		t.Errorf("before it: %v", err)
	}
	if loadSeq(t, r) != 0 {
		t.Error("a file has an image")
	}
	change(t, name, func(b []byte) []byte { return append(b[:len(b)-300], b[len(b)-299:]...) })
	got := uint64(0)
	err = reader(t, name).Read(0, func(e Entry) error { got = e.Seq; return nil })
	if !errors.Is(err, ErrDamaged) || got != 15 && got != 0 {
		t.Errorf("damaged: to %d, %v", got, err)
	}
	change(t, name, func(b []byte) []byte { b[5] = 'x'; return b })
	if _, err := OpenReader(name); !errors.Is(err, ErrDamaged) {
		t.Errorf("bad header: %v", err)
	}
}

// The whole way of an operator, on a real disk: refused, checked, planned, repaired.
func TestRepairOnDisk(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir, SegmentSize: 1000}, day)
	if err != nil {
		t.Fatal(err)
	}
	add(t, s, 15, 15, 15)
	if err := Repair(dir, RepairPlan{}); !errors.Is(err, ErrLocked) {
		t.Errorf("beside a controller: %v", err)
	}
	s.Close()
	if p, err := Plan(dir); err != nil || len(p.Steps) != 0 || Repair(dir, p) != nil {
		t.Errorf("sound folder: %v %v", err, p.Steps)
	}
	change(t, filepath.Join(dir, segmentName(2, 16)), func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
	_, err = Open(Options{Dir: dir}, day)
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "seq 16") && !strings.Contains(err.Error(), "seq 2") || !strings.Contains(err.Error(), "apollo11 repair") {
		t.Errorf("open: %v", err)
	}
	rep, err := Check(dir)
	if err != nil || rep.OK() || rep.Problems[0].File != segmentName(2, 16) || rep.Problems[0].Offset == 0 {
		t.Errorf("check: %v %+v", err, rep)
	}
	p, err := Plan(dir)
	lost := 0
	if err := errors.Join(err, p.EachLost(func(Entry) error { lost++; return nil })); err != nil {
		t.Fatal(err)
	}
	if lost != 29 || p.Last != 15 || len(p.Steps) != 2 || p.Steps[0].Do != Quarantine || p.Steps[1].Do != Cut {
		t.Errorf("plan loses %d, keeps to %d: %v", lost, p.Last, p.Steps)
	}
	if err := Repair(dir, p); err != nil {
		t.Fatal(err)
	}
	if first, last := seqs(t, reader(t, filepath.Join(dir, p.Aside, segmentName(3, 31))), 0); first != 31 || last != 45 {
		t.Errorf("the quarantined segment has %d..%d", first, last)
	}
	s = open(t, dir)
	add(t, s, 1)
	if _, last := seqs(t, s, 0); last != 16 {
		t.Errorf("goes on to %d", last)
	}
	s.Close()
	p, err = PlanEmpty(dir)
	if err := errors.Join(err, Repair(dir, p)); err != nil {
		t.Fatal(err)
	}
	if s := open(t, dir); s.Last() != 0 || p.Aside != "0002.broken" {
		t.Errorf("not empty: %d; aside %s", s.Last(), p.Aside)
	}
}

func TestStepString(t *testing.T) {
	for s, want := range map[Step]string{
		{Do: Cut, File: "a", From: 3}:                    "cut a at byte 3",
		{Do: Keep, File: "a", From: 3, To: 9, Seq: 7}:    "keep only bytes 3 to 9 of a, from seq 7 on",
		{Do: Quarantine, File: "a"}:                      "quarantine a",
		{Do: Begin, Seq: 7}:                              "begin a new journal at seq 7",
		{Do: 9, File: "a"}:                               "action 9 a",
		{Do: Quarantine, File: "a", History: Span{2, 5}}: "quarantine a; history that an image covers goes with it: seq 2 to 5",
	} {
		if s.String() != want {
			t.Errorf("got %q, want %q", s, want)
		}
	}
}
