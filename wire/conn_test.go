package wire

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pair is a Conn and the raw other end of it.
func pair(t *testing.T, network string) (*Conn, net.Conn) {
	t.Helper()
	near, far := net.Pipe()
	if network == "tcp" {
		near, far = tcpPair(t)
	}
	c := NewConn(near, MaxFrame)
	t.Cleanup(func() {
		far.Close()
		c.Close(0)
	})
	return c, far
}

func tcpPair(t *testing.T) (near, far net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if near, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return near, far
}

// What many goroutines append arrives whole, each in its order, however large.
func TestConnWrites(t *testing.T) {
	for _, network := range []string{"tcp", "pipe"} {
		c, far := pair(t, network)
		const writers, each = 4, 50
		var group sync.WaitGroup
		for w := range writers {
			group.Go(func() {
				for i := range each {
					text := bytes.Repeat([]byte{byte('a' + w)}, 1+i*700)
					c.Append(AppendFrame(nil, text))
					c.Flush()
				}
			})
		}
		lengths := map[byte][]int{}
		in := NewFrames(MaxFrame)
		for n := 0; n < writers*each; {
			text, ok, err := in.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				if _, err := in.ReadOnce(far); err != nil {
					t.Fatal(err)
				}
				continue
			}
			n++
			if bytes.Count(text, text[:1]) != len(text) {
				t.Fatalf("%s: frames are mixed", network)
			}
			lengths[text[0]] = append(lengths[text[0]], len(text))
		}
		group.Wait()
		for w, list := range lengths {
			for i, n := range list {
				if n != 1+i*700 {
					t.Fatalf("%s: frame %d of %c has %d bytes", network, i, w, n)
				}
			}
		}
		if err := c.Wait(); err != nil {
			t.Errorf("%s: %v", network, err)
		}
	}
}

// What one write does not take is sent by the writer goroutine, in order.
func TestConnLargeQueue(t *testing.T) {
	c, far := pair(t, "tcp")
	text := make([]byte, 5<<20)
	for i := range text {
		text[i] = byte(i / 1000)
	}
	c.Append(text)
	c.Flush()
	c.Append([]byte("more"))
	got := make([]byte, len(text)+4)
	if _, err := io.ReadFull(far, got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, append(text, "more"...)) {
		t.Error("the bytes are not those that were sent")
	}
}

// A writer that nobody reads from is dropped at the cap, at once, by Flush's
// caller and without a wait; its memory goes.
func TestConnQueueCap(t *testing.T) {
	for _, network := range []string{"tcp", "pipe"} {
		c, _ := pair(t, network)
		frame := AppendFrame(nil, make([]byte, 1<<20))
		for i := range 100 {
			c.Append(frame)
			c.Flush()
			c.mu.Lock()
			waits, err := len(c.queue.out)+c.queue.flying, c.queue.err
			c.mu.Unlock()
			if waits > MaxQueued {
				t.Fatalf("%s: %d bytes wait", network, waits)
			}
			if err != nil {
				break
			}
			if i == 99 {
				t.Fatalf("%s: not dropped", network)
			}
		}
		if err := c.Wait(); !errors.Is(err, ErrSlowReader) {
			t.Errorf("%s: Wait says %v", network, err)
		}
		if err := c.Fill(); !errors.Is(err, ErrSlowReader) {
			t.Errorf("%s: Fill says %v", network, err)
		}
		if c.queue.out != nil || c.queue.spare != nil {
			t.Errorf("%s: memory is kept", network)
		}
	}
}

// A small queue does not go on for ever either.
func TestConnStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, far := pair(t, "pipe")
		c.Append(AppendFrame(nil, make([]byte, 3*writeSize)))
		c.Flush()
		start := time.Now()
		for range 10 { // some is taken, and then no more
			time.Sleep(stall - time.Second)
			io.ReadFull(far, make([]byte, 100))
		}
		if err := c.Wait(); !errors.Is(err, ErrSlowReader) {
			t.Error(err)
		}
		if took := time.Since(start); took > 12*stall {
			t.Errorf("took %s", took)
		}
	})
}

