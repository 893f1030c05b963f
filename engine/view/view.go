// Package view holds the nouns of reading: what a console or a command is shown.
//
// Every type is a copy, published whole; nothing here points into the
// controller. Fields walks a type's fields in one fixed order, so that one list
// serves writing to the wire and reading from it.
package view

import (
	"encoding/json"
	"time"

	"apollo11/engine/task"
)

// Visitor is called for each field of a noun with a pointer to it: a writer
// reads through the pointer, a reader fills it.
type Visitor interface {
	Text(name string, v *string)
	Int(name string, v *int64)
	Bool(name string, v *bool)
	Time(name string, v *Time)
	Values(name string, v *task.Values)
}

// Row is a noun that fits one line of a table.
type Row interface{ Fields(Visitor) }

// Time is a moment; in JSON it is RFC 3339 with an empty one as null.
type Time struct{ time.Time }

// MarshalJSON writes null for the zero time.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return t.Time.MarshalJSON()
}

// Object is a set of values that JSON shows as an object.
type Object task.Values

// MarshalJSON writes the values in order, all as strings.
func (o Object) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, v := range o {
		if i > 0 {
			out = append(out, ',')
		}
		for j, text := range [2]string{v.Name, v.Value} {
			quoted, err := json.Marshal(text)
			if err != nil {
				return nil, err
			}
			if j == 1 {
				out = append(out, ':')
			}
			out = append(out, quoted...)
		}
	}
	return append(out, '}'), nil
}

// MaxRows is the most rows of one page.
const MaxRows = 500

// Query asks for a page of tasks, newest first unless Oldest.
type Query struct {
	Type   string
	States []task.State  // none: any
	Error  string        // part of the last error's text or its class
	Older  time.Duration // submitted at least so long ago
	Limit  int           // 0: MaxRows
	Cursor string        // of the page before; empty: from the start
	Oldest bool          // oldest first
}

// Page is the answer to a Query.
type Page struct {
	Tasks    []Task
	Cursor   string // where the next page starts; empty: that was the last
	Examined int    // rows looked at
	Total    int    // rows there are to look at
}
