package snapshot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Reader reads a journal that it does not own: a data folder, also while a
// controller runs on it, a backup, or one journal file. It takes no lock and
// changes nothing.
type Reader struct {
	files  Files
	dir    string
	view   view
	single bool
	damage error // what stops reading behind view
}

// OpenReader looks at what is there now; entries that come later are not seen.
// Beside a running controller the newest batch may not have been acknowledged.
func OpenReader(dirOrFile string) (*Reader, error) {
	st, err := os.Stat(dirOrFile)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	if st.IsDir() {
		return openReader(disk(), dirOrFile)
	}
	return openFileReader(disk(), dirOrFile)
}

func openReader(files Files, dir string) (*Reader, error) {
	names, err := files.List(dir)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	f := &found{}
	cs, err := f.readHeaders(files, dir, names)
	if err != nil {
		return nil, err
	}
	r := &Reader{files: files, dir: dir}
	for len(cs) > 0 && cs[len(cs)-1].bad != nil {
		r.damage = cs[len(cs)-1].bad
		cs = cs[:len(cs)-1]
	}
	return r, r.use(f, cs)
}

func openFileReader(files Files, name string) (*Reader, error) {
	r := &Reader{files: files, dir: filepath.Dir(name), single: true}
	c, _, err := readHeader(files, r.dir, filepath.Base(name))
	if err != nil {
		return nil, err
	}
	if c.bad != nil {
		return nil, c.bad
	}
	return r, r.use(&found{}, []candidate{c})
}

// use takes the stretch up to the newest segment, and of that what is whole.
func (r *Reader) use(f *found, cs []candidate) error {
	if len(cs) == 0 {
		return nil
	}
	f.take(cs)
	err := f.checkTail(r.files, r.dir)
	r.view = f.view
	if errors.Is(err, ErrDamaged) {
		r.damage, err = err, nil
	}
	return err
}

// First is the oldest entry that can be read; it is above Last when there is none.
func (r *Reader) First() uint64 {
	if len(r.view.segs) == 0 {
		return 1
	}
	return r.view.segs[0].h.first
}

// Last is the newest entry that can be read.
func (r *Reader) Last() uint64 { return r.view.last }

// Damage is what stops reading behind the last entry; nil if nothing does.
func (r *Reader) Damage() error { return r.damage }

// Read is as Store.Read. It gives what comes before damage, then the *Damage.
func (r *Reader) Read(from uint64, fn func(Entry) error) error {
	if err := r.view.read(r.files, r.dir, from, fn); err != nil {
		return err
	}
	return r.damage
}

// ReadImage is as Store.ReadImage. A single journal file has no image.
func (r *Reader) ReadImage(load func(Image) error, line func([]byte) error) (ok bool, err error) {
	if r.single {
		return false, nil
	}
	e, _, err := chooseImage(r.files, r.dir)
	if err != nil {
		return false, err
	}
	if err := covers(r.view, e); err != nil || e == nil {
		return false, err
	}
	return true, e.load(r.files, r.dir, load, line)
}
