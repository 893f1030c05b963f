package server

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"apollo11/engine"
	"apollo11/engine/mission"
	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

// fakePast knows the state as record 7 left it.
type fakePast struct{ asked []string }

func (p *fakePast) State(_ context.Context, seq int64, q view.KeyQuery) (*view.KeyPage, error) {
	p.asked = append(p.asked, fmt.Sprintf("state %d %s", seq, q.Prefix))
	if seq != 7 {
		return nil, fmt.Errorf("%w: records are kept from 7 on", engine.ErrNotFound)
	}
	return &view.KeyPage{Version: 3, Keys: []view.Key{{Key: "a", Value: "="}}, Cursor: "a"}, nil
}

func (p *fakePast) Keys(_ context.Context, seq int64) (task.Values, error) {
	if seq != 7 {
		return nil, fmt.Errorf("%w: records are kept from 7 on", engine.ErrNotFound)
	}
	return task.Values{{Name: "a", Value: "="}}, nil
}

func (p *fakePast) At(_ context.Context, when time.Time) (int64, error) { return when.Unix(), nil }

const weather = "name = \"weather\"\n[[units]]\nname = \"fetch\"\n"

// missionAnswers is what an engine with one run says.
func missionAnswers(run *view.Run, detail *view.RunDetail) func(engine.Ask) (engine.Answer, error) {
	return func(a engine.Ask) (engine.Answer, error) {
		switch c := a.Command.(type) {
		case engine.StartRun, engine.Resume, engine.Fork, engine.CancelRun:
			return run, nil
		case engine.Rerun:
			if strings.HasPrefix(c.ID, "t") {
				return []view.Submitted{{ID: "t2", State: task.Queued, Warning: "="}}, nil
			}
			return run, nil
		case engine.Rollback:
			return &view.Undone{Run: *run, Units: []string{"b", "a"}, Without: []string{"c"}}, nil
		case engine.Restore:
			return &view.Restored{Seq: c.Seq, Changed: []view.KeyChange{{Key: "a", Before: "1", Gone: true}}}, nil
		case engine.Happening:
			return []view.Run{*run, *run}, nil
		case engine.GetRuns:
			return &view.RunPage{Runs: []view.Run{*run}, Cursor: "c"}, nil
		case engine.GetRun:
			return detail, nil
		case engine.GetMissions:
			return []view.Mission{{Name: "weather", Params: view.Object{{Name: "year", Value: "int=2012"}}}}, nil
		case engine.GetStats:
			return []view.TypeStats{{Type: "fetch", P99US: 5}}, nil
		}
		return nil, nil
	}
}

