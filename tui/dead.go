package tui

import (
	"strings"

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
	case related:
		return s.showRun(d.tasks.current()), true
	case copyID:
		return s.copyTask(&d.tasks), true
	}
	return nil, d.tasks.do(s, in)
}

func (d *deadScreen) view(s *shared, w, h int) []string {
	foot := d.foot(s, w, h)
	return append(d.tasks.view(s, "dead letters", w, h-len(foot)), block(foot, w, len(foot))...)
}

// foot is the whole error under the cursor and what can be done, where there are
// no details beside the list.
func (d *deadScreen) foot(s *shared, w, h int) []string {
	at := d.tasks.list.at()
	if s.split || h < 15 || at == nil {
		return nil
	}
	lines := []string{" " + s.theme.paint(strong, at.ID+" ") + s.theme.paint(dim, strings.Repeat("─", max(0, w-width(at.ID)-3)))}
	text := wrap(failText(at.ErrorClass, at.Error), w-2)
	for _, part := range text[:min(3, len(text))] {
		lines = append(lines, " "+s.theme.paint(bad, part))
	}
	for len(lines) < 4 {
		lines = append(lines, "")
	}
	return append(lines, " "+s.theme.paint(dim, cut(strings.TrimSuffix(nextKeys(at.ID, at.State), " (on 4)"), w-1)))
}

func (d *deadScreen) detail(s *shared, w int) []string { return d.tasks.detail(s, w) }
