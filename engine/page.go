package engine

import (
	"fmt"
	"strconv"
	"strings"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// lookup finds a task by id, or by the prefix of one that is unique among the
// newest most tasks.
func (m *machine) lookup(id string, most int) (uint32, error) {
	if i := m.find(id); i != 0 {
		return i, nil
	}
	var found []string
	var last uint32
	i := m.all.newest
	for range most {
		if i == 0 || id == "" || len(found) > 3 {
			break
		}
		if strings.HasPrefix(string(m.idBytes(i)), id) {
			found, last = append(found, m.id(i)), i
		}
		i = m.at(i).list[byNum].older
	}
	switch {
	case len(found) == 1:
		return last, nil
	case len(found) > 1:
		return 0, fmt.Errorf("%w: %s names several tasks: %s", ErrNotFound, task.Printable(id), strings.Join(found, ", "))
	}
	if gone := m.names.gone[id]; gone != nil {
		return 0, fmt.Errorf("%w: task %s ended %s and left memory: its history is in the journal, see apollo11 replay %s", ErrNotFound, id, gone.State, id)
	}
	return 0, fmt.Errorf("%w: task %s", ErrNotFound, task.Printable(id))
}

// matcher is a query's filters as a test of one task.
func (m *machine) matcher(q view.Query) (func(uint32) bool, error) {
	var states uint16
	for _, s := range q.States {
		if _, err := task.ParseState(s.String()); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		states |= 1 << s
	}
	newest := m.now.wall - int64(q.Older)
	return func(i uint32) bool {
		t := m.at(i)
		switch {
		case states != 0 && states&(1<<t.state) == 0:
		case q.Type != "" && m.types[t.typ].name != q.Type:
		case q.Older > 0 && t.submitted > newest:
		case q.Error != "" && !m.errorHas(i, q.Error):
		default:
			return true
		}
		return false
	}, nil
}

// errorHas reports whether the last error's class or text has the words.
func (m *machine) errorHas(i uint32, words string) bool {
	if m.at(i).class.String() == words {
		return true
	}
	_, text := m.lastError(i)
	return strings.Contains(strings.ToLower(text), strings.ToLower(words))
}

// lastError is the class and the text of what went wrong last, if the task has
// not succeeded since.
func (m *machine) lastError(i uint32) (task.Class, string) {
	t := m.at(i)
	if t.class == task.NoClass {
		return t.class, ""
	}
	if r := m.resultOf(i); r.Error != "" {
		return t.class, r.Error
	}
	if p, ok := m.lastFailure(i); ok {
		return t.class, p.Error
	}
	return t.class, ""
}

// walker goes through one list in one direction.
type walker struct {
	m      *machine
	kind   int
	oldest bool
	i      uint32
}

func (w *walker) next() {
	at := w.m.at(w.i).list[w.kind]
	if w.oldest {
		w.i = at.newer
	} else {
		w.i = at.older
	}
}

// rank is a task's position in the walked list; it only rises toward newer.
func (w *walker) rank() uint64 {
	if w.kind == byNum {
		return w.m.at(w.i).num
	}
	return w.m.at(w.i).stamp
}

// walk starts at the list that fits the query best: one state's, or all.
func (m *machine) walk(q view.Query) (w walker, total int) {
	l := &m.all
	w = walker{m: m, kind: byNum, oldest: q.Oldest}
	if len(q.States) == 1 {
		l, w.kind = &m.states[q.States[0]], byState
	}
	w.i = l.newest
	if q.Oldest {
		w.i = l.oldest
	}
	return w, l.len
}

// resume skips what earlier pages showed. The cursor names the last row's rank
// and slot: usually the row still stands there, and nothing is searched.
func (w *walker) resume(cursor string) error {
	rankText, slotText, ok := strings.Cut(cursor, ".")
	rank, err := strconv.ParseUint(rankText, 36, 64)
	at, err2 := strconv.ParseUint(slotText, 36, 32)
	if !ok || err != nil || err2 != nil {
		return fmt.Errorf("%w: cursor %q", ErrInvalid, task.Printable(cursor))
	}
	if uint32(at) < w.m.slots.made && at != 0 {
		there := *w
		there.i = uint32(at)
		s := w.m.at(there.i)
		if s.num != 0 && there.rank() == rank && (w.kind == byNum || w.i != 0 && s.state == w.m.at(w.i).state) {
			*w = there
			w.next()
			return nil
		}
	}
	for w.i != 0 && (w.oldest && w.rank() <= rank || !w.oldest && w.rank() >= rank) {
		w.next()
	}
	return nil
}

// maxPageBytes bounds a page.
const maxPageBytes = 256 << 10

// page answers a query.
func (m *machine) page(q view.Query) (*view.Page, error) {
	match, err := m.matcher(q)
	if err != nil {
		return nil, err
	}
	w, total := m.walk(q)
	if q.Cursor != "" {
		if err := w.resume(q.Cursor); err != nil {
			return nil, err
		}
	}
	limit := q.Limit
	if limit <= 0 || limit > view.MaxRows {
		limit = view.MaxRows
	}
	page := &view.Page{Total: total}
	size := 0
	for w.i != 0 {
		page.Examined++
		cursor := strconv.FormatUint(w.rank(), 36) + "." + strconv.FormatUint(uint64(w.i), 36)
		if match(w.i) {
			row := m.viewTask(w.i)
			size += 300 + len(row.Error) + task.Values(row.Outputs).Size()
			page.Tasks = append(page.Tasks, row)
		}
		w.next()
		if w.i != 0 && (len(page.Tasks) == limit || size > maxPageBytes || page.Examined == maxExamined) {
			page.Cursor = cursor
			break
		}
	}
	return page, nil
}
