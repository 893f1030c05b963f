package engine

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"apollo11/engine/mission"
	"apollo11/engine/task"
)

func hexText(b []byte) string { return hex.EncodeToString(b) }

// linked is the executor that speaks through a link. One whose link was
// replaced, or that was given up, has to register again.
func (m *machine) linked(link Link, id string) (uint32, *executor, error) {
	x, ok := m.execAt[id]
	if !ok || m.execs[x].offline || m.execs[x].soft.link == nil || m.execs[x].soft.link != link {
		return 0, nil, fmt.Errorf("%w: %s", ErrUnregistered, id)
	}
	return x, m.execs[x], nil
}

// result takes the end of an attempt. It counts only if the task is out, at this
// version, with this executor; everything else goes to the late ledger.
func (m *machine) result(link Link, c Result) (Applied, error) {
	x, e, err := m.linked(link, c.Exec)
	if err != nil {
		return Applied{}, err
	}
	o := &c.Outcome
	i := m.find(o.Task)
	m.forgetZombie(x, o.Task, o.Version)
	e.soft.answered = m.now.mono
	if i == 0 || !m.holds(i, x, o.Version) {
		return m.lateAnswer(i, e, o), nil
	}
	m.noteDuration(m.at(i).typ, o.Timing.Total())
	if c.Raw != nil {
		return m.reject(i, o, task.OutputInvalid, c.Raw), nil
	}
	if o.Status != task.Success {
		m.fail(i, failure{class: claimedClass(o), text: o.Error}, o)
		return Applied{StateVersion: m.stateVersion}, nil
	}
	return m.succeed(i, o), nil
}

// holds reports whether an executor has a task at a version.
func (m *machine) holds(i, x uint32, v task.Version) bool {
	t := m.at(i)
	return t.state.Out() && t.version == v && t.exec == x
}

// claimedClass is the class that an executor gives its failure, if it is one
// that an executor can know.
func claimedClass(o *task.Outcome) task.Class {
	switch o.Class {
	case task.PrepareFailed, task.Timeout, task.OutputInvalid, task.InputInvalid:
		return o.Class
	}
	return task.ExecuteFailed
}

// succeed applies a success, or refuses it whole.
func (m *machine) succeed(i uint32, o *task.Outcome) Applied {
	outputs, class, err := m.checkOutcome(i, o)
	if err != nil {
		return m.reject(i, o, class, err)
	}
	set, del, err := m.resolve(outputs, o.Changes)
	if err != nil {
		return m.reject(i, o, task.StateRejected, err)
	}
	if r := m.runOfTask(i); r != nil && r.origin.Sample > 0 {
		set, del = nil, nil // a try on little data says nothing about the state
	}
	if n := entryBytes(outputs, set); n > maxEntryBytes {
		return m.reject(i, o, task.OutputInvalid, fmt.Errorf("with what they make of the state, outputs take %d bytes in the journal, at most %d: hand over a path instead", n, maxEntryBytes))
	}
	t := m.at(i)
	m.reused.resulted = resulted{
		Task: o.Task, Version: t.version, Exec: m.execs[t.exec].id, Outputs: outputs, OutputHash: outputs.Hash(),
		Timing: o.Timing, Unit: cutText(o.UnitHash, maxUnitHash), Set: set, Del: strings.Join(del, ","), StateVersion: m.stateVersion + uint64(len(set)+len(del)),
	}
	m.emit(&m.reused.resulted)
	m.compare(i)
	return Applied{StateVersion: m.stateVersion}
}

// maxEntryBytes bounds one record, under the line of 1 MiB that a journal takes.
const maxEntryBytes = 900 << 10

// entryBytes is an upper bound of what sets of values take in a record.
func entryBytes(sets ...task.Values) (n int) {
	for _, values := range sets {
		for _, v := range values {
			n += len(v.Name) + escapedSize(v.Value) + 2
		}
	}
	return n
}

