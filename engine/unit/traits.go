package unit

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"apollo11/engine/task"
)

func (m *Manifest) readTraits(t *table) {
	u := &m.Unit
	u.Deps = slices.Clone(t.texts("deps", nil))
	for i, dep := range u.Deps {
		switch err := task.CheckName(dep); {
		case err != nil:
			t.fault("deps", err.Error())
		case dep == u.Name:
			t.fault("deps", dep+" would wait for itself")
		case slices.Contains(u.Deps[:i], dep):
			t.fault("deps", dep+" stands there twice")
		}
	}
	u.Varies = t.flag("nondeterministic", false)
	m.readResources(t)
}

func (m *Manifest) readResources(t *table) {
	inner := t.table("resources", "a table such as { cpu = 1, memory = \"256MiB\", disk = \"1GiB\" }")
	if inner == nil {
		return
	}
	r := &m.Unit.Resources
	r.CPU = int64(math.Round(1000 * inner.number("cpu", 0, 0, 1<<16)))
	r.Memory, r.Disk = inner.size("memory"), inner.size("disk")
	inner.finish()
}

// table hands out one sub-table; nil: there is none.
func (t *table) table(key, want string) *table {
	all := taken(t, key, want, nil, as[map[string]any])
	if all == nil {
		return nil
	}
	return &table{sheet: t.sheet, path: join(t.path, key), left: all}
}

const mostBytes = 1 << 50

// size reads a number of bytes.
func (t *table) size(key string) int64 {
	want := fmt.Sprintf(`a size such as "64KiB", "256MiB" or "1GiB", or a number of bytes, up to %dTiB`, mostBytes>>40)
	return taken(t, key, want, 0, func(v any) (int64, bool) {
		n, ok := v.(int64)
		if text, isText := v.(string); isText {
			n, ok = parseSize(text)
		}
		return n, ok && n >= 0 && n <= mostBytes
	})
}

var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1},
}

// parseSize reads what engine/config takes for a size.
func parseSize(text string) (int64, bool) {
	for _, u := range sizeUnits {
		if digits, ok := strings.CutSuffix(text, u.name); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 63)
			return int64(n) * u.bytes, err == nil && int64(n) <= mostBytes/u.bytes
		}
	}
	return 0, text == "0"
}
