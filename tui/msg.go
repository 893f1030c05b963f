package tui

import (
	"context"
	"fmt"
	stack "runtime/debug"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"apollo11/engine/view"
)

// request reads something from the Source; it runs in a command.
type request func(context.Context, Source) (any, error)

// answer is what a request found, addressed to the screen that asked; number
// tells it from older ones.
type answer struct {
	to     screenID
	number int
	body   any
	err    error
}

// overviewMsg is the overview, or why it did not come.
type overviewMsg struct {
	over *view.Overview
	err  error
}

// changedMsg is what became of an action.
type changedMsg struct {
	action  Action
	changed *view.Changed
	err     error
}

// tickMsg is a moment to ask again; escMsg ends the wait for the rest of an
// escape sequence; copiedMsg says that an id went to the terminal; crashMsg that
// there is a bug of ours.
type (
	tickMsg   struct{}
	escMsg    struct{ turn int }
	copiedMsg struct{ err error }
	crashMsg  struct{ err error }
)

// guarded makes a command that ends the console if it panics, in order: the
// terminal library would print the stack onto the screen first.
func guarded(cmd tea.Cmd) tea.Cmd {
	return func() (msg tea.Msg) {
		defer func() {
			if r := recover(); r != nil {
				msg = crashMsg{fmt.Errorf("panic: %v: %s", r, stack.Stack())}
			}
		}()
		return cmd()
	}
}

const (
	pollActive = 250 * time.Millisecond
	pollIdle   = time.Second
	// idleAfter is how long after the last key or change the console polls less.
	idleAfter = 10 * time.Second
	// patience is how long an answer may take.
	patience = 10 * time.Second
)

// ask makes a command of a request.
func (m *model) ask(to screenID, number int, r request) tea.Cmd {
	source := m.s.source
	return guarded(func() tea.Msg {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		body, err := r(ctx, source)
		return answer{to: to, number: number, body: body, err: err}
	})
}

func (m *model) askOverview() tea.Cmd {
	source := m.s.source
	return guarded(func() tea.Msg {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		over, err := source.Overview(ctx)
		if err == nil {
			cleanOverview(over)
		}
		return overviewMsg{over, err}
	})
}

func cleanOverview(o *view.Overview) {
	o.Status.Fields(cleaner{})
	cleanRows(o.Executors)
	cleanRows(o.Queues)
}

// act makes a command of an action. Bulk ones may take long, hence no patience.
func (s *shared) act(a Action) tea.Cmd {
	source := s.source
	return guarded(func() tea.Msg {
		changed, err := source.Do(context.Background(), a)
		if changed == nil {
			changed = &view.Changed{}
		}
		for i := range changed.Skipped {
			changed.Skipped[i] = clean(changed.Skipped[i])
		}
		for i := range changed.Samples {
			changed.Samples[i] = clean(changed.Samples[i])
		}
		return changedMsg{a, changed, err}
	})
}
