package server

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"apollo11/engine"
	"apollo11/engine/view"
	"apollo11/wire"
)

// S1, S2: nobody comes in from outside without tokens.
func TestListenAddress(t *testing.T) {
	both := Options{ExecutorToken: "x", OperatorToken: "o"}
	for _, c := range []struct {
		addr string
		o    Options
		ok   bool
	}{
		{"127.0.0.1:0", Options{}, true},
		{"localhost:0", Options{}, true},
		{"[::1]:0", Options{}, true},
		{":0", Options{}, false},
		{"0.0.0.0:0", Options{}, false},
		{"[::]:0", Options{}, false},
		{"0.0.0.0:0", Options{ExecutorToken: "x"}, false},
		{"0.0.0.0:0", Options{OperatorToken: "o"}, false},
		{"0.0.0.0:0", both, true},
		{"0.0.0.0:0", Options{Insecure: true}, true},
	} {
		c.o.Addr, c.o.Engine = c.addr, &fakeEngine{}
		s, err := Listen(c.o)
		if err == nil {
			s.Stop()
		} else if strings.Contains(err.Error(), "cannot assign") && c.ok {
			continue // a machine without IPv6
		}
		if (err == nil) != c.ok || !c.ok && !errors.Is(err, ErrOpenAddress) {
			t.Errorf("%s: %v", c.addr, err)
		}
	}
}

// A listener that was opened elsewhere is held to the same rule.
func TestListenOnListener(t *testing.T) {
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(Options{Listener: l, Engine: &fakeEngine{}}); !errors.Is(err, ErrOpenAddress) {
		t.Error(err)
	}
	if _, err := l.Accept(); err == nil {
		t.Error("the listener is still open")
	}
}

func TestListenOnTakenPort(t *testing.T) {
	r := newRig(t, true, Options{})
	if _, err := Listen(Options{Addr: r.server.Addr().String(), Engine: r.engine}); err == nil {
		t.Error("two servers on one port")
	}
}

// S10, S14, on a real socket: the reason arrives, though much was never read.
func TestFrameOverTheCap(t *testing.T) {
	for _, first := range []string{"", registerOne, hello} {
		for _, size := range []uint32{0xffffffff, 0x80000001, wire.MaxFrame + 1, wire.FirstFrame + 1} {
			r := newRig(t, true, Options{})
			p := r.dial()
			if first != "" {
				p.send(first)
				p.want("type=ack")
			}
			if first != "" && size == wire.FirstFrame+1 {
				p.raw(wire.AppendFrame(nil, bytes.Repeat([]byte("x"), int(size)))) // fits by now
				p.want("type=error", "fatal=false")
				continue
			}
			before := len(r.engine.commands())
			frame := binary.BigEndian.AppendUint32(nil, size)
			frame = append(frame, "type=offline\n"...)
			p.raw(append(frame, bytes.Repeat([]byte("x"), 200<<10)...))
			p.want("type=error", "code=too_large", "fatal=true")
			p.wantEnd()
			r.server.Stop()
			for _, c := range r.engine.commands()[before:] {
				if _, ok := c.(engine.Disconnected); !ok {
					t.Errorf("%x: the engine was asked %T", size, c)
				}
			}
		}
	}
}

// A TLS hello on the plain port is a frame over the cap, like all noise.
func TestNoise(t *testing.T) {
	for _, noise := range []string{"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "GET / HTTP/1.1\r\n\r\n", "SSH-2.0-x\r\n"} {
		r := newRig(t, true, Options{})
		p := r.dial()
		p.raw([]byte(noise))
		p.want("type=error", "code=too_large", "fatal=true")
		p.wantEnd()
	}
}

// S11: strangers are counted by address and in all, and the known not among them.
func TestConnectionCaps(t *testing.T) {
	s, err := Listen(Options{Listener: newPipes(), Engine: &fakeEngine{}, MaxConnections: 3000})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	a, b, c := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.3")
	var list []*session
	add := func(addr netip.Addr) string {
		sess := &session{}
		why := s.add(sess, addr)
		if why == "" {
			list = append(list, sess)
		}
		return why
	}
	for i := range perAddress {
		if why := add(a); why != "" {
			t.Fatalf("connection %d: %s", i, why)
		}
	}
	if add(a) == "" {
		t.Error("one address takes more than its share")
	}
	s.known(list[0])
	if why := add(a); why != "" {
		t.Errorf("one that is known still counts: %s", why)
	}
	for range perAddress {
		add(b)
	}
	if add(c) == "" {
		t.Error("all addresses take more than there is")
	}
	for _, sess := range list[1:] {
		s.known(sess)
	}
	for s.add(&session{}, netip.Addr{}) == "" {
		s.known(lastAdded(s))
	}
	if len(s.sessions) != 3000 {
		t.Errorf("%d connections, the limit is 3000", len(s.sessions))
	}
	clear(s.sessions)
	clear(s.strange)
}

func lastAdded(s *Server) *session {
	for sess, addr := range s.sessions {
		if !addr.IsValid() && s.strange[addr] > 0 {
			return sess
		}
	}
	return nil
}

func TestRefusedConnectionIsTold(t *testing.T) {
	r := newRig(t, true, Options{MaxConnections: 1})
	p := r.executor(registerOne)
	late := r.dial()
	late.want("type=error", "code=busy", "fatal=true")
	late.wantEnd()
	p.send("type=query")
	p.want("type=state")
}

