package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// Unreachable is returned for a moment that neither an image nor the journal's
// beginning leads to. It wraps ErrGone.
type Unreachable struct {
	Seq    uint64
	First  uint64 // of the entries that are kept
	Oldest uint64 // image that they go on from; 0: none
	Bad    error  // an image that would have done and does not check; nil: there is none
}

func (u *Unreachable) Error() string {
	text := fmt.Sprintf("the state at record %d can no longer be told: records are kept from %d on", u.Seq, u.First)
	if u.Oldest != 0 {
		text += fmt.Sprintf(", and the oldest image that they go on from is of record %d", u.Oldest)
	} else {
		text += ", and there is no image that they go on from"
	}
	if u.Bad != nil {
		text += "; an image does not check: " + u.Bad.Error()
	}
	return text
}

// Unwrap makes errors.Is(err, ErrGone) true.
func (u *Unreachable) Unwrap() error { return ErrGone }

// ReadImageAt is as ReadImage, for a state of the past: it gives the newest image
// that is not after seq. ok is false when there is none and the journal is there
// from its first entry; if it is not, the error is an *Unreachable. Any goroutine
// may call it; images may be replaced meanwhile.
func (s *Store) ReadImageAt(seq uint64, load func(Image) error, line func([]byte) error) (ok bool, err error) {
	s.mu.Lock()
	v := s.view
	s.mu.Unlock()
	return readImageAt(imageFolder{s.files, s.dir}, v, seq, load, line)
}

// ReadImageAt is as Store.ReadImageAt.
func (r *Reader) ReadImageAt(seq uint64, load func(Image) error, line func([]byte) error) (ok bool, err error) {
	if r.single {
		return false, r.view.reaches(seq, nil)
	}
	return readImageAt(imageFolder{r.files, r.dir}, r.view, seq, load, line)
}

func readImageAt(d imageFolder, v view, seq uint64, load func(Image) error, line func([]byte) error) (ok bool, err error) {
	e, f, all, err := d.at(seq)
	if err != nil {
		return false, err
	}
	if e == nil || v.first() > e.seq+1 {
		if f != nil {
			f.Close()
		}
		return false, v.reaches(seq, all)
	}
	defer f.Close()
	if err := load(Image{Seq: e.seq, Content: e.content}); err != nil {
		return false, err
	}
	return true, e.eachLine(f, line)
}

// first is the oldest entry of the view, or the one that will be.
func (v view) first() uint64 {
	if len(v.segs) == 0 {
		return v.last + 1
	}
	return v.segs[0].h.first
}

// reaches is nil if the journal can be folded from its beginning.
func (v view) reaches(seq uint64, found []foundImage) error {
	if v.first() <= 1 {
		return nil
	}
	u := &Unreachable{Seq: seq, First: v.first()}
	for _, i := range found {
		switch {
		case i.bad != nil:
			u.Bad = i.bad
		case i.seq+1 >= u.First && (u.Oldest == 0 || i.seq < u.Oldest):
			u.Oldest = i.seq
		}
	}
	return u
}

// imageFolder is a folder whose images somebody else may be replacing.
type imageFolder struct {
	files Files
	dir   string
}

// foundImage is a generation that was looked at.
type foundImage struct {
	seq uint64
	bad error // it does not check
}

// at opens the newest image that is not after seq and checks as a whole; e is
// nil if there is none. found is what it saw on the way.
func (d imageFolder) at(seq uint64) (e *envelope, f File, found []foundImage, err error) {
	const tries = 5 // each one needs another image to be committed meanwhile
	for range tries {
		var again bool
		if e, f, found, again, err = d.look(seq); err != nil || !again {
			break
		}
	}
	return e, f, found, err
}

// look is one try of at, newest first: what is committed between two steps is
// newer than what was wanted, or found at its other name. again: a line file
// went that was there a moment ago.
func (d imageFolder) look(seq uint64) (e *envelope, f File, found []foundImage, again bool, err error) {
	for _, name := range []string{imageFile, prevFile} {
		e, err := readEnvelope(d.files, d.dir, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && e.seq > seq {
			found = append(found, foundImage{seq: e.seq})
			continue
		}
		if err == nil {
			f, err = d.open(e)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			found, again = append(found, foundImage{bad: &Damage{File: e.tasks, What: "file is missing"}}), true
		case errors.Is(err, ErrDamaged):
			found = append(found, foundImage{bad: err})
		case err != nil:
			return nil, nil, nil, false, err
		default:
			return e, f, found, false, nil
		}
	}
	return nil, nil, found, again, nil
}

// open opens an image's line file, and checks it; what is opened stays, whatever
// becomes of its name.
func (d imageFolder) open(e *envelope) (File, error) {
	f, err := d.files.Open(filepath.Join(d.dir, e.tasks))
	if err != nil {
		return nil, fmt.Errorf("read image: %w", err)
	}
	if err := e.checkTasks(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
