package server

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"apollo11/engine"
	"apollo11/engine/view"
	"apollo11/wire"
)

// script is a connection that says what it is made of, and keeps what it hears.
type script struct {
	in  *bytes.Reader
	out bytes.Buffer
}

func (s *script) Read(p []byte) (int, error)         { return s.in.Read(p[:min(len(p), 100)]) }
func (s *script) Write(p []byte) (int, error)        { return s.out.Write(p) }
func (s *script) Close() error                       { return nil }
func (s *script) LocalAddr() net.Addr                { return pipeAddr{} }
func (s *script) RemoteAddr() net.Addr               { return pipeAddr{} }
func (s *script) SetDeadline(time.Time) error        { return nil }
func (s *script) SetReadDeadline(t time.Time) error  { return nil }
func (s *script) SetWriteDeadline(t time.Time) error { return nil }

// FuzzSession plays a whole connection: each line of the input is a frame, after
// a good start or none.
func FuzzSession(f *testing.F) {
	for start := range starts {
		f.Add(start, []byte("type=heartbeat\x00type=result\ntask_id=t1\nstatus=ok\x00type=query\x00type=offline"))
		f.Add(start, []byte("type=control\nop=status\x00type=control\nop=submit\n0.type=a\npart=true\x00type=control\nop=submit\n1.type=b"))
		f.Add(start, []byte("\x00\x00a=\\x\x00type=result\ntask_id=t1\na=\\x\x00type=progress\ntask_id=t1\nlog=x"))
		f.Add(start, []byte("type=control\nop=upload\nfile=a.toml\ntext=name\\e\"a\"\npart=true\x00type=control\nop=upload\nfile=a.toml\ntext=\\n\x00type=control\nop=run\nfile=a.toml\np.x=1"))
		f.Add(start, []byte("type=control\nop=show\nid=r\x00type=control\nop=restore\nat=7\x00type=control\nop=spec\nid=r\noffset=9\x00type=control\nop=state\nat=7"))
		f.Add(start, []byte("type=types\nadd=a\nhash.a=1\x00type=progress\ntask_id=t1\nset.k=1\x00type=result\ntask_id=t1\nstatus=ok\nunit_hash=1"))
		f.Add(start, []byte("type=control\nop=requeue\nall=true\x00type=control\nop=tasks\nstates=dead\x00type=types\nadd=a"))
	}
	f.Fuzz(func(t *testing.T, start int, input []byte) {
		frames := wire.AppendFrame(nil, nil)[:0]
		begin := starts[((start%len(starts))+len(starts))%len(starts)]
		n := 0
		for _, text := range append(begin, bytes.Split(input, []byte{0})...) {
			frames = wire.AppendFrame(frames, text)
			n++
		}
		e := &fakeEngine{debug: true, script: missionAnswers(&view.Run{ID: "r", Mission: "a"}, &view.RunDetail{Run: view.Run{ID: "r"}})}
		s, err := Listen(Options{Listener: newPipes(), Engine: e, Past: &fakePast{}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Stop()
		nc := &script{in: bytes.NewReader(frames)}
		sess := newSession(s, nc)
		if why := s.add(sess, addressOf(nc)); why != "" {
			t.Fatal(why)
		}
		sess.run()
		if s.Counts().Panics.Load() != 0 {
			t.Fatal("a panic")
		}
		checkHeard(t, nc.out.Bytes(), n)
		for _, c := range e.commands() {
			if _, out := c.(engine.Disconnected); len(begin) == 0 && sess.role == stranger && !out {
				t.Fatalf("a stranger asked %T", c)
			}
		}
	})
}

var starts = [][][]byte{nil, {[]byte(registerOne)}, {[]byte(registerTwo)}, {[]byte(hello)}}

// checkHeard: what was sent are whole messages, at most one for each frame and
// one to say good-bye.
func checkHeard(t *testing.T, stream []byte, frames int) {
	t.Helper()
	f, r, n := wire.NewFrames(wire.MaxFrame), bytes.NewReader(stream), 0
	for {
		text, ok, err := f.Next()
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			n++
			if _, err := wire.ParseMessage(text); err != nil {
				t.Fatalf("sent %q: %v", text, err)
			}
			continue
		}
		if _, err := f.ReadOnce(r); err == io.EOF {
			break
		}
	}
	if f.Pending() > 0 || n > frames+1 {
		t.Fatalf("%d messages for %d frames, %d bytes of another", n, frames, f.Pending())
	}
}
