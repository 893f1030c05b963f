package mission

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"apollo11/engine/task"
)

func mustParse(t testing.TB, file, text string) *Mission {
	t.Helper()
	m, err := Parse(file, []byte(text))
	if err != nil {
		t.Fatalf("%s:\n%v", text, err)
	}
	return m
}

func mustRead(t testing.TB, file string) *Mission {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return mustParse(t, file, string(text))
}

// fullTOML and fullYAML say the same, with every key there is.
const fullTOML = `name = "full"
on_failure = "continue"
[params.year]
type = "int"
default = 2_012
min = 0x76c
max = 2100
enum = [2012, 2013]
description = "which \"one\"\tof\nthem"
[params.since]
type = "time"
default = 2012-01-01T00:00:00Z
[params.share]
type = "float"
default = 0.50
[params.dry]
type = "bool"
default = true
[params.day]
default = 2012-01-01
min_length = 1
max_length = 10
pattern = '^\d'
[[units]]
name = "first"
timeout = 1.5
retries = 0
retry_interval = 0
[[units]]
name = "second"
uses = "other.Type"
deps = ["first"]
weak = ["third"]
when = "params.year > 2000"
expect = 'rows == first.rows'
timeout = "90s"
retries = 3
retry_interval = "1m"
with = { n = 5, text = "${params.year}", "a.b" = true }
offer = { timeout = "90" }
[[units]]
name = "third"
[[triggers]]
cron = "0 2 * * *"
timezone = "Europe/Berlin"
catch_up = "one"
overlap = "queue"
[[triggers]]
after = "other-mission"
[[triggers]]
event = "go"
overlap = "allow"
[[triggers]]
file = "incoming/*.csv"
[[triggers]]
state = "next_batch"
[[triggers]]
start = true
`

const fullYAML = `
triggers:
  - {cron: "0 2 * * *", timezone: Europe/Berlin, catch_up: one, overlap: queue}
  - after: other-mission
  - {event: go, overlap: allow}
  - file: incoming/*.csv
  - state: next_batch
  - start: true
name: full
on_failure: continue
params:
  share: {type: float, default: 0.5}
  year:
    type: int
    default: 2012
    min: 1900
    max: 2100
    enum: [2012, 2013]
    description: "which \"one\"\tof\nthem"
  since: {type: time, default: 2012-01-01T00:00:00Z}
  dry: {type: bool, default: True}
  day: {default: 2012-01-01, min_length: 1, max_length: 10, pattern: '^\d'}
units:
  - name: first
    timeout: 1500ms
    retries: 0
    retry_interval: 0s
  - name: second
    uses: other.Type
    deps: [first]
    weak:
      - third
    when: params.year > 2000
    expect: rows == first.rows
    timeout: 90
    retries: 3
    retry_interval: 60
    with:
      text: ${params.year}
      n: 5
      a.b: true
    offer: {timeout: "90"}
  - {name: third, uses: third, deps: []}
`

func TestBothLanguagesSayTheSame(t *testing.T) {
	a, b := mustParse(t, "a.toml", fullTOML), mustParse(t, "b.yaml", fullYAML)
	if a.Spec() != b.Spec() {
		t.Errorf("%s\n%s", a.Spec(), b.Spec())
	}
	if a.Hash() != b.Hash() {
		t.Error("hashes differ")
	}
	crlf := mustParse(t, "c.toml", "\ufeff"+strings.ReplaceAll(fullTOML, "\n", "\r\n"))
	if crlf.Hash() != a.Hash() {
		t.Errorf("CRLF and a BOM make another mission:\n%s", crlf.Spec())
	}
}

// The hash stands in journals: it must not change.
func TestHashIsStable(t *testing.T) {
	const want = "sha256:fc4fe97b73e8b3c9261d5d725a80bf5b2eb4e0f23819a496316e6ab68e7fee1f"
	if got := mustParse(t, "a.toml", fullTOML).Hash(); got != want {
		t.Errorf("%s", got)
	}
}

