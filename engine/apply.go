package engine

import (
	"fmt"
	"strconv"

	"apollo11/engine/task"
)

// The apply methods of records, but for those of executors: the only code that
// changes durable fields, live and in recovery. They read the state and the
// record, and nothing else.

func (r *started) apply(s *state) uint32 {
	if r.Epoch <= s.epoch || r.Epoch > maxEpoch {
		panic(brokenRule(fmt.Sprintf("epoch %d after %d", r.Epoch, s.epoch)))
	}
	s.epoch = r.Epoch
	return 0
}

func (r *sealed) apply(*state) uint32    { return 0 }
func (r *clockBack) apply(*state) uint32 { return 0 }
func (r *imaged) apply(*state) uint32    { return 0 }

func (r *configured) apply(s *state) uint32 {
	s.configVersion, s.configHash = r.Version, r.Hash
	s.setKey(configVersionKey, strconv.FormatUint(r.Version, 10), "")
	return 0
}

func (r *submitted) apply(s *state) uint32 {
	spec := taskSpec{id: r.Task, key: r.Key, filled: r.Filled, retries: r.Retries - 1, timeout: r.Timeout}
	if err := spec.check(); err != nil {
		panic(brokenRule(err.Error()))
	}
	i := s.create(r.Task)
	if i == 0 {
		panic(brokenRule(fmt.Sprintf("task %q is there already", r.Task)))
	}
	s.nums++
	t := s.at(i)
	t.num, t.submitted, t.named = s.nums, s.wall, r.Named
	t.spec, t.typ = s.putSpec(&spec, r.Inputs), s.typ(r.Type)
	if r.NotBefore != 0 || r.Deadline != 0 {
		t = s.own(i)
		t.notBefore, t.deadline = r.NotBefore, r.Deadline
	}
	if r.Kept {
		t = s.own(i)
		t.kept = true
		s.pinContext(i, &pinned{Values: r.Context})
	}
	s.types[t.typ].refs++
	s.push(&s.all, byNum, i)
	if r.Key != "" {
		s.names.name(nameKey{s.types[t.typ].name, r.Key}, r.Task)
	}
	if r.State == task.Scheduled {
		s.own(i).due = r.NotBefore
	}
	s.enter(i, r.State)
	if r.State == task.Queued {
		s.line(i, false)
	}
	return i
}

func (r *dispatched) apply(s *state) uint32 {
	i := s.mustFind(r.Task)
	x := s.mustExec(r.Exec)
	t := s.own(i)
	if r.Version <= t.version {
		panic(brokenRule(fmt.Sprintf("task %s is sent as %s after %s", r.Task, r.Version, t.version)))
	}
	s.enter(i, task.Assigned)
	s.release(t.exec)
	s.execs[x].refs++
	t.version, t.seen, t.started, t.exec = r.Version, r.StateVersion, s.wall, x
	t.attempt = uint32(r.Attempt)
	t.sent++
	s.tail++
	t.order = s.tail
	t.fresh, t.moved = len(r.ContextAt) > 0, false
	s.pinContext(i, &pinned{r.Context, r.ContextAt})
	e := s.execs[x]
	s.push(&e.held, inQueue, i)
	e.soft.bytes += len(s.texts.get(t.spec))
	e.lift(s.types[t.typ].needs())
	s.dirty = append(s.dirty, x)
	s.types[t.typ].out++
	if t.fresh {
		for _, v := range r.ContextAt {
			s.held[v.Name] = i
		}
	}
	return i
}

// pinContext keeps the context of a dispatch.
func (s *state) pinContext(i uint32, p *pinned) {
	t := s.own(i)
	if len(p.Values)+len(p.At) == 0 {
		s.replace(&t.context, nil)
		return
	}
	f := s.blank()
	p.walk(f)
	s.replace(&t.context, f.out)
}

func (r *running) apply(s *state) uint32 {
	i := s.mustHold(r.Task, r.Version)
	s.enter(i, task.Running)
	return i
}

func (r *resulted) apply(s *state) uint32 {
	i := s.mustHold(r.Task, r.Version)
	t := s.at(i)
	s.enter(i, task.Succeeded)
	t.applied, t.class = r.Version, task.NoClass
	t.tries, t.crashes, t.stales = 0, 0, 0
	s.putResult(i, &taskResult{Outputs: r.Outputs, Timing: r.Timing, Unit: r.Unit})
	s.execs[t.exec].done++
	s.changeKeys(r.Set, r.Del, r.Task)
	s.markUndone(i)
	s.advance(i)
	return i
}