func TestConnGivesMemoryBack(t *testing.T) {
	c, far := pair(t, "tcp")
	go io.Copy(io.Discard, far)
	for range 5 {
		c.Append(AppendFrame(nil, make([]byte, 2<<20)))
		if err := c.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	c.Append(AppendFrame(nil, []byte("a=1")))
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	if n := cap(c.queue.out) + cap(c.queue.spare); n > 2*keepBytes {
		t.Errorf("%d bytes are kept", n)
	}
}

func TestConnReadDeadlines(t *testing.T) {
	for _, c := range []struct {
		name   string
		within time.Duration
		bytes  string // one a second
		want   error
		after  time.Duration
	}{
		{"silence", 5 * time.Second, "", ErrSilent, 5 * time.Second},
		{"half a frame", 0, "\x00\x00", ErrDrip, 10 * time.Second},
		{"half a frame before the time is up", 5 * time.Second, "\x00\x00", ErrDrip, 5 * time.Second},
		{"drip", 0, "\x00\x00\x00\x7f" + strings.Repeat("x", 100), ErrDrip, 10 * time.Second},
		{"drip, frame after frame", 12500 * time.Millisecond, strings.Repeat("\x00\x00\x00\x00", 10), ErrDrip, 12500 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			conn, far := pair(t, "pipe")
			start := time.Now()
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				for i := range len(c.bytes) {
					if _, err := far.Write([]byte(c.bytes[i : i+1])); err != nil {
						return
					}
					time.Sleep(time.Second)
				}
			}()
			conn.Within(c.within)
			err := conn.Fill()
			for err == nil {
				for _, ok := conn.Next(); ok; _, ok = conn.Next() {
				}
				err = conn.Fill()
			}
			if took := time.Since(start); !errors.Is(err, c.want) || took != c.after {
				t.Errorf("%s: %v after %s", c.name, err, took)
			}
			conn.Close(0)
			<-sent
		})
	}
}

// A large frame has time in proportion to what has come of it.
func TestConnLargeFrameHasTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, far := pair(t, "pipe")
		go func() {
			frame := AppendFrame(nil, make([]byte, MaxFrame))
			for len(frame) > 0 {
				n := min(len(frame), 40<<10)
				if _, err := far.Write(frame[:n]); err != nil {
					return
				}
				frame = frame[n:]
				time.Sleep(5 * time.Second) // 8 KiB/s
			}
		}()
		if err := conn.Fill(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
	})
}

func TestConnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, far := pair(t, "pipe")
		why := errors.New("why")
		go func() {
			synctest.Wait()
			conn.End(why)
			conn.End(errors.New("another"))
		}()
		conn.Within(time.Hour)
		for range 2 {
			if err := conn.Fill(); err != why {
				t.Error(err)
			}
		}
		conn.Append(AppendFrame(nil, []byte("last=1"))) // still goes out
		got := make([]byte, 10)
		go conn.Flush()
		if _, err := io.ReadFull(far, got); err != nil || string(got[4:]) != "last=1" {
			t.Errorf("%q %v", got, err)
		}
	})
}

// The last message arrives although much of what the peer sent was never read.
func TestConnCloseDeliversTheLastMessage(t *testing.T) {
	c, far := pair(t, "tcp")
	go far.Write(make([]byte, 500<<10))
	conn := NewFrames(MaxFrame)
	c.Append(AppendFrame(nil, []byte("last=1")))
	closed := make(chan struct{})
	go func() { c.Close(10 * time.Second); close(closed) }()
	for {
		text, ok, err := conn.Next()
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			if string(text) != "last=1" {
				t.Errorf("%q", text)
			}
			break
		}
		if _, err := conn.ReadOnce(far); err != nil {
			t.Fatal(err)
		}
	}
	far.Close()
	<-closed
}

func TestConnCloseDoesNotWaitForTheDeaf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := pair(t, "pipe")
		c.Append(AppendFrame(nil, []byte("last=1")))
		start := time.Now()
		c.Close(3 * time.Second)
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("took %s", took)
		}
		if err := c.Fill(); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
}

func TestConnEOF(t *testing.T) {
	for text, want := range map[string]error{"": io.EOF, "\x00": io.ErrUnexpectedEOF, "\x00\x00\x00\x05ab": io.ErrUnexpectedEOF} {
		c, far := pair(t, "tcp")
		io.WriteString(far, text)
		far.Close()
		if err := c.Fill(); err != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func BenchmarkConnFlush(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan struct{})
	go func() { io.Copy(io.Discard, far); close(done) }()
	c, a := NewConn(near, MaxFrame), benchAssignment()
	b.ReportAllocs()
	for b.Loop() {
		c.Commit(AppendTask(c.Open(), a, 2))
		c.Flush()
	}
	c.Close(0)
	<-done
	far.Close()
}
