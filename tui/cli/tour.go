package cli

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"apollo11/engine/mission"
	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

// Tour is the demo's part of the program: it gives a fresh controller the bundled
// weather work, waits for its end, and shows what happened.
type Tour struct {
	Addr string // of the controller
	Data string // the weather file, where units find it
	Pace string // seconds that a unit waits, so that a person can watch; empty: none
}

// Tour runs the demo.
func (p *Program) Tour(ctx context.Context, t Tour) error {
	a := p.app
	c, err := wire.Dial(ctx, t.Addr, wire.ClientOptions{Actor: a.Actor, Build: a.Build})
	if err != nil {
		return err
	}
	defer c.Close()
	specs, err := t.work()
	if err != nil {
		return err
	}
	if _, err := c.Submit(ctx, specs); err != nil {
		return a.failure(err)
	}
	fmt.Fprintf(a.out, "%s submitted: the weather of Seattle, month by month\n", task.Plural(len(specs), "task"))
	if err := a.settle(ctx, c, len(specs)); err != nil {
		return a.failure(err)
	}
	play := replay{app: a}
	if err := play.play(ctx, c); err != nil {
		return a.failure(err)
	}
	return a.failure(a.answer(ctx, c))
}

// Watched is the demo for the console: the same work, given out year by year.
// It returns when all is submitted.
func (p *Program) Watched(ctx context.Context, t Tour) error {
	a := p.app
	c, err := wire.Dial(ctx, t.Addr, wire.ClientOptions{Actor: a.Actor, Build: a.Build})
	if err != nil {
		return err
	}
	defer c.Close()
	specs, err := t.work()
	if err != nil {
		return err
	}
	for _, wave := range waves(specs) {
		if _, err := c.Submit(ctx, wave); err != nil {
			return err
		}
		select {
		case <-time.After(waveEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// waveEvery is about as long as two executors work on a wave.
const waveEvery = 9 * time.Second

// waves cuts the work: what goes wrong first, for a person to look at while a
// year follows the other.
func waves(specs []task.Spec) [][]task.Spec {
	var odd, months, reports []task.Spec
	for _, s := range specs {
		switch s.Type {
		case "count_month":
			months = append(months, s)
		case "report_year":
			reports = append(reports, s)
		default:
			odd = append(odd, s)
		}
	}
	var list [][]task.Spec
	for i, report := range reports {
		year := slices.Clone(months[i*len(months)/len(reports) : (i+1)*len(months)/len(reports)])
		list = append(list, append(year, report))
	}
	list[0] = append(odd, list[0]...)
	return list
}

// work is a task for every month and every year of the weather file, one call
// that fails twice before it gets through, and one report that nobody takes.
func (t Tour) work() ([]task.Spec, error) {
	months, years, err := calendar()
	if err != nil {
		return nil, err
	}
	file := task.Value{Name: "file", Value: t.Data}
	spec := func(typ string, inputs ...task.Value) task.Spec {
		if t.Pace != "" && typ != "file_report" && typ != "call_station" {
			inputs = append(inputs, task.Value{Name: "pace", Value: t.Pace})
		}
		return task.Spec{Type: typ, Inputs: inputs, Retries: task.Unset}
	}
	specs := []task.Spec{spec("call_station", task.Value{Name: "station", Value: "sea-tac"})}
	for _, month := range months {
		number := strings.TrimPrefix(month[5:], "0")
		specs = append(specs, spec("count_month", file, task.Value{Name: "month", Value: number}, task.Value{Name: "year", Value: month[:4]}))
	}
	for _, year := range years {
		specs = append(specs, spec("report_year", file, task.Value{Name: "year", Value: year}))
	}
	return append(specs, spec("file_report", task.Value{Name: "year", Value: years[len(years)-1]})), nil
}

// calendar is the months (2012-01) and years of the bundled weather file.
func calendar() (months, years []string, err error) {
	file, err := mission.Examples().Open("data/seattle-weather.csv")
	if err != nil {
		return nil, nil, err
	}
	defer func(f fs.File) { f.Close() }(file)
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		day, _, _ := strings.Cut(lines.Text(), ",")
		if _, err := time.Parse(time.DateOnly, day); err != nil {
			continue // the heading
		}
		months, years = append(months, day[:7]), append(years, day[:4])
	}
	return slices.Compact(months), slices.Compact(years), lines.Err()
}

// settle waits until nothing is under way any more.
func (a *app) settle(ctx context.Context, c *wire.Client, total int) error {
	bar := a.progress("done", total)
	defer bar.Clear()
	for {
		status, err := c.Status(ctx)
		if err != nil {
			return err
		}
		ended := int64(0)
		for _, s := range task.States() {
			if s.Terminal() {
				ended += status.Tasks[s.String()]
			}
		}
		if bar.Show(int(ended)); ended == int64(total) {
			return nil
		}
		if err := a.pause(ctx, pollEvery); err != nil {
			return err
		}
	}
}

// answer prints what the work found, and what waits for a person.
func (a *app) answer(ctx context.Context, c *wire.Client) error {
	page, err := c.Keys(ctx, view.KeyQuery{})
	if err != nil {
		return err
	}
	value := map[string]string{}
	for _, k := range page.Keys {
		value[k.Key] = k.Value
		if strings.HasPrefix(k.Key, "report.") {
			fmt.Fprintf(a.out, "%s\n", clean(k.Value))
		}
	}
	fmt.Fprintf(a.out, "answer: days_total=%s rain_total=%s (tenths of a millimetre) warmest=%s next_batch=%s\n",
		value["days_total"], value["rain_total"], value["warmest"], value["next_batch"])
	dead, err := c.Tasks(ctx, view.Query{States: []task.State{task.Dead}})
	if err != nil {
		return err
	}
	for _, t := range dead.Tasks {
		fmt.Fprintf(a.out, "dead letter: %s %s: %s\n", clean(t.ID), clean(t.Type), clean(t.ErrorClass+": "+t.Error))
	}
	return nil
}
