package mission

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Graph is a mission's order: which unit waits for which. Units go by their
// index. Weak dependencies are not in it: nobody waits for them.
type Graph struct {
	mission  *Mission
	parents  [][]int32
	children edges
	order    []int32 // every unit after all that it waits for
	level    []int32 // longest way from a unit that waits for none
	optional []bool
}

// edges are the children of all units in one piece of memory, which the caches
// can hold: those of u stand in to from first[u] up to first[u+1].
type edges struct{ first, to []int32 }

func (e edges) of(u int32) []int32 { return e.to[e.first[u]:e.first[u+1]] }

// RingError is returned for units that wait for each other.
type RingError struct{ Units []string }

func (e *RingError) Error() string {
	return "units wait for each other in a ring: " + strings.Join(append(slices.Clip(e.Units), e.Units[0]), " waits for ")
}

// NewGraph orders a mission that has passed Check. Units that wait for each
// other, or for one that is not there, are an error.
func NewGraph(m *Mission) (*Graph, error) {
	g := &Graph{mission: m, parents: make([][]int32, len(m.Units))}
	for i := range m.Units {
		for _, d := range m.Units[i].Deps {
			p, ok := m.index[d]
			if !ok {
				return nil, fmt.Errorf("unit %s waits for %s, which is not there", m.Units[i].Name, d)
			}
			g.parents[i] = append(g.parents[i], int32(p))
		}
	}
	if ring := g.sort(); ring != nil {
		return nil, &RingError{g.named(ring)}
	}
	g.optional = make([]bool, len(m.Units))
	for i := range m.Units {
		for _, w := range m.Units[i].Weak {
			if p, ok := m.index[w]; ok {
				g.optional[p] = len(g.Children(p)) == 0
			}
		}
	}
	return g, nil
}

func (g *Graph) named(units []int32) []string {
	names := make([]string, len(units))
	for i, u := range units {
		names[i] = g.mission.Units[u].Name
	}
	return names
}

// sort fills in everything but the parents; a ring of units is returned instead
// of an order.
func (g *Graph) sort() (ring []int32) {
	g.turn()
	g.order = make([]int32, 0, len(g.parents))
	g.level = make([]int32, len(g.parents))
	c := g.Countdown()
	g.order = c.Roots(g.order)
	for i := 0; i < len(g.order); i++ {
		for _, child := range g.children.of(g.order[i]) {
			g.level[child] = max(g.level[child], g.level[g.order[i]]+1)
		}
		g.order = c.Finish(g.order[i], g.order)
	}
	if len(g.order) == len(g.parents) {
		return nil
	}
	return g.ring(c.left)
}

// turn makes the children of the parents.
func (g *Graph) turn() {
	n := len(g.parents)
	first := make([]int32, n+2) // one place ahead, while it is filled
	for _, parents := range g.parents {
		for _, p := range parents {
			first[p+2]++
		}
	}
	for i := range n {
		first[i+2] += first[i+1]
	}
	to := make([]int32, first[n+1])
	for i, parents := range g.parents {
		for _, p := range parents {
			to[first[p+1]] = int32(i)
			first[p+1]++
		}
	}
	g.children = edges{first[:n+1], to}
}

// ring finds a ring among the units that nothing could start: each of them waits
// for another of them. It begins with the first in the file.
func (g *Graph) ring(left []int32) []int32 {
	at := int32(slices.IndexFunc(left, func(n int32) bool { return n > 0 }))
	seen := map[int32]int{}
	var way []int32
	for {
		if from, again := seen[at]; again {
			ring := way[from:]
			first := slices.Index(ring, slices.Min(ring))
			return append(slices.Clone(ring[first:]), ring[:first]...)
		}
		seen[at] = len(way)
		way = append(way, at)
		next := slices.IndexFunc(g.parents[at], func(p int32) bool { return left[p] > 0 })
		at = g.parents[at][next]
	}
}

// Children are the units that wait for a unit. The list is the graph's own.
func (g *Graph) Children(unit int) []int32 { return g.children.of(int32(unit)) }

// Parents are the units that a unit waits for. The list is the graph's own.
func (g *Graph) Parents(unit int) []int32 { return g.parents[unit] }

// Optional reports whether the mission can do without a unit: others look for
// its outputs, but none waits for it.
func (g *Graph) Optional(unit int) bool { return g.optional[unit] }

// Len is the number of units.
func (g *Graph) Len() int { return len(g.parents) }

// Level is a unit's level, 0 for one that waits for none.
func (g *Graph) Level(unit int) int { return int(g.level[unit]) }

// Widths are the numbers of units on each level.
func (g *Graph) Widths() []int {
	var widths []int
	for _, u := range g.order {
		l := int(g.level[u])
		if l == len(widths) {
			widths = append(widths, 0)
		}
		widths[l]++
	}
	return widths
}

// Critical is the chain of units that decides how long the mission takes, given
// how long each of them does, and its length.
func (g *Graph) Critical(durations []time.Duration) (units []int, total time.Duration) {
	ends := make([]time.Duration, g.Len()) // earliest
	before := make([]int32, g.Len())
	last := int32(-1)
	for _, u := range g.order {
		before[u] = -1
		for _, p := range g.parents[u] {
			if before[u] < 0 || ends[p] > ends[before[u]] {
				before[u] = p
			}
		}
		ends[u] = durations[u]
		if before[u] >= 0 {
			ends[u] = sum(ends[u], ends[before[u]])
		}
		if last < 0 || ends[u] > ends[last] {
			last = u
		}
	}
	for u := last; u >= 0; u = before[u] {
		units = append(units, int(u))
		total = max(total, ends[u])
	}
	slices.Reverse(units)
	return units, total
}

// Countdown counts, for each unit, what it still waits for.
type Countdown struct {
	children edges
	left     []int32
}

// Countdown begins one, with nothing finished.
func (g *Graph) Countdown() *Countdown {
	c := &Countdown{g.children, make([]int32, len(g.parents))}
	for i, parents := range g.parents {
		c.left[i] = int32(len(parents))
	}
	return c
}

// Roots appends the units that wait for none.
func (c *Countdown) Roots(ready []int32) []int32 {
	for i, n := range c.left {
		if n == 0 {
			ready = append(ready, int32(i))
		}
	}
	return ready
}

// Finish notes that a unit has finished, once, and appends those that waited for
// it last. It costs the unit's children.
func (c *Countdown) Finish(unit int32, ready []int32) []int32 {
	for _, child := range c.children.of(unit) {
		if c.left[child]--; c.left[child] == 0 {
			ready = append(ready, child)
		}
	}
	return ready
}
