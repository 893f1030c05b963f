package mission_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"apollo11/engine/mission"
	"apollo11/engine/task"
	"apollo11/engine/unit"
)

var unitDefaults = unit.Defaults{Retries: 1, Backoff: 1, Timeout: 5 * time.Minute, Grace: time.Second, Env: []string{"PATH"}}

func load(t *testing.T, dir string) *unit.Set {
	t.Helper()
	set, err := unit.Load(dir, unitDefaults)
	if err != nil || len(set.Faults) > 0 {
		t.Fatal(err, set.Faults)
	}
	return set
}

func parse(t *testing.T, file string) *mission.Mission {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := mission.Parse(file, text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestExamplesPassTheCheck(t *testing.T) {
	contracts := mission.Contracts{Units: load(t, "examples/units").Units()}
	files, err := fs.Glob(mission.Examples(), "missions/*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		m := parse(t, filepath.Join("examples", file))
		if want := strings.TrimSuffix(filepath.Base(file), ".toml"); m.Name != want {
			t.Errorf("%s is called %s", file, m.Name)
		}
		if _, err := m.Check(contracts, nil); err != nil {
			t.Error(err)
		}
	}
}

func TestDocumentsPassTheCheck(t *testing.T) {
	for file, units := range map[string]string{
		"testdata/document-004/config/pipeline.yaml": "testdata/document-004/units",
		"testdata/document-003/config.yaml":          "testdata/document-003/units",
	} {
		m := parse(t, file)
		set := load(t, units)
		if _, err := m.Check(mission.Contracts{Units: set.Units()}, nil); err != nil {
			t.Error(err)
		}
	}
	m := parse(t, "testdata/document-003/config.yaml")
	contract := &load(t, "testdata/document-003/units").Get("fetch_data").Unit
	in, err := m.Inputs(&m.Units[0], contract, mission.Given{})
	if err != nil || string(in.AppendText(nil)) != "source=internal-api\ntimeout=30" {
		t.Errorf("%v %v", in, err)
	}
}

// facts are what units have put out so far.
type facts struct {
	mission.Given
	outputs map[string]task.Values
}

func (f facts) Output(unit, name string) (string, bool) { return f.outputs[unit].Get(name) }

func (f facts) Status(unit string) string {
	if f.outputs[unit] != nil {
		return "succeeded"
	}
	return ""
}

// The units of the weather mission, one after the other as single tasks, with
// what the mission says about their inputs and conditions.
func TestWeatherUnits(t *testing.T) {
	set := load(t, "examples/units")
	work, err := unit.OpenWorkplace(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer work.Close()
	m := parse(t, "examples/missions/weather.toml")
	contracts := mission.Contracts{Units: set.Units()}
	params, err := m.Check(contracts, nil)
	if err != nil {
		t.Fatal(err)
	}
	conditions, err := m.Conditions(contracts)
	if err != nil {
		t.Fatal(err)
	}
	graph, err := mission.NewGraph(m)
	if err != nil {
		t.Fatal(err)
	}
	known := facts{mission.Given(params), map[string]task.Values{}}
	count := graph.Countdown()
	ready := count.Roots(nil)
	for len(ready) > 0 {
		i := ready[0]
		ready = count.Finish(i, ready[1:])
		u := &m.Units[i]
		if when := conditions[i].When; when != nil {
			if yes, err := when.Eval(known, nil); err != nil || !yes {
				t.Errorf("%s is skipped: %v", u.Name, err)
			}
		}
		manifest := set.Get(u.Uses)
		in, err := m.Inputs(u, &manifest.Unit, known)
		if err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		outcome := unit.Run(context.Background(), unit.Job{
			Manifest: manifest, Work: work, Environ: os.Environ(), Now: time.Now,
			Assignment: task.Assignment{Task: "t1", Type: u.Uses, Version: task.MakeVersion(1, 1), Attempt: 3, Inputs: in},
			Log:        func(b []byte) { said.Write(b) },
		})
		if outcome.Status != task.Success {
			t.Fatalf("%s: %v\n%s", u.Name, outcome, said.String())
		}
		if expect := conditions[i].Expect; expect != nil {
			if yes, err := expect.Eval(known, outcome.Outputs); err != nil || !yes {
				t.Errorf("%s: %s is false: %v, %v", u.Name, u.Expect, expect.Values(known, outcome.Outputs), err)
			}
		}
		known.outputs[u.Name] = outcome.Outputs
	}
	want := map[string]string{
		"merge.rows": "1461", "fetch_2012.rows": "366", "clean_2013.dropped": "0",
		"extremes.wettest": "2015-03-15 55.9 mm", "extremes.hottest": "2014-08-11 35.6 degrees",
	}
	for name, value := range want {
		unit, output, _ := strings.Cut(name, ".")
		if got, _ := known.Output(unit, output); got != value {
			t.Errorf("%s = %q, want %s", name, got, value)
		}
	}
	report, _ := known.Output("report", "report")
	if !strings.HasPrefix(report, "1461 days, ") || !strings.Contains(report, "4426.0 mm") || !strings.HasSuffix(report, "(station sea-tac answers at call 3)") {
		t.Errorf("%q", report)
	}
	if len(known.outputs) != len(m.Units) {
		t.Errorf("%d of %d units ran", len(known.outputs), len(m.Units))
	}
}
