package mission

import (
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"apollo11/engine/task"

	"github.com/BurntSushi/toml"
)

// A file that is taken has a canonical text that says the same, and whatever a
// file says, checking and drawing it ends.
func fuzzParse(f *testing.F, file string, seeds ...string) {
	for _, s := range seeds {
		f.Add(s)
	}
	c := contracts(f)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 64<<10 {
			return
		}
		m, err := Parse(file, []byte(text))
		if err != nil {
			faults := err.(Faults)
			if len(faults) == 0 || len(faults) > mostFaults {
				t.Fatalf("%d faults", len(faults))
			}
			for _, one := range faults {
				if one.Line > lineEnds(text)+2 || one.Problem == "" || strings.Contains(one.Error(), "\n") {
					t.Fatalf("%+v", one)
				}
			}
			return
		}
		spec := m.Spec()
		again, err := Parse("again.toml", []byte(spec))
		if len(spec) > MaxFile {
			return
		}
		if err != nil || again.Spec() != spec {
			t.Fatalf("%v\n%s", err, spec)
		}
		if _, err := m.Check(c, nil); err != nil {
			return
		}
		g, err := NewGraph(m)
		if err != nil {
			t.Fatalf("passed the check: %v", err)
		}
		g.Draw(Drawing{Width: 80})
		if _, err := m.Conditions(c); err != nil {
			t.Fatalf("passed the check: %v", err)
		}
	})
}

// lineEnds counts what YAML takes for the end of a line, or more.
func lineEnds(text string) (n int) {
	for _, end := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} {
		n += strings.Count(text, end)
	}
	return n
}

func readSeed(f *testing.F, name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		f.Fatal(err)
	}
	return string(b)
}

func FuzzTOML(f *testing.F) {
	fuzzParse(f, "m.toml", fullTOML, readSeed(f, "examples/missions/weather.toml"), fetching+"deps = ['a']\nwhen = 'a.rows > 1'\n",
		"task_order = ['a']\n[a]\ntimeout = 3\nx = '''y\n'''\n", "a.\"b\\u0041\".'c' = [1, [2, {x = \"\"\"y\"\"\"}]] # c\n", "[[units]]\nname='a'\nwith={d=2012-01-01,t=07:32:00,l=1979-05-27 07:32:00}")
}

func FuzzYAML(f *testing.F) {
	fuzzParse(f, "m.yaml", fullYAML, readSeed(f, "testdata/document-004/config/pipeline.yaml"), readSeed(f, "testdata/document-003/config.yaml"),
		"units:\n- {name: a, uses: counts, with: {}, timeout: 1_0.5}\n- name: b\n  when: >-\n    params.x\n", "a: &a [*a]", "? a\n: b", "--- |\n x\n...\n")
}

// The scan finds every value that the library does, and stops where it must.
func FuzzScan(f *testing.F) {
	for _, s := range []string{
		fullTOML, "a = [1, 2,\n 3, # c\n]\n", "[a.b]\nc.d = {e = 1, \"f\" = '''x'''}\n[[a.g]]\n[a.g.h]\ni = 1979-05-27 07:32:00\n",
		"x = \"\"\"\\\"\"\"\"\"\n", "'' = ''\n", "a = {b = {}, c = []}\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if text = strings.TrimLeft(text, "\ufeff"); !utf8.ValidString(text) {
			return // refused before the scan
		}
		s := scan{text: text}
		root, whole := s.document()
		if s.deep || len(text) > 64<<10 || !deepLimit(text) {
			return
		}
		var values map[string]any
		if _, err := toml.Decode(text, &values); err != nil {
			return
		}
		if !whole {
			t.Fatalf("stopped at %d", s.at)
		}
		places(t, "", values, root)
	})
}

// deepLimit keeps the library from what the scan is there to refuse.
func deepLimit(text string) bool { return strings.Count(text, "[")+strings.Count(text, ".") < 5000 }

func places(t *testing.T, path string, v any, s *spot) {
	if s == nil {
		t.Fatalf("%s has no place", path)
	}
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			places(t, path+"/"+name, inner, s.fields[name])
		}
	case []map[string]any:
		for i, inner := range v {
			places(t, path+"/#", inner, s.element(i))
		}
	case []any:
		for i, inner := range v {
			places(t, path+"/#", inner, s.element(i))
		}
	}
}

// A condition that compiles always has an answer.
func FuzzCondition(f *testing.F) {
	for _, s := range []string{
		"params.year > 2000 and a.rows + 1 == 2", `params.word matches "^x" or a.text contains "y"`, "a.at < state.since ? a.dry : not a.dry",
		"a.rows % 3 in [1, 2]", "a.rows / 0 == a.share * 2.5", "a.status != ''", "-9223372036854775807 - 1 < a.rows", "a.share % 2 == 1",
		"1e400 == 1", "a.rows == a.share", "not (1 in [])", "'a' + a.text < 'b'", "0x7f_f == 1", "true == (1 < 2)",
	} {
		f.Add(s)
	}
	c := contracts(f)
	m := mustParse(f, "m.toml", fetching+"deps = ['a']\n")
	facts := told{"params.year": "2012", "params.word": "x", "a.rows": "-9223372036854775808", "a.text": "yy", "a.share": "1e308", "a.dry": "true",
		"a.at": "2012-01-01T00:00:00Z", "state.total": "9223372036854775807", "a.status": "succeeded"}
	f.Fuzz(func(t *testing.T, text string) {
		m.Units[1].When = text
		list, err := m.Conditions(c)
		if err != nil || text == "" {
			return
		}
		for _, f := range []Facts{facts, told{}} {
			one, err := list[1].When.Eval(f, nil)
			if err != nil {
				t.Fatal(err)
			}
			if two, err := list[1].When.Eval(f, nil); err != nil || one != two {
				t.Fatalf("then %v, %v", two, err)
			}
		}
		list[1].When.Values(facts, nil)
	})
}

// What is put together from references never says more than its pieces.
func FuzzReferences(f *testing.F) {
	for _, s := range []string{"${params.x}", "a ${u.v:-w} $${z} ${state.k.l}", "${", "$${", "${}", "${a.b.c:-${d.e}}", "$$${params.x}"} {
		f.Add(s)
	}
	m := mustParse(f, "m.toml", "[[units]]\nname = 'u'\n[[units]]\nname = 'a.b'\n")
	facts := told{"params.x": "${params.x}", "u.v": "", "a.b.c": "C"}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := m.resolve(text, facts)
		if err == nil && !strings.Contains(text, "${") && got != text {
			t.Fatalf("%q", got)
		}
		if err == nil && len(got) > task.MaxBytes+len(text) {
			t.Fatalf("%d bytes", len(got))
		}
	})
}
