package snapshot

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestImageGenerations(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if loadSeq(t, s) != 0 {
		t.Error("an empty folder has an image")
	}
	add(t, s, 30)
	for _, seq := range []uint64{1, 10, 20, 30} {
		save(t, s, seq)
		if got := loadSeq(t, s); got != seq {
			t.Errorf("newest image is at %d, want %d", got, seq)
		}
	}
	names, _ := list(dir)
	want := "LOCK journal-0000000001-00000000000000000001.log reserve snapshot.json snapshot.prev.json " + taskFile(20) + " " + taskFile(30)
	if got := strings.Join(names, " "); got != want {
		t.Errorf("files are %s", got)
	}
	s.Close()
	s = open(t, dir)
	if got := loadSeq(t, s); got != 30 {
		t.Errorf("reopened at image %d", got)
	}
}

func TestNewImageRefuses(t *testing.T) {
	s := open(t, t.TempDir())
	add(t, s, 10)
	save(t, s, 5)
	for _, seq := range []uint64{0, 4, 5, 11} {
		if _, err := s.NewImage(seq); !errors.Is(err, ErrImage) {
			t.Errorf("image at %d: %v", seq, err)
		}
	}
	w, err := s.NewImage(10)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.NewImage(9); !errors.Is(err, ErrImage) {
		t.Errorf("second writer: %v", err)
	}
	for _, bad := range []string{"", "a\nb", "\x1b", "é"} {
		if err := w.Line([]byte(bad)); !errors.Is(err, ErrEntry) {
			t.Errorf("line %q: %v", bad, err)
		}
	}
	if err := w.Line(bytes.Repeat([]byte("x"), MaxLine)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("longest line: %v", err)
	}
	if err := w.Commit([]byte("{")); err == nil {
		t.Error("content that is not JSON was taken")
	}
	if err := w.Abort(); err != nil {
		t.Errorf("abort after a failed commit: %v", err)
	}
	if got := loadSeq(t, s); got != 5 {
		t.Errorf("image is at %d", got)
	}
	save(t, s, 10)
}

func TestAbortLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	add(t, s, 10)
	before, _ := list(dir)
	w, err := s.NewImage(10)
	if err != nil {
		t.Fatal(err)
	}
	for range 10000 {
		if err := w.Line(bytes.Repeat([]byte("x"), 2000)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	if after, _ := list(dir); strings.Join(after, " ") != strings.Join(before, " ") {
		t.Errorf("left %q", after)
	}
}

// Every file of the newest image, damaged in every way, leaves the one before.
func TestImageFallsBack(t *testing.T) {
	for _, file := range []string{imageFile, taskFile(20)} {
		for name, damage := range map[string]func([]byte) []byte{
			"flip":  func(b []byte) []byte { b[len(b)/2] ^= 4; return b },
			"cut":   func(b []byte) []byte { return b[:len(b)-1] },
			"more":  func(b []byte) []byte { return append(b, '\n') },
			"empty": func([]byte) []byte { return nil },
			"gone":  nil,
		} {
			t.Run(file+" "+name, func(t *testing.T) {
				dir := t.TempDir()
				s := open(t, dir)
				add(t, s, 30)
				save(t, s, 10)
				save(t, s, 20)
				s.Close()
				change(t, filepath.Join(dir, file), damage)
				s = open(t, dir)
				if got := loadSeq(t, s); got != 10 {
					t.Fatalf("image at %d", got)
				}
				if first, last := seqs(t, s, 11); first != 11 || last != 30 {
					t.Errorf("tail %d..%d", first, last)
				}
				save(t, s, 25) // must not put the bad one in the good one's place
				change(t, filepath.Join(dir, imageFile), nil)
				if got := loadSeq(t, s); got != 10 {
					t.Errorf("after a new image and its loss: image at %d", got)
				}
			})
		}
	}
}

// change rewrites a file with f, or removes it if f is nil.
func change(t testing.TB, name string, f func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err == nil && f == nil {
		err = os.Remove(name)
	} else if err == nil {
		err = os.WriteFile(name, f(b), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestBothImagesBad(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir, SegmentSize: 500}, day)
	if err != nil {
		t.Fatal(err)
	}
	add(t, s, 10, 10, 10, 10)
	save(t, s, 20)
	save(t, s, 30)
	s.Close()
	for _, f := range []string{imageFile, prevFile} {
		change(t, filepath.Join(dir, f), func(b []byte) []byte { b[20] ^= 1; return b })
	}
	s = open(t, dir)
	if loadSeq(t, s) != 0 {
		t.Error("a bad image was given")
	}
	if first, last := seqs(t, s, 1); first != 1 || last != 40 {
		t.Errorf("whole replay is %d..%d", first, last)
	}
	s.Close()
	change(t, filepath.Join(dir, segmentName(1, 1)), nil)
	_, err = Open(Options{Dir: dir}, day)
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "--start-empty") || !strings.Contains(err.Error(), "restore") {
		t.Errorf("open without images and beginning: %v", err)
	}
}

func FuzzEnvelope(f *testing.F) {
	e := envelope{seq: 7, tasks: taskFile(7), lines: 3, sum: strings.Repeat("0", 64), content: []byte(`{"a": [1, 2]}`)}
	f.Add(e.encode())
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if e, err := parseEnvelope(b); err == nil && !bytes.Equal(e.encode(), b) {
			t.Errorf("%q was written back as %q", b, e.encode())
		}
	})
}

// memFile is a file to read that is only bytes.
type memFile struct {
	*bytes.Reader
	File // what is not overridden must not be called
}

func (m memFile) ReadAt(b []byte, at int64) (int, error) { return m.Reader.ReadAt(b, at) }
func (m memFile) Size() (int64, error)                   { return m.Reader.Size(), nil }

// A line file that is read to its end is byte for byte what its lines give.
func FuzzImageLines(f *testing.F) {
	build := func(lines ...string) []byte {
		b, salt := imageHeader(7)
		for i, l := range lines {
			n := uint64(i + 1)
			b, _ = appendLine(b, salt, line{seq: n, batch: n, last: true, body: []byte(l)})
		}
		n := uint64(len(lines))
		return append(b, encodeEnd(n, n, salt)...)
	}
	f.Add(build())
	f.Add(build("a", "b c"))
	f.Add(build("a")[:30])
	f.Fuzz(func(t *testing.T, b []byte) {
		var lines []string
		for _, e := range []envelope{{seq: 7, lines: 0}, {seq: 7, lines: 1}, {seq: 7, lines: 2}} {
			lines = lines[:0]
			err := e.eachLine(memFile{Reader: bytes.NewReader(b)}, func(l []byte) error {
				lines = append(lines, string(l))
				return nil
			})
			if err == nil && !bytes.Equal(build(lines...), b) {
				t.Errorf("%q was written back as %q", b, build(lines...))
			}
		}
	})
}
