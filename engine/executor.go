package engine

import (
	"fmt"

	"apollo11/engine/task"
)

// executor is a worker process as the journal knows it. Whether it is idle or
// running follows from what it holds and is not recorded.
type executor struct {
	id       string
	offers   task.Values // type: hash of the contract it has for it, empty without one
	proto    int
	instance string
	host     string
	pid      int
	build    string
	offline  bool
	reason   string // of being offline
	draining bool
	since    int64
	work
	held list // tasks it was sent, oldest dispatch first
	refs int  // tasks in memory whose last dispatch went to it
	soft execSoft
}

// work is what came of the tasks that it was sent.
type work struct{ done, failed uint64 }

func (s *state) mustExec(id string) uint32 {
	x, ok := s.execAt[id]
	if !ok {
		panic(brokenRule(fmt.Sprintf("no executor %q", id)))
	}
	return x
}

func (r *registered) apply(s *state) uint32 {
	x, ok := s.execAt[r.Exec]
	if !ok {
		x = s.placeExec(r.Exec)
	}
	e := s.execs[x]
	e.offers, e.proto, e.host, e.pid, e.build = r.Types, r.Proto, r.Host, r.PID, r.Build
	// The same process coming back is still asked to drain; a new one is not.
	e.draining = e.draining && r.Instance != "" && e.instance == r.Instance
	e.instance = r.Instance
	e.offline, e.reason, e.since = false, "", s.wall
	s.nameTypes(r.Types)
	return 0
}

// placeExec takes a free number for an executor.
func (s *state) placeExec(id string) uint32 {
	if id == "" {
		panic(brokenRule("an executor without a name"))
	}
	x := uint32(len(s.execs))
	if last := len(s.freeExecs) - 1; last >= 0 {
		x = s.freeExecs[last]
		s.freeExecs = s.freeExecs[:last]
	} else {
		s.execs = append(s.execs, nil)
	}
	s.execs[x] = &executor{id: id}
	s.execAt[id] = x
	return x
}

// release ends a task's reference to the executor of its last dispatch.
func (s *state) release(x uint32) {
	if x != 0 {
		s.execs[x].refs--
	}
}

// nameTypes makes every offered type known, so that a queue page shows it.
func (s *state) nameTypes(types task.Values) {
	for _, v := range types {
		s.typ(v.Name)
	}
}

func (r *offered) apply(s *state) uint32 {
	s.execs[s.mustExec(r.Exec)].offers = r.Types
	s.nameTypes(r.Types)
	return 0
}

func (r *beatMissed) apply(s *state) uint32 {
	s.mustExec(r.Exec) // a sign for the timeline; the next beat takes it back
	return 0
}

func (r *wentOffline) apply(s *state) uint32 {
	e := s.execs[s.mustExec(r.Exec)]
	e.offline, e.draining = true, false
	e.reason, e.since = r.Reason, s.wall
	return 0
}

func (r *draining) apply(s *state) uint32 {
	s.execs[s.mustExec(r.Exec)].draining = true
	return 0
}

func (r *executorForgotten) apply(s *state) uint32 {
	x := s.mustExec(r.Exec)
	e := s.execs[x]
	if !e.offline || e.refs > 0 {
		panic(brokenRule(fmt.Sprintf("executor %q is not done with", r.Exec)))
	}
	delete(s.execAt, r.Exec)
	s.execs[x] = nil
	s.freeExecs = append(s.freeExecs, x)
	return 0
}
