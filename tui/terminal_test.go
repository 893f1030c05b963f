package tui

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"apollo11/engine/view"
)

// screenOf is a console on a terminal of the test's own.
type screenOf struct {
	t       *testing.T
	master  *os.File
	tty     *os.File
	mu      sync.Mutex // out
	out     bytes.Buffer
	ended   chan error
	verdict Verdict
	cancel  func()
}

// locked is a Source that several commands may ask at once.
type locked struct {
	Source
	mu sync.Mutex
}

func (l *locked) Overview(ctx context.Context) (*view.Overview, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Source.Overview(ctx)
}

func openScreen(t *testing.T, source Source, read bool) *screenOf {
	t.Helper()
	master, tty, err := pty.Open()
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal("no terminals here, and CI=true:", err)
	}
	if err != nil {
		t.Skip("no terminals here:", err)
	}
	if err := pty.Setsize(master, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &screenOf{t: t, master: master, tty: tty, ended: make(chan error, 1), cancel: cancel}
	if read {
		go s.read()
	}
	go func() {
		v, err := Run(ctx, Options{Source: source, Input: tty, Output: tty, Now: time.Now, Embedded: true, Theme: "dark"})
		s.verdict = v
		s.ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		master.Close()
		tty.Close()
	})
	return s
}

func (s *screenOf) read() {
	buf := make([]byte, 64<<10)
	for {
		n, err := s.master.Read(buf)
		s.mu.Lock()
		s.out.Write(buf[:n])
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *screenOf) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}

// await waits for what a real terminal shows.
func (s *screenOf) await(text string) {
	s.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(s.text(), text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("no %q on the terminal: %q", text, s.text())
		}
	}
}

func (s *screenOf) end() error {
	s.t.Helper()
	select {
	case err := <-s.ended:
		return err
	case <-time.After(10 * time.Second):
		s.t.Fatal("the console does not end")
		return nil
	}
}

func (s *screenOf) keys(keys string) {
	s.t.Helper()
	if _, err := s.master.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

func TestRunOnATerminal(t *testing.T) {
	s := openScreen(t, &locked{Source: world()}, true)
	s.await("LIVE seq 40")
	s.keys("8")
	s.await("[8 log]")
	s.keys("q")
	s.await("leave it running")
	time.Sleep(2 * lateKey) // a person reads
	s.keys("s")
	if err := s.end(); err != nil || s.verdict != Stop {
		t.Fatalf("verdict %v, %v", s.verdict, err)
	}
	for _, want := range []string{"\x1b[?1049h", "\x1b[?1049l", "\x1b[?25h"} {
		s.await(want)
	}
	out := s.text()
	if strings.Contains(out, "\x1b]11") || strings.Contains(out, "\x1b[6n") {
		t.Error("the terminal was asked something")
	}
}

// SIGHUP ends the screen alone (trap 5).
func TestHangup(t *testing.T) {
	s := openScreen(t, &locked{Source: world()}, true)
	s.await("LIVE seq 40")
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if err := s.end(); !errors.Is(err, ErrScreen) || s.verdict != Left {
		t.Fatalf("verdict %v, %v", s.verdict, err)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil { // and after it: nothing
		t.Fatal(err)
	}
}

// A terminal that is gone ends the screen, which would spin without it (trap 5).
func TestLostTerminal(t *testing.T) {
	s := openScreen(t, &locked{Source: world()}, true)
	s.await("LIVE seq 40")
	s.master.Close()
	if err := s.end(); !errors.Is(err, ErrScreen) || s.verdict != Left {
		t.Fatalf("verdict %v, %v", s.verdict, err)
	}
}

// A terminal that takes no output does not keep the program from ending.
func TestStalledTerminal(t *testing.T) {
	s := openScreen(t, &locked{Source: world()}, false) // nobody reads: a frame or two fill it
	time.Sleep(50 * time.Millisecond)
	for range 20 {
		s.keys("12")
	}
	s.cancel()
	if err := s.end(); err != nil || s.verdict != Stop {
		t.Fatalf("verdict %v, %v", s.verdict, err)
	}
}

// panics panics when it is asked.
type panics struct{ Source }

func (panics) Overview(context.Context) (*view.Overview, error) { panic("a bug of ours") }

// A panic in the console ends the console, and puts the terminal back (trap 4).
func TestPanic(t *testing.T) {
	s := openScreen(t, panics{world()}, true)
	if err := s.end(); !errors.Is(err, ErrScreen) || s.verdict != Left || !strings.Contains(err.Error(), "a bug of ours") {
		t.Fatalf("verdict %v, %v", s.verdict, err)
	}
	s.await("\x1b[?1049l")
}