// Every call of the client about missions against the server.
func TestMissionClient(t *testing.T) {
	run := &view.Run{ID: "r-0001", Mission: "weather", State: "running", Params: view.Object{{Name: "year", Value: "=\n"}}}
	detail := &view.RunDetail{Run: *run, Notes: []string{"x=\n"}, Units: []view.RunUnit{{Unit: "a", Type: "fetch"}, {Unit: "b"}}, Cursor: "b"}
	params := task.Values{{Name: "year", Value: "=\n"}}
	query := view.RunQuery{Mission: "weather", State: "failed", Limit: 3, Cursor: "x"}
	synctest.Test(t, func(t *testing.T) {
		past := &fakePast{}
		r := newRig(t, false, Options{Past: past, Timeline: func(_ context.Context, q view.EventQuery) (view.EventPage, error) {
			return view.EventPage{Events: []view.Event{{Seq: 7, Run: q.Run}}}, nil
		}})
		r.engine.script = missionAnswers(run, detail)
		c, err := r.client(wire.ClientOptions{Actor: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		submitted := []view.Submitted{{ID: "t2", State: task.Queued, Warning: "="}}
		start := wire.Start{Mission: "weather", Params: params, Key: "k", Sample: 5, Check: true}
		for _, step := range []struct {
			call func() (any, error)
			want any
			ask  engine.Command
		}{
			{func() (any, error) { return c.Start(ctx, start) }, run,
				engine.StartRun{Name: "weather", Params: params, Key: "k", Sample: 5, Check: true, Actor: "ann"}},
			{func() (any, error) { return c.Resume(ctx, "r-1") }, run, engine.Resume{Run: "r-1", Actor: "ann"}},
			{func() (any, error) { run, _, err := c.Rerun(ctx, "r-1", true); return run, err }, run, engine.Rerun{ID: "r-1", AtContext: true, Actor: "ann"}},
			{func() (any, error) { _, tasks, err := c.Rerun(ctx, "t1", false); return tasks, err }, submitted, engine.Rerun{ID: "t1", Actor: "ann"}},
			{func() (any, error) { return c.Fork(ctx, wire.Fork{Run: "r-1", From: "a", With: params}) }, run,
				engine.Fork{Run: "r-1", From: "a", With: params, Actor: "ann"}},
			{func() (any, error) { return c.CancelRun(ctx, "r-1", "why=") }, run, engine.CancelRun{Run: "r-1", Reason: "why=", Actor: "ann"}},
			{func() (any, error) { return c.Rollback(ctx, wire.Rollback{Run: "r-1", To: "a", Check: true}) },
				&view.Undone{Run: *run, Units: []string{"b", "a"}, Without: []string{"c"}}, engine.Rollback{Run: "r-1", To: "a", Check: true, Actor: "ann"}},
			{func() (any, error) { return c.Restore(ctx, wire.Restore{Seq: 7, Check: true, Reason: "r"}) },
				&view.Restored{Seq: 7, Total: 1, Changed: []view.KeyChange{{Key: "a", Before: "1", Gone: true}}},
				engine.Restore{Seq: 7, Keys: task.Values{{Name: "a", Value: "="}}, Check: true, Reason: "r", Actor: "ann"}},
			{func() (any, error) { return c.Event(ctx, wire.Happening{Name: "landed", Params: params}) }, []view.Run{*run, *run},
				engine.Happening{Name: "landed", Values: params, Actor: "ann"}},
			{func() (any, error) { return c.Runs(ctx, query) }, &view.RunPage{Runs: []view.Run{*run}, Cursor: "c"}, engine.GetRuns{Query: query}},
			{func() (any, error) { return c.Run(ctx, "r-1", "a") }, detail, engine.GetRun{ID: "r-1", Cursor: "a"}},
			{func() (any, error) { return c.Missions(ctx) },
				[]view.Mission{{Name: "weather", Params: view.Object{{Name: "year", Value: "int=2012"}}}}, engine.GetMissions{}},
			{func() (any, error) { return c.Stats(ctx) }, []view.TypeStats{{Type: "fetch", P99US: 5}}, engine.GetStats{}},
			{func() (any, error) { return c.KeysAt(ctx, 7, view.KeyQuery{Prefix: "a"}) },
				&view.KeyPage{Version: 3, Keys: []view.Key{{Key: "a", Value: "="}}, Cursor: "a"}, nil},
			{func() (any, error) { return c.Moment(ctx, time.Unix(99, 0)) }, int64(99), nil},
			{func() (any, error) { p, err := c.Timeline(ctx, view.EventQuery{Run: "r-1"}); return p.Events, err }, []view.Event{{Seq: 7, Run: "r-1"}}, nil},
		} {
			before := len(r.engine.commands())
			got, err := step.call()
			if err != nil || !reflect.DeepEqual(got, step.want) {
				t.Errorf("%T: got %+v, %v", step.ask, got, err)
			}
			asked := r.engine.commands()[before:]
			if step.ask == nil && len(asked) == 0 {
				continue
			}
			if len(asked) != 1 || !reflect.DeepEqual(asked[0], step.ask) {
				t.Errorf("asked %+v, want %+v", asked, step.ask)
			}
		}
		if !reflect.DeepEqual(past.asked, []string{"state 7 a"}) {
			t.Errorf("the past was asked %q", past.asked)
		}
	})
}

// What goes wrong is an error with its code, and the connection goes on.
func TestMissionClientErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, Options{Past: &fakePast{}})
		r.engine.script = func(a engine.Ask) (engine.Answer, error) {
			switch a.Command.(type) {
			case engine.StartRun:
				faults := mission.Faults{{File: "weather.toml", Line: 3, Column: 1, Problem: "no such unit"}, {File: "weather.toml", Problem: "a ring"}}
				return nil, fmt.Errorf("%w: %w", engine.ErrInvalid, faults)
			case engine.Restore:
				return nil, engine.ErrDiskFull
			case engine.GetSpec:
				return nil, engine.ErrNotFound
			}
			return nil, nil
		}
		c, err := r.client(wire.ClientOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		odd := task.Values{{Name: "a b", Value: "1"}}
		large := task.Values{{Name: "a", Value: strings.Repeat("x", task.MaxBytes)}}
		for name, step := range map[string]struct {
			call func() error
			code wire.Code
			text string
		}{
			"faults":      {func() error { _, err := c.Start(ctx, wire.Start{Mission: "weather"}); return err }, wire.CodeInvalid, "weather.toml:3:1: no such unit\nweather.toml: a ring"},
			"no upload":   {func() error { _, err := c.Start(ctx, wire.Start{File: "a.toml"}); return err }, wire.CodeInvalid, "a.toml was not uploaded on this connection"},
			"no name":     {func() error { _, err := c.Start(ctx, wire.Start{}); return err }, wire.CodeMalformed, "want the name of a mission"},
			"odd name":    {func() error { _, err := c.Start(ctx, wire.Start{Mission: "a", Params: odd}); return err }, wire.CodeInvalid, "parameter"},
			"odd input":   {func() error { _, err := c.Fork(ctx, wire.Fork{Run: "r", From: "a", With: odd}); return err }, wire.CodeInvalid, "input"},
			"odd event":   {func() error { _, err := c.Event(ctx, wire.Happening{Name: "a", Params: odd}); return err }, wire.CodeInvalid, "parameter"},
			"large":       {func() error { _, err := c.Start(ctx, wire.Start{Mission: "a", Params: large}); return err }, wire.CodeTooLarge, "at most 131072"},
			"gone":        {func() error { _, err := c.KeysAt(ctx, 3, view.KeyQuery{}); return err }, wire.CodeNotFound, "kept from 7 on"},
			"gone keys":   {func() error { _, err := c.Restore(ctx, wire.Restore{Seq: 3}); return err }, wire.CodeNotFound, "kept from 7 on"},
			"no record":   {func() error { _, err := c.Restore(ctx, wire.Restore{}); return err }, wire.CodeMalformed, "number of a record"},
			"disk full":   {func() error { _, err := c.Restore(ctx, wire.Restore{Seq: 7}); return err }, wire.CodeDiskFull, ""},
			"no mission":  {func() error { _, err := c.MissionSpec(ctx, "a"); return err }, wire.CodeNotFound, ""},
			"no spec":     {func() error { _, err := c.RunSpec(ctx, ""); return err }, wire.CodeMalformed, "id of a run"},
			"no moment":   {func() error { _, err := c.Moment(ctx, time.Time{}); return err }, wire.CodeMalformed, "time"},
			"no run":      {func() error { _, err := c.Run(ctx, "", ""); return err }, wire.CodeMalformed, "id"},
			"odd state":   {func() error { _, err := c.Runs(ctx, view.RunQuery{State: "dead"}); return err }, wire.CodeMalformed, "unknown state"},
			"bad upload":  {func() error { return c.Upload(ctx, "a.toml", []byte("name = 1\nunits = 2\n")) }, wire.CodeInvalid, "a.toml:2"},
			"wrong end":   {func() error { return c.Upload(ctx, "a.json", []byte("{}")) }, wire.CodeInvalid, "ends in .toml"},
			"no UTF-8":    {func() error { return c.Upload(ctx, "a.toml", []byte("\xff\xfe")) }, wire.CodeInvalid, "UTF-8"},
			"large file":  {func() error { return c.Upload(ctx, "a.toml", make([]byte, mission.MaxFile+1)) }, wire.CodeInvalid, "at most"},
			"larger file": {func() error { return c.Upload(ctx, "a.toml", make([]byte, wire.MaxUpload+1)) }, wire.CodeTooLarge, "at most"},
		} {
			err := step.call()
			if !errors.Is(err, &wire.Error{Code: step.code}) || !strings.Contains(err.Error(), step.text) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := c.Status(ctx); err != nil {
			t.Errorf("the connection does not go on: %v", err)
		}
	})
}

