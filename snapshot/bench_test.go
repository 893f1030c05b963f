package snapshot

import (
	"fmt"
	"io/fs"
	"testing"
)

// noSync writes to the real disk and does not wait for it: what is left is our own work.
func noSync() Files {
	f := disk()
	create := f.Create
	f.Create = func(name string) (File, error) {
		h, err := create(name)
		return lazyFile{h}, err
	}
	return f
}

type lazyFile struct{ File }

func (lazyFile) Sync() error { return nil }

func (f lazyFile) Stat() (fs.FileInfo, error) { return f.File.(diskFile).Stat() }

func BenchmarkAppend(b *testing.B) {
	for _, sync := range []bool{false, true} {
		for _, n := range []int{1, 100, 1000} {
			b.Run(fmt.Sprintf("sync=%t/batch=%d", sync, n), func(b *testing.B) { benchAppend(b, sync, n) })
		}
	}
}

func benchAppend(b *testing.B, sync bool, n int) {
	o := Options{Dir: b.TempDir()}
	if !sync {
		o.Files = noSync()
	}
	s, err := Open(o, day)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	batch := bodies(100, n)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Append(day, batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "lines/s")
}

func BenchmarkRead(b *testing.B) {
	defer func(n int) { readSize = n }(readSize)
	readSize = 256 << 10
	s, err := Open(Options{Dir: b.TempDir()}, day)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	const lines = 200_000
	for range lines / 4000 {
		if err := s.Append(day, bodies(100, 4000)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Read(1, func(Entry) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*lines)/b.Elapsed().Seconds(), "lines/s")
}

func BenchmarkOpen(b *testing.B) {
	defer func(n int) { readSize = n }(readSize)
	readSize = 256 << 10
	dir := b.TempDir()
	s, err := Open(Options{Dir: dir}, day)
	if err != nil {
		b.Fatal(err)
	}
	for range 50 {
		if err := s.Append(day, bodies(100, 4000)); err != nil {
			b.Fatal(err)
		}
	}
	s.Close()
	for b.Loop() {
		s, err := Open(Options{Dir: dir}, day)
		if err != nil {
			b.Fatal(err)
		}
		s.lock.Close()
		s.active.Close()
	}
}

// What a start reads of old segments at most: one of 64 MiB, then one more if the
// first was a byte short of it. The image covers both.
func BenchmarkOpenCovered(b *testing.B) {
	defer func(n int) { readSize = n }(readSize)
	readSize = 256 << 10
	s, err := Open(Options{Dir: b.TempDir(), Files: noSync()}, day)
	if err != nil {
		b.Fatal(err)
	}
	for len(s.view.segs) < 3 {
		if err := s.Append(day, bodies(100, 4000)); err != nil {
			b.Fatal(err)
		}
	}
	w, err := s.NewImage(s.Last())
	if err == nil {
		err = w.Commit([]byte("{}"))
	}
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		b.Fatal(err)
	}
	for _, budget := range []int64{0, coveredBudget, coveredBudget * 5 / 4} {
		b.Run(fmt.Sprintf("budget=%dMiB", budget>>20), func(b *testing.B) {
			for b.Loop() {
				if _, err := survey(s.files, s.dir, budget); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestAppendDoesNotAllocate(t *testing.T) {
	s, err := Open(Options{Dir: t.TempDir(), Files: noSync()}, day)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	batch := bodies(100, 200)
	got := testing.AllocsPerRun(20, func() {
		if err := s.Append(day, batch); err != nil {
			t.Fatal(err)
		}
	})
	if got > 0 {
		t.Errorf("%v allocations for 200 entries", got)
	}
}
