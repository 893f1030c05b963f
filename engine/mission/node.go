package mission

import "fmt"

// place is where something stands in the file; zero: nowhere in particular.
type place struct{ line, column int }

// form is what a node is.
type form uint8

const (
	aText form = iota
	aWhole
	aNumber
	aBool
	aTime
	aList
	aTable
	nothing // an empty YAML value
)

// node is a value of the file, of whichever language, with its place.
type node struct {
	form   form
	at     place
	text   string // of a plain value, as it travels
	list   []*node
	fields []field
}

// field is one entry of a table.
type field struct {
	name  string
	at    place
	value *node
}

func (n *node) plain() bool { return n.form < aList }

// get is the entry of a name; nil: there is none.
func (n *node) get(name string) *field {
	if n == nil {
		return nil
	}
	for i := range n.fields {
		if n.fields[i].name == name {
			return &n.fields[i]
		}
	}
	return nil
}

// describe says what somebody wrote where something else was wanted.
func (n *node) describe() string {
	switch n.form {
	case aTable:
		return "a table"
	case aList:
		return fmt.Sprintf("a list of %d", len(n.list))
	case nothing:
		return "empty"
	case aText:
		return quote(n.text)
	}
	return n.text
}

// quote shows a text in a message, cut where it gets long.
func quote(s string) string {
	const most = 60
	if len(s) > most {
		return fmt.Sprintf("%q… (%d bytes)", s[:most], len(s))
	}
	return fmt.Sprintf("%q", s)
}

// deepest is how far values of a file may nest.
const deepest = 16

// source is where a mission was read from: the places for its faults.
type source struct {
	file  string
	root  *node
	units []*node // by unit
}

// unit is the place of a unit's entry, of one element of it, or of the unit
// itself where it has none.
func (s *source) unit(i int, key string, element ...any) place {
	if i >= len(s.units) {
		return place{}
	}
	at, n := s.units[i].at, s.units[i]
	f := n.get(key)
	if f == nil {
		if name := n.get("name"); name != nil {
			return name.value.at
		}
		return at
	}
	at = f.value.at
	for _, e := range element {
		switch e := e.(type) {
		case int:
			if f.value.form == aList && e < len(f.value.list) {
				at = f.value.list[e].at
			}
		case string:
			if inner := f.value.get(e); inner != nil {
				at = inner.value.at
			}
		}
	}
	return at
}

// param is the place of a parameter.
func (s *source) param(name string) place {
	if f := s.root.get("params"); f != nil {
		if inner := f.value.get(name); inner != nil {
			return inner.at
		}
	}
	return place{}
}

// trigger is the place of a trigger.
func (s *source) trigger(i int) place {
	if f := s.root.get("triggers"); f != nil && i < len(f.value.list) {
		return f.value.list[i].at
	}
	return place{}
}
