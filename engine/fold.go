package engine

import (
	"bytes"
	"errors"
	"fmt"
)

// Source is a journal to read: the newest image, then what follows it.
type Source interface {
	// ReadImage gives the newest good image: its position and description, once,
	// then its lines. ok is false if there is none.
	ReadImage(load func(seq uint64, content []byte) error, line func([]byte) error) (ok bool, err error)
	// Read gives the entries from a position on, in order.
	Read(from uint64, fn func(seq uint64, body []byte) error) error
}

// recovered is a state read back, with what the next image depends on: a start
// that is soon ended again must not keep images from being taken.
type recovered struct {
	*state
	tail   int    // bytes of the records that follow the image
	imaged uint64 // state version of the image
}

// recoverState folds what a source has into a state.
func recoverState(src Source, progress func(seq uint64)) (recovered, error) {
	s, err := loadImage(src)
	if err != nil {
		return recovered{}, err
	}
	r := recovered{state: s, imaged: s.stateVersion}
	err = follow(src, s.seq+1, progress, func(h happened) error {
		r.tail += h.size
		return s.fold(h)
	})
	if err != nil {
		return recovered{}, err
	}
	return r, nil
}

// follow gives a journal's records from a position on, read ahead.
func follow(src Source, from uint64, progress func(seq uint64), take func(happened) error) error {
	var f fields
	read := func(give func(happened) error) error {
		return src.Read(from, func(seq uint64, body []byte) error {
			wall, r, err := f.record(string(body))
			if err != nil {
				return fmt.Errorf("record %d: %w", seq, err)
			}
			return give(happened{seq, wall, r, len(body)})
		})
	}
	err := ahead(read, func(h happened) error {
		if progress != nil && h.seq%100_000 == 0 {
			progress(h.seq)
		}
		return take(h)
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	return nil
}

// loadImage is the state of the newest image, or an empty one.
func loadImage(src Source) (*state, error) {
	s := loading{state: newState()}
	r := imageReader{}
	err := ahead(func(give func(readLine) error) error { return r.read(src, give) }, s.take)
	if err != nil {
		return nil, fmt.Errorf("%w: image: %w", ErrJournal, err)
	}
	if !r.found {
		return newState(), nil
	}
	if err := s.linkAll(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrJournal, err)
	}
	if s.seq != r.seq {
		return nil, fmt.Errorf("%w: image of seq %d says it is of %d", ErrJournal, r.seq, s.seq)
	}
	if got := r.sum.String(); got != r.hash {
		return nil, fmt.Errorf("%w: image of seq %d: state hash %s, want %s", ErrJournal, r.seq, got, r.hash)
	}
	return s.state, nil
}

// imageReader reads an image's lines, and adds up their hash: a line that reads
// writes back the same, so it is the hash of the state that they make.
type imageReader struct {
	fields fields
	found  bool
	seq    uint64
	hash   string // that it says it has
	sum    lineSum
}

func (r *imageReader) read(src Source, give func(readLine) error) (err error) {
	r.found, err = src.ReadImage(func(seq uint64, content []byte) (err error) {
		r.seq = seq
		r.hash, err = imageHash(content)
		return err
	}, func(line []byte) error {
		r.sum.add(line)
		l, err := r.fields.imageLine(string(line))
		if err != nil {
			return err
		}
		return give(l)
	})
	return err
}

// Verified is what Verify found.
type Verified struct {
	Seq    uint64 // last record
	Tasks  int
	Keys   int
	Hash   string // of the state there
	Images int    // image records whose hash was compared
	Whole  bool   // folded from the first record; else from the oldest image
}

// Verify folds a journal from its beginning, or from its image if older records
// are gone, and compares the state's hash wherever the journal or an image says
// what it has to be.
func Verify(src Source, first uint64, progress func(seq uint64)) (Verified, error) {
	var v Verified
	hashes := map[uint64]string{}
	image, err := loadImage(src)
	if err != nil {
		return v, err
	}
	if image.seq != 0 {
		hashes[image.seq] = image.hash()
	}
	s := newState()
	v.Whole = first <= 1
	if !v.Whole {
		s = image
	}
	if err := knownHashes(src, s.seq+1, hashes); err != nil {
		return v, err
	}
	err = follow(src, s.seq+1, progress, func(h happened) error {
		if err := s.fold(h); err != nil {
			return err
		}
		return v.compare(s, hashes)
	})
	if err != nil {
		return v, err
	}
	v.Seq, v.Tasks, v.Keys, v.Hash = s.seq, s.live, len(s.keys), s.hash()
	return v, nil
}

// knownHashes collects what the journal itself says of its state.
func knownHashes(src Source, from uint64, hashes map[uint64]string) error {
	err := src.Read(from, func(_ uint64, body []byte) error {
		if !bytes.Contains(body, []byte(" image ")) {
			return nil
		}
		if _, r, err := parseRecord(string(body)); err == nil {
			if r, ok := r.(*imaged); ok {
				hashes[r.Seq] = r.Hash
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	return nil
}

var errDiverged = errors.New("the folded state is not the one that was saved")

// compare holds the folded state against what is known of it at this position.
func (v *Verified) compare(s *state, hashes map[uint64]string) error {
	want, ok := hashes[s.seq]
	if !ok {
		return nil
	}
	if got := s.hash(); got != want {
		return fmt.Errorf("%w: at seq %d the hash is %s, saved was %s", errDiverged, s.seq, got, want)
	}
	v.Images++
	return nil
}
