package engine

import (
	"fmt"
	"hash/maphash"
	"log/slog"
	"math/rand/v2"
	"time"
)

// machine decides: state, command and now give records, orders and answers. It
// reads no clock, no disk and no network; what it wants done stands in its
// outbox until the loop has put the turn's records on disk.
type machine struct {
	*state
	set  Settings
	log  *slog.Logger
	rand *rand.Rand
	timing
	batch  outbox
	groups map[string]*group
	missionBook
	triggering triggers
	verdicts   verdicts
	hearsay
	jobs []*job // bulk commands being worked off
	mood
	tally

	reused struct { // records that every task has, used again: apply keeps none
		dispatched dispatched
		resulted   resulted
	}
}

// timing is the turn's time, and what waits for a later one.
type timing struct {
	now   moment
	stamp []byte    // now, as records begin with it
	floor int64     // monotonic: nobody counts as silent from before it
	wallQ deadlines // schedules, retries, expiries: wall nanoseconds
	monoQ deadlines // beats, holds, attempts: monotonic nanoseconds
}

// hearsay is what was heard of units since the start, and needs no journal.
type hearsay struct {
	hashes map[string]string // type: hash of the unit that an executor said last
	prints prints
}

// mood is what the loop tells the machine, and the machine the loop.
type mood struct {
	more     bool // dispatching or a job stopped for lack of room: another turn is due
	stopping bool
	full     bool // the disk: no new work
	tap      tap
}

// tally counts since the start.
type tally struct {
	since   int64  // wall time of the start
	repeats uint64 // duplicate results
	turns   uint64
	places  uint64 // executors put in a bucket
}

// moment is one reading of the clock, in nanoseconds.
type moment struct {
	raw  int64 // the wall clock: what schedules go by
	wall int64 // what records say: raw, but never less than the record before
	mono int64 // since the start: what time-outs go by
}

// outbox is what a turn wants done, in order.
type outbox struct {
	records fields
	ends    []int // of each record in records.out
	sends   []send
}

// send is one order or one answer.
type send struct {
	link   Link
	order  Order // nil: an answer
	ref    uint64
	answer Answer
	err    error
}

// A turn's batch stays well under what the journal takes at once: no command
// adds more than maxCommandBytes, and none is taken once the turn holds turnBytes.
const (
	turnBytes       = 256 << 10
	turnRecords     = 2000
	maxCommandBytes = 1536 << 10
	maxBulk         = 1000 // tasks of one Submit, or of one turn of a bulk command
)

// room reports whether the turn may take on more.
func (m *machine) room() bool {
	return len(m.batch.records.out) < turnBytes && len(m.batch.ends) < turnRecords
}

func newMachine(s *state, set Settings, log *slog.Logger) *machine {
	m := &machine{state: s, set: set, log: log, groups: map[string]*group{}, missionBook: newMissionBook()}
	m.verdicts.said = map[string]string{}
	m.hearsay = hearsay{map[string]string{}, prints{seed: maphash.MakeSeed()}}
	m.rand = rand.New(rand.NewPCG(set.Seed, 11))
	place := func(who due) *uint32 {
		switch who.kind {
		case dueTask:
			return &m.at(who.i).heap
		case dueFeed:
			return &m.feed.heap
		case dueTap:
			return &m.tap.heap
		case dueTrigger:
			return &m.triggering.heap
		case dueCheck:
			return &m.verdicts.heap
		}
		return &m.execs[who.i].soft.heap[who.kind]
	}
	m.wallQ.place, m.monoQ.place = place, place
	return m
}

// begin starts a turn at now. A turn that comes much later than it was due says
// nothing about the executors: they get a full time-out again. Recorded time
// never decreases, however the clock is set.
func (m *machine) begin(now moment, overslept bool) {
	back := max(m.now.raw, m.wall) - now.raw
	if m.now.raw != 0 {
		back = m.now.raw - now.raw
	}
	now.wall = max(now.raw, m.wall)
	m.tick(now)
	if back > int64(time.Second) {
		m.log.Warn("clock went back", "by", time.Duration(back))
		m.emit(&clockBack{By: time.Duration(back)})
	}
	if overslept {
		m.floor = now.mono
	}
	m.turns++
	m.more = false
}

func (m *machine) tick(now moment) {
	m.now = now
	m.stamp = appendMoment(m.stamp[:0], now.wall)
}

// emit records what happened: it is applied at once, and on disk before anything
// of this turn is sent.
func (m *machine) emit(r record) {
	appendRecord(&m.batch.records, m.stamp, r)
	m.batch.ends = append(m.batch.ends, len(m.batch.records.out))
	m.batch.records.out = append(m.batch.records.out, '\n') // keeps field names from joining; not part of a record
	if i := m.apply(m.now.wall, r); i != 0 {
		m.arm(i)
	}
}

// order adds an order for an executor that has a link.
func (m *machine) order(e *executor, o Order) {
	if e.soft.link != nil {
		m.batch.sends = append(m.batch.sends, send{link: e.soft.link, order: o})
	}
}

// answer adds the answer of a command.
func (m *machine) answer(a Ask, answer Answer, err error) {
	if a.Link != nil {
		m.batch.sends = append(m.batch.sends, send{link: a.Link, ref: a.Ref, answer: answer, err: err})
	}
}

