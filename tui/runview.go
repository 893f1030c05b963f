package tui

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"apollo11/engine/mission"
	"apollo11/engine/task"
	"apollo11/engine/view"
)

var runColumns = []column{
	{title: "RUN", wide: 8}, {title: "MISSION", wide: 14}, {title: "STATE", wide: 12}, {title: "ENDED", wide: 7, right: true},
	{title: "TOOK", wide: 8, right: true, keep: 2}, {title: "STARTED", wide: 12, right: true, keep: 3}, {title: "MODE", wide: 8, keep: 1},
	{title: "WHY", wide: 16, share: true, keep: 4},
}

func runCells(s *shared) func(*view.Run) []cell {
	return func(r *view.Run) []cell {
		why := cell{r.Why, runStyle(r.State)}
		if r.Why == "" {
			why = cell{started(r), dim}
		}
		at := r.Started
		if at.IsZero() {
			at = r.Created
		}
		return []cell{
			{text: r.ID}, {text: r.Mission}, {r.State, runStyle(r.State)}, {text: ended(r)}, {runTook(r), dim}, {s.moment(at), dim}, {text: r.Mode}, why,
		}
	}
}

// ended is how far a run is.
func ended(r *view.Run) string {
	return strconv.FormatInt(r.Done, 10) + "/" + strconv.FormatInt(r.Units, 10)
}

// runTook is how long a run was on; of one that is not over nothing is said that
// changes with every second.
func runTook(r *view.Run) string {
	took := time.Duration(r.MS) * time.Millisecond
	if r.Finished.IsZero() {
		if r.Started.IsZero() {
			return "-"
		}
		return ageBucket(took)
	}
	return span(took)
}

// started is what started a run.
func started(r *view.Run) string {
	switch {
	case r.By != "":
		return "by " + r.By
	case r.Cause != "":
		return r.Cause
	}
	return ""
}

// caption is the line above the list.
func (l *runList) caption(s *shared) string {
	text := "runs: " + strconv.Itoa(len(l.list.rows))
	if l.filter.text != "" {
		text += fmt.Sprintf(" of %d · filter %s", len(l.all), clean(l.filter.text))
	}
	if l.next != "" {
		text += " loaded, more below"
	}
	text += " · newest first"
	if n := len(l.list.marked); n > 0 {
		text += fmt.Sprintf(" · %d marked", n)
		if n == 2 {
			text += ", D compares them"
		}
	}
	return " " + s.theme.paint(strong, text)
}

func (l *runList) view(s *shared, w, h int) []string {
	lines := []string{fit(l.caption(s), w)}
	if len(l.list.rows) > 0 {
		return append(lines, l.list.view(s.theme, runColumns, w, h-1, runCells(s))...)
	}
	l.list.height = max(1, h-2)
	say := " none yet: m starts a mission, and so does  apollo11 run MISSION"
	switch {
	case !l.loaded:
		say = " reading…"
	case l.filter.text != "":
		say = " none that matches the filter; esc takes it away"
	}
	return block(append(lines, say), w, h)
}

func (x *runsScreen) view(s *shared, w, h int) []string {
	switch x.level {
	case onUnits:
		return x.viewUnits(s, w, h)
	case onPair:
		return x.pair.view(s, w, h)
	}
	at := x.runs.list.at()
	if s.split || at == nil || h < 12 {
		return x.runs.view(s, w, h)
	}
	top := min(len(x.runs.list.rows)+2, max(5, h/2))
	lines := x.runs.view(s, w, top)
	lines = append(lines, fit(" "+s.theme.paint(strong, at.ID+" ")+s.theme.paint(dim, strings.Repeat("─", max(0, w-width(at.ID)-3))), w))
	return append(lines, block(more(s, x.graph(s, at.ID, w-2), h-top-1), w, h-top-1)...)
}

// more is at most h lines, each begun by a space; where some are missing, the
// last one says so.
func more(s *shared, lines []string, h int) (out []string) {
	for i, line := range lines {
		if i == h-1 && len(lines) > h {
			return append(out, " "+s.theme.paint(dim, fmt.Sprintf("… %s: enter", plural(len(lines)-i, "more line"))))
		}
		out = append(out, " "+line)
	}
	return out
}

// mostDrawn is the most units of which the graph is drawn here.
const mostDrawn = view.MaxRows

// drawn is a graph's lines, and what they were drawn of.
type drawn struct {
	of    *view.RunDetail
	theme *theme
	w     int
	at    int64 // second; 0 of a run that is over
	lines []string
}

