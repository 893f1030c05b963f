package controller

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"apollo11/engine"
	"apollo11/engine/mission"
)

const (
	quiet       = 200 * time.Millisecond // a file that has not changed for so long is whole
	quietEmpty  = 2 * time.Second        // an empty one: who made it may not have begun to write
	offerAgain  = time.Minute            // a file that the engine did not take
	mostArrived = 10_000                 // files of one pattern that are looked at
)

// awaited is a trigger that waits for files.
type awaited struct {
	mission string
	trigger int    // index
	pattern string // absolute
}

// arrival is a file that a trigger waits for.
type arrival struct {
	mission string
	trigger int
	path    string
}

// look is how a file looked last.
type look struct {
	stamp string
	since time.Time // it has looked so
	told  bool      // the engine knows of it
	fault string    // why the engine did not take it, said once
	again time.Time // when it is offered again, after it was not taken; zero: it was not offered yet
}

// want gathers the patterns of all missions.
func (s *missions) want() {
	s.wanted = nil
	for _, m := range s.list {
		if m.Mission == nil {
			continue
		}
		for n, t := range m.Mission.Triggers {
			if t.Kind != mission.File {
				continue
			}
			pattern := t.What
			if !filepath.IsAbs(pattern) {
				pattern = filepath.Join(escapeGlob(s.base), pattern)
			}
			s.wanted = append(s.wanted, awaited{m.Name, n, pattern})
		}
	}
}

// folders are those in which files may come, or in which such a folder may.
func (s *missions) folders() (dirs []string) {
	for _, w := range s.wanted {
		for pattern := filepath.Dir(w.pattern); ; pattern = filepath.Dir(pattern) {
			found, _ := filepath.Glob(pattern) // it was checked
			before := len(dirs)
			for _, dir := range found {
				if isFolder(dir) {
					dirs = append(dirs, dir)
				}
			}
			if len(dirs) > before || pattern == filepath.Dir(pattern) {
				break
			}
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// files tells the engine of each file that came and is whole, and says when to
// look again.
func (s *missions) files(ctx context.Context, now time.Time) time.Duration {
	wait := s.rescan
	there := map[arrival]bool{}
	for _, w := range s.wanted {
		found, _ := filepath.Glob(w.pattern)
		for n, path := range found {
			a := arrival{w.mission, w.trigger, path}
			if n < mostArrived && !hidden(w.pattern, path) {
				there[a] = true
				wait = min(wait, s.file(ctx, a, now))
			}
		}
	}
	for a := range s.came {
		if !there[a] {
			delete(s.came, a)
		}
	}
	return wait
}

// hidden reports a file whose name begins with a dot, as unfinished copies do,
// unless the pattern asks for it.
func hidden(pattern, path string) bool {
	return strings.HasPrefix(filepath.Base(path), ".") && !strings.HasPrefix(filepath.Base(pattern), ".")
}

// file looks at one file: after two looks with nothing changed in between it is whole.
func (s *missions) file(ctx context.Context, a arrival, now time.Time) time.Duration {
	info, err := os.Stat(a.path)
	if err != nil || !info.Mode().IsRegular() {
		return s.rescan
	}
	stamp := fmt.Sprintf("%d-%d", info.Size(), info.ModTime().UnixNano())
	long := quiet
	if info.Size() == 0 {
		long = quietEmpty
	}
	l := s.came[a]
	if l == nil || l.stamp != stamp {
		s.came[a] = &look{stamp: stamp, since: now}
		return long
	}
	if left := long - now.Sub(l.since); !l.told && left > 0 {
		return left
	}
	if l.told || now.Before(l.again) {
		return s.rescan
	}
	_, err = s.do(ctx, engine.FileSeen{Mission: a.mission, Trigger: a.trigger, Path: a.path, Stamp: stamp})
	l.told, l.again = err == nil, now.Add(offerAgain)
	if err != nil && ctx.Err() == nil && l.fault != err.Error() {
		l.fault = err.Error()
		s.log.Error("a file starts no mission; it is offered again", "file", a.path, "mission", a.mission, "after", offerAgain, "error", err)
	}
	return s.rescan
}
