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
	"regexp"
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
		for _, found := range mention.FindAllStringSubmatch(strings.Join(s.Args, "\n"), -1) {
			f.files = append(f.files, filepath.Join(m.Dir, found[1]))
		}
	}
	slices.Sort(f.files)
	f.files = slices.Compact(f.files)
	return f
}

// mention is a file beside the manifest that a step names by $APOLLO_UNIT_DIR.
var mention = regexp.MustCompile(`\$\{?APOLLO_UNIT_DIR\}?["']?/((?:[A-Za-z0-9_-]+[./]?)+)`)

// ownProgram is a step's file within the units folder; empty: it has none there,
// or an input says which.
func (m *Manifest) ownProgram(s Step) string {
	if s.none() || m.Engine == Shell || m.Engine == Container || m.Engine == Python && s.Args[0] == "-c" {
		return ""
	}
	name := strings.ReplaceAll(s.Args[0], "${APOLLO_UNIT_DIR}", m.Dir)
	switch {
	case m.Engine == Exec && !strings.ContainsRune(name, '/'), reference.MatchString(name):
		return ""
	case !filepath.IsAbs(name):
		return filepath.Join(m.Dir, name)
	}
	if rest, err := filepath.Rel(m.Dir, name); err != nil || !filepath.IsLocal(rest) {
		return ""
	}
	return name
}

// Hash is the SHA-256 over the manifest's text and the programs that it runs or
// names in the units folder, as they are now; what is no file there does not count. The image of a container is no part
// of it: only an attempt learns it, and puts it into its outcome's hash.
func (m *Manifest) Hash() (string, error) {
	f := m.print
	looks := make([]appearance, len(f.files))
	for i, file := range f.files {
		if info, err := os.Stat(file); err == nil && !info.IsDir() {
			looks[i] = appearance{info.Size(), info.ModTime()}
		}
	}
	if last := f.last.Load(); last != nil && slices.Equal(last.looks, looks) {
		return last.hash, nil
	}
	sum := sha256.New()
	sum.Write(f.text[:])
	for _, file := range f.files {
		name, _ := filepath.Rel(m.Dir, file) // the folder may be another on each host
		fmt.Fprintf(sum, "%q\n", name)
		if err := addFile(sum, file); err != nil {
			return "", fmt.Errorf("unit %s: %w", m.Unit.Name, err)
		}
	}
	hash := hex.EncodeToString(sum.Sum(nil))
	f.last.Store(&fingerprinted{looks, hash})
	return hash, nil
}

// addFile adds a file's own hash; of none, nothing.
func addFile(to io.Writer, name string) error {
	f, err := os.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		return nil
	}
	if err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, &fs.PathError{Op: "read", Path: name, Err: errNotRegular})
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return err
	}
	to.Write(sum.Sum(nil))
	return nil
}

// withImage is a unit's hash together with the image that it ran in, if any.
func withImage(hash, image string) string {
	if image == "" {
		return hash
	}
	sum := sha256.Sum256([]byte(hash + "\n" + image))
	return hex.EncodeToString(sum[:])
}

// Hashes are the units' hashes by name, for those that can be known before an
// attempt: not of containers, nor where a program cannot be read.
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
