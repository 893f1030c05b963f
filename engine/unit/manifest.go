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

// Engine is how a unit's steps become processes.
type Engine uint8

const (
	Shell Engine = iota // a text for /bin/sh -c
	Exec                // a program with its arguments
	engines
)

var engineNames = [engines]string{"shell", "exec"}

func (e Engine) String() string {
	if e < engines {
		return engineNames[e]
	}
	return fmt.Sprintf("engine(%d)", uint8(e))
}

func parseEngine(text string) (Engine, error) {
	for e := Shell; e < engines; e++ {
		if engineNames[e] == text {
			return e, nil
		}
	}
	return Shell, fmt.Errorf("unknown engine %q: this build knows %s", task.Printable(text), strings.Join(engineNames[:], ", "))
}

// Manifest is a unit as its file describes it.
type Manifest struct {
	Unit   task.Unit
	Engine Engine
	Dir    string        // absolute folder of the file
	Env    []string      // the variables that are inherited
	Grace  time.Duration // from TERM to KILL

	// Program and arguments of each step; empty: no such step.
	Prepare, Execute, Cleanup []string
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
}

// Set is the units of one folder.
type Set struct {
	Faults []Fault // of the files that are left out
	units  []*Manifest
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
		m, faults := parse(file, text, d)
		set.Faults = append(set.Faults, faults...)
		if m != nil {
			m.Dir = abs
			set.units = append(set.units, m)
		}
	}
	return set, nil
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

// Units are the contracts, sorted by name.
func (s *Set) Units() []task.Unit {
	list := make([]task.Unit, len(s.units))
	for i, m := range s.units {
		list[i] = m.Unit
	}
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
