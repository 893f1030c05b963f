package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"apollo11/wire"
)

// times are those of the latency phase's tasks, in nanoseconds of the run.
type times struct {
	due, started, acked []atomic.Int64 // started and acked count from due
	count               atomic.Int64   // of those that started
}

// latency is an open loop: a task's time counts from when it is due, whether or
// not a producer is free then.
func (r *run) latency(ctx context.Context) (sample, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	n := max(1, int(r.Load.Low.Seconds()*float64(r.Load.Rate)))
	t := &times{due: make([]atomic.Int64, n), started: make([]atomic.Int64, n), acked: make([]atomic.Int64, n)}
	workers, err := r.crew(ctx, fail, r.Load.Workers, func(payload string) { t.start(indexOf(payload), r.now()) })
	if err != nil {
		return nil, err
	}
	defer workers.stop()
	producers, closeAll, err := r.operators(ctx, r.Load.Producers)
	if err != nil {
		return nil, err
	}
	defer closeAll()
	if err := pause(ctx, calmBefore); err != nil {
		return nil, err
	}
	m := r.meter()
	if err := r.trickle(ctx, fail, producers, t); err != nil {
		return nil, err
	}
	if err := r.drain(ctx, producers[0], &t.count, int64(n)); err != nil {
		return nil, err
	}
	s := sample{}
	if cpu, ok := m.read(int64(n))["server_cpu_s_per_1000"]; ok {
		s["lowload_server_cpu_s_per_1000"] = cpu
	}
	started, acked := sortedMillis(t.started), sortedMillis(t.acked)
	s["start_p50_ms"], s["start_p99_ms"] = quantile(started, 50), quantile(started, 99)
	s["ack_p50_ms"], s["ack_p99_ms"] = quantile(acked, 50), quantile(acked, 99)
	return s, nil
}

// start notes that task i has reached a worker.
func (t *times) start(i int, now time.Duration) {
	if i < 0 || i >= len(t.due) {
		return
	}
	if t.started[i].CompareAndSwap(0, max(1, int64(now)-t.due[i].Load())) {
		t.count.Add(1)
	}
}

// trickle submits task after task when it is due, and waits for the acknowledgements.
func (r *run) trickle(ctx context.Context, fail context.CancelCauseFunc, producers []*wire.Client, t *times) error {
	n := len(t.due)
	due := make(chan int, n)
	var group sync.WaitGroup
	for _, c := range producers {
		group.Go(func() {
			for i := range due {
				if _, err := c.Submit(ctx, specs(i, i+1, r.Load.Payload)); err != nil {
					fail(fmt.Errorf("submit: %w", err))
					return
				}
				t.acked[i].Store(int64(r.now()) - t.due[i].Load())
			}
		})
	}
	begun := r.now()
	for i := range n {
		if wait := time.Duration(i)*time.Second/time.Duration(r.Load.Rate) - (r.now() - begun); wait > 0 {
			if pause(ctx, wait) != nil {
				break
			}
		}
		t.due[i].Store(int64(r.now()))
		due <- i
		r.show(int64(i), n)
	}
	close(due)
	group.Wait()
	return context.Cause(ctx)
}
