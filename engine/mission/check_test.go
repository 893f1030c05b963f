package mission

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"apollo11/engine/task"
)

// contracts are what the tests' missions are held against.
func contracts(t testing.TB) Contracts {
	t.Helper()
	r := func(name string, kind task.Kind, more ...func(*task.Rule)) task.Rule {
		rule := task.Rule{Name: name, Kind: kind}
		for _, m := range more {
			m(&rule)
		}
		return rule
	}
	required := func(r *task.Rule) { r.Required = true }
	units := []task.Unit{
		{Name: "fetch", In: []task.Rule{
			r("url", task.String, required, func(r *task.Rule) { r.Pattern = "^https?://" }),
			r("n", task.Int, func(r *task.Rule) { r.Min, r.HasDefault, r.Default = "1", true, "5" }), r("share", task.Float),
			r("timeout", task.Int),
		}, Out: []task.Rule{r("rows", task.Int), r("text", task.String), r("dry", task.Bool), r("at", task.Time), r("share", task.Float)}},
		{Name: "plain", In: []task.Rule{r("text", task.String), r("n", task.Int), r("dry", task.Bool), r("at", task.Time)}},
		{Name: "counts", Out: []task.Rule{r("count", task.Int)}},
		{Name: "reads", Context: []string{"total"}},
	}
	for i := range units {
		if err := units[i].ReadyRules(); err != nil {
			t.Fatal(err)
		}
	}
	return Contracts{Units: units, Keys: []Key{{Rule: r("total", task.Int), From: "count"}, {Rule: r("since", task.Time)}}}
}

// fetching is a mission's beginning that is right.
const fetching = `params.year = { type = "int", default = 2012 }
params.word = { type = "string", default = "x" }
[[units]]
name = "a"
uses = "fetch"
with = { url = "https://x" }
[[units]]
name = "b"
uses = "plain"
`

