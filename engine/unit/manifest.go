package unit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"apollo11/engine/task"
)

// Manifest is a unit as its file describes it.
type Manifest struct {
	Unit   task.Unit
	Engine Engine
	Dir    string        // absolute folder of the file
	Env    []string      // the variables that are inherited
	Grace  time.Duration // from TERM to KILL

	Prepare, Execute, Undo, Cleanup Step

	Secrets   []Secret     // sorted by variable
	Python    *Interpreter // of engine python only
	Container *Image       // of engine container only

	print *fingerprint
	found string // what find has found
}

// steps are those of a manifest, by key.
func (m *Manifest) steps() map[string]Step {
	return map[string]Step{"prepare": m.Prepare, "execute": m.Execute, "undo": m.Undo, "cleanup": m.Cleanup}
}

// find looks for what the unit's engine needs on this host: the file of an
// interpreter or of a container runtime; empty: nothing.
func (m *Manifest) find() (string, error) {
	switch m.Engine {
	case Python:
		return m.Python.find()
	case Container:
		return findRuntime()
	}
	return "", nil
}

// Defaults are what a manifest may leave out.
type Defaults struct {
	Retries       int
	RetryInterval time.Duration
	Backoff       float64
	Jitter        float64
	Timeout       time.Duration
	Grace         time.Duration
	Env           []string
	ContainerArgs []string // for podman or docker run, before the manifest's own
}

// Set is the units of one folder.
type Set struct {
	Faults      []Fault       // of the files that are left out
	Unavailable []Unavailable // units without a fault that this host cannot run, sorted by name
	units       []*Manifest
}

// Unavailable is a unit that its host cannot run.
type Unavailable struct {
	Unit   task.Unit
	Reason string // what is missing, and what to do

	manifest *Manifest
}

// Load reads every NAME.toml of a folder. A file with a fault is left out, with
// all its faults listed; the error is about the folder itself.
func Load(dir string, d Defaults) (*Set, error) {
	if d.Timeout <= 0 || d.Backoff < 1 {
		return nil, fmt.Errorf("unit defaults: timeout %v and backoff %g: want more than 0, and from 1", d.Timeout, d.Backoff)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("units folder %s: %w", dir, err)
	}
	root, err := os.OpenRoot(abs) // a link that leads out of the folder is refused
	if err != nil {
		return nil, fmt.Errorf("units folder: %w", err)
	}
	defer root.Close()
	names, err := manifests(root.FS())
	if err != nil {
		return nil, fmt.Errorf("units folder %s: %w", dir, err)
	}
	set := &Set{}
	for _, name := range names {
		file := filepath.Join(dir, name)
		text, err := readSome(root, name, longestManifest+1)
		if err != nil {
			set.Faults = append(set.Faults, Fault{File: file, Problem: task.Printable(err.Error())})
			continue
		}
		m, faults := parse(file, abs, text, d)
		set.Faults = append(set.Faults, faults...)
		if m != nil {
			set.add(m)
		}
	}
	return set, nil
}

func (s *Set) add(m *Manifest) {
	var err error
	if m.found, err = m.find(); err != nil {
		s.Unavailable = append(s.Unavailable, Unavailable{m.Unit, task.Printable(err.Error()), m})
		return
	}
	s.units = append(s.units, m)
}

// Stale reports whether what the host has for its units has changed since the
// set was loaded: an interpreter was installed, a container runtime removed.
func (s *Set) Stale() bool {
	for _, u := range s.Unavailable {
		if _, err := u.manifest.find(); err == nil {
			return true
		}
	}
	return slices.ContainsFunc(s.units, func(m *Manifest) bool {
		_, err := m.find()
		return err != nil
	})
}

// Get is the manifest of a unit; nil: there is none.
func (s *Set) Get(name string) *Manifest {
	i, ok := slices.BinarySearchFunc(s.units, name, func(m *Manifest, n string) int { return strings.Compare(m.Unit.Name, n) })
	if !ok {
		return nil
	}
	return s.units[i]
}

// Keep takes over the units whose files have a fault now and had none when old
// was read: a slip while editing takes no unit out of work.
func (s *Set) Keep(old *Set) (kept []string) {
	for _, f := range s.Faults {
		name := strings.TrimSuffix(filepath.Base(f.File), ".toml")
		if m := old.Get(name); m != nil && s.Get(name) == nil {
			s.units = append(s.units, m)
			slices.SortFunc(s.units, func(a, b *Manifest) int { return strings.Compare(a.Unit.Name, b.Unit.Name) })
			kept = append(kept, name)
		}
	}
	return kept
}

// Units are the contracts of what this host can run, sorted by name.
func (s *Set) Units() []task.Unit {
	list := make([]task.Unit, len(s.units))
	for i, m := range s.units {
		list[i] = m.Unit
	}
	return list
}

// Contracts are those of all units without a fault, whether this host can run
// them or not, sorted by name.
func (s *Set) Contracts() []task.Unit {
	list := s.Units()
	for _, u := range s.Unavailable {
		list = append(list, u.Unit)
	}
	slices.SortFunc(list, func(a, b task.Unit) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Stamp is a text that changes when a manifest of the folder does, by names,
// sizes and times of change.
func Stamp(dir string) (string, error) {
	fsys := os.DirFS(dir)
	names, err := manifests(fsys)
	if err != nil {
		return "", fmt.Errorf("units folder %s: %w", dir, err)
	}
	sum := sha256.New()
	for _, name := range names {
		info, err := fs.Stat(fsys, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // went away since
		}
		if err != nil {
			return "", fmt.Errorf("unit %s: %w", name, err)
		}
		fmt.Fprintln(sum, name, info.Size(), info.ModTime().UnixNano())
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// manifests lists the files of a folder that are meant as units, sorted.
func manifests(fsys fs.FS) ([]string, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if name := e.Name(); !e.IsDir() && strings.HasSuffix(name, ".toml") && name[0] != '.' {
			names = append(names, name)
		}
	}
	return names, nil // ReadDir sorts
}

func readSome(root *os.Root, name string, most int64) ([]byte, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errNotRegular)
	}
	return io.ReadAll(io.LimitReader(f, most))
}

var errNotRegular = errors.New("not a regular file")
