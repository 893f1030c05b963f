package view

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func values(pairs ...string) (o Object) {
	for i := 0; i < len(pairs); i += 2 {
		o = append(o, struct{ Name, Value string }{pairs[i], pairs[i+1]})
	}
	return o
}

// A unit by itself: what counts as a difference, and what does not.
func TestCompareUnit(t *testing.T) {
	sum := func(c string) string { return strings.Repeat(c, 64) }
	base := RunUnit{
		Unit: "u", State: "succeeded", Attempt: 1, Executor: "a", ExecuteMS: 5, InputHash: "i", OutputHash: "o", UnitHash: "p",
		Outputs: values("data", "share:s/r-1/u/x.csv#3,"+sum("a")),
	}
	for _, c := range []struct {
		name    string
		change  func(*RunUnit)
		want    string
		differs bool
	}{
		{"nothing", func(*RunUnit) {}, "", false},
		{"another executor, slower, at the third try", func(u *RunUnit) { u.Executor, u.ExecuteMS, u.Attempt = "b", 99, 3 }, "", false},
		{"state", func(u *RunUnit) { u.State, u.ErrorClass, u.OutputHash = "dead", "timeout", "" }, "state, error", true},
		{"reused", func(u *RunUnit) { u.State, u.Reason = "skipped", "reused from r-0001" }, "", false},
		{"skipped", func(u *RunUnit) { u.State, u.Reason = "skipped", "condition is false" }, "state", true},
		{"inputs", func(u *RunUnit) { u.InputHash = "j" }, "inputs", true},
		{"outputs", func(u *RunUnit) { u.OutputHash = "q" }, "outputs", true},
		{"another program, the same result", func(u *RunUnit) { u.UnitHash = "q" }, "program", false},
		{"a program that is not known", func(u *RunUnit) { u.UnitHash = "" }, "", false},
		{"no hash, a value more", func(u *RunUnit) { u.InputHash, u.Inputs = "", values("x", "1") }, "inputs", true},
		{"the same file elsewhere", func(u *RunUnit) { u.OutputHash, u.Outputs = "", values("data", "share:t/r-2/u/y.csv#3,"+sum("a")) }, "", false},
		{"another content", func(u *RunUnit) { u.OutputHash, u.Outputs = "", values("data", "share:s/r-1/u/x.csv#3,"+sum("b")) }, "outputs", true},
	} {
		other := base
		c.change(&other)
		for _, turn := range [2][2]RunUnit{{base, other}, {other, base}} {
			d := Compare(&RunDetail{Units: turn[:1]}, &RunDetail{Units: turn[1:]})
			if got := d.Units[0].Parts.String(); got != c.want || d.Units[0].Differs() != c.differs || d.Same() == c.differs {
				t.Errorf("%s: %q, differs %v, same %v", c.name, got, d.Units[0].Differs(), d.Same())
			}
		}
	}
}

func graph(units ...string) *RunDetail {
	r := &RunDetail{}
	for _, text := range units {
		name, rest, _ := strings.Cut(text, "<")
		deps, hash, _ := strings.Cut(rest, "=")
		r.Units = append(r.Units, RunUnit{Unit: name, State: "succeeded", Deps: deps, OutputHash: hash})
	}
	return r
}

// The first difference is the one upstream, wherever it stands in the file.
func TestCompareOrder(t *testing.T) {
	for _, c := range []struct {
		name  string
		a, b  []string
		order string // those that differ with !, where it begins with !!
		first int
	}{
		{"nothing", nil, nil, "", -1},
		{"the same", []string{"b<a=1", "a<=1"}, []string{"a<=1", "b<a=1"}, "a b", -1},
		{"carried on", []string{"c<b=1", "b<a=1", "a<=1"}, []string{"c<b=2", "b<a=2", "a<=1"}, "a b!! c!", 1},
		{"twice", []string{"a<=1", "b<=1", "c<a,b=1"}, []string{"a<=2", "b<=2", "c<a,b=2"}, "a!! b!! c!", 0},
		{"only in one", []string{"a<=1", "b<a=1"}, []string{"a<=1", "x<a=1", "b<x=1"}, "a x!! b", 1},
		{"a ring, which no controller sends", []string{"a<b=1", "b<a=1"}, []string{"a<b=1", "b<a=1"}, "b a", -1},
		{"a name that is nowhere", []string{"a<z=1"}, []string{"a<z=2"}, "a!!", 0},
	} {
		d := Compare(graph(c.a...), graph(c.b...))
		var got []string
		for i := range d.Units {
			u := &d.Units[i]
			mark := ""
			if u.Differs() {
				mark += "!"
			}
			if u.Origin {
				mark += "!"
			}
			got = append(got, u.Unit+mark)
		}
		if s := strings.Join(got, " "); s != c.order || d.First != c.first {
			t.Errorf("%s: %q, first %d, want %q, %d", c.name, s, d.First, c.order, c.first)
		}
	}
}

func TestCompareRuns(t *testing.T) {
	a, b := graph("a<=1"), graph("a<=1")
	a.Params, b.Params = values("year", "2012", "both", "x"), values("both", "x", "more", "")
	a.Spec, b.State = "s", "cancelled"
	d := Compare(a, b)
	if len(d.Params) != 2 || !d.Spec || d.Same() || d.First >= 0 {
		t.Errorf("%+v", d)
	}
	if y := d.Params[0]; y.Name != "year" || y.A != "2012" || y.InB {
		t.Errorf("%+v", y)
	}
	if m := d.Params[1]; m.Name != "more" || m.InA || !m.InB {
		t.Errorf("%+v", m)
	}
	if text, err := json.Marshal(d); err != nil || !strings.Contains(string(text), `"differs":""`) {
		t.Errorf("%s, %v", text, err)
	}
}

// A chain from the end to the begin, as long as a mission may be.
func TestCompareLong(t *testing.T) {
	var units []string
	for i := range 10_000 {
		units = append(units, fmt.Sprintf("u%d<u%d=1", i, i+1))
	}
	if d := Compare(graph(units...), graph(units...)); !d.Same() || d.Units[0].Unit != "u9999" {
		t.Errorf("first %d, %s", d.First, d.Units[0].Unit)
	}
}

func TestReusedFrom(t *testing.T) {
	for _, c := range []struct{ state, reason, want string }{
		{"skipped", "reused from r-0001:north", "r-0001"}, {"skipped", "reused from r-0001", "r-0001"}, {"skipped", "reused from r-0001; a note", "r-0001"},
		{"skipped", "condition is false", ""}, {"dead", "reused from r-0001", ""}, {"skipped", "", ""},
	} {
		if got := (&RunUnit{State: c.state, Reason: c.reason}).ReusedFrom(); got != c.want {
			t.Errorf("%s, %q: %q, want %q", c.state, c.reason, got, c.want)
		}
	}
}
