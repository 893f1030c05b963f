package tui

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// caption is the line above the list.
func (l *taskList) caption(s *shared, what string) string {
	order := "newest first"
	if l.query.Oldest {
		order = "oldest first"
	}
	text := what + ": " + strconv.Itoa(len(l.list.rows))
	if len(l.pages) > 0 && l.pages[len(l.pages)-1].next != "" {
		text += fmt.Sprintf(" loaded of %d, more below", l.total)
	}
	text += " · " + order
	if l.filter.text != "" {
		text += " · filter " + clean(l.filter.text)
	}
	switch n := len(l.list.marked); {
	case l.all:
		text += " · ALL that match are chosen"
	case n > 0:
		text += fmt.Sprintf(" · %d marked", n)
	}
	return " " + s.theme.paint(strong, text)
}

var taskColumns = []column{
	{title: "ID", wide: 12}, {title: "TYPE", wide: 14}, {title: "STATE", wide: 9}, {title: "TRY", wide: 3, right: true, keep: 3},
	{title: "EXECUTOR", wide: 14, keep: 2}, {title: "SINCE", wide: 12, right: true, keep: 1}, {title: "ERROR", wide: 12, share: true},
}

// cells are a task's fields. Since is when it got to where it is, as far as a
// row says.
func taskCells(s *shared) func(*view.Task) []cell {
	return func(t *view.Task) []cell {
		since := t.Submitted
		for _, later := range []view.Time{t.Started, t.Finished} {
			if later.After(since.Time) {
				since = later
			}
		}
		return []cell{
			{text: t.ID}, {text: t.Type}, {t.State, stateStyle(t.State)}, {text: strconv.FormatInt(t.Attempt, 10)},
			{text: t.Executor}, {s.moment(since), dim}, {failText(t.ErrorClass, t.Error), bad},
		}
	}
}

// nothing is what a list without a task says.
func (l *taskList) nothing() string {
	switch {
	case len(l.pages) == 0:
		return " reading…"
	case l.filter.text != "":
		return " none that matches the filter; esc takes it away"
	case slices.Equal(l.base.States, []task.State{task.Dead}):
		return " none: nothing has failed for good"
	}
	return " none: all work that was given has ended. apollo11 submit TYPE name=value gives more"
}

func (l *taskList) view(s *shared, what string, w, h int) []string {
	lines := []string{fit(l.caption(s, what), w)}
	if len(l.list.rows) == 0 {
		l.list.height = max(1, h-2)
		return block(append(lines, l.nothing()), w, h)
	}
	return append(lines, l.list.view(s.theme, columnsFor(taskColumns, "ID", l.wide), w, h-1, taskCells(s))...)
}

// failText is what went wrong, each thing once.
func failText(class, text string) string {
	for rest, ok := strings.CutPrefix(text, class+": "); ok && class != ""; rest, ok = strings.CutPrefix(text, class+": ") {
		text = rest
	}
	switch {
	case class == "":
		return text
	case text == "" || text == class:
		return class
	}
	return class + ": " + text
}

// took is how long an attempt ran.
func took(a *view.Attempt) string {
	switch {
	case a.MS > 0:
		return span(time.Duration(a.MS) * time.Millisecond)
	case a.Finished.IsZero() || a.Started.IsZero():
		return "-"
	}
	return span(a.Finished.Sub(a.Started.Time))
}