func TestCheckFaults(t *testing.T) {
	const line = "m.toml:10:"
	tests := []struct{ text, want string }{
		{fetching + "deps = ['a', 'c']", line + "14: unit b: deps: there is no unit c in this mission: did you mean a?"},
		{fetching + "weak = ['fetsch']", line + "9: unit b: weak: there is no unit fetsch in this mission"},
		{fetching + "deps = ['a', 'a']", line + "14: unit b: deps: a stands in deps already: take one out"},
		{fetching + "deps = ['a']\nweak = ['a']", "m.toml:11:9: unit b: weak: a stands in deps already: take one out"},
		{fetching + "deps = ['b']", line + "9: unit b: deps: the unit waits for itself: take it out"},
		{fetching + "weak = ['b']", line + "9: unit b: weak: the unit waits for itself: take it out"},
		{fetching + "[[units]]\nname = 'a'\nuses = 'plain'", "m.toml:11:8: unit a: unit 1 of the list has this name too: rename one"},
		{fetching + "[[units]]\nname = 'state'\nuses = 'plain'", "m.toml:11:8: unit state: references need this word: choose another"},
		{fetching + "[[units]]\nname = 'c'\nuses = 'plane'", "m.toml:12:8: unit c: uses: there is no unit plane: did you mean plain?"},
		{fetching + "[[units]]\nname = 'fetsch'", "m.toml:11:8: unit fetsch: uses: there is no unit fetsch: did you mean fetch?"},
		{fetching + "[[units]]\nname = 'c'\nuses = 'fetch'", "m.toml:11:8: unit c: fetch needs the input url, a string: add with = { url = … }"},
		{fetching + "with = { txt = 'x' }", line + "16: unit b: with.txt: plain takes no such input: did you mean text?"},
		{fetching + "with = { zzzzzzz = 'x' }", line + "20: unit b: with.zzzzzzz: plain takes no such input: it has at, dry, n, text"},
		{fetching + "[[units]]\nname = 'counts'\nwith = { zzzzzzz = 'x' }", "m.toml:12:20: unit counts: with.zzzzzzz: counts takes no such input: it has none"},
		{fetching + "with = { n = 'x' }", line + `14: unit b: with.n: "x": not a whole number of 64 bits`},
		{fetching + "[[units]]\nname = 'c'\nuses = 'fetch'\nwith = { url = 'ftp://x', n = 0 }",
			"m.toml:13:16: unit c: with.url: \"ftp://x\": does not match ^https?://\nm.toml:13:31: unit c: with.n: \"0\": below the minimum 1"},

		// references
		{fetching + "with = { text = '${a.rows}' }", line + `17: unit b: with.text: ${a.rows}: a hidden dependency: add deps = ["a"]`},
		{fetching + "deps = ['a']\nwith = { text = '${aa.rows}' }", "m.toml:11:17: unit b: with.text: ${aa.rows}: there is no unit aa in this mission: did you mean a?"},
		{fetching + "deps = ['a']\nwith = { text = '${a.row}' }", "m.toml:11:17: unit b: with.text: ${a.row}: unit fetch has no output row: did you mean rows?"},
		{fetching + "deps = ['a']\nwith = { text = '${a}' }", "m.toml:11:17: unit b: with.text: ${a}: want ${params.NAME}, ${UNIT.OUTPUT} or ${state.KEY}"},
		{fetching + "deps = ['a']\nwith = { text = '${a.rows' }", "m.toml:11:17: unit b: with.text: \"${a.rows\": the } is missing"},
		{fetching + "with = { text = '${b.rows}' }", line + "17: unit b: with.text: ${b.rows}: a unit cannot read its own outputs"},
		{fetching + "with = { text = '${params.yaer}' }", line + "17: unit b: with.text: ${params.yaer}: there is no parameter yaer: did you mean year?"},
		{fetching + "with = { text = '${param.year}' }", line + "17: unit b: with.text: ${param.year}: there is no unit param in this mission: did you mean params?"},
		{fetching + "weak = ['a']\nwith = { text = '${a.rows}' }", "m.toml:11:17: unit b: with.text: ${a.rows}: a is weak and may not be there: write ${a.rows:-VALUE}"},
		{fetching + "[[units]]\nname = 'c'\nuses = 'plain'\ndeps = ['b']\nwith = { text = '${b.x}' }",
			"m.toml:14:17: unit c: with.text: ${b.x}: unit plain declares no outputs: add [out.x] to its manifest"},

		// kinds
		{fetching + "deps = ['a']\nwith = { n = '${a.text}' }", `m.toml:11:14: unit b: with.n: ${a.text} is a string, but this input is an int: [out.text] of unit fetch would have to say type = "int"`},
		{fetching + "with = { n = '${params.word}' }", line + `14: unit b: with.n: ${params.word} is a string, but this input is an int: [params.word] in this file would have to say type = "int"`},
		{fetching + "with = { n = '${state.free}' }", line + `14: unit b: with.n: ${state.free} is a string, but this input is an int: [state."free"] in config.toml would have to say type = "int"`},
		{fetching + "deps = ['a']\nwith = { at = '${a.rows}' }", `m.toml:11:15: unit b: with.at: ${a.rows} is an int, but this input is a time: [out.rows] of unit fetch would have to say type = "time"`},
		{fetching + "deps = ['a']\nwith = { n = '1${a.rows}' }", "m.toml:11:14: unit b: with.n: a text around ${a.rows} is no int: give the reference alone"},
		{fetching + "weak = ['a']\nwith = { n = '${a.rows:-x}' }", `m.toml:11:14: unit b: with.n: ${a.rows}: after the :- stands n = "x": not a whole number of 64 bits`},

		// conditions
		{fetching + "when = 'params.yaer > 1'", line + "8: unit b: when: params.yaer: there is no parameter yaer: did you mean year?"},
		{fetching + "when = 'a.rows > 1'", line + `8: unit b: when: a.rows: a hidden dependency: add deps = ["a"]`},
		{fetching + "when = \"a.status == 'succeeded'\"", line + `8: unit b: when: a.status: a hidden dependency: add deps = ["a"]`},
		{fetching + "weak = ['a']\nwhen = 'a.rows > 1'", "m.toml:11:8: unit b: when: a.rows: a is weak and may not be there: only a.status can be asked"},
		{fetching + "when = 'params.year'", line + "8: unit b: when: expected bool, but got int"},
		{fetching + "when = 'params.word > 5'", line + "8: unit b: when: character 13: invalid operation: > (mismatched types string and int)"},
		{fetching + "when = 'params.year >'", line + "8: unit b: when: character 13: unexpected token EOF"},
		{fetching + "when = 'len(params.word) > 1'", line + "8: unit b: when: \"len(params.word)\": a condition has no functions"},
		{fetching + "when = 'rows > 1'", line + "8: unit b: when: rows: want params.NAME, UNIT.OUTPUT, UNIT.status or state.KEY"},
		{fetching + "[[units]]\nname = 'counts'\nexpect = 'cuont > 1'", "m.toml:12:10: unit counts: expect: cuont: want params.NAME, UNIT.OUTPUT, UNIT.status or state.KEY: did you mean count?"},
		{fetching + "[[units]]\nname = 'count'\nuses = 'plain'\n[[units]]\nname = 'c'\nuses = 'counts'\ndeps = ['count']\nexpect = 'count.status == \"\"'",
			"m.toml:17:10: unit c: expect: count.status: count is an output of this unit as well: give the unit another name"},

		// order
		{fetching + "deps = ['c']\n[[units]]\nname = 'c'\nuses = 'plain'\ndeps = ['d']\n[[units]]\nname = 'd'\nuses = 'plain'\ndeps = ['b', 'a']",
			"m.toml:10:9: unit b: deps: units wait for each other in a ring: b waits for c waits for d waits for b: take one of them out of the other's deps"},
		{fetching + "weak = ['c']\n[[units]]\nname = 'c'\nuses = 'plain'\ndeps = ['d']\n[[units]]\nname = 'd'\nuses = 'plain'\ndeps = ['b']",
			"m.toml:10:9: unit b: weak: c waits for this unit, so it is never there: take it out"},
		{fetching + "[[units]]\nname = 'counts'\n[[units]]\nname = 'reads'\ndeps = ['b']", `m.toml:14:8: unit reads: deps: a hidden dependency: counts changes the state key total, which this unit reads: add deps = ["b", "counts"]`},
		{fetching + "with = { n = '${state.total}' }\n[[units]]\nname = 'counts'", `m.toml:8:8: unit b: deps: a hidden dependency: counts changes the state key total, which this unit reads: add deps = ["counts"]`},
		{fetching + "when = 'state.total > 5'\n[[units]]\nname = 'counts'", `m.toml:8:8: unit b: deps: a hidden dependency: counts changes the state key total, which this unit reads: add deps = ["counts"]`},

		// triggers and parameters
		{fetching + "[params.x]\n[[triggers]]\ncron = '@daily'", "m.toml:10:9: params.x: trigger 1 (cron) cannot give it: add a default\nm.toml:10:9: params.x has no value: give x=VALUE, a string"},
		{"template = true\n" + fetching + "[[triggers]]\nstart = true", "m.toml:11:1: trigger 1: a template is started with parameters: drop the trigger, or template = true"},
		{"name = 'x'\n" + fetching + "[[triggers]]\nafter = 'x'", "m.toml:11:1: trigger 1: the mission would start itself for ever"},
	}
	for _, tt := range tests {
		if _, err := mustParse(t, "m.toml", tt.text).Check(contracts(t), nil); err == nil || err.Error() != tt.want {
			t.Errorf("%s\n got %v\nwant %s", tt.text, err, tt.want)
		}
	}
}