func TestSpecReadsBack(t *testing.T) {
	a := mustParse(t, "a.toml", fullTOML)
	b := mustParse(t, "b.toml", a.Spec())
	if a.Spec() != b.Spec() {
		t.Errorf("%s\n%s", a.Spec(), b.Spec())
	}
	u := b.Units[1]
	if u.Timeout != 90*time.Second || u.Retries != 3 || u.RetryInterval != time.Minute || u.Uses != "other.Type" || u.When == "" || u.Expect == "" {
		t.Errorf("%+v", u)
	}
	if got := string(u.With.AppendText(nil)); got != "a.b=true\nn=5\ntext=${params.year}" {
		t.Errorf("%q", got)
	}
	if third := b.Units[2]; third.Retries != task.Unset || third.RetryInterval != Inherit || third.Timeout != 0 || third.Uses != "third" {
		t.Errorf("%+v", third)
	}
	if first := b.Units[0]; first.Retries != 0 || first.RetryInterval != 0 || first.Timeout != 1500*time.Millisecond {
		t.Errorf("%+v", first)
	}
	if tr := b.Triggers[0]; tr != (Trigger{Cron, "0 2 * * *", "Europe/Berlin", CatchOne, Queue}) {
		t.Errorf("%+v", tr)
	}
	if tr := b.Triggers[5]; tr != (Trigger{Kind: Start}) {
		t.Errorf("%+v", tr)
	}
}

// What a trigger does while a run is on, if it does not say: what brings
// something of its own waits. The canonical text says it in full, so that a
// mission in an old journal stays what it was.
func TestOverlapUnsaid(t *testing.T) {
	said := map[Overlap]string{Skip: "skip", Queue: "queue", Allow: "allow"}
	for line, want := range map[string]Overlap{
		"cron = '0 2 * * *'": Skip, "after = 'other'": Skip, "state = 'k'": Skip, "start = true": Skip,
		"file = 'in/*.csv'": Queue, "event = 'go'": Queue,
	} {
		text := "name = 'm'\n[[units]]\nname = 'u'\n[[triggers]]\n" + line + "\n"
		unsaid := mustParse(t, "m.toml", text)
		if got := unsaid.Triggers[0].Overlap; got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
		for overlap, word := range said {
			m := mustParse(t, "m.toml", text+"overlap = '"+word+"'\n")
			if got := m.Triggers[0].Overlap; got != overlap {
				t.Errorf("%s: said %s, got %s", line, word, got)
			}
			if same := m.Hash() == unsaid.Hash(); same != (overlap == want) {
				t.Errorf("%s: the hash of %s and of what is unsaid is the same: %t", line, word, same)
			}
			back, err := ParseSpec(m.Spec())
			if err != nil || back.Triggers[0].Overlap != overlap || back.Hash() != m.Hash() {
				t.Errorf("%s: %s read back as %v, %v", line, word, back, err)
			}
		}
	}
	_, err := Parse("m.toml", []byte("[[units]]\nname = 'u'\n[[triggers]]\nevent = 'go'\noverlp = 'skip'\n"))
	if err == nil || !strings.Contains(err.Error(), "overlap") {
		t.Errorf("a slip in the key: %v", err)
	}
}

// Each edit of the mission is another mission.
func TestHashTellsThemApart(t *testing.T) {
	seen := map[string]string{mustParse(t, "a.toml", fullTOML).Hash(): "the original"}
	for _, edit := range [][2]string{
		{`"full"`, `"fill"`}, {`"continue"`, `"stop"`}, {"2_012", "2013"}, {`type = "float"`, `type = "string"`},
		{`"other.Type"`, `"another"`}, {`deps = ["first"]`, ""}, {`weak = ["third"]`, ""}, {"> 2000", "> 2001"},
		{"rows ==", "rows !="}, {`"90s"`, `"91s"`}, {"retries = 3", "retries = 4"}, {`"1m"`, `"2m"`}, {"n = 5", "n = 6"},
		{`{ timeout = "90" }`, `{ timeout = "91" }`}, {"0 2", "0 3"}, {"Berlin", "Paris"}, {`"one"`, `"all"`},
		{`"queue"`, `"skip"`}, {"retries = 0\n", ""}, {"retry_interval = 0\n", ""}, {"[[triggers]]\nstart = true\n", ""},
	} {
		text := strings.Replace(fullTOML, edit[0], edit[1], 1)
		if text == fullTOML {
			t.Fatalf("%q is not there", edit[0])
		}
		hash := mustParse(t, "a.toml", text).Hash()
		if other := seen[hash]; other != "" {
			t.Errorf("%q is as %s", edit, other)
		}
		seen[hash] = fmt.Sprintf("%q", edit)
	}
}

