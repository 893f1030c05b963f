package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

func (a *app) diffCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "diff RUN [RUN]", Short: "two runs side by side, and where they begin to differ", Args: words(1, 2),
		Long: "Two runs side by side, unit by unit: state, attempts, duration, what went in and what came out. One\n" +
			"run alone is compared with its parent: what it resumed, repeated or was forked from. Where they begin\n" +
			"to differ is marked. The exit code is 0 if both came to the same, else 1.\n" +
			"FOLDER:RUN reads a data folder, a backup or a journal file instead of asking the controller.",
		Example: "  apollo11 diff r-0001 r-0002\n  apollo11 diff r-0002\n  apollo11 diff backups/monday:r-0001 backups/sunday:r-0001",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.diff(cmd.Context(), args)
		},
	}
	a.completeRuns(cmd)
	return cmd
}

// side is one of the two runs of a diff.
type side struct {
	given  string // as it was typed
	folder string // empty: where runs are looked up otherwise
	id     string
}

// parseSide reads RUN or FOLDER:RUN.
func parseSide(given string) side {
	if at := strings.LastIndexByte(given, ':'); at > 0 {
		return side{given, given[:at], given[at+1:]}
	}
	return side{given: given, id: given}
}

func (a *app) diff(ctx context.Context, args []string) error {
	first, err := a.lookUp(ctx, parseSide(args[0]))
	if err != nil {
		return err
	}
	other := parseSide(args[0])
	if len(args) == 2 {
		other = parseSide(args[1])
	} else if other.id, other.given = first.Parent, first.Parent; first.Parent == "" {
		return usage("apollo11 diff "+args[0]+" RUN", "diff: %s: has no parent to compare with", args[0])
	}
	second, err := a.lookUp(ctx, other)
	if err != nil {
		return err
	}
	names := [2]string{first.ID, second.ID}
	if len(args) == 2 && first.ID == second.ID {
		names = [2]string{args[0], args[1]} // the same run of two folders
	}
	if len(args) == 1 { // the parent comes first
		first, second, names = second, first, [2]string{names[1], names[0]}
	}
	d := view.Compare(first, second)
	if err := a.printDiff(d, names); err != nil {
		return err
	}
	if !d.Same() {
		return &ExitError{Code: Failed}
	}
	return nil
}

// lookUp reads one of the two runs.
func (a *app) lookUp(ctx context.Context, s side) (d *view.RunDetail, err error) {
	read := func(ctx context.Context, past Past) error {
		d, err = wholeRun(ctx, past, s.id)
		if err != nil {
			return hinted(fmt.Errorf("diff: %s: %w", s.given, err), wire.CodeNotFound, "apollo11 runs")
		}
		return nil
	}
	if s.folder != "" {
		return d, a.readFiles(ctx, s.folder, "diff", read)
	}
	return d, a.reading(ctx, "diff", read)
}

// printDiff prints what two runs have in common and what not.
func (a *app) printDiff(d *view.Diff, names [2]string) error {
	if a.json {
		return a.diffObjects(d)
	}
	a.diffHead(d, names)
	differ := 0
	for i := range d.Units {
		if d.Units[i].Differs() {
			differ++
		}
	}
	rows := a.diffRows(d)
	if len(rows) > 0 {
		fmt.Fprintln(a.out)
		t := a.table(
			column{title: ""}, column{title: "UNIT", least: 10}, column{title: "STATE"}, column{title: "TRY", drop: 3},
			column{title: "TOOK", drop: 2}, column{title: "INPUT", drop: 4}, column{title: "OUTPUT", drop: 5}, column{title: "DIFFERS", least: 8, drop: 1},
		)
		if err := t.print(rows); err != nil {
			return err
		}
	}
	for i := range d.Units {
		a.printContrasts(&d.Units[i])
	}
	_, err := fmt.Fprintf(a.out, "\n%s\n", a.paint().paint(dim, clean("# "+diffSum(d, differ, len(d.Units)-len(rows)))))
	return err
}

