package config

import (
	"slices"
	"strings"

	"apollo11/engine/task"
)

// Misspelling is a variable that sets nothing, and the one that was likely meant.
type Misspelling struct{ Variable, Meant string }

// Misspelt finds, by name, the variables of env that begin as a section's do and
// are near to one of its settings. Any other APOLLO_ variable is somebody else's;
// so are those of own, which a unit is given.
func Misspelt(env, own []string) (found []Misspelling) {
	sections := map[string][]string{} // "LOCAL" to "EXECUTORS" and its like
	for _, s := range new(Config).settings() {
		if section, key, ok := strings.Cut(s.name, "."); ok {
			section = strings.ToUpper(section)
			sections[section] = append(sections[section], strings.ToUpper(key))
		}
	}
	for _, line := range env {
		name, _, _ := strings.Cut(line, "=")
		rest, ok := strings.CutPrefix(name, "APOLLO_")
		section, key, under := strings.Cut(rest, "_")
		known := sections[section]
		if !ok || !under || slices.Contains(known, key) || slices.Contains(own, name) {
			continue
		}
		if near := nearKey(key, known); near != "" {
			found = append(found, Misspelling{name, "APOLLO_" + section + "_" + near})
		}
	}
	slices.SortFunc(found, func(a, b Misspelling) int { return strings.Compare(a.Variable, b.Variable) })
	return slices.Compact(found)
}

// nearKey is the key that was likely meant: the nearest, or else the only one
// that goes on where the name stops.
func nearKey(key string, known []string) string {
	if near := task.Nearest(key, known); near != "" || key == "" {
		return near
	}
	longer := slices.DeleteFunc(slices.Clone(known), func(k string) bool { return !strings.HasPrefix(k, key+"_") })
	if len(longer) == 1 {
		return longer[0]
	}
	return ""
}
