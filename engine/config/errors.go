package config

import (
	"strconv"
	"strings"

	"apollo11/engine/task"
)

// Error is everything that is wrong with a configuration.
type Error struct{ Faults []Fault }

func (e *Error) Error() string {
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// Fault is one thing wrong.
type Fault struct {
	Where   string // file:line, variable or flag
	Key     string // full name of the setting; empty: the text is no TOML
	Problem string
}

func (f Fault) String() string {
	parts := make([]string, 0, 3)
	for _, part := range []string{f.Where, f.Key, f.Problem} {
		if part != "" {
			parts = append(parts, task.Printable(part))
		}
	}
	return strings.Join(parts, ": ")
}

// near names the known setting that a mistyped or misplaced one means.
func (l *loader) near(name string) string {
	known := make([]string, len(l.settings))
	var same []string // in another section
	for i, s := range l.settings {
		known[i] = s.name
		if last(s.name) == last(name) {
			same = append(same, s.name)
		}
	}
	best := task.Nearest(name, known)
	if len(same) == 1 {
		best = same[0]
	}
	return meant(best)
}

func last(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

func meant(best string) string {
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// quoted is a value as a message shows it, cut where it gets long.
func quoted(text string) string {
	const most = 60
	if len(text) > most {
		return strconv.Quote(text[:most]) + "…"
	}
	return strconv.Quote(text)
}