// Without a past, what asks for it is told so.
func TestNoPast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, Options{})
		p := r.operator()
		p.send("type=control\nop=state\nat=1", "type=control\nop=moment\ntime=2026-01-31T08:00:00Z", "type=control\nop=restore\nat=1", "type=control\nop=state")
		for range 3 {
			p.want("type=error", "code=unavailable", "fatal=false")
		}
		p.want("type=rows", "version=17")
	})
}

// An uploaded file is the mission of the runs asked for by its name, until
// another comes; one that is no mission takes the last one's place.
func TestUpload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, Options{})
		r.engine.script = missionAnswers(&view.Run{ID: "r-0001", Mission: "weather"}, nil)
		c, err := r.client(wire.ClientOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		long := weather + "# " + strings.Repeat("é=", 200_000) // two frames
		if err := c.Upload(ctx, "weather.toml", []byte(long)); err != nil {
			t.Fatal(err)
		}
		for _, check := range []bool{true, false} {
			if _, err := c.Start(ctx, wire.Start{File: "weather.toml", Check: check}); err != nil {
				t.Fatal(err)
			}
		}
		got := find[engine.StartRun](t, r.engine)
		if got.Mission == nil || got.Mission.Name != "weather" || len(got.Mission.Units) != 1 || got.Name != "" || !got.Check {
			t.Errorf("asked %+v", got)
		}
		if _, err := c.Start(ctx, wire.Start{File: "other.toml"}); !errors.Is(err, &wire.Error{Code: wire.CodeInvalid}) {
			t.Errorf("a file that did not come: %v", err)
		}
		if err := c.Upload(ctx, "weather.toml", []byte("name")); err == nil {
			t.Error("half a line is a mission")
		}
		if _, err := c.Start(ctx, wire.Start{File: "weather.toml"}); !errors.Is(err, &wire.Error{Code: wire.CodeInvalid}) {
			t.Errorf("a file that is no mission: %v", err)
		}
	})
}

