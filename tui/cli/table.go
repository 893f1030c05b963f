package cli

import (
	"io"
	"strings"

	"apollo11/engine/task"
)

// column is one column of a table.
type column struct {
	title string
	right bool // aligned
	least int  // narrowest that it may be cut to; 0: never cut
	drop  int  // the lowest goes first where it is too narrow for all; 0: stays
}

// cell is one text of a row.
type cell struct {
	text  string
	style style
}

// table prints rows under a header. The first rows decide the widths, so that a
// long table need not be kept.
type table struct {
	w       io.Writer
	paint   palette
	max     int // columns of the terminal; 0: any
	columns []column
	widths  []int // of each column, 0: dropped; nil: not decided
}

const gap = "  "

func (a *app) table(columns ...column) *table {
	t := &table{w: a.out, paint: a.paint(), columns: columns}
	if a.Terminal {
		t.max = a.Width
	}
	return t
}

// print adds rows of as many cells as there are columns.
func (t *table) print(rows [][]cell) error {
	for _, row := range rows {
		for i := range row {
			row[i].text = task.Printable(row[i].text)
		}
	}
	if t.widths == nil {
		t.decide(rows)
		header := make([]cell, len(t.columns))
		for i, c := range t.columns {
			header[i] = cell{c.title, dim}
		}
		rows = append([][]cell{header}, rows...)
	}
	for _, row := range rows {
		if _, err := io.WriteString(t.w, t.line(row)+"\n"); err != nil {
			return err
		}
	}
	return nil
}

func (t *table) line(row []cell) string {
	var b strings.Builder
	pad := 0 // owed before the next text, so that no line ends in spaces
	for i, c := range row {
		if t.widths[i] == 0 {
			continue
		}
		text := c.text
		if t.max > 0 {
			text = cutWidth(text, t.widths[i])
		}
		free := max(0, t.widths[i]-textWidth(text))
		if t.columns[i].right {
			pad, free = pad+free, 0
		}
		if text != "" {
			b.WriteString(strings.Repeat(" ", pad))
			b.WriteString(t.paint.paint(c.style, text))
			pad = 0
		}
		pad += free + len(gap)
	}
	return b.String()
}

// decide sets the widths: natural ones if they fit, else the widest columns
// that may be cut are, else columns are dropped.
func (t *table) decide(rows [][]cell) {
	natural := make([]int, len(t.columns))
	for i, c := range t.columns {
		natural[i] = textWidth(c.title)
		for _, row := range rows {
			natural[i] = max(natural[i], textWidth(row[i].text))
		}
	}
	t.widths = append([]int(nil), natural...)
	for t.max > 0 && t.total() > t.max {
		if i := t.widest(); i >= 0 {
			t.widths[i]--
			continue
		}
		i := t.droppable()
		if i < 0 {
			t.squeeze()
			return
		}
		natural[i] = 0
		copy(t.widths, natural)
	}
}

func (t *table) total() (n int) {
	for _, w := range t.widths {
		if w > 0 {
			n += w + len(gap)
		}
	}
	return n - len(gap)
}

// widest is the widest column that may be cut further, -1: none.
func (t *table) widest() int {
	best := -1
	for i, c := range t.columns {
		if c.least > 0 && t.widths[i] > c.least && (best < 0 || t.widths[i] > t.widths[best]) {
			best = i
		}
	}
	return best
}

func (t *table) droppable() int {
	best := -1
	for i, c := range t.columns {
		if c.drop > 0 && t.widths[i] > 0 && (best < 0 || c.drop < t.columns[best].drop) {
			best = i
		}
	}
	return best
}

// squeeze cuts from the right whatever still does not fit: a terminal narrower
// than the table was made for.
func (t *table) squeeze() {
	for i := len(t.widths) - 1; i >= 0 && t.total() > t.max; i-- {
		t.widths[i] = max(0, t.widths[i]-(t.total()-t.max))
	}
}
