package mission

import (
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
)

// fromTOML reads a text as nodes. The library keeps places to itself, so a scan
// of our own finds them first; it also refuses the depths that would make the
// library work hard.
func fromTOML(file, text string) (*node, Faults) {
	s := scan{text: text}
	root, whole := s.document()
	t := tomlTree{file: file, lines: findLines(text)}
	if s.deep {
		return nil, Faults{t.fault(s.at, "nests deeper than %d", deepest)}
	}
	read := text
	if !whole { // the library will say why, from a piece that is not too long
		read = text[:min(len(text), s.at+1024)]
	}
	var values map[string]any
	if _, err := toml.Decode(read, &values); err != nil {
		return nil, Faults{t.syntax(err)}
	}
	if !whole {
		return nil, Faults{t.fault(s.at, "cannot be read from here on")}
	}
	return t.build(values, root, root), nil
}

// tomlTree joins what the library read with the places that the scan found.
type tomlTree struct {
	file  string
	lines lines
}

func (t *tomlTree) fault(offset int, format string, args ...any) Fault {
	return faultAt(t.file, t.lines.place(offset), format, args...)
}

func (t *tomlTree) syntax(err error) Fault {
	f := faultAt(t.file, place{}, "%s", err.Error())
	if parse, ok := err.(toml.ParseError); ok {
		f.Line, f.Column, f.Problem = parse.Position.Line, parse.Position.Col, parse.Message
		if strings.HasSuffix(f.Problem, "already been defined.") { // the library is at the line's end by then
			f.Column = t.lines.begins(f.Line)
		}
	}
	return f
}

// build makes a node of a value; around is the spot of what it stands in.
func (t *tomlTree) build(v any, at, around *spot) *node {
	if at == nil {
		at = around
	}
	n := &node{at: t.lines.place(at.value)}
	switch v := v.(type) {
	case map[string]any:
		n.form = aTable
		n.fields = make([]field, 0, len(v))
		names := slices.Collect(maps.Keys(v))
		offset := func(name string) int {
			if inner := at.fields[name]; inner != nil {
				return inner.key
			}
			return at.key
		}
		slices.SortFunc(names, func(a, b string) int {
			if d := offset(a) - offset(b); d != 0 {
				return d
			}
			return strings.Compare(a, b)
		})
		for _, name := range names {
			n.fields = append(n.fields, field{name, t.lines.place(offset(name)), t.build(v[name], at.fields[name], at)})
		}
	case []map[string]any:
		n.form = aList
		for i, e := range v {
			n.list = append(n.list, t.build(e, at.element(i), at))
		}
	case []any:
		n.form = aList
		for i, e := range v {
			n.list = append(n.list, t.build(e, at.element(i), at))
		}
	default:
		n.form, n.text = tomlPlain(v)
	}
	return n
}

func tomlPlain(v any) (form, string) {
	switch v := v.(type) {
	case bool:
		return aBool, strconv.FormatBool(v)
	case int64:
		return aWhole, strconv.FormatInt(v, 10)
	case float64:
		return aNumber, formatNumber(v)
	case time.Time:
		return aTime, formatTime(v)
	case string:
		return aText, v
	}
	panic("mission: the TOML library has a type that is not known here")
}

func formatNumber(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// formatTime writes a time as it travels. A date or time without a zone stays
// without one: the library would take this machine's.
func formatTime(t time.Time) string {
	switch t.Location().String() {
	case "date-local":
		return t.Format(time.DateOnly)
	case "time-local":
		return t.Format("15:04:05.999999999")
	case "datetime-local":
		return t.Format("2006-01-02T15:04:05.999999999")
	}
	return t.Format(time.RFC3339Nano)
}

// lines finds the line and the column of an offset.
type lines struct {
	text   string
	starts []int // of the lines
	runes  []int // characters before each block
}

// block is a stretch of text over which characters are counted anew, so that
// the places on a line as long as the file cost no more than others.
const block = 512

func findLines(text string) lines {
	l := lines{text: text, starts: []int{0}}
	runes := 0
	for i := 0; i < len(text); i++ {
		if i%block == 0 {
			l.runes = append(l.runes, runes)
		}
		if utf8.RuneStart(text[i]) {
			runes++
		}
		if text[i] == '\n' {
			l.starts = append(l.starts, i+1)
		}
	}
	l.runes = append(l.runes, runes) // for an offset at the end
	return l
}

func (l lines) place(offset int) place {
	i := sort.SearchInts(l.starts, offset+1) - 1
	return place{i + 1, l.before(offset) - l.before(l.starts[i]) + 1}
}

// before is the number of characters before an offset.
func (l lines) before(offset int) int {
	n := l.runes[offset/block]
	for i := offset / block * block; i < offset; i++ {
		if utf8.RuneStart(l.text[i]) {
			n++
		}
	}
	return n
}

// begins is the column of a line's first character that is no blank.
func (l lines) begins(line int) int {
	if line < 1 || line > len(l.starts) {
		return 0
	}
	text := l.text[l.starts[line-1]:]
	return len(text) - len(strings.TrimLeft(text, " \t")) + 1
}

// spot is where a value of a TOML text stands.
type spot struct {
	key, value int // offsets; of the header for a table that has one
	fields     map[string]*spot
	list       []*spot
}

func (s *spot) element(i int) *spot {
	if i < len(s.list) {
		return s.list[i]
	}
	return nil
}

// enter is the spot of a table's key, made if it is new. The last element stands
// for an array of tables.
func (s *spot) enter(name string, at int) *spot {
	inner := s.fields[name]
	if inner == nil {
		inner = &spot{key: at, value: at}
		if s.fields == nil {
			s.fields = map[string]*spot{}
		}
		s.fields[name] = inner
	}
	if n := len(inner.list); n > 0 {
		return inner.list[n-1]
	}
	return inner
}