func TestDocumentForms(t *testing.T) {
	m := mustRead(t, "testdata/document-004/config/pipeline.yaml")
	if m.Name != "pipeline" || len(m.Units) != 3 {
		t.Fatalf("%+v", m)
	}
	if u := m.Units[0]; u.Name != "fetch_data" || u.Uses != "fetch_data" || u.Timeout != 30*time.Second || u.Retries != 2 || len(u.Deps) != 0 {
		t.Errorf("%+v", u)
	}
	if u := m.Units[2]; u.Retries != 0 || len(u.Deps) != 1 || u.Deps[0] != "clean_data" {
		t.Errorf("%+v", u)
	}
	chain := mustRead(t, "testdata/document-003/config.yaml")
	if chain.Name != "config" || len(chain.Units) != 2 {
		t.Fatalf("%+v", chain)
	}
	fetch, process := chain.Units[0], chain.Units[1]
	if fetch.Timeout != 30*time.Second || string(fetch.With.AppendText(nil)) != "source=internal-api" || string(fetch.Offer.AppendText(nil)) != "timeout=30" {
		t.Errorf("%+v", fetch)
	}
	if len(process.Deps) != 1 || process.Deps[0] != "fetch_data" || string(process.With.AppendText(nil)) != "batch_size=500\nrule=deduplicate" {
		t.Errorf("%+v", process)
	}
	same := mustParse(t, "config.toml", `task_order = ["fetch_data", "process_data"]
[fetch_data]
source = "internal-api"
timeout = 30
[process_data]
rule = "deduplicate"
batch_size = 500
`)
	if same.Hash() != chain.Hash() {
		t.Errorf("%s\n%s", same.Spec(), chain.Spec())
	}
}

