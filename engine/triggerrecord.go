package engine

import (
	"fmt"
	"slices"
	"strings"

	"apollo11/engine/task"
)

// triggerTable is what outlives a restart of missions and their triggers.
type triggerTable struct {
	knownSpecs map[string]knownSpec // by mission
	triggers   map[triggerKey]*triggerMemory
}

// knownSpec says as what a mission is known.
type knownSpec struct{ hash, file string }

// triggerKey names a trigger by its words: it keeps its memory wherever in the
// file it stands.
type triggerKey struct{ mission, trigger string }

// triggerMemory is how far a trigger has come, so that a restart neither loses
// what should start nor starts it twice.
type triggerMemory struct {
	at    int64             // of a time table: its next time
	seen  uint64            // of the others: end of a run, state version or epoch that it has seen
	files map[string]string // by path: the stamp with which it started something, or was left out
	line  []string          // those paths, the oldest first
}

// mostFiles bounds the files that a trigger remembers.
const mostFiles = 10_000

func newTriggerTable() triggerTable {
	return triggerTable{knownSpecs: map[string]knownSpec{}, triggers: map[triggerKey]*triggerMemory{}}
}

// remember notes a file.
func (t *triggerMemory) remember(path, stamp string) {
	if t.files == nil {
		t.files = map[string]string{}
	}
	path = strings.Clone(path)
	if _, again := t.files[path]; again {
		at := slices.Index(t.line, path)
		t.line = slices.Delete(t.line, at, at+1)
	} else if len(t.line) == mostFiles {
		delete(t.files, t.line[0])
		t.line = slices.Delete(t.line, 0, 1)
	}
	t.files[path] = strings.Clone(stamp)
	t.line = append(t.line, path)
}

// memory is a trigger's, made when it is first heard of.
func (s *state) memory(mission, trigger string) *triggerMemory {
	if _, known := s.knownSpecs[mission]; !known {
		panic(brokenRule(fmt.Sprintf("a trigger of mission %q, which is not known", mission)))
	}
	key := triggerKey{mission, trigger}
	t := s.triggers[key]
	if t == nil {
		t = &triggerMemory{}
		s.triggers[triggerKey{strings.Clone(mission), strings.Clone(trigger)}] = t
	}
	return t
}

// missionSet is a mission that can be started by its name from now on.
type missionSet struct {
	Mission string
	Hash    string // of its spec
	File    string
}

func (*missionSet) kind() string { return "mission.set" }
func (r *missionSet) walk(f *fields) {
	f.str("mission", &r.Mission)
	f.str("hash", &r.Hash)
	f.str("file", &r.File)
}

func (r *missionSet) apply(s *state) uint32 {
	if err := task.CheckName(r.Mission); err != nil {
		panic(brokenRule(err.Error()))
	}
	s.knownSpecs[strings.Clone(r.Mission)] = knownSpec{strings.Clone(r.Hash), strings.Clone(r.File)}
	return 0
}

// missionDropped is a mission whose file is gone; its triggers go with it.
type missionDropped struct{ Mission string }

func (*missionDropped) kind() string     { return "mission.drop" }
func (r *missionDropped) walk(f *fields) { f.str("mission", &r.Mission) }
func (r *missionDropped) apply(s *state) uint32 {
	delete(s.knownSpecs, r.Mission)
	for key := range s.triggers {
		if key.mission == r.Mission {
			delete(s.triggers, key)
		}
	}
	return 0
}

// triggerSet is a trigger that waits: from its first day, or for another time
// after some were missed.
type triggerSet struct {
	Mission string
	Trigger string
	Why     string
	At      int64
	Seen    uint64
}

func (*triggerSet) kind() string { return "trigger.next" }
func (r *triggerSet) walk(f *fields) {
	f.str("mission", &r.Mission)
	f.str("trigger", &r.Trigger)
	f.str("why", &r.Why)
	f.moment("at", &r.At)
	f.u64("seen", &r.Seen)
}

func (r *triggerSet) apply(s *state) uint32 {
	t := s.memory(r.Mission, r.Trigger)
	t.at, t.seen = r.At, r.Seen
	return 0
}

// triggerDropped is a trigger that its mission has no more.
type triggerDropped struct{ Mission, Trigger string }