// graph is the units of a run as a tree, with states and durations.
func (x *runsScreen) graph(s *shared, id string, w int) []string {
	d := x.know
	switch {
	case d == nil || d.ID != id:
		return []string{"reading " + id + "…"}
	case len(d.Units) == 0:
		return []string{"it has no units"}
	case d.Cursor != "" || len(d.Units) > mostDrawn:
		return []string{cut(fmt.Sprintf("%d units are too many to draw here: enter lists them", max(d.Run.Units, int64(len(d.Units)))), w)}
	}
	now := drawn{of: d, theme: s.theme, w: w}
	if d.Finished.IsZero() {
		now.at = s.clock().Unix()
	}
	if old := &x.drawn; old.of != now.of || old.theme != now.theme || old.w != now.w || old.at != now.at {
		now.lines = drawGraph(s, d.Units, w)
		x.drawn = now
	}
	return x.drawn.lines
}

func drawGraph(s *shared, units []view.RunUnit, w int) []string {
	places := make([]mission.Place, len(units))
	for i := range units {
		u := &units[i]
		places[i] = mission.Place{Unit: u.Unit, Deps: view.Names(u.Deps), Weak: view.Names(u.Weak)}
	}
	g, err := mission.Outline(places)
	if err != nil {
		return wrap(clean(err.Error()), w)
	}
	text := g.Draw(mission.Drawing{
		Width: w,
		Note:  func(i int) string { return unitNote(s, &units[i]) },
		Paint: func(i int, line string) string { return s.theme.paint(stateStyle(units[i].State), cut(line, w)) },
	})
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// unitNote is what stands behind a unit in the graph.
func unitNote(s *shared, u *view.RunUnit) string {
	note := u.State
	if from := u.ReusedFrom(); from != "" {
		note = "reused from " + from
	}
	if took := unitTook(s, u); took != "-" {
		note += " " + took
	}
	if u.Attempt > 1 {
		note += fmt.Sprintf(", try %d", u.Attempt)
	}
	return note
}

// unitState is a unit's state; of one whose result was taken over that is said.
func unitState(u *view.RunUnit) string {
	if u.ReusedFrom() != "" {
		return "reused"
	}
	return u.State
}

var unitColumns = []column{
	{title: "UNIT", wide: 16}, {title: "STATE", wide: 10}, {title: "TRY", wide: 3, right: true, keep: 3}, {title: "EXECUTOR", wide: 14, keep: 2},
	{title: "TOOK", wide: 9, right: true, keep: 4}, {title: "QUEUED", wide: 8, right: true, keep: 1}, {title: "ERROR", wide: 12, share: true},
}

func unitCells(s *shared) func(*view.RunUnit) []cell {
	return func(u *view.RunUnit) []cell {
		say := cell{failText(u.ErrorClass, u.Error), bad}
		if say.text == "" {
			say = cell{u.Reason, dim}
		}
		queued := "-"
		if u.QueueMS > 0 {
			queued = span(time.Duration(u.QueueMS) * time.Millisecond)
		}
		return []cell{
			{text: u.Unit}, {unitState(u), stateStyle(u.State)}, {text: strconv.FormatInt(u.Attempt, 10)}, {text: u.Executor},
			{text: unitTook(s, u)}, {queued, dim}, say,
		}
	}
}

func (x *runsScreen) viewUnits(s *shared, w, h int) []string {
	run := x.shown()
	if run == nil {
		return block([]string{" " + s.theme.paint(strong, x.opened), " reading…"}, w, h)
	}
	lines := []string{" " + s.theme.paint(strong, run.ID+" of "+run.Mission) + " · " + s.theme.paint(runStyle(run.State), run.State) + " · " + progressOf(run)}
	if run.Why != "" {
		lines = append(lines, " "+s.theme.paint(runStyle(run.State), cut(run.Why, w-1)))
	}
	if say := nextOfRun(run); say != "" {
		lines = append(lines, " "+s.theme.paint(dim, cut(say, w-1)))
	}
	if x.know == nil || x.know.ID != x.opened {
		return block(append(lines, " reading its units…"), w, h)
	}
	if x.know.Cursor != "" {
		lines = append(lines, fmt.Sprintf(" the first %d of %d units; apollo11 show %s has all", len(x.units.rows), run.Units, run.ID))
	}
	lines = block(lines, w, len(lines))
	return append(lines, x.units.view(s.theme, unitColumns, w, h-len(lines), unitCells(s))...)
}

// progressOf counts the units of a run.
func progressOf(r *view.Run) string {
	parts := []string{fmt.Sprintf("%d of %s ended", r.Done, plural(r.Units, "unit"))}
	for _, c := range []struct {
		n    int64
		name string
	}{{r.Running, "running"}, {r.Failed, "dead"}, {r.Skipped, "skipped"}, {r.Reused, "reused"}} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.name))
		}
	}
	return strings.Join(parts, ", ")
}

// nextOfRun is what a person can do about a run; empty: nothing.
func nextOfRun(r *view.Run) string {
	switch r.State {
	case "waiting", "running":
		return "c cancels it, i says why it stands where it does"
	case "succeeded":
		return ""
	}
	if r.Child != "" {
		return r.Child + " goes on from it"
	}
	return "R resumes it: what succeeded is not run again; i says why it stands where it does"
}

