package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"apollo11/wire"
)

// run is one phase on one controller.
type run struct {
	*Options
	phase  Phase
	base   time.Time
	target *target
}

// now is the time since the run began.
func (r *run) now() time.Duration { return r.Now().Sub(r.base) }

func (r *run) show(done int64, total int) {
	if r.Show != nil {
		r.Show(r.phase, int(done), total)
	}
}

const (
	settle     = 200 * time.Millisecond // before a measurement, for everybody to be there
	drainIn    = time.Minute            // for the last task to be done
	drainLook  = time.Millisecond
	showEvery  = 100 * time.Millisecond
	firstIn    = time.Minute            // for the first task after a restart
	calmBefore = 500 * time.Millisecond // before memory is read
)

// operator connects a client.
func (r *run) operator(ctx context.Context) (*wire.Client, error) {
	return wire.Dial(ctx, r.target.addr, wire.ClientOptions{Token: r.Token, Actor: "bench"})
}

func (r *run) operators(ctx context.Context, n int) (list []*wire.Client, closeAll func(), err error) {
	closeAll = func() {
		for _, c := range list {
			c.Close()
		}
	}
	for range n {
		c, err := r.operator(ctx)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		list = append(list, c)
	}
	return list, closeAll, nil
}

// left is how many tasks of ours have not ended.
func left(ctx context.Context, c *wire.Client) (int64, error) {
	queues, err := c.Queues(ctx)
	for _, q := range queues {
		if q.Type == taskType {
			return q.Queued + q.Out, err
		}
	}
	return 0, err
}

// quota is what producers share: tasks by the batch, until all are sent or the
// time is over.
type quota struct {
	total, batch int
	in           time.Duration
	next, sent   atomic.Int64
}

// produce lets every producer submit from the quota; it returns how long that took.
func (r *run) produce(ctx context.Context, producers []*wire.Client, q *quota) (time.Duration, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	begun := r.now()
	var group sync.WaitGroup
	for _, c := range producers {
		group.Go(func() {
			for r.now()-begun < q.in && ctx.Err() == nil {
				hi := int(q.next.Add(int64(q.batch)))
				lo := hi - q.batch
				hi = min(hi, q.total)
				if lo >= hi {
					return
				}
				if _, err := c.Submit(ctx, specs(lo, hi, r.Load.Payload)); err != nil {
					fail(fmt.Errorf("submit: %w", err))
					return
				}
				q.sent.Add(int64(hi - lo))
			}
		})
	}
	all := make(chan struct{})
	go func() {
		group.Wait()
		close(all)
	}()
	r.showUntil(all, &q.sent, q.total)
	return r.now() - begun, context.Cause(ctx)
}

// showUntil shows how far a count has come until a channel is closed.
func (r *run) showUntil(done <-chan struct{}, count *atomic.Int64, total int) {
	ticker := time.NewTicker(showEvery)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			r.show(count.Load(), total)
		}
	}
}

// throughput is tasks through the controller, as many as it takes.
func (r *run) throughput(ctx context.Context, batch int) (sample, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var handled atomic.Int64
	workers, err := r.crew(ctx, fail, r.Load.Workers, func(string) { handled.Add(1) })
	if err != nil {
		return nil, err
	}
	defer workers.stop()
	producers, closeAll, err := r.operators(ctx, r.Load.Producers)
	if err != nil {
		return nil, err
	}
	defer closeAll()
	if err := pause(ctx, settle); err != nil {
		return nil, err
	}
	m := r.meter()
	q := &quota{total: r.Load.Tasks, batch: batch, in: r.Load.Cap}
	took, err := r.produce(ctx, producers, q)
	if err != nil {
		return nil, err
	}
	sent := q.sent.Load()
	if err := r.drain(ctx, producers[0], &handled, sent); err != nil {
		return nil, err
	}
	s := m.read(sent)
	s["enqueue_per_s"] = float64(sent) / took.Seconds()
	return s, nil
}

// drain waits until every task has ended.
func (r *run) drain(ctx context.Context, c *wire.Client, handled *atomic.Int64, sent int64) error {
	begun := r.now()
	for {
		if handled.Load() >= sent {
			if n, err := left(ctx, c); err != nil || n == 0 {
				return err
			}
		}
		if r.now()-begun > drainIn {
			return fmt.Errorf("%d of %d tasks were handled, then nothing for %s", handled.Load(), sent, drainIn)
		}
		if err := pause(ctx, drainLook); err != nil {
			return err
		}
		r.show(handled.Load(), int(sent))
	}
}

// meter reads what tasks cost, from when it is made.
type meter struct {
	run       *run
	at        time.Duration
	mine      float64
	begun     usage
	known, us bool
}

func (r *run) meter() *meter {
	m := &meter{run: r, at: r.now()}
	m.begun, m.known = r.target.usage()
	m.mine, m.us = ownCPU()
	return m
}

// read is the figures of n tasks.
func (m *meter) read(n int64) sample {
	r := m.run
	s := sample{"tasks": float64(n), "end_to_end_tasks_per_s": float64(n) / (r.now() - m.at).Seconds()}
	if u, ok := r.target.usage(); ok && m.known {
		s["server_cpu_s_per_1000"] = (u.cpu - m.begun.cpu) / float64(n) * 1000
		s["peak_rss_mib"] = u.peak / (1 << 20)
		s["startup_ms"] = float64(r.target.booted) / 1e6
	}
	if mine, ok := ownCPU(); ok && m.us {
		s["client_cpu_s_per_1000"] = (mine - m.mine) / float64(n) * 1000
	}
	return s
}

// sortedMillis turns durations into sorted milliseconds.
func sortedMillis(list []atomic.Int64) []float64 {
	out := make([]float64, len(list))
	for i := range list {
		out[i] = float64(list[i].Load()) / 1e6
	}
	slices.Sort(out)
	return out
}
