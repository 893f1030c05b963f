package snapshot

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// lookEvery is between two looks of Append: one costs as much as a few small
// batches do without their sync.
const lookEvery = 100 * time.Millisecond

// Look holds the folder against what was opened: an error, which wraps ErrLost
// and ErrMoved, says that LOCK or the newest segment is not there any more under
// its name. Bytes that are written then are in no journal that a start would
// find, and another process may have the folder. Any goroutine may look until
// Close; what cannot be told now, as when the disk does not answer, is nil.
func (s *Store) Look() error {
	s.mu.Lock()
	open, name := s.newest, s.view.segs[len(s.view.segs)-1].name
	s.mu.Unlock()
	for _, held := range []struct {
		name string
		open io.Closer
	}{{lockFile, s.lock}, {name, open}} {
		if same, err := s.files.Same(s.path(held.name), held.open); err == nil && !same {
			return fmt.Errorf("%w: data folder %s was %w: its %s is not the file that was opened", ErrLost, s.dir, ErrMoved, held.name)
		}
	}
	return nil
}

// lookAgain looks if the last time was a while ago.
func (s *Store) lookAgain(now time.Time) error {
	if d := now.Sub(s.looked); d >= 0 && d < lookEvery {
		return nil
	}
	s.looked = now
	return s.Look()
}

// isSame reports whether a name still leads to the open file.
func isSame(name string, open io.Closer) (bool, error) {
	now, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	file, ok := open.(interface{ Stat() (fs.FileInfo, error) })
	if !ok {
		return false, errors.ErrUnsupported
	}
	was, err := file.Stat()
	if err != nil { // closed, as at a rotation
		return false, err
	}
	return os.SameFile(now, was), nil
}
