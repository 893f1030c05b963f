package engine

import (
	"context"
	"fmt"
	"time"
)

const (
	sealAfter   = time.Second // of quiet, before the last batch is sealed
	lateTurn    = time.Second // a turn that comes so much too late proves nothing about executors
	askBacklog  = 256         // posts that may wait before posters do
	imageSlice  = 400         // slots encoded a turn: about a millisecond
	imageChunk  = 256 << 10
	imageChange = 100 // state changes
	imageEvery  = 30 * time.Second
	imageGrowth = 1 << 20 // least growth of the journal between two images
)

// Run is the loop. It returns nil after an orderly stop, which ctx asks for, and
// an error when the journal failed: then nothing more was acknowledged.
func (e *Engine) Run(ctx context.Context) error {
	defer close(e.done)
	e.base = time.Now()
	e.m.set.base = e.base
	defer e.dropImage()
	if err := e.turn(e.clock(), (*machine).boot); err != nil {
		return err
	}
	close(e.booted)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		dueAt := e.sleepUntil(timer)
		var ended *imageEnd
		select {
		case <-ctx.Done():
			return e.stop()
		case asks := <-e.incoming():
			e.pending = append(e.pending, asks...)
		case <-timer.C:
		case e.toImage() <- e.chunk:
			e.chunk = nil
		case end := <-e.imageEnds():
			ended = &end
		}
		e.takeMore()
		now := e.clock()
		overslept := dueAt >= 0 && now.mono-dueAt > int64(lateTurn)
		err := e.turnWith(now, overslept, func(m *machine) {
			if ended != nil {
				e.endImage(*ended)
			}
			e.decidePending()
			e.sealIfQuiet()
			m.settle()
		})
		if err != nil {
			return err
		}
		e.goOnImaging()
	}
}

// sleepUntil sets the timer to the next moment at which something happens by
// itself, and returns that moment, or -1.
func (e *Engine) sleepUntil(timer *time.Timer) int64 {
	wait, ok := e.m.wake()
	if left := e.sealAt - e.m.now.mono; e.sealAt != 0 && (!ok || time.Duration(left) < wait) {
		wait, ok = max(time.Duration(left), 0), true
	}
	if len(e.pending) > 0 || e.imaging != nil && e.chunk == nil {
		wait, ok = 0, true
	}
	if !ok {
		timer.Stop()
		return -1
	}
	// The turn took its time: what is due counts from its beginning.
	dueAt := e.m.now.mono + int64(wait)
	timer.Reset(time.Duration(dueAt - e.clock().mono))
	return dueAt
}

// incoming is the channel of commands while the loop is not behind.
func (e *Engine) incoming() <-chan []Ask {
	if len(e.pending) >= turnRecords {
		return nil
	}
	return e.asks
}

// takeMore takes what else has come, so that one write to disk serves it all.
func (e *Engine) takeMore() {
	for len(e.pending) < turnRecords {
		select {
		case asks := <-e.asks:
			e.pending = append(e.pending, asks...)
		default:
			return
		}
	}
}

// decidePending decides as much as the turn has room for, in order.
func (e *Engine) decidePending() {
	n := 0
	for n < len(e.pending) && e.m.room() {
		e.m.decide(e.pending[n])
		n++
	}
	rest := copy(e.pending, e.pending[n:])
	clear(e.pending[rest:])
	e.pending = e.pending[:rest]
}

// clock reads the time once for a turn, wall time cut to what records keep.
func (e *Engine) clock() moment {
	now := time.Now()
	return moment{raw: wallOf(now), mono: int64(now.Sub(e.base))}
}

func (e *Engine) turn(now moment, do func(*machine)) error { return e.turnWith(now, false, do) }

// turnWith is one turn: decide, make durable, and only then tell.
func (e *Engine) turnWith(now moment, overslept bool, do func(*machine)) error {
	e.m.full = e.store.Full()
	e.m.begin(now, overslept)
	do(e.m)
	if err := e.append(now); err != nil {
		return err
	}
	e.release()
	return nil
}

// append puts the turn's records on disk.
func (e *Engine) append(now moment) error {
	batch := &e.m.batch
	if len(batch.ends) == 0 {
		return nil
	}
	e.entries = e.entries[:0]
	start := 0
	for _, end := range batch.ends {
		e.entries = append(e.entries, batch.records.out[start:end])
		start = end + 1
	}
	e.grown += len(batch.records.out)
	if err := e.store.Append(time.Unix(0, e.m.now.wall), e.entries); err != nil {
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	if alone := e.sealed && len(batch.ends) == 1; !alone {
		e.sealAt = now.mono + int64(sealAfter)
	}
	e.sealed = false
	batch.ends, batch.records.out = batch.ends[:0], batch.records.out[:0]
	return nil
}

// sealIfQuiet marks the end of what was written as not torn.
func (e *Engine) sealIfQuiet() {
	if e.sealAt != 0 && e.m.now.mono >= e.sealAt {
		e.sealAt = 0
		if len(e.m.batch.ends) == 0 {
			e.m.emit(&sealed{})
			e.sealed = true
		}
	}
}

// release sends what the turn decided; all of it is on disk.
func (e *Engine) release() {
	e.stateVersion.Store(e.m.stateVersion)
	e.debugging.Store(e.m.tap.on)
	sends := e.m.batch.sends
	for n := range sends {
		s := &sends[n]
		if s.order != nil {
			s.link.Order(s.order)
		} else {
			s.link.Answer(s.ref, s.answer, s.err)
		}
		if e.flush == nil {
			e.flush = map[Link]struct{}{}
		}
		e.flush[s.link] = struct{}{}
	}
	for link := range e.flush {
		link.Flush()
	}
	clear(e.flush)
	clear(sends)
	e.m.batch.sends = sends[:0]
}

// stop ends in order: what was asked already is decided, new work is refused,
// executors are told, and an image makes the next start short.
func (e *Engine) stop() error {
	e.m.stopping = true
	e.takeMore()
	for first := true; first || len(e.pending) > 0; first = false {
		err := e.turn(e.clock(), func(m *machine) {
			e.decidePending()
			if len(e.pending) == 0 {
				m.dismissAll("controller is stopping")
			}
		})
		if err != nil {
			return err
		}
	}
	e.finishImage()
	if e.m.seq > e.imagedSeq {
		e.startImage()
		e.finishImage()
	}
	return nil
}

// dismissAll closes every executor's link. Their tasks stay theirs: they come
// back when the controller does.
func (m *machine) dismissAll(reason string) {
	for _, e := range m.execs[1:] {
		if e != nil {
			m.order(e, Dismiss{Reason: reason, Stopping: true})
			e.soft.link = nil
		}
	}
	for _, j := range m.jobs {
		m.answer(j.ask, &j.answer, ErrStopping)
	}
	m.jobs = nil
	for _, h := range m.triggering.told {
		m.answer(h.ask, nil, ErrStopping)
	}
	m.triggering.told = nil
}
