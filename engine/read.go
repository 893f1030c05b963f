package engine

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

func viewTime(wall int64) view.Time {
	if wall == 0 {
		return view.Time{}
	}
	return view.Time{Time: time.Unix(0, wall).UTC()}
}

// status is the controller on one page.
func (m *machine) status() *view.Status {
	s := &view.Status{
		Epoch: int64(m.epoch), Seq: int64(m.seq), StateVersion: int64(m.stateVersion),
		ConfigVersion: int64(m.configVersion), ConfigHash: m.configHash, Debug: m.tap.on, DebugLeftMS: m.tapLeft().Milliseconds(), Paused: m.paused,
		DiskFull: m.full, Late: int64(m.lates), Duplicates: int64(m.repeats),
		Executors: view.Counts{}, Tasks: view.Counts{}, Since: viewTime(m.since), Now: viewTime(m.now.wall),
	}
	for _, state := range task.States() {
		s.Tasks[state.String()] = int64(m.states[state].len)
	}
	for _, name := range view.ExecutorStates {
		s.Executors[name] = 0
	}
	for _, e := range m.execs[1:] {
		if e != nil {
			s.Executors[e.stateName()]++
		}
	}
	var paused []string
	for _, t := range m.types[1:] {
		if t.paused {
			paused = append(paused, t.name)
		}
	}
	slices.Sort(paused)
	s.PausedTypes = strings.Join(paused, ",")
	return s
}

// stateName is an executor's state, which follows from what it holds.
func (e *executor) stateName() string {
	switch {
	case e.offline:
		return "offline"
	case e.soft.link == nil:
		return "registering"
	case e.draining:
		return "draining"
	case e.load() > 0:
		return "running"
	}
	return "idle"
}

// executors is every executor known, by id.
func (m *machine) executors() []view.Executor {
	var rows []view.Executor
	for _, e := range m.execs[1:] {
		if e != nil {
			rows = append(rows, m.viewExec(e))
		}
	}
	slices.SortFunc(rows, func(a, b view.Executor) int { return cmp.Compare(a.ID, b.ID) })
	return rows
}

func (m *machine) viewExec(e *executor) view.Executor {
	row := view.Executor{
		ID: e.id, State: e.stateName(), Load: int64(e.load()), Late: e.soft.late, Done: int64(e.done),
		Failed: int64(e.failed), Proto: int64(e.proto), Host: e.host, PID: int64(e.pid), Build: e.build,
		HeartbeatMS: -1, Reason: cmp.Or(e.reason, e.soft.why),
	}
	var types []string
	for _, v := range e.offers {
		types = append(types, v.Name)
	}
	row.Types = strings.Join(types, ",")
	if i := e.held.oldest; i != 0 {
		t := m.at(i)
		row.Task, row.Version, row.StateVersion = m.id(i), int64(t.version), int64(t.seen)
	}
	switch {
	case e.soft.link != nil:
		row.HeartbeatMS = max(0, m.now.mono-max(e.soft.linked, m.mono(e.soft.link.Heard()))) / int64(time.Millisecond)
	case e.offline:
		row.HeartbeatMS = max(0, m.now.wall-e.since) / int64(time.Millisecond)
	}
	if row.Reason == "" && e.soft.losses >= flapping {
		row.Reason = "keeps coming and going: raise heartbeat.timeout"
	}
	return row
}

// queues is every type's line.
func (m *machine) queues() []view.Queue {
	var rows []view.Queue
	for _, t := range m.types[1:] {
		if t.name == "" {
			continue
		}
		queued, oldest := m.queued(t)
		row := view.Queue{
			Type: t.name, Queued: int64(queued), Out: int64(t.out), Limit: int64(m.set.Limits[t.name]),
			Paused: t.paused, Executors: int64(t.soft.offering),
		}
		if oldest != 0 {
			row.OldestMS = max(0, m.now.wall-m.at(oldest).entered) / int64(time.Millisecond)
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b view.Queue) int { return cmp.Compare(a.Type, b.Type) })
	return rows
}

// viewTask is one task as a table shows it.
func (m *machine) viewTask(i uint32) view.Task {
	t := m.at(i)
	row := view.Task{
		ID: m.id(i), Type: m.types[t.typ].name, State: t.state.String(), Attempt: int64(t.attempt),
		Version: int64(t.version), Submitted: viewTime(t.submitted), Started: viewTime(t.started), Finished: viewTime(t.finished),
	}
	if t.exec != 0 {
		row.Executor = m.execs[t.exec].id
	}
	class, text := m.lastError(i)
	row.ErrorClass, row.Error = class.String(), text
	if t.state == task.Succeeded {
		row.Outputs = view.Object(m.resultOf(i).Outputs)
	}
	return row
}

