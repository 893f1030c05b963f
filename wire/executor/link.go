package executor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"apollo11/engine/task"
	"apollo11/wire"
)

// linkState is how far a connection has come.
type linkState uint8

const (
	down linkState = iota
	dialing
	registering
	up
)

func (s linkState) String() string {
	return [...]string{"down", "dialing", "registering", "up"}[s]
}

// link is the connection to the controller; the loop's goroutine owns it.
type link struct {
	state   linkState
	conn    *wire.Conn
	pause   time.Duration // before the next dial, if this one fails
	dialAt  time.Time
	dialed  chan dialed  // nil unless dialing
	batches chan []event // nil unless there is a connection
	quit    chan struct{}

	beat    beat
	flushAt time.Time // when what was added is sent at the latest; zero: nothing was
	added   int       // frames since the last flush
	types   int       // types messages that were not answered
	bare    bool      // the register had no room for the contracts

	ctx   context.Context // ends dialing
	group *sync.WaitGroup
}

// beat is the life signs of a connection.
type beat struct {
	every  time.Duration
	at     time.Time // of the next
	asked  time.Time // when the oldest question without an answer was asked; zero: none
	misses int
}

type dialed struct {
	conn net.Conn
	err  error
}

// event is one message of the controller, read, or the end of the connection.
type event struct {
	task   *task.Assignment
	cancel *wire.Ref
	recall *wire.Ref
	reason string
	drain  bool
	ack    *wire.Ack
	said   *wire.Error
	bad    error // a message that cannot be read
	end    error // no more comes
}

// keepLink dials, beats and gives up, as the time says.
func (a *agent) keepLink() {
	l := &a.link
	switch l.state {
	case down:
		if !a.now.Before(l.dialAt) && !a.leaving.at {
			l.dial(a.Dial)
		}
	case registering:
		if !a.now.Before(l.beat.asked.Add(registerIn)) {
			a.lost(errors.New("the register was not answered"))
		}
	case up:
		a.keepBeat()
	}
}

func (a *agent) keepBeat() {
	b := &a.link.beat
	late := !b.asked.IsZero() && !a.now.Before(b.asked.Add(answerWithin))
	if late {
		b.misses++
		if b.misses >= missesMost {
			a.lost(fmt.Errorf("%d heartbeats were not answered", b.misses))
			return
		}
		b.asked = time.Time{}
	}
	if !late && a.now.Before(b.at) {
		return
	}
	b.at = a.now.Add(b.every)
	if b.asked.IsZero() {
		b.asked = a.now
	}
	beat := wire.Heartbeat{Load: a.desk.load()}
	a.meter.read(&beat, a.Work)
	a.link.add(wire.AppendHeartbeat(nil, &beat), a.now)
	a.link.flush()
}

// due is when keepLink has something to do.
func (l *link) due() time.Time {
	switch l.state {
	case down:
		return l.dialAt
	case registering:
		return l.beat.asked.Add(registerIn)
	case up:
		if !l.beat.asked.IsZero() {
			if late := l.beat.asked.Add(answerWithin); late.Before(l.beat.at) {
				return late
			}
		}
		return l.beat.at
	}
	return time.Time{}
}

func (l *link) dial(dial func(context.Context) (net.Conn, error)) {
	l.state, l.dialed = dialing, make(chan dialed, 1)
	answer, ctx := l.dialed, l.ctx
	l.group.Go(func() {
		conn, err := dial(ctx)
		answer <- dialed{conn, err}
	})
}

// connected registers on a new connection.
func (a *agent) connected(d dialed) {
	l := &a.link
	l.dialed = nil
	if d.err == nil && a.leaving.at { // to register now would put out who has come under this name
		d.conn.Close()
		d.err = errors.New("leaving")
	}
	if d.err != nil {
		a.lost(d.err)
		return
	}
	l.state, l.conn = registering, wire.NewConn(d.conn, wire.MaxFrame)
	l.batches, l.quit = make(chan []event), make(chan struct{})
	l.beat = beat{every: beatDefault, asked: a.now}
	conn, batches, quit := l.conn, l.batches, l.quit
	l.group.Go(func() { read(conn, batches, quit) })
	var frame []byte
	frame, l.bare = a.registerFrame()
	l.add(frame, a.now)
	l.flush()
}

// lost ends a connection; the next one is tried after a pause.
func (a *agent) lost(err error) {
	l := &a.link
	if l.state == up {
		a.Log.Warn("the link is lost", "error", err)
	} else {
		a.Log.Warn("no link to the controller", "error", err, "again in", l.pause)
	}
	l.hangUp(err)
	l.dialAt = a.now.Add(l.pause + time.Duration(rand.Float64()*float64(l.pause)/2))
	l.pause = min(2*l.pause, pauseMost)
}

// hangUp ends a connection that is of no use.
func (l *link) hangUp(err error) {
	if l.conn != nil {
		l.conn.Break(err)
	}
	l.close()
}

// lastWords is how long a closed link may take to send what was added.
const lastWords = time.Second

// close hangs up. The reader closes the connection, once it has sent the rest.
func (l *link) close() {
	if l.dialed != nil {
		pending := l.dialed
		l.group.Go(func() {
			if d := <-pending; d.conn != nil {
				d.conn.Close()
			}
		})
	}
	if l.conn != nil {
		close(l.quit)
		l.conn.End(wire.ErrClosed)
	}
	*l = link{pause: l.pause, dialAt: l.dialAt, ctx: l.ctx, group: l.group}
}

// add appends frames to what is sent soon.
func (l *link) add(frames []byte, now time.Time) {
	l.conn.Append(frames)
	l.added++
	if l.flushAt.IsZero() {
		l.flushAt = now.Add(batchFor)
	}
}

func (l *link) flush() {
	if l.conn != nil && l.added > 0 {
		l.conn.Flush()
	}
	l.added, l.flushAt = 0, time.Time{}
}

// read hands on a connection's messages, all that are here at once.
func read(conn *wire.Conn, batches chan<- []event, quit <-chan struct{}) {
	defer conn.Close(lastWords)
	var m wire.Message
	for {
		var batch []event
		err := conn.Fill()
		if err != nil {
			batch = []event{{end: err}}
		}
		for text, ok := conn.Next(); ok && err == nil; text, ok = conn.Next() {
			if e, some := readEvent(&m, text); some {
				batch = append(batch, e)
			}
		}
		select {
		case batches <- batch:
		case <-quit:
			return
		}
		if err != nil {
			return
		}
	}
}

// readEvent takes one message apart; false: nothing that asks for anything.
func readEvent(m *wire.Message, text []byte) (e event, some bool) {
	if len(text) == 0 {
		return e, false
	}
	if e.bad = m.Parse(text); e.bad != nil {
		return e, true
	}
	switch m.Type {
	case wire.TypeTask:
		e.task, e.bad = wire.ParseTask(m, 2)
	case wire.TypeCancel:
		e.cancel, e.reason, e.bad = readRef(m)
	case wire.TypeRecall:
		e.recall, e.reason, e.bad = readRef(m)
	case wire.TypeDrain:
		e.drain, e.reason = true, wire.ParseReason(m)
	case wire.TypeAck:
		e.ack, e.bad = wire.ParseAck(m)
	case wire.TypeError:
		e.said, e.bad = wire.ParseError(m)
	default: // of a later protocol, or not asked for
		return e, false
	}
	if e.bad != nil {
		e = event{bad: e.bad}
	}
	return e, true
}

func readRef(m *wire.Message) (*wire.Ref, string, error) {
	ref, reason, err := wire.ParseRef(m)
	return &ref, reason, err
}
