package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// longJournal writes batches of every size over several segments, some of which
// have no entry, and says where each batch begins. Bodies carry their number, and
// some are long.
func longJournal(t testing.TB, dir string, r *rand.Rand, segment int64, n int) (s *Store, batches []uint64) {
	t.Helper()
	was := seekSpan
	seekSpan = 8 << 10
	t.Cleanup(func() { seekSpan = was })
	s, err := Open(Options{Dir: dir, SegmentSize: segment, Files: noSync()}, day)
	if err != nil {
		t.Fatal(err)
	}
	for s.Last() < uint64(n) {
		batches = append(batches, s.Last()+1)
		var entries [][]byte
		for range 1 + r.IntN(40) {
			size := r.IntN(200)
			if r.IntN(200) == 0 {
				size = 20 << 10 // more than is read line by line
			}
			entries = append(entries, fmt.Appendf(nil, "n=%d %s", s.Last()+1+uint64(len(entries)), strings.Repeat("x", size)))
			if size > 1000 {
				break
			}
		}
		if err := s.Append(day, entries); err != nil {
			t.Fatal(err)
		}
		if r.IntN(400) == 0 {
			if s.Close() != nil {
				t.Fatal("not closed")
			}
			if s, err = Open(Options{Dir: dir, SegmentSize: segment, Files: noSync()}, day); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s, batches
}

func numberOf(t testing.TB, body []byte) uint64 {
	t.Helper()
	text, _, _ := bytes.Cut(bytes.TrimPrefix(body, []byte("n=")), []byte(" "))
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

type seeks interface {
	reads
	Seek(func([]byte) bool) (uint64, error)
}

func TestSeek(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	dir := t.TempDir()
	s, _ := longJournal(t, dir, r, 128<<10, 4_000)
	defer s.Close()
	last := s.Last()
	for name, in := range map[string]seeks{"store": s, "reader": reader(t, dir)} {
		for n := range 200 {
			want := 1 + r.Uint64N(last+1)
			if n < 3 {
				want = []uint64{1, last, last + 1}[n]
			}
			looked := 0
			got, err := in.Seek(func(b []byte) bool { looked++; return numberOf(t, b) < want })
			if err != nil || got != want {
				t.Fatalf("%s: seek of %d gives %d, %v", name, want, got, err)
			}
			if looked > 500 {
				t.Fatalf("%s: %d lines were looked at, of %d", name, looked, last)
			}
		}
	}
}

// Reading from any entry gives the same as reading all, though most of a segment
// is passed over.
func TestReadFromTheMiddle(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	dir := t.TempDir()
	s, batches := longJournal(t, dir, r, 200<<10, 4_000)
	defer s.Close()
	froms := []uint64{1, 2, s.Last()}
	for range 30 {
		froms = append(froms, 1+r.Uint64N(s.Last()), batches[r.IntN(len(batches))])
	}
	enough := errors.New("enough")
	for _, from := range froms {
		next := from
		err := s.Read(from, func(e Entry) error {
			if e.Seq != next || numberOf(t, e.Body) != next || e.Batch > e.Seq {
				t.Fatalf("from %d: %d, batch %d, stands where %d should", from, e.Seq, e.Batch, next)
			}
			if next++; next > from+500 {
				return enough
			}
			return nil
		})
		if err != nil && err != enough || err == nil && next != s.Last()+1 {
			t.Fatalf("from %d: read to %d, %v", from, next-1, err)
		}
	}
}

// countedFile counts the bytes that are read.
type countedFile struct {
	File
	n *int
}

func (f countedFile) ReadAt(b []byte, at int64) (int, error) {
	n, err := f.File.ReadAt(b, at)
	*f.n += n
	return n, err
}

// To find one entry of a full segment, a small part of it is read.
func TestFindingReadsLittle(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir, Files: noSync()}, day)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for s.end < 8<<20 {
		add(t, s, 2000)
	}
	bytes, opens := 0, disk().Open
	s.files.Open = func(name string) (File, error) {
		f, err := opens(name)
		return countedFile{f, &bytes}, err
	}
	enough := errors.New("enough")
	for n, look := range []func() error{
		func() error { return s.Read(s.Last()-10_000, func(Entry) error { return enough }) },
		func() error {
			_, err := s.Seek(func(b []byte) bool { return len(b) > 0 && bytes < 2<<20 })
			return err
		},
	} {
		bytes = 0
		if err := look(); err != nil && err != enough {
			t.Fatal(err)
		}
		if bytes == 0 || bytes > 3<<19 {
			t.Errorf("look %d read %d bytes of %d", n, bytes, s.end)
		}
	}
}

// What is damaged is named as if it had been read from the front, and what is
// good before it is given.
func TestReadFromTheMiddleOfDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	dir := t.TempDir()
	s, _ := longJournal(t, dir, r, 64<<20, 2_000)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "journal-*.log"))
	if err != nil {
		t.Fatal(err)
	}
	name := names[0]
	good, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for range 30 {
		bad := bytes.Clone(good)
		at := 1000 + r.IntN(len(bad)-2000)
		bad[at] ^= 1
		if err := os.WriteFile(name, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		v := s.view
		v.segs = v.segs[:min(len(v.segs), 2)]
		end := uint64(0) // last entry that a reading of everything gives
		whole := v.readSegment(s.files, dir, 0, func(l line) error { end = l.seq; return nil })
		from := 1 + r.Uint64N(v.after(0)-1)
		next := from
		err := v.readFrom(s.files, dir, 0, from, func(l line) error {
			if l.seq >= from {
				if l.seq != next || numberOf(t, l.body) != next {
					t.Fatalf("%d stands where %d should", l.seq, next)
				}
				next++
			}
			return nil
		})
		switch {
		case !errors.Is(whole, ErrDamaged):
			t.Fatalf("a flipped bit at byte %d: %v", at, whole)
		case err == nil && from <= end+1: // what is passed over is not checked, what is given is
			t.Fatalf("from %d, damaged behind %d: no error", from, end)
		case err != nil && !errors.Is(err, ErrDamaged):
			t.Fatalf("from %d: %v", from, err)
		case from <= end && next > end+1:
			t.Fatalf("from %d: read to %d, beyond the damage behind %d", from, next-1, end)
		}
	}
}

