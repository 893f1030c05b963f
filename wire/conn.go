package wire

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// MaxQueued is how much may wait for a peer that does not read.
	MaxQueued = 8 << 20

	stall     = 30 * time.Second // for a full socket to take writeSize bytes
	drip      = 10 * time.Second // for a frame, and for every dripBytes of it
	dripBytes = 64 << 10
	writeSize = 64 << 10 // of one write of the writer goroutine
	keepBytes = 64 << 10 // a longer buffer is given back once it is empty
)

var (
	// ErrSlowReader ends a Conn whose peer does not take what is sent.
	ErrSlowReader = errors.New("the peer does not read")
	// ErrDrip ends a Conn that began a frame and did not end it in time.
	ErrDrip = errors.New("half a frame, then too little for too long")
	// ErrSilent ends a Conn from which nothing came in the time set by Within.
	ErrSilent = errors.New("nothing came in time")
	// ErrClosed is returned after Close.
	ErrClosed = errors.New("connection is closed")
)

// Conn is a connection that speaks frames. One goroutine reads (Fill, Next,
// Within, SetCap, Close); any may write. No method but Fill, Wait and Close waits.
type Conn struct {
	net   net.Conn
	base  time.Time    // heard counts from here
	heard atomic.Int64 // nanoseconds after base
	ended atomic.Pointer[error]

	// The reading goroutine only.
	in    Frames
	until time.Time // Within
	began time.Time // when the frame that is half here began; zero: none
	armed time.Time // the deadline that is set

	mu    sync.Mutex // between those who write, and the writer goroutine
	queue queue
}

// queue is what waits to be written; Conn.mu guards it.
type queue struct {
	out    []byte
	spare  []byte        // the writer's buffer, when it has none in work
	flying int           // bytes that the writer has in work
	writer chan struct{} // closed when the writer goroutine ends; nil: there is none
	once   *oneWrite     // nil: no descriptor that can be written without waiting
	err    error         // ends everything
}

// NewConn speaks frames of at most limit bytes of text over c.
func NewConn(c net.Conn, limit int) *Conn {
	conn := &Conn{net: c, base: time.Now(), in: Frames{limit: limit}}
	if s, ok := c.(syscall.Conn); ok {
		if raw, err := s.SyscallConn(); err == nil {
			conn.queue.once = newOneWrite(raw)
		}
	}
	return conn
}

// RemoteAddr is the peer's address.
func (c *Conn) RemoteAddr() net.Addr { return c.net.RemoteAddr() }

// Heard is when bytes last came, or the Conn was made.
func (c *Conn) Heard() time.Time { return c.base.Add(time.Duration(c.heard.Load())) }

// SetCap changes the limit of a frame's text.
func (c *Conn) SetCap(limit int) { c.in.SetCap(limit) }

// Within makes Fill fail with ErrSilent if it still waits when d has passed
// from now; zero takes that back.
func (c *Conn) Within(d time.Duration) {
	c.until = time.Time{}
	if d > 0 {
		c.until = time.Now().Add(d)
	}
}

// Next hands out a frame that is here already, good until the next Fill.
func (c *Conn) Next() (text []byte, ok bool) {
	text, ok, _ = c.in.Next() // Fill tells the error
	if ok {
		c.began = time.Time{}
	}
	return text, ok
}

// Fill waits until Next has something to hand out.
func (c *Conn) Fill() error {
	for {
		ready, err := c.in.Ready()
		if ready || err != nil {
			return err
		}
		if err := c.arm(); err != nil {
			return err
		}
		n, err := c.in.ReadOnce(c.net)
		if n > 0 {
			c.heard.Store(int64(time.Since(c.base)))
		}
		if err != nil {
			return c.readError(err)
		}
	}
}

// arm sets the read deadline, if it is another than before.
func (c *Conn) arm() error {
	deadline := c.until
	if pending := c.in.Pending(); pending > 0 {
		if c.began.IsZero() {
			c.began = time.Now()
		}
		whole := c.began.Add(drip * time.Duration(1+pending/dripBytes))
		if deadline.IsZero() || whole.Before(deadline) {
			deadline = whole
		}
	}
	if deadline != c.armed {
		c.armed = deadline
		if err := c.net.SetReadDeadline(deadline); err != nil {
			return c.readError(err)
		}
	}
	if err := c.ended.Load(); err != nil { // End came before our deadline
		return *err
	}
	return nil
}

func (c *Conn) readError(err error) error {
	if ended := c.ended.Load(); ended != nil {
		return *ended
	}
	c.mu.Lock()
	broken := c.queue.err
	c.mu.Unlock()
	switch {
	case broken != nil:
		return broken
	case errors.Is(err, os.ErrDeadlineExceeded) && c.in.Pending() > 0:
		return ErrDrip
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrSilent
	case errors.Is(err, io.EOF) && c.in.Pending() > 0:
		return io.ErrUnexpectedEOF
	}
	return err
}

