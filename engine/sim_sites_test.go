package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"apollo11/engine/task"
)

// The simulation on hosts: executors share cores and memory, see files or don't,
// and after every turn nobody was given more than is there, and nobody who could
// take a task rests.

// siteTypes are the types whose attempts need something of their host.
var siteTypes = []string{"core", "mem", "both"}

func siteUnits() []task.Unit {
	in := []task.Rule{{Name: "x"}, {Name: "y"}, {Name: "f", Kind: task.Path}}
	needs := map[string]task.Resources{"core": {CPU: 1000}, "mem": {Memory: 30 << 20}, "both": {CPU: 2000, Memory: 20 << 20}}
	var units []task.Unit
	for _, name := range siteTypes {
		u := task.Unit{Name: name, Idempotent: true, In: in, Timeout: time.Minute, Retry: task.Retry{Retries: 2, Interval: 300 * time.Millisecond, Backoff: 1}}
		u.Resources = needs[name]
		units = append(units, u)
	}
	return units
}

// newSites is a world with three hosts: one crowded, one small, and one of which
// nothing is said.
func newSites(t testing.TB, seed uint64) *world {
	w := newWorldOf(t, seed)
	w.sited = true
	big, small := task.Resources{CPU: 4000, Memory: 100 << 20}, task.Resources{CPU: 2000, Memory: 60 << 20}
	for n, at := range []struct {
		host  string
		place place
	}{
		{"h1", place{"red", big}}, {"h1", place{"red", big}}, {"h1", place{"blue", big}}, {"h2", place{"blue", small}}, {"", place{}},
	} {
		w.execs[n].host, w.execs[n].at = at.host, at.place
		w.execs[n].proto = 2 - n/4
	}
	w.start(newState())
	return w
}

// siteWork makes some submissions need something of a host, and some have a file.
func (w *world) siteWork(spec *task.Spec) {
	if n := w.rand.IntN(5); n < 3 {
		spec.Type = siteTypes[n]
	}
	n := w.rand.IntN(12)
	for _, c := range []byte(spec.ID) { // the same id is the same work
		n = int(c) % 12
	}
	if spec.Type != "fresh" && spec.Type != "once" && n < 6 {
		spec.Inputs = task.Values{fileOf(n), spec.Inputs[0]}
	}
}

// fileOf is an input with a file in one of the shares.
func fileOf(n int) task.Value {
	f := task.File{Share: []string{"red", "blue"}[n%2], Name: fmt.Sprint("r/", n), Sum: strings.Repeat("ab", 32)}
	return task.Value{Name: "f", Value: f.String()}
}

// sites checks dispatching against what is known of executors from outside the
// machine.
func (w *world) sites() {
	used := map[string]task.Resources{}
	for x, e := range w.m.execs {
		if e == nil || x == 0 {
			continue
		}
		for _, i := range w.m.heldBy(uint32(x)) {
			w.inPlace(e, i)
			used[w.hostOf(e)] = used[w.hostOf(e)].Add(w.needs(w.m.at(i).typ))
		}
		for z := range e.soft.zombies {
			if i := w.m.find(z.task); i != 0 {
				used[w.hostOf(e)] = used[w.hostOf(e)].Add(w.needs(w.m.at(i).typ))
			}
		}
	}
	w.physical()
	w.lanesHold()
	if w.m.paused || w.m.more {
		return
	}
	for i := w.m.states[task.Queued].oldest; i != 0; i = w.m.at(i).list[byState].newer {
		w.restsFor(i, used)
	}
}

// needs is what the units say, whatever the machine believes.
func (w *world) needs(typ uint32) task.Resources {
	for _, u := range siteUnits() {
		if u.Name == w.m.types[typ].name && w.m.types[typ].unit != nil {
			return u.Resources
		}
	}
	return task.Resources{}
}

// hostOf names an executor's host; nobody else is on one without a name.
func (w *world) hostOf(e *executor) string {
	if e.host == "" {
		return "of " + e.id
	}
	return e.host
}

func (w *world) simOf(e *executor) *simExec {
	return w.execs[slices.IndexFunc(w.execs, func(x *simExec) bool { return x.id == e.id })]
}

