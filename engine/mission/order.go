package mission

import "slices"

// order checks what the dependencies make of the units together.
func (k *checker) order() {
	g := &Graph{mission: k.m, parents: make([][]int32, len(k.m.Units))}
	taken := make([]int, len(k.m.Units)) // by whom last, and 1
	for i := range k.m.Units {
		for _, d := range k.m.Units[i].Deps {
			if p, there := k.m.index[d]; there && p != i && taken[p] != i+1 {
				g.parents[i] = append(g.parents[i], int32(p))
				taken[p] = i + 1
			}
		}
	}
	if ring := g.sort(); ring != nil {
		k.ring(g, ring)
		return // before and after mean nothing
	}
	w := k.writers()
	if len(w) == 0 && !slices.ContainsFunc(k.m.Units, func(u Unit) bool { return len(u.Weak) > 0 }) {
		return
	}
	upstream := k.closure(g, w)
	k.weak(upstream)
	k.hidden(upstream, w)
}

func (k *checker) ring(g *Graph, ring []int32) {
	names := g.named(ring)
	first := int(ring[0])
	next := names[0]
	if len(names) > 1 {
		next = names[1]
	}
	n := slices.Index(k.m.Units[first].Deps, next)
	k.at(first, "deps", n)("%s: take one of them out of the other's deps", (&RingError{names}).Error())
}

// writers are the units that change a state key by one of their outputs, as far
// as that is known, for the keys that a unit of the mission reads.
func (k *checker) writers() map[string][]int {
	by := map[string][]string{} // keys by output
	for i := range k.reads {
		slices.Sort(k.reads[i])
		k.reads[i] = slices.Compact(k.reads[i])
		for _, name := range k.reads[i] {
			if key := k.keys[name]; key != nil && key.From != "" && !slices.Contains(by[key.From], name) {
				by[key.From] = append(by[key.From], name)
			}
		}
	}
	writers := map[string][]int{}
	for i := range k.m.Units {
		contract := k.contracts[k.m.Units[i].Uses]
		if contract == nil || len(by) == 0 {
			continue
		}
		for r := range contract.Out {
			for _, key := range by[contract.Out[r].Name] {
				writers[key] = append(writers[key], i)
			}
		}
	}
	return writers
}

// bits is a set of units, each under a column of its own.
type bits []uint64

func (b bits) has(column int) bool { return b[column/64]>>(column%64)&1 == 1 }

func (b bits) set(column int) { b[column/64] |= 1 << (column % 64) }

// closure says which units come before which, for those that were asked for.
type closure struct {
	column []int  // by unit; -1: not asked for
	before []bits // by unit
}

// comesBefore reports whether b waits for a, at however many removes.
func (c *closure) comesBefore(a, b int) bool { return c.before[b].has(c.column[a]) }

func (k *checker) closure(g *Graph, writers map[string][]int) *closure {
	c := &closure{column: make([]int, g.Len()), before: make([]bits, g.Len())}
	columns := 0
	ask := func(i int) {
		if c.column[i] < 0 {
			c.column[i] = columns
			columns++
		}
	}
	for i := range c.column {
		c.column[i] = -1
	}
	for _, list := range writers {
		for _, i := range list {
			ask(i)
		}
	}
	for i := range k.m.Units {
		if len(k.m.Units[i].Weak) > 0 || len(k.reads[i]) > 0 {
			ask(i)
		}
	}
	words := (columns + 63) / 64
	room := make(bits, words*g.Len())
	for _, u := range g.order {
		set := room[int(u)*words : (int(u)+1)*words]
		for _, p := range g.parents[u] {
			for w, v := range c.before[p] {
				set[w] |= v
			}
			if c.column[p] >= 0 {
				set.set(c.column[p])
			}
		}
		c.before[u] = set
	}
	return c
}

// weak refuses a weak dependency on what only begins after the unit itself.
func (k *checker) weak(c *closure) {
	for i := range k.m.Units {
		for n, name := range k.m.Units[i].Weak {
			if w, there := k.m.index[name]; there && c.comesBefore(i, w) {
				k.at(i, "weak", n)("%s waits for this unit, so it is never there: take it out", name)
			}
		}
	}
}

// hidden refuses a unit that reads a state key which another changes, before or
// after as it happens.
func (k *checker) hidden(c *closure, writers map[string][]int) {
	for i := range k.m.Units {
		u := &k.m.Units[i]
		for _, key := range k.reads[i] {
			for _, w := range writers[key] {
				name := k.m.Units[w].Name
				if w == i || c.comesBefore(w, i) || c.comesBefore(i, w) || slices.Contains(u.Weak, name) {
					continue
				}
				k.at(i, "deps")("a hidden dependency: %s changes the state key %s, which this unit reads: add %s",
					name, key, depsLine(append(slices.Clip(u.Deps), name)))
				break // one a key is enough to act on
			}
		}
	}
}
