package tui

import (
	tea "github.com/charmbracelet/bubbletea"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// deadScreen is the dead letters: tasks that wait for a person.
type deadScreen struct{ tasks taskList }

func newDeadScreen() *deadScreen {
	return &deadScreen{newTaskList(view.Query{States: []task.State{task.Dead}})}
}

func (d *deadScreen) ask(s *shared) request { return d.tasks.ask(s) }

func (d *deadScreen) take(_ *shared, body any) {
	if a, ok := body.(taskAnswer); ok {
		d.tasks.take(a)
	}
}

func (d *deadScreen) do(s *shared, in input) (tea.Cmd, bool) {
	switch in.act {
	case requeue:
		return d.tasks.act(s, Requeue), true
	case edit:
		return d.tasks.edit(s), true
	case drop:
		return d.tasks.act(s, Drop), true
	case explain:
		return s.explain(d.tasks.current()), true
	case copyID:
		return s.copyTask(&d.tasks), true
	}
	return nil, d.tasks.do(s, in)
}

func (d *deadScreen) view(s *shared, w, h int) []string { return d.tasks.view(s, "dead letters", w, h) }
func (d *deadScreen) detail(s *shared, w int) []string  { return d.tasks.detail(s, w) }