func TestParseFaults(t *testing.T) {
	const u = "[[units]]\nname = 'a'\n"
	tests := []struct{ text, want string }{
		{"", "m.toml:1:1: no units: a mission has at least one, [[units]] with a name"},
		{"nmae = 'x'\n" + u, "m.toml:1:1: nmae: unknown key: did you mean name?"},
		{u + "dep = ['b']", "m.toml:3:1: unit a: dep: unknown key: did you mean deps?"},
		{u + "deps = 'b'", `m.toml:3:8: unit a: deps: is "b", want a list of texts, such as ["a", "b"]`},
		{u + "deps = ['b', 3]", "m.toml:3:14: unit a: deps: 3 in the list, want a text"},
		{u + "deps = ['B c']", `m.toml:3:9: unit a: deps: name "B c": want [a-z0-9][a-z0-9_.-]{0,63}, no two dots in a row`},
		{u + "timeout = '30 s'", `m.toml:3:11: unit a: timeout: is "30 s", want a duration such as "30s", or a number of seconds, from 1ms to 10000h0m0s`},
		{u + "timeout = 0", `m.toml:3:11: unit a: timeout: is 0, want a duration such as "30s", or a number of seconds, from 1ms to 10000h0m0s`},
		{u + "timeout = 1e300", `m.toml:3:11: unit a: timeout: is 1e+300, want a duration such as "30s", or a number of seconds, from 1ms to 10000h0m0s`},
		{u + "timeout = nan", `m.toml:3:11: unit a: timeout: is NaN, want a duration such as "30s", or a number of seconds, from 1ms to 10000h0m0s`},
		{u + "retries = 1001", "m.toml:3:11: unit a: retries: is 1001, want a whole number from 0 to 1000"},
		{u + "retries = 1.0", "m.toml:3:11: unit a: retries: is 1, want a whole number from 0 to 1000"},
		{u + "with = { x = [1] }", "m.toml:3:14: unit a: with.x: is a list of 1, want a plain value"},
		{u + "with = { 'x y' = 1 }", `m.toml:3:10: unit a: with: key "x y": want 1 to 128 of A-Z a-z 0-9 _ . -`},
		{u + "with = 5", "m.toml:3:8: unit a: with: is 5, want a table of inputs: with = { NAME = VALUE }"},
		{u + "with = { x = 1 }\noffer = { x = 2 }", "m.toml:4:1: unit a: offer.x: stands in with too"},
		{u + "when = ' '", "m.toml:3:8: unit a: when: is empty: leave it out"},
		{u + "uses = 'a b'", `m.toml:3:8: unit a: uses: task type "a b": want 1 to 64 of A-Z a-z 0-9 _ . -`},
		{"[[units]]\nuses = 'a'", "m.toml:1:1: unit 1: name is missing"},
		{"[[units]]\nname = 7", "m.toml:2:8: unit 1: name: is 7, want a text"},
		{"[[units]]\nname = 'A'", `m.toml:2:8: unit A: name: name "A": want [a-z0-9][a-z0-9_.-]{0,63}, no two dots in a row`},
		{"units = ['a']", `m.toml:1:10: unit 1: is "a", want a table`},
		{"units = 'a'", `m.toml:1:9: units: is "a", want a list of tables`},
		{"name = 'x y'\n" + u, `m.toml:1:8: name "x y": want [a-z0-9][a-z0-9_.-]{0,63}, no two dots in a row`},
		{"on_failure = 'abort'\n" + u, `m.toml:1:14: on_failure: is "abort", want stop, continue`},
		{"template = 1\n" + u, "m.toml:1:12: template: is 1, want true or false"},
		{"[params.x]\ntyp = 'int'\n" + u, "m.toml:2:1: params.x: typ: unknown key: did you mean type?"},
		{"[params.x]\ntype = 'integer'\n" + u, `m.toml:2:8: params.x: type: unknown type "integer": want string, int, float, bool, time, path`},
		{"[params.x]\ntype = 'path'\n" + u, `m.toml:2:8: params.x: type: unknown type "path": want string, int, float, bool, time`},
		{"[params.x]\ntype = 'int'\ndefault = 'y'\n" + u, `m.toml:1:9: params.x = "y": not a whole number of 64 bits`},
		{"[params.x]\nmin = 3\n" + u, "m.toml:1:9: params.x: min has no meaning for a string"},
		{"[params.x]\npattern = '('\n" + u, "m.toml:1:9: params.x: pattern: error parsing regexp: missing closing ): `(`"},
		{"params.x = 3\n" + u, "m.toml:1:12: params.x: is 3, want a table"},
		{u + "[[triggers]]\ncorn = '* * * * *'", "m.toml:3:1: trigger 1: has 0 of cron, after, event, file, state, start: want one\nm.toml:4:1: trigger 1: corn: unknown key: did you mean cron?"},
		{u + "[[triggers]]\ncron = 'x'\nevent = 'y'", "m.toml:3:1: trigger 1: has 2 of cron, after, event, file, state, start: want one"},
		{u + "[[triggers]]\ncron = ''", "m.toml:4:8: trigger 1: cron: is empty"},
		{u + "[[triggers]]\ncron = '0 0 30 2 *'", `m.toml:4:8: trigger 1: cron: "0 0 30 2 *" never comes: no such day is in these months`},
		{u + "[[triggers]]\ncron = '@daily'\ntimezone = 'Berlin'", `m.toml:5:12: trigger 1: timezone: there is no time zone "Berlin": want a name such as Europe/Berlin or UTC; left out: the controller's`},
		{u + "[[triggers]]\nevent = 'a b'", `m.toml:4:9: trigger 1: event: key "a b": want 1 to 128 of A-Z a-z 0-9 _ . -`},
		{u + "[[triggers]]\nfile = 'a[b'", `m.toml:4:8: trigger 1: file: "a[b" is no pattern of file names: a [ without its ]?`},
		{u + "[[triggers]]\nstart = false", "m.toml:4:9: trigger 1: start: only start = true means something"},
		{u + "[[triggers]]\nevent = 'e'\ncatch_up = 'one'", "m.toml:5:1: trigger 1: catch_up: has no meaning without cron"},
		{u + "[[triggers]]\ncron = '@daily'\noverlap = 'kill'", `m.toml:5:11: trigger 1: overlap: is "kill", want skip, queue, allow`},
		{"a = \n" + u, "m.toml:1:5: expected value but found '\\n' instead"},
		{u + "name = 'b'", "m.toml:3:1: Key 'units.name' has already been defined."},
		{"name = 'x'\nname = 'y'\n" + u, "m.toml:2:1: Key 'name' has already been defined."},
		{"\xff\xfex = 1", "m.toml:1:1: is no UTF-8 text from here on: save the file as UTF-8"},
		{"# \ufffd\nx = \"\xe9\"", "m.toml:2:6: is no UTF-8 text from here on: save the file as UTF-8"},
		{"x = " + strings.Repeat("[", 17) + strings.Repeat("]", 17), "m.toml:1:21: nests deeper than 16"},
		{strings.Repeat("x.", 17) + "x = 1", "m.toml:1:34: nests deeper than 16"},
		{"task_order = ['a', 1]\nb = 2", "m.toml:1:20: task_order: 1 in the list, want a name\nm.toml:2:1: b: stands neither in task_order nor is it known here: did you mean a?"},
		{"task_order = ['a']\na = 2", "m.toml:2:5: a: is 2, want a table of inputs"},
		{"task_order = ['a']\n[a]\ntimeout = 'x'", `m.toml:3:11: unit a: timeout: is "x", want a duration such as "30s", or a number of seconds, from 1ms to 10000h0m0s`},
		{"task_order = 'a'", `m.toml:1:14: task_order: is "a", want a list of names`},
	}
	for _, tt := range tests {
		if _, err := Parse("m.toml", []byte(tt.text)); err == nil || err.Error() != tt.want {
			t.Errorf("%s\n got %v\nwant %s", tt.text, err, tt.want)
		}
	}
}

