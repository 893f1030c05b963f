package engine

import (
	"slices"
	"strings"

	"apollo11/engine/task"
)

// group is the executors that offer the same types over the same protocol.
type group struct {
	key     string // in machine.groups
	first   bool   // protocol 1
	types   []*workType
	pool    pool               // all of them
	sites   []*site            // the same, by where they are
	shares  map[string][]*site // those with a share
	siteAt  map[siteKey]*site
	members int
	news    uint64 // machine.places when one of them was put in its bucket last
}

// site is the executors of a group that see the same files on the same host:
// one of them can take a task if any can.
type site struct {
	siteKey
	pool    pool
	members int
}

type siteKey struct {
	host  *host
	share string
	told  bool // the executors said what their host has
}

// pool is executors in buckets by load. A dispatch takes the front of the lowest
// bucket and never looks at the others, so it costs the same with ten executors
// and with ten thousand.
type pool struct {
	kind    int // of its members' spots
	buckets []bucket
	low     int // no bucket before it holds anybody
}

// bucket is executors of equal load, longest unused first.
type bucket struct{ first, last *executor }

// The pools that an executor stands in at once.
const (
	ofGroup = iota
	ofSite
	pools
)

// groupPlace is where an executor stands.
type groupPlace struct {
	group  *group
	site   *site
	bucket int // plus one; 0: in none, it can take nothing now
	spots  [pools]struct{ prev, next *executor }
	turn   uint64 // when it was put there: orders equals across groups
}

// regroup puts an executor into the group of those that offer the same.
func (m *machine) regroup(x uint32) {
	e := m.execs[x]
	m.ungroup(e)
	var names []string
	for _, v := range e.offers {
		t := m.types[m.typ(v.Name)]
		if v.Value == "" || v.Value == textHash(t.text) {
			names = append(names, v.Name)
		}
	}
	if len(names) > 0 && e.soft.link != nil && !e.offline {
		g := m.groupOf(names, e.proto < 2)
		e.soft.group, e.soft.site = g, g.join(siteKey{e.soft.host, e.soft.share, e.soft.capacity != task.Resources{}})
		for _, t := range g.types {
			t.soft.offering++
		}
	}
	m.dirty = append(m.dirty, x)
}

// groupOf is the group of those that offer certain types over one protocol, made
// if need be.
func (m *machine) groupOf(names []string, first bool) *group {
	key := strings.Join(names, ",")
	if first {
		key = "1 " + key
	}
	if g := m.groups[key]; g != nil {
		return g
	}
	g := &group{key: key, first: first, pool: pool{kind: ofGroup}, siteAt: map[siteKey]*site{}, shares: map[string][]*site{}}
	m.groups[key] = g
	for _, name := range names {
		t := m.types[m.typ(name)]
		g.types = append(g.types, t)
		t.soft.groups = append(t.soft.groups, g)
	}
	return g
}

// join counts a member in, and says where it belongs.
func (g *group) join(key siteKey) *site {
	s := g.siteAt[key]
	if s == nil {
		s = &site{siteKey: key, pool: pool{kind: ofSite}}
		g.siteAt[key] = s
		g.sites = append(g.sites, s)
		if s.share != "" {
			g.shares[s.share] = append(g.shares[s.share], s)
		}
	}
	g.members++
	s.members++
	return s
}

// part counts a member out; an empty site goes.
func (g *group) part(s *site) {
	g.members--
	if s.members--; s.members > 0 {
		return
	}
	without := func(list []*site) []*site {
		n := slices.Index(list, s)
		return slices.Delete(list, n, n+1)
	}
	delete(g.siteAt, s.siteKey)
	g.sites = without(g.sites)
	if s.share == "" {
		return
	}
	if g.shares[s.share] = without(g.shares[s.share]); len(g.shares[s.share]) == 0 {
		delete(g.shares, s.share)
	}
}

// in is the group's sites that see a share; all of them, if none is asked for.
func (g *group) in(share string) []*site {
	if share == "" {
		return g.sites
	}
	return g.shares[share]
}

// ungroup takes an executor out of its group; an empty group goes.
func (m *machine) ungroup(e *executor) {
	m.checkSoon() // it may come back with other units, or not at all
	g := e.soft.group
	if g == nil {
		return
	}
	e.unplace()
	g.part(e.soft.site)
	e.soft.group, e.soft.site = nil, nil
	for _, t := range g.types {
		t.soft.offering--
	}
	if g.members > 0 {
		return
	}
	for _, t := range g.types {
		at := slices.Index(t.soft.groups, g)
		t.soft.groups = slices.Delete(t.soft.groups, at, at+1)
	}
	delete(m.groups, g.key)
}

// regroupOffering looks anew at every executor that offers a type: its contract
// has changed, so only those with the same one may work on it.
func (m *machine) regroupOffering(name string) {
	for x, e := range m.execs {
		if e != nil {
			if _, ok := e.offers.Get(name); ok && e.soft.link != nil {
				m.regroup(uint32(x))
			}
		}
	}
}

func (m *machine) replaceDirty() {
	for _, x := range m.dirty {
		m.replaceExec(x)
	}
	m.dirty = m.dirty[:0]
}

// replaceExec puts an executor into the bucket of its load, or into none.
func (m *machine) replaceExec(x uint32) {
	e := m.execs[x]
	if e == nil {
		return
	}
	m.weigh(e)
	if e.soft.link == nil || e.offline {
		m.ungroup(e)
		return
	}
	if e.soft.group == nil {
		return
	}
	e.unplace()
	load := e.load()
	switch {
	case e.draining, load > maxDepth, load > 0 && e.soft.long > 0, len(e.soft.zombies) > 0:
	case e.proto < 2 && (!e.soft.ready || load > 0):
	case load > 0 && e.soft.bytes >= maxDepthBytes:
	default:
		m.places++
		e.place(load, m.places)
	}
}

// place appends an executor to a bucket of its group and of its site.
func (e *executor) place(load int, turn uint64) {
	e.soft.bucket, e.soft.turn, e.soft.group.news = load+1, turn, turn
	e.soft.group.pool.add(e, load)
	e.soft.site.pool.add(e, load)
}

func (e *executor) unplace() {
	if e.soft.bucket == 0 {
		return
	}
	e.soft.group.pool.remove(e, e.soft.bucket-1)
	e.soft.site.pool.remove(e, e.soft.bucket-1)
	e.soft.bucket = 0
}

func (p *pool) add(e *executor, load int) {
	for len(p.buckets) <= load {
		p.buckets = append(p.buckets, bucket{})
	}
	p.low = min(p.low, load)
	b, spot := &p.buckets[load], &e.soft.spots[p.kind]
	spot.prev, spot.next = b.last, nil
	if b.last != nil {
		b.last.soft.spots[p.kind].next = e
	} else {
		b.first = e
	}
	b.last = e
}

func (p *pool) remove(e *executor, load int) {
	b, spot := &p.buckets[load], &e.soft.spots[p.kind]
	if spot.prev != nil {
		spot.prev.soft.spots[p.kind].next = spot.next
	} else {
		b.first = spot.next
	}
	if spot.next != nil {
		spot.next.soft.spots[p.kind].prev = spot.prev
	} else {
		b.last = spot.prev
	}
	spot.prev, spot.next = nil, nil
}

// front is the least loaded executor, and its load; nil: the pool is empty.
func (p *pool) front() (*executor, int) {
	for ; p.low < len(p.buckets); p.low++ {
		if e := p.buckets[p.low].first; e != nil {
			return e, p.low
		}
	}
	return nil, 0
}
