package server

import "apollo11/engine/task"

// sent remembers the last dispatches on a connection: a result without a version
// stands for what was last sent of its task, and only what was sent may be
// spoken about. The Conn's lock guards it.
type sent struct {
	most     int
	versions map[string]task.Version
	order    []string // oldest first, from at on
	at       int
}

// Protocol 1 has one task at a time, protocol 2 up to the engine's depth.
const (
	sentOne  = 16
	sentMany = 320
)

func (s *sent) add(id string, v task.Version) {
	if s.versions == nil {
		s.versions = map[string]task.Version{}
	}
	_, known := s.versions[id]
	s.versions[id] = v
	if known {
		return
	}
	if len(s.order) < s.most {
		s.order = append(s.order, id)
		return
	}
	s.at %= len(s.order)
	delete(s.versions, s.order[s.at])
	s.order[s.at] = id
	s.at++
}

// version is what was last sent of a task; zero: nothing.
func (s *sent) version(id string) task.Version { return s.versions[id] }
