package tui

import (
	"context"
	"fmt"
	"slices"

	tea "github.com/charmbracelet/bubbletea"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// pageRows is how many tasks are asked for at once.
const pageRows = 200

// taskList is a list of tasks that is read page by page as the cursor goes on,
// and read again, where it is looked at, when something has happened.
type taskList struct {
	base   view.Query // what the screen is about
	query  view.Query // with the filter
	filter filter
	list   list[view.Task]
	pages  []taskPage
	total  int          // tasks the controller would look at
	all    bool         // all that match are chosen, loaded or not
	know   *view.Detail // of the task that had the cursor
	asked  asked        // what the newest answer is about
	wide   int          // columns of the longest id that was read
}

// taskPage is a page's place in the list, and where the next one starts.
type taskPage struct {
	next string // empty: it is the last
	rows int
}

// asked tells whether anything could have changed since.
type asked struct {
	seq int64
	id  string
	n   int // pages
	top int
}

func newTaskList(base view.Query) taskList {
	return taskList{base: base, query: base, list: newList(func(t *view.Task) string { return t.ID })}
}

// taskAnswer is some pages and a detail.
type taskAnswer struct {
	asked asked
	from  int // first of the pages
	pages []*view.Page
	know  *view.Detail
}

// ask wants the pages in sight, or the next one at the end of what is loaded,
// and the detail of the task under the cursor.
func (l *taskList) ask(s *shared) request {
	from, count := l.sight()
	now := asked{seq: s.over.Status.Seq, n: len(l.pages), top: from*1000 + count}
	if at := l.list.at(); at != nil {
		now.id = at.ID
	}
	if now == l.asked && l.query.Older == 0 {
		return nil
	}
	q, id := l.query, now.id
	q.Limit = pageRows
	if from > 0 && from <= len(l.pages) {
		q.Cursor = l.pages[from-1].next
	}
	return func(ctx context.Context, source Source) (any, error) {
		a := taskAnswer{asked: now, from: from}
		for range count {
			page, err := source.Tasks(ctx, q)
			if err != nil {
				return nil, err
			}
			cleanRows(page.Tasks)
			a.pages = append(a.pages, page)
			if q.Cursor = page.Cursor; q.Cursor == "" {
				break
			}
		}
		if id != "" {
			if d, err := source.Task(ctx, id); err == nil { // one that was forgotten meanwhile has none
				d.Fields(cleaner{})
				cleanRows(d.Attempts)
				a.know = d
			}
		}
		return a, nil
	}
}

// sight is which pages to read: those with visible rows, and the next one if
// the cursor is near the end.
func (l *taskList) sight() (from, count int) {
	first := -1
	row := 0
	for i, p := range l.pages {
		if row+p.rows > l.list.top && first < 0 {
			first = i
		}
		if row <= l.list.top+l.list.height {
			from = i
		}
		row += p.rows
	}
	if first < 0 {
		return 0, 1
	}
	count = from - first + 1
	last := &l.pages[len(l.pages)-1]
	if last.next != "" && l.list.cursor+l.list.height >= row && first+count == len(l.pages) {
		count++
	}
	return first, count
}

// take puts pages where they belong. Where a page ends elsewhere now, those
// after it are read anew when the cursor gets there.
func (l *taskList) take(a taskAnswer) {
	rows := slices.Clone(l.list.rows)
	for i, page := range a.pages {
		for j := range page.Tasks {
			l.wide = max(l.wide, width(page.Tasks[j].ID))
		}
		n := a.from + i
		if n > len(l.pages) {
			break
		}
		start := 0
		for _, p := range l.pages[:n] {
			start += p.rows
		}
		if n == len(l.pages) {
			l.pages = append(l.pages, taskPage{})
		}
		p := &l.pages[n]
		end := start + p.rows
		if p.next != page.Cursor {
			l.pages, end = l.pages[:n+1], len(rows)
		}
		p.next, p.rows = page.Cursor, len(page.Tasks)
		rows = slices.Replace(rows, start, min(end, len(rows)), page.Tasks...)
		l.total = page.Total
	}
	l.list.set(rows)
	l.know, l.asked = a.know, a.asked
	l.asked.n = len(l.pages)
}

// reset begins anew with another query.
func (l *taskList) reset(q view.Query) {
	l.query, l.pages, l.all, l.asked, l.wide = q, nil, false, asked{}, 0
	l.list.set(nil)
	clear(l.list.marked)
}

// do takes the keys that all lists of tasks have.
func (l *taskList) do(s *shared, in input) bool {
	if l.list.move(in.act) {
		return true
	}
	if in.act == markOne || in.act == markRange {
		l.all = false
		return l.list.mark(in.act)
	}
	switch in.act {
	case markAll:
		l.all = !l.all
		clear(l.list.marked)
	case sortTurn:
		l.base.Oldest, l.query.Oldest = !l.base.Oldest, !l.query.Oldest
		l.reset(l.query)
	case find:
		l.setFilter(s, in.text)
	case back:
		switch {
		case l.all || len(l.list.marked) > 0 || l.list.from > 0:
			l.all, l.list.from = false, 0
			clear(l.list.marked)
		case l.filter.text != "":
			l.filter = filter{}
			l.reset(l.base)
		}
	default:
		return false
	}
	return true
}

func (l *taskList) setFilter(s *shared, text string) {
	f, err := parseFilter(text, stateNames(l.base.States))
	if err == nil {
		var q view.Query
		if q, err = f.query(l.base); err == nil {
			l.filter = f
			l.reset(q)
			return
		}
	}
	s.complain(fmt.Errorf("filter: %w", err))
}

// chosen is what an action acts on: all that match, the marked, or the one
// under the cursor.
func (l *taskList) chosen() (view.Selection, bool) {
	if l.all {
		return view.Selection{All: true, Query: l.query}, true
	}
	if ids := l.list.marks(); len(ids) > 0 {
		return view.Selection{IDs: ids}, true
	}
	if at := l.list.at(); at != nil {
		return view.Selection{IDs: []string{at.ID}}, true
	}
	return view.Selection{}, false
}

// act asks for an action on what is chosen.
func (l *taskList) act(s *shared, v Verb) tea.Cmd {
	sel, ok := l.chosen()
	if !ok {
		s.say("no task to %s", v)
		return nil
	}
	return s.actOn(Action{Verb: v, Tasks: sel, Reason: "from the console"})
}

// current is the id of the task under the cursor; empty: there is none.
func (l *taskList) current() string {
	if at := l.list.at(); at != nil {
		return at.ID
	}
	return ""
}

// details of the task under the cursor; what the row says, until more is known.
func (l *taskList) detail(s *shared, w int) []string {
	at := l.list.at()
	if at == nil {
		return []string{"no task here"}
	}
	if l.know == nil || l.know.ID != at.ID {
		return taskDetail(s, &view.Detail{Task: *at}, w)
	}
	return taskDetail(s, l.know, w)
}

// statesOf are the states that only a person, or anybody, moves on from.
func statesOf(terminal bool) []task.State {
	var list []task.State
	for _, s := range task.States() {
		if s.Terminal() == terminal {
			list = append(list, s)
		}
	}
	return list
}
