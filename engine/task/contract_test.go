package task

import (
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

func rule(kind Kind, change func(*Rule)) Rule {
	r := Rule{Name: "v", Kind: kind}
	if change != nil {
		change(&r)
	}
	return r
}

func TestRuleCheck(t *testing.T) {
	cases := []struct {
		name string
		rule Rule
		good []string
		bad  []string
	}{
		{"int", rule(Int, nil), []string{"0", "-9223372036854775808", "9223372036854775807", "+1"}, []string{"", "1.0", "9223372036854775808", "x", "1 "}},
		{"int range", rule(Int, func(r *Rule) { r.Min, r.Max = "-1", "10" }), []string{"-1", "10", "2"}, []string{"-2", "11"}},
		{"float", rule(Float, nil), []string{"1", "1.5", "-2e300"}, []string{"NaN", "Inf", "-Inf", "1e999", "x", ""}},
		{"float range", rule(Float, func(r *Rule) { r.Min, r.Max = "0.5", "9" }), []string{"0.5", "9.0", "2"}, []string{"0.4999", "10"}},
		{"bool", rule(Bool, nil), []string{"true", "false"}, []string{"True", "1", ""}},
		{"time", rule(Time, func(r *Rule) { r.Min = "2026-01-01T00:00:00Z" }), []string{"2026-01-01T01:00:00+01:00", "2027-01-01T00:00:00.5Z"}, []string{"2025-12-31T23:59:59Z", "2026-01-01", "now"}},
		{"length in characters", rule(String, func(r *Rule) { r.MinLength, r.MaxLength = 2, 3 }), []string{"ab", "äöü"}, []string{"a", "äöüß", ""}},
		{"enum", rule(String, func(r *Rule) { r.Enum = []string{"red", "blue"} }), []string{"red"}, []string{"Red", ""}},
		{"pattern", rule(String, func(r *Rule) { r.Pattern = "^a+$" }), []string{"aa"}, []string{"ab", ""}},
		{"any", rule(String, nil), []string{"", "x\x00\n"}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if err := c.rule.Prepare(); err != nil {
				t.Fatal(err)
			}
			for _, v := range c.good {
				if err := c.rule.Check(v); err != nil {
					t.Errorf("%q: %v", v, err)
				}
			}
			for _, v := range c.bad {
				if err := c.rule.Check(v); err == nil {
					t.Errorf("%q is taken", v)
				}
			}
		})
	}
}

