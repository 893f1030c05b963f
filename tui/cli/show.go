package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"apollo11/engine/mission"
	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

// drawnUnits is how many units are drawn without being asked to: more of them
// fill screens that nobody reads.
const drawnUnits = 100

// showing is the flags of show.
type showing struct {
	graph bool
	asked bool // --graph was given
	state string
}

func (a *app) showCommand() *cobra.Command {
	s := &showing{}
	cmd := &cobra.Command{
		Use: "show RUN", Short: "a run: what became of each of its units", Args: words(1, 1),
		Long: "A run of a mission: how it stands, what waits for what, and what became of each of its units.\n" +
			"With --data DIR it reads a data folder or a backup; no controller is needed.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := wholeOnly("show", args[0], "task RUN:UNIT"); err != nil {
				return err
			}
			s.asked = cmd.Flags().Changed("graph")
			if err := s.check(); err != nil {
				return err
			}
			return a.reading(cmd.Context(), "show", func(ctx context.Context, past Past) error {
				d, err := wholeRun(ctx, past, args[0])
				if err != nil {
					return hinted(fmt.Errorf("show: %s: %w", args[0], err), wire.CodeNotFound, "apollo11 runs")
				}
				return a.show(d, s)
			})
		},
	}
	cmd.Flags().BoolVar(&s.graph, "graph", false, fmt.Sprintf("draw the graph, of however many units (default up to %d)", drawnUnits))
	cmd.Flags().StringVar(&s.state, "state", "", "only units in these `STATES`, with commas; no graph")
	completed(cmd, "state", unitStates())
	a.completeRuns(cmd)
	return cmd
}

func (s *showing) check() error {
	for name := range strings.SplitSeq(s.state, ",") {
		if name == "" {
			continue
		}
		if _, err := task.ParseState(name); err != nil && name != reused {
			return usage("apollo11 show RUN --state "+nearestOr(name, unitStates()), "show: --state: %w", err)
		}
	}
	return nil
}

// unitStates are those of a unit of a run.
func unitStates() []string { return append(taskStates(), reused) }

// show prints a run for a program, line by line: the run, then its units; or for
// a person.
func (a *app) show(d *view.RunDetail, s *showing) error {
	units := s.chosen(d.Units)
	if a.json {
		if err := a.object(struct {
			view.Run
			Notes []string `json:"notes"`
		}{d.Run, append([]string{}, d.Notes...)}); err != nil {
			return err
		}
		return list(a, nil, units, nil)
	}
	if err := a.page(a.out, a.runFields(d)); err != nil {
		return err
	}
	switch {
	case s.state != "":
	case s.graph || !s.asked && len(d.Units) <= drawnUnits:
		if err := a.draw(d.Units); err != nil {
			return err
		}
	case !s.asked:
		typed := "apollo11 show " + d.ID + " --graph"
		if a.dataSet {
			typed += " --data " + Quoted(a.data)
		}
		a.say("the graph of %s is drawn by: %s", task.Plural(len(d.Units), "unit"), typed)
	}
	if len(units) == 0 {
		return nil
	}
	fmt.Fprintln(a.out)
	return list(a, a.unitTable(), units, a.unitCells)
}

// chosen are the units that --state asks for.
func (s *showing) chosen(units []view.RunUnit) []view.RunUnit {
	if s.state == "" {
		return units
	}
	states := strings.Split(s.state, ",")
	return slices.DeleteFunc(slices.Clone(units), func(u view.RunUnit) bool { return !slices.Contains(states, unitState(&u)) })
}

// runFields is a run on a page.
func (a *app) runFields(d *view.RunDetail) []field {
	r := &d.Run
	fields := []field{
		{name: "run", text: r.ID},
		{name: "mission", text: strings.TrimSpace(r.Mission + "  " + shortHash(r.Spec))},
		{name: "state", text: r.State, style: stateStyle(r.State)},
		{name: "why", text: once(r.Why), style: stateStyle(r.State)},
		{name: "mode", text: modeText(r)},
		{name: "resumed by", text: r.Child},
		{name: "started by", text: causeText(r)},
		{name: "units", text: unitsText(r)},
		{name: "created", text: a.when(r.Created)},
		{name: "started", text: a.when(r.Started)},
		{name: "finished", text: a.when(r.Finished)},
		{name: "took", text: a.runTook(r)},
	}
	fields = append(fields, valueFields("param", r.Params)...)
	for _, note := range d.Notes {
		fields = append(fields, field{"note", note, yellow})
	}
	return fields
}