func TestYAMLFaults(t *testing.T) {
	const u = "units:\n  - name: a\n"
	tests := []struct{ text, want string }{
		{"", "m.yaml:1:1: no units: a mission has at least one, [[units]] with a name"},
		{u + "    dep: [b]", "m.yaml:3:5: unit a: dep: unknown key: did you mean deps?"},
		{u + "    deps: b", `m.yaml:3:11: unit a: deps: is "b", want a list of texts, such as ["a", "b"]`},
		{u + "    deps:", `m.yaml:3:10: unit a: deps: is empty, want a list of texts, such as ["a", "b"]`},
		{u + "    name: b", "m.yaml:3:5: name stands here twice: first in line 2"},
		{u + "    timeout: 99999999999999999999", "m.yaml:3:14: unit a: timeout: is 1e+20, want a duration such as \"30s\", or a number of seconds, from 1ms to 10000h0m0s"},
		{u + "    with: {x: 0xffffffffffffffff}", `m.yaml:3:15: "0xffffffffffffffff": want a text, a number of 64 bits, true or false, or a time`},
		{u + "    with: {x: !!binary aGk=}", `m.yaml:3:15: "aGk=": want a text, a number of 64 bits, true or false, or a time`},
		{u + "    with: {x: !foo y}", `m.yaml:3:15: "y": want a text, a number of 64 bits, true or false, or a time`},
		{"a: &x 1\nb: *x\n" + u, "m.yaml:2:4: an alias (*x): write the value itself"},
		{u + "    <<: {deps: [b]}", "m.yaml:3:5: a merge (<<): write the entries themselves"},
		{u + "    ? [a]\n    : b", "m.yaml:3:7: a key is a plain text"},
		{u + "---\nname: b", "m.yaml:3:1: a second document: a file is one mission"},
		{"units: [", "m.yaml:1: what begins here is no YAML: did not find expected node content"},
		{u + "    deps: [b\n  - name: b", "m.yaml:3: what begins here is no YAML: did not find expected ',' or ']'"},
		{u + "  - name: b: c", "m.yaml:3: what begins here is no YAML: mapping values are not allowed in this context"},
		{u + "   uses: b", "m.yaml:2: what begins here is no YAML: did not find expected '-' indicator"},
		{" " + u + "- a", "m.yaml:3: what begins here is no YAML: did not find expected <document start>"},
		{u + "    when: \"x", "m.yaml:3: what begins here is no YAML: found unexpected end of stream"},
		{"- a", "m.yaml:1:1: is a list of 1, want a table"},
		{"x: " + strings.Repeat("[", 17) + strings.Repeat("]", 17) + "\n" + u, "m.yaml:1:20: nests deeper than 16"},
	}
	for _, tt := range tests {
		if _, err := Parse("m.yaml", []byte(tt.text)); err == nil || err.Error() != tt.want {
			t.Errorf("%s\n got %v\nwant %s", tt.text, err, tt.want)
		}
	}
}

func TestSeveralFaultsAtOnceByPlace(t *testing.T) {
	_, err := Parse("m.toml", []byte("on_failure = 'x'\n[[units]]\nname = 'a'\nretries = -1\ntimeout = 'x'\n[[units]]\nnaem = 'b'\n"))
	faults, ok := err.(Faults)
	if !ok || len(faults) != 5 {
		t.Fatalf("%v", err)
	}
	for i, line := range []int{1, 4, 5, 6, 7} {
		if faults[i].Line != line || faults[i].Column == 0 || faults[i].File != "m.toml" {
			t.Errorf("%d: %v", i, faults[i])
		}
	}
}

