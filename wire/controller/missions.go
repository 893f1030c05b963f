package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"apollo11/engine"
	"apollo11/engine/mission"
)

const (
	rescan = 5 * time.Second       // between looks where no notice comes: some file systems send none
	settle = 50 * time.Millisecond // from a notice to the look: an editor's save is several
)

// extensions are those of mission files.
var extensions = []string{".toml", ".yaml", ".yml"}

// missions keeps the engine told which missions the folder holds, and which
// files came that their triggers wait for. All of it is for one goroutine.
type missions struct {
	dir  string // of mission files; it need not be there
	base string // what patterns of files start from
	do   func(context.Context, engine.Command) (engine.Answer, error)
	now  func() time.Time
	log  *slog.Logger

	rescan time.Duration

	known   map[string]*missionFile // by path
	readAt  time.Time
	told    bool                  // the engine knows what is known
	list    []engine.NamedMission // as it was told
	wanted  []awaited
	came    map[arrival]*look
	failed  string          // what went wrong with the folder, said once
	without map[string]bool // folders of which no notice comes, said once
}

// missionFile is what was last read from one file.
type missionFile struct {
	text    string
	mission *mission.Mission // when it was last right; nil: never
	fault   string           // of the text
}

func newMissions(o *Options, e *engine.Engine) (*missions, error) {
	whole, err := filepath.Abs(o.Missions)
	return &missions{
		dir: o.Missions, base: filepath.Dir(whole), do: e.Do, now: o.Now, log: o.Log, rescan: rescan,
		known: map[string]*missionFile{}, came: map[arrival]*look{}, without: map[string]bool{},
	}, err
}

// run looks whenever something changes, and now and then, until ctx ends.
func (s *missions) run(ctx context.Context) {
	var events chan fsnotify.Event
	var troubles chan error
	notices, err := fsnotify.NewWatcher()
	if err != nil {
		s.log.Warn("no notice of changed mission files: they are looked at now and then", "every", s.rescan, "error", err)
	} else {
		defer notices.Close()
		events, troubles = notices.Events, notices.Errors
		s.watch(notices)
	}
	timer := time.NewTimer(settle) // what changed since the first look
	defer timer.Stop()
	changed := true
	for {
		select {
		case <-ctx.Done():
			return
		case <-events:
			if !changed {
				changed = true
				timer.Reset(settle)
			}
			continue
		case <-troubles: // such as too many notices at once: the next look sees all
			continue
		case <-timer.C:
		}
		timer.Reset(s.turn(ctx, changed))
		changed = false
		if notices != nil {
			s.watch(notices)
		}
	}
}

// turn looks at the files that came, and at the missions if something changed or
// may have; it says when to look again.
func (s *missions) turn(ctx context.Context, changed bool) time.Duration {
	now := s.now()
	if changed || now.Sub(s.readAt) >= s.rescan {
		s.readAt = now
		if changed := s.read(); s.failed == "" && (changed || !s.told) {
			s.tell(ctx) // not before the folder could be read: missions that seem gone lose their memory
		}
	}
	return s.files(ctx, now)
}

// read reads the folder; changed says that it holds something else than before.
func (s *missions) read() (changed bool) {
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.fail(err)
		return false
	}
	s.failed = ""
	there := map[string]bool{}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || !slices.Contains(extensions, filepath.Ext(e.Name())) {
			continue
		}
		path := filepath.Join(s.dir, e.Name())
		text, err := readFile(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoFile) {
			continue
		}
		there[path] = true
		changed = s.take(path, text, err) || changed
	}
	for path := range s.known {
		if !there[path] {
			delete(s.known, path)
			changed = true
		}
	}
	return changed
}

// fail says what is wrong with the folder, once: what was read stays.
func (s *missions) fail(err error) {
	if s.failed != err.Error() {
		s.failed = err.Error()
		s.log.Error("mission files can't be read; those that were read stay", "error", err)
	}
}

var errNoFile = errors.New("no regular file")

// readFile reads a mission file, a byte more than may be at most.
func readFile(path string) (string, error) {
	if info, err := os.Stat(path); err != nil {
		return "", err
	} else if !info.Mode().IsRegular() {
		return "", errNoFile
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mission.MaxFile+1))
	return string(text), err
}

// take notes what a file says now, and reports whether that is another thing.
func (s *missions) take(path, text string, err error) bool {
	f := s.known[path]
	if f != nil && err == nil && f.text == text || f != nil && err != nil && f.fault == err.Error() {
		return false
	}
	if f == nil {
		f = &missionFile{}
		s.known[path] = f
	}
	f.text, f.fault = text, ""
	var m *mission.Mission
	if err == nil {
		m, err = mission.Parse(path, []byte(text))
	}
	if err == nil {
		f.mission = m
		return true
	}
	f.fault = err.Error()
	for line := range strings.SplitSeq(f.fault, "\n") {
		s.log.Error("mission refused", "fault", line, "stays", f.mission != nil)
	}
	return true
}

// tell tells the engine all missions.
func (s *missions) tell(ctx context.Context) {
	before := s.list
	s.list = nil
	first := map[string]string{}
	for _, right := range []bool{true, false} { // what is no mission takes no name from one
		for _, path := range sortedKeys(s.known) {
			if f := s.known[path]; (f.mission != nil) == right {
				s.name(path, f, first)
			}
		}
	}
	_, err := s.do(ctx, engine.SetMissions{Missions: slices.Clone(s.list)})
	if s.told = err == nil; !s.told {
		s.list = before // which is what the triggers are counted by
	}
	if err != nil && ctx.Err() == nil {
		s.log.Error("the controller does not take the missions; they are offered again", "after", s.rescan, "error", err)
	}
	s.want()
}

// name adds a file to the list, under a name that no other has.
func (s *missions) name(path string, f *missionFile, first map[string]string) {
	one := engine.NamedMission{
		Name: strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)), File: path, Mission: f.mission, Fault: f.fault,
	}
	if f.mission != nil {
		one.Name = f.mission.Name
	}
	if other := first[one.Name]; other != "" {
		s.log.Error("mission refused", "fault", fmt.Sprintf("%s: the name %s is taken by %s: rename one", path, one.Name, other))
		return
	}
	first[one.Name] = path
	s.list = append(s.list, one)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// watch asks for notice of the folders that matter, as far as they are there.
func (s *missions) watch(notices *fsnotify.Watcher) {
	dirs := s.folders()
	if _, err := os.Stat(s.dir); err == nil {
		dirs = append(dirs, s.dir)
	} else {
		dirs = append(dirs, s.base) // for the day that it comes
	}
	watched := notices.WatchList()
	for _, dir := range watched {
		if !slices.Contains(dirs, dir) {
			notices.Remove(dir) // it is gone already, if this fails
		}
	}
	for _, dir := range dirs {
		if slices.Contains(watched, dir) {
			continue
		}
		err := notices.Add(dir)
		if err != nil && !s.without[dir] {
			s.log.Warn("no notice of changes in a folder: it is looked at now and then", "folder", dir, "every", s.rescan, "error", err)
		}
		s.without[dir] = err != nil
	}
}
