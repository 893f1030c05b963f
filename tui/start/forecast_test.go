package start

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"apollo11/engine/mission"
	"apollo11/engine/task"
	"apollo11/engine/view"
)

func TestSuggested(t *testing.T) {
	for _, c := range []struct {
		samples, p99, slowest int64
		want                  time.Duration
	}{
		{0, 0, 0, 0},
		{1, 2_000_000, 2_000_000, 3 * time.Second},
		{99, 1_000_000, 4_000_000, 6 * time.Second},
		{100, 1_000_000, 4_000_000, 2500 * time.Millisecond}, // one slow one no longer counts
		{7, 800, 900, time.Second},
		{700, 800, 900, time.Second},
		{5000, 2_000_000, 60_000_000, 5 * time.Second},
	} {
		if got := suggested(&view.TypeStats{Samples: c.samples, P99US: c.p99, MaxUS: c.slowest}); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestHeadroom(t *testing.T) {
	for side, want := range map[int]int{0: 0, 1: 2, 2: 3, 3: 4, 4: 6, 10: 13, 100: 130} {
		if got := headroom(side); got != want {
			t.Errorf("%d side by side: %d executors, want %d", side, got, want)
		}
	}
}

func outline(t *testing.T, deps ...[]int) *mission.Graph {
	t.Helper()
	places := make([]mission.Place, len(deps))
	for i, list := range deps {
		places[i].Unit = fmt.Sprint("u", i)
		for _, d := range list {
			places[i].Deps = append(places[i].Deps, fmt.Sprint("u", d))
		}
	}
	g, err := mission.Outline(places)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestFly(t *testing.T) {
	diamond := [][]int{{}, {0}, {0}, {0}, {1, 2, 3}}
	for _, c := range []struct {
		name  string
		deps  [][]int
		takes []time.Duration
		most  int
		total time.Duration
		side  int
	}{
		{"nothing", nil, nil, 0, 0, 0},
		{"a chain", [][]int{{}, {0}, {1}}, []time.Duration{1, 2, 3}, 0, 6, 1},
		{"a diamond", diamond, []time.Duration{1, 5, 3, 2, 1}, 0, 7, 3},
		{"with one executor", diamond, []time.Duration{1, 5, 3, 2, 1}, 1, 12, 1},
		{"with two", diamond, []time.Duration{1, 5, 3, 2, 1}, 2, 7, 2},
		{"one is skipped", diamond, []time.Duration{1, 0, 3, 2, 1}, 0, 5, 2},
		{"all are", diamond, make([]time.Duration, 5), 0, 0, 0},
		{"short ones one behind the other beside a long one", [][]int{{}, {}, {1}, {2}}, []time.Duration{9, 1, 1, 1}, 0, 9, 2},
	} {
		if total, side := fly(outline(t, c.deps...), c.takes, c.most); total != c.total || side != c.side {
			t.Errorf("%s: %d, %d side by side, want %d, %d", c.name, total, side, c.total, c.side)
		}
	}
}

// With executors for all it takes as long as the critical path says; with fewer,
// no less than the work needs and no more than twice the best.
func TestFlyAgainstBounds(t *testing.T) {
	const seed = 11
	r := rand.New(rand.NewPCG(seed, seed))
	for round := range 300 {
		n := 1 + r.IntN(30)
		deps, takes, work := make([][]int, n), make([]time.Duration, n), time.Duration(0)
		for i := range n {
			for d := range i {
				if r.IntN(5) == 0 {
					deps[i] = append(deps[i], d)
				}
			}
			takes[i] = time.Duration(r.IntN(10))
			work += takes[i]
		}
		g := outline(t, deps...)
		_, critical := g.Critical(takes)
		if total, side := fly(g, takes, 0); total != critical || side > n {
			t.Fatalf("seed %d, round %d: %d, the critical path has %d", seed, round, total, critical)
		}
		most := 1 + r.IntN(4)
		total, side := fly(g, takes, most)
		least := max(critical, (work+time.Duration(most)-1)/time.Duration(most))
		if side > most || total < least || total > critical+work/time.Duration(most) {
			t.Fatalf("seed %d, round %d: %d with %d executors (%d at once), want %d to %d", seed, round, total, most, side, least, critical+work/time.Duration(most))
		}
	}
}

// A mission of which one type has history, one has none, and one is skipped.
func TestForesee(t *testing.T) {
	m, err := mission.Parse("m.toml", []byte(`
name = "m"
[[units]]
name = "a"
uses = "fetch"
[[units]]
name = "b"
uses = "fetch"
timeout = "1s"
[[units]]
name = "c"
uses = "clean"
deps = ["a", "b"]
[[units]]
name = "d"
uses = "note"
`))
	if err != nil {
		t.Fatal(err)
	}
	g, err := mission.NewGraph(m)
	if err != nil {
		t.Fatal(err)
	}
	q := &planning{mission: m}
	q.contracts.Units = []task.Unit{{Name: "clean", Timeout: time.Minute}, {Name: "fetch", Timeout: 30 * time.Second}, {Name: "note"}}
	f := q.foresee(g, make([]bool, 4))
	if f.Expected != 0 || len(f.Critical) != 0 || f.Side != 3 || f.Advised != 4 || len(f.Unknown) != 3 || f.Connected != 0 {
		t.Errorf("without history: %+v", f)
	}
	q.stats = map[string]view.TypeStats{
		"fetch": {Type: "fetch", Samples: 150, P50US: 1_000_000, P99US: 2_000_000, MaxUS: 9_000_000, Execs: 1},
		"note":  {Type: "note", Samples: 2, P50US: 50_000, P99US: 60_000, MaxUS: 60_000, Execs: 4},
		"clean": {Type: "clean", Execs: 3},
	}
	f = q.foresee(g, []bool{false, false, false, true})
	if f.Expected != 2000 || fmt.Sprint(f.Critical) != "[a c]" || f.Side != 2 || f.Advised != 3 || f.Connected != 1 || f.WithThese != 3000 {
		t.Errorf("%+v", f)
	}
	var out strings.Builder
	if err := f.tell(&out); err != nil {
		t.Fatal(err)
	}
	want := `
TYPE   UNITS  SAMPLES      P50      P99  TIMEOUT  SUGGESTED
fetch      1      150       1s       2s      30s         5s
fetch      1      150       1s       2s       1s         5s
clean      1        0        -        -     1m0s          -
note       1        2     50ms     60ms       0s         1s

expected: 2s, by a, c
no history of clean: taken to be as slow as the slowest of the others
executors: 3, so that nothing waits (2 side by side at most, and 30% more); 1 connected: 3s with these
`
	if out.String() != want {
		t.Errorf("got\n%s", out.String())
	}
	if w := f.tooShort(); len(w) != 1 || w[0] != "unit type fetch: its timeout of 1s is less than the 2s that one in a hundred takes: 5s is suggested" {
		t.Errorf("warnings %q", w)
	}
}

// What runs counts, unless other manifests are named.
func TestContractsOfExecutors(t *testing.T) {
	theirs := task.Unit{Name: "fetch", Timeout: 7 * time.Second}
	only := task.Unit{Name: "only", Timeout: time.Second}
	stats := map[string]view.TypeStats{
		"fetch": {Unit: string(theirs.AppendText(nil))}, "only": {Unit: string(only.AppendText(nil))}, "seen": {},
	}
	for dir, want := range map[string]string{"": "[clean 1m0s fetch 7s only 1s]", "units": "[clean 1m0s fetch 30s only 1s]"} {
		q := &planning{unitsDir: dir, history: history{stats: stats}}
		if err := q.takeContracts([]task.Unit{{Name: "clean", Timeout: time.Minute}, {Name: "fetch", Timeout: 30 * time.Second}}); err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range q.contracts.Units {
			got = append(got, q.contracts.Units[i].Name, q.contracts.Units[i].Timeout.String())
		}
		if fmt.Sprint(got) != want {
			t.Errorf("--units %q: %v", dir, got)
		}
	}
	q := &planning{history: history{stats: map[string]view.TypeStats{"x": {Unit: "nonsense"}}}}
	if err := q.takeContracts(nil); err == nil || !strings.Contains(err.Error(), "the controller's contract of x") {
		t.Errorf("%v", err)
	}
}
