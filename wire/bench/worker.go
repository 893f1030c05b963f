package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"apollo11/engine/task"
	"apollo11/wire"
)

// worker is an executor whose units take no time.
type worker struct {
	conn *wire.Conn
	msg  wire.Message
	beat time.Duration
}

// crew is the workers of a phase.
type crew struct {
	workers []*worker
	group   sync.WaitGroup
	leave   context.CancelFunc
}

var errLeft = errors.New("the worker has left")

// crew registers n workers and sets them to work; what ends one too early ends
// the phase. Stop waits for them.
func (r *run) crew(ctx context.Context, fail context.CancelCauseFunc, n int, handle func(payload string)) (*crew, error) {
	ctx, leave := context.WithCancel(ctx)
	c := &crew{leave: leave}
	for i := range n {
		w, err := r.register(ctx, i)
		if err != nil {
			c.stop()
			return nil, fmt.Errorf("worker %d: %w", i+1, err)
		}
		c.workers = append(c.workers, w)
		c.group.Go(func() {
			if err := w.work(handle); !errors.Is(err, errLeft) {
				fail(fmt.Errorf("worker %d: %w", i+1, err))
			}
		})
	}
	c.group.Go(func() { c.heartbeats(ctx) })
	return c, nil
}

// stop takes the workers out.
func (c *crew) stop() {
	c.leave()
	for _, w := range c.workers {
		w.conn.Break(errLeft)
	}
	c.group.Wait()
}

// heartbeats are for workers that have nothing else to say.
func (c *crew) heartbeats(ctx context.Context) {
	beat := wire.AppendHeartbeat(nil, &wire.Heartbeat{})
	every := c.workers[0].beat
	if every <= 0 {
		every = 10 * time.Second
	}
	for pause(ctx, every) == nil {
		for _, w := range c.workers {
			w.conn.Append(beat)
			w.conn.Flush()
		}
	}
}

// register connects an executor.
func (r *run) register(ctx context.Context, n int) (*worker, error) {
	nc, err := wire.DialTCP(ctx, r.target.addr)
	if err != nil {
		return nil, err
	}
	w := &worker{conn: wire.NewConn(nc, wire.MaxFrame)}
	u := unit()
	if err := u.ReadyRules(); err != nil {
		panic("bench: the unit's contract: " + err.Error())
	}
	w.conn.Append(wire.AppendRegister(nil, &wire.Register{
		Exec: fmt.Sprintf("bench-%d", n+1), Types: []string{taskType}, Token: r.ExecutorToken, Proto: 2,
		Units: []task.Unit{u}, Instance: fmt.Sprintf("%s-%d", r.phase, n+1),
	}))
	stop := context.AfterFunc(ctx, func() { w.conn.Break(context.Cause(ctx)) })
	defer stop()
	if err := w.welcome(); err != nil {
		w.conn.Break(err)
		return nil, err
	}
	return w, nil
}

// welcome waits for the answer to a register.
func (w *worker) welcome() error {
	if err := w.conn.Wait(); err != nil {
		return err
	}
	for {
		if text, ok := w.conn.Next(); ok {
			if err := w.msg.Parse(text); err != nil {
				return err
			}
			break
		}
		if err := w.conn.Fill(); err != nil {
			return err
		}
	}
	if w.msg.Type == wire.TypeError {
		return said(&w.msg)
	}
	ack, err := wire.ParseAck(&w.msg)
	if err == nil && len(ack.Refused) > 0 {
		err = errors.New(ack.Refused[0])
	}
	w.beat = ack.Heartbeat
	return err
}

func said(m *wire.Message) error {
	e, err := wire.ParseError(m)
	if err != nil {
		return err
	}
	return e
}

// work answers every task of a read by one write.
func (w *worker) work(handle func(payload string)) error {
	var out []byte
	for {
		if err := w.conn.Fill(); err != nil {
			return err
		}
		out = out[:0]
		for text, ok := w.conn.Next(); ok; text, ok = w.conn.Next() {
			if err := w.msg.Parse(text); err != nil {
				return err
			}
			switch w.msg.Type {
			case wire.TypeTask:
				handle(w.msg.Text("in." + inputName))
				var err error
				if out, err = appendResult(out, &w.msg); err != nil {
					return err
				}
			case wire.TypeError:
				return said(&w.msg)
			}
		}
		if len(out) > 0 {
			w.conn.Append(out)
			w.conn.Flush()
		}
	}
}

// appendResult appends the success of a task.
func appendResult(dst []byte, m *wire.Message) ([]byte, error) {
	version, err := task.ParseVersion(m.Text("version"))
	if err != nil {
		return dst, err
	}
	return wire.AppendResult(dst, &task.Outcome{Task: m.Text("task_id"), Version: version, Status: task.Success}, 2), nil
}
