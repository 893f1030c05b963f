package tui

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"apollo11/engine/view"
)

// timelineScreen is the journal as a list: a window of records that moves with
// the cursor, or with what happens. Its lanes, film and speeds come later.
type timelineScreen struct {
	list   list[record]
	all    []record // the window, without the filter
	filter filter
	live   bool
	every  bool  // marks of quiet are shown too
	marks  int   // how many of them are not
	wide   int   // columns of the longest task's id ever seen here
	kinds  int   // likewise of the kinds
	first  bool  // the window begins with the oldest record
	next   int64 // seq after the window; 0: nothing was read yet
	asked  int64 // seq of the overview before the last answer, +1
	jump   jump  // where a person wants to go
	pinned string
	task   *view.Detail
}

// jump is a place in the timeline; the zero one is none.
type jump struct {
	seq int64
	at  time.Time
}

const (
	eventPage   = 200
	eventWindow = 2000 // records kept
)

func newTimelineScreen() *timelineScreen {
	return &timelineScreen{list: newList(func(e *record) string { return strconv.FormatInt(e.Seq, 10) }), live: true}
}

// record is an event with its words, which are made before it is cleaned: they
// read values whose encoding has line ends.
type record struct {
	view.Event
	words string
	alarm bool
}

// markKind is the kind of the records that mark where nothing happened: the
// journal needs them, a person seldom.
const markKind = "seal"

func (e *record) mark() bool { return e.Kind == markKind }

func records(list []view.Event, describe func(*view.Event) (string, bool)) []record {
	out := make([]record, len(list))
	for i := range list {
		e := &list[i]
		words, alarm := pairs(e.Values), false
		if describe != nil {
			words, alarm = describe(e)
		}
		e.Fields(cleaner{})
		out[i] = record{*e, clean(words), alarm}
	}
	return out
}

// eventsAnswer is a piece of the timeline.
type eventsAnswer struct {
	place  place
	events []record
	next   int64
	more   bool
	asked  int64
}

// place is where a piece belongs in the window.
type place uint8

const (
	anew place = iota
	before
	after
)

func (x *timelineScreen) ask(s *shared) request {
	if x.pinned != "" && (x.task == nil || x.task.ID != x.pinned) {
		return askTask(x.pinned)
	}
	last := s.over.Status.Seq
	q := view.EventQuery{Task: x.filter.task, Run: x.filter.run, Limit: eventPage}
	near := x.list.cursor+x.list.height >= len(x.list.rows)
	switch {
	case x.jump != jump{}:
		q.From, q.After = max(0, x.jump.seq-eventPage/4), x.jump.at
		return s.events(q, anew, 0)
	case last == 0:
		return nil
	case x.next == 0 || x.live && last-x.next > eventWindow:
		if q.From = max(1, last-eventPage+1); x.filter.narrow() {
			q.From = 0
		}
		return s.events(q, anew, last+1)
	case (x.live || near) && x.next <= last && x.asked != last+1:
		q.From = x.next
		return s.events(q, after, last+1)
	case !x.first && x.list.cursor < x.list.height && len(x.all) > 0 && !x.filter.narrow():
		q.From = max(1, x.all[0].Seq-eventPage)
		q.Limit = int(max(1, x.all[0].Seq-q.From))
		return s.events(q, before, x.asked)
	}
	return nil
}

func (s *shared) events(q view.EventQuery, p place, asked int64) request {
	describe := s.describe
	return func(ctx context.Context, source Source) (any, error) {
		page, err := source.Timeline(ctx, q)
		if err != nil {
			return nil, err
		}
		if page.More {
			asked = 0 // go on at once
		}
		return eventsAnswer{place: p, events: records(page.Events, describe), next: page.Next, more: page.More, asked: asked}, nil
	}
}

func (x *timelineScreen) take(s *shared, body any) {
	switch a := body.(type) {
	case eventsAnswer:
		x.takeEvents(s, a)
	case *view.Detail:
		x.task, x.pinned = a, a.ID
	}
}

func (x *timelineScreen) takeEvents(s *shared, a eventsAnswer) {
	switch a.place {
	case anew:
		x.all, x.first = a.events, len(a.events) > 0 && a.events[0].Seq <= 1
		x.next, x.asked = max(a.next, 1), a.asked
	case after:
		x.all, x.next, x.asked = append(x.all, a.events...), max(x.next, a.next), a.asked
		if over := len(x.all) - eventWindow; over > 0 {
			x.all, x.first = slices.Clone(x.all[over:]), false
		}
	case before:
		old := slices.DeleteFunc(a.events, func(e record) bool { return e.Seq >= x.all[0].Seq })
		x.first = len(old) == 0 || old[0].Seq <= 1
		x.all = append(old, x.all...)
		if len(x.all) > eventWindow {
			x.all = slices.Clone(x.all[:eventWindow])
			x.next, x.asked = x.all[eventWindow-1].Seq+1, 0
		}
	}
	x.refilter()
	x.land(s)
}

