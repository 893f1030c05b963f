package mission

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"apollo11/engine/task"
)

// mostFaults bounds what one file is told; longestProblem each of them.
const (
	mostFaults     = 100
	longestProblem = 1000
)

// faultAt is a fault at a place.
func faultAt(file string, at place, format string, args ...any) Fault {
	problem := fmt.Sprintf(format, args...)
	if len(problem) > longestProblem {
		problem = problem[:longestProblem] + "…"
	}
	return Fault{File: file, Line: at.line, Column: at.column, Problem: problem}
}

// reader gathers the faults of one file.
type reader struct {
	file   string
	faults Faults
}

func (r *reader) fault(at place, format string, args ...any) {
	r.faults.add(faultAt(r.file, at, format, args...))
}

// full reports that no more faults are taken.
func (r *reader) full() bool { return len(r.faults) >= mostFaults }

// add takes one more, up to the bound.
func (f *Faults) add(one Fault) {
	if len(*f) < mostFaults {
		*f = append(*f, one)
	}
}

// table is one table while it is read: what nobody asked for is unknown.
type table struct {
	*reader
	node  *node
	what  string   // before a problem: "unit clean: "; empty for the file
	known []string // every key that was asked for
}

// table is a node as a table; what is none is a fault, and an empty one.
func (r *reader) table(n *node, what string) *table {
	if n.form != aTable {
		r.fault(n.at, "%sis %s, want a table", what, n.describe())
		n = &node{form: aTable, at: n.at}
	}
	return &table{reader: r, node: n, what: what}
}

// take is the value of a key; nil: there is none.
func (t *table) take(key string) *node {
	t.known = append(t.known, key)
	if f := t.node.get(key); f != nil {
		return f.value
	}
	return nil
}

func (t *table) has(key string) bool { return t.node.get(key) != nil }

func (t *table) wrong(at place, key, format string, args ...any) {
	t.fault(at, "%s%s: %s", t.what, key, fmt.Sprintf(format, args...))
}

// finish reports the keys that nobody asked for.
func (t *table) finish() {
	for _, f := range t.node.fields {
		if !slices.Contains(t.known, f.name) && !t.full() {
			t.wrong(f.at, f.name, "unknown key%s", meant(f.name, t.known))
		}
	}
}

// meant is the hint to the nearest of what is known.
func meant(name string, known []string) string {
	const longest = 64 // what is longer is no slip of the finger
	const effort = 1 << 18
	if len(name) > longest || len(name)*len(known) > effort {
		return ""
	}
	if near := task.Nearest(name, known); near != "" {
		return ": did you mean " + near + "?"
	}
	return ""
}

// taken converts a key's value; what does not fit is a fault and counts as absent.
func taken[T any](t *table, key, want string, absent T, convert func(*node) (T, bool)) T {
	n := t.take(key)
	if n == nil {
		return absent
	}
	v, ok := convert(n)
	if !ok {
		t.wrong(n.at, key, "is %s, want %s", n.describe(), want)
		return absent
	}
	return v
}

func (t *table) text(key, absent string) string {
	return taken(t, key, "a text", absent, func(n *node) (string, bool) { return n.text, n.form == aText })
}

func (t *table) flag(key string) bool {
	return taken(t, key, "true or false", false, func(n *node) (bool, bool) { return n.text == "true", n.form == aBool })
}

func (t *table) count(key string, absent, most int) int {
	return taken(t, key, fmt.Sprintf("a whole number from 0 to %d", most), absent, func(n *node) (int, bool) {
		i, err := strconv.Atoi(n.text)
		return i, err == nil && n.form == aWhole && i >= 0 && i <= most
	})
}

func (t *table) duration(key string, absent, least time.Duration) time.Duration {
	want := fmt.Sprintf(`a duration such as "30s", or a number of seconds, from %v to %v`, least, task.LongestStep)
	return taken(t, key, want, absent, func(n *node) (time.Duration, bool) {
		d, ok := toDuration(n)
		return d, ok && d >= least && d <= task.LongestStep
	})
}

func toDuration(n *node) (time.Duration, bool) {
	switch n.form {
	case aText:
		d, err := time.ParseDuration(n.text)
		return d, err == nil
	case aWhole, aNumber:
		seconds, err := strconv.ParseFloat(n.text, 64)
		if err != nil || !(math.Abs(seconds) <= task.LongestStep.Seconds()) {
			return 0, false
		}
		return time.Duration(math.Round(seconds * float64(time.Second))), true
	}
	return 0, false
}

// texts is a list of texts, each held against a rule at its own place.
func (t *table) texts(key string, check func(string) error) []string {
	return taken(t, key, `a list of texts, such as ["a", "b"]`, nil, func(n *node) ([]string, bool) {
		if n.form != aList {
			return nil, false
		}
		var list []string
		for _, e := range n.list {
			switch {
			case e.form != aText:
				t.wrong(e.at, key, "%s in the list, want a text", e.describe())
			case check != nil && check(e.text) != nil:
				t.wrong(e.at, key, "%s", check(e.text))
			}
			list = append(list, e.text)
		}
		return list, true
	})
}

// values is a table of inputs.
func (t *table) values(key string) task.Values {
	n := t.take(key)
	if n == nil {
		return nil
	}
	if n.form != aTable {
		t.wrong(n.at, key, "is %s, want a table of inputs: %s = { NAME = VALUE }", n.describe(), key)
		return nil
	}
	var list []task.Value
	for _, f := range n.fields {
		if err := task.CheckKey(f.name); err != nil {
			t.wrong(f.at, key, "%s", err)
		} else if !f.value.plain() {
			t.wrong(f.value.at, key+"."+f.name, "is %s, want a plain value", f.value.describe())
		} else if len(f.value.text) > task.MaxBytes {
			t.wrong(f.value.at, key+"."+f.name, "%d bytes, at most %d are taken", len(f.value.text), task.MaxBytes)
		} else {
			list = append(list, task.Value{Name: f.name, Value: f.value.text})
		}
	}
	values, err := task.NewValues(list)
	if err != nil { // neither language lets a key stand twice
		t.wrong(n.at, key, "%s", err)
	}
	return values
}

// choice is one of the words that a key may be; the first if it is absent.
func choice[T ~uint8](t *table, key string, words []string) T {
	return taken(t, key, strings.Join(words, ", "), 0, func(n *node) (T, bool) {
		i := slices.Index(words, n.text)
		return T(max(i, 0)), i >= 0 && n.form == aText
	})
}