func TestCheckAccepts(t *testing.T) {
	for _, text := range []string{
		fetching,
		fetching + "deps = ['a']\nwith = { n = '${a.rows}', text = 'rows: ${a.rows}, $${plain}', dry = '${a.dry}', at = '${a.at}' }",
		fetching + "weak = ['a']\nwith = { n = '${a.rows:-0}', text = '${a.text:-}' }\nwhen = \"a.status != 'dead' and params.year % 2 == 0\"",
		fetching + "with = { n = '${state.total}', at = '${state.since}', text = '${state.some.key:-none}' }",
		fetching + "offer = { timeout = '30' }", // plain takes no timeout
		fetching + "[[units]]\nname = 'c'\nuses = 'fetch'\nwith = { url = 'https://${params.word}', share = 3, n = '${params.year}' }\noffer = { timeout = '30' }",
		fetching + "[[units]]\nname = 'c'\nuses = 'fetch'\ndeps = ['a']\nwith = { url = 'http://x', share = '${a.rows}' }\nexpect = 'rows == a.rows and share < 1.5 and at >= a.at and not dry'",
		fetching + "[[units]]\nname = 'counts'\n[[units]]\nname = 'reads'\ndeps = ['counts']",
		fetching + "[[units]]\nname = 'counts'\n[[units]]\nname = 'reads'\nweak = ['counts']",
		fetching + "[[units]]\nname = 'counts'\ndeps = ['m']\n[[units]]\nname = 'm'\nuses = 'plain'\ndeps = ['reads']\n[[units]]\nname = 'reads'",
		fetching + "weak = ['c']\n[[units]]\nname = 'c'\nuses = 'plain'\nweak = ['b']", // beside each other
		fetching + "[params.x]\n[params.y]\ndefault = 1\n[[triggers]]\nevent = 'go'",
		// dots and dashes in the names of units
		fetching + "[[units]]\nname = 'a.b-c'\nuses = 'counts'\n[[units]]\nname = 'd'\nuses = 'plain'\ndeps = ['a', 'a.b-c']\nwith = { n = '${a.b-c.count}', text = '${a.rows}' }",
	} {
		m := mustParse(t, "m.toml", text)
		params, err := m.Check(contracts(t), task.Values{{Name: "x", Value: "1"}}[:min(strings.Count(text, "[params.x]"), 1)])
		if err != nil {
			t.Errorf("%s\n%v", text, err)
			continue
		}
		if year, _ := params.Get("year"); year != "2012" {
			t.Errorf("params %v", params)
		}
		if _, err := m.Conditions(contracts(t)); err != nil {
			t.Error(err)
		}
	}
}