func (*triggerDropped) kind() string { return "trigger.drop" }
func (r *triggerDropped) walk(f *fields) {
	f.str("mission", &r.Mission)
	f.str("trigger", &r.Trigger)
}

func (r *triggerDropped) apply(s *state) uint32 {
	delete(s.triggers, triggerKey{r.Mission, r.Trigger})
	return 0
}

// triggerFired is a trigger whose moment came: it started a run, or was skipped.
type triggerFired struct {
	Mission string
	Trigger string
	Why     string
	Run     string // empty: none
	Skipped string // why none
	At      int64  // its next time
	Seen    uint64
	Path    string // of a file
	Stamp   string
}

func (*triggerFired) kind() string { return "trigger.fire" }
func (r *triggerFired) walk(f *fields) {
	f.str("mission", &r.Mission)
	f.str("trigger", &r.Trigger)
	f.str("why", &r.Why)
	f.str("run", &r.Run)
	f.str("skipped", &r.Skipped)
	f.moment("at", &r.At)
	f.u64("seen", &r.Seen)
	f.str("path", &r.Path)
	f.str("stamp", &r.Stamp)
}

func (r *triggerFired) apply(s *state) uint32 {
	t := s.memory(r.Mission, r.Trigger)
	t.at, t.seen = r.At, r.Seen
	if r.Path != "" {
		t.remember(r.Path, r.Stamp)
	}
	return 0
}

// eventTold is an event that somebody told of.
type eventTold struct {
	Name   string
	Values task.Values
	By     string
}

func (*eventTold) kind() string { return "event" }
func (r *eventTold) walk(f *fields) {
	f.str("name", &r.Name)
	f.values("values", &r.Values)
	f.str("by", &r.By)
}
func (*eventTold) apply(*state) uint32 { return 0 }

// triggerLines adds the missions and their triggers to an image.
func (s *state) triggerLines(g *imaging) {
	for _, name := range sortedNames(s.knownSpecs) {
		k := s.knownSpecs[name]
		g.line("mission", (&missionLine{missionSet{name, k.hash, k.file}}).walk)
	}
	keys := make([]triggerKey, 0, len(s.triggers))
	for key := range s.triggers {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b triggerKey) int {
		return strings.Compare(a.mission+" "+a.trigger, b.mission+" "+b.trigger)
	})
	for _, key := range keys {
		t := s.triggers[key]
		g.line("trigger", (&triggerLine{triggerSet{Mission: key.mission, Trigger: key.trigger, At: t.at, Seen: t.seen}}).walk)
		for n, path := range t.line {
			g.line("file", (&fileLine{key.mission, key.trigger, n + 1, path, t.files[path]}).walk)
		}
	}
}

func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// missionLine is a known mission in an image.
type missionLine struct{ missionSet }

func (l *missionLine) load(s *loading) error {
	if _, twice := s.knownSpecs[l.Mission]; twice {
		return fmt.Errorf("mission %s stands twice", l.Mission)
	}
	if err := task.CheckName(l.Mission); err != nil {
		return err
	}
	l.apply(s.state)
	return nil
}

// triggerLine is how far a trigger has come, in an image.
type triggerLine struct{ triggerSet }

func (l *triggerLine) load(s *loading) error {
	_, known := s.knownSpecs[l.Mission]
	if s.triggers[triggerKey{l.Mission, l.Trigger}] != nil || !known {
		return fmt.Errorf("trigger %q of mission %q stands twice, or before its mission", l.Trigger, l.Mission)
	}
	l.apply(s.state)
	return nil
}

// fileLine is a file that a trigger remembers, in an image.
type fileLine struct {
	mission, trigger string
	place            int // from 1, the oldest first
	path, stamp      string
}

func (l *fileLine) walk(f *fields) {
	f.str("mission", &l.mission)
	f.str("trigger", &l.trigger)
	f.num("place", &l.place)
	f.str("path", &l.path)
	f.str("stamp", &l.stamp)
}

func (l *fileLine) load(s *loading) error {
	t := s.triggers[triggerKey{l.mission, l.trigger}]
	if t == nil || l.place != len(t.line)+1 || l.place > mostFiles || t.files[l.path] != "" {
		return fmt.Errorf("file %q of mission %q: no trigger, or not its next file", l.path, l.mission)
	}
	t.remember(l.path, l.stamp)
	return nil
}
