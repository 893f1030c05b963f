package executor

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/unit"
	"apollo11/wire"
)

// Options are what an executor is told at its start.
type Options struct {
	Dial     func(context.Context) (net.Conn, error) // to the controller
	Token    string
	ID       string        // empty: HOST-PID-xxxx
	Types    []string      // of the folder's units; empty: all
	Units    string        // the units folder
	Defaults unit.Defaults // for what a manifest leaves out
	Work     string        // where attempts get their folders; empty: the system's temporary folder
	Share    string        // folder of the files that units hand on; empty: none, such units fail
	KeepRuns time.Duration // files in the share that nobody added to for so long are deleted; 0: never
	Environ  []string      // of which a manifest's env picks
	Build    string
	Log      *slog.Logger    // nil: nowhere
	Abort    <-chan struct{} // closed: hand everything back at once; nil: never

	run func(context.Context, attempt) task.Outcome // for tests; nil: processes
}

const (
	startAfter   = 50 * time.Millisecond // a task that runs so long is told to have started
	batchFor     = 5 * time.Millisecond  // a result waits so long for company, while work waits
	batchMost    = 32                    // results in one write
	answerWithin = 5 * time.Second       // a beat without an answer is missed
	missesMost   = 3
	registerIn   = 10 * time.Second
	beatDefault  = 10 * time.Second
	pauseFirst   = 50 * time.Millisecond
	pauseMost    = 2 * time.Second
	leaveWithin  = 5 * time.Second // for the last answers of the controller
)

// agent is the state of an executor; the loop's goroutine owns it.
type agent struct {
	Options
	instance string
	now      time.Time // of this turn of the loop
	units    *catalog
	share    *unit.Share    // nil: none
	capacity task.Resources // of the host
	link     link
	desk     desk
	runner   runner
	changed  chan *catalog // from the watcher
	leaving  leaving
	fatal    error // what no new connection will heal
	meter    meter
}

// leaving says whether and how the executor goes.
type leaving struct {
	on     bool
	reason string
	until  time.Time // give up on answers that are missing then; zero: something still runs
	at     bool      // once: nothing is waited for
}

// Run is one executor from its start to its end in order: nil, or what kept it
// from working. A refused token is a *wire.Error with wire.CodeUnauthorized,
// or wire.CodeForbidden if it is an operator's.
func Run(ctx context.Context, o Options) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.ID == "" {
		o.ID = NewID()
	}
	if o.Work == "" {
		o.Work = os.TempDir()
	}
	share := o.share()
	if o.run == nil {
		work, err := unit.OpenWorkplace(o.Work)
		if err != nil {
			return err
		}
		defer work.Close()
		o.run = unitRunner(o.Environ, work, share, time.Now)
	}
	units, err := loadCatalog(o, nil)
	if err != nil {
		return err
	}
	units.logFaults(o.Log)
	a := &agent{Options: o, instance: randomHex(8), units: units, runner: newRunner(), changed: make(chan *catalog)}
	a.share, a.capacity = share, hostCapacity(o.Work)
	a.link.pause = pauseFirst
	return a.runAll(ctx)
}

// share is the share, and what executors that are no more left half done in it
// deleted; nil: there is none, and most units need none.
func (o *Options) share() *unit.Share {
	if o.Share == "" {
		return nil
	}
	s, err := openShare(o.Share)
	if err != nil {
		o.Log.Warn("no share: units that hand files on or get them will fail here", "error", err)
		return nil
	}
	s.Sweep()
	return s
}

// runAll starts the helpers, and returns when the last has ended.
func (a *agent) runAll(ctx context.Context) error {
	helpers, stop := context.WithCancel(context.WithoutCancel(ctx))
	var group sync.WaitGroup
	group.Go(func() { a.runner.work(a.run) })
	options, units := a.Options, a.units
	group.Go(func() { watch(helpers, options, units, a.changed) })
	if a.share != nil && a.KeepRuns > 0 {
		group.Go(func() { expire(helpers, a.share, options) })
	}
	a.link.group, a.link.ctx = &group, helpers
	err := a.loop(ctx)
	a.link.close()
	close(a.runner.jobs)
	stop()
	group.Wait()
	return err
}

// loop waits in one place, and after each wait does what has become possible.
func (a *agent) loop(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	stop, abort := ctx.Done(), a.Abort
	for a.now = time.Now(); ; {
		a.keepLink()
		a.startNext()
		a.sayStarted()
		a.sayLive(false)
		a.sayResults()
		if a.gone() {
			return a.fatal
		}
		timer.Reset(a.next().Sub(a.now))
		var take func()
		select {
		case conn := <-a.link.dialed:
			take = func() { a.connected(conn) }
		case batch := <-a.link.batches:
			take = func() { a.take(batch) }
		case report := <-a.runner.reports:
			take = func() { a.report(report) }
		case units := <-a.changed:
			take = func() { a.changeUnits(units) }
		case <-stop:
			stop = nil
			take = func() { a.withdraw(); a.leave("told to stop") }
		case <-abort:
			abort = nil
			take = func() { a.leaveAtOnce("told to stop at once") }
		case <-timer.C:
			take = func() {}
		}
		a.now = time.Now()
		take()
	}
}