func TestParameters(t *testing.T) {
	const text = "[params.year]\ntype = 'int'\nmin = 2000\n[params.url]\ndefault = 'https://x'\n[[units]]\nname = 'f'\nuses = 'fetch'\nwith = { url = '${params.url}', n = '${params.year}' }\n"
	tests := []struct {
		given task.Values
		want  string // of the error, or of the parameters
	}{
		{nil, "m.toml:1:9: params.year has no value: give year=VALUE, an int"},
		{task.Values{{Name: "year", Value: "x"}}, `m.toml:1:9: params.year = "x": not a whole number of 64 bits`},
		{task.Values{{Name: "year", Value: "1999"}}, `m.toml:1:9: params.year = "1999": below the minimum 2000`},
		{task.Values{{Name: "ulr", Value: ""}, {Name: "year", Value: "2012"}}, "m.toml: there is no parameter ulr: did you mean url?"},
		{task.Values{{Name: "url", Value: "ftp://x"}, {Name: "year", Value: "2012"}}, `m.toml:9:16: unit f: with.url: "ftp://x": does not match ^https?://`},
		{task.Values{{Name: "year", Value: "2012"}}, "url=https://x\nyear=2012"},
	}
	m := mustParse(t, "m.toml", text)
	for _, tt := range tests {
		params, err := m.Check(contracts(t), tt.given)
		got := string(params.AppendText(nil))
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%v: %s", tt.given, got)
		}
	}
}

// told are facts for tests, by the text of a reference.
type told map[string]string

func (f told) at(path string) (string, bool)           { v, ok := f[path]; return v, ok }
func (f told) Param(name string) (string, bool)        { return f.at("params." + name) }
func (f told) State(key string) (string, bool)         { return f.at("state." + key) }
func (f told) Output(unit, name string) (string, bool) { return f.at(unit + "." + name) }
func (f told) Status(unit string) string               { return f[unit+".status"] }

func TestInputs(t *testing.T) {
	m := mustParse(t, "m.toml", fetching+`deps = ["a"]
weak = ["w"]
with = { text = "${a.text} of ${params.year}, ${state.some.key:-none}; ${w.rows:-no} rows; $${HOME} $5 }", n = "${a.rows}" }
offer = { dry = true, other = 1 }
[[units]]
name = "w"
uses = "fetch"
with = { url = "https://y" }
`)
	c := contracts(t)
	if _, err := m.Check(c, nil); err != nil {
		t.Fatal(err)
	}
	plain := &c.Units[1]
	facts := told{"a.text": "${a.rows}; $(rm)", "a.rows": "7", "params.year": "2012"}
	in, err := m.Inputs(&m.Units[1], plain, facts)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := in.Get("text"); got != "${a.rows}; $(rm) of 2012, none; no rows; ${HOME} $5 }" {
		t.Errorf("%q", got)
	}
	if got := fmt.Sprint(len(in)); got != "3" {
		t.Errorf("%v", in)
	}
	if dry, _ := in.Get("dry"); dry != "true" {
		t.Error("what is offered was not taken")
	}
	delete(facts, "a.rows")
	if _, err := m.Inputs(&m.Units[1], plain, facts); err == nil || err.Error() != "unit b: input n: ${a.rows} has no value" {
		t.Errorf("%v", err)
	}
	facts["a.rows"], facts["a.text"] = "7", strings.Repeat("x", task.MaxBytes)
	if _, err := m.Inputs(&m.Units[1], plain, facts); err == nil {
		t.Error("too much was taken")
	}
}

