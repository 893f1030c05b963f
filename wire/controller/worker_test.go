package controller_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"apollo11/engine/task"
	"apollo11/wire"
)

// worker is an executor inside the test: fast, and as badly behaved as it is
// allowed to be.
type worker struct {
	id     string
	types  []string
	proto  int
	keeps  bool // protocol 2: what was not acknowledged is kept and sent again
	addr   func() string
	random *rand.Rand

	conn    *wire.Conn
	msg     wire.Message
	unacked map[wire.Ref]*task.Outcome
	life    int             // of its process, as the controller is told
	stale   []*task.Outcome // of former lives: said all the same, too late
}

func newWorker(id string, proto int, addr func() string, random *rand.Rand) *worker {
	return &worker{id: id, types: []string{"fast"}, proto: proto, addr: addr, random: random, unacked: map[wire.Ref]*task.Outcome{}}
}

// work connects, works, and connects again until ctx ends.
func (w *worker) work(ctx context.Context, t testing.TB) {
	for ctx.Err() == nil {
		nc, err := wire.DialTCP(ctx, w.addr())
		if err != nil {
			pause(ctx, 5*time.Millisecond)
			continue
		}
		w.conn = wire.NewConn(nc, wire.MaxFrame)
		stop := context.AfterFunc(ctx, func() { w.conn.Break(wire.ErrClosed) })
		if err := w.serve(ctx); errors.Is(err, errSurprise) {
			t.Error(err)
		}
		stop()
		w.conn.Close(0)
		if !w.keeps {
			w.stale = w.stale[:0]
			for _, o := range w.unacked {
				w.stale = append(w.stale, o)
			}
			clear(w.unacked)
			w.life++
		}
	}
}

// errSurprise is what no controller should answer.
var errSurprise = errors.New("a surprise")

// pause waits as long as a busy client would be busy.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// next waits for a message.
func (w *worker) next() error {
	for {
		if text, ok := w.conn.Next(); ok {
			return w.msg.Parse(text)
		}
		w.conn.Flush()
		if err := w.conn.Fill(); err != nil {
			return err
		}
	}
}

func (w *worker) serve(ctx context.Context) error {
	r := wire.Register{Exec: w.id, Types: w.types, Proto: w.proto}
	if w.proto == 2 {
		r.Instance = fmt.Sprint(w.id, "-", w.life)
		for ref := range w.unacked {
			r.Running = append(r.Running, wire.Held{Task: ref.Task, Version: ref.Version, Phase: wire.Ended})
		}
	}
	w.conn.Append(wire.AppendRegister(nil, &r))
	if err := w.next(); err != nil {
		return err
	}
	if w.msg.Type != wire.TypeAck {
		return w.said()
	}
	if w.proto == 1 {
		return w.ask()
	}
	return w.push(ctx)
}

func (w *worker) said() error {
	said, err := wire.ParseError(&w.msg)
	if err != nil {
		return fmt.Errorf("%w: %s got %s", errSurprise, w.id, w.msg.Type)
	}
	if !said.Fatal { // the controller stops, or gave this executor up
		return fmt.Errorf("%w: %s was told %w", errSurprise, w.id, said)
	}
	return said
}

// ask is protocol 1: one heartbeat, one task, one result.
func (w *worker) ask() error {
	for {
		w.conn.Append(wire.AppendHeartbeat(nil, &wire.Heartbeat{Exec: w.id}))
		if err := w.next(); err != nil {
			return err
		}
		switch w.msg.Type {
		case wire.TypeAck:
			continue
		case wire.TypeTask:
		default:
			return w.said()
		}
		a, err := wire.ParseTask(&w.msg, 1)
		if err != nil {
			return fmt.Errorf("%w: %w", errSurprise, err)
		}
		o := w.outcome(a)
		o.Version = 0 // as the document's own executor, which does not know of it
		w.conn.Append(wire.AppendResult(nil, o, 1))
		if err := w.next(); err != nil {
			return err
		}
		if w.msg.Type != wire.TypeAck {
			return w.said()
		}
	}
}

// push is protocol 2.
func (w *worker) push(ctx context.Context) error {
	for _, o := range w.unacked {
		w.conn.Append(wire.AppendResult(nil, o, 2))
	}
	for _, o := range w.stale {
		w.conn.Append(wire.AppendResult(nil, o, 2))
	}
	ctx, stop := context.WithCancel(ctx)
	beats := make(chan struct{})
	go func() {
		defer close(beats)
		for ctx.Err() == nil {
			pause(ctx, 200*time.Millisecond)
			w.conn.Append(wire.AppendHeartbeat(nil, &wire.Heartbeat{}))
			w.conn.Flush()
		}
	}()
	defer func() {
		stop()
		<-beats
	}()
	for {
		if err := w.next(); err != nil {
			return err
		}
		if err := w.take(); err != nil {
			return err
		}
	}
}

func (w *worker) take() error {
	switch w.msg.Type {
	case wire.TypeTask:
		a, err := wire.ParseTask(&w.msg, 2)
		if err != nil {
			return fmt.Errorf("%w: %w", errSurprise, err)
		}
		o := w.outcome(a)
		w.unacked[wire.Ref{Task: a.Task, Version: a.Version}] = o
		for range 1 + w.random.IntN(40)/39 { // some say everything twice
			w.conn.Append(wire.AppendResult(nil, o, 2))
		}
	case wire.TypeAck:
		ack, err := wire.ParseAck(&w.msg)
		if err != nil {
			return fmt.Errorf("%w: %w", errSurprise, err)
		}
		delete(w.unacked, wire.Ref{Task: ack.Task, Version: ack.Version})
	case wire.TypeRecall, wire.TypeCancel: // its result is on its way
	default:
		return w.said()
	}
	return nil
}

const madeBy = "made"

// outcome adds one to the state and says of which dispatch it is; some attempts
// fail first.
func (w *worker) outcome(a *task.Assignment) *task.Outcome {
	o := &task.Outcome{Task: a.Task, Version: a.Version, Exit: -1}
	if w.random.IntN(50) == 0 {
		o.Error = "no such luck"
		return o
	}
	o.Status = task.Success
	o.Outputs = task.Values{{Name: madeBy, Value: a.Version.String()}, {Name: "n", Value: "1"}}
	return o
}