// detail is all that memory has of a task.
func (m *machine) detail(id string) (*view.Detail, error) {
	i, err := m.lookup(id, maxExamined)
	if err != nil {
		return nil, err
	}
	t, spec := m.at(i), m.specOf(i)
	d := &view.Detail{
		Task: m.viewTask(i), Key: spec.key, Inputs: view.Object(mustParse(spec.inputs)),
		Context: view.Object(m.contextOf(i).Values), StateVersion: int64(t.seen), StateNow: int64(m.stateVersion),
		NotBefore: viewTime(t.notBefore), Deadline: viewTime(t.deadline), Due: viewTime(t.due),
		Retries: int64(m.retries(i)), TimeoutMS: spec.timeout.Milliseconds(), Crashes: int64(t.crashes),
		Attempts: m.viewAttempts(i), Late: m.lateOf(m.id(i)),
	}
	if u := m.types[t.typ].unit; u != nil && d.TimeoutMS == 0 {
		d.TimeoutMS = u.Timeout.Milliseconds()
	}
	if t.state.Out() {
		if note := m.execs[t.exec].soft.progress; note.task == d.ID {
			d.Progress = note.text + " (" + time.Duration(m.now.wall-note.wall).Round(time.Second).String() + " ago)"
		}
	}
	return d, nil
}

// viewAttempts is a task's tries: those that failed, then the one that
// succeeded or is under way.
func (m *machine) viewAttempts(i uint32) []view.Attempt {
	t := m.at(i)
	rows := []view.Attempt{}
	for _, p := range m.historyOf(i) {
		rows = append(rows, view.Attempt{
			Attempt: int64(p.Attempt), Version: int64(p.Version), Executor: p.Exec, Outcome: p.Class.String(),
			Error: p.Error, Started: viewTime(p.Started), Finished: viewTime(p.Finished), MS: p.Timing.Total().Milliseconds(),
		})
	}
	switch {
	case t.state == task.Succeeded:
		rows = append(rows, view.Attempt{
			Attempt: int64(t.attempt), Version: int64(t.version), Executor: m.execs[t.exec].id, Outcome: "succeeded",
			Started: viewTime(t.started), Finished: viewTime(t.finished), MS: m.resultOf(i).Timing.Total().Milliseconds(),
		})
	case t.state.Out():
		rows = append(rows, view.Attempt{
			Attempt: int64(t.attempt), Version: int64(t.version), Executor: m.execs[t.exec].id, Outcome: t.state.String(),
			Started: viewTime(t.started),
		})
	}
	return rows
}

// lateOf is what the newest late result of a task would have brought.
func (m *machine) lateOf(id string) string {
	for n := range m.ledger.lines {
		if line := m.ledger.newest(n); line.Task == id {
			return line.Version.String() + " from " + line.Exec + " (" + line.Reason + "): " + line.Effect
		}
	}
	return ""
}

// late is the newest lines of the ledger.
func (m *machine) late(limit int) []view.Late {
	if limit <= 0 || limit > view.MaxRows {
		limit = view.MaxRows
	}
	rows := []view.Late{}
	for n := range min(limit, len(m.ledger.lines)) {
		line := m.ledger.newest(n)
		rows = append(rows, view.Late{
			Task: line.Task, Version: int64(line.Version), Current: int64(line.Current), Executor: line.Exec,
			Reason: line.Reason, Effect: line.Effect, Time: viewTime(line.Time),
		})
	}
	return rows
}

func (m *machine) viewKey(name string) view.Key {
	k := m.keys[name]
	row := view.Key{Key: name, Value: k.value, Version: int64(k.version), Seq: int64(k.seq), Task: k.task}
	if rule := m.keyRule(name); rule != nil {
		if err := rule.Check(k.value); err != nil {
			row.Fault = err.Error()
		}
	}
	return row
}

// keyPage is a page of the global state.
func (m *machine) keyPage(q view.KeyQuery) *view.KeyPage {
	page := &view.KeyPage{Version: int64(m.stateVersion), Keys: []view.Key{}}
	limit := q.Limit
	if limit <= 0 || limit > view.MaxRows {
		limit = view.MaxRows
	}
	wanted := q.Keys
	if len(wanted) == 0 {
		wanted = m.sortedKeys()
	} else {
		wanted = slices.Sorted(slices.Values(wanted))
	}
	size := 0
	for _, name := range wanted {
		k := m.keys[name]
		if k == nil || name <= q.Cursor || !strings.HasPrefix(name, q.Prefix) || int64(k.at) <= q.Since {
			continue
		}
		if len(page.Keys) == limit || size > maxPageBytes {
			page.Cursor = page.Keys[len(page.Keys)-1].Key
			break
		}
		size += len(name) + len(k.value) + 100
		page.Keys = append(page.Keys, m.viewKey(name))
	}
	return page
}