// End makes Fill return err, now and ever after; what is queued is still sent.
func (c *Conn) End(err error) {
	if c.ended.CompareAndSwap(nil, &err) {
		c.net.SetReadDeadline(c.base) // long past
	}
}

// Open locks the writing side and hands out the queue to append whole frames
// to; Commit puts it back and unlocks. Between the two no other method may be
// called. What must stay in step with what is sent can be kept under this lock.
func (c *Conn) Open() (dst []byte) {
	c.mu.Lock()
	return c.queue.out
}

// Commit ends what Open began; the next Flush sends dst. A queue over MaxQueued
// breaks the connection.
func (c *Conn) Commit(dst []byte) {
	q := &c.queue
	switch {
	case q.err != nil:
		q.out = nil
	case len(dst)+q.flying > MaxQueued:
		c.fail(ErrSlowReader)
	default:
		q.out = dst
	}
	c.mu.Unlock()
}

// Append adds frames that are encoded already.
func (c *Conn) Append(frames []byte) { c.Commit(append(c.Open(), frames...)) }

// Flush sends what was added, by one write that does not wait; a writer
// goroutine sends the rest of it.
func (c *Conn) Flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := &c.queue
	if q.writer != nil || len(q.out) == 0 || q.err != nil {
		return
	}
	if q.once != nil {
		n, err := q.once.write(q.out)
		if err != nil {
			c.fail(err)
			return
		}
		if n == len(q.out) {
			q.out = emptied(q.out)
			return
		}
		q.out = q.out[:copy(q.out, q.out[n:])]
	}
	q.writer = make(chan struct{})
	go c.writeRest(q.writer)
}

// emptied gives a buffer back for use, or to the collector if it has grown.
func emptied(buf []byte) []byte {
	if cap(buf) > keepBytes {
		return nil
	}
	return buf[:0]
}

// writeRest is the writer goroutine: it ends when there is nothing left.
func (c *Conn) writeRest(done chan struct{}) {
	defer close(done)
	for {
		work := c.takeWork()
		if work == nil {
			return
		}
		for rest := work; len(rest) > 0; {
			chunk := rest[:min(len(rest), writeSize)]
			c.net.SetWriteDeadline(time.Now().Add(stall))
			if _, err := c.net.Write(chunk); err != nil {
				c.writeFailed(err)
				return
			}
			rest = rest[len(chunk):]
			c.mu.Lock()
			c.queue.flying = len(rest)
			c.mu.Unlock()
		}
		c.mu.Lock()
		c.queue.spare = emptied(work)
		c.mu.Unlock()
	}
}

// takeWork moves the queue to the writer; nil ends it.
func (c *Conn) takeWork() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := &c.queue
	if len(q.out) == 0 || q.err != nil {
		q.writer, q.flying = nil, 0
		c.net.SetWriteDeadline(time.Time{}) // a past one would fail the next Flush
		return nil
	}
	work := q.out
	q.out, q.spare, q.flying = q.spare[:0], nil, len(work)
	return work
}

func (c *Conn) writeFailed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = ErrSlowReader
	}
	c.fail(err)
	c.queue.writer, c.queue.flying = nil, 0
}

// fail breaks the connection for both directions; c.mu is held.
func (c *Conn) fail(err error) {
	if c.queue.err == nil {
		c.queue.err = err
		c.queue.out, c.queue.spare = nil, nil
		c.net.Close()
	}
}

// Wait flushes, and returns when all is handed to the system or the Conn is broken.
func (c *Conn) Wait() error {
	c.Flush()
	for {
		c.mu.Lock()
		writer, err := c.queue.writer, c.queue.err
		c.mu.Unlock()
		if writer == nil {
			return err
		}
		<-writer
	}
}

// Break closes at once, from any goroutine; Fill and Wait return err.
func (c *Conn) Break(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail(err)
}

// Close gives the peer up to wait to take what is queued and to hang up, then
// closes. Without waiting for the hang-up, bytes that were not read would reset
// the connection, and the last message with it.
func (c *Conn) Close(wait time.Duration) {
	if wait > 0 {
		c.linger(time.Now().Add(wait))
	}
	c.Break(ErrClosed)
	c.Wait()
}

// linger sends the queue, then reads to the end and forgets it.
func (c *Conn) linger(deadline time.Time) {
	c.Flush()
	c.mu.Lock()
	writer, broken := c.queue.writer, c.queue.err
	c.mu.Unlock()
	if broken != nil {
		return
	}
	if writer != nil {
		timer := time.NewTimer(time.Until(deadline))
		defer timer.Stop()
		select {
		case <-writer:
		case <-timer.C:
			return
		}
	}
	half, ok := c.net.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || c.net.SetReadDeadline(deadline) != nil {
		return
	}
	io.CopyN(io.Discard, c.net, MaxFrame)
}
