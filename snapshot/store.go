package snapshot

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"time"
)

// Options say where the journal is and what it uses. Dir must be set.
type Options struct {
	Dir         string
	SegmentSize int64        // bytes after which a new segment starts; 0 = 64 MiB
	Log         *slog.Logger // nil = discard
	Files       Files        // zero = the real disk
}

const (
	defaultSegmentSize = 64 << 20
	lockFile           = "LOCK"
)

// Store is an open data folder.
type Store struct {
	dir   string
	size  int64
	log   *slog.Logger
	files Files
	lock  io.Closer

	// Owned by the goroutine that appends.
	tip
	buf    []byte // the batch being framed
	spare  spare
	looked time.Time // when an Append last did
	dead   error     // why nothing can be appended any more

	// mu guards what the appender, readers and the image writer share. It is
	// held to copy a few words, never during I/O.
	mu     sync.Mutex
	view   view
	newest File // the segment appended to, for Look
	images generations
	saving bool // an ImageWriter is open
}

// tip is the segment that is appended to.
type tip struct {
	active File
	head   header
	dayEnd time.Time // it is over at this moment
	count  uint64    // entries in it
	end    int64     // its durable bytes; nothing is behind them between calls
}

// Open locks the folder, recovers it and starts a new segment. now is the wall
// time; it is written into the segment and rules rotation.
//
// A torn tail is cut, with a copy of the cut bytes in a .torn file and a
// warning. Damage that a crash does not explain is a *Damage and leaves all
// files as they were; that holds for old segments too, of which the newest 64 MiB
// are checked. A folder that another process holds is ErrLocked.
func Open(o Options, now time.Time) (*Store, error) {
	s := &Store{dir: o.Dir, size: o.SegmentSize, log: o.Log, files: o.Files.orDisk()}
	if s.size <= 0 {
		s.size = defaultSegmentSize
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if err := s.files.MakeDir(s.dir); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	var err error
	if s.lock, err = s.files.Lock(s.path(lockFile)); err != nil {
		return nil, fmt.Errorf("data folder %s: %w", s.dir, err)
	}
	if err = s.start(now); err != nil {
		return nil, errors.Join(err, s.lock.Close())
	}
	return s, nil
}

func (s *Store) start(now time.Time) error {
	found, err := survey(s.files, s.dir, coveredBudget)
	if err != nil {
		return err
	}
	if err := s.tidy(found); err != nil {
		return fmt.Errorf("recover %s: %w", s.dir, err)
	}
	s.images = found.images
	s.view = found.view
	s.spare = spare{files: s.files, dir: s.dir, log: s.log}
	s.spare.take()
	return s.begin(found.nextHeader(now))
}

// Last is the seq of the newest durable entry; 0 when there is none.
func (s *Store) Last() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view.last
}

// Append makes one batch durable: one write, one sync. The entries get the seqs
// after Last, in order. now only decides whether a new segment is due first.
//
// ErrTooLarge and ErrEntry mean that nothing happened. Any other error wraps
// ErrLost: it is unknown whether the batch is on disk, and the store stays dead.
func (s *Store) Append(now time.Time, entries [][]byte) error {
	if s.dead != nil || len(entries) == 0 {
		return s.dead
	}
	if err := checkBatch(entries); err != nil {
		return err
	}
	if s.end >= s.size || !now.Before(s.dayEnd) {
		if err := s.rotate(now); err != nil {
			return s.die(err)
		}
	}
	last, crc := s.frame(entries)
	if err := s.put(s.buf); err != nil {
		return s.die(err)
	}
	// After the sync: what went into a file that is gone is not acknowledged.
	if err := s.lookAgain(now); err != nil {
		return s.die(err)
	}
	s.count += uint64(len(entries))
	s.mu.Lock()
	s.view.last, s.view.crc, s.view.end = last, crc, s.end
	s.mu.Unlock()
	return nil
}

// checkBatch holds the entries against the format's limits.
func checkBatch(entries [][]byte) error {
	if len(entries) > MaxLines {
		return fmt.Errorf("batch of %d entries, at most %d: %w", len(entries), MaxLines, ErrTooLarge)
	}
	size := 0
	for i, e := range entries {
		if len(e)+Overhead > MaxLine {
			return fmt.Errorf("entry %d of the batch has %d bytes: %w", i, len(e), ErrTooLarge)
		}
		if len(e) == 0 || !printable(e) {
			return fmt.Errorf("entry %d of the batch: %w", i, ErrEntry)
		}
		size += len(e) + Overhead
	}
	if size > MaxBatch {
		return fmt.Errorf("batch of %d bytes, at most %d: %w", size, MaxBatch, ErrTooLarge)
	}
	return nil
}

// frame fills s.buf with the batch's lines.
func (s *Store) frame(entries [][]byte) (last uint64, crc uint32) {
	first := s.view.last + 1 // only this goroutine writes it
	s.buf = s.buf[:0]
	for i, e := range entries {
		last = first + uint64(i)
		l := line{seq: last, batch: first, last: i == len(entries)-1, body: e}
		s.buf, crc = appendLine(s.buf, s.head.salt, l)
	}
	return last, crc
}

// die ends appending for good: after a failed sync the kernel may call lost
// pages clean, so a second try would lie.
func (s *Store) die(err error) error {
	if s.dead = err; !errors.Is(err, ErrLost) {
		s.dead = fmt.Errorf("%w: %w", ErrLost, err)
	}
	s.log.Error("journal lost", "dir", s.dir, "error", err)
	return s.dead
}

// Full reports that the disk is full. Then the batches that are still appended
// come out of the last of the room, and the engine takes no new work until Full
// says that room has come back. Only the goroutine that appends may call it.
func (s *Store) Full() bool {
	return s.spare.full()
}

// Close writes the closing line and releases the folder. The store must not be
// used after it.
func (s *Store) Close() error {
	if s.lock == nil {
		return ErrClosed
	}
	var err error
	if s.dead == nil {
		err = s.put(encodeEnd(s.view.last, s.count, s.head.salt))
		s.dead = ErrClosed
	}
	if s.active != nil {
		err = errors.Join(err, s.active.Close())
	}
	err = errors.Join(err, s.lock.Close())
	s.active, s.lock = nil, nil
	if err != nil {
		return fmt.Errorf("close %s: %w", s.dir, err)
	}
	return nil
}

func (s *Store) path(name string) string { return filepath.Join(s.dir, name) }

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
