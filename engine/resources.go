package engine

import (
	"errors"
	"fmt"

	"apollo11/engine/task"
)

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

// tooBig says that no host which offers a type can ever run it.
func (m *machine) tooBig(name string) error {
	n, ok := m.typeAt[name]
	if !ok || m.types[n].unit == nil || m.types[n].unit.Resources.IsZero() {
		return nil
	}
	needs := m.types[n].unit.Resources
	var largest task.Resources
	hosts := 0
	for _, e := range m.execs[1:] {
		if e == nil || e.offline {
			continue
		}
		if _, offers := e.offers.Get(name); !offers {
			continue
		}
		usable := e.soft.capacity.Usable()
		if needs.Fits(usable, e.soft.capacity) {
			return nil
		}
		hosts++
		largest = task.Resources{CPU: max(largest.CPU, usable.CPU), Memory: max(largest.Memory, usable.Memory), Disk: max(largest.Disk, usable.Disk)}
	}
	if hosts == 0 {
		return nil // nobody is there to ask
	}
	return fmt.Errorf("%s needs %s, but no host that offers it may give more than %s (all cores, 70 %% of memory and disk): it could never run", name, needs, largest)
}
