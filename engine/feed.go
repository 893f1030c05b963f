package engine

import (
	"slices"
	"time"
)

// feed is what executors that subscribed to the state have not been told of yet:
// all of them are told at once, at most once a second. It is soft: who comes
// back subscribes anew, and asks for what it missed.
type feed struct {
	readers int                 // executors that subscribed and are connected
	changed map[string]struct{} // keys that changed, or went, since the last time
	since   uint64              // the state version then
	told    int64               // monotonic: when that was
	heap    uint32              // of the one due moment
}

// feedPause is the least time between two times.
const feedPause = time.Second

// note is called for every key that changes.
func (f *feed) note(key string) {
	if f.readers > 0 {
		f.changed[key] = struct{}{}
	}
}

// subscribe begins or ends what an executor is told of the state. The first to
// come begins the count of changes.
func (m *machine) subscribe(e *executor, on bool) {
	if e.soft.subscribed == on {
		return
	}
	e.soft.subscribed = on
	f := &m.feed
	if !on {
		if f.readers--; f.readers == 0 {
			f.changed = nil
			m.monoQ.drop(due{kind: dueFeed})
		}
		return
	}
	if f.readers++; f.readers == 1 {
		f.changed, f.since = map[string]struct{}{}, m.stateVersion
	}
}

// armFeed sets the moment at which what has changed is told.
func (m *machine) armFeed() {
	if f := &m.feed; len(f.changed) > 0 && f.heap == 0 {
		m.monoQ.set(due{kind: dueFeed}, max(m.now.mono, f.told+int64(feedPause)))
	}
}

// Bounds of one StateChanged: what does not fit is asked for.
const (
	maxFeedKeys  = 500
	maxFeedBytes = 64 << 10
)

// tellChanges tells all that subscribed which keys changed.
func (m *machine) tellChanges() {
	f := &m.feed
	news := StateChanged{Version: m.stateVersion, Since: f.since}
	names := make([]string, 0, len(f.changed))
	for name := range f.changed {
		names = append(names, name)
	}
	slices.Sort(names)
	size := 0
	for _, name := range names {
		if size += len(name) + 32; size > maxFeedBytes || len(news.Keys) == maxFeedKeys {
			news.More = true
			break
		}
		change := KeyChange{Key: name}
		if k := m.keys[name]; k != nil {
			change.Version = k.version
		}
		news.Keys = append(news.Keys, change)
	}
	clear(f.changed)
	f.since, f.told = m.stateVersion, m.now.mono
	for _, e := range m.execs[1:] {
		if e != nil && e.soft.subscribed {
			m.order(e, news)
		}
	}
}
