package mission

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// mission is a mission of units such as "c: a b ~w": c waits for a and b, w is
// weak.
func missionOf(t testing.TB, lines ...string) *Mission {
	t.Helper()
	var b strings.Builder
	for _, line := range lines {
		name, rest, _ := strings.Cut(line, ":")
		var deps, weak []string
		for _, d := range strings.Fields(rest) {
			if w, ok := strings.CutPrefix(d, "~"); ok {
				weak = append(weak, w)
			} else {
				deps = append(deps, d)
			}
		}
		fmt.Fprintf(&b, "[[units]]\nname = %q\nuses = 'u'\n", name)
		w := writer{}
		w.texts("deps", deps)
		w.texts("weak", weak)
		b.WriteString(w.b.String())
	}
	return mustParse(t, "m.toml", b.String())
}

// grid is side x side units, each waiting for those above and to the left.
func grid(side int) []string {
	var lines []string
	for r := range side {
		for c := range side {
			line := fmt.Sprintf("u%d-%d:", r, c)
			if r > 0 {
				line += fmt.Sprintf(" u%d-%d", r-1, c)
			}
			if c > 0 {
				line += fmt.Sprintf(" u%d-%d", r, c-1)
			}
			lines = append(lines, line)
		}
	}
	return lines
}

func chainOf(n int) []string {
	lines := []string{"u0:"}
	for i := 1; i < n; i++ {
		lines = append(lines, fmt.Sprintf("u%d: u%d", i, i-1))
	}
	return lines
}