// decide takes one command.
func (m *machine) decide(a Ask) {
	switch c := a.Command.(type) {
	case Result:
		applied, err := m.result(a.Link, c)
		m.answer(a, applied, err)
	case Submit:
		tasks, err := m.submit(c)
		m.answer(a, tasks, err)
	case Register:
		reg, err := m.register(a.Link, c)
		m.answer(a, reg, err)
		if err == nil {
			m.greet(c.Exec, reg)
		}
	case Types:
		reg, err := m.changeTypes(a.Link, c)
		m.answer(a, reg, err)
	case Returned:
		applied, err := m.returned(a.Link, c)
		m.answer(a, applied, err)
	case Ready:
		m.ready(a.Link, c)
	case Progress:
		m.progress(a.Link, c)
	case Offline:
		m.leave(a.Link, c)
	case Disconnected:
		m.disconnected(a.Link, c)
	default:
		m.operate(a)
	}
}

// operate takes an operator's command.
func (m *machine) operate(a Ask) {
	switch c := a.Command.(type) {
	case Requeue:
		m.bulk(a, c.Selection, &requeueing{by: c.Actor})
	case Cancel:
		m.bulk(a, c.Selection, &cancelling{by: c.Actor, reason: c.Reason})
	case Drop:
		m.bulk(a, c.Selection, &dropping{by: c.Actor, reason: c.Reason})
	case Edit:
		detail, err := m.edit(c)
		m.answer(a, detail, err)
	case Pause:
		m.answer(a, Done{}, m.pause(c))
	case Drain:
		m.answer(a, Done{}, m.drain(c))
	case Debug:
		m.switchTap(c.On)
		m.answer(a, Done{}, nil)
	case Repair:
		key, err := m.repair(c)
		m.answer(a, key, err)
	default:
		m.operateRuns(a)
	}
}

// operateRuns takes an operator's command about missions.
func (m *machine) operateRuns(a Ask) {
	switch c := a.Command.(type) {
	case SetMissions:
		m.answer(a, Done{}, m.setMissions(c))
	case Happening:
		m.happen(a, c)
	case FileSeen:
		runs, err := m.fileSeen(c)
		m.answer(a, runs, err)
	case StartRun:
		run, err := m.startRun(c)
		m.answer(a, run, err)
	case Resume:
		run, err := m.resume(c)
		m.answer(a, run, err)
	case Rerun:
		again, err := m.rerun(c)
		m.answer(a, again, err)
	case Fork:
		run, err := m.fork(c)
		m.answer(a, run, err)
	case CancelRun:
		run, err := m.cancelRun(c)
		m.answer(a, run, err)
	case Rollback:
		undone, err := m.rollback(c)
		m.answer(a, undone, err)
	case Restore:
		restored, err := m.restore(c)
		m.answer(a, restored, err)
	default:
		m.read(a)
	}
}

// read answers a question; it changes nothing.
func (m *machine) read(a Ask) {
	switch c := a.Command.(type) {
	case GetStatus:
		m.answer(a, m.status(), nil)
	case GetExecutors:
		m.answer(a, m.executors(), nil)
	case GetQueues:
		m.answer(a, m.queues(), nil)
	case GetTasks:
		page, err := m.page(c.Query)
		m.answer(a, page, err)
	case GetTask:
		detail, err := m.detail(c.ID)
		m.answer(a, detail, err)
	case GetExplanation:
		explanation, err := m.explain(c.ID)
		m.answer(a, explanation, err)
	case GetState:
		m.answer(a, m.keyPage(c.Query), nil)
	case GetLate:
		m.answer(a, m.late(c.Limit), nil)
	case GetRuns:
		page, err := m.runPage(c.Query)
		m.answer(a, page, err)
	case GetRun:
		detail, err := m.runDetail(c)
		m.answer(a, detail, err)
	case GetSpec:
		text, err := m.specText(c)
		m.answer(a, text, err)
	case GetMissions:
		m.answer(a, m.missionList(), nil)
	case GetStats:
		m.answer(a, m.stats(), nil)
	default:
		m.answer(a, nil, fmt.Errorf("%w: no such command %T", ErrInvalid, c))
	}
}

// settle ends a turn: what has come due, one slice of the bulk commands, then
// every dispatch that is possible.
func (m *machine) settle() {
	m.armFeed()
	m.expire()
	m.work()
	m.proceed()
	m.pullTriggers()
	m.proceed()
	m.retire()
	m.dispatch()
}

// expire handles every moment that has come.
func (m *machine) expire() {
	for m.room() {
		who, ok := m.wallQ.pop(m.now.raw)
		if !ok {
			if who, ok = m.monoQ.pop(m.now.mono); !ok {
				return
			}
		}
		switch who.kind {
		case dueTask:
			m.taskDue(who.i)
		case dueLife:
			m.checkLife(who.i)
		case dueHold:
			m.endHold(who.i)
		case dueRecall:
			m.recall(who.i)
		case dueOrphan:
			m.orphansDue(who.i)
		case dueFeed:
			m.tellChanges()
		case dueTap:
			m.tapDue()
		case dueTrigger:
			m.tablesDue()
		case dueCheck:
			m.checkMissions()
		}
	}
	m.more = true
}

// wake is how long nothing will happen by itself; ok is false if nothing will.
func (m *machine) wake() (wait time.Duration, ok bool) {
	if m.more || len(m.jobs) > 0 {
		return 0, true
	}
	if at, due := m.wallQ.next(); due {
		// The wall clock may be set while we sleep, so never sleep long on it.
		wait, ok = min(time.Duration(at-m.now.raw), time.Second), true
	}
	if at, due := m.monoQ.next(); due {
		if left := time.Duration(at - m.now.mono); !ok || left < wait {
			wait, ok = left, true
		}
	}
	return max(wait, 0), ok
}