func TestRulePrepareRefuses(t *testing.T) {
	for name, r := range map[string]Rule{
		"a bound of a string":        rule(String, func(r *Rule) { r.Min = "1" }),
		"a bound that is no number":  rule(Int, func(r *Rule) { r.Max = "many" }),
		"min above max":              rule(Float, func(r *Rule) { r.Min, r.Max = "2", "1" }),
		"lengths the wrong way":      rule(String, func(r *Rule) { r.MinLength, r.MaxLength = 3, 2 }),
		"a negative length":          rule(String, func(r *Rule) { r.MinLength = -1 }),
		"a pattern that is none":     rule(String, func(r *Rule) { r.Pattern = "(" }),
		"a default out of its rule":  rule(Int, func(r *Rule) { r.Min, r.HasDefault, r.Default = "1", true, "0" }),
		"a name that is none":        {Name: "a b"},
		"a default that is no value": rule(Bool, func(r *Rule) { r.HasDefault = true }),
	} {
		if err := r.Prepare(); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestCheckInputs(t *testing.T) {
	u := Unit{Name: "u", In: []Rule{
		{Name: "b", Kind: Int, HasDefault: true, Default: "7"}, {Name: "a", Required: true}, {Name: "c"},
	}}
	if err := u.ReadyRules(); err != nil {
		t.Fatal(err)
	}
	got, err := u.CheckInputs(Values{{"a", "1"}})
	if err != nil || !reflect.DeepEqual(got, Values{{"a", "1"}, {"b", "7"}}) {
		t.Errorf("defaults: %v, %v", got, err)
	}
	for text, in := range map[string]Values{
		"input a is missing":                         {{"b", "1"}},
		"not a whole number":                         {{"a", "1"}, {"b", "x"}},
		"input aa is not declared: did you mean a?":  {{"a", "1"}, {"aa", "x"}},
		`input \x1b is not declared: did you mean a`: {{"\x1b", ""}, {"a", "1"}},
	} {
		if _, err := u.CheckInputs(in); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v: %v, want %q", in, err, text)
		}
	}
	if out, err := u.CheckOutputs(Values{{"anything", "1"}}); err != nil || len(out) != 1 {
		t.Errorf("a unit that declares no output allows any: %v", err)
	}
}

func TestReadyRulesRefuses(t *testing.T) {
	for name, u := range map[string]Unit{
		"a reserved input":          {In: []Rule{{Name: "set.x"}}},
		"a reserved output":         {Out: []Rule{{Name: "status"}}},
		"an input declared twice":   {In: []Rule{{Name: "a"}, {Name: "a"}}},
		"a context key with a line": {Context: []string{"a\nb"}},
		"an empty context key":      {Context: []string{""}},
		"a backoff of nothing":      {Retry: Retry{Backoff: math.NaN()}},
		"an endless backoff":        {Retry: Retry{Backoff: math.Inf(1)}},
		"a jitter over all":         {Retry: Retry{Jitter: 1.5}},
		"a jitter of nothing":       {Retry: Retry{Jitter: math.NaN()}},
		"retries without end":       {Retry: Retry{Retries: 1 << 30}},
		"a step of centuries":       {Timeout: 1 << 62},
		"a negative step":           {Cleanup: -1},
		"a negative interval":       {Retry: Retry{Interval: -1}},
	} {
		if err := u.ReadyRules(); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestRetryWait(t *testing.T) {
	r := Retry{Interval: 2 * time.Second, Backoff: 2, Jitter: 0.5}
	for n, want := range map[int]time.Duration{1: 2 * time.Second, 2: 4 * time.Second, 4: 16 * time.Second, 1000: 24 * time.Hour} {
		if got := r.Wait(n, 0); got != want {
			t.Errorf("wait %d: %s, want %s", n, got, want)
		}
	}
	if got := r.Wait(1, 0.5); got != 2500*time.Millisecond {
		t.Errorf("jitter: %s", got)
	}
	r = Retry{Interval: time.Second}
	if got := r.Wait(1000, 0.9); got != time.Second {
		t.Errorf("constant: %s", got)
	}
	for range 1000 { // whatever a manifest may say, the wait is a wait
		r = Retry{Interval: time.Duration(rand.Int64N(int64(LongestStep))), Backoff: 100 * rand.Float64(), Jitter: rand.Float64()}
		if got := r.Wait(rand.IntN(MaxRetries)+1, rand.Float64()); got < 0 || got > longestWait {
			t.Fatalf("%+v waits %s", r, got)
		}
	}
}

func sampleUnit() Unit {
	u := Unit{
		Name: "clean", Retry: Retry{Retries: 3, Interval: time.Second, Backoff: 1.5, Jitter: 0.1}, Prepare: time.Minute,
		Timeout: 90 * time.Second, Cleanup: time.Second, Idempotent: true, Fresh: true, Context: []string{"k1", "k2"}, Version: 4,
		In: []Rule{{
			Name: "n", Kind: Int, Required: true, Min: "1", Max: "9", Description: "how many = of\nthem\\",
		}, {Name: "n.m", HasDefault: true, Enum: []string{"", "x", "y"}, MaxLength: 5, Pattern: "^.*$"}},
		Out: []Rule{{Name: "o", Kind: Path, MinLength: 1}},
	}
	if err := u.ReadyRules(); err != nil {
		panic(err)
	}
	return u
}

func TestUnitTextRoundTrip(t *testing.T) {
	u := sampleUnit()
	text := string(u.AppendText(nil))
	back, err := ParseUnit(text)
	if err != nil {
		t.Fatal(err)
	}
	if again := string(back.AppendText(nil)); again != text {
		t.Errorf("written again:\n%s\nwas:\n%s", again, text)
	}
	for i := range u.In {
		u.In[i].pattern, back.In[i].pattern = nil, nil
	}
	if !reflect.DeepEqual(u, back) {
		t.Errorf("read back:\n%+v\nwas:\n%+v", back, u)
	}
}

// Whatever text is taken as a unit writes a text that is taken as the same unit.
func FuzzUnitText(f *testing.F) {
	u := sampleUnit()
	f.Add(string(u.AppendText(nil)))
	f.Add("name=a")
	f.Add("backoff=NaN\nname=a")
	f.Add("context=a\\nb\nname=a")
	f.Add("in.x:enum.0000=a\nin.x:enum.0001=b\nname=a")
	f.Add("in.:type=int\nname=a")
	f.Fuzz(func(t *testing.T, text string) {
		u, err := ParseUnit(text)
		if err != nil {
			return
		}
		first := string(u.AppendText(nil))
		again, err := ParseUnit(first)
		if err != nil {
			t.Fatalf("%q writes %q, which is refused: %v", text, first, err)
		}
		if second := string(again.AppendText(nil)); second != first {
			t.Fatalf("%q, then %q", first, second)
		}
		if w := u.Retry.Wait(3, 0.5); w < 0 {
			t.Fatalf("%q waits %s", text, w)
		}
		_, _ = u.CheckInputs(Values{{"x", "1"}})
	})
}

func FuzzValues(f *testing.F) {
	for _, seed := range []string{"", "a=1", "a=1\nb=\\e\\n\\\\", "b=1\na=1", "a=\na=", "=x", "a", "a=\\x", "a=b=c", "é=\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := ParseValues(text)
		if err != nil {
			return
		}
		if back := string(v.AppendText(nil)); back != text {
			t.Fatalf("%q writes back %q", text, back)
		}
		for _, e := range v {
			if got, ok := v.Get(e.Name); !ok || got != e.Value {
				t.Fatalf("%q: %q is %q, %v", text, e.Name, got, ok)
			}
		}
	})
}

func FuzzEscape(f *testing.F) {
	f.Add("a\\n=\n\\")
	f.Fuzz(func(t *testing.T, s string) {
		escaped := string(AppendEscaped(nil, s))
		if strings.ContainsAny(escaped, "=\n") {
			t.Fatalf("%q escapes to %q", s, escaped)
		}
		if back, err := Unescape(escaped); err != nil || back != s {
			t.Fatalf("%q: %q, %v", s, back, err)
		}
		if back, err := Unescape(s); err == nil && string(AppendEscaped(nil, back)) != s {
			t.Fatalf("%q is taken as %q", s, back)
		}
	})
}

func TestNames(t *testing.T) {
	long := strings.Repeat("a", 64)
	checks := map[string]struct {
		check     func(string) error
		good, bad []string
	}{
		"type": {CheckType, []string{"a", "A_b.c-1", long}, []string{"", "a b", "a/b", "ä", long + "a", "a:b"}},
		"id":   {CheckID, []string{"a", "A:1_.-", long + long}, []string{"", "a b", "a\n", long + long + "a"}},
		"name": {CheckName, []string{"a", "0a_.-z", "a.b", long}, []string{"", "A", ".a", "-a", "_a", "a..b", long + "a", "../a"}},
		"key":  {CheckKey, []string{"a", "A.b-c_1", long + long}, []string{"", "a=b", "a\n", "a b", long + long + "a"}},
	}
	for name, c := range checks {
		for _, s := range c.good {
			if err := c.check(s); err != nil {
				t.Errorf("%s %q: %v", name, s, err)
			}
		}
		for _, s := range c.bad {
			if err := c.check(s); err == nil {
				t.Errorf("%s %q is taken", name, s)
			} else if Printable(err.Error()) != err.Error() {
				t.Errorf("%s %q: the error is not fit for a screen: %q", name, s, err)
			}
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"clean", "fetch", "transform"}
	for name, want := range map[string]string{
		"claen": "clean", "cleam": "clean", "fetsch": "fetch", "transfrom": "transform", "zzzzz": "", "": "", "a": "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("nearest to %q: %q, want %q", name, got, want)
		}
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain äöü 漢": "plain äöü 漢", "\x1b[31mred": `\x1b[31mred`, "a\nb": `a\nb`, "\u202egpj.exe": `\u202egpj.exe`,
		"\xff": `\xff`, "�": "�", "\x00": `\x00`, "": "",
	} {
		if got := Printable(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestReserved(t *testing.T) {
	for _, name := range []string{"type", "task_id", "set.x", "in.a", "s.k", "ctx.", "error"} {
		if !Reserved(name) {
			t.Errorf("%s is not reserved", name)
		}
	}
	for _, name := range []string{"output_count", "next_batch", "settle", "input", "x.set.y"} {
		if Reserved(name) {
			t.Errorf("%s is reserved", name)
		}
	}
}

func TestNewValues(t *testing.T) {
	list := []Value{{"b", "2"}, {"a", "1"}}
	v, err := NewValues(list)
	if err != nil || v[0].Name != "a" || list[0].Name != "b" || v.Size() != 4 {
		t.Errorf("%v, %v; the list it was made of is %v", v, err, list)
	}
	if _, err := NewValues([]Value{{"a", "1"}, {"a", "1"}}); err == nil {
		t.Error("a name stands twice")
	}
	if _, ok := v.Get("c"); ok {
		t.Error("c is there")
	}
	if h, want := v.Hash(), "sha256:55c420c0f44ea4c6c84414bc15c0a2923ce2b03ae1e907fbcf20d131d735faff"; h != want {
		t.Errorf("hash %s, want %s", h, want)
	}
}