func TestBounds(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"file":   {strings.Repeat("#", MaxFile+1), "a mission file has at most"},
		"faults": {"[[units]]\nname = 'a'\n" + strings.Repeat("[[units]]\n", 1000), "unit 2: name is missing"},
		"units":  {strings.Repeat("[[units]]\nname='a'\n", mostUnits+1), "at most 20000 are taken"},
		"text":   {"[[units]]\nname = 'a'\nwhen = '" + strings.Repeat("x", longestText+1) + "'", "at most 8192 are taken"},
		"key":    {strings.Repeat("k", 900_000) + " = 1", "unknown key"},
		"tables": {strings.Repeat("[a]\n", 200_000), "already been defined"},
		"dots":   {strings.Repeat("a.", 400_000) + "a = 1", "nests deeper"},
		"open":   {"x = " + strings.Repeat("[", 900_000), "nests deeper"},
		"inline": {"x = " + strings.Repeat("{a=", 300_000), "nests deeper"},
	} {
		start := time.Now()
		_, err := Parse("m.toml", []byte(tt.text))
		if err == nil || !strings.Contains(err.Error(), strings.Replace(tt.want, "unknown key", "…", 1)) {
			t.Errorf("%s: %.300v", name, err)
		}
		if faults := err.(Faults); len(faults) > mostFaults || len(err.Error()) > mostFaults*(longestProblem+100) {
			t.Errorf("%s: %d faults, %d bytes", name, len(faults), len(err.Error()))
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s: took %v", name, took)
		}
	}
	for name, text := range map[string]string{
		"open": "x: " + strings.Repeat("[", 500_000), "maps": "x: " + strings.Repeat("{a: ", 200_000),
		"indent": strings.Repeat("- ", 300_000), "aliases": "a: &a [x]\nb: [" + strings.Repeat("*a, ", 200_000) + "]",
		"comments": strings.Repeat("# x\n", 200_000), "keys": strings.Repeat("? ", 300_000),
	} {
		start := time.Now()
		if _, err := Parse("m.yaml", []byte(text)); err == nil {
			t.Errorf("%s: taken", name)
		} else if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s: took %v", name, took)
		}
	}
}

// What is right but unusual, large or all on one line, does not take long either.
func TestLargeFiles(t *testing.T) {
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	c := contracts(t)
	for name, text := range map[string]string{
		"m.toml: deps":       "[[units]]\nname='counts'\ndeps = [" + many(90_000, "'u%d',") + "]",
		"m.toml: same deps":  "[[units]]\nname='counts'\n[[units]]\nname='x'\ndeps = [" + strings.Repeat("'counts',", 90_000) + "]",
		"m.toml: inputs":     "[[units]]\nname='counts'\nwith = {" + many(70_000, "i%d = 1,") + "x=1}",
		"m.toml: one text":   "[[units]]\nname='counts'\nwith = {x = '" + strings.Repeat("$${", 43_000) + "'}",
		"m.toml: references": "[[units]]\nname='plain'\nwith = {text = '" + many(6_000, "${state.k%d:-}") + "'}",
		"m.toml: a line":     "units = [" + many(15_000, "{name='u%d',uses='counts',deps=['u0']},") + "]",
		"m.toml: task_order": "task_order = [" + many(18_000, "'t%d',") + "]\n" + many(18_000, "t%d = {a = 1}\n"),
		"m.toml: unknown":    many(60_000, "k%d = 1\n"),
		"m.yaml: a line":     "units: [" + many(15_000, "{name: u%d, uses: counts, deps: [u0]},") + "]",
		"m.yaml: deps":       "units:\n- {name: counts, deps: [" + many(90_000, "u%d,") + "]}",
		"m.yaml: keys":       many(60_000, "k%d: 1\n"),
	} {
		if len(text) > MaxFile {
			t.Fatalf("%s: %d bytes", name, len(text))
		}
		start := time.Now()
		file, _, _ := strings.Cut(name, ":")
		if m, err := Parse(file, []byte(text)); err == nil {
			m.Check(c, nil)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s: took %v", name, took)
		} else if testing.Verbose() {
			t.Logf("%s: %v", name, took)
		}
	}
}

func TestWords(t *testing.T) {
	for got, want := range map[string]string{
		Continue.String(): "continue", After.String(): "after", CatchAll.String(): "all", Allow.String(): "allow",
		Overlap(9).String(): "mission.Overlap(9)",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
