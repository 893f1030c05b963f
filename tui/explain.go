package tui

import (
	"context"
	"slices"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// explaining is what was asked why, and the answer.
type explaining struct {
	id     string // empty: nothing was asked
	at     time.Time
	answer *view.Explanation
}

// explainedMsg is why a task stands where it does.
type explainedMsg struct {
	id     string
	answer *view.Explanation
	err    error
}

// explain asks why a task stands where it does; empty: there is none.
func (s *shared) explain(id string) tea.Cmd {
	if id == "" {
		s.say("no task here to explain")
		return nil
	}
	s.why.id = id
	source := s.source
	return guarded(func() tea.Msg {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		x, err := source.Explain(ctx, id)
		if err == nil {
			cleanTexts(x.Lines)
			cleanTexts(x.Hints)
			x.ID, x.State = clean(x.ID), clean(x.State)
		}
		return explainedMsg{id, x, err}
	})
}

func cleanTexts(list []string) {
	for i := range list {
		list[i] = clean(list[i])
	}
}

// takeExplained opens the overlay, unless the person has gone elsewhere.
func (m *model) takeExplained(msg explainedMsg) {
	switch {
	case msg.id != m.s.why.id:
	case msg.err != nil:
		m.s.complain(msg.err)
	default:
		m.s.why.answer, m.s.why.at = msg.answer, m.s.clock()
		m.overlay, m.scroll = explainOverlay, 0
	}
}

// lines are the overlay: what matters most first, then what can be done.
func (e *explaining) lines(s *shared, w int) []string {
	f := facts{theme: s.theme, w: w}
	x := e.answer
	f.title("why " + x.ID + " stands where it does")
	f.styled("state", x.State, stateStyle(x.State))
	f.add("as of", e.at.Format(time.TimeOnly)+", i asks again")
	f.lines = append(f.lines, "")
	for _, line := range x.Lines {
		f.bullet("·", line)
	}
	keys := nextKeys(x.ID, x.State)
	if keys != "" {
		f.head("keys")
		f.bullet(" ", keys)
	}
	hints := x.Hints
	if x.State == task.Dead.String() && runOf(x.ID) != "" {
		hints = append(slices.Clone(hints), forkOf(x.ID))
	}
	if len(hints) > 0 {
		f.head("commands")
		for _, hint := range hints {
			f.bullet(" ", hint)
		}
	}
	return f.lines
}

// bullet adds a text that is wrapped under its own begin.
func (f *facts) bullet(mark, text string) {
	for i, part := range wrap(text, max(1, f.w-4)) {
		lead := "    "
		if i == 0 {
			lead = "  " + mark + " "
		}
		f.lines = append(f.lines, cut(lead+part, f.w))
	}
}

// forkOf is the command that runs a unit of a run, and what depends on it, with
// other inputs.
func forkOf(id string) string {
	run := runOf(id)
	return "apollo11 fork " + run + " --from " + id[len(run)+1:] + " --with NAME=VALUE"
}

// nextKeys are what a person can do about a task, or a run, in a state; empty:
// nothing.
func nextKeys(id, state string) string {
	s, err := task.ParseState(state)
	run := runOf(id)
	switch {
	case run == "" && runOf(id+":") != "":
		return nextOfRun(&view.Run{State: state})
	case err != nil:
		return ""
	case s == task.Dead && run != "":
		return "r resumes its run, e says how it runs with other inputs, i says why, X drops it (on 4)"
	case s == task.Dead:
		return "r requeues it, e edits its inputs first, i says why, X drops it (on 4)"
	case s.Terminal():
		return ""
	case s.Out():
		return "c cancels it, i says why (on 3)"
	case run != "":
		return "J goes to its run, i says why (on 3)"
	}
	return "e edits its inputs, c cancels it, i says why (on 3)"
}
