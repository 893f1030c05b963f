package tui

import (
	"slices"
	"strings"
)

// list is a virtual list: it holds rows as they are and formats the visible
// ones alone. Cursor and marks go by id, so they stay with their rows when the
// rows are sorted anew, or others come and go.
type list[T any] struct {
	id     func(*T) string
	rows   []T
	cursor int
	top    int // first visible row
	height int // rows that were visible last
	marked map[string]bool
	from   int // row where a range of marks begins, +1; 0: none
}

func newList[T any](id func(*T) string) list[T] {
	return list[T]{id: id, marked: map[string]bool{}}
}

// set replaces the rows.
func (l *list[T]) set(rows []T) {
	was := ""
	if at := l.at(); at != nil {
		was = l.id(at)
	}
	from := ""
	if l.from > 0 && l.from <= len(l.rows) {
		from = l.id(&l.rows[l.from-1])
	}
	l.rows = rows
	l.cursor = l.near(was, l.cursor)
	if l.from > 0 {
		l.from = l.near(from, l.from-1) + 1
	}
	l.see()
}

// near finds the row of an id, looking around where it was; an id that is gone
// leaves the cursor where it stood.
func (l *list[T]) near(id string, was int) int {
	if id != "" {
		for d := 0; d < len(l.rows); d++ {
			for _, i := range [2]int{was - d, was + d} {
				if i >= 0 && i < len(l.rows) && l.id(&l.rows[i]) == id {
					return i
				}
			}
		}
	}
	return max(0, min(was, len(l.rows)-1))
}

// at is the row under the cursor; nil: there are none.
func (l *list[T]) at() *T {
	if l.cursor < 0 || l.cursor >= len(l.rows) {
		return nil
	}
	return &l.rows[l.cursor]
}

// move takes the keys that move; done is false for any other.
func (l *list[T]) move(a action) (done bool) {
	page := max(1, l.height-1)
	switch a {
	case moveDown:
		l.cursor++
	case moveUp:
		l.cursor--
	case pageDown:
		l.cursor += page
	case pageUp:
		l.cursor -= page
	case moveTop:
		l.cursor = 0
	case moveBottom:
		l.cursor = len(l.rows) - 1
	default:
		return false
	}
	l.cursor = max(0, min(l.cursor, len(l.rows)-1))
	l.see()
	return true
}

// see scrolls as little as shows the cursor.
func (l *list[T]) see() {
	h := max(1, l.height)
	l.top = max(l.cursor-h+1, min(l.top, l.cursor))
	l.top = max(0, min(l.top, len(l.rows)-h))
}

// mark takes the keys that mark.
func (l *list[T]) mark(a action) (done bool) {
	at := l.at()
	switch {
	case at == nil:
		return a == markOne || a == markRange
	case a == markOne:
		l.toggle(l.id(at))
		l.move(moveDown)
	case a == markRange && l.from == 0:
		l.from = l.cursor + 1
	case a == markRange:
		for i := min(l.from-1, l.cursor); i <= max(l.from-1, l.cursor) && i < len(l.rows); i++ {
			l.marked[l.id(&l.rows[i])] = true
		}
		l.from = 0
	default:
		return false
	}
	return true
}

func (l *list[T]) toggle(id string) {
	if l.marked[id] {
		delete(l.marked, id)
	} else {
		l.marked[id] = true
	}
}

// marks are the marked ids in the order of the rows; those that are not loaded
// any more come last.
func (l *list[T]) marks() []string {
	var ids []string
	for i := range l.rows {
		if id := l.id(&l.rows[i]); l.marked[id] {
			ids = append(ids, id)
		}
	}
	if len(ids) < len(l.marked) {
		seen := make(map[string]bool, len(ids))
		for _, id := range ids {
			seen[id] = true
		}
		var rest []string
		for id := range l.marked {
			if !seen[id] {
				rest = append(rest, id)
			}
		}
		slices.Sort(rest)
		ids = append(ids, rest...)
	}
	return ids
}

// column is one of a table's. A column with a share takes what the others
// leave; the lower its keep, the earlier it goes when there is no room.
type column struct {
	title string
	wide  int
	share bool
	right bool
	keep  int // 0: always
}

// cell is one field of a row.
type cell struct {
	text  string
	style style
}

// table is columns laid out for a width.
type table struct {
	columns []column
	widths  []int // 0: there is no room for it
}

func layout(columns []column, w int) table {
	t := table{columns: columns, widths: make([]int, len(columns))}
	for i, c := range columns {
		t.widths[i] = c.wide
	}
	w -= 2 // cursor and mark
	for t.used() > w && t.drop() {
	}
	for i, c := range columns {
		if c.share && t.widths[i] > 0 {
			t.widths[i] += max(0, w-t.used())
		}
	}
	return t
}

func (t *table) used() (n int) {
	for _, w := range t.widths {
		if w > 0 {
			n += w + 1
		}
	}
	return n - 1
}

// drop takes away the column that is needed least.
func (t *table) drop() bool {
	least := -1
	for i, c := range t.columns {
		if c.keep > 0 && t.widths[i] > 0 && (least < 0 || c.keep < t.columns[least].keep) {
			least = i
		}
	}
	if least < 0 {
		return false
	}
	t.widths[least] = 0
	return true
}

func (t *table) head(th *theme) string {
	cells := make([]cell, len(t.columns))
	for i, c := range t.columns {
		cells[i] = cell{c.title, heading}
	}
	return t.line(th, "  ", cells, false)
}

// line is one row, begun by two characters; the row under the cursor has one
// style throughout.
func (t *table) line(th *theme, lead string, cells []cell, under bool) string {
	var b strings.Builder
	b.WriteString(lead)
	first := true
	for i, w := range t.widths {
		if w == 0 {
			continue
		}
		if !first {
			b.WriteByte(' ')
		}
		first = false
		text := fit(cells[i].text, w)
		if t.columns[i].right {
			text = fitRight(cells[i].text, w)
		}
		if under {
			b.WriteString(text)
		} else {
			b.WriteString(th.paint(cells[i].style, text))
		}
	}
	return b.String()
}

// view is the list as a table of h lines, its head among them.
func (l *list[T]) view(th *theme, columns []column, w, h int, cells func(*T) []cell) []string {
	l.height = max(1, h-1)
	l.see()
	t := layout(columns, w)
	lines := []string{t.head(th)}
	for i := l.top; i < len(l.rows) && i < l.top+h-1; i++ {
		row := &l.rows[i]
		lead := [2]byte{' ', ' '}
		under := i == l.cursor
		if under {
			lead[0] = '>'
		}
		if l.marked[l.id(row)] || l.inRange(i) {
			lead[1] = '*'
		}
		line := fit(t.line(th, string(lead[:]), cells(row), under), w)
		if under {
			line = th.paint(chosen, line)
		}
		lines = append(lines, line)
	}
	return block(lines, w, h)
}

// inRange reports whether a range that is being marked reaches a row.
func (l *list[T]) inRange(i int) bool {
	return l.from > 0 && i >= min(l.from-1, l.cursor) && i <= max(l.from-1, l.cursor)
}
