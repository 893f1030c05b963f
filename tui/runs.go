package tui

import (
	"context"
	"slices"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// runsScreen is the runs of missions: the list of them, one opened with its
// units, or two side by side.
type runsScreen struct {
	level  level
	runs   runList
	opened string          // the run whose units are shown
	know   *view.RunDetail // of the run under the cursor, or the one that is opened
	units  list[view.RunUnit]
	task   *view.Detail // of the unit under the cursor
	pair   pairing
	asked  runsAsked
	read   time.Time // when know came
	drawn  drawn
}

// level is how deep the screen is.
type level uint8

const (
	onList level = iota
	onUnits
	onPair
)

// runsAsked tells whether anything could have changed since.
type runsAsked struct {
	seq       int64
	level     level
	run, task string
	from      string // cursor of a page further down; empty: the first page
	pair      [2]string
}

const (
	// maxUnits bounds what is read of a run; show reads them all.
	maxUnits = 4 * view.MaxRows
	// largeRun is from how many units on a run is read less often.
	largeRun  = view.MaxRows
	largeWait = 2 * time.Second
)

func newRunsScreen() *runsScreen {
	return &runsScreen{runs: newRunList(), units: newList(func(u *view.RunUnit) string { return u.Unit })}
}

// runsAnswer is what was read.
type runsAnswer struct {
	asked runsAsked
	page  *view.RunPage
	know  *view.RunDetail
	task  *view.Detail
	diff  *view.Diff
}

// ask wants the first page of runs, or the next one at the end of what is
// loaded; the run under the cursor; the task of the unit under the cursor.
func (x *runsScreen) ask(s *shared) request {
	now := runsAsked{seq: s.over.Status.Seq, level: x.level, pair: x.pair.ids}
	if x.level == onPair {
		now.seq = 0 // asked once
	}
	if x.level == onList && x.runs.atEnd() {
		now.from = x.runs.next
	}
	now.run, now.task = x.current()
	if large := x.know != nil && x.know.ID == now.run && x.know.Run.Units > largeRun; large && s.clock().Sub(x.read) < largeWait {
		now.seq = x.asked.seq
	}
	if now == x.asked {
		return nil
	}
	keep := x.settled(now.run)
	return func(ctx context.Context, source Source) (any, error) { return readRuns(ctx, source, now, keep) }
}

// current is the run that is shown, and the task.
func (x *runsScreen) current() (run, task string) {
	switch x.level {
	case onUnits:
		if at := x.units.at(); at != nil {
			task = at.Task
		}
		return x.opened, task
	case onList:
		if at := x.runs.list.at(); at != nil {
			return at.ID, ""
		}
	}
	return "", ""
}

// settled is what is known of a run that has ended: nothing more comes.
func (x *runsScreen) settled(id string) *view.RunDetail {
	if x.know == nil || x.know.ID != id || x.know.Finished.IsZero() {
		return nil
	}
	if row := x.runs.row(id); row == nil || row.Child != x.know.Child || row.State != x.know.State {
		return nil
	}
	return x.know
}

// readRuns reads what is asked for; keep is what need not be read again.
func readRuns(ctx context.Context, source Source, now runsAsked, keep *view.RunDetail) (any, error) {
	a := runsAnswer{asked: now, know: keep}
	var err error
	switch now.level {
	case onPair:
		a.diff, err = readDiff(ctx, source, now.pair)
		return a, err
	case onList:
		if a.page, err = source.Runs(ctx, view.RunQuery{Limit: pageRows, Cursor: now.from}); err != nil {
			return nil, err
		}
		cleanRows(a.page.Runs)
	}
	if now.run != "" && keep == nil {
		a.know, err = readRun(ctx, source, now.run)
		if err != nil && now.level == onUnits {
			return nil, err // of one in the list: it was forgotten meanwhile
		}
		if a.know != nil {
			cleanRun(a.know)
		}
	}
	if now.task != "" {
		if body, err := askTask(now.task)(ctx, source); err == nil { // one that does not wait yet may have none
			a.task, _ = body.(*view.Detail)
		}
	}
	return a, nil
}

// readRun reads a run with its units, as they are; of a very large one the first.
func readRun(ctx context.Context, source Source, id string) (*view.RunDetail, error) {
	d, err := source.Run(ctx, id, "")
	for err == nil && d.Cursor != "" && len(d.Units) < maxUnits {
		var more *view.RunDetail
		if more, err = source.Run(ctx, id, d.Cursor); err == nil {
			d.Units, d.Cursor = append(d.Units, more.Units...), more.Cursor
		}
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

func cleanRun(d *view.RunDetail) {
	d.Fields(cleaner{})
	cleanRows(d.Units)
	cleanTexts(d.Notes)
}

func (x *runsScreen) take(s *shared, body any) {
	a, ok := body.(runsAnswer)
	if !ok || a.asked.level != x.level {
		return
	}
	x.asked = a.asked
	if a.page != nil {
		x.runs.take(a.asked.from, a.page)
		x.asked.from = ""
	}
	if x.level == onPair {
		x.pair.take(a.diff)
		return
	}
	x.know, x.task = a.know, a.task
	if a.know != nil {
		x.read = s.clock()
	}
	if x.level == onUnits && a.know != nil && a.know.ID == x.opened {
		x.setUnits(a.know.Units)
	}
}

func (x *runsScreen) do(s *shared, in input) (tea.Cmd, bool) {
	switch in.act {
	case start:
		return s.pickMission(), true
	case related:
		if in.text != "" {
			x.open(in.text)
			return nil, true
		}
	}
	switch x.level {
	case onUnits:
		return x.doUnits(s, in)
	case onPair:
		return x.doPair(s, in)
	}
	return x.doList(s, in)
}

// open shows the units of a run.
func (x *runsScreen) open(id string) {
	x.level, x.opened, x.task = onUnits, id, nil
	x.units.cursor = 0
	x.units.set(nil)
	if x.know != nil && x.know.ID == id {
		x.setUnits(x.know.Units)
	}
}

// setUnits takes the units in; the first time the cursor goes to what failed.
func (x *runsScreen) setUnits(units []view.RunUnit) {
	anew := len(x.units.rows) == 0
	x.units.set(units)
	if failed := slices.IndexFunc(units, func(u view.RunUnit) bool { return u.State == task.Dead.String() }); anew && failed >= 0 {
		x.units.cursor = failed
		x.units.see()
	}
}

func (x *runsScreen) doList(s *shared, in input) (tea.Cmd, bool) {
	l := &x.runs
	at := l.list.at()
	if l.do(s, in) {
		return nil, true
	}
	switch in.act {
	case compareRuns:
		x.compare(s)
		return nil, true
	case open, resume, cancel, explain, copyID, related:
		if at == nil {
			s.say("no run here")
			return nil, true
		}
	}
	if in.act == open {
		x.open(at.ID)
		return nil, true
	}
	return s.actOnRun(at, in, at.ID)
}

func (x *runsScreen) doUnits(s *shared, in input) (tea.Cmd, bool) {
	if x.units.move(in.act) {
		return nil, true
	}
	run := x.shown()
	at := x.units.at()
	switch in.act {
	case back:
		x.level = onList
		x.runs.seek(x.opened)
		return nil, true
	case compareRuns:
		x.compare(s)
		return nil, true
	case explain, copyID:
		if at != nil && at.Task != "" {
			return s.actOnRun(run, in, at.Task)
		}
	case resume, cancel, related:
		if run == nil {
			s.say("reading %s", x.opened)
			return nil, true
		}
	case find, markOne:
		s.say("esc goes back to the list of runs, where that works")
		return nil, true
	}
	return s.actOnRun(run, in, x.opened)
}

// shown is the run that is opened; nil: it was not read yet.
func (x *runsScreen) shown() *view.Run {
	if x.know != nil && x.know.ID == x.opened {
		return &x.know.Run
	}
	return x.runs.row(x.opened)
}