// modeText says what kind of run it is, where it is no plain start.
func modeText(r *view.Run) string {
	switch {
	case r.Mode == "start" || r.Mode == "":
		return ""
	case r.Parent == "":
		return r.Mode
	}
	return r.Mode + " of " + r.Parent
}

// byPerson is the cause of what a person asked for.
const byPerson = "a person"

func causeText(r *view.Run) string {
	switch {
	case r.By == "":
		return r.Cause
	case r.Cause == "" || r.Cause == byPerson:
		return r.By
	}
	return r.By + ": " + r.Cause
}

// unitsText counts a run's units.
func unitsText(r *view.Run) string {
	parts := []string{fmt.Sprintf("%d of %d ended", r.Done, r.Units)}
	for _, c := range []struct {
		n    int64
		what string
	}{{r.Running, "running"}, {r.Failed, "dead"}, {r.Skipped, "skipped"}, {r.Reused, "reused"}} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	return strings.Join(parts, ", ")
}

// runTook is how long a run took, or has taken until now.
func (a *app) runTook(r *view.Run) string {
	switch {
	case r.Started.IsZero():
		return ""
	case !r.Finished.IsZero():
		return span(r.Finished.Sub(r.Started.Time))
	}
	return span(max(0, a.Now().Sub(r.Started.Time)))
}

// draw prints a run's graph, each unit with its state and duration.
func (a *app) draw(units []view.RunUnit) error {
	places := make([]mission.Place, len(units))
	for i := range units {
		u := &units[i]
		places[i] = mission.Place{Unit: u.Unit, Deps: view.Names(u.Deps), Weak: view.Names(u.Weak)}
	}
	graph, err := mission.Outline(places)
	if err != nil {
		return fmt.Errorf("graph: %w", err)
	}
	width := 120
	if a.Terminal && a.Width > 0 {
		width = a.Width
	}
	p := a.paint()
	_, err = fmt.Fprintf(a.out, "\n%s", graph.Draw(mission.Drawing{
		Width: width, ASCII: a.ASCII,
		Note:  func(i int) string { return clean(a.unitNote(&units[i])) },
		Paint: func(i int, line string) string { return p.paint(stateStyle(units[i].State), line) },
	}))
	return err
}

// unitNote is what the drawing says of a unit.
func (a *app) unitNote(u *view.RunUnit) string {
	note := u.State
	if took := a.unitTook(u); took != "" {
		note += " " + took
	}
	switch from := u.ReusedFrom(); {
	case from != "":
		note = "reused from " + from
	case u.ErrorClass != "" && u.ErrorClass != u.State && u.State != task.Succeeded.String():
		note += ": " + u.ErrorClass
	}
	return note
}

// unitTook is how long a unit's last attempt took, or takes until now; empty: it
// had none.
func (a *app) unitTook(u *view.RunUnit) string {
	if ms := u.PrepareMS + u.ExecuteMS + u.CleanupMS; ms > 0 {
		return span(time.Duration(ms) * time.Millisecond)
	}
	switch {
	case u.Started.IsZero():
		return ""
	case u.Finished.After(u.Started.Time):
		return span(u.Finished.Sub(u.Started.Time))
	case u.State == task.Running.String() || u.State == task.Assigned.String():
		return span(max(0, a.Now().Sub(u.Started.Time)))
	}
	return ""
}

func (a *app) unitTable() *table {
	return a.table(
		column{title: "UNIT", least: 12}, column{title: "TYPE", least: 8, drop: 1}, column{title: "STATE"},
		column{title: "TRY", right: true, drop: 5}, column{title: "EXECUTOR", least: 8, drop: 2},
		column{title: "QUEUED", right: true, drop: 3}, column{title: "TOOK", right: true, drop: 6},
		column{title: "RESULT", least: 12},
	)
}

func (a *app) unitCells(u *view.RunUnit) []cell {
	queued, attempt := "", ""
	if u.Attempt > 0 {
		queued, attempt = span(time.Duration(u.QueueMS)*time.Millisecond), strconv.FormatInt(u.Attempt, 10)
	}
	return []cell{
		{text: u.Unit}, {text: u.Type}, {unitState(u), stateStyle(u.State)}, {text: attempt}, {text: u.Executor},
		{text: queued}, {text: a.unitTook(u)}, unitResult(u),
	}
}

// unitResult is what came of a unit: why it did not do its work, else what it
// gave.
func unitResult(u *view.RunUnit) cell {
	switch {
	case u.State == task.Succeeded.String():
		return cell{text: pairs(u.Outputs)}
	case u.ErrorClass != "" || u.Error != "":
		return cell{failText(u.ErrorClass, u.Error), red}
	}
	return cell{u.Reason, dim}
}
