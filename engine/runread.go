package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// viewRun is one run as a table shows it.
func (m *machine) viewRun(r *run) *view.Run {
	v := &view.Run{
		ID: r.id, Mission: r.spec.mission.Name, State: r.state.String(), Mode: r.origin.Mode.String(), Parent: r.origin.Parent,
		Child: r.child, Cause: r.origin.Cause, By: r.origin.By, Why: r.why, Spec: r.spec.hash, Config: int64(r.config),
		Units: int64(len(r.flow.units)), Done: int64(len(r.flow.units) - r.flow.open), Reused: int64(r.flow.reused),
		Created: viewTime(r.times.created), Started: viewTime(r.times.started), Finished: viewTime(r.times.finished),
		Params: view.Object(r.params),
	}
	n := &r.flow.counts
	v.Running, v.Failed = int64(n[task.Assigned]+n[task.Running]), int64(n[task.Dead])+int64(r.flow.settled)
	v.Skipped = int64(n[task.Skipped]) - v.Reused
	if r.origin.Sample > 0 {
		v.Mode = "sample"
	}
	if r.state == runWaiting && v.Why == "" {
		v.Why = m.waitsFor(r)
	}
	if r.times.started != 0 {
		v.MS = (cmp.Or(r.times.finished, m.now.wall) - r.times.started) / int64(time.Millisecond)
	}
	return v
}

// runPage answers a query, newest first; the cursor is the last row's number.
func (m *machine) runPage(q view.RunQuery) (*view.RunPage, error) {
	below := uint64(1<<64 - 1)
	if q.Cursor != "" {
		n, err := strconv.ParseUint(q.Cursor, 36, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: cursor %q", ErrInvalid, task.Printable(q.Cursor))
		}
		below = n
	}
	if q.State != "" && !slices.Contains(view.RunStates, q.State) {
		return nil, fmt.Errorf("%w: unknown run state %q: want one of %s", ErrInvalid, task.Printable(q.State), strings.Join(view.RunStates, ", "))
	}
	limit := q.Limit
	if limit <= 0 || limit > view.MaxRows {
		limit = view.MaxRows
	}
	page := &view.RunPage{Runs: []view.Run{}}
	size := 0
	last := below
	for _, r := range slices.Backward(m.inOrder()) {
		if r.num >= below || q.Mission != "" && r.spec.mission.Name != q.Mission || q.State != "" && r.state.String() != q.State {
			continue
		}
		if len(page.Runs) == limit || size > maxPageBytes {
			page.Cursor = strconv.FormatUint(last, 36)
			break
		}
		row := m.viewRun(r)
		row.Why, row.Params = cutText(row.Why, maxReason), cutValuesTo(row.Params, maxShown)
		size += 500 + len(row.Why) + task.Values(row.Params).Size()
		page.Runs, last = append(page.Runs, *row), r.num
	}
	return page, nil
}

// maxShown bounds a value in a page: what is longer is shown by the task.
const maxShown = 4 << 10

func cutValuesTo(values view.Object, most int) view.Object {
	for i := range values {
		if len(values[i].Value) > most {
			values = slices.Clone(values)
			break
		}
	}
	for i := range values {
		values[i].Value = cutText(values[i].Value, most)
	}
	return values
}

// runDetail is a run with a page of its units.
func (m *machine) runDetail(c GetRun) (*view.RunDetail, error) {
	r, err := m.lookupRun(c.ID)
	if err != nil {
		return nil, err
	}
	from := 0
	if c.Cursor != "" {
		if from, err = strconv.Atoi(c.Cursor); err != nil || from < 0 || from > len(r.flow.units) {
			return nil, fmt.Errorf("%w: cursor %q", ErrInvalid, task.Printable(c.Cursor))
		}
	}
	d := &view.RunDetail{Run: *m.viewRun(r), Notes: slices.Clone(r.notes), Units: []view.RunUnit{}}
	size := 0
	for u := from; u < len(r.flow.units); u++ {
		if len(d.Units) == view.MaxRows || size > maxPageBytes {
			d.Cursor = strconv.Itoa(u)
			break
		}
		row := m.viewUnit(r, u)
		size += 800 + len(row.Error) + task.Values(row.Inputs).Size() + task.Values(row.Outputs).Size()
		d.Units = append(d.Units, row)
	}
	return d, nil
}

// viewUnit is one unit of a run.
func (m *machine) viewUnit(r *run, u int) view.RunUnit {
	i := r.flow.units[u]
	unit, t, result := &r.spec.mission.Units[u], m.at(i), m.resultOf(i)
	row := view.RunUnit{
		Unit: unit.Name, Task: m.id(i), Type: unit.Uses, State: t.state.String(), Deps: strings.Join(unit.Deps, ","),
		Weak: strings.Join(unit.Weak, ","), Attempt: int64(t.attempt), Version: int64(t.version), UnitHash: result.Unit,
		Started: viewTime(t.started), Finished: viewTime(t.finished), PrepareMS: result.Timing.Prepare.Milliseconds(),
		ExecuteMS: result.Timing.Execute.Milliseconds(), CleanupMS: result.Timing.Cleanup.Milliseconds(),
	}
	if t.exec != 0 {
		row.Executor = m.execs[t.exec].id
	}
	class, text := m.lastError(i)
	row.ErrorClass, row.Error = class.String(), cutText(text, maxShown)
	if result.Settled != "" { // in its run it is what it died as
		row.State = task.Dead.String()
	}
	if t.state == task.Skipped || t.state == task.Aborted {
		row.Reason = cmp.Or(result.Settled, result.Error)
	}
	if p, failed := m.lastFailure(i); failed && t.class != task.NoClass && t.state != task.Succeeded {
		row.PrepareMS, row.ExecuteMS, row.CleanupMS = p.Timing.Prepare.Milliseconds(), p.Timing.Execute.Milliseconds(), p.Timing.Cleanup.Milliseconds()
	}
	m.viewHandover(i, &row)
	return row
}

// viewHandover fills in what a unit got and gave.
func (m *machine) viewHandover(i uint32, row *view.RunUnit) {
	t, spec := m.at(i), m.specOf(i)
	known := t.sent > 0 || t.state == task.Queued || m.succeeded(i)
	if known {
		inputs := mustParse(spec.inputs)
		row.InputHash, row.Inputs = inputs.ContentHash(), view.Object(inputs)
	}
	if known && t.state != task.Skipped {
		row.Ready = viewTime(t.submitted)
	}
	if t.sent > 0 {
		row.QueueMS = max(0, t.started-t.submitted) / int64(time.Millisecond)
	}
	if m.succeeded(i) {
		outputs := m.resultOf(i).Outputs
		row.OutputHash, row.Outputs = outputs.ContentHash(), view.Object(outputs)
	}
}

// specText is the canonical text of what a run executes, or of a known mission.
func (m *machine) specText(c GetSpec) (string, error) {
	if c.Run != "" {
		r, err := m.lookupRun(c.Run)
		if err != nil {
			return "", err
		}
		return r.spec.text, nil
	}
	k, err := m.known(c.Mission)
	if err != nil {
		return "", err
	}
	return k.Mission.Spec(), nil
}
