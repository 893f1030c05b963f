package wire

import (
	"encoding/binary"
	"fmt"
	"io"
)

const (
	// MaxFrame is the longest text a frame may hold between parties that know each other.
	MaxFrame = 1 << 20
	// FirstFrame is the longest text before a register or hello is answered.
	FirstFrame = 64 << 10

	header     = 4        // bytes of a frame's length
	readBuffer = 4 << 10  // what a quiet connection costs
	busyBuffer = 64 << 10 // what one costs at most on which nothing long comes, but much
)

// FrameSizeError is a frame that announces more than the cap; its connection
// cannot go on, since nobody knows where the next frame starts.
type FrameSizeError struct {
	Size uint32
	Cap  int
}

func (e *FrameSizeError) Error() string {
	return fmt.Sprintf("frame of %d bytes is over the limit of %d", e.Size, e.Cap)
}

// Frames cuts a stream of bytes into frames. It belongs to one goroutine.
type Frames struct {
	limit int
	buf   []byte // as long as its capacity
	start int    // of the first byte that was not handed out
	end   int    // of the bytes read so far
	got   int    // bytes of the last read
}

// NewFrames takes frames of at most limit bytes of text.
func NewFrames(limit int) *Frames { return &Frames{limit: limit} }

// SetCap changes the limit for frames that were not handed out yet.
func (f *Frames) SetCap(limit int) { f.limit = limit }

// Ready reports whether Next has a whole frame. A frame over the limit is a
// *FrameSizeError, now and at every later call.
func (f *Frames) Ready() (bool, error) {
	have := f.buf[f.start:f.end]
	if len(have) < header {
		return false, nil
	}
	size := binary.BigEndian.Uint32(have)
	if uint64(size) > uint64(f.limit) {
		return false, &FrameSizeError{Size: size, Cap: f.limit}
	}
	return len(have)-header >= int(size), nil
}

// Next hands out a whole frame's text, which is good until the next ReadOnce.
func (f *Frames) Next() (text []byte, ok bool, err error) {
	if ok, err = f.Ready(); !ok {
		return nil, false, err
	}
	from := f.start + header
	f.start = from + int(binary.BigEndian.Uint32(f.buf[f.start:]))
	return f.buf[from:f.start:f.start], true, nil
}

// Pending is how many bytes wait for the rest of their frame, or to be handed out.
func (f *Frames) Pending() int { return f.end - f.start }

// ReadOnce reads once from r. Memory grows with what has arrived, at most
// doubling, never with what a length promises.
func (f *Frames) ReadOnce(r io.Reader) (int, error) {
	f.room()
	n, err := r.Read(f.buf[f.end:])
	f.end += n
	f.got = n
	if n > 0 {
		err = nil // the next read will say it again
	}
	return n, err
}

// room makes place for at least one more byte.
func (f *Frames) room() {
	have := f.end - f.start
	size := f.fitting(have)
	switch {
	case size != len(f.buf):
		grown := make([]byte, size)
		copy(grown, f.buf[f.start:f.end])
		f.buf = grown
	case f.start > 0:
		copy(f.buf, f.buf[f.start:f.end])
	}
	f.start, f.end = 0, have
}

// fitting is the size of buffer for the next read. Where a read filled it, more
// waits: the next brings twice as much at once. It shrinks when a read brought
// little, so that a connection that falls quiet costs little again.
func (f *Frames) fitting(have int) int {
	size := len(f.buf)
	filled := size > 0 && f.end == size
	switch {
	case have == size && size > 0, filled && size < busyBuffer:
		return size * 2
	case have > 0:
		return size
	case size > busyBuffer, f.got < size/4:
		return readBuffer
	}
	return max(size, readBuffer)
}

// beginFrame appends an empty length; endFrame fills it in.
func beginFrame(dst []byte) ([]byte, int) { return append(dst, 0, 0, 0, 0), len(dst) }

func endFrame(dst []byte, at int) []byte {
	binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-header))
	return dst
}

// AppendFrame appends text as one frame.
func AppendFrame(dst, text []byte) []byte {
	dst, at := beginFrame(dst)
	return endFrame(append(dst, text...), at)
}
