package mission_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
	contracts := mission.Contracts{Units: load(t, "examples/units").Contracts()} // also of what this host cannot run
	files, err := fs.Glob(mission.Examples(), "missions/*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	used := map[string]bool{}
	for _, file := range files {
		m := parse(t, filepath.Join("examples", file))
		if want := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)); m.Name != want {
			t.Errorf("%s is called %s", file, m.Name)
		}
		if _, err := m.Check(contracts, required[m.Name]); err != nil {
			t.Error(err)
		}
		for i := range m.Units {
			used[m.Units[i].Uses] = true
		}
	}
	for _, u := range contracts.Units {
		if !used[u.Name] && !slices.Contains(alone, u.Name) {
			t.Errorf("no mission uses %s", u.Name)
		}
	}
}

// required are the parameters that a bundled mission cannot do without.
var required = map[string]task.Values{"one_year": {{Name: "year", Value: "2013"}}}

// alone are the bundled units that are handed in as tasks of their own.
var alone = []string{"analyse", "collect", "count_words", "median_rain"}

// The bundled pipeline is the documents' own, to the byte.
func TestThePipelineIsTheDocuments(t *testing.T) {
	ours, err := os.ReadFile("examples/missions/pipeline.yaml")
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := os.ReadFile("testdata/document-004/config/pipeline.yaml")
	if err != nil || !bytes.Equal(ours, theirs) {
		t.Errorf("%v\n%s", err, ours)
	}
	ours, err = os.ReadFile("examples/missions/task_order.yaml")
	if err != nil {
		t.Fatal(err)
	}
	theirs, err = os.ReadFile("testdata/document-003/config.yaml")
	if _, text, ok := bytes.Cut(ours, []byte("\n\n")); err != nil || !ok || !bytes.Equal(text, theirs) {
		t.Errorf("%v\n%s", err, ours)
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
// what the mission says about their inputs and conditions. Done again elsewhere,
// they come to the same.
func TestWeatherUnits(t *testing.T) {
	m := parse(t, "examples/missions/weather.toml")
	given := task.Values{{Name: "archive", Value: "2014"}}
	known := play(t, m, given)
	want := map[string]string{
		"merge.rows": "1461", "fetch_2012.rows": "366", "clean_2013.dropped": "0", "clean_2013.rain": "8280", "clean_2015.next_batch": "201512",
		"extremes.wettest": "2015-03-15 55.9 mm", "extremes.hottest": "2014-08-11 35.6 degrees", "archive.filed": "report 2014",
		"report.report": "1461 days, 623 wet, 4426.0 mm; sun 640, rain 641, fog 101, drizzle 53, snow 26 (station sea-tac answers)",
	}
	for name, value := range want {
		unit, output, _ := strings.Cut(name, ".")
		if got, _ := known.Output(unit, output); got != value {
			t.Errorf("%s = %q, want %s", name, got, value)
		}
	}
	if len(known.outputs) != len(m.Units) {
		t.Errorf("%d of %d units ran", len(known.outputs), len(m.Units))
	}
	again := play(t, m, given)
	for unit, outputs := range known.outputs {
		if outputs.ContentHash() != again.outputs[unit].ContentHash() {
			t.Errorf("%s: %v, then %v", unit, outputs, again.outputs[unit])
		}
		for _, v := range outputs {
			if len(v.Value) > 200 {
				t.Errorf("%s: %s has %d bytes: too long to be shown", unit, v.Name, len(v.Value))
			}
		}
	}
}

// The task_order form: each task's settings reach its unit.
func TestTaskOrderUnits(t *testing.T) {
	known := play(t, parse(t, "examples/missions/task_order.yaml"), nil)
	if got := string(known.outputs["process_data"].AppendText(nil)); got != "batches=3\nprocessed=1461" {
		t.Errorf("%q", got)
	}
}

func TestPipelineUnits(t *testing.T) {
	known := play(t, parse(t, "examples/missions/pipeline.yaml"), nil)
	for unit, want := range map[string]string{"fetch_data": "rows=1461", "clean_data": "days=1461", "save_result": "saved=1461 days"} {
		if got := string(known.outputs[unit].AppendText(nil)); got != want {
			t.Errorf("%s: %s, want %s", unit, got, want)
		}
	}
}

func TestTheArchiveRefuses(t *testing.T) {
	p := newPlayer(t)
	year := func(y string) task.Assignment {
		return task.Assignment{Inputs: task.Values{{Name: "report", Value: "dry"}, {Name: "year", Value: y}}}
	}
	if o := p.run("file_report", year("2015")); o.Status == task.Success || len(o.Changes) > 0 || !strings.Contains(p.said.String(), "refuses report 2015") {
		t.Errorf("%+v\n%s", o, p.said.String())
	}
	o := p.run("file_report", year("2014"))
	if want := (task.Change{Op: task.Set, Key: "archive.2014", Value: "dry"}); o.Status != task.Success || !slices.Equal(o.Changes, []task.Change{want}) {
		t.Errorf("%+v", o)
	}
	undo := year("2014")
	undo.Undo, undo.Outputs = true, o.Outputs
	if o := p.run("file_report", undo); o.Status != task.Success || !slices.Equal(o.Changes, []task.Change{{Op: task.Del, Key: "archive.2014"}}) {
		t.Errorf("%+v", o)
	}
}

// player runs the bundled units, one by one.
type player struct {
	*testing.T
	set   *unit.Set
	work  *unit.Workplace
	share *unit.Share
	said  strings.Builder // by the units
	state map[string]string
}

func newPlayer(t *testing.T) *player {
	p := &player{T: t, set: load(t, "examples/units"), share: &unit.Share{Dir: t.TempDir(), ID: "s1"}, state: map[string]string{}}
	var err error
	if p.work, err = unit.OpenWorkplace(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.work.Close() })
	return p
}

// run is the third attempt of a unit.
func (p *player) run(name string, a task.Assignment) task.Outcome {
	p.Helper()
	manifest := p.set.Get(name)
	if manifest == nil {
		p.Fatalf("there is no unit %s", name)
	}
	if a.Task == "" {
		a.Task = "t1"
	}
	a.Type, a.Version, a.Attempt = name, task.MakeVersion(1, 1), 3
	for _, key := range manifest.Unit.Context {
		if value, ok := p.state[key]; ok {
			a.Context = append(a.Context, task.Value{Name: key, Value: value})
		}
	}
	o := unit.Run(context.Background(), unit.Job{
		Manifest: manifest, Work: p.work, Share: p.share, Environ: os.Environ(), Now: time.Now, Assignment: a,
		Log: func(b []byte) { p.said.Write(b) },
	})
	for _, c := range o.Changes {
		p.state[c.Key] = c.Value
	}
	return o
}

// play runs a mission's units, upstream before downstream.
func play(t *testing.T, m *mission.Mission, given task.Values) facts {
	t.Helper()
	p := newPlayer(t)
	contracts := mission.Contracts{Units: p.set.Units()}
	params, err := m.Check(contracts, given)
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
	for ready := count.Roots(nil); len(ready) > 0; {
		i := ready[0]
		ready = count.Finish(i, ready[1:])
		p.unit(m, int(i), conditions[i], known)
	}
	return known
}

// unit runs one unit of a mission and notes its outputs.
func (p *player) unit(m *mission.Mission, i int, c mission.Conditions, known facts) {
	p.Helper()
	u := &m.Units[i]
	if c.When != nil {
		if yes, err := c.When.Eval(known, nil); err != nil || !yes {
			p.Errorf("%s is skipped: %v", u.Name, err)
		}
	}
	in, err := m.Inputs(u, &p.set.Get(u.Uses).Unit, known)
	if err != nil {
		p.Fatal(err)
	}
	o := p.run(u.Uses, task.Assignment{Task: "r1:" + u.Name, Run: "r1", Inputs: in})
	if o.Status != task.Success {
		p.Fatalf("%s: %v\n%s", u.Name, o, p.said.String())
	}
	if c.Expect != nil {
		if yes, err := c.Expect.Eval(known, o.Outputs); err != nil || !yes {
			p.Errorf("%s: %s is false: %v, %v", u.Name, u.Expect, c.Expect.Values(known, o.Outputs), err)
		}
	}
	known.outputs[u.Name] = o.Outputs
}
