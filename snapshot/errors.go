package snapshot

import (
	"errors"
	"fmt"
	"syscall"
)

var (
	// ErrLocked: another process has the data folder open. The text names its pid.
	ErrLocked = errors.New("in use by another process")
	// ErrDamaged: something on disk does not check and a torn tail does not
	// explain it. Every such error is a *Damage; nothing was changed.
	ErrDamaged = errors.New("damaged")
	// ErrLost: the disk failed in a way that leaves unknown what is on it. The
	// store stays dead; only a new start, which reads the disk again, may go on.
	ErrLost = errors.New("journal lost its disk")
	// ErrMoved: the folder, or a file of it that is in use, is not under its name
	// any more. It comes with ErrLost.
	ErrMoved = errors.New("deleted, moved or replaced while in use")
	// ErrTooLarge: the batch is over MaxBatch or MaxLines, or one entry is over
	// MaxLine. Nothing was written.
	ErrTooLarge = errors.New("too large for the journal")
	// ErrEntry: an entry is empty or has a byte that is not printable ASCII; a
	// fault of the caller. Nothing was written.
	ErrEntry = errors.New("entry is not printable ASCII")
	// ErrGone: the entries asked for are older than what is kept. Every such
	// error is a *Gone.
	ErrGone = errors.New("no longer kept")
	// ErrVersion: a file was written by a newer version of this program.
	ErrVersion = errors.New("written by a newer version")
	// ErrImage: NewImage was called for a seq that is not after the newest image,
	// is after the journal's end, or while another image is being written.
	ErrImage = errors.New("no image can be made")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("store is closed")
)

// Damage says where a check failed. It wraps ErrDamaged.
type Damage struct {
	File   string // base name
	Offset int64  // of the first byte that is wrong
	Seq    uint64 // of the first entry that cannot be read; 0 = not about an entry
	What   string
	Hint   string // a command that can be typed; empty when only reading

	hopeless bool // neither image nor beginning: nothing can be kept
}

func (d *Damage) Error() string {
	s := fmt.Sprintf("%s is damaged at byte %d", d.File, d.Offset)
	if d.Seq != 0 {
		s += fmt.Sprintf(" (seq %d)", d.Seq)
	}
	s += ": " + d.What
	if d.Hint != "" {
		s += "; nothing was changed; see: " + d.Hint
	}
	return s
}

// Unwrap makes errors.Is(err, ErrDamaged) true.
func (d *Damage) Unwrap() error { return ErrDamaged }

// Gone names the oldest entry that can still be read. It wraps ErrGone.
type Gone struct{ First uint64 }

func (g *Gone) Error() string {
	return fmt.Sprintf("entries before seq %d are no longer kept", g.First)
}

// Unwrap makes errors.Is(err, ErrGone) true.
func (g *Gone) Unwrap() error { return ErrGone }

// noRoom tells a full disk, which passes, from a broken one, which does not.
func noRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
