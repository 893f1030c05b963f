package tui

import (
	"context"
	"fmt"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// pairing is two runs side by side.
type pairing struct {
	ids  [2]string // the older one first
	from level     // where it was asked for
	diff *view.Diff
	list list[view.UnitDiff]
}

// compare puts the two marked runs side by side; without marks, the one under
// the cursor and the one that it goes on from, or that goes on from it.
func (x *runsScreen) compare(s *shared) {
	ids := x.runs.list.marks()
	run := x.runs.list.at()
	if x.level == onUnits {
		ids, run = nil, x.shown()
	}
	switch {
	case len(ids) == 2:
		ids[0], ids[1] = ids[1], ids[0] // the list has the newest first
	case len(ids) > 2:
		s.say("D compares two runs: %d are marked", len(ids))
		return
	case run != nil && run.Parent != "":
		ids = []string{run.Parent, run.ID}
	case run != nil && run.Child != "":
		ids = []string{run.ID, run.Child}
	default:
		s.say("D compares two runs: space marks each; or go to one that was resumed")
		return
	}
	x.pair = pairing{ids: [2]string(ids), from: x.level, list: newList(func(u *view.UnitDiff) string { return u.Unit })}
	x.level = onPair
}

// readDiff reads two runs and compares them as they are; what is shown of them
// is cleaned after that.
func readDiff(ctx context.Context, source Source, ids [2]string) (*view.Diff, error) {
	var runs [2]*view.RunDetail
	for i, id := range ids {
		d, err := readRun(ctx, source, id)
		if err != nil {
			return nil, err
		}
		if d.Cursor != "" {
			return nil, fmt.Errorf("%s has %d units, too many to compare here: apollo11 diff %s %s", id, d.Run.Units, ids[0], ids[1])
		}
		runs[i] = d
	}
	diff := view.Compare(runs[0], runs[1])
	for _, d := range runs {
		cleanRows(d.Units) // the diff points to them
	}
	diff.A.Fields(cleaner{})
	diff.B.Fields(cleaner{})
	cleanDiffs(diff.Params)
	for i := range diff.Units {
		u := &diff.Units[i]
		u.Unit = clean(u.Unit)
		cleanDiffs(u.Inputs)
		cleanDiffs(u.Outputs)
	}
	return diff, nil
}

func cleanDiffs(values []view.ValueDiff) {
	for i := range values {
		v := &values[i]
		v.Name, v.A, v.B = clean(v.Name), clean(v.A), clean(v.B)
	}
}

func (p *pairing) take(d *view.Diff) {
	if d == nil {
		return
	}
	p.diff = d
	p.list.set(d.Units)
	if d.First >= 0 {
		p.list.cursor = d.First
		p.list.see()
	}
}

func (x *runsScreen) doPair(s *shared, in input) (tea.Cmd, bool) {
	p := &x.pair
	if p.list.move(in.act) {
		return nil, true
	}
	at := p.list.at()
	switch in.act {
	case back:
		x.level = p.from
		x.pair = pairing{}
		return nil, true
	case copyID:
		if at != nil {
			return s.copy(at.Unit), true
		}
	case open, nextPane:
		return nil, false
	default:
		s.say("not while two runs are side by side: esc goes back")
	}
	return nil, true
}

var pairColumns = []column{
	{title: "UNIT", wide: 16}, {title: "STATE", wide: 9}, {title: "STATE", wide: 9}, {title: "TOOK", wide: 7, right: true, keep: 3},
	{title: "TOOK", wide: 7, right: true, keep: 3}, {title: "TRY", wide: 5, right: true, keep: 1}, {title: "DIFFERS", wide: 24, share: true},
}

// columns have the runs' ids over what is theirs.
func (p *pairing) columns() []column {
	columns := append([]column(nil), pairColumns...)
	for i, id := range p.ids {
		columns[1+i].title = cut(id, columns[1+i].wide)
	}
	return columns
}

func (p *pairing) cells(s *shared) func(*view.UnitDiff) []cell {
	first := ""
	if p.diff.First >= 0 {
		first = p.diff.Units[p.diff.First].Unit
	}
	return func(u *view.UnitDiff) []cell {
		cells := []cell{{text: u.Unit}, {"-", dim}, {"-", dim}, {"-", dim}, {"-", dim}, {"", dim}, {}}
		tries := [2]string{"-", "-"}
		for i, side := range [2]*view.RunUnit{u.A, u.B} {
			if side != nil {
				cells[1+i] = cell{unitState(side), stateStyle(side.State)}
				if !side.Finished.IsZero() {
					cells[3+i].text = unitTook(s, side)
				}
				tries[i] = fmt.Sprint(side.Attempt)
			}
		}
		cells[5].text = strings.Join(tries[:], "/")
		switch {
		case u.Unit == first && u.Differs():
			cells[6] = cell{"! FIRST: " + u.Parts.String(), bad}
		case u.Origin:
			cells[6] = cell{"! " + u.Parts.String(), bad}
		case u.Differs():
			cells[6] = cell{"· " + u.Parts.String() + ", follows", warn}
		case u.Parts != 0:
			cells[6] = cell{u.Parts.String() + " only", dim}
		}
		return cells
	}
}

func (p *pairing) view(s *shared, w, h int) []string {
	lines := []string{" " + s.theme.paint(strong, p.ids[0]+" beside "+p.ids[1])}
	if p.diff == nil {
		return block(append(lines, " reading…"), w, h)
	}
	lines[0] += " · " + p.verdict(s)
	for _, v := range p.diff.Params {
		lines = append(lines, cut(" "+valueText(&v), w))
	}
	lines = lines[:min(len(lines), max(1, h/3))]
	lines = block(lines, w, len(lines))
	return append(lines, p.list.view(s.theme, p.columns(), w, h-len(lines), p.cells(s))...)
}

// verdict is the comparison in a sentence.
func (p *pairing) verdict(s *shared) string {
	d := p.diff
	n := 0
	for i := range d.Units {
		if d.Units[i].Differs() {
			n++
		}
	}
	text, tone := "the same, unit by unit", good
	switch {
	case n > 0:
		text, tone = fmt.Sprintf("%d of %s differ, first %s", n, plural(len(d.Units), "unit"), d.Units[d.First].Unit), bad
	case d.A.State != d.B.State:
		text, tone = fmt.Sprintf("%s and %s, with the same units", d.A.State, d.B.State), warn
	}
	text = s.theme.paint(tone, text)
	if d.Spec {
		text += " · not the same mission text"
	}
	return text
}

// valueText is a value that differs, in a line.
func valueText(v *view.ValueDiff) string {
	side := func(text string, in bool) string {
		if !in {
			return "(not there)"
		}
		return task.Shown(text)
	}
	return v.Name + ": " + side(v.A, v.InA) + " → " + side(v.B, v.InB)
}

func (p *pairing) detail(s *shared, w int) []string {
	at := p.list.at()
	if at == nil {
		return []string{"no unit here"}
	}
	f := facts{theme: s.theme, w: w}
	f.title(at.Unit)
	switch {
	case !at.Differs() && at.Parts == 0:
		f.add("differs", "no")
	case !at.Differs():
		f.add("differs", "no, though the program is another")
	case at.Origin:
		f.styled("differs", at.Parts.String()+": here it begins", bad)
	default:
		f.styled("differs", at.Parts.String()+": something before it does", warn)
	}
	f.differing("inputs that differ", at.Inputs)
	f.differing("outputs that differ", at.Outputs)
	for i, side := range [2]*view.RunUnit{at.A, at.B} {
		f.head(p.ids[i])
		if side == nil {
			f.add("unit", "it has no such unit")
			continue
		}
		f.side(s, side)
	}
	return f.lines
}

func (f *facts) differing(title string, values []view.ValueDiff) {
	if len(values) == 0 {
		return
	}
	f.head(title)
	for i := range values {
		f.bullet("·", valueText(&values[i]))
	}
}

// side is what is told of a unit in one of the runs.
func (f *facts) side(s *shared, u *view.RunUnit) {
	f.styled("state", unitState(u), stateStyle(u.State))
	f.add("reason", u.Reason)
	f.styled("error", failText(u.ErrorClass, u.Error), bad)
	f.add("try", number(u.Attempt))
	f.add("executor", u.Executor)
	f.add("took", segments(u))
	f.add("started", s.moment(u.Started))
	f.add("input hash", shortHash(u.InputHash))
	f.add("output hash", shortHash(u.OutputHash))
	f.add("unit hash", shortHash(u.UnitHash))
}
