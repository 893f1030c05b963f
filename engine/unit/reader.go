package unit

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"apollo11/engine/task"

	"github.com/BurntSushi/toml"
)

// Fault is one thing wrong with a manifest.
type Fault struct {
	File    string
	Line    int    // 0: the file as a whole
	Key     string // dotted; empty: the file as a whole
	Problem string
}

func (f Fault) Error() string {
	var b strings.Builder
	b.WriteString(task.Printable(f.File))
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d", f.Line)
	}
	if f.Key != "" {
		b.WriteString(": " + task.Printable(f.Key))
	}
	return b.String() + ": " + f.Problem
}

// sheet is a TOML text while it is read: what is taken is marked, what stays
// is unknown.
type sheet struct {
	file   string
	lines  lines
	faults []Fault
}

// table is one table of a sheet.
type table struct {
	sheet *sheet
	path  string
	left  map[string]any // not taken yet
	known []string       // every key that was asked for
}

// longestManifest bounds what is parsed, and with it how deep it can nest.
const longestManifest = 64 << 10

func openSheet(file string, text []byte) (*sheet, *table) {
	s := &sheet{file: file}
	if len(text) > longestManifest {
		s.fault("", fmt.Sprintf("%d bytes: a manifest has at most %d", len(text), longestManifest))
		return s, nil
	}
	if err := checkText(text); err != nil {
		s.faults = append(s.faults, Fault{File: file, Problem: err.Error()})
		return s, nil
	}
	s.lines = findLines(string(text))
	var root map[string]any
	if err := toml.Unmarshal(text, &root); err != nil {
		s.syntax(err)
		return s, nil
	}
	return s, &table{sheet: s, left: root}
}

// checkText names what an editor writes instead of UTF-8, and of which the TOML
// library passes over the first two bytes.
func checkText(text []byte) error {
	for _, mark := range []string{"\xff\xfe", "\xfe\xff"} {
		if bytes.HasPrefix(text, []byte(mark)) {
			return errors.New("is UTF-16 text: save it as UTF-8")
		}
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return errors.New("holds a NUL byte: save it as UTF-8 text")
	}
	return nil
}

func (s *sheet) fault(key, problem string) {
	s.faults = append(s.faults, Fault{s.file, s.lines.of(key), key, problem})
}

func (s *sheet) syntax(err error) {
	f := Fault{File: s.file, Problem: task.Printable(err.Error())}
	if parse, ok := errors.AsType[toml.ParseError](err); ok {
		f.Line, f.Key, f.Problem = parse.Position.Line, parse.LastKey, task.Printable(parse.Message)
	}
	s.faults = append(s.faults, f)
}

func (t *table) fault(key, problem string) { t.sheet.fault(join(t.path, key), problem) }

// take hands out a key's value once.
func (t *table) take(key string) (any, bool) {
	t.known = append(t.known, key)
	v, ok := t.left[key]
	delete(t.left, key)
	return v, ok
}

// finish reports the keys that nobody took.
func (t *table) finish() {
	for _, key := range slices.Sorted(maps.Keys(t.left)) {
		hint := ""
		if near := task.Nearest(key, t.known); near != "" {
			hint = ": did you mean " + near + "?"
		}
		t.fault(key, "unknown key"+hint)
	}
}

// taken converts a key's value; what does not fit is a fault and counts as absent.
func taken[T any](t *table, key, want string, absent T, convert func(any) (T, bool)) T {
	v, ok := t.take(key)
	if !ok {
		return absent
	}
	got, ok := convert(v)
	if !ok {
		t.fault(key, fmt.Sprintf("is %s, want %s", describe(v), want))
		return absent
	}
	return got
}

func as[T any](v any) (T, bool) {
	got, ok := v.(T)
	return got, ok
}

func (t *table) text(key, absent string) string {
	return taken(t, key, "a string", absent, as[string])
}

func (t *table) flag(key string, absent bool) bool {
	return taken(t, key, "true or false", absent, as[bool])
}

func (t *table) count(key string, absent, most int) int {
	return taken(t, key, fmt.Sprintf("a whole number from 0 to %d", most), absent, func(v any) (int, bool) {
		n, ok := v.(int64)
		return int(n), ok && n >= 0 && n <= int64(most)
	})
}

func (t *table) number(key string, absent, least, most float64) float64 {
	return taken(t, key, fmt.Sprintf("a number from %g to %g", least, most), absent, func(v any) (float64, bool) {
		f, ok := toFloat(v)
		return f, ok && f >= least && f <= most
	})
}

func (t *table) texts(key string, absent []string) []string {
	return taken(t, key, "an array of strings", absent, toTexts)
}

const longestDuration = 365 * 24 * time.Hour

func (t *table) duration(key string, absent, least time.Duration) time.Duration {
	want := fmt.Sprintf(`a duration such as "30s", or a number of seconds, from %v to a year`, least)
	return taken(t, key, want, absent, func(v any) (time.Duration, bool) {
		d, ok := toDuration(v)
		return d, ok && d >= least && d <= longestDuration
	})
}

// tables hands out the sub-tables of a key, sorted by name.
func (t *table) tables(key string) []*table {
	all := taken(t, key, "tables such as ["+key+".NAME]", nil, as[map[string]any])
	list := make([]*table, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		inner, ok := all[name].(map[string]any)
		if !ok {
			t.fault(key+"."+name, fmt.Sprintf("is %s, want a table: [%s.%s]", describe(all[name]), key, name))
			continue
		}
		list = append(list, &table{sheet: t.sheet, path: join(t.path, key+"."+name), left: inner})
	}
	return list
}

// literal writes a plain TOML value as the text that travels.
func literal(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), true
	case time.Time:
		return v.Format(time.RFC3339Nano), true
	}
	return "", false
}

func toFloat(v any) (float64, bool) {
	if n, ok := v.(int64); ok {
		return float64(n), true
	}
	return as[float64](v)
}

func toDuration(v any) (time.Duration, bool) {
	if s, ok := v.(string); ok {
		d, err := time.ParseDuration(s)
		return d, err == nil
	}
	seconds, ok := toFloat(v)
	if !ok || !(math.Abs(seconds) <= longestDuration.Seconds()) {
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}

func toTexts(v any) ([]string, bool) { return toList(v, as[string]) }

func toLiterals(v any) ([]string, bool) { return toList(v, literal) }

func toList(v any, convert func(any) (string, bool)) ([]string, bool) {
	list, ok := v.([]any)
	if !ok {
		return nil, false
	}
	texts := make([]string, len(list))
	for i, e := range list {
		if texts[i], ok = convert(e); !ok {
			return nil, false
		}
	}
	return texts, true
}

func describe(v any) string {
	if _, ok := v.(map[string]any); ok {
		return "a table"
	}
	if list, ok := v.([]any); ok {
		return fmt.Sprintf("an array of %d", len(list))
	}
	if s, ok := v.(string); ok {
		return strconv.QuoteToASCII(s[:min(len(s), 60)])
	}
	if s, ok := literal(v); ok {
		return s
	}
	return fmt.Sprintf("a %T", v)
}

func stem(file string) string { return strings.TrimSuffix(filepath.Base(file), ".toml") }
