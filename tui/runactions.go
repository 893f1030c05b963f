package tui

import (
	"context"
	"errors"
	"fmt"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"apollo11/engine/view"
)

// actOnRun takes the keys that act on a run; id is what is explained or copied.
func (s *shared) actOnRun(run *view.Run, in input, id string) (tea.Cmd, bool) {
	switch in.act {
	case resume:
		return s.resumeRun(run), true
	case cancel:
		return s.cancelRun(run), true
	case explain:
		return s.explain(id), true
	case copyID:
		return s.copy(id), true
	case related:
		return goAs(onTimeline, input{act: find, text: "run:" + run.ID + " "}), true
	}
	return nil, false
}

// resumeRun starts a run that goes on from one that did not succeed.
func (s *shared) resumeRun(run *view.Run) tea.Cmd {
	switch run.State {
	case "waiting", "running":
		s.say("%s is %s: it goes on by itself", run.ID, run.State)
		return nil
	case "succeeded":
		s.say("%s has succeeded: nothing of it is left to do. m starts its mission anew", run.ID)
		return nil
	}
	if run.Child != "" {
		s.say("%s was resumed already, by %s: R on that one", run.ID, run.Child)
		return nil
	}
	return s.actRun(Action{Verb: ResumeRun, Name: run.ID})
}

func (s *shared) cancelRun(run *view.Run) tea.Cmd {
	if !run.Finished.IsZero() && run.State != "needs_person" {
		s.say("%s has ended: it is %s", run.ID, run.State)
		return nil
	}
	a := Action{Verb: CancelRun, Name: run.ID, Reason: "from the console"}
	lines := []string{
		fmt.Sprintf("Of its %s %d have ended and %d run now; those are told to stop, and nothing more starts.", plural(run.Units, "unit"), run.Done, run.Running),
		"Results that there are stay. R resumes it.",
	}
	s.ask(yesNo(fmt.Sprintf("Cancel %s of %s?", run.ID, run.Mission), lines, func() tea.Cmd { return s.actRun(a) }))
	return nil
}

// ranMsg is what became of an action on a run.
type ranMsg struct {
	action Action
	run    *view.Run
	err    error
}

// actRun makes a command of an action on a run.
func (s *shared) actRun(a Action) tea.Cmd {
	source := s.source
	return guarded(func() tea.Msg {
		run, err := source.DoRun(context.Background(), a)
		if err == nil && run == nil {
			err = errors.New("no run came of it")
		}
		if err == nil {
			run.Fields(cleaner{})
		}
		return ranMsg{a, run, err}
	})
}

// takeRan says what became of an action on a run, and shows a new one.
func (m *model) takeRan(msg ranMsg) tea.Cmd {
	form, _ := m.s.box.(*form)
	asked := form != nil && form.asked && msg.action.Verb == StartRun
	switch {
	case msg.err != nil && asked:
		form.refused(msg.err)
		return nil
	case msg.err != nil:
		m.s.complain(msg.err)
		return nil
	case asked:
		m.s.box = nil
	}
	run := msg.run
	switch msg.action.Verb {
	case CancelRun:
		m.s.say("%s is cancelled", run.ID)
		return m.poll()
	case ResumeRun:
		m.s.say("%s goes on from %s", run.ID, msg.action.Name)
	default:
		m.s.say("%s of %s is %s", run.ID, run.Mission, run.State)
	}
	return tea.Batch(m.goAs(onMissions, input{act: related, text: run.ID}), m.poll())
}

// goMsg leads to another screen, and does something there.
type goMsg struct {
	to screenID
	in input
}

func goAs(to screenID, in input) tea.Cmd { return func() tea.Msg { return goMsg{to, in} } }

func (m *model) goAs(to screenID, in input) tea.Cmd {
	m.goTo(to)
	return m.toScreen(in)
}

// runOf is the run that a task is of; empty: none.
func runOf(id string) string {
	run, _, ok := strings.Cut(id, ":")
	number, is := strings.CutPrefix(run, "r-") // of base 36
	if ok && is && number != "" && strings.Trim(number, "0123456789abcdefghijklmnopqrstuvwxyz") == "" {
		return run
	}
	return ""
}

// showRun leads from a task to its run.
func (s *shared) showRun(id string) tea.Cmd {
	run := runOf(id)
	if run == "" {
		s.say("it is of no run")
		return nil
	}
	return goAs(onMissions, input{act: related, text: run})
}