func (w *world) share(i uint32) string {
	share, err := mustParse(w.m.specOf(i).inputs).Share()
	if err != nil {
		w.fail("task %s: %v", w.m.id(i), err)
	}
	return share
}

// inPlace checks that who holds a task sees its file.
func (w *world) inPlace(e *executor, i uint32) {
	if share := w.share(i); share != "" && w.simOf(e).at.share != share {
		w.fail("task %s has a file in share %s, and %s has it, which sees %q", w.m.id(i), share, e.id, w.simOf(e).at.share)
	}
}

// physical adds up what the processes themselves have, told or not: never more
// than their host may give.
func (w *world) physical() {
	used, capacity := map[string]task.Resources{}, map[string]task.Resources{}
	for _, x := range w.execs {
		if n := w.m.execAt[x.id]; x.link == nil || n == 0 || w.m.execs[n].soft.link != x.link {
			continue // lost to the controller, which cannot know what it still does
		}
		held := slices.Clone(x.queue)
		if x.current != nil {
			held = append(held, *x.current)
		}
		for _, h := range held {
			if i := w.m.find(h.Task); i != 0 {
				used[x.host] = used[x.host].Add(w.needs(w.m.at(i).typ))
			}
		}
		capacity[x.host] = x.at.capacity
	}
	for name, r := range used {
		if !r.Fits(capacity[name].Usable(), capacity[name]) {
			w.fail("the processes on host %q use %s of %s", name, r, capacity[name].Usable())
		}
	}
}

// lanesHold checks that every queued task stands in the lane of its share, in
// order, and that no lane is left over.
func (w *world) lanesHold() {
	queued := 0
	for _, l := range append(slices.Clone(w.m.lanes.all[1:]), w.ownLanes()...) {
		if l == nil {
			continue
		}
		if (l.share != "" || l.second) && l.len == 0 {
			w.fail("an empty lane of share %q is kept", l.share)
		}
		for i, last := l.oldest, int64(-1<<62); i != 0; i = w.m.at(i).list[inQueue].newer {
			if t := w.m.at(i); w.share(i) != l.share || w.m.second(i) != l.second || t.order <= last || w.m.types[t.typ] != l.of {
				w.fail("task %s, order %d after %d, stands in lane %q of %s", w.m.id(i), t.order, last, l.share, l.of.name)
			}
			last = w.m.at(i).order
			queued++
		}
	}
	if queued != w.m.states[task.Queued].len || len(w.m.lanes.at) != len(w.m.lanes.all)-1-len(w.m.lanes.free) {
		w.fail("%d tasks stand in lanes, %d are queued", queued, w.m.states[task.Queued].len)
	}
}

func (w *world) ownLanes() (list []*lane) {
	for _, t := range w.m.types[1:] {
		list = append(list, &t.queue)
	}
	return list
}

// restsFor checks that nobody idle could take a queued task.
func (w *world) restsFor(i uint32, used map[string]task.Resources) {
	t := w.m.types[w.m.at(i).typ]
	if !w.m.mayStart(t) {
		return
	}
	share, needs := w.share(i), w.needs(w.m.at(i).typ)
	for _, e := range w.m.execs[1:] {
		if e == nil || e.soft.link == nil || e.offline || e.draining || e.load() > 0 || e.proto < 2 && (!e.soft.ready || w.m.second(i)) {
			continue
		}
		has, offers := e.offers.Get(t.name)
		at := w.simOf(e).at
		room := at.capacity.Usable().Sub(used[w.hostOf(e)])
		if offers && (has == "" || has == textHash(t.text)) && (share == "" || share == at.share) && (needs.IsZero() || needs.Fits(room, at.capacity)) {
			w.fail("%s rests with %s free, and %s of %s is queued, which needs %s in share %q", e.id, room, w.m.id(i), t.name, needs, share)
		}
	}
}

func TestSimulationOfHosts(t *testing.T) {
	n := *seeds / 10
	if testing.Short() {
		n = min(n, 30)
	}
	for seed := *firstSeed; seed < *firstSeed+n; seed++ {
		newSites(t, seed).run(400)
	}
}
