package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"time"
)

// Phase is one way of loading a controller.
type Phase uint8

// The phases, in the order in which they run.
const (
	One     Phase = iota // every task is a submit of its own
	Batch                // tasks come by the batch
	Latency              // few tasks, so that each finds the controller idle
	Backlog              // no workers; then SIGKILL and a restart
)

var phaseNames = [...]string{"one", "batch", "latency", "backlog"}

func (p Phase) String() string {
	if int(p) < len(phaseNames) {
		return phaseNames[p]
	}
	return fmt.Sprintf("phase(%d)", uint8(p))
}

// ParsePhase is the inverse of String.
func ParsePhase(text string) (Phase, error) {
	for p, name := range phaseNames {
		if name == text {
			return Phase(p), nil
		}
	}
	return 0, fmt.Errorf("unknown phase %q: want one, batch, latency or backlog", text)
}

// ErrNotOurs is returned for a phase that kills its controller, if that is
// somebody else's.
var ErrNotOurs = errors.New("the backlog phase kills its controller: it needs a private one")

// Options say what to load, and how. Now, and Command or Addr, are needed.
type Options struct {
	Command       func(p Phase, dir string) *exec.Cmd // a private controller on the data folder dir
	Addr          string                              // a running one instead
	Token         string                              // for operators
	ExecutorToken string
	Orderly       bool // a private controller is asked to stop and not killed, so that it can write its profile

	Phases []Phase
	Load   Load
	Now    func() time.Time
	Show   func(p Phase, done, total int) // called now and then; may be nil
}

// Load is how much of everything.
type Load struct {
	Producers int
	Workers   int
	Tasks     int           // of a throughput phase, at most
	Payload   int           // bytes of a task's one input
	Batch     int           // tasks of one submit of the batch and backlog phases
	Cap       time.Duration // a throughput phase submits no longer
	Reps      int
	Rate      int           // tasks a second of the latency phase
	Low       time.Duration // how long that takes
	Backlog   int           // tasks to queue
	BacklogIn time.Duration // no longer than that
}

// DefaultLoad is the load that other task queues were measured under.
func DefaultLoad() Load {
	return Load{
		Producers: 8, Workers: 8, Tasks: 100_000, Payload: 100, Batch: 100, Cap: 3 * time.Second, Reps: 1,
		Rate: 200, Low: 5 * time.Second, Backlog: 1_000_000, BacklogIn: 15 * time.Second,
	}
}

// Check names the first setting that makes no sense.
func (l *Load) Check() error {
	for _, s := range []struct {
		name            string
		value, min, max int
	}{
		{"producers", l.Producers, 1, 1000}, {"workers", l.Workers, 1, 10_000}, {"tasks", l.Tasks, 1, 1 << 30},
		{"payload", l.Payload, indexBytes, 64 << 10}, {"batch", l.Batch, 1, 1000}, {"reps", l.Reps, 1, 100},
		{"rate", l.Rate, 1, 100_000}, {"backlog", l.Backlog, 1, 1 << 30},
	} {
		if s.value < s.min || s.value > s.max {
			return fmt.Errorf("%s %d: want %d to %d", s.name, s.value, s.min, s.max)
		}
	}
	return nil
}

// Report is what came out. It is written as one JSON object.
type Report struct {
	Load   Load
	Phases map[Phase]map[string]Figure
	Errors map[Phase]error
}

// MarshalJSON writes the fields of the drivers of other task queues.
func (r *Report) MarshalJSON() ([]byte, error) {
	out := map[string]any{
		"peer": "apollo11", "mode": "durable", "producers": r.Load.Producers, "workers": r.Load.Workers,
		"payload": r.Load.Payload, "batch_size": r.Load.Batch,
	}
	for p, figures := range r.Phases {
		out[p.String()] = figures
	}
	for p, err := range r.Errors {
		out[p.String()+"_error"] = err.Error()
	}
	return json.Marshal(out)
}

// Run goes through the phases. What one of them could not do is in the report,
// and in the error.
func Run(ctx context.Context, o Options) (*Report, error) {
	r := &Report{Load: o.Load, Phases: map[Phase]map[string]Figure{}, Errors: map[Phase]error{}}
	if err := o.Load.Check(); err != nil {
		return r, err
	}
	var faults []error
	for _, p := range o.Phases {
		figures, err := o.repeat(ctx, p)
		r.Phases[p] = figures
		if err != nil {
			err = fmt.Errorf("%s: %w", p, err)
			r.Errors[p] = err
			faults = append(faults, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return r, errors.Join(faults...)
}

// repeat runs one phase as often as asked.
func (o *Options) repeat(ctx context.Context, p Phase) (map[string]Figure, error) {
	all := map[string][]float64{}
	for range o.Load.Reps {
		got, err := o.once(ctx, p)
		if err != nil {
			return figures(all), err
		}
		for name, value := range got {
			all[name] = append(all[name], value)
		}
	}
	return figures(all), nil
}

// once runs one phase on a fresh controller.
func (o *Options) once(ctx context.Context, p Phase) (sample, error) {
	if p == Backlog && o.Command == nil {
		return nil, ErrNotOurs
	}
	disk, err := syncRate(o.Now)
	if err != nil {
		return nil, err
	}
	r := &run{Options: o, phase: p, base: o.Now()}
	if err := r.start(ctx); err != nil {
		return nil, err
	}
	got, err := r.measure(ctx)
	if stopped := r.target.stop(o.Orderly); err == nil {
		err = stopped
	}
	if err != nil {
		return nil, err
	}
	maps.Copy(got, sample{"disk_fdatasync_per_s": disk})
	return got, nil
}

func (r *run) measure(ctx context.Context) (sample, error) {
	switch r.phase {
	case One:
		return r.throughput(ctx, 1)
	case Batch:
		return r.throughput(ctx, r.Load.Batch)
	case Latency:
		return r.latency(ctx)
	}
	return r.backlog(ctx)
}
