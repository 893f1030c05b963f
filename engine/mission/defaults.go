package mission

import (
	"slices"
	"strings"

	"apollo11/engine/task"
)

// WithDeps is the mission with the dependencies that its units' manifests give
// those nodes which say nothing of any: as far as the mission has such units.
func (m *Mission) WithDeps(c Contracts) *Mission {
	var changed *Mission
	usual := map[string][]string{}
	for i := range c.Units {
		if len(c.Units[i].Deps) > 0 {
			usual[c.Units[i].Name] = c.Units[i].Deps
		}
	}
	for i := range m.Units {
		u := &m.Units[i]
		if u.Deps != nil {
			continue
		}
		var deps []string
		for _, d := range usual[u.Uses] {
			if at := m.Find(d); at >= 0 && at != i && !slices.Contains(u.Weak, d) {
				deps = append(deps, d)
			}
		}
		if len(deps) == 0 {
			continue
		}
		if changed == nil {
			copied := *m
			copied.Units = slices.Clone(m.Units)
			changed = &copied
		}
		changed.Units[i].Deps = deps
	}
	if changed == nil {
		return m
	}
	return changed
}

// WithInputs is the mission with some of a unit's inputs given as they are.
func (m *Mission) WithInputs(unit string, given task.Values) *Mission {
	i := m.Find(unit)
	if i < 0 || len(given) == 0 {
		return m
	}
	changed := *m
	changed.Units = slices.Clone(m.Units)
	with := slices.DeleteFunc(slices.Clone(m.Units[i].With), func(v task.Value) bool {
		_, replaced := given.Get(v.Name)
		return replaced
	})
	for _, v := range given {
		with = append(with, task.Value{Name: v.Name, Value: strings.ReplaceAll(v.Value, "${", "$${")})
	}
	slices.SortFunc(with, func(a, b task.Value) int { return strings.Compare(a.Name, b.Name) })
	changed.Units[i].With = with
	return &changed
}
