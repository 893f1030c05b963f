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
	"sync/atomic"
	"time"
)

// fingerprint is what a unit's hash is made of, kept so that an attempt does
// not read its program again that has not changed.
type fingerprint struct {
	text  [sha256.Size]byte // of the manifest
	files []string          // programs within the units folder, sorted
	last  atomic.Pointer[fingerprinted]
}

// fingerprinted is a hash as it was, good as long as the files look the same.
type fingerprinted struct {
	looks []appearance
	hash  string
}

// appearance is what shows that a file has not been written to.
type appearance struct {
	size  int64
	mtime time.Time
}

func newFingerprint(m *Manifest, text []byte) *fingerprint {
	f := &fingerprint{text: sha256.Sum256(text)}
	for _, s := range m.steps() {
		if file := m.ownProgram(s); file != "" {
			f.files = append(f.files, file)
		}
	}
	slices.Sort(f.files)
	f.files = slices.Compact(f.files)
	return f
}

// ownProgram is a step's file within the units folder; empty: it has none there.
func (m *Manifest) ownProgram(s Step) string {
	switch {
	case s.none(), m.Engine == Shell, m.Engine == Container, m.Engine == Python && s.Args[0] == "-c":
		return ""
	case m.Engine == Python, !filepath.IsAbs(s.Args[0]) && strings.ContainsRune(s.Args[0], '/'):
		return filepath.Join(m.Dir, s.Args[0])
	}
	if rest, err := filepath.Rel(m.Dir, s.Args[0]); err == nil && filepath.IsAbs(s.Args[0]) && filepath.IsLocal(rest) {
		return s.Args[0]
	}
	return ""
}

// Hash is the SHA-256 over the manifest's text and the programs that it runs
// from the units folder, as they are now. The image of a container is no part
// of it: only an attempt learns it, and puts it into its outcome's hash.
func (m *Manifest) Hash() (string, error) {
	f := m.print
	looks := make([]appearance, len(f.files))
	for i, file := range f.files {
		info, err := os.Stat(file)
		if err != nil {
			return "", fmt.Errorf("unit %s: %w", m.Unit.Name, err)
		}
		looks[i] = appearance{info.Size(), info.ModTime()}
	}
	if last := f.last.Load(); last != nil && slices.Equal(last.looks, looks) {
		return last.hash, nil
	}
	sum := sha256.New()
	sum.Write(f.text[:])
	for _, file := range f.files {
		if err := addFile(sum, file); err != nil {
			return "", fmt.Errorf("unit %s: %w", m.Unit.Name, err)
		}
	}
	hash := hex.EncodeToString(sum.Sum(nil))
	f.last.Store(&fingerprinted{looks, hash})
	return hash, nil
}

// addFile adds a file's own hash, so that no two sequences of files look the same.
func addFile(to io.Writer, name string) error {
	f, err := os.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, &fs.PathError{Op: "read", Path: name, Err: errNotRegular})
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return err
	}
	to.Write(sum.Sum(nil))
	return nil
}

// withImage is a unit's hash together with the image that it ran in.
func withImage(hash, image string) string {
	sum := sha256.Sum256([]byte(hash + "\n" + image))
	return hex.EncodeToString(sum[:])
}

// Hashes are the units' hashes by name, for those that can be known before an
// attempt: not of containers, nor where a program is missing.
func (s *Set) Hashes() map[string]string {
	all := map[string]string{}
	for _, m := range s.units {
		if m.Engine == Container {
			continue
		}
		if hash, err := m.Hash(); err == nil {
			all[m.Unit.Name] = hash
		}
	}
	return all
}
