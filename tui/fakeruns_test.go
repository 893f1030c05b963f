package tui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// fakeRuns is the part of a fake that is about missions.
type fakeRuns struct {
	runs     []view.RunDetail // newest first
	missions []view.Mission
	unitPage int    // 0: all units in one page
	noRuns   error  // of Runs
	skip     string // why no task of a run is requeued; empty: it is
}

// Runs pages with the number of rows before as the cursor.
func (f *fake) Runs(_ context.Context, q view.RunQuery) (*view.RunPage, error) {
	err := f.ask("runs %q after %q", q.State, q.Cursor)
	if f.noRuns != nil {
		return nil, f.noRuns
	}
	p := &view.RunPage{}
	from, _ := strconv.Atoi(q.Cursor)
	for i := range f.runs {
		switch r := &f.runs[i].Run; {
		case q.State != "" && q.State != r.State || q.Mission != "" && q.Mission != r.Mission:
		case from > 0:
			from--
		case len(p.Runs) == q.Limit:
			n, _ := strconv.Atoi(q.Cursor)
			p.Cursor = strconv.Itoa(n + q.Limit)
			return p, err
		default:
			p.Runs = append(p.Runs, *r)
		}
	}
	return p, err
}

func (f *fake) find(id string) *view.RunDetail {
	if i := slices.IndexFunc(f.runs, func(r view.RunDetail) bool { return r.ID == id }); i >= 0 {
		return &f.runs[i]
	}
	return nil
}

func (f *fake) Run(_ context.Context, id, cursor string) (*view.RunDetail, error) {
	err := f.ask("run %s after %q", id, cursor)
	r := f.find(id)
	if r == nil {
		return nil, errors.New("not found: run " + id)
	}
	d := *r
	d.Units, d.Notes, d.Params = slices.Clone(r.Units), slices.Clone(r.Notes), slices.Clone(r.Params)
	for i := range d.Units {
		d.Units[i].Inputs, d.Units[i].Outputs = slices.Clone(d.Units[i].Inputs), slices.Clone(d.Units[i].Outputs)
	}
	if f.unitPage > 0 {
		from, _ := strconv.Atoi(cursor)
		to := min(len(d.Units), from+f.unitPage)
		if d.Units = d.Units[from:to]; to < len(r.Units) {
			d.Cursor = strconv.Itoa(to)
		}
	}
	return &d, err
}

func (f *fake) Missions(context.Context) ([]view.Mission, error) {
	return slices.Clone(f.missions), f.ask("missions")
}

// DoRun starts runs without units.
func (f *fake) DoRun(_ context.Context, a Action) (*view.Run, error) {
	f.did = append(f.did, a)
	if f.refuse != nil {
		return nil, f.refuse
	}
	f.over.Status.Seq++
	if a.Verb == CancelRun {
		r := f.find(a.Name)
		r.State, r.Finished = "cancelled", view.Time{Time: noon}
		run := r.Run
		return &run, nil
	}
	run := view.Run{
		ID: fmt.Sprintf("r-%04d", len(f.runs)+1), Mission: a.Name, State: "running", Mode: "start", Created: view.Time{Time: noon},
		Started: view.Time{Time: noon}, By: "me", Units: 2, Params: view.Object(a.Set),
	}
	if a.Verb == ResumeRun {
		old := f.find(a.Name)
		old.Child = run.ID
		run.Mission, run.Mode, run.Parent = old.Mission, "resume", old.ID
	}
	f.runs = append([]view.RunDetail{{Run: run}}, f.runs...)
	return &run, nil
}

