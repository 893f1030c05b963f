package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"apollo11/engine/view"
	"apollo11/tui/hush"
)

func init() { hush.Over() }

// ErrScreen is returned when the console ended unasked: its terminal went away,
// or it failed itself. Whatever it looked at goes on.
var ErrScreen = errors.New("the console ended unasked")

// Options say what to show where. Source, Input, Output and Now are needed.
type Options struct {
	Source   Source
	Input    *os.File
	Output   *os.File
	Now      func() time.Time                            // its location is the one that times are shown in
	Describe func(*view.Event) (text string, alarm bool) // an event in words; nil: its fields
	Log      *Log                                        // of this process; nil: none to show
	Title    string                                      // what is looked at
	Theme    string                                      // dark, light, mono, colour-blind; else dark
	NoColor  bool                                        // mono
	ASCII    bool                                        // nothing but ASCII reaches the terminal
	ReadOnly bool                                        // keys that change something say no
	Embedded bool                                        // the controller is in this process: leaving asks how
}

const (
	framesPerSecond = 30
	// killGrace is how long a terminal that takes nothing may hold up the end,
	// once when asked and once when killed. Killing is the second choice: the
	// library then leaves its reader behind.
	killGrace = time.Second
)

// Run shows the console until a person leaves it, or ctx ends, which is as if
// they had asked to stop. The terminal is put back as it was.
func Run(ctx context.Context, o Options) (Verdict, error) {
	t := &terminal{File: o.Output}
	m := newModel(o)
	m.s.write = t.print
	lost := make(chan struct{})
	var once sync.Once
	in := &keyboard{File: o.Input, lost: func() { once.Do(func() { close(lost) }) }}
	p := tea.NewProgram(m, tea.WithAltScreen(), tea.WithInput(in), tea.WithOutput(t), tea.WithFPS(framesPerSecond),
		tea.WithoutSignalHandler())
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Ignore(syscall.SIGHUP) // not Stop: its default ends the program
	ended := make(chan error, 1)
	go func() {
		_, err := p.Run()
		ended <- err
	}()
	select {
	case err := <-ended:
		if err != nil {
			return Left, fmt.Errorf("%w: %w", ErrScreen, err)
		}
		if m.crash != nil {
			return Left, fmt.Errorf("%w: %w", ErrScreen, m.crash)
		}
		return m.verdict, nil
	case <-ctx.Done():
		finish(p, ended)
		return Stop, nil
	case <-lost:
	case <-hangup:
	}
	finish(p, ended)
	return Left, fmt.Errorf("%w: its terminal is gone", ErrScreen)
}

// finish ends the program from outside. A terminal that takes no output must
// not keep the rest from going on.
func finish(p *tea.Program, ended <-chan error) {
	go p.Quit() // blocks until it is taken, or the program is killed
	timer := time.NewTimer(killGrace)
	defer timer.Stop()
	select {
	case <-ended:
		return
	case <-timer.C:
	}
	p.Kill()
	timer.Reset(killGrace)
	select {
	case <-ended:
	case <-timer.C:
	}
}

// keyboard tells when there is nothing to be read any more: a program that
// goes on without its terminal would spin.
type keyboard struct {
	*os.File
	lost func()
}

// Read implements io.Reader.
func (k *keyboard) Read(p []byte) (int, error) {
	n, err := k.File.Read(p)
	if err != nil {
		k.lost()
	}
	return n, err
}

// terminal keeps what is printed beside the frames out of their middle.
type terminal struct {
	*os.File
	mu sync.Mutex // the renderer, and print
}

// Write implements io.Writer.
func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.File.Write(p)
}

func (t *terminal) print(text string) error {
	_, err := t.Write([]byte(text))
	return err
}

// copy gives an id to the terminal's clipboard.
func (s *shared) copy(id string) tea.Cmd {
	s.say("copied %s, if your terminal allows it", id)
	write := s.write
	return func() tea.Msg {
		if write == nil {
			return copiedMsg{}
		}
		return copiedMsg{write(ansi.SetSystemClipboard(id))}
	}
}

func (s *shared) copyTask(l *taskList) tea.Cmd {
	if at := l.list.at(); at != nil {
		return s.copy(at.ID)
	}
	return nil
}