func graphOf(t testing.TB, lines ...string) *Graph {
	t.Helper()
	g, err := NewGraph(missionOf(t, lines...))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestRings(t *testing.T) {
	for _, tt := range []struct {
		lines []string
		want  string
	}{
		{[]string{"a: a"}, "a waits for a"},
		{[]string{"x:", "b: a x", "a: b"}, "b waits for a waits for b"},
		{[]string{"d: c", "c: a x", "x:", "a: b", "b: c", "e: d"}, "c waits for a waits for b waits for c"},
	} {
		_, err := NewGraph(missionOf(t, tt.lines...))
		if ring, ok := errors.AsType[*RingError](err); !ok || err.Error() != "units wait for each other in a ring: "+tt.want {
			t.Errorf("%v: %v %v", tt.lines, err, ring)
		}
	}
	if _, err := NewGraph(missionOf(t, "a: b")); err == nil || err.Error() != "unit a waits for b, which is not there" {
		t.Error(err)
	}
	lines := chainOf(5000)
	lines[0] = "u0: u4999"
	_, err := NewGraph(missionOf(t, lines...))
	if ring, ok := errors.AsType[*RingError](err); !ok || len(ring.Units) != 5000 || ring.Units[0] != "u0" || ring.Units[1] != "u4999" {
		t.Errorf("%.100v", err)
	}
}

// A random walk through the countdown starts every unit once, after all that it
// waits for.
func TestCountdown(t *testing.T) {
	for name, lines := range map[string][]string{
		"grid": grid(12), "chain": chainOf(50), "diamond": {"a:", "b: a", "c: a", "d: b c"}, "one": {"a:"}, "apart": {"a:", "b:", "c: ~a"},
	} {
		m := missionOf(t, lines...)
		g, err := NewGraph(m)
		if err != nil {
			t.Fatal(err)
		}
		for seed := range 5 {
			c := g.Countdown()
			ready := c.Roots(nil)
			done := map[string]bool{}
			for len(ready) > 0 {
				pick := (seed * 7919) % len(ready)
				u := ready[pick]
				ready = slices.Delete(ready, pick, pick+1)
				for _, d := range m.Units[u].Deps {
					if !done[d] {
						t.Fatalf("%s: %s before %s", name, m.Units[u].Name, d)
					}
				}
				if done[m.Units[u].Name] {
					t.Fatalf("%s: %s twice", name, m.Units[u].Name)
				}
				done[m.Units[u].Name] = true
				ready = c.Finish(u, ready)
			}
			if len(done) != g.Len() {
				t.Errorf("%s: %d of %d", name, len(done), g.Len())
			}
		}
	}
}

func TestLevelsAndTheCriticalChain(t *testing.T) {
	m := missionOf(t, "a:", "b: a", "c: a", "d: b c", "e:", "f: e ~d")
	g, err := NewGraph(m)
	if err != nil {
		t.Fatal(err)
	}
	if got := g.Widths(); !slices.Equal(got, []int{2, 3, 1}) {
		t.Errorf("widths %v", got)
	}
	if g.Level(3) != 2 || g.Level(5) != 1 || g.Level(0) != 0 {
		t.Error("levels")
	}
	chain, total := g.Critical([]time.Duration{1, 2, 5, 1, 3, 1})
	if !slices.Equal(chain, []int{0, 2, 3}) || total != 7 {
		t.Errorf("%v %v", chain, total)
	}
	chain, total = g.Critical([]time.Duration{1, 2, 5, 1, 3, 9})
	if !slices.Equal(chain, []int{4, 5}) || total != 12 {
		t.Errorf("%v %v", chain, total)
	}
	if chain, total := g.Critical(make([]time.Duration, 6)); total != 0 || len(chain) == 0 {
		t.Errorf("%v %v", chain, total)
	}
}

func TestDrawings(t *testing.T) {
	weather, err := NewGraph(mustExample(t))
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("a-very-long-name-", 3) + "indeed"
	for name, tt := range map[string]struct {
		graph   *Graph
		drawing Drawing
	}{
		"pipeline": {graphOf(t, "fetch_data:", "clean_data: fetch_data", "save_result: clean_data"), Drawing{Width: 80}},
		"weather":  {weather, Drawing{Width: 80}},
		"ascii":    {weather, Drawing{Width: 80, ASCII: true}},
		"diamond":  {graphOf(t, "a:", "b: a", "c: a", "d: b c", "e: d"), Drawing{Width: 80, Note: func(u int) string { return fmt.Sprint("no ", u) }}},
		"apart":    {graphOf(t, "a:", "b:", "c: b ~a"), Drawing{Width: 80}},
		"grid":     {graphOf(t, grid(6)...), Drawing{Width: 80}},
		"deep":     {graphOf(t, deep(14)...), Drawing{Width: 80}},
		"narrow":   {graphOf(t, long+":", "b: "+long, "c: "+long, "d: "+long+" b c"), Drawing{Width: 1}},
	} {
		got := tt.graph.Draw(tt.drawing)
		file := filepath.Join("testdata", "drawings", name+".txt")
		if *rewrite {
			if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || got != string(want) {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
		whole(t, name, tt.graph, got, max(tt.drawing.Width, 40))
	}
}

// deep is a trunk with a leaf at each node: every level is a branch further right.
func deep(n int) []string {
	lines := []string{"t0:"}
	for i := 1; i < n; i++ {
		lines = append(lines, fmt.Sprintf("leaf%d: t%d", i, i-1), fmt.Sprintf("t%d: t%d", i, i-1))
	}
	return lines
}

// whole holds a drawing against what every drawing is: all units are in it, once
// without a mark, and no line is too long.
func whole(t *testing.T, name string, g *Graph, drawing string, width int) {
	t.Helper()
	seen := map[string]int{}
	for line := range strings.Lines(drawing) {
		line = strings.TrimSuffix(line, "\n")
		if n := utf8.RuneCountInString(line); n > width {
			t.Errorf("%s: %d columns: %s", name, n, line)
		}
		text := strings.TrimLeft(line, "├└─↓│ |-`v")
		if !strings.Contains(text, "below)") {
			seen[strings.TrimSuffix(strings.Fields(text)[0], "…")]++
		}
	}
	if len(seen) != g.Len() {
		t.Errorf("%s: %d units of %d", name, len(seen), g.Len())
	}
	for unit, n := range seen {
		if n != 1 {
			t.Errorf("%s: %s stands there %d times", name, unit, n)
		}
	}
}

func TestLargeDrawings(t *testing.T) {
	for name, lines := range map[string][]string{"grid": grid(40), "chain": chainOf(5000), "deep": deep(600)} {
		g := graphOf(t, lines...)
		whole(t, name, g, g.Draw(Drawing{Width: 80}), 80)
	}
}

func mustExample(t testing.TB) *Mission {
	t.Helper()
	return mustRead(t, "examples/missions/weather.toml")
}

// Finishing a unit costs its children: as much in a mission of 10,000 units as in
// one of 10.
func BenchmarkFinish(b *testing.B) {
	for name, lines := range map[string][]string{"grid9": grid(3), "grid10000": grid(100), "chain10": chainOf(10), "chain5000": chainOf(5000)} {
		g := graphOf(b, lines...)
		b.Run(name, func(b *testing.B) {
			ready := make([]int32, 0, g.Len())
			count := g.Countdown()
			fresh := slices.Clone(count.left)
			n := 0
			for b.Loop() {
				copy(count.left, fresh)
				ready = count.Roots(ready[:0])
				for i := 0; i < len(ready); i++ {
					ready = count.Finish(ready[i], ready)
				}
				n += len(ready)
			}
			took := float64(b.Elapsed().Nanoseconds())
			b.ReportMetric(took/float64(n), "ns/unit")
			b.ReportMetric(took/float64(n)/(1+float64(len(g.children.to))/float64(g.Len())), "ns/unit-or-edge")
		})
	}
}

// What a unit costs a mission: what it waited for is counted, its inputs are put
// together, its condition is asked.
func BenchmarkUnit(b *testing.B) {
	for _, n := range []int{10, 5000} {
		var lines strings.Builder
		lines.WriteString("params.year = { type = 'int', default = 2012 }\n")
		for i := range n {
			fmt.Fprintf(&lines, "[[units]]\nname = 'u%05d'\nuses = 'fetch'\nwhen = 'params.year > 2000'\nwith = { url = 'https://x/${params.year}', n = '${params.year}' }\n", i)
			if i > 0 {
				fmt.Fprintf(&lines, "deps = ['u%05d']\n", i-1)
			}
		}
		m := mustParse(b, "m.toml", lines.String())
		c := contracts(b)
		params, err := m.Check(c, nil)
		if err != nil {
			b.Fatal(err)
		}
		conditions, err := m.Conditions(c)
		if err != nil {
			b.Fatal(err)
		}
		g, err := NewGraph(m)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			done := 0
			for b.Loop() {
				count := g.Countdown()
				ready := count.Roots(nil)
				for i := 0; i < len(ready); i++ {
					u := ready[i]
					if yes, err := conditions[u].When.Eval(Given(params), nil); err != nil || !yes {
						b.Fatal(yes, err)
					}
					if _, err := m.Inputs(&m.Units[u], &c.Units[0], Given(params)); err != nil {
						b.Fatal(err)
					}
					ready = count.Finish(u, ready)
				}
				done += len(ready)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(done), "ns/unit")
		})
	}
}

func BenchmarkLarge(b *testing.B) {
	for name, lines := range map[string][]string{"grid100x100": grid(100), "chain5000": chainOf(5000)} {
		m := missionOf(b, lines...)
		text := []byte(m.Spec())
		b.Run(name+"/parse", func(b *testing.B) {
			for b.Loop() {
				if _, err := Parse("m.toml", text); err != nil {
					b.Fatal(err)
				}
			}
		})
		c := contracts(b)
		c.Units = append(c.Units, c.Units[2])
		c.Units[len(c.Units)-1].Name = "u"
		b.Run(name+"/check", func(b *testing.B) {
			for b.Loop() {
				if _, err := m.Check(c, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/graph", func(b *testing.B) {
			for b.Loop() {
				if _, err := NewGraph(m); err != nil {
					b.Fatal(err)
				}
			}
		})
		g := graphOf(b, lines...)
		durations := make([]time.Duration, g.Len())
		b.Run(name+"/critical", func(b *testing.B) {
			for b.Loop() {
				g.Critical(durations)
			}
		})
		b.Run(name+"/draw", func(b *testing.B) {
			for b.Loop() {
				g.Draw(Drawing{Width: 80})
			}
		})
	}
}