// runWorld is what the world knows of missions: one run that failed and one that
// goes on, and what can be started.
func runWorld() fakeRuns {
	unit := func(run, name, deps, state string) view.RunUnit {
		u := view.RunUnit{Unit: name, Task: run + ":" + name, Type: name, State: state, Deps: deps}
		if state == "succeeded" || state == "dead" || state == "running" {
			u.Attempt, u.Version, u.Executor, u.InputHash, u.UnitHash = 1, 1_000_001, "ares-1", "1f2e3d4c5b6a79880011", "aa11"
			u.Ready, u.Started = ago(8*time.Minute), ago(7*time.Minute)
			u.QueueMS = 240
		}
		if state == "succeeded" || state == "dead" {
			u.Finished, u.ExecuteMS, u.PrepareMS, u.OutputHash = ago(6*time.Minute), 1834, 12, "99aabbccddeeff001122"
		}
		return u
	}
	failed := view.RunDetail{
		Run: view.Run{
			ID: "r-0001", Mission: "weather", State: "failed", Mode: "start", By: "ada", Why: "clean-2013 is dead: execute_failed", Spec: "5f3c",
			Units: 5, Done: 5, Failed: 1, Created: ago(9 * time.Minute), Started: ago(8 * time.Minute), Finished: ago(6 * time.Minute), MS: 120_000,
			Params: view.Object{{Name: "year", Value: "2013"}},
		},
		Units: []view.RunUnit{
			unit("r-0001", "fetch-2012", "", "succeeded"), unit("r-0001", "fetch-2013", "", "succeeded"), unit("r-0001", "clean-2012", "fetch-2012", "succeeded"),
			unit("r-0001", "clean-2013", "fetch-2013", "dead"), unit("r-0001", "merge", "clean-2012,clean-2013", "aborted"),
		},
		Notes: []string{"fetch-2013 took three times as long as usual"},
	}
	failed.Units[3].ErrorClass, failed.Units[3].Error, failed.Units[3].Attempt, failed.Units[3].OutputHash = "execute_failed", "line 12 has 4 fields, want 5", 3, ""
	failed.Units[3].Outputs, failed.Units[1].Outputs = nil, view.Object{{Name: "rows", Value: "365"}}
	failed.Units[4].Reason, failed.Units[4].Weak = "upstream clean-2013", "fetch-2012"
	going := view.RunDetail{
		Run: view.Run{
			ID: "r-0002", Mission: "weather", State: "running", Mode: "resume", Parent: "r-0001", By: "ada", Spec: "5f3c", Units: 5, Done: 3, Running: 1, Reused: 2,
			Created: ago(time.Minute), Started: ago(time.Minute), MS: 60_000, Params: view.Object{{Name: "year", Value: "2013"}},
		},
		Units: slices.Clone(failed.Units),
	}
	failed.Child = going.ID
	for i := range going.Units {
		u := &going.Units[i]
		u.Task = going.ID + ":" + u.Unit
		if u.State == "succeeded" && i != 1 {
			u.State, u.Reason = "skipped", "reused from r-0001:"+u.Unit
		}
	}
	again := &going.Units[1]
	again.Outputs, again.OutputHash, again.UnitHash = view.Object{{Name: "rows", Value: "366"}}, "77aabbccddeeff001122", "bb22"
	going.Units[3] = unit(going.ID, "clean-2013", "fetch-2013", "running")
	going.Units[4] = unit(going.ID, "merge", "clean-2012,clean-2013", "blocked")
	return fakeRuns{
		runs: []view.RunDetail{going, failed},
		missions: []view.Mission{
			{Name: "nightly", Units: 3, Triggers: "at 0 2 * * *", LastRun: "r-0000", State: "succeeded"},
			{Name: "weather", Units: 5, Template: true, LastRun: "r-0002", State: "running", Params: view.Object{
				{Name: "year", Value: "int"}, {Name: "region", Value: "string=north"}, {Name: "dry", Value: "bool=false"},
			}},
			{Name: "wrong", Units: 2, Fault: "missions/wrong.toml:7: unit a waits for b, which is not there"},
		},
	}
}

// runTask is a task of a run that waits for a person.
func runTask() view.Task {
	return view.Task{
		ID: "r-0001:clean-2013", Type: "clean", State: task.Dead.String(), Attempt: 3, Executor: "ares-1", ErrorClass: "execute_failed",
		Error: "line 12 has 4 fields, want 5", Submitted: ago(9 * time.Minute), Started: ago(7 * time.Minute), Finished: ago(6 * time.Minute),
	}
}