func (x *runsScreen) detail(s *shared, w int) []string {
	switch x.level {
	case onUnits:
		at := x.units.at()
		if at == nil {
			return []string{"no unit here"}
		}
		return x.unitDetail(s, at, w)
	case onPair:
		return x.pair.detail(s, w)
	}
	at := x.runs.list.at()
	if at == nil {
		return []string{"no run here"}
	}
	f := facts{theme: s.theme, w: w}
	known := x.know != nil && x.know.ID == at.ID
	run := at
	if known {
		run = &x.know.Run
	}
	f.runState(run)
	if known {
		f.notes(x.know.Notes)
		f.head("units")
		f.lines = append(f.lines, x.graph(s, at.ID, w)...)
	}
	f.values("parameters", run.Params)
	f.runLife(s, run)
	return f.lines
}

// runState is where a run stands.
func (f *facts) runState(r *view.Run) {
	f.title(r.ID + "  " + r.Mission)
	f.styled("state", r.State, runStyle(r.State))
	f.styled("why", r.Why, runStyle(r.State))
	f.add("next", nextOfRun(r))
	f.add("so far", progressOf(r))
	f.add("parent", r.Parent)
	f.add("resumed by", r.Child)
}

func (f *facts) notes(notes []string) {
	if len(notes) == 0 {
		return
	}
	f.head("notes")
	for _, note := range notes {
		f.bullet("·", note)
	}
}

// runLife is where a run came from, and when.
func (f *facts) runLife(s *shared, r *view.Run) {
	f.head("its life")
	f.add("mode", r.Mode)
	f.add("started by", cmp.Or(r.By, r.Cause))
	f.add("created", s.moment(r.Created))
	f.add("started", s.moment(r.Started))
	f.add("finished", s.moment(r.Finished))
	f.add("took", runTook(r))
	f.add("spec", shortHash(r.Spec))
}

// shortHash is enough of a hash to tell it from others.
func shortHash(h string) string { return cut(strings.TrimPrefix(h, "sha256:"), 16) }

// unitDetail is all that is known of a unit of a run: its task, as far as that
// was read, and its place in the run.
func (x *runsScreen) unitDetail(s *shared, u *view.RunUnit, w int) []string {
	f := facts{theme: s.theme, w: w}
	known := x.task != nil && x.task.ID == u.Task
	if known {
		shown := *x.task
		if u.ReusedFrom() != "" {
			shown.State = unitState(u)
		}
		f.lines = taskDetail(s, &shown, w)
	} else {
		f.title(u.Unit + "  of " + x.opened)
		f.styled("state", unitState(u), stateStyle(u.State))
		f.styled("error", failText(u.ErrorClass, u.Error), bad)
		f.add("type", u.Type)
		f.add("task", u.Task)
		f.add("executor", u.Executor)
		f.add("version", versionText(u.Version))
	}
	f.head("in its run")
	f.add("reason", u.Reason)
	f.add("waits for", strings.ReplaceAll(u.Deps, ",", ", "))
	f.add("beside", strings.ReplaceAll(u.Weak, ",", ", "))
	f.add("took", segments(u))
	f.add("input hash", shortHash(u.InputHash))
	f.add("output hash", shortHash(u.OutputHash))
	f.add("unit hash", shortHash(u.UnitHash))
	if !known {
		f.values("inputs", u.Inputs)
		f.values("outputs", u.Outputs)
	}
	return f.lines
}

// segments is where a unit's time went.
func segments(u *view.RunUnit) string {
	var parts []string
	for _, c := range []struct {
		ms   int64
		name string
	}{{u.QueueMS, "queued"}, {u.PrepareMS, "prepare"}, {u.ExecuteMS, "execute"}, {u.CleanupMS, "cleanup"}} {
		if c.ms > 0 {
			parts = append(parts, c.name+" "+span(time.Duration(c.ms)*time.Millisecond))
		}
	}
	return strings.Join(parts, ", ")
}

// runStyle is how states of runs look.
func runStyle(state string) style {
	switch state {
	case "failed":
		return bad
	case "needs_person":
		return warn
	case "waiting":
		return dim
	}
	return stateStyle(state)
}

// unitTook is how long a unit was on an executor, or about how long it is.
func unitTook(s *shared, u *view.RunUnit) string {
	ms := u.PrepareMS + u.ExecuteMS + u.CleanupMS
	switch {
	case u.State == task.Running.String() && !u.Started.IsZero():
		return ageBucket(s.clock().Add(s.shift()).Sub(u.Started.Time))
	case ms > 0:
		return span(time.Duration(ms) * time.Millisecond)
	case u.Started.IsZero() || u.Finished.IsZero():
		return "-"
	}
	return span(u.Finished.Sub(u.Started.Time))
}
