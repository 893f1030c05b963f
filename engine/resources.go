package engine

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"apollo11/engine/task"
)

// host is where executors share cores, memory and disk.
type host struct {
	name     string
	capacity task.Resources // as an executor there said last
	used     task.Resources // declared by what its executors were sent, and may still work on
	freed    bool           // something of it since the last dispatch
	members  int
}

// hosts are all that are known; none of it is durable.
type hosts struct {
	at    map[string]*host
	freed uint64 // machine.places when one of them had something freed last
}

// String is the host's name as people read it.
func (h *host) String() string {
	if id, own := strings.CutPrefix(h.name, ownHost); own {
		return "of executor " + id
	}
	return printableCut(h.name, maxAbout)
}

// ownHost begins the name of the host of an executor that names none.
const ownHost = "\x00"

// room is what is left to give out. A host that has less than it was given out
// when it had more has none.
func (h *host) room() task.Resources {
	left := h.capacity.Usable().Sub(h.used)
	return task.Resources{CPU: max(left.CPU, 0), Memory: max(left.Memory, 0), Disk: max(left.Disk, 0)}
}

func (h *host) free(r task.Resources) {
	h.used, h.freed = h.used.Sub(r), true
}

// fits reports whether the site's host has room for an attempt. An executor that
// never said what its host has is not held back.
func (s *site) fits(needs task.Resources) bool {
	return !s.told || needs.IsZero() || needs.Fits(s.host.room(), s.host.capacity)
}

// needs is what an attempt of the type takes of its host.
func (t *workType) needs() task.Resources {
	if t.unit == nil {
		return task.Resources{}
	}
	return t.unit.Resources
}

// lift counts what an attempt needs to its executor and to the host.
func (e *executor) lift(needs task.Resources) {
	if needs.IsZero() {
		return
	}
	e.soft.uses = e.soft.uses.Add(needs)
	if h := e.soft.host; h != nil {
		h.used = h.used.Add(needs)
	}
}

// lower is lift undone.
func (e *executor) lower(needs task.Resources) {
	if needs.IsZero() {
		return
	}
	e.soft.uses = e.soft.uses.Sub(needs)
	if h := e.soft.host; h != nil {
		h.free(needs)
	}
}

// weigh brings up to date what an executor's fenced attempts hold, and notes what
// became free at its host, so that who waits for it looks again.
func (m *machine) weigh(e *executor) {
	h := e.soft.host
	if h == nil {
		return
	}
	var fenced task.Resources
	for _, z := range e.soft.zombies {
		fenced = fenced.Add(z.needs)
	}
	if fenced != e.soft.fenced {
		h.free(e.soft.fenced)
		h.used = h.used.Add(fenced)
		e.soft.fenced = fenced
	}
	if h.freed {
		h.freed = false
		m.places++
		m.hosts.freed = m.places
	}
}

// moveIn counts an executor to the host that it says it is on. One that names
// none is alone on its own.
func (m *machine) moveIn(e *executor) {
	name := cmp.Or(e.host, ownHost+e.id)
	if h := e.soft.host; h != nil && h.name == name {
		return
	}
	m.moveOut(e)
	h := m.hosts.at[name]
	if h == nil {
		h = &host{name: name}
		m.hosts.at[name] = h
	}
	h.members++
	h.used = h.used.Add(e.soft.uses).Add(e.soft.fenced)
	e.soft.host = h
}

// moveOut takes an executor with all it uses from its host; an empty host goes.
func (m *machine) moveOut(e *executor) {
	h := e.soft.host
	if h == nil {
		return
	}
	h.free(e.soft.uses.Add(e.soft.fenced))
	if h.members--; h.members == 0 {
		delete(m.hosts.at, h.name)
	}
	e.soft.host = nil
}

// equip takes in where a registering executor is.
func (m *machine) equip(e *executor, p place) {
	e.soft.place = p
	m.moveIn(e)
	if p.capacity != (task.Resources{}) {
		e.soft.host.capacity, e.soft.host.freed = p.capacity, true
	}
}

// bootHosts counts anew what every executor uses: what they held when the
// controller stopped they may hold still.
func (m *machine) bootHosts() {
	for _, e := range m.execs[1:] {
		if e != nil {
			m.moveIn(e)
		}
	}
	m.recount()
}

// recount adds up anew what is used, by the contracts as they are now.
func (m *machine) recount() {
	for x, e := range m.execs {
		if e == nil || e.soft.host == nil {
			continue
		}
		e.soft.host.free(e.soft.uses)
		e.soft.uses = task.Resources{}
		for _, i := range m.heldBy(uint32(x)) {
			e.lift(m.types[m.at(i).typ].needs())
		}
		m.dirty = append(m.dirty, uint32(x))
	}
}

// neverFits refuses a mission with a unit that needs more than any host has that
// offers its type.
func (m *machine) neverFits(spec *missionSpec) error {
	var faults []error
	seen := map[string]bool{}
	for n := range spec.mission.Units {
		name := spec.mission.Units[n].Uses
		if seen[name] {
			continue
		}
		seen[name] = true
		if err := m.tooBig(name); err != nil {
			faults = append(faults, fmt.Errorf("unit %s: %w", spec.mission.Units[n].Name, err))
		}
	}
	return errors.Join(faults...)
}

// tooBig says that no connected host which offers a type can ever run it.
func (m *machine) tooBig(name string) error {
	n, ok := m.typeAt[name]
	if !ok || m.types[n].needs().IsZero() {
		return nil
	}
	needs := m.types[n].needs()
	var largest task.Resources
	hosts := 0
	for _, g := range m.types[n].soft.groups {
		for _, s := range g.sites {
			usable := s.host.capacity.Usable()
			if !s.told || needs.Fits(usable, s.host.capacity) {
				return nil
			}
			hosts++
			largest = task.Resources{CPU: max(largest.CPU, usable.CPU), Memory: max(largest.Memory, usable.Memory), Disk: max(largest.Disk, usable.Disk)}
		}
	}
	if hosts == 0 {
		return nil // nobody is there to ask
	}
	return fmt.Errorf("%s needs %s, but no host that offers it may give more than %s (all cores, 70 %% of memory and disk): it could never run", name, needs, largest)
}