// checkOutcome holds a success against the unit's contract and its context.
func (m *machine) checkOutcome(i uint32, o *task.Outcome) (task.Values, task.Class, error) {
	size := o.Outputs.Size()
	for _, c := range o.Changes {
		size += len(c.Key) + len(c.Value)
	}
	if size > task.MaxBytes {
		return nil, task.OutputInvalid, fmt.Errorf("outputs and state changes of %d bytes, at most %d: hand over a path instead", size, task.MaxBytes)
	}
	outputs, err := sortedValues(o.Outputs)
	if err != nil {
		return nil, task.OutputInvalid, fmt.Errorf("output %w", err)
	}
	for _, v := range outputs {
		if err := task.CheckKey(v.Name); err != nil {
			return nil, task.OutputInvalid, fmt.Errorf("output %w", err)
		}
	}
	if outputs, err = m.checkContract(i, outputs); err != nil {
		return nil, task.OutputInvalid, err
	}
	if key := m.staleKey(i); key != "" {
		return nil, task.StaleContext, fmt.Errorf("context key %s changed while it ran", key)
	}
	return outputs, task.NoClass, nil
}

// checkContract holds outputs against the unit's contract, and against what the
// mission expects of them.
func (m *machine) checkContract(i uint32, outputs task.Values) (task.Values, error) {
	r := m.runOfTask(i)
	if r != nil && r.origin.Mode == modeRollback {
		return nil, nil // an undo hands nothing on
	}
	var err error
	if unit := m.types[m.at(i).typ].unit; unit != nil {
		if outputs, err = unit.CheckOutputs(outputs); err != nil {
			return nil, err
		}
	}
	if r == nil || r.unit(m.at(i)).Expect == "" {
		return outputs, nil
	}
	conds, err := m.conditions(r)
	if err != nil {
		return nil, err
	}
	expect := conds[m.at(i).unit].Expect
	if expect == nil {
		return outputs, nil
	}
	yes, err := expect.Eval(m.factsOf(r, i), outputs)
	if err != nil {
		return nil, fmt.Errorf("expect: %w", err)
	}
	if !yes {
		return nil, fmt.Errorf("expected %s%s", r.unit(m.at(i)).Expect, readText(expect.Values(m.factsOf(r, i), outputs)))
	}
	return outputs, nil
}

// maxUnitHash bounds what an executor may call its unit.
const maxUnitHash = 80

// staleKey is a pinned key of a fresh unit that has changed since the dispatch.
func (m *machine) staleKey(i uint32) string {
	if t := m.at(i); !t.fresh || !t.moved {
		return ""
	}
	key := "context"
	for _, v := range m.contextOf(i).At {
		if key = v.Name; v.Value != m.keyVersion(key) {
			break
		}
	}
	return key // the last one if it was made and deleted again
}

// reject ends an attempt whose success is not accepted.
func (m *machine) reject(i uint32, o *task.Outcome, class task.Class, why error) Applied {
	m.fail(i, failure{class: class, text: why.Error()}, o)
	return Applied{Verdict: Rejected, Reason: class.String() + ": " + cutText(why.Error(), maxErrorText), StateVersion: m.stateVersion}
}

// maxErrorText bounds an attempt's error in the journal: what a unit printed is
// in its log.
const maxErrorText = 8 << 10

