package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var day = time.Date(2026, 11, 29, 14, 0, 0, 274000, time.UTC)

// bodies makes n entries that name their seq, so that a reader can check them.
func bodies(from uint64, n int) [][]byte {
	out := make([][]byte, n)
	for i := range out {
		out[i] = body(from + uint64(i))
	}
	return out
}

func body(seq uint64) []byte {
	return fmt.Appendf(nil, "2026-11-29T14:00:00.000274Z task.result task=t-%d unit=clean v=3.2 text=%q", seq, strings.Repeat("x y", int(seq%7)))
}

func open(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(Options{Dir: dir}, day)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func add(t testing.TB, s *Store, sizes ...int) {
	t.Helper()
	for _, n := range sizes {
		if err := s.Append(day, bodies(s.Last()+1, n)); err != nil {
			t.Fatal(err)
		}
	}
}

type reads interface {
	Read(uint64, func(Entry) error) error
}

// seqs reads from on, checks each body, and returns first and last seq.
func seqs(t testing.TB, r reads, from uint64) (first, last uint64) {
	t.Helper()
	err := r.Read(from, func(e Entry) error {
		if !bytes.Equal(e.Body, body(e.Seq)) {
			t.Errorf("seq %d has body %q", e.Seq, e.Body)
		}
		if last != 0 && e.Seq != last+1 {
			t.Errorf("seq %d after %d", e.Seq, last)
		}
		if first == 0 {
			first = e.Seq
		}
		last = e.Seq
		return nil
	})
	if err != nil {
		t.Fatalf("read from %d: %v", from, err)
	}
	return first, last
}

// save commits an image at seq with a line for each entry up to it.
func save(t testing.TB, s *Store, seq uint64) {
	t.Helper()
	w, err := s.NewImage(seq)
	if err != nil {
		t.Fatal(err)
	}
	for i := uint64(1); i <= seq; i++ {
		if err := w.Line(body(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(fmt.Appendf(nil, "{\n    \"seq\": %d\n  }", seq)); err != nil {
		t.Fatal(err)
	}
}

type loads interface {
	ReadImage(func(Image) error, func([]byte) error) (bool, error)
}

// loadSeq reads an image that save made and returns its seq, 0 for none.
func loadSeq(t testing.TB, r loads) uint64 {
	t.Helper()
	seq, err := tryLoad(t, r)
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

func tryLoad(t testing.TB, r loads) (uint64, error) {
	var im Image
	n := uint64(0)
	ok, err := r.ReadImage(func(i Image) error { im = i; return nil }, func(b []byte) error {
		n++
		if !bytes.Equal(b, body(n)) {
			t.Errorf("image line %d is %q", n, b)
		}
		return nil
	})
	if err == nil && ok && (n != im.Seq || string(im.Content) != fmt.Sprintf("{\n    \"seq\": %d\n  }", n)) {
		t.Errorf("image at %d has %d lines, content %q", im.Seq, n, im.Content)
	}
	return im.Seq, err
}

func TestAppendReadReopen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := open(t, dir)
	if s.Last() != 0 {
		t.Errorf("empty store has last %d", s.Last())
	}
	add(t, s, 1, 100, 3, 1)
	if first, last := seqs(t, s, 0); first != 1 || last != 105 {
		t.Errorf("read %d..%d", first, last)
	}
	if first, last := seqs(t, s, 102); first != 102 || last != 105 {
		t.Errorf("read %d..%d", first, last)
	}
	if first, _ := seqs(t, s, 106); first != 0 {
		t.Errorf("read %d behind the end", first)
	}
	for range 3 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, dir)
		add(t, s, 2)
	}
	if first, last := seqs(t, s, 1); first != 1 || last != 111 {
		t.Errorf("read %d..%d", first, last)
	}
}

func TestReadStopsOnError(t *testing.T) {
	s := open(t, t.TempDir())
	add(t, s, 5)
	stop := errors.New("stop")
	n := 0
	if err := s.Read(2, func(Entry) error { n++; return stop }); err != stop || n != 1 {
		t.Errorf("got %v after %d entries", err, n)
	}
}

func TestModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "data")
	s := open(t, dir)
	add(t, s, 1)
	save(t, s, 1)
	st, err := os.Stat(dir)
	if err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("folder %v %v", st.Mode(), err)
	}
	es, err := os.ReadDir(dir)
	if err != nil || len(es) != 5 {
		t.Errorf("%d files, %v", len(es), err)
	}
	for _, e := range es {
		if st, err := e.Info(); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", e.Name(), st.Mode(), err)
		}
	}
}

func TestLocked(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	_, err := Open(Options{Dir: dir}, day)
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("pid %d", os.Getpid())) {
		t.Errorf("second open: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != ErrClosed {
		t.Errorf("second close: %v", err)
	}
	if err := s.Append(day, bodies(1, 1)); !errors.Is(err, ErrClosed) {
		t.Errorf("append after close: %v", err)
	}
	open(t, dir)
}

