package cli

import (
	"strconv"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// segments are where the time of a run's attempts went, gathered event by event.
type segments struct {
	tries []attempt
	open  map[string]*opened // by task
}

// opened is a task that waits or runs.
type opened struct {
	queued time.Time // zero: it does not wait
	try    int       // index of the attempt that runs, and 1
}

// attempt is one try of a unit.
type attempt struct {
	unit                                         string
	number                                       string
	queue, prepare, execute, cleanup, controller time.Duration
	started                                      time.Time
	outcome                                      string // empty: it runs
}

// The kinds of records that begin and end a segment.
const (
	kindReady  = "task.ready"
	kindSubmit = "task.submit"
	kindQueue  = "task.queue"
	kindStart  = "task.start"
	kindResult = "task.result"
	kindBack   = "task.back"
)

func (s *segments) add(e *view.Event) {
	if e.Task == "" {
		return
	}
	if s.open == nil {
		s.open = map[string]*opened{}
	}
	o := s.open[e.Task]
	if o == nil {
		o = &opened{}
		s.open[e.Task] = o
	}
	switch e.Kind {
	case kindReady, kindSubmit, kindQueue:
		o.queued = e.Time.Time
	case kindStart:
		s.start(o, e)
	case kindResult:
		s.end(o, e, task.Succeeded.String())
	case kindFail:
		s.end(o, e, valueOf(e, "class"))
		if valueOf(e, "state") == task.Queued.String() {
			o.queued = e.Time.Time
		}
	case kindBack:
		s.end(o, e, "handed back")
		o.queued = e.Time.Time
	case kindEnd:
		s.end(o, e, valueOf(e, "state"))
		delete(s.open, e.Task)
	}
}

func (s *segments) start(o *opened, e *view.Event) {
	t := attempt{unit: unitOf(e), number: valueOf(e, "attempt"), started: e.Time.Time}
	if !o.queued.IsZero() {
		t.queue = max(0, e.Time.Sub(o.queued))
	}
	s.tries = append(s.tries, t)
	o.queued, o.try = time.Time{}, len(s.tries)
}

// end closes the attempt that runs; what the executor did not account for is the
// way there and back, and the controller.
func (s *segments) end(o *opened, e *view.Event, outcome string) {
	if o.try == 0 {
		return
	}
	t := &s.tries[o.try-1]
	o.try = 0
	t.outcome = outcome
	t.prepare, t.execute, t.cleanup = microsOf(e, "prepare_us"), microsOf(e, "execute_us"), microsOf(e, "cleanup_us")
	t.controller = max(0, e.Time.Sub(t.started)-t.prepare-t.execute-t.cleanup)
}

// unitOf is the unit's name in its mission.
func unitOf(e *view.Event) string {
	if name, ok := cutRun(e.Task); ok {
		return name
	}
	return e.Task
}

func microsOf(e *view.Event, name string) time.Duration {
	n, err := strconv.ParseInt(valueOf(e, name), 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(n) * time.Microsecond
}

// printSegments prints a line for every attempt.
func (a *app) printSegments(s *segments) error {
	if len(s.tries) == 0 || a.json {
		return nil
	}
	if _, err := a.out.WriteString("\n"); err != nil {
		return err
	}
	t := a.table(
		column{title: "UNIT", least: 12}, column{title: "TRY", right: true}, column{title: "QUEUE", right: true},
		column{title: "PREPARE", right: true, drop: 2}, column{title: "EXECUTE", right: true}, column{title: "CLEANUP", right: true, drop: 3},
		column{title: "REST", right: true, drop: 1}, column{title: "OUTCOME", least: 9},
	)
	return list(a, t, s.tries, segmentCells)
}

func segmentCells(t *attempt) []cell {
	if t.outcome == "" {
		return []cell{{text: t.unit}, {text: t.number}, {text: span(t.queue)}, {}, {}, {}, {}, {"running", cyan}}
	}
	outcome := cell{t.outcome, red}
	if t.outcome == task.Succeeded.String() {
		outcome.style = green
	}
	return []cell{
		{text: t.unit}, {text: t.number}, {text: span(t.queue)}, {text: brief(t.prepare)}, {text: brief(t.execute)},
		{text: brief(t.cleanup)}, {text: brief(t.controller)}, outcome,
	}
}

// brief is a span, or nothing if there was none.
func brief(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return span(d)
}