// S13: a reader that never reads is dropped, and memory stays flat.
func TestSlowReader(t *testing.T) {
	r := newRig(t, true, Options{})
	long := make([]view.Key, 100)
	for i := range long {
		long[i] = view.Key{Key: fmt.Sprint("k", i), Value: strings.Repeat("v", 2000)}
	}
	dropped := make(chan struct{})
	r.engine.play(func(a engine.Ask) (engine.Answer, error) {
		switch a.Command.(type) {
		case engine.GetState:
			return &view.KeyPage{Keys: long}, nil
		case engine.Disconnected:
			close(dropped)
		}
		return nil, nil
	})
	p := r.executor(registerOne)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p.raw(bytes.Repeat(wire.AppendFrame(nil, []byte("type=query")), 1000)) // 200 MB of answers
	select {
	case <-dropped:
	case <-time.After(30 * time.Second):
		t.Fatal("200 MB are queued for one who does not read")
	}
	runtime.ReadMemStats(&after)
	if after.HeapInuse > before.HeapInuse+8*wire.MaxQueued {
		t.Errorf("%d MiB in use", (after.HeapInuse-before.HeapInuse)>>20)
	}
	r.server.Stop() // the log is complete now
	if !strings.Contains(r.log.String(), wire.ErrSlowReader.Error()) {
		t.Errorf("the log does not say why:\n%s", r.log)
	}
}

// A reader that stops is dropped after 30 s, though little waits for it.
func TestStalledReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, Options{})
		p := r.executor(registerOne)
		p.send("type=query")
		start := time.Now()
		for {
			synctest.Wait()
			if strings.Contains(r.log.String(), "does not read") {
				break
			}
			time.Sleep(time.Second)
			if time.Since(start) > time.Hour {
				t.Fatal("never dropped")
			}
		}
		if took := time.Since(start); took < 29*time.Second || took > 33*time.Second {
			t.Errorf("dropped after %s", took)
		}
	})
}

// Stop takes leave of everybody, and does not wait for those who do not listen.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, Options{})
		p := r.executor(registerOne)
		stranger := r.dial()
		deaf := r.executor(strings.Replace(registerOne, "e1", "e2", 1))
		stopped := make(chan struct{})
		go func() { r.server.Stop(); close(stopped) }()
		p.want("type=error", "code=stopping", "fatal=true")
		p.wantEnd()
		stranger.want("type=error", "code=stopping", "fatal=true")
		<-stopped
		deaf.conn.Close(0)
		if why := r.server.add(&session{}, netip.Addr{}); why == "" {
			t.Error("a connection was taken after Stop")
		}
	})
}

func TestTaskLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	l, err := openTaskLogs(dir, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	ids := []string{"t1", "T1", "..", "a:b", strings.Repeat("x", 128), strings.Repeat("x", 127) + "y", "-", "_", "con", "."}
	for _, id := range ids {
		for _, v := range []uint64{1, 2} {
			if err := l.append(id, taskVersion(v), []byte(fmt.Sprint(id, v, "\xff\n"))); err != nil {
				t.Errorf("%q: %v", id, err)
			}
		}
	}
	for _, id := range ids {
		c, err := l.read(id, 2, 0)
		if err != nil || string(c.Data) != fmt.Sprint(id, 2, "\xff\n") || !c.Ended {
			t.Errorf("%q: %q, %v", id, c.Data, err)
		}
	}
	files := 0
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		info, _ := d.Info()
		if d.Type().IsRegular() {
			files++
			if info.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %o", path, info.Mode().Perm())
			}
		}
		return err
	})
	if err != nil || files != 2*len(ids) {
		t.Errorf("%d files for %d dispatches, %v", files, 2*len(ids), err)
	}
	if c, err := l.read("never", 1, 0); err != nil || len(c.Data) != 0 || !c.Ended {
		t.Errorf("a log that is not there: %+v, %v", c, err)
	}
}

func TestTaskLogCapAndOpenFiles(t *testing.T) {
	l, err := openTaskLogs(t.TempDir(), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	for i := range 3 * openLogs {
		if err := l.append(fmt.Sprint("t", i), 1, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if n := l.used.Len(); n != openLogs || len(l.open) != n {
		t.Errorf("%d files are open", n)
	}
	chunk := bytes.Repeat([]byte("y"), 64<<10)
	for range 2 * maxLog / len(chunk) {
		if err := l.append("t0", 1, chunk); err != nil {
			t.Fatal(err)
		}
	}
	var all []byte
	for more := true; more; {
		c, err := l.read("t0", 1, int64(len(all)))
		if err != nil || c.Next != int64(len(all)+len(c.Data)) {
			t.Fatalf("%+v %v", c, err)
		}
		all = append(all, c.Data...)
		more = !c.Ended
	}
	if len(all) != maxLog+len(cutMarker) || all[0] != 'x' || !bytes.HasSuffix(all, []byte(cutMarker)) {
		t.Errorf("%d bytes, ending in %q", len(all), all[max(0, len(all)-30):])
	}
}

// Where case means nothing in file names, two tasks still have two files.
func TestLogNamesDifferWithoutCase(t *testing.T) {
	seen := map[string]string{}
	for _, id := range []string{"t1", "T1", "a.b", "A.b", "a:b", "a-b", ".a", "a."} {
		_, name := logName(id, 1)
		if other, ok := seen[strings.ToLower(filepath.Base(name))]; ok {
			t.Errorf("%s and %s share %s", id, other, name)
		}
		seen[strings.ToLower(filepath.Base(name))] = id
	}
}

// A folder that leads out is not followed.
func TestTaskLogStaysInItsFolder(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	folder, _ := logName("t1", 1)
	if err := os.Symlink(outside, filepath.Join(dir, folder)); err != nil {
		t.Skip(err)
	}
	l, err := openTaskLogs(dir, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	if err := l.append("t1", 1, []byte("x")); err == nil {
		t.Error("written through a link that leads out")
	}
}