func TestAppendRefuses(t *testing.T) {
	big := bytes.Repeat([]byte("x"), MaxLine-Overhead)
	many := make([][]byte, MaxLines+1)
	for i := range many {
		many[i] = []byte("x")
	}
	for _, tc := range []struct {
		name    string
		entries [][]byte
		want    error
	}{
		{"none", nil, nil},
		{"one longest line", [][]byte{big}, nil},
		{"line too long", [][]byte{append([]byte("x"), big...)}, ErrTooLarge},
		{"two longest lines", [][]byte{big, big}, nil},
		{"batch too big", [][]byte{big, big, []byte("x")}, ErrTooLarge},
		{"most lines", many[:MaxLines], nil},
		{"too many lines", many, ErrTooLarge},
		{"empty entry", [][]byte{[]byte("x"), nil}, ErrEntry},
		{"newline", [][]byte{[]byte("a\nb")}, ErrEntry},
		{"escape", [][]byte{[]byte("a=1234567\x1b")}, ErrEntry},
		{"delete", [][]byte{[]byte("a=\x7f2345678")}, ErrEntry},
		{"not ascii", [][]byte{[]byte("a=\u202e")}, ErrEntry},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			if err := s.Append(day, tc.entries); !errors.Is(err, tc.want) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
			want := uint64(0)
			if tc.want == nil {
				want = uint64(len(tc.entries))
			}
			if s.Last() != want {
				t.Errorf("last is %d", s.Last())
			}
			if err := s.Append(day, [][]byte{[]byte("next")}); err != nil || s.Last() != want+1 {
				t.Errorf("store is not usable after it: %v", err)
			}
			s.Close()
			if got := open(t, dir).Last(); got != want+1 {
				t.Errorf("reopened at %d", got)
			}
		})
	}
}

func TestRotation(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir, SegmentSize: 1000}, day)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	segments := func() int { return len(s.view.segs) }
	add(t, s, 10) // over 1000 bytes, in the first
	if segments() != 1 {
		t.Fatalf("%d segments", segments())
	}
	add(t, s, 1)
	if segments() != 2 {
		t.Fatalf("size did not rotate: %d", segments())
	}
	append1 := func(now time.Time) {
		t.Helper()
		if err := s.Append(now, bodies(s.Last()+1, 1)); err != nil {
			t.Fatal(err)
		}
	}
	append1(time.Date(2026, 11, 29, 23, 59, 59, 999999999, time.UTC))
	if segments() != 2 {
		t.Fatal("rotated before the day's end")
	}
	append1(time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC))
	append1(day) // the clock stands back
	append1(day.AddDate(0, -1, 0))
	if segments() != 3 {
		t.Fatalf("day: %d segments", segments())
	}
	opened := s.head.opened
	for range 12 {
		append1(day.AddDate(0, -1, 0))
	}
	if segments() != 4 || s.head.opened.Before(opened) {
		t.Errorf("%d segments, the newest opened at %v after %v", segments(), s.head.opened, opened)
	}
	if _, last := seqs(t, s, 1); last != s.Last() || last != 27 {
		t.Errorf("read to %d of %d", last, s.Last())
	}
	names, _ := list(dir)
	if want := "journal-0000000003-00000000000000000013.log"; names[3] != want {
		t.Errorf("third segment is %s in %q, want %s", names[3], names, want)
	}
}

// A start that writes nothing leaves no segment behind, however often.
func TestRestartsLeaveNoSegments(t *testing.T) {
	dir := t.TempDir()
	for i := range 5 {
		s := open(t, dir)
		if i == 2 {
			add(t, s, 1)
			seqs(t, s, 0)
		}
		s.lock.Close() // as a crash does; Close would add a line
		if i > 2 {
			s = open(t, dir)
			s.Close()
		}
	}
	names, _ := list(dir)
	if len(names) != 4 || open(t, dir).Last() != 1 {
		t.Errorf("left %q", names)
	}
}

func TestPrune(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for i := range 6 {
		now := day.AddDate(0, 0, i)
		if err := s.Append(now, bodies(s.Last()+1, 10)); err != nil {
			t.Fatal(err)
		}
	}
	now, keep := day.AddDate(0, 0, 5), 48*time.Hour
	prune := func(now time.Time, want int, why string) {
		t.Helper()
		if n, err := s.Prune(now, keep); n != want || err != nil {
			t.Errorf("%s: removed %d, %v; want %d", why, n, err, want)
		}
	}
	prune(now, 0, "no image")
	save(t, s, 15)
	prune(now, 0, "one image")
	save(t, s, 50)
	prune(now.AddDate(0, 0, -1), 0, "clock behind")
	prune(now, 1, "the older image needs 16")
	save(t, s, 60)
	prune(now, 1, "two days are kept")
	prune(now, 0, "again")
	first, last := seqs(t, s, 0)
	if first != 21 || last != 60 {
		t.Errorf("kept %d..%d", first, last)
	}
	var gone *Gone
	if err := s.Read(20, nil); !errors.As(err, &gone) || gone.First != 21 || !errors.Is(err, ErrGone) {
		t.Errorf("read from 20: %v", err)
	}
	s.Close()
	s = open(t, dir)
	if loadSeq(t, s) != 60 {
		t.Error("image lost")
	}
}

// Reading goes on from other goroutines while batches, segments and images come.
func TestConcurrent(t *testing.T) {
	var log bytes.Buffer
	s, err := Open(Options{Dir: t.TempDir(), SegmentSize: 20000, Log: slog.New(slog.NewTextHandler(&log, nil))}, day)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 2)
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			last := s.Last()
			if _, got := seqs(t, s, last); got < last {
				t.Errorf("read ends at %d, last was %d", got, last)
			}
			if _, err := s.Prune(day, 0); err != nil {
				t.Error(err)
			}
		}
	}()
	add(t, s, 1)
	go func() {
		for range 10 {
			w, err := s.NewImage(s.Last())
			if errors.Is(err, ErrImage) { // nothing new
				continue
			}
			if err == nil {
				err = errors.Join(w.Line([]byte("x")), w.Commit([]byte("{}")))
			}
			if err != nil {
				t.Error(err)
			}
		}
		done <- nil
	}()
	for range 100 {
		add(t, s, 20)
	}
	close(stop)
	<-done
	<-done
	if err := s.Close(); err != nil || log.Len() > 0 {
		t.Error(err, log.String())
	}
}