// diffSum is the last line.
func diffSum(d *view.Diff, differ, hidden int) string {
	text := task.Plural(len(d.Units), "unit")
	if hidden > 0 {
		text += fmt.Sprintf(" (those that are the same, %d, are left out)", hidden)
	}
	switch {
	case d.First >= 0 && differ == 1:
		return text + ", 1 differs: " + d.Units[d.First].Unit
	case d.First >= 0:
		return fmt.Sprintf("%s, %d differ, from %s on", text, differ, d.Units[d.First].Unit)
	case d.Same():
		return text + ", no difference"
	}
	return text + ", none differs, but the runs ended in different states"
}

// diffObjects prints what is known of both runs, then unit by unit.
func (a *app) diffObjects(d *view.Diff) error {
	first := ""
	if d.First >= 0 {
		first = d.Units[d.First].Unit
	}
	if err := a.object(struct {
		Same   bool             `json:"same"`
		First  string           `json:"first"`
		Spec   bool             `json:"spec_differs"`
		Params []view.ValueDiff `json:"params"`
		A      view.Run         `json:"a"`
		B      view.Run         `json:"b"`
	}{d.Same(), first, d.Spec, append([]view.ValueDiff{}, d.Params...), d.A, d.B}); err != nil {
		return err
	}
	return list(a, nil, d.Units, nil)
}

// diffHead is the runs as such, in two columns.
func (a *app) diffHead(d *view.Diff, names [2]string) {
	rows := [][]cell{
		{{text: "mission"}, {text: d.A.Mission}, {text: d.B.Mission}},
		{{text: "state"}, {d.A.State, stateStyle(d.A.State)}, {d.B.State, stateStyle(d.B.State)}},
		{{text: "mode"}, {text: modeText(&d.A)}, {text: modeText(&d.B)}},
		{{text: "took"}, {text: a.runTook(&d.A)}, {text: a.runTook(&d.B)}},
		{{text: "ended"}, {text: unitsText(&d.A)}, {text: unitsText(&d.B)}},
	}
	if d.Spec {
		rows = append(rows, []cell{{text: "spec"}, {shortHash(d.A.Spec), yellow}, {shortHash(d.B.Spec), yellow}})
	}
	for _, p := range d.Params {
		rows = append(rows, []cell{{text: "param " + p.Name}, {given(p.A, p.InA), yellow}, {given(p.B, p.InB), yellow}})
	}
	rows = slices.DeleteFunc(rows, func(row []cell) bool { return row[1].text == "" && row[2].text == "" })
	t := a.table(column{title: "RUN", least: 8}, column{title: names[0], least: 10}, column{title: names[1], least: 10})
	t.print(rows)
}

func given(value string, there bool) string {
	if !there {
		return "(not given)"
	}
	return task.Shown(value)
}

// diffRows has a line for every unit; of many units only for those that differ.
func (a *app) diffRows(d *view.Diff) (rows [][]cell) {
	for i := range d.Units {
		u := &d.Units[i]
		if len(d.Units) > drawnUnits && !u.Differs() {
			continue
		}
		rows = append(rows, a.diffCells(u, i == d.First))
	}
	return rows
}

func (a *app) diffCells(u *view.UnitDiff, first bool) []cell {
	mark := cell{}
	switch {
	case first:
		mark = cell{">", red}
	case u.Origin:
		mark = cell{"!", red} // another place where it begins
	case u.Differs():
		mark = cell{"|", yellow} // follows from what is above
	}
	x, y := u.A, u.B
	if x == nil || y == nil {
		only := "only in the second"
		if y == nil {
			only = "only in the first"
		}
		return []cell{mark, {text: u.Unit}, {only, yellow}, {}, {}, {}, {}, {u.Parts.String(), yellow}}
	}
	state := cell{text: a.both(unitState(x), unitState(y))}
	if u.Parts&(view.PartState|view.PartError) != 0 {
		state.style = yellow
	}
	try := ""
	if x.Attempt != 0 || y.Attempt != 0 {
		try = a.both(fmt.Sprint(x.Attempt), fmt.Sprint(y.Attempt))
	}
	return []cell{
		mark, {text: u.Unit}, state, {text: try}, {text: a.both(a.unitTook(x), a.unitTook(y))},
		{a.both(fewDigits(x.InputHash), fewDigits(y.InputHash)), differing(u, view.PartInputs)},
		{a.both(fewDigits(x.OutputHash), fewDigits(y.OutputHash)), differing(u, view.PartOutputs)},
		{u.Parts.String(), yellow},
	}
}