// markUndone notes at the task whose effect a rollback took back that it did.
func (s *state) markUndone(i uint32) {
	r := s.runOfTask(i)
	if r == nil || r.origin.Mode != modeRollback {
		return
	}
	if parent := s.findRun(r.origin.Parent); parent != nil {
		of := parent.flow.units[s.at(i).unit]
		s.touch(of)
		s.own(of).undone = true
	}
}

func (r *failed) apply(s *state) uint32 {
	i := s.mustHold(r.Task, r.Version)
	t := s.at(i)
	if r.Next != task.Retrying && r.Next != task.Queued && r.Next != task.Dead && r.Next != task.Aborted {
		panic(brokenRule(fmt.Sprintf("task %s fails into %s", r.Task, r.Next)))
	}
	s.remember(i, pastAttempt{
		Attempt: int(t.attempt), Version: t.version, Exec: s.execs[t.exec].id, Class: r.Class, Error: r.Error,
		Started: t.started, Finished: s.wall, Timing: r.Timing, Outputs: r.Outputs, Told: r.Told,
	})
	s.enter(i, r.Next)
	if r.Told {
		t.applied = r.Version
	}
	t.class, t.due = r.Class, r.Due
	t.tries, t.crashes, t.stales = r.Tries, r.Crashes, r.Stales
	s.replace(&t.result, nil)
	s.execs[t.exec].failed++
	if r.Next == task.Queued {
		s.line(i, r.Head)
	}
	return i
}

func (r *handedBack) apply(s *state) uint32 {
	i := s.mustHold(r.Task, r.Version)
	s.enter(i, task.Queued)
	s.at(i).attempt = uint32(r.Attempt)
	s.line(i, r.Head)
	return i
}

func (r *enqueued) apply(s *state) uint32 {
	i := s.mustFind(r.Task)
	s.enter(i, task.Queued)
	t := s.at(i)
	if t.due != 0 {
		t.due = 0
	}
	if r.Fresh {
		t = s.own(i)
		if t.deadline <= s.wall {
			t.deadline = 0 // it passed: who wants the task nevertheless wants it at any time
		}
		t.tries, t.crashes, t.stales, t.finished = 0, 0, 0, 0
		t.class = task.NoClass
		s.replace(&t.result, nil)
	}
	s.line(i, r.Head)
	return i
}

func (r *ended) apply(s *state) uint32 {
	i := s.mustFind(r.Task)
	t := s.own(i)
	if !r.State.Terminal() || r.State == task.Succeeded {
		panic(brokenRule(fmt.Sprintf("task %s ends %s without a result", r.Task, r.State)))
	}
	if t.state.Out() {
		s.remember(i, pastAttempt{
			Attempt: int(t.attempt), Version: t.version, Exec: s.execs[t.exec].id, Class: r.Class, Error: r.Error,
			Started: t.started, Finished: s.wall,
		})
	}
	s.enter(i, r.State)
	t.class, t.due = r.Class, 0
	s.putResult(i, &taskResult{Error: r.Error, By: r.By})
	return i
}

func (r *forgotten) apply(s *state) uint32 {
	for range r.Count {
		i := s.done.oldest
		if i == 0 {
			panic(brokenRule("nothing left to forget"))
		}
		s.touch(i)
		s.discard(i, s.at(i).finished)
	}
	return 0
}

func (r *keysForgotten) apply(s *state) uint32 {
	s.names.forget(r.Count)
	return 0
}

func (r *unitDeclared) apply(s *state) uint32 {
	u, err := task.ParseUnit(r.Text)
	if err != nil {
		panic(brokenRule(fmt.Sprintf("unit of type %q: %v", r.Type, err)))
	}
	t := s.types[s.typ(r.Type)]
	t.unit, t.text = &u, r.Text
	return 0
}

func (r *paused) apply(s *state) uint32 {
	if r.Type == "" {
		s.paused = r.On
	} else {
		s.types[s.typ(r.Type)].paused = r.On
	}
	return 0
}

func (r *repaired) apply(s *state) uint32 {
	if r.Delete {
		s.delKey(r.Key)
	} else {
		s.setKey(r.Key, r.Value, "")
	}
	return 0
}

func (r *lateResult) apply(s *state) uint32 {
	s.lates++
	s.ledger.add(ledgerLine{lateResult: *r, Time: s.wall})
	return 0
}