// cutText keeps the beginning of a text that is longer than most bytes.
func cutText(s string, most int) string {
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// failure is what an attempt is failed for.
type failure struct {
	class task.Class
	text  string
	begun bool // without an outcome: its execute step may have begun
}

// fail ends an attempt without success and decides what follows; o is nil if the
// executor said nothing.
func (m *machine) fail(i uint32, f failure, o *task.Outcome) {
	t := m.at(i)
	r := &failed{
		Task: m.id(i), Version: t.version, Exec: m.execs[t.exec].id, Class: f.class, Error: cutText(f.text, maxErrorText),
		Tries: t.tries, Crashes: t.crashes, Stales: t.stales, Head: t.deadline != 0,
	}
	if o != nil {
		r.Told = true
		r.Timing, r.Exit, r.Signal = o.Timing, o.Exit, cutText(o.Signal, 32)
		if f.class == task.StateRejected || f.class == task.StaleContext || f.class == task.OutputInvalid {
			r.Outputs = keepable(o.Outputs)
		}
	}
	m.follow(i, r, f)
	m.emit(r)
	m.log.Info("attempt failed", "task", r.Task, "version", r.Version, "executor", r.Exec,
		"class", r.Class, "error", task.Printable(r.Error), "next", r.Next)
}

// keepable is the outputs of a refused result, as far as a record can hold them.
func keepable(outputs task.Values) task.Values {
	values, err := task.NewValues(outputs)
	if err != nil || values.Size() > maxHistoryText {
		return nil
	}
	for _, v := range values {
		if task.CheckKey(v.Name) != nil {
			return nil
		}
	}
	return values
}

// follow fills in what a failure leads to: the table of error classes.
func (m *machine) follow(i uint32, r *failed, f failure) {
	m.followTable(i, r, f)
	if x := m.runOfTask(i); x != nil && x.flow.stopping && r.Next != task.Dead {
		r.Next, r.Due, r.Head = task.Aborted, 0, false // nothing is begun under a run that stops
	}
}

func (m *machine) followTable(i uint32, r *failed, f failure) {
	r.Next = task.Dead
	if r.Class != task.StaleContext {
		r.Stales = 0 // only those in a row count
	}
	switch {
	case m.restartResident(i, r):
	case r.Class == task.ExecutorLost && f.begun && !m.idempotent(i):
		// It may have had its effect: a person decides.
	case r.Class == task.ExecutorLost:
		if f.begun {
			r.Crashes++
		}
		if int(r.Crashes) >= m.set.CrashLimit {
			r.Class = task.CrashLimit
			r.Error = fmt.Sprintf("%d executors were lost while they ran it; the last: %s", r.Crashes, r.Error)
			return
		}
		r.Next = task.Queued
	case r.Class == task.StaleContext:
		if r.Stales++; r.Stales < maxStales && m.idempotent(i) {
			r.Next = task.Queued
		}
	case r.Class.UsesRetry():
		r.Tries++
		if int(r.Tries) <= m.retries(i) && (m.idempotent(i) || r.Class == task.PrepareFailed) {
			r.Next = task.Retrying
			r.Due = m.now.wall + int64(m.retryOf(i).Wait(int(r.Tries), m.rand.Float64()).Truncate(time.Microsecond))
		}
	}
}

// maxStales is how many results in a row may be refused for a changed context.
const maxStales = 5

// idempotent reports whether a task may be repeated once it may have had its
// effect. A mission that gives a unit no retries means that it may not.
func (m *machine) idempotent(i uint32) bool {
	t := m.at(i)
	if r := m.runOfTask(i); r != nil && r.unit(t).Retries == 0 {
		return false
	}
	u := m.types[t.typ].unit
	return u == nil || u.Idempotent
}

// retryOf is how a task is repeated: the unit's way, with the mission's interval.
func (m *machine) retryOf(i uint32) task.Retry {
	t := m.at(i)
	retry := m.retry(t.typ)
	if r := m.runOfTask(i); r != nil && r.unit(t).RetryInterval != mission.Inherit {
		retry.Interval = r.unit(t).RetryInterval
	}
	return retry
}

func (m *machine) retry(typ uint32) task.Retry {
	if u := m.types[typ].unit; u != nil {
		return u.Retry
	}
	return m.set.Retry
}

func (m *machine) retries(i uint32) int {
	if n := m.specAt(i).retries; n != task.Unset {
		return n
	}
	return m.retry(m.at(i).typ).Retries
}

// lateAnswer drops a result that does not count, into the ledger or, if it is
// the one that was applied already, silently.
func (m *machine) lateAnswer(i uint32, e *executor, o *task.Outcome) Applied {
	if i != 0 && o.Version != 0 && (m.at(i).applied == o.Version || m.toldBefore(i, o.Version)) {
		m.repeats++
		return Applied{Verdict: Duplicate, StateVersion: m.stateVersion}
	}
	r := &lateResult{Task: printableCut(o.Task, 128), Version: o.Version, Exec: e.id, Reason: "unknown", Effect: effectOf(o)}
	if i != 0 {
		t := m.at(i)
		if r.Reason = lateReason(t, o.Version); t.state.Out() {
			r.Current = t.version
		}
	} else if gone := m.names.gone[o.Task]; gone != nil {
		r.Reason = gone.State.String()
	}
	if o.Status != task.Stopped { // the answer to a cancel is expected, and would have changed nothing
		m.emit(r)
		m.log.Warn("late result dropped", "task", r.Task, "version", r.Version, "current", r.Current,
			"executor", r.Exec, "reason", r.Reason)
	}
	return Applied{Verdict: Stale, Reason: r.Reason, StateVersion: m.stateVersion}
}

// toldBefore reports whether a failed attempt's own result was applied.
func (m *machine) toldBefore(i uint32, v task.Version) bool {
	return slices.ContainsFunc(m.historyOf(i), func(p pastAttempt) bool { return p.Version == v && p.Told })
}

func lateReason(t taskAt, v task.Version) string {
	switch {
	case v == 0 || v > t.version || v == t.version && t.state.Out():
		return "unknown" // never sent to who says so
	case t.state.Out() || t.state == task.Succeeded:
		return "superseded"
	case t.state == task.Queued || t.state == task.Retrying:
		return "returned"
	}
	return t.state.String()
}

// effectOf says what a dropped result would have brought.
func effectOf(o *task.Outcome) string {
	var parts []string
	if o.Status != task.Success {
		parts = append(parts, o.Status.String())
	}
	for _, v := range o.Outputs {
		parts = append(parts, "out."+v.Name+"="+v.Value)
	}
	for _, c := range o.Changes {
		parts = append(parts, c.Op.String()+"."+c.Key+"="+c.Value)
	}
	return printableCut(strings.Join(parts, " "), 500)
}

func printableCut(s string, most int) string { return task.Printable(cutText(s, most)) }

// returned takes a task back that its executor did not start.
func (m *machine) returned(link Link, c Returned) (Applied, error) {
	x, _, err := m.linked(link, c.Exec)
	if err != nil {
		return Applied{}, err
	}
	m.forgetZombie(x, c.Task, c.Version)
	i := m.find(c.Task)
	if i == 0 || !m.holds(i, x, c.Version) || m.at(i).state != task.Assigned {
		return Applied{Verdict: Stale, Reason: "not held", StateVersion: m.stateVersion}, nil
	}
	m.handBack(i, "returned", true)
	return Applied{StateVersion: m.stateVersion}, nil
}

// handBack returns a task that was sent in vain; nothing is counted.
func (m *machine) handBack(i uint32, reason string, head bool) {
	t := m.at(i)
	if r := m.runOfTask(i); r != nil && (r.flow.stopping || r.state.ended()) {
		m.emit(&ended{Task: m.id(i), State: task.Aborted, Error: "its run stopped: " + r.why})
		return
	}
	m.emit(&handedBack{
		Task: m.id(i), Version: t.version, Exec: m.execs[t.exec].id, Reason: reason, Head: head, Attempt: int(t.attempt) - 1,
	})
}

// progress notes a sign of a running attempt.
func (m *machine) progress(link Link, c Progress) {
	x, e, err := m.linked(link, c.Exec)
	if err != nil {
		return
	}
	i := m.find(c.Task)
	if i == 0 || !m.holds(i, x, c.Version) {
		return
	}
	if c.Start && m.at(i).state == task.Assigned {
		m.emit(&running{Task: c.Task, Version: c.Version})
		m.setAttemptEnd(i)
	}
	if len(c.Changes) > 0 {
		if refused := m.progressChanges(i, c.Changes); refused != "" {
			m.log.Warn("progress refused", "task", c.Task, "executor", e.id, "why", refused)
			c.Message = strings.TrimSpace(c.Message + " (state changes refused: " + refused + ")")
		}
	}
	if m.resident(i) {
		m.setAttemptEnd(i)
	}
	if c.Percent != "" || c.Message != "" {
		e.soft.progress = progressNote{c.Task, printableCut(strings.TrimSpace(c.Percent+" "+c.Message), 300), m.now.wall}
	}
}
