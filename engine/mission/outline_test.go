package mission

import (
	"errors"
	"strings"
	"testing"
)

func TestOutline(t *testing.T) {
	g, err := Outline([]Place{
		{"merge", []string{"clean", "far", "fetch"}, nil}, {"fetch", nil, nil}, {"clean", []string{"fetch"}, []string{"note", "gone"}}, {"note", nil, nil},
	})
	if err != nil {
		t.Fatal(err)
	}
	states := []string{"blocked", "succeeded", "running", "queued"}
	got := g.Draw(Drawing{
		Note:  func(unit int) string { return states[unit] },
		Paint: func(unit int, line string) string { return states[unit][:1] + "|" + line },
	})
	want := `
s|fetch  succeeded
b|├─ merge  (below)
r|└─ clean  running; beside note
b|   └─ merge  blocked; after clean, fetch
q|note  queued
`
	if got != strings.TrimPrefix(want, "\n") {
		t.Errorf("drawn as\n%s", got)
	}
	var ring *RingError
	if _, err := Outline([]Place{{"a", []string{"b"}, nil}, {"b", []string{"a"}, nil}}); !errors.As(err, &ring) {
		t.Errorf("a ring: %v", err)
	}
	if g, err := Outline(nil); err != nil || g.Draw(Drawing{}) != "" {
		t.Errorf("nothing: %v", err)
	}
}
