package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"time"
)

// failing makes the n-th change of this kind (0 = the next) on a file with this
// in its name fail, once.
func (d *memDisk) failing(op, name string, n int, err error) {
	d.before = func(o, f string) error {
		if o != op || !strings.Contains(f, name) {
			return nil
		}
		if n--; n != -1 {
			return nil
		}
		return err
	}
}

// A disk that fails an append ends the store, and what was acknowledged is there.
func TestAppendFaults(t *testing.T) {
	next := day.AddDate(0, 0, 1) // rotates
	for _, tc := range []struct {
		op, name string
		n        int
		err      error
		now      time.Time
	}{
		{"write", ".log", 0, syscall.EIO, day},
		{"write", ".log", 0, syscall.EROFS, day},
		{"write", ".log", 0, errShortWrite, day},
		{"sync", ".log", 0, syscall.EIO, day},
		{"sync", ".log", 0, syscall.ENOSPC, day},
		{"write", ".log", 0, syscall.EIO, next},  // closing line
		{"sync", ".log", 0, syscall.EIO, next},   //
		{"create", ".log", 0, syscall.EIO, next}, // new segment
		{"write", ".log", 1, syscall.EIO, next},
		{"sync", ".log", 1, syscall.EIO, next},
		{"sync", ".log", 1, syscall.ENOSPC, next},
		{"rename", ".log", 0, syscall.EIO, next},
		{"syncdir", "d", 0, syscall.EIO, next},
		{"syncdir", "d", 0, syscall.ENOSPC, next},
		{"sync", ".log", 2, syscall.EIO, next}, // first batch in it
	} {
		t.Run(fmt.Sprintf("%s %s %d %v", tc.op, tc.name, tc.n, tc.err), func(t *testing.T) {
			d := newDisk()
			s, err := openDisk(d, 0)
			if err != nil {
				t.Fatal(err)
			}
			add(t, s, 5)
			d.failing(tc.op, tc.name, tc.n, tc.err)
			err = s.Append(tc.now, bodies(6, 3))
			if !errors.Is(err, ErrLost) || tc.err != errShortWrite && !errors.Is(err, tc.err) {
				t.Fatalf("append: %v", err)
			}
			ops := d.ops
			if err := s.Append(tc.now, bodies(6, 3)); !errors.Is(err, ErrLost) || d.ops != ops {
				t.Errorf("tried again: %v", err)
			}
			if s.Last() != 5 || s.Full() {
				t.Errorf("last %d, full %t", s.Last(), s.Full())
			}
			if s.Close(); d.ops != ops {
				t.Error("closing a dead store wrote")
			}
			for seed := range uint64(10) {
				(&job{acked: 5, asked: 8}).verify(t, d.crash(chance(seed)))
			}
		})
	}
}

func TestDiskFull(t *testing.T) {
	d := newDisk()
	d.size = 3 * reserveSize
	s, err := openDisk(d, 0)
	if err != nil {
		t.Fatal(err)
	}
	add(t, s, 3)
	d.names["d/other"] = &memNode{data: make([]byte, d.room()-100)} // someone fills the disk
	if s.Full() {
		t.Error("full before a write failed")
	}
	add(t, s, 40) // cut back, and out of the reserve
	if !s.Full() || d.names["d/"+reserveFile] != nil {
		t.Error("the reserve was not used")
	}
	add(t, s, 7)
	if _, last := seqs(t, s, 1); last != 50 {
		t.Errorf("read to %d", last)
	}
	for seed := range uint64(10) {
		(&job{acked: 50, asked: 50}).verify(t, d.crash(chance(seed)))
	}
	d.names["d/other"].data = d.names["d/other"].data[:reserveSize] // too little came back
	if !s.Full() {
		t.Error("not full, but there is no room for the reserve and as much again")
	}
	delete(d.names, "d/other")
	if s.Full() || d.names["d/"+reserveFile] == nil {
		t.Error("room came back, the reserve did not")
	}
	d.names["d/other"] = &memNode{data: make([]byte, d.room()-100)}
	add(t, s, 40)
	if !s.Full() {
		t.Error("full a second time was not seen")
	}
}

// When the reserve is used up too, nothing is acknowledged any more.
func TestReserveUsedUp(t *testing.T) {
	d := newDisk()
	d.size = 2 * reserveSize
	s, err := openDisk(d, 0)
	if err != nil {
		t.Fatal(err)
	}
	d.names["d/other"] = &memNode{data: make([]byte, d.room()-100)}
	add(t, s, 40)
	d.names["d/other"].data = append(d.names["d/other"].data, make([]byte, d.room()-100)...)
	if err := s.Append(day, bodies(41, 40)); !errors.Is(err, ErrLost) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("append: %v", err)
	}
	(&job{acked: 40, asked: 40}).verify(t, d.crash(chance(1)))
}

