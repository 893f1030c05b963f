package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

// readAll cuts what r gives into frames until the first error.
func readAll(r io.Reader, limit int) (texts []string, err error) {
	f := NewFrames(limit)
	for {
		text, ok, err := f.Next()
		if err != nil {
			return texts, err
		}
		if ok {
			texts = append(texts, string(text))
			continue
		}
		if _, err := f.ReadOnce(r); err != nil {
			if f.Pending() > 0 && err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return texts, err
		}
	}
}

func TestFramesWhateverTheCuts(t *testing.T) {
	want := []string{"a=1", "", strings.Repeat("x", 5000), "b=2", strings.Repeat("y", 100_000), "", "end"}
	var stream []byte
	for _, text := range want {
		stream = AppendFrame(stream, []byte(text))
	}
	readers := map[string]io.Reader{
		"whole":        bytes.NewReader(stream),
		"byte by byte": iotest.OneByteReader(bytes.NewReader(stream)),
		"halves":       iotest.HalfReader(bytes.NewReader(stream)),
		"data and err": iotest.DataErrReader(bytes.NewReader(stream)),
	}
	for name, r := range readers {
		texts, err := readAll(r, MaxFrame)
		if err != io.EOF || strings.Join(texts, "|") != strings.Join(want, "|") {
			t.Errorf("%s: %d frames, %v", name, len(texts), err)
		}
	}
}

func TestFramesCutAtEveryByte(t *testing.T) {
	stream := AppendFrame(AppendFrame(nil, []byte("a=1")), []byte("b=22"))
	for n := range stream {
		texts, err := readAll(bytes.NewReader(stream[:n]), MaxFrame)
		whole, wantErr := 0, io.ErrUnexpectedEOF
		if n >= 7 {
			whole = 1
		}
		if n == 0 || n == 7 {
			wantErr = io.EOF
		}
		if len(texts) != whole || err != wantErr {
			t.Errorf("cut at %d: %d frames, %v", n, len(texts), err)
		}
	}
}

// A length is checked before memory is taken for it, and unsigned (S10).
func TestFrameOverTheCapTakesNoMemory(t *testing.T) {
	for _, head := range []uint32{0xffffffff, 0x80000001, 0x80000000, FirstFrame + 1, MaxFrame} {
		stream := AppendFrame(nil, []byte("before=1"))
		stream = binary.BigEndian.AppendUint32(stream, head)
		stream = append(stream, "type=offline"...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		texts, err := readAll(bytes.NewReader(stream), FirstFrame)
		runtime.ReadMemStats(&after)
		var size *FrameSizeError
		if !errors.As(err, &size) || size.Size != head || len(texts) != 1 {
			t.Errorf("%x: frames %q, error %v", head, texts, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 64<<10 {
			t.Errorf("%x: took %d bytes", head, took)
		}
	}
}

// A length within the cap takes memory only as its bytes arrive.
func TestFramePromiseTakesNoMemory(t *testing.T) {
	f := NewFrames(MaxFrame)
	stream := append(binary.BigEndian.AppendUint32(nil, MaxFrame), make([]byte, 100_000)...)
	r := bytes.NewReader(stream)
	for r.Len() > 0 {
		f.ReadOnce(r)
		if have := f.Pending(); len(f.buf) > max(readBuffer, 2*have) {
			t.Fatalf("%d bytes for %d", len(f.buf), have)
		}
	}
}

func TestFramesGiveLargeMemoryBack(t *testing.T) {
	f := NewFrames(MaxFrame)
	stream := AppendFrame(AppendFrame(nil, make([]byte, MaxFrame)), []byte("small"))
	r := bytes.NewReader(stream)
	for count := 0; count < 2; {
		if _, ok, err := f.Next(); err != nil {
			t.Fatal(err)
		} else if ok {
			count++
			continue
		}
		f.ReadOnce(r)
	}
	f.ReadOnce(r)
	if len(f.buf) != readBuffer {
		t.Errorf("%d bytes kept after a large frame", len(f.buf))
	}
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x03a=1\x00\x00\x00\x00"), 3)
	f.Add([]byte("\xff\xff\xff\xff"), 1)
	f.Add([]byte("\x80\x00\x00\x01a"), 7)
	f.Fuzz(func(t *testing.T, stream []byte, step int) {
		step = max(1, step%64)
		const limit = 1 << 10
		texts, err := readAll(&steps{stream, step}, limit)
		var again []byte
		for _, text := range texts {
			if len(text) > limit {
				t.Fatalf("a frame of %d bytes got through", len(text))
			}
			again = AppendFrame(again, []byte(text))
		}
		if !bytes.HasPrefix(stream, again) {
			t.Fatal("frames do not encode to what they came from")
		}
		if err == io.EOF && len(again) != len(stream) {
			t.Fatal("bytes were lost")
		}
	})
}

// steps reads a few bytes at a time.
type steps struct {
	rest []byte
	step int
}

func (s *steps) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), s.step)], s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// A connection under load reads much at once into memory it keeps; a little read
// gives the memory back.
func TestFramesUnderLoad(t *testing.T) {
	long, short := AppendFrame(nil, make([]byte, 13<<10)), AppendFrame(nil, []byte("type=heartbeat"))
	many := bytes.Repeat(short, 10_000)
	f := NewFrames(MaxFrame)
	drain := func(stream []byte) (reads int) {
		for r := bytes.NewReader(stream); r.Len() > 0; reads++ {
			if _, err := f.ReadOnce(r); err != nil {
				t.Fatal(err)
			}
			for ok := true; ok; {
				if _, ok, _ = f.Next(); len(f.buf) > busyBuffer {
					t.Fatalf("%d bytes for short frames", len(f.buf))
				}
			}
		}
		return reads
	}
	drain(long)
	if got := testing.AllocsPerRun(20, func() { drain(long) }); got > 1 { // the stream's reader
		t.Errorf("%v allocations for a frame like the last", got)
	}
	if reads := drain(many); reads > len(many)/busyBuffer+6 {
		t.Errorf("%d reads for %d bytes that wait", reads, len(many))
	}
	for range 2 {
		drain(short)
	}
	if len(f.buf) != readBuffer {
		t.Errorf("%d bytes kept when the connection is quiet", len(f.buf))
	}
}