func TestSeekInNothing(t *testing.T) {
	dir := t.TempDir()
	if got, err := reader(t, dir).Seek(nil); got != 1 || err != nil {
		t.Errorf("an empty folder: %d, %v", got, err)
	}
	s := open(t, dir)
	if got, err := s.Seek(nil); got != 1 || err != nil {
		t.Errorf("an empty journal: %d, %v", got, err)
	}
}

// What was pruned counts as before what is looked for.
func TestSeekInWhatIsPruned(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir, SegmentSize: 1000}, day)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	add(t, s, 15, 15, 15, 15)
	r := reader(t, dir)
	if err := os.Remove(filepath.Join(dir, segmentName(1, 1))); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Seek(func([]byte) bool { return false }); got != 16 || err != nil {
		t.Errorf("the oldest is %d, %v", got, err)
	}
	if got, err := r.Seek(func([]byte) bool { return true }); got != 61 || err != nil {
		t.Errorf("behind the last is %d, %v", got, err)
	}
}

type imagesAt interface {
	ReadImageAt(uint64, func(Image) error, func([]byte) error) (bool, error)
}

// imageAt is the seq of the image for a moment, and whether there is one.
func imageAt(t testing.TB, in imagesAt, seq uint64) (uint64, bool, error) {
	t.Helper()
	got, lines := uint64(0), uint64(0)
	ok, err := in.ReadImageAt(seq, func(i Image) error { got = i.Seq; return nil }, func(b []byte) error {
		if lines++; !bytes.Equal(b, body(lines)) {
			t.Errorf("line %d is %q", lines, b)
		}
		return nil
	})
	if got != lines {
		t.Errorf("image of %d has %d lines", got, lines)
	}
	return got, ok, err
}

func TestImageAt(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir, SegmentSize: 1000}, day)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	add(t, s, 15, 15, 15)
	save(t, s, 20)
	save(t, s, 40)
	for name, in := range map[string]imagesAt{"store": s, "reader": reader(t, dir)} {
		for seq, want := range map[uint64]uint64{0: 0, 19: 0, 20: 20, 39: 20, 40: 40, 45: 40} {
			got, ok, err := imageAt(t, in, seq)
			if err != nil || got != want || ok != (want != 0) {
				t.Errorf("%s: for %d the image of %d, %v, %v; want %d", name, seq, got, ok, err, want)
			}
		}
	}
}

// Without the beginning of the journal, only what an image leads to can be told.
func TestImageAtIsOutOfReach(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir, SegmentSize: 1000}, day)
	if err != nil {
		t.Fatal(err)
	}
	add(t, s, 15, 15, 15)
	save(t, s, 20)
	save(t, s, 40)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, segmentName(1, 1))); err != nil {
		t.Fatal(err)
	}
	out := func(seq uint64, words string) {
		t.Helper()
		_, ok, err := imageAt(t, reader(t, dir), seq)
		var u *Unreachable
		if ok || !errors.As(err, &u) || !errors.Is(err, ErrGone) || u.Seq != seq || !strings.Contains(err.Error(), words) {
			t.Errorf("%d: %v, %v; want %q", seq, ok, err, words)
		}
	}
	out(19, "the state at record 19 can no longer be told: records are kept from 16 on, and the oldest image that they go on from is of record 20")
	if got, _, err := imageAt(t, reader(t, dir), 30); got != 20 || err != nil {
		t.Errorf("30: %d, %v", got, err)
	}
	change(t, filepath.Join(dir, prevFile), func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
	out(30, "from 16 on, and the oldest image that they go on from is of record 40; an image does not check: snapshot.prev.json is damaged")
	if err := os.Remove(filepath.Join(dir, taskFile(40))); err != nil {
		t.Fatal(err)
	}
	out(45, "there is no image that they go on from; an image does not check: ")
	for _, name := range []string{imageFile, prevFile} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	out(45, "records are kept from 16 on, and there is no image that they go on from")
	_, ok, err := imageAt(t, reader(t, filepath.Join(dir, segmentName(2, 16))), 20)
	if ok || !errors.Is(err, ErrGone) {
		t.Errorf("one file that begins at 16: %v, %v", ok, err)
	}
}

// Images are replaced while others read them: whoever asks gets one that is
// whole, or none where the journal's beginning does.
func TestImageAtBesideTheWriter(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir}, day)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	add(t, s, 600)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for seq := uint64(10); seq <= 600; seq += 5 {
			save(t, s, seq)
		}
	}()
	r := reader(t, dir)
	for n := uint64(0); ; n++ {
		select {
		case <-done:
			if got, _, err := imageAt(t, r, 600); got != 600 || err != nil {
				t.Errorf("in the end: %d, %v", got, err)
			}
			return
		default:
		}
		seq := n * 37 % 600
		if got, ok, err := imageAt(t, r, seq); err != nil || got > seq || ok != (got != 0) {
			t.Fatalf("%d: image of %d, %v, %v", seq, got, ok, err)
		}
	}
}
