package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

var errPower = errors.New("power is cut")

// job is what a controller does with its store, and what it was promised.
type job struct {
	acked uint64 // Append returned
	asked uint64 // Append was called
	image uint64 // Commit returned
}

// run works until the power goes. The steps cover a start, batches of one line
// and of many sectors, images, rotation, pruning, closing, and a second start.
func (j *job) run(d *memDisk) error {
	for range 2 {
		s, err := openDisk(d, 6000)
		if err != nil {
			return err
		}
		for i, n := range []int{1, 30, 2, 1, 12, 60, 3} {
			if err := j.append(s, n); err != nil {
				return err
			}
			if i%2 == 1 {
				if err := j.save(s); err != nil {
					return err
				}
			}
		}
		if _, err := s.Prune(day.AddDate(1, 0, 0), 0); err != nil {
			return err
		}
		if err := s.Close(); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) append(s *Store, n int) error {
	j.asked = j.acked + uint64(n)
	if err := s.Append(day, bodies(j.acked+1, n)); err != nil {
		return err
	}
	j.acked = j.asked
	return nil
}

func (j *job) save(s *Store) error {
	seq := s.Last()
	w, err := s.NewImage(seq)
	if err != nil {
		return err
	}
	for i := uint64(1); i <= seq; i++ {
		if err := w.Line(body(i)); err != nil {
			return err
		}
	}
	if err := w.Commit(fmt.Appendf(nil, "{\n    \"seq\": %d\n  }", seq)); err != nil {
		return err
	}
	j.image = seq
	return nil
}

// stopAt cuts the power before the n-th change from now.
func (d *memDisk) stopAt(n int) {
	d.before = func(string, string) error {
		if n--; n < 0 {
			return errPower
		}
		return nil
	}
}

// verify opens what a crash left and holds it against what was promised.
func (j *job) verify(t *testing.T, d *memDisk) (last uint64) {
	t.Helper()
	var log bytes.Buffer
	s, err := Open(Options{Dir: "d", Files: d.files(), Log: slog.New(slog.NewTextHandler(&log, nil))}, day)
	if err != nil {
		t.Fatalf("does not open: %v", err)
	}
	defer func() { // a crash is no reason for either
		for _, no := range []string{"image does not check", "older segments"} {
			if strings.Contains(log.String(), no) {
				t.Error(log.String())
			}
		}
	}()
	last = s.Last()
	if last != j.acked && last != j.asked {
		t.Errorf("ends at %d; acknowledged %d, asked %d", last, j.acked, j.asked)
	}
	image := loadSeq(t, s)
	if image < j.image {
		t.Errorf("image is at %d, %d was committed", image, j.image)
	}
	if first, end := seqs(t, s, image+1); end != last && image != last || first > image+1 {
		t.Errorf("tail is %d..%d, image %d, end %d", first, end, image, last)
	}
	seqs(t, s, 0)
	return last
}

func TestCrashPoints(t *testing.T) {
	d := newDisk()
	var whole job
	if err := whole.run(d); err != nil {
		t.Fatal(err)
	}
	seeds := uint64(30)
	if testing.Short() {
		seeds = 4
	}
	states := 0
	for at := range d.ops + 1 {
		d := newDisk()
		d.stopAt(at)
		var j job
		if err := j.run(d); err != nil && !errors.Is(err, errPower) {
			t.Fatalf("op %d: %v", at, err)
		}
		for seed := range seeds {
			if t.Run(fmt.Sprintf("op%d/seed%d", at, seed), func(t *testing.T) { states += j.crashAgain(t, d, seed) }); t.Failed() {
				return
			}
		}
	}
	t.Logf("%d crash points, %d states", d.ops+1, states)
	if !testing.Short() && states < 10000 {
		t.Errorf("only %d states were tried", states)
	}
}

// crashAgain recovers one state, also with a second crash during recovery, and
// checks that a further recovery finds the same.
func (j *job) crashAgain(t *testing.T, d *memDisk, seed uint64) int {
	first := d.crash(chance(seed))
	again := first.crash(chance(1))
	again.stopAt(int(seed*7) % 12)
	_, err := openDisk(again, 6000)
	if err != nil && !errors.Is(err, errPower) {
		t.Fatalf("recovery: %v", err)
	}
	last := j.verify(t, first)
	settled := *j
	settled.acked, settled.asked = last, last
	if n := settled.verify(t, first.crash(chance(0))); n != last {
		t.Errorf("second recovery ends at %d, first at %d", n, last)
	}
	settled.verify(t, again.crash(chance(seed)))
	return 3
}

// Whenever the power goes while a torn tail is cut, its bytes are still there.
func TestCutKeepsBytes(t *testing.T) {
	const name = "d/journal-0000000001-00000000000000000001.log"
	for at := range 12 {
		for seed := range uint64(20) {
			d := newDisk()
			s, err := openDisk(d, 0)
			if err != nil {
				t.Fatal(err)
			}
			add(t, s, 3, 5)
			d.names[name].synced = d.names[name].data[:s.end-100]
			d = d.crash(chance(0))
			torn := d.names[name].data
			d.stopAt(at)
			openDisk(d, 0)
			d = d.crash(chance(seed))
			got := d.names[name].data
			if kept := d.names[name+tornEnd]; kept != nil && len(got) < len(torn) {
				got = append(bytes.Clone(got), kept.data...)
			}
			if !bytes.Equal(got, torn) {
				t.Fatalf("op %d, seed %d: %d of %d bytes are left", at, seed, len(got), len(torn))
			}
		}
	}
}

// Tearing the last batch in any way loses that batch and nothing else.
func TestTornTails(t *testing.T) {
	d := newDisk()
	s, err := openDisk(d, 0)
	if err != nil {
		t.Fatal(err)
	}
	j := &job{}
	for _, n := range []int{1, 20, 40} {
		if err := j.append(s, n); err != nil {
			t.Fatal(err)
		}
	}
	d.before = func(op, _ string) error {
		if op == "sync" {
			return errPower
		}
		return nil
	}
	if err := j.append(s, 50); !errors.Is(err, ErrLost) {
		t.Fatal(err)
	}
	name := "d/" + s.activeName()
	node := d.names[name]
	states := 3000 * *effort
	if testing.Short() {
		states = 300
	}
	for seed := range uint64(states) {
		c := d.crash(chance(seed))
		torn := bytes.Clone(c.names[name].data)
		last := j.verify(t, c)
		if kept := c.names[name+tornEnd]; last == j.acked && len(torn) > len(node.synced) {
			if kept == nil || !bytes.Equal(kept.data, torn[len(node.synced):]) {
				t.Fatalf("seed %d: the cut bytes were not kept", seed)
			}
		}
	}
}

func TestCutAtEveryByte(t *testing.T) {
	d := newDisk()
	s, err := openDisk(d, 0)
	if err != nil {
		t.Fatal(err)
	}
	j := &job{}
	var ends []int64
	for _, n := range []int{1, 5, 1, 4} {
		ends = append(ends, s.end)
		if err := j.append(s, n); err != nil {
			t.Fatal(err)
		}
	}
	name := "d/" + s.activeName()
	whole := d.names[name].data
	for cut := 1; cut <= len(whole); cut++ {
		c := newDisk()
		c.names[name] = &memNode{data: bytes.Clone(whole[:cut])}
		want := uint64(0)
		for i, last := range []uint64{0, 1, 6, 7} {
			if int64(cut) >= ends[i] {
				want = last
			}
		}
		if cut == len(whole) {
			want = 11
		}
		(&job{acked: want, asked: want}).verify(t, c)
		if t.Failed() {
			t.Fatalf("cut to %d bytes", cut)
		}
	}
}
