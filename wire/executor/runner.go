package executor

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/unit"
	"apollo11/wire"
)

// runner runs one attempt after the other in a goroutine of its own.
type runner struct {
	jobs    chan job
	reports chan report
}

type job struct {
	ctx context.Context
	*claim
	attempt
}

// claim is taken once: by the runner that begins, or by the loop that takes back.
type claim struct{ taken atomic.Bool }

func (c *claim) take() bool { return c.taken.CompareAndSwap(false, true) }

// attempt is what runs; log, progress and change may be called until it returns.
type attempt struct {
	task.Assignment
	manifest *unit.Manifest
	log      func([]byte)
	progress func(percent int, message string)
	change   func([]task.Change)
}

// report is what comes of an attempt: signs of life, then its outcome.
type report struct {
	progress wire.Progress
	changes  []task.Change // of a resident unit
	outcome  *task.Outcome
}

func newRunner() runner {
	return runner{jobs: make(chan job, 4), reports: make(chan report, 16)}
}

// work is the goroutine; it ends when jobs is closed.
func (r runner) work(run func(context.Context, attempt) task.Outcome) {
	for j := range r.jobs {
		if !j.take() {
			continue
		}
		o := run(j.ctx, j.attempt)
		o.Task, o.Version = j.Task, j.Version
		r.reports <- report{outcome: &o}
	}
}

// full means that start would wait for the attempt that runs.
func (r runner) full() bool { return len(r.jobs) == cap(r.jobs) }

// start hands an attempt to the runner, which begins it after those before.
func (r runner) start(a *task.Assignment, m *unit.Manifest) *handed {
	ctx, stop := context.WithCancel(context.Background())
	h := &handed{Assignment: a, stop: stop, claim: &claim{}, resident: m.Unit.Resident}
	r.jobs <- job{ctx, h.claim, attempt{
		Assignment: *a, manifest: m,
		log: func(piece []byte) { r.reports <- report{progress: wire.Progress{Log: piece}} },
		progress: func(percent int, message string) {
			p := wire.Progress{Message: message}
			if percent >= 0 {
				p.Percent = strconv.Itoa(percent)
			}
			r.reports <- report{progress: p}
		},
		change: func(changes []task.Change) { r.reports <- report{changes: changes} },
	}}
	return h
}

// longestError keeps a result within its frame, whatever a contract complains of.
const longestError = 4 << 10

func unitRunner(environ []string, work *unit.Workplace, share *unit.Share, now func() time.Time) func(context.Context, attempt) task.Outcome {
	return func(ctx context.Context, a attempt) task.Outcome {
		o := unit.Run(ctx, unit.Job{
			Manifest: a.manifest, Assignment: a.Assignment, Work: work, Share: share, Environ: environ, Now: now,
			Log: a.log, Progress: a.progress, Change: a.change,
		})
		if len(o.Error) > longestError {
			o.Error = strings.ToValidUTF8(o.Error[:longestError], "") + "…"
		}
		return o
	}
}
