package mission

import (
	"math"
	"slices"
	"testing"
	"time"

	"apollo11/engine/task"
)

func TestLongest(t *testing.T) {
	c := Contracts{Units: []task.Unit{{
		Name: "u", Prepare: time.Second, Timeout: 10 * time.Second, Cleanup: 2 * time.Second,
		Retry: task.Retry{Retries: 1, Interval: 3 * time.Second, Backoff: 2, Jitter: 1},
	}}}
	for text, want := range map[string]time.Duration{
		"":                                   13 + 6 + 13,
		"timeout = 20":                       23 + 6 + 23,
		"retries = 0":                        13,
		"retries = 2":                        13 + 6 + 13 + 12 + 13,
		"retries = 2\nretry_interval = 0":    13 * 3,
		"timeout = '10000h'\nretries = 1000": math.MaxInt64,
		"retry_interval = '10000h'":          13 + 24*3600 + 13, // no wait is longer than a day
	} {
		if want != math.MaxInt64 {
			want *= time.Second
		}
		m := mustParse(t, "m.toml", "[[units]]\nname = 'u'\n"+text)
		if got := m.Longest(c)[0]; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	g := graphOf(t, "a:", "b: a")
	if _, total := g.Critical([]time.Duration{math.MaxInt64, math.MaxInt64}); total != math.MaxInt64 {
		t.Error(total)
	}
}

func TestSkipped(t *testing.T) {
	m := mustParse(t, "m.toml", `params.full = { type = "bool", default = false }
[[units]]
name = "a"
uses = "counts"
[[units]]
name = "b"
uses = "plain"
deps = ["a"]
when = "params.full"
[[units]]
name = "c"
uses = "plain"
deps = ["b"]
[[units]]
name = "d"
uses = "plain"
weak = ["b"]
when = "not params.full"
[[units]]
name = "e"
uses = "plain"
deps = ["a"]
when = "a.count > 5"
`)
	c := contracts(t)
	for value, want := range map[string][]bool{"false": {false, true, true, false, false}, "true": {false, false, false, true, false}} {
		params, err := m.Check(c, task.Values{{Name: "full", Value: value}})
		if err != nil {
			t.Fatal(err)
		}
		conditions, err := m.Conditions(c)
		if err != nil {
			t.Fatal(err)
		}
		g, err := NewGraph(m)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := g.Skipped(conditions, params); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", value, got, err)
		}
	}
}