func TestFullDiskFaults(t *testing.T) {
	for _, tc := range []struct{ op, name string }{{"truncate", ".log"}, {"remove", reserveFile}} {
		d := newDisk()
		d.size = 2 * reserveSize
		s, err := openDisk(d, 0)
		if err != nil {
			t.Fatal(err)
		}
		add(t, s, 5)
		d.names["d/other"] = &memNode{data: make([]byte, d.room()-100)}
		d.failing(tc.op, tc.name, 0, syscall.EIO)
		if err := s.Append(day, bodies(6, 40)); !errors.Is(err, ErrLost) {
			t.Errorf("%s fails on a full disk: %v", tc.op, err)
		}
		(&job{acked: 5, asked: 45}).verify(t, d.crash(chance(1)))
	}
}

// A new segment on a full disk comes out of the reserve as well.
func TestRotateOnFullDisk(t *testing.T) {
	for _, op := range []string{"write", "create"} {
		d := newDisk()
		s, err := openDisk(d, 0)
		if err != nil {
			t.Fatal(err)
		}
		add(t, s, 5)
		d.failing(op, ".log"+tempEnd, 0, syscall.ENOSPC)
		if err := s.Append(day.AddDate(0, 0, 1), bodies(6, 1)); err != nil || len(s.view.segs) != 2 {
			t.Errorf("%s: %v", op, err)
		}
		(&job{acked: 6, asked: 6}).verify(t, d.crash(chance(0)))
	}
}

func TestOpenOnFullDisk(t *testing.T) {
	d := newDisk()
	d.size = reserveSize // room for entries, none for the reserve
	s, err := openDisk(d, 0)
	if err != nil {
		t.Fatal(err)
	}
	if !s.Full() {
		t.Error("no reserve, and not full")
	}
	add(t, s, 5)
	s.Close()
	d.names["d/other"] = &memNode{data: make([]byte, d.room()-10)}
	if _, err := openDisk(d, 0); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("open without any room: %v", err)
	}
	delete(d.names, "d/other")
	(&job{acked: 5, asked: 5}).verify(t, d)
}

// An image that fails costs the image and nothing else; the next one succeeds.
func TestImageFaults(t *testing.T) {
	ops := imageOps(t, -1, nil)
	if ops < 8 {
		t.Fatalf("an image takes %d changes", ops)
	}
	for n := range ops {
		for _, err := range []error{syscall.EIO, syscall.ENOSPC, errShortWrite} {
			imageOps(t, n, err)
		}
	}
}

// imageOps saves an image while change n fails, and counts the changes.
func imageOps(t *testing.T, n int, fail error) (ops int) {
	t.Helper()
	d := newDisk()
	s, err := openDisk(d, 0)
	if err != nil {
		t.Fatal(err)
	}
	j := &job{}
	for range 3 {
		if err := errors.Join(j.append(s, 10), j.save(s)); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.append(s, 10); err != nil {
		t.Fatal(err)
	}
	start := d.ops
	failed := ""
	d.before = func(op, name string) error {
		if d.ops-start == n+1 && (fail != errShortWrite || op == "write") {
			failed = op + " " + name
			return fail
		}
		return nil
	}
	err = j.save(s)
	ops = d.ops - start
	d.before = nil
	if failed != "" && err == nil && !strings.HasPrefix(failed, "remove tasks") { // an old file may stay
		t.Errorf("%s gave %v, and the image was committed", failed, fail)
	}
	for seed := range uint64(6) {
		j.verify(t, d.crash(chance(seed)))
	}
	if err := j.append(s, 1); err != nil {
		t.Errorf("append after %s failed: %v", failed, err)
	}
	if err := j.save(s); err != nil {
		t.Errorf("image after %s failed: %v", failed, err)
	}
	j.verify(t, d.crash(chance(0)))
	return ops
}

// A start that fails anywhere leaves a folder that the next start opens.
func TestOpenFaults(t *testing.T) {
	for n := range 12 {
		for _, fail := range []error{syscall.EIO, syscall.ENOSPC} {
			d := newDisk()
			s, err := openDisk(d, 0)
			if err != nil {
				t.Fatal(err)
			}
			add(t, s, 5)
			d.names["d/"+s.activeName()].data = append(d.names["d/"+s.activeName()].data, "torn"...)
			d.names["d/"+imageFile+tempEnd] = &memNode{}
			d.locked = false
			start := d.ops
			d.before = func(string, string) error {
				if d.ops-start == n+1 {
					return fail
				}
				return nil
			}
			s, err = openDisk(d, 0)
			if err == nil {
				s.Close()
			}
			if d.locked {
				t.Fatalf("change %d: the lock was kept after %v", n, err)
			}
			d.before = nil
			(&job{acked: 5, asked: 5}).verify(t, d)
		}
	}
}

func TestReadFaults(t *testing.T) {
	d := newDisk()
	s, err := openDisk(d, 1500)
	if err != nil {
		t.Fatal(err)
	}
	add(t, s, 20, 20, 20)
	delete(d.names, segmentsOf(d)[0])
	var gone *Gone
	if err := s.Read(1, func(Entry) error { return nil }); !errors.As(err, &gone) || gone.First != 21 {
		t.Errorf("read of a segment pruned meanwhile: %v", err)
	}
	s.files.Open = func(string) (File, error) { return nil, fs.ErrPermission }
	if err := s.Read(1, nil); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("read without permission: %v", err)
	}
}