func TestConditions(t *testing.T) {
	facts := told{"params.year": "2012", "params.word": "abc", "a.rows": "7", "a.share": "0.5", "a.dry": "true",
		"a.at": "2012-01-01T01:00:00+01:00", "w.status": "dead", "state.total": "10", "state.since": "2012-01-01T00:00:00Z"}
	for text, want := range map[string]bool{
		"params.year > 2000": true,
		"params.year in [2011, 2012] and not (a.rows == 8)": true,
		"a.rows * 2 + 1 == 15 && a.rows - 8 < 0 || false":   true,
		"a.share < a.rows":                true,
		"a.rows / 0 > 1.5":                true,
		"a.rows % 2 == 1":                 true,
		"a.dry ? a.rows > 1 : a.rows < 1": true,
		"a.dry":                           true,
		`params.word matches "^a" and params.word + "d" == "abcd"`: true,
		`params.word contains "z"`:                                 false,
		`w.status == "succeeded"`:                                  false,
		`w.status in ["dead", "failed"]`:                           true,
		"state.total == 10 and state.free == ''":                   true,
		"a.at == state.since":                                      true,
		"a.at < state.since":                                       false,
		`state["free"] == ""`:                                      true,
		"-params.year < 0":                                         true,
		"9223372036854775807 + params.year < 0":                    true, // wraps, but answers
	} {
		m := mustParse(t, "m.toml", fetching+"deps = ['a']\nweak = ['w']\n[[units]]\nname = 'w'\nuses = 'counts'\n")
		m.Units[1].When = text
		list, err := m.Conditions(contracts(t))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := list[1].When.Eval(facts, nil); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
		if _, err := list[1].When.Eval(told{}, nil); err != nil {
			t.Errorf("%s without any values: %v", text, err)
		}
	}
}

func TestExpect(t *testing.T) {
	m := mustParse(t, "m.toml", fetching+"[[units]]\nname = 'c'\nuses = 'counts'\ndeps = ['a']\nexpect = 'count + 1 == a.rows'")
	list, err := m.Conditions(contracts(t))
	if err != nil {
		t.Fatal(err)
	}
	expect := list[2].Expect
	for count, want := range map[string]bool{"6": true, "7": false, "": false} {
		own := task.Values{{Name: "count", Value: count}}
		if got, err := expect.Eval(told{"a.rows": "7"}, own); err != nil || got != want {
			t.Errorf("%q: %v %v", count, got, err)
		}
		if got := string(expect.Values(told{"a.rows": "7"}, own).AppendText(nil)); got != "a.rows=7\ncount="+count {
			t.Errorf("%q", got)
		}
	}
}

func TestWhatConditionsDoNotHave(t *testing.T) {
	m := mustParse(t, "m.toml", fetching+"deps = ['a']")
	for _, text := range []string{
		"filter([1], true) == [1]", "1..1000000 == [1]", "params.year ** 2 > 1", "params.year % 0 == 1", "params.year % params.year == 1",
		"params.word matches params.word", `params.word matches "("`, "let x = 1; x == 1", "params.word | upper() == 'X'", "params['ye' + 'ar'] == 1",
		"a.rows[0] == 1", "params?.year == 1", "(params.year ?? 1) == 1", "nil == 1", "params == 1", "$env.params.year == 1", "{a: 1} == 1",
		"a.rows.x == 1", "a.text[1:2] == ''", "params.year in params.word", "a.at.Unix() > 1", "now() > a.at", "[params.year] == [1]",
		"true; true", strings.Repeat("true and ", mostNodes) + "true", strings.Repeat("(", 4000) + "true" + strings.Repeat(")", 4000) + " and", "#.x == 1",
	} {
		m.Units[1].When = text
		start := time.Now()
		if _, err := m.Conditions(contracts(t)); err == nil {
			t.Errorf("%.60s: taken", text)
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("%.60s: %v", text, took)
		}
	}
}
