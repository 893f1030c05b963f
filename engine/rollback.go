package engine

import (
	"fmt"
	"slices"
	"strings"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// rollback starts a run that undoes what a run did, the latest first.
func (m *machine) rollback(c Rollback) (*view.Undone, error) {
	r, p, err := m.goOn(c.Run, modeRollback, c.Actor)
	switch {
	case err != nil:
		return nil, err
	case r.origin.Mode == modeRollback:
		return nil, fmt.Errorf("%w: run %s undid another run already", ErrInvalid, r.id)
	case !r.state.ended():
		return nil, fmt.Errorf("%w: run %s is %s: cancel it first, or wait", ErrInvalid, r.id, r.state)
	}
	if other := m.undoing(r); other != nil {
		return nil, fmt.Errorf("%w: run %s undoes run %s now: wait for it", ErrInvalid, other.id, r.id)
	}
	return m.undo(r, p, c)
}

// undoing is a rollback of the run that is under way; nil: there is none.
func (m *machine) undoing(r *run) *run {
	for _, other := range m.inOrder() {
		if other.origin.Mode == modeRollback && other.origin.Parent == r.id && !other.state.ended() {
			return other
		}
	}
	return nil
}

// rollbackAgain goes on with a rollback that failed: what it undid stays undone.
func (m *machine) rollbackAgain(r *run, actor string) (*view.Run, error) {
	undone, err := m.rollback(Rollback{Run: r.origin.Parent, To: r.origin.From, Actor: actor})
	if err != nil {
		return nil, err
	}
	return &undone.Run, nil
}

func (m *machine) undo(r *run, p plan, c Rollback) (*view.Undone, error) {
	answer := &view.Undone{Units: []string{}, Without: []string{}}
	var after uint64 // what came to its end later is undone
	if c.To != "" {
		u := r.spec.mission.Find(c.To)
		if u < 0 || m.at(r.flow.units[u]).state != task.Succeeded {
			return nil, fmt.Errorf("%w: run %s has no unit %s that succeeded%s", ErrNotFound, r.id, task.Printable(c.To), nearUnit(r, c.To))
		}
		after = m.at(r.flow.units[u]).stamp
	}
	for u, i := range r.flow.units {
		t := m.at(i)
		if t.state != task.Succeeded || t.undone || t.stamp <= after {
			continue
		}
		if unit := m.types[t.typ].unit; unit == nil || !unit.Undo {
			answer.Without = append(answer.Without, r.spec.mission.Units[u].Name)
			continue
		}
		p.order = append(p.order, int32(u))
	}
	slices.SortFunc(p.order, func(a, b int32) int {
		return int(int64(m.at(r.flow.units[b]).stamp) - int64(m.at(r.flow.units[a]).stamp))
	})
	for _, u := range p.order {
		answer.Units = append(answer.Units, r.spec.mission.Units[u].Name)
	}
	if c.Check {
		return answer, nil
	}
	if undone := m.undoneBy(r); len(p.order) == 0 && undone != "" {
		return nil, fmt.Errorf("%w: run %s was undone already, by %s", ErrInvalid, r.id, undone)
	}
	if len(p.order) == 0 {
		return nil, fmt.Errorf("%w: run %s has nothing to undo: no unit that succeeded has an undo step%s", ErrInvalid, r.id, withoutText(answer.Without))
	}
	p.origin.From = c.To
	answer.Run = *m.viewRun(p.emit(r.spec, r.params))
	return answer, nil
}

// undoneBy is a rollback that took back what a run did; empty: there was none.
func (m *machine) undoneBy(r *run) (last string) {
	for _, other := range m.inOrder() {
		if other.origin.Mode == modeRollback && other.origin.Parent == r.id {
			last = other.id
		}
	}
	return last
}

func withoutText(units []string) string {
	if len(units) == 0 {
		return ""
	}
	return " (" + strings.Join(units, ", ") + ")"
}

// readyUndo brings a unit's undo to the queue, with the inputs that its work had.
func (m *machine) readyUndo(r *run, i uint32) {
	of := m.inParent(r, m.at(i))
	if of == 0 || m.at(of).state != task.Succeeded {
		m.refuseUnit(i, task.InputInvalid, fmt.Errorf("what it would undo left memory"))
		return
	}
	spec := m.specOf(of)
	m.emit(&becameReady{Task: m.id(i), Inputs: mustParse(spec.inputs), Filled: spec.filled, Undo: true})
}

// restored is the global state put back to what it was at an earlier moment.
type restored struct {
	Seq    uint64
	Set    task.Values
	Del    string // comma list
	Reason string
	By     string
}

func (*restored) kind() string { return "state.restore" }
func (r *restored) walk(f *fields) {
	f.u64("to", &r.Seq)
	f.values("set", &r.Set)
	f.str("del", &r.Del)
	f.str("reason", &r.Reason)
	f.str("by", &r.By)
}

func (r *restored) apply(s *state) uint32 {
	s.changeKeys(r.Set, r.Del, "")
	return 0
}

// restore puts the global state back, all of it in one turn.
func (m *machine) restore(c Restore) (*view.Restored, error) {
	answer := &view.Restored{Seq: c.Seq, Changed: []view.KeyChange{}}
	then, err := sortedValues(c.Keys)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: state key %w", ErrInvalid, err)
	case strings.TrimSpace(c.Reason) == "" && !c.Check:
		return nil, fmt.Errorf("%w: a rollback of the state needs a reason", ErrInvalid)
	case c.Seq <= 0 || uint64(c.Seq) > m.seq:
		return nil, fmt.Errorf("%w: record %d: the journal ends at %d", ErrInvalid, c.Seq, m.seq)
	}
	records := m.restoring(then, answer)
	size := 0
	for _, r := range records {
		size += entryBytes(r.Set) + len(r.Del)
	}
	if size > maxCommandBytes {
		return nil, fmt.Errorf("%w: %d bytes of keys would change, at most %d in one go", ErrTooLarge, size, maxCommandBytes)
	}
	for _, r := range records {
		if c.Check {
			break
		}
		r.Seq, r.Reason, r.By = uint64(c.Seq), cutText(c.Reason, maxReason), cutText(c.Actor, maxActor)
		m.emit(r)
	}
	return answer, nil
}