func (x *timelineScreen) refilter() {
	rows := make([]record, 0, len(x.all))
	x.marks = 0
	asked := x.every || slices.Contains(x.filter.words, markKind)
	for i := range x.all {
		e := &x.all[i]
		switch {
		case e.mark() && !asked:
			x.marks++
		case x.filter.text == "" || x.filter.match(e.Kind+" "+e.Task+" "+e.Run+" "+e.Exec+" "+e.words):
			rows = append(rows, *e)
		}
	}
	for i := range rows {
		x.wide = max(x.wide, width(cmp.Or(rows[i].Task, rows[i].Run)))
		x.kinds = max(x.kinds, width(rows[i].Kind))
	}
	x.list.set(rows)
	if x.live {
		x.list.move(moveBottom)
	}
}

// land puts the cursor where a jump went.
func (x *timelineScreen) land(s *shared) {
	if (x.jump == jump{}) {
		return
	}
	at := slices.IndexFunc(x.list.rows, func(e record) bool { return e.Seq >= x.jump.seq && !e.Time.Before(x.jump.at) })
	if at < 0 {
		at = len(x.list.rows) - 1
		s.say("the timeline ends before that")
	}
	x.list.cursor = max(0, at)
	x.list.see()
	x.jump = jump{}
}

func (x *timelineScreen) do(s *shared, in input) (tea.Cmd, bool) {
	switch in.act {
	case stepBack:
		in.act = moveUp
	case stepOn:
		in.act = moveDown
	case moveTop:
		x.live, x.jump = false, jump{seq: 1}
		return nil, true
	case moveBottom, live:
		x.live, x.next, x.asked = true, 0, 0
		return nil, true
	}
	if x.list.move(in.act) {
		x.live, x.pinned, x.task = false, "", nil
		return nil, true
	}
	at := x.list.at()
	switch in.act {
	case nextFailure, prevFailure:
		x.failure(s, in.act == nextFailure)
	case find:
		x.setFilter(s, in.text)
	case back:
		x.pinned, x.task = "", nil
		if x.filter.text != "" {
			x.filter, x.next, x.asked = filter{}, 0, 0
		}
	case everyRecord:
		x.every = !x.every
		x.refilter()
	case runPalette:
		x.goTo(s, in.text)
	case related:
		switch {
		case at != nil && at.Task != "":
			x.pinned, x.task = at.Task, nil
		case at != nil && at.Run != "":
			return goAs(onMissions, input{act: related, text: at.Run}), true
		default:
			s.say("no task belongs to this record")
		}
	case explain:
		id := ""
		if at != nil {
			id = cmp.Or(at.Task, at.Run)
		}
		return s.explain(id), true
	case copyID:
		if at != nil {
			return s.copy(strconv.FormatInt(at.Seq, 10)), true
		}
	default:
		return nil, false
	}
	return nil, true
}

// failure goes to the next record, or the one before, that tells of a failure.
func (x *timelineScreen) failure(s *shared, forward bool) {
	step := -1
	if forward {
		step = 1
	}
	for i := x.list.cursor + step; i >= 0 && i < len(x.list.rows); i += step {
		if x.list.rows[i].alarm {
			x.live = false
			x.list.cursor = i
			x.list.see()
			return
		}
	}
	s.say("no failure there among the records that are loaded")
}

func (x *timelineScreen) setFilter(s *shared, text string) {
	f, err := parseFilter(text, nil)
	task, run := f.task, f.run
	if f.task, f.run = "", ""; err == nil {
		err = f.plain()
	}
	if err != nil {
		s.complain(fmt.Errorf("filter: %w", err))
		return
	}
	f.task, f.run = task, run
	narrow := x.filter.narrow()
	x.filter = f
	if narrow || f.narrow() || x.all == nil {
		x.next, x.asked = 0, 0
		return
	}
	x.refilter()
}

// goTo jumps to a record's number or a time of today.
func (x *timelineScreen) goTo(s *shared, text string) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		x.live, x.jump = false, jump{seq: max(1, n)}
		return
	}
	now := s.clock()
	for _, form := range []string{"15:04", "15:04:05", "2006-01-02 15:04", time.RFC3339} {
		at, err := time.ParseInLocation(form, text, now.Location())
		if err != nil {
			continue
		}
		if at.Year() == 0 {
			at = time.Date(now.Year(), now.Month(), now.Day(), at.Hour(), at.Minute(), at.Second(), 0, now.Location())
		}
		x.live, x.jump = false, jump{at: at}
		return
	}
	s.complain(fmt.Errorf("%s: want a record's number, or a time such as 12:03", text))
}
