package tui

import (
	"strconv"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"apollo11/engine/view"
)

// queueScreen is what has not ended: the types' queues above, the tasks below.
type queueScreen struct {
	tasks taskList
	types list[view.Queue]
	upper bool // the types have the cursor
}

func newQueueScreen() *queueScreen {
	return &queueScreen{
		tasks: newTaskList(view.Query{States: statesOf(false), Oldest: true}),
		types: newList(func(q *view.Queue) string { return q.Type }),
	}
}

func (q *queueScreen) ask(s *shared) request {
	q.types.set(s.over.Queues)
	return q.tasks.ask(s)
}

func (q *queueScreen) take(_ *shared, body any) {
	if a, ok := body.(taskAnswer); ok {
		q.tasks.take(a)
	}
}

func (q *queueScreen) do(s *shared, in input) (tea.Cmd, bool) {
	switch in.act {
	case nextPane:
		q.upper = !q.upper
		return nil, true
	case pause:
		if at := q.types.at(); q.upper && at != nil {
			return s.pause(at.Type, at.Paused), true
		}
		return s.pause("", s.over.Status.Paused), true
	case cancel:
		return q.tasks.act(s, Cancel), true
	case edit:
		return q.tasks.edit(s), true
	case explain:
		return s.explain(q.tasks.current()), true
	case related:
		return s.showRun(q.tasks.current()), true
	case copyID:
		return s.copyTask(&q.tasks), true
	}
	if q.upper {
		return nil, q.types.move(in.act)
	}
	return nil, q.tasks.do(s, in)
}

// pause stops dispatch or lets it go on.
func (s *shared) pause(typ string, paused bool) tea.Cmd {
	verb := Pause
	if paused {
		verb = Continue
	}
	return s.act(Action{Verb: verb, Name: typ})
}

var queueColumns = []column{
	{title: "TYPE", wide: 12, share: true}, {title: "QUEUED", wide: 8, right: true}, {title: "OUT", wide: 6, right: true},
	{title: "LIMIT", wide: 6, right: true, keep: 1}, {title: "EXECUTORS", wide: 9, right: true, keep: 3},
	{title: "OLDEST", wide: 7, right: true, keep: 4}, {title: "NOTE", wide: 12, keep: 5},
}

func queueCells(row *view.Queue) []cell {
	limit, oldest := "-", "-"
	if row.Limit > 0 {
		limit = strconv.FormatInt(row.Limit, 10)
	}
	if row.Queued > 0 {
		oldest = ageBucket(time.Duration(row.OldestMS) * time.Millisecond)
	}
	note := cell{}
	switch {
	case row.Paused:
		note = cell{"paused", warn}
	case row.Queued > 0 && row.Executors == 0:
		note = cell{"no executor", bad}
	}
	return []cell{
		{text: row.Type}, {text: strconv.FormatInt(row.Queued, 10)}, {text: strconv.FormatInt(row.Out, 10)}, {limit, dim},
		{text: strconv.FormatInt(row.Executors, 10)}, {text: oldest}, note,
	}
}

func (q *queueScreen) view(s *shared, w, h int) []string {
	upper := min(len(q.types.rows)+1, max(2, h/3))
	lines := []string{fit(" "+s.theme.paint(strong, "types")+q.here(q.upper), w)}
	lines = append(lines, q.types.view(s.theme, queueColumns, w, upper, queueCells)...)
	return append(lines, q.tasks.view(s, "tasks that have not ended", w, h-upper-1)...)
}

// here marks the pane that the keys go to.
func (q *queueScreen) here(yes bool) string {
	if yes {
		return " · p pauses the type, tab goes to the tasks"
	}
	return " · tab goes here"
}

func (q *queueScreen) detail(s *shared, w int) []string { return q.tasks.detail(s, w) }