// A malformed message between the parts of an upload could be one of them.
func TestMalformedWithinUpload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, Options{})
		p := r.operator()
		p.send("type=control\nop=upload\nfile=a.toml\ntext=x\npart=true", "type=control\na=\\x")
		p.want("type=error", "code=malformed", "fatal=true")
		p.wantEnd()
	})
}

// Of very many faults the first are told, and how many more there are.
func TestFaultLinesAreBounded(t *testing.T) {
	var faults mission.Faults
	for i := range 1000 {
		faults = append(faults, mission.Fault{File: "a.toml", Line: i + 1, Problem: strings.Repeat("x", 100)})
	}
	text := faultLines(faults)
	lines := strings.Split(text, "\n")
	if len(text) > maxFaultText+100 || lines[len(lines)-1] != fmt.Sprintf("and %d faults more", 1000-len(lines)+1) {
		t.Errorf("%d bytes, %d lines, %q last", len(text), len(lines), lines[len(lines)-1])
	}
	if text := faultLines(faults[:1]); text != faults[0].Error() {
		t.Errorf("one fault: %q", text)
	}
}

// A mission's text comes piece by piece; one that changes meanwhile is noticed.
func TestSpecOverTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, Options{})
		text, asked, change := strings.Repeat("é=\\\n", 200_000), 0, false
		r.engine.script = func(a engine.Ask) (engine.Answer, error) {
			if _, ok := a.Command.(engine.GetSpec); ok {
				if asked++; change {
					return text + strings.Repeat("x", asked), nil
				}
				return text, nil
			}
			return nil, nil
		}
		c, err := r.client(wire.ClientOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.RunSpec(t.Context(), "r-1"); err != nil || got != text || asked < 2 {
			t.Errorf("%d of %d bytes came in %d pieces: %v", len(got), len(text), asked, err)
		}
		if got := find[engine.GetSpec](t, r.engine); got != (engine.GetSpec{Run: "r-1"}) {
			t.Errorf("asked %+v", got)
		}
		change = true
		if _, err := c.MissionSpec(t.Context(), "weather"); err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
			t.Errorf("a text that changes: %v", err)
		}
	})
}
