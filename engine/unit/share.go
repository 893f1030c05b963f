package unit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"apollo11/engine/task"
)

// Share is a folder for the files that units hand on to others. Executors whose
// shares have the same id see the same files.
//
// Within it each run has a folder, and in that each attempt has its own: a
// repeated attempt never writes over what a consumer reads.
type Share struct {
	Dir string // absolute
	ID  string // without a slash
}

// attemptsFolder holds a locked file for each attempt that writes into the
// share. One that is not locked was left by an executor that is no more.
const attemptsFolder = ".attempts"

// place is an attempt's folder within a share while it writes there.
type place struct {
	dir  string
	mark *os.File
}

// openPlace makes the folder of one attempt.
func (s *Share) openPlace(as task.Assignment) (p place, err error) {
	name := fileName(runOf(as)) + "/" + fileName(unitOf(as)) + "-" + as.Version.String()
	p.dir = filepath.Join(s.Dir, filepath.FromSlash(name))
	marks := filepath.Join(s.Dir, attemptsFolder)
	if err := os.MkdirAll(marks, 0o700); err != nil {
		return p, fmt.Errorf("share: %w", err)
	}
	if p.mark, err = os.CreateTemp(marks, markPrefix()); err != nil {
		return p, fmt.Errorf("share: %w", err)
	}
	tryLock(p.mark)
	_, err = p.mark.WriteString(name)
	if err == nil {
		err = removeAll(p.dir) // of the same version: never handed on, since that version still runs
	}
	if err == nil {
		err = os.MkdirAll(p.dir, 0o700)
	}
	if err != nil {
		p.drop()
		return p, fmt.Errorf("share: %w", err)
	}
	return p, nil
}

// keep ends the attempt; its files stay until the run is removed.
func (p *place) keep() {
	if p.mark != nil {
		os.Remove(p.mark.Name())
		p.mark.Close()
	}
	p.mark = nil
}

// drop ends an attempt that hands nothing on.
func (p *place) drop() {
	if p.mark != nil {
		removeAll(p.dir)
		os.Remove(filepath.Dir(p.dir)) // if nothing else of the run is there
	}
	p.keep()
}

// Sweep deletes what attempts of executors that are no more have left half done.
// It leaves the attempts of other hosts alone: their locks may not be seen here.
func (s *Share) Sweep() {
	marks, _ := filepath.Glob(filepath.Join(s.Dir, attemptsFolder, markPrefix()+"*"))
	for _, name := range marks {
		s.sweepOne(name)
	}
}

func (s *Share) sweepOne(name string) {
	mark, err := os.OpenFile(name, os.O_RDWR|nonblock|noFollow, 0)
	if err != nil {
		return
	}
	defer mark.Close()
	info, err := mark.Stat()
	if err != nil || !info.Mode().IsRegular() || !ours(info) || !tryLock(mark) {
		return
	}
	text, err := os.ReadFile(name)
	if run, attempt, ok := strings.Cut(string(text), "/"); err == nil && ok && fileName(run) == run && fileName(attempt) == attempt {
		removeAll(filepath.Join(s.Dir, run, attempt))
		os.Remove(filepath.Join(s.Dir, run))
	}
	os.Remove(name)
}

// markPrefix begins the names of this host's marks.
func markPrefix() string {
	host, _ := os.Hostname()
	return fileName("h"+host) + "@"
}

// Remove deletes the files that a run has handed on, or a task without a run. A
// run that left none is removed already.
func (s *Share) Remove(run string) error {
	if err := task.CheckID(run); err != nil {
		return fmt.Errorf("share: remove: %w", err)
	}
	err := removeAll(filepath.Join(s.Dir, fileName(run)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("share: remove %s: %w", run, err)
	}
	return nil
}

// Expire deletes the files of runs to which nothing was added since a moment,
// and returns their folders' names.
func (s *Share) Expire(since time.Time) (gone []string, err error) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return nil, fmt.Errorf("share: %w", err)
	}
	var faults []error
	for _, e := range entries {
		if !e.IsDir() || e.Name()[0] == '.' || !untouched(filepath.Join(s.Dir, e.Name()), since) {
			continue
		}
		if err := removeAll(filepath.Join(s.Dir, e.Name())); err != nil {
			faults = append(faults, fmt.Errorf("share: %w", err))
			continue
		}
		gone = append(gone, e.Name())
	}
	return gone, errors.Join(faults...)
}

// untouched reports whether neither a run's folder nor those of its attempts
// have changed since a moment.
func untouched(dir string, since time.Time) bool {
	old := func(info fs.FileInfo, err error) bool { return err == nil && info.ModTime().Before(since) }
	if !old(os.Stat(dir)) {
		return false
	}
	attempts, err := os.ReadDir(dir)
	for _, a := range attempts {
		if !old(a.Info()) {
			return false
		}
	}
	return err == nil
}

// runOf is the folder of an attempt's run; a task without one has its own.
func runOf(as task.Assignment) string {
	if as.Run == "" {
		return as.Task
	}
	return as.Run
}

// unitOf is the unit's part of a task's id, which is RUN:UNIT.
func unitOf(as task.Assignment) string {
	return strings.TrimPrefix(as.Task, as.Run+":")
}

// fileName makes an id a file's name: what has a meaning to a file system, and
// the sign for that, is written as %XX.
func fileName(id string) string {
	var b strings.Builder
	for i := range len(id) {
		c := id[i]
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.' && i > 0
		if plain {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
