package mission

import (
	"strings"

	"github.com/BurntSushi/toml"
)

// scan finds the places of keys and values in a TOML text. It takes more than
// the language allows: what is right is the library's to say.
type scan struct {
	text string
	at   int
	deep bool // it nests deeper than may be
}

// document scans all; whole says that it came to the end.
func (s *scan) document() (root *spot, whole bool) {
	root = &spot{}
	table, outer := root, 0
	for {
		s.skip(" \t\r\n")
		switch {
		case s.at == len(s.text):
			return root, true
		case s.text[s.at] == '[':
			inner, parts, ok := s.header(root)
			if !ok {
				return root, false
			}
			table, outer = inner, parts
		default:
			if !s.assignment(table, outer) {
				return root, false
			}
		}
	}
}

// header scans [a.b] or [[a.b]] and enters the table.
func (s *scan) header(root *spot) (table *spot, depth int, ok bool) {
	start := s.at
	s.at++
	double := s.have('[')
	parts, ok := s.keys(0)
	if !ok || !s.have(']') || double && !s.have(']') {
		return nil, 0, false
	}
	table = root
	for _, p := range parts[:len(parts)-1] {
		table = table.enter(p.name, p.at)
	}
	last := parts[len(parts)-1]
	if !double {
		table = table.enter(last.name, last.at)
		table.value = start
		return table, len(parts), true
	}
	table.enter(last.name, last.at)
	array := table.fields[last.name]
	element := &spot{key: start, value: start}
	array.list = append(array.list, element)
	return element, len(parts) + 1, true
}

// assignment scans key = value into a table that stands at a depth.
func (s *scan) assignment(table *spot, depth int) bool {
	parts, ok := s.keys(depth)
	if !ok || !s.have('=') {
		return false
	}
	for _, p := range parts[:len(parts)-1] {
		table = table.enter(p.name, p.at)
	}
	last := parts[len(parts)-1]
	inner := table.enter(last.name, last.at)
	s.skip(" \t")
	return s.value(inner, depth+len(parts))
}

func (s *scan) value(into *spot, depth int) bool {
	into.value = s.at
	if depth > deepest {
		s.deep = true
		return false
	}
	switch s.peek() {
	case '"', '\'':
		_, ok := s.quoted()
		return ok
	case '[':
		return s.array(into, depth)
	case '{':
		return s.inline(into, depth)
	}
	end := strings.IndexAny(s.text[s.at:], ",]}#\r\n")
	if end < 0 {
		end = len(s.text) - s.at
	}
	s.at += end
	return end > 0
}

func (s *scan) array(into *spot, depth int) bool {
	s.at++
	for {
		s.skip(" \t\r\n")
		if s.have(']') {
			return true
		}
		element := &spot{key: s.at}
		into.list = append(into.list, element)
		if !s.value(element, depth+1) {
			return false
		}
		s.skip(" \t\r\n")
		if !s.have(',') && s.peek() != ']' {
			return false
		}
	}
}

func (s *scan) inline(into *spot, depth int) bool {
	s.at++
	for {
		s.skip(" \t\r\n")
		if s.have('}') {
			return true
		}
		if !s.assignment(into, depth) {
			return false
		}
		s.skip(" \t\r\n")
		if !s.have(',') && s.peek() != '}' {
			return false
		}
	}
}

// part is one name of a dotted key.
type part struct {
	name string
	at   int
}

// keys scans a dotted key that begins at a depth.
func (s *scan) keys(depth int) (parts []part, ok bool) {
	for {
		s.skip(" \t")
		p := part{at: s.at}
		if c := s.peek(); c == '"' || c == '\'' {
			p.name, ok = s.quoted()
		} else {
			end := strings.IndexAny(s.text[s.at:], " \t\r\n.=[]{},#\"'")
			if ok = end > 0; ok {
				p.name = s.text[s.at : s.at+end]
				s.at += end
			}
		}
		if !ok {
			return nil, false
		}
		if parts = append(parts, p); depth+len(parts) > deepest {
			s.deep = true
			return nil, false
		}
		s.skip(" \t")
		if !s.have('.') {
			return parts, true
		}
	}
}

// quoted scans a string of any of the four kinds and returns what it says, which
// only keys need.
func (s *scan) quoted() (string, bool) {
	from, mark := s.at, s.text[s.at:s.at+1]
	if triple := strings.Repeat(mark, 3); strings.HasPrefix(s.text[s.at:], triple) {
		mark = triple
	}
	s.at += len(mark)
	for s.at < len(s.text) {
		switch {
		case s.text[s.at] == '\\' && mark[0] == '"':
			s.at += 2
		case strings.HasPrefix(s.text[s.at:], mark):
			s.at += len(mark)
			for len(mark) == 3 && s.peek() == mark[0] { // quotes that end the text itself
				s.at++
			}
			return unquote(s.text[from:s.at]), true
		case s.text[s.at] == '\n' && len(mark) == 1:
			return "", false
		default:
			s.at++
		}
	}
	s.at = len(s.text)
	return "", false
}

func unquote(raw string) string {
	if raw[0] == '\'' || !strings.Contains(raw, `\`) {
		return strings.Trim(raw, raw[:1])
	}
	var v struct{ K string }
	if _, err := toml.Decode("K="+raw, &v); err != nil {
		return raw
	}
	return v.K
}

func (s *scan) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

func (s *scan) have(c byte) bool {
	if s.peek() != c || s.at == len(s.text) {
		return false
	}
	s.at++
	return true
}

// skip passes over the given bytes, and over comments where newlines may stand.
func (s *scan) skip(set string) {
	for s.at < len(s.text) {
		c := s.text[s.at]
		switch {
		case strings.IndexByte(set, c) >= 0:
			s.at++
		case c == '#' && strings.IndexByte(set, '\n') >= 0:
			end := strings.IndexByte(s.text[s.at:], '\n')
			if end < 0 {
				end = len(s.text) - s.at
			}
			s.at += end
		default:
			return
		}
	}
}
