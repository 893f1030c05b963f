package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"apollo11/engine/task"
)

const (
	maxFile  = 256 << 10 // bytes of a config file
	maxDepth = 16        // of anything nested in it
)

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		if path := (*os.PathError)(nil); errors.As(err, &path) {
			err = path.Err // the caller names the file
		}
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("over %s", Size(maxFile))
	}
	return data, nil
}

// node is one key of a document with the line that it stands on.
type node struct {
	name  string
	line  int
	value any
	under map[string]toml.Primitive // of a table
}

// document takes all settings of a TOML text; name is the file's, for faults.
func (l *loader) document(name string, data []byte) {
	if err := checkDepth(data); err != nil {
		l.fault(name, "", err.Error())
		return
	}
	var top map[string]toml.Primitive
	md, err := toml.NewDecoder(bytes.NewReader(data)).Decode(&top)
	if parse := (toml.ParseError{}); errors.As(err, &parse) {
		l.fault(at(name, parse.Position.Line), "", parse.Message)
		return
	} else if err != nil {
		l.fault(name, "", err.Error())
		return
	}
	for _, n := range nodes(md, top) {
		switch {
		case n.under == nil:
			l.leaf(name, n.name, n)
		case n.name == "limits":
			l.limits(name, nodes(md, n.under))
		case n.name == "state":
			l.stateKeys(name, md, nodes(md, n.under))
		case !l.section(n.name):
			l.fault(at(name, n.line), task.Printable(n.name), "unknown section"+l.nearSection(n.name))
		default:
			for _, child := range nodes(md, n.under) {
				l.leaf(name, n.name+"."+child.name, child)
			}
		}
	}
}

func at(name string, line int) string {
	if line == 0 {
		return name
	}
	return name + ":" + strconv.Itoa(line)
}

// leaf takes one key = value line.
func (l *loader) leaf(file, name string, n node) {
	s := l.setting(name)
	switch {
	case s == nil && (l.section(name) || name == "limits" || name == "state"):
		l.fault(at(file, n.line), name, "is a section: write ["+name+"]")
	case s == nil:
		l.fault(at(file, n.line), task.Printable(name), "unknown key"+l.near(name))
	default:
		text, ok := s.toml(n.value)
		if !ok {
			l.fault(at(file, n.line), name, "want "+s.want+", found "+kindOf(n.value))
			return
		}
		l.put(at(file, n.line), s, text)
	}
}

func (l *loader) limits(file string, list []node) {
	for _, n := range list {
		where, key := at(file, n.line), "limits."+task.Printable(n.name)
		most, ok := n.value.(int64)
		switch err := task.CheckType(n.name); {
		case err != nil:
			l.fault(where, key, err.Error())
		case !ok:
			l.fault(where, key, "want a whole number without quotes, found "+kindOf(n.value))
		case most < 1 || most > 1_000_000:
			l.fault(where, key, fmt.Sprintf("%d: out of range: want 1 to 1000000; `apollo11 pause TYPE` stops a type", most))
		default:
			l.config.Limits[n.name] = int(most)
		}
	}
}

func (l *loader) section(name string) bool {
	return slices.ContainsFunc(l.settings, func(s setting) bool { return strings.HasPrefix(s.name, name+".") })
}

func (l *loader) nearSection(name string) string {
	known := []string{"limits", "state"}
	for _, s := range l.settings {
		if section, _, ok := strings.Cut(s.name, "."); ok {
			known = append(known, section)
		}
	}
	if best := task.Nearest(name, known); best != "" {
		return meant("[" + best + "]")
	}
	return ""
}

// locator is a TOML value that refuses whatever it is given, since only then
// does the decoder say on which line it stands.
type locator struct{ value any }

var errLocated = errors.New("located")

// UnmarshalTOML implements toml.Unmarshaler.
func (l *locator) UnmarshalTOML(v any) error {
	l.value = v
	return errLocated
}

// nodes are a table's keys in the order of the file.
func nodes(md toml.MetaData, table map[string]toml.Primitive) []node {
	list := make([]node, 0, len(table))
	for name, prim := range table {
		var l locator
		n := node{name: name}
		if parse := (toml.ParseError{}); errors.As(md.PrimitiveDecode(prim, &l), &parse) {
			n.line = parse.Position.Line
		}
		n.value = l.value
		if _, ok := n.value.(map[string]any); ok {
			if err := md.PrimitiveDecode(prim, &n.under); err != nil {
				panic("config: a table that is none: " + err.Error())
			}
		}
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b node) int {
		return cmp.Or(cmp.Compare(a.line, b.line), strings.Compare(a.name, b.name))
	})
	return list
}

func kindOf(v any) string {
	switch v := v.(type) {
	case string:
		return "the text " + quoted(v)
	case int64, float64:
		return fmt.Sprintf("the number %v", v)
	case bool:
		return strconv.FormatBool(v)
	case time.Time:
		return "a time"
	case map[string]any:
		return "a section"
	}
	return "a list"
}

// checkDepth refuses what nests deeper than anything here has reason to, since
// the decoder follows without limit. Brackets in texts and comments don't count.
func checkDepth(data []byte) error {
	depth, dots := 0, 0
	for i := 0; i < len(data); i++ {
		switch c := data[i]; c {
		case '#':
			i = skipTo(data, i, "\n") - 1
		case '"', '\'':
			i = skipText(data, i) - 1
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(depth-1, 0)
		case '.':
			dots++
		case '=', ',', '\n':
			dots = 0
		}
		if depth > maxDepth || dots > maxDepth {
			return fmt.Errorf("nested more than %d deep", maxDepth)
		}
	}
	return nil
}

// skipText returns the position after the text that begins at i.
func skipText(data []byte, i int) int {
	mark := string(data[i : i+1])
	if long := strings.Repeat(mark, 3); bytes.HasPrefix(data[i:], []byte(long)) {
		mark = long
	}
	i += len(mark)
	for i < len(data) && !bytes.HasPrefix(data[i:], []byte(mark)) {
		if len(mark) == 1 && data[i] == '\n' {
			return i // unclosed: the decoder will say so
		}
		if data[i] == '\\' && mark[0] == '"' {
			i++
		}
		i++
	}
	return min(i+len(mark), len(data))
}

// skipTo returns the position of the next mark from i, or the end.
func skipTo(data []byte, i int, mark string) int {
	if n := bytes.Index(data[i:], []byte(mark)); n >= 0 {
		return i + n
	}
	return len(data)
}
