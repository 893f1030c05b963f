package engine

import (
	"errors"
	"fmt"
	"slices"

	"apollo11/engine/mission"
	"apollo11/engine/task"
	"apollo11/engine/view"
)

// fileSeen starts a mission for a file, once.
func (m *machine) fileSeen(c FileSeen) ([]view.Run, error) {
	k, ok := m.missions[c.Mission]
	if !ok || c.Trigger < 0 || c.Trigger >= len(k.Mission.Triggers) || k.Mission.Triggers[c.Trigger].Kind != mission.File {
		return nil, fmt.Errorf("%w: mission %s has no such trigger", ErrNotFound, task.Printable(c.Mission))
	}
	words := k.Mission.Triggers[c.Trigger].String()
	n := slices.IndexFunc(m.triggering.armed, func(a *armed) bool { return a.known.Mission == k.Mission && a.words == words })
	switch {
	case n < 0:
		return nil, fmt.Errorf("%w: %s", ErrInvalid, m.triggering.faults[c.Mission])
	case c.Path == "" || c.Stamp == "" || len(c.Path) > task.MaxBytes/2 || len(c.Stamp) > maxReason:
		return nil, fmt.Errorf("%w: a file has a path and a stamp", ErrInvalid)
	}
	a := m.triggering.armed[n]
	if a.memory.files[c.Path] == c.Stamp {
		return nil, nil
	}
	if err := m.mayStartRuns(); err != nil {
		return nil, err
	}
	f := firing{why: "file " + c.Path, path: c.Path, stamp: c.Stamp}
	if slices.ContainsFunc(k.Mission.Params, func(r task.Rule) bool { return r.Name == mission.FileParam }) {
		f.params = task.Values{{Name: mission.FileParam, Value: c.Path}}
	}
	if err := m.canStart(a, f.params); err != nil {
		return nil, err // the file is offered again, and starts the mission once it is put right
	}
	if _, err := m.turnOf(a, false); errors.Is(err, errWaiting) {
		return nil, fmt.Errorf("mission %s: %w", c.Mission, err) // likewise, once there is room
	}
	started, _ := m.fire(a, f) // what stands against it was told
	if started == nil {
		return nil, nil
	}
	return []view.Run{*started}, nil
}

// happening is an event that has not started all its missions yet.
type happening struct {
	ask    Ask
	event  Happening
	rest   []*armed
	runs   []view.Run
	failed []error
}

// happen takes an event: it is answered when all its missions were started.
func (m *machine) happen(a Ask, c Happening) {
	h := &happening{ask: a, event: c}
	if err := m.checkEvent(h); err != nil {
		m.answer(a, nil, err)
		return
	}
	m.emit(&eventTold{Name: c.Name, Values: h.event.Values, By: cutText(c.Actor, maxActor)})
	m.triggering.told = append(m.triggering.told, h)
}

// checkEvent finds who waits for an event, and refuses values that nobody takes.
func (m *machine) checkEvent(h *happening) (err error) {
	c := &h.event
	if err := m.mayStartRuns(); err != nil {
		return err
	}
	if c.Values, err = sortedValues(c.Values); err != nil {
		return fmt.Errorf("%w: value %w", ErrInvalid, err)
	}
	if n := c.Values.Size(); n > task.MaxBytes {
		return fmt.Errorf("%w: values of %d bytes, at most %d", ErrTooLarge, n, task.MaxBytes)
	}
	var names, params []string
	for _, a := range m.triggering.armed {
		if a.trigger.Kind != mission.Event {
			continue
		}
		names = append(names, a.trigger.What)
		if a.trigger.What == c.Name {
			h.rest = append(h.rest, a)
			for _, p := range a.known.Mission.Params {
				params = append(params, p.Name)
			}
		}
	}
	if len(h.rest) == 0 {
		return fmt.Errorf("%w: no mission waits for event %s%s", ErrNotFound, task.Printable(c.Name), meant(c.Name, names))
	}
	for _, v := range c.Values {
		if !slices.Contains(params, v.Name) {
			return fmt.Errorf("%w: no mission that waits for event %s has a parameter %s%s", ErrInvalid, c.Name, v.Name, meant(v.Name, params))
		}
	}
	return nil
}

// meant is the hint to the nearest of what is known.
func meant(name string, known []string) string {
	if near := task.Nearest(name, known); near != "" {
		return ": did you mean " + near + "?"
	}
	return ""
}

// tellEvents starts what events ask for, as far as the turn has room.
func (m *machine) tellEvents() {
	for len(m.triggering.told) > 0 {
		h := m.triggering.told[0]
		for ; len(h.rest) > 0; h.rest = h.rest[1:] {
			if m.outOfRoom() {
				return
			}
			m.tellEvent(h, h.rest[0])
		}
		m.triggering.told = m.triggering.told[1:]
		var err error
		if len(h.runs) == 0 {
			err = errors.Join(h.failed...)
		}
		m.answer(h.ask, h.runs, err)
	}
}

// retell leaves to the events being worked off those missions that still wait for
// them, as these are now.
func (m *machine) retell() {
	now := map[triggerKey]*armed{}
	for _, a := range m.triggering.armed {
		now[triggerKey{a.known.Mission.Name, a.words}] = a
	}
	for _, h := range m.triggering.told {
		rest := h.rest
		h.rest = nil
		for _, was := range rest {
			name := was.known.Mission.Name
			if a := now[triggerKey{name, was.words}]; a != nil {
				h.rest = append(h.rest, a)
			} else {
				h.failed = append(h.failed, fmt.Errorf("mission %s: it does not wait for event %s any more", name, task.Printable(h.event.Name)))
			}
		}
	}
}

// tellEvent starts one mission, with the values that it has parameters for.
func (m *machine) tellEvent(h *happening, a *armed) {
	why := a.words
	if h.event.Actor != "" {
		why += ", told by " + cutText(h.event.Actor, maxActor)
	}
	var params task.Values
	for _, v := range h.event.Values {
		if slices.ContainsFunc(a.known.Mission.Params, func(r task.Rule) bool { return r.Name == v.Name }) {
			params = append(params, v)
		}
	}
	started, err := m.fire(a, firing{why: why, params: params})
	if err != nil {
		h.failed = append(h.failed, fmt.Errorf("mission %s: %w", a.known.Mission.Name, err))
		return
	}
	h.runs = append(h.runs, *started)
}