func differing(u *view.UnitDiff, part view.Part) style {
	if u.Parts&part != 0 {
		return yellow
	}
	return dim
}

// reused is what a unit is called whose result was taken over; as a task it is
// skipped.
const reused = "reused"

// unitState is a unit's state; of a reused result that is said.
func unitState(u *view.RunUnit) string {
	if u.ReusedFrom() != "" {
		return reused
	}
	return u.State
}

// both is one text if they are the same, else both with an arrow.
func (a *app) both(x, y string) string {
	if x == y {
		return x
	}
	if x == "" {
		x = "-"
	}
	if y == "" {
		y = "-"
	}
	return x + a.arrow() + y
}

func (a *app) arrow() string {
	if a.ASCII {
		return " -> "
	}
	return " → "
}

// fewDigits is enough of a hash to see that two differ.
func fewDigits(hash string) string {
	_, digits, _ := strings.Cut(hash, ":")
	return digits[:min(len(digits), 6)]
}

// contrast is a thing that is not the same in both runs.
type contrast struct{ what, a, b string }

// contrasts are those of a unit that differs.
func contrasts(u *view.UnitDiff) (list []contrast) {
	if !u.Differs() || u.A == nil || u.B == nil {
		return nil
	}
	for _, v := range u.Inputs {
		list = append(list, valueContrast("input "+v.Name, &v))
	}
	for _, v := range u.Outputs {
		list = append(list, valueContrast("output "+v.Name, &v))
	}
	if u.Parts&(view.PartState|view.PartError) != 0 {
		list = append(list, contrast{"outcome", unitOutcome(u.A), unitOutcome(u.B)})
	}
	return list
}

// valueContrast shows two values; long ones from a little before the place where
// they begin to differ.
func valueContrast(what string, v *view.ValueDiff) contrast {
	a, b := given(v.A, v.InA), given(v.B, v.InB)
	const before = 40
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	from := max(0, same-before)
	for from > 0 && !utf8.RuneStart(a[from]) {
		from--
	}
	if from == 0 || max(len(a), len(b)) <= widestValue {
		return contrast{what, cutRunes(a, widestValue), cutRunes(b, widestValue)}
	}
	what = fmt.Sprintf("%s, from byte %d on", what, from)
	return contrast{what, "…" + cutRunes(a[from:], widestValue), "…" + cutRunes(b[from:], widestValue)}
}

// printContrasts prints what of a unit is not the same.
func (a *app) printContrasts(u *view.UnitDiff) {
	list, p := contrasts(u), a.paint()
	if len(list) > 0 {
		fmt.Fprintf(a.out, "\n%s\n", clean(u.Unit))
	}
	for _, c := range list {
		fmt.Fprintf(a.out, "  %s\n", clean(c.what))
		fmt.Fprintf(a.out, "  %s\n", p.paint(red, a.fit("- "+c.a, 2)))
		fmt.Fprintf(a.out, "  %s\n", p.paint(green, a.fit("+ "+c.b, 2)))
	}
}

// fit makes a text clean and, on a terminal, no longer than a line that begins
// with so many spaces.
func (a *app) fit(text string, indent int) string {
	text = clean(text)
	if a.Terminal && a.Width > indent {
		return cutWidth(text, a.Width-indent)
	}
	return text
}

// unitOutcome is how a unit ended, in a line.
func unitOutcome(u *view.RunUnit) string {
	text := unitState(u)
	if why := failText(u.ErrorClass, u.Error); why != "" && u.State != task.Succeeded.String() {
		return once(text + ": " + why)
	}
	if u.Reason != "" && u.ReusedFrom() == "" {
		return text + ": " + u.Reason
	}
	return text
}
