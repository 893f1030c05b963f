package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

var timelineColumns = []column{
	{title: "RECORD", wide: 8, right: true, keep: 2}, {title: "TIME", wide: 12}, {title: "KIND", wide: 13, keep: 3}, {title: "TASK", wide: 10},
	{title: "EXECUTOR", wide: 14, keep: 1}, {title: "WHAT", wide: 20, share: true},
}

// columnsFor makes room for the ids of runs' tasks, which have two parts.
func columnsFor(columns []column, title string, wide int) []column {
	out := slices.Clone(columns)
	for i := range out {
		if out[i].title == title {
			out[i].wide = max(out[i].wide, min(wide, mostID))
		}
	}
	return out
}

// mostID is the most columns of an id.
const mostID = 20

// eventCells are a record's fields; a failure is marked beside its colour.
func eventCells(s *shared) func(*record) []cell {
	zone := s.clock().Location()
	return func(e *record) []cell {
		text, tone := e.words, plain
		if e.alarm {
			tone, text = bad, "! "+text
		}
		at := e.Time.In(zone).Format("15:04:05.000")
		if s.ages {
			at = s.moment(e.Time)
		}
		return []cell{{strconv.FormatInt(e.Seq, 10), dim}, {at, dim}, {text: e.Kind}, {text: cmp.Or(e.Task, e.Run)}, {text: e.Exec}, {text, tone}}
	}
}

func (x *timelineScreen) view(s *shared, w, h int) []string {
	text := "timeline"
	if n := len(x.list.rows); n > 0 {
		text += fmt.Sprintf(": records %d to %d", x.list.rows[0].Seq, x.list.rows[n-1].Seq)
	}
	if x.live {
		text += " · live"
	} else {
		text += " · stands still, L follows"
	}
	if x.marks > 0 {
		text += fmt.Sprintf(" · %s hidden, a shows all", plural(x.marks, "quiet mark"))
	}
	if x.filter.text != "" {
		text += " · filter " + clean(x.filter.text)
	}
	lines := []string{fit(" "+s.theme.paint(strong, text), w)}
	if x.next == 0 {
		x.list.height = max(1, h-2)
		return block(append(lines, " reading…"), w, h)
	}
	columns := columnsFor(columnsFor(timelineColumns, "TASK", x.wide), "KIND", x.kinds)
	return append(lines, x.list.view(s.theme, columns, w, h-1, eventCells(s))...)
}

func (x *timelineScreen) detail(s *shared, w int) []string {
	at := x.list.at()
	switch {
	case at == nil:
		return []string{"no record here"}
	case x.pinned != "" && x.task == nil:
		return []string{"reading " + x.pinned + "…"}
	case x.pinned != "":
		return append(eventDetail(s, at, w), append([]string{""}, taskDetail(s, x.task, w)...)...)
	}
	return eventDetail(s, at, w)
}