// next is when something is due if nothing comes before.
func (a *agent) next() time.Time {
	due := a.now.Add(time.Hour)
	live := a.desk.live.due()
	if a.link.state != up {
		live = time.Time{}
	}
	link := a.link.due()
	if a.link.state == down && a.leaving.at { // it is not dialed again
		link = time.Time{}
	}
	for _, at := range []time.Time{link, a.desk.startDue(), live, a.link.flushAt, a.leaving.until} {
		if !at.IsZero() && at.Before(due) {
			due = at
		}
	}
	return due
}

// startNext keeps the runner supplied: with what it runs, and with what comes
// next.
func (a *agent) startNext() {
	for d := &a.desk; len(d.waiting) > 0 && !a.leaving.at; {
		if d.running != nil && (d.next != nil || a.runner.full()) {
			return
		}
		oldest := d.pop()
		manifest := a.units.get(oldest.Type)
		switch {
		case manifest == nil:
			a.refuse(oldest)
		case d.running == nil:
			d.running = a.runner.start(oldest, manifest)
			d.running.began = a.now
		default:
			d.next = a.runner.start(oldest, manifest)
		}
	}
}

// sayStarted tells of a task that is no short one.
func (a *agent) sayStarted() {
	r := a.desk.running
	if r == nil || r.said || a.now.Before(r.began.Add(startAfter)) {
		return
	}
	r.said = true
	a.progress(wire.Progress{Start: true})
}

// sayResults sends what was added, unless more results are about to follow.
func (a *agent) sayResults() {
	if a.link.flushAt.IsZero() {
		return
	}
	idle := a.desk.running == nil || a.desk.next == nil
	if idle || a.link.added >= batchMost || !a.now.Before(a.link.flushAt) {
		a.link.flush()
	}
}

// report takes what the runner has to say about the running attempt.
func (a *agent) report(r report) {
	switch {
	case a.leaving.at && r.outcome == nil:
	case a.leaving.at:
		a.desk.ended(a.now) // the controller has given it to another
	case len(r.changes) > 0:
		a.takeLive(r.changes)
	case r.outcome == nil:
		a.progress(r.progress)
		a.link.flush()
	default:
		a.finished(r.outcome)
	}
}

func (a *agent) finished(o *task.Outcome) {
	left := a.desk.running.left
	a.failLive(o)
	a.sayLive(true) // before the result: what comes after it counts for nothing
	a.desk.ended(a.now)
	a.leaveResident()
	if left && o.Status == task.Stopped {
		return // the offline gives it back
	}
	a.desk.keep(o)
	if a.link.state == up {
		a.link.add(a.desk.frame(o), a.now)
	}
	a.Log.Debug("task ended", "task", o.Task, "version", o.Version.String(), "status", o.Status.String(), "error", o.Error)
}

// progress says something of the running attempt, now or, for as much as fits,
// when there is a link again.
func (a *agent) progress(p wire.Progress) {
	p.Task, p.Version = a.desk.running.Task, a.desk.running.Version
	frame := wire.AppendProgress(nil, &p)
	switch {
	case a.link.state == up:
		a.link.add(frame, a.now)
	case !p.Start:
		a.desk.hold(frame)
	}
}

// withdraw offers no unit any more, lest the controller send a task that this
// executor gives back, and again, until one crosses the offline and counts as
// lost. What was sent before the controller knew is here before its answer.
func (a *agent) withdraw() {
	if names := a.units.names(); a.link.state == up && !a.leaving.on && len(names) > 0 {
		a.sayTypes(nil, names)
	}
}

// leave ends in order: what runs is finished, the rest given back.
func (a *agent) leave(reason string) {
	if a.leaving.on {
		return
	}
	a.leaving.on, a.leaving.reason = true, reason
	back := a.desk.takeBackAll()
	a.Log.Info("leaving", "reason", reason, "finishing", a.desk.running != nil, "giving back", len(back))
	for _, ref := range back {
		a.giveBack(ref)
	}
	a.leaveResident()
}

// leaveResident ends a unit that would never end by itself, for another executor
// to go on with.
func (a *agent) leaveResident() {
	if r := a.desk.running; a.leaving.on && r != nil && r.resident {
		r.left = true
		r.stop()
	}
}

func (a *agent) leaveAtOnce(reason string) {
	a.Log.Info("leaving at once", "reason", reason)
	a.leaving.on, a.leaving.at, a.leaving.reason = true, true, reason
	a.sayOffline()
	a.drop()
}

// drop ends everything that was not ended.
func (a *agent) drop() {
	a.desk.takeBackAll()
	for _, h := range []*handed{a.desk.running, a.desk.next} {
		if h != nil {
			h.stop()
		}
	}
}

func (a *agent) sayOffline() {
	if a.link.conn != nil { // also before the register is answered
		a.link.add(wire.AppendOffline(nil, a.leaving.reason), a.now)
		a.link.flush()
	}
}

// gone reports whether nothing is left to do before the end.
func (a *agent) gone() bool {
	if a.fatal != nil && !a.leaving.at {
		a.leaving.at = true
		a.drop()
	}
	switch {
	case !a.leaving.on && a.fatal == nil, a.desk.running != nil:
		return false
	case a.leaving.at:
		return true
	case len(a.desk.results) == 0 && a.link.types == 0:
		a.sayOffline()
		return true
	case a.leaving.until.IsZero():
		a.leaving.until = a.now.Add(leaveWithin)
		return false
	case a.now.Before(a.leaving.until):
		return false
	}
	if len(a.desk.results) == 0 {
		a.sayOffline()
		return true
	}
	a.fatal = fmt.Errorf("%d results were not acknowledged: the controller will run these tasks again", len(a.desk.results))
	a.sayOffline()
	return true
}