// restoring are the records that put the state back, each within its bounds.
func (m *machine) restoring(then task.Values, answer *view.Restored) (records []*restored) {
	r := &restored{}
	size := 0
	room := func(n int) {
		if size += n; size > maxEntryBytes/2 {
			records, r, size = append(records, r), &restored{}, n
		}
	}
	for _, name := range m.sortedKeys() {
		now := m.keys[name].value
		was, there := then.Get(name)
		switch {
		case strings.HasPrefix(name, sysPrefix) || there && was == now:
		case there:
			room(len(name) + escapedSize(was))
			r.Set = append(r.Set, task.Value{Name: name, Value: was})
			answer.Changed = append(answer.Changed, view.KeyChange{Key: name, Before: now, After: was})
		default:
			room(len(name) + 1)
			r.Del = strings.TrimPrefix(r.Del+","+name, ",")
			answer.Changed = append(answer.Changed, view.KeyChange{Key: name, Before: now, Gone: true})
		}
	}
	for _, v := range then {
		if m.keys[v.Name] == nil && !strings.HasPrefix(v.Name, sysPrefix) && task.CheckKey(v.Name) == nil {
			room(len(v.Name) + escapedSize(v.Value))
			r.Set = append(r.Set, v)
			answer.Changed = append(answer.Changed, view.KeyChange{Key: v.Name, After: v.Value, New: true})
		}
	}
	for _, r := range append(records, r) {
		slices.SortFunc(r.Set, func(a, b task.Value) int { return strings.Compare(a.Name, b.Name) })
	}
	if len(r.Set) > 0 || r.Del != "" {
		records = append(records, r)
	}
	return records
}
