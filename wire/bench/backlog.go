package bench

import (
	"context"
	"fmt"
)

// backlog queues tasks that nobody takes, kills the controller and looks at what
// it knows when it is back.
func (r *run) backlog(ctx context.Context) (sample, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	if err := r.introduce(ctx, fail); err != nil {
		return nil, err
	}
	before, known := r.target.usage()
	q := &quota{total: r.Load.Backlog, batch: r.Load.Batch, in: r.Load.BacklogIn}
	s, err := r.fill(ctx, q)
	if err != nil {
		return nil, err
	}
	filled, _ := r.target.usage()
	if err := pause(ctx, calmBefore); err != nil {
		return nil, err
	}
	n := float64(q.sent.Load())
	if after, ok := r.target.usage(); ok && known {
		s["rss_bytes_per_queued"] = (after.rss - before.rss) / n
		s["backlog_server_cpu_s_per_1000"] = (filled.cpu - before.cpu) / n * 1000
		s["backlog_peak_rss_mib"] = after.peak / (1 << 20)
	}
	if bytes, ok := onDisk(r.target.data()); ok {
		s["disk_bytes_per_queued"] = float64(bytes) / n
	}
	return s, r.recovery(ctx, fail, s)
}

// introduce makes the contract known: one worker comes and goes.
func (r *run) introduce(ctx context.Context, fail context.CancelCauseFunc) error {
	w, err := r.crew(ctx, fail, 1, func(string) {})
	if err != nil {
		return err
	}
	w.stop()
	return pause(ctx, settle)
}

// fill queues the quota.
func (r *run) fill(ctx context.Context, q *quota) (sample, error) {
	producers, closeAll, err := r.operators(ctx, r.Load.Producers)
	if err != nil {
		return nil, err
	}
	defer closeAll()
	took, err := r.produce(ctx, producers, q)
	if err != nil {
		return nil, err
	}
	n := float64(q.sent.Load())
	return sample{"backlog_tasks": n, "backlog_enqueue_per_s": n / took.Seconds()}, nil
}

// recovery is the restart after a crash: until the first answer, and until the
// first task.
func (r *run) recovery(ctx context.Context, fail context.CancelCauseFunc, s sample) error {
	if err := r.target.crash(); err != nil {
		return err
	}
	begun := r.now()
	if err := r.spawn(ctx); err != nil {
		return err
	}
	c, err := r.operator(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	n, err := left(ctx, c)
	if err != nil {
		return err
	}
	s["restart_ready_ms"] = float64(r.now()-begun) / 1e6
	s["recovered"] = float64(n)
	if u, ok := r.target.usage(); ok {
		s["restart_rss_mib"] = u.rss / (1 << 20)
	}
	if float64(n) < s["backlog_tasks"] {
		return fmt.Errorf("%d of %.0f tasks came back", n, s["backlog_tasks"])
	}
	first := make(chan struct{}, 1)
	w, err := r.crew(ctx, fail, 1, func(string) {
		select {
		case first <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return err
	}
	defer w.stop()
	ctx, cancel := context.WithTimeout(ctx, firstIn)
	defer cancel()
	select {
	case <-first:
		s["restart_first_task_ms"] = float64(r.now()-begun) / 1e6
		return nil
	case <-ctx.Done():
		return fmt.Errorf("no task after the restart: %w", context.Cause(ctx))
	}
}
