package engine

import (
	"bytes"
	"slices"
	"strings"

	"apollo11/engine/task"
)

// lane is a line of a type's queued tasks that the same executors can take: those
// with files in one share, or those without any; those that protocol 1 has no word
// for stand apart. A head that nobody can take holds up its own lane only.
type lane struct {
	list
	of     *workType
	share  string // that its tasks' files are in; empty: any executor will do
	second bool   // of protocol 2 only
	tried  tried
}

// tried says of the last search for somebody to take a lane's head that it was
// in vain. The next one has to wait for something that may help.
type tried struct {
	at    uint64 // machine.places then
	depth int    // that the type had
}

// lanes are those of all types and shares but for the ones that anybody may take,
// which each type has by itself. They follow from tasks and state; only their
// numbers stand in a course.
type lanes struct {
	all  []*lane // course.lane is an index; 0 is unused
	free []uint32
	at   map[laneKey]uint32
}

type laneKey struct {
	typ    uint32
	share  string
	second bool
}

func newLanes() lanes { return lanes{all: []*lane{nil}, at: map[laneKey]uint32{}} }

// laneOf is the lane that a queued task stands in.
func (s *state) laneOf(t taskAt) *lane {
	if t.lane != 0 {
		return s.lanes.all[t.lane]
	}
	return &s.types[t.typ].queue
}

// chooseLane is the lane that a task belongs in, made if it is the first there.
func (s *state) chooseLane(i uint32) *lane {
	typ, share, second := s.at(i).typ, s.shareOf(i), s.second(i)
	if share == "" && !second {
		return &s.types[typ].queue
	}
	key := laneKey{typ, share, second}
	n, ok := s.lanes.at[key]
	if !ok {
		key.share = strings.Clone(share)
		n = s.addLane(&lane{of: s.types[typ], share: key.share, second: second})
		s.lanes.at[key] = n
	}
	s.own(i).lane = n
	return s.lanes.all[n]
}

func (s *state) addLane(l *lane) (n uint32) {
	l.of.shared = append(l.of.shared, l)
	if last := len(s.lanes.free) - 1; last >= 0 {
		n = s.lanes.free[last]
		s.lanes.free = s.lanes.free[:last]
		s.lanes.all[n] = l
		return n
	}
	s.lanes.all = append(s.lanes.all, l)
	return uint32(len(s.lanes.all) - 1)
}

// unline takes a task out of its lane; one that is no type's own goes when it is empty.
func (s *state) unline(i uint32) {
	t := s.at(i)
	l := s.laneOf(t)
	s.pull(&l.list, inQueue, i)
	n := t.lane
	if n == 0 {
		return
	}
	t.lane = 0
	if l.len > 0 {
		return
	}
	delete(s.lanes.at, laneKey{t.typ, l.share, l.second})
	s.lanes.all[n] = nil
	s.lanes.free = append(s.lanes.free, n)
	at := slices.Index(l.of.shared, l)
	l.of.shared = slices.Delete(l.of.shared, at, at+1)
}

// second reports whether a task can only be told in protocol 2: an undo, or a try
// on a sample, which an executor of protocol 1 would take for the real thing.
func (s *state) second(i uint32) bool {
	r := s.runOfTask(i)
	return r != nil && (r.origin.Mode == modeRollback || r.origin.Sample > 0)
}

// shareOf is the share that a task's files are in; empty: it has none, or what it
// has is no executor's to open, and whoever gets it says so.
func (s *state) shareOf(i uint32) string {
	if text := s.specAt(i).inputs; bytes.Contains(text, []byte("share:")) {
		if share, err := mustParse(string(text)).Share(); err != nil || share != "" {
			return share
		}
	}
	return s.undoneShare(i)
}

// undoneShare is where the files are that a task handed on whose effect is to be
// taken back.
func (s *state) undoneShare(i uint32) string {
	r := s.runOfTask(i)
	if r == nil || r.origin.Mode != modeRollback {
		return ""
	}
	parent := s.findRun(r.origin.Parent)
	if parent == nil || int(s.at(i).unit) >= len(parent.flow.units) {
		return ""
	}
	share, _ := s.resultOf(parent.flow.units[s.at(i).unit]).Outputs.Share()
	return share
}

// queued is how many tasks of the type wait in the queue, and the one that has
// waited longest; 0: there is none.
func (s *state) queued(t *workType) (n int, oldest uint32) {
	n, oldest = t.queue.len, t.queue.oldest
	for _, l := range t.shared {
		n += l.len
		if oldest == 0 || s.at(l.oldest).order < s.at(oldest).order {
			oldest = l.oldest
		}
	}
	return n, oldest
}

// seesShare reports whether somebody is connected who sees a share.
func (m *machine) seesShare(share string) bool {
	return slices.ContainsFunc(m.execs[1:], func(e *executor) bool {
		return e != nil && e.soft.link != nil && !e.offline && e.soft.share == share
	})
}

// warnShare says so when nobody sees the files that a new task is to work on.
func (m *machine) warnShare(inputs task.Values) string {
	share, err := inputs.Share()
	if err != nil || share == "" || m.seesShare(share) {
		return ""
	}
	return noShare(share) + ": the task waits for one"
}

func noShare(share string) string {
	share = printableCut(share, maxShare)
	return "its files are in share " + share + ", and no executor with share " + share + " is connected"
}
