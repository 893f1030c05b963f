package mission

import "slices"

// Place is a unit's place in an outline.
type Place struct {
	Unit string
	Deps []string // waits for their success
	Weak []string // may run beside them
}

// Outline is the graph of units of which no more is known than what they wait
// for, such as those of a run that was read page by page: what is not among them
// is waited for by nobody. Units that wait for each other are an error.
func Outline(places []Place) (*Graph, error) {
	m := &Mission{Units: make([]Unit, len(places)), index: make(map[string]int, len(places))}
	for i := range places {
		m.Units[i].Name = places[i].Unit
		m.index[places[i].Unit] = i
	}
	here := func(names []string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool { _, ok := m.index[name]; return !ok })
	}
	for i := range places {
		m.Units[i].Deps, m.Units[i].Weak = here(places[i].Deps), here(places[i].Weak)
	}
	return NewGraph(m)
}
