package engine

import (
	"strings"
	"time"

	"apollo11/engine/task"
)

// resident reports whether a task is of a unit that runs on and on: what it says
// of its progress changes the state, its life is measured by that, and it is
// started again whenever it ends otherwise than by itself.
func (m *machine) resident(i uint32) bool {
	u := m.types[m.at(i).typ].unit
	return u != nil && u.Resident
}

// progressed is a resident unit's change of the state while it runs.
type progressed struct {
	Task         string
	Version      task.Version
	Set          task.Values // resolved
	Del          string      // comma list of keys
	StateVersion uint64      // after it
}

func (*progressed) kind() string { return "task.progress" }
func (r *progressed) walk(f *fields) {
	f.str("task", &r.Task)
	f.version("v", &r.Version)
	f.values("set", &r.Set)
	f.str("del", &r.Del)
	f.u64("sv", &r.StateVersion)
}

func (r *progressed) apply(s *state) uint32 {
	i := s.mustHold(r.Task, r.Version)
	s.changeKeys(r.Set, r.Del, r.Task)
	return i
}

// changeKeys makes the changes of a result.
func (s *state) changeKeys(set task.Values, del, by string) {
	for _, v := range set {
		s.setKey(v.Name, v.Value, by)
	}
	for key := range strings.SplitSeq(del, ",") {
		if key != "" {
			s.delKey(key)
		}
	}
}

// progressChanges applies what a resident unit's progress says of the state, all
// or nothing. It is not answered: what is refused stands in the log, and where
// its progress is shown.
func (m *machine) progressChanges(i uint32, changes []task.Change) (refused string) {
	if !m.resident(i) {
		return "only a resident unit's progress may change the state"
	}
	m.setAttemptEnd(i)
	if r := m.runOfTask(i); r != nil && r.origin.Sample > 0 {
		return ""
	}
	set, del, err := m.resolve(nil, changes)
	if err != nil {
		return printableCut(err.Error(), 300)
	}
	if n := entryBytes(set); n > maxEntryBytes {
		return "too many bytes of state at once"
	}
	if len(set)+len(del) > 0 {
		t := m.at(i)
		m.emit(&progressed{Task: m.id(i), Version: t.version, Set: set, Del: strings.Join(del, ","), StateVersion: m.stateVersion + uint64(len(set)+len(del))})
	}
	return ""
}

// residentSilence is how long a resident unit may say nothing of its progress: then
// it counts as stuck, and is started again.
const residentSilence = 10 * time.Minute

// steady is how long a resident unit has to run for its next failure to count
// as the first.
const steady = time.Minute

// restart says when a resident unit that failed is started again; ok is false if
// it is none, or was asked not to be.
func (m *machine) restartResident(i uint32, r *failed) (ok bool) {
	if !m.resident(i) || !m.idempotent(i) || m.specAt(i).retries != task.Unset || !(r.Class.UsesRetry() || r.Class == task.ExecutorLost) {
		return false
	}
	t := m.at(i)
	if r.Class == task.ExecutorLost {
		r.Next = task.Queued
		return true
	}
	if r.Tries++; m.now.wall-t.started > int64(steady) {
		r.Tries = 1
	}
	retry := m.retryOf(i)
	retry.Backoff = max(retry.Backoff, 2)
	wait := min(retry.Wait(int(min(r.Tries, 16)), m.rand.Float64()), longestRestart)
	r.Next, r.Due = task.Retrying, m.now.wall+int64(wait.Truncate(time.Microsecond))
	return true
}

// longestRestart bounds the pause before a resident unit is started again.
const longestRestart = time.Minute
