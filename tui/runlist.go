package tui

import (
	"errors"
	"fmt"
	"slices"

	"apollo11/engine/view"
)

// runList is the runs, newest first, read page by page as the cursor goes on.
type runList struct {
	list   list[view.Run]
	all    []view.Run // without the filter
	next   string     // where the page after the last one starts; empty: there is none
	loaded bool
	filter filter
	want   string // a run that the cursor is to go to
}

func newRunList() runList { return runList{list: newList(func(r *view.Run) string { return r.ID })} }

// atEnd reports whether the next page is wanted.
func (l *runList) atEnd() bool {
	return l.next != "" && l.list.cursor+l.list.height >= len(l.list.rows)
}

func (l *runList) row(id string) *view.Run {
	if i := slices.IndexFunc(l.all, func(r view.Run) bool { return r.ID == id }); i >= 0 {
		return &l.all[i]
	}
	return nil
}

// take puts a page where it belongs: new runs come at the top.
func (l *runList) take(from string, p *view.RunPage) {
	l.loaded = true
	switch {
	case from != "" && from == l.next:
		l.all, l.next = append(l.all, p.Runs...), p.Cursor
	case from == "" && len(p.Runs) > 0 && p.Cursor != "":
		last := p.Runs[len(p.Runs)-1].ID
		i := slices.IndexFunc(l.all, func(r view.Run) bool { return r.ID == last })
		if i < 0 || i+1 == len(l.all) {
			l.all, l.next = p.Runs, p.Cursor
			break
		}
		l.all = append(slices.Clone(p.Runs), l.all[i+1:]...)
	case from == "":
		l.all, l.next = p.Runs, ""
	}
	l.refilter()
}

func (l *runList) refilter() {
	rows := make([]view.Run, 0, len(l.all))
	for i := range l.all {
		if r := &l.all[i]; l.filter.leaves(r) {
			rows = append(rows, *r)
		}
	}
	l.list.set(rows)
	l.seek(l.want)
}

// seek puts the cursor on a run, as soon as it is there.
func (l *runList) seek(id string) {
	if id == "" {
		return
	}
	l.want = id
	if i := slices.IndexFunc(l.list.rows, func(r view.Run) bool { return r.ID == id }); i >= 0 {
		l.list.cursor, l.want = i, ""
		l.list.see()
	}
}

// do takes the keys that are the list's own.
func (l *runList) do(s *shared, in input) bool {
	if l.list.move(in.act) {
		l.want = ""
		return true
	}
	switch in.act {
	case markOne:
		return l.list.mark(in.act)
	case find:
		l.setFilter(s, in.text)
	case back:
		if len(l.list.marked) > 0 {
			clear(l.list.marked)
			return true
		}
		l.filter = filter{}
	default:
		return false
	}
	l.refilter()
	return true
}

// setFilter takes words, and the states of runs.
func (l *runList) setFilter(s *shared, text string) {
	f, err := parseFilter(text, view.RunStates)
	if err == nil {
		others := f
		if others.states = nil; others.plain() != nil {
			err = errors.New("this screen takes state:, words and !words only")
		}
	}
	if err != nil {
		s.complain(fmt.Errorf("filter: %w", err))
		return
	}
	l.filter = f
}
