package engine

import (
	"errors"
	"flag"
	"fmt"
	"hash"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// The simulation drives the machine with a seeded generator: executors that
// crash, stall, lose links and answer late, operators, a clock that jumps, and a
// controller that is killed before or after its batch reached the disk. After
// every turn the invariants of never-lost and never-twice are checked.

// world is one simulated run.
type world struct {
	t       testing.TB
	seed    uint64
	rand    *rand.Rand
	m       *machine
	now     moment
	journal []string // durable entries
	shadow  shadow
	image   *simImage // the last image taken
	taking  *imaging  // one being taken
	execs   []*simExec
	acked   map[string]bool // submissions acknowledged
	applied map[string]int  // results recorded, by task and version
	ok      int             // results recorded
	told    []told          // answers of the last turn
	asks    []task.Spec     // submissions with an id, acknowledged
	calm    bool            // faults have stopped
	slept   bool            // the next turn comes late
	sited   bool            // executors are on hosts, and see shares
	wall    int64           // of the last record
	nextID  int
	trace   strings.Builder
	hash    hash.Hash64 // of the whole trace: the same seed gives the same
}

type told struct {
	answer Answer
	err    error
}

type simImage struct {
	seq   uint64
	lines []string
	hash  string
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	trace := w.trace.String()
	if len(trace) > 6000 {
		trace = "…" + trace[len(trace)-6000:]
	}
	w.t.Fatalf("seed %d, %d records: %s\nreplay: go test ./engine -run Simulation -seed %d -seeds 1\n%s",
		w.seed, len(w.journal), fmt.Sprintf(format, args...), w.seed, trace)
}

func simSettings() Settings {
	set := DefaultSettings()
	set.RetainTasks = 12
	set.Limits = map[string]int{"b": 2}
	set.Keys = []KeyRule{{Rule: task.Rule{Name: "total", Kind: task.Int}, From: "n", Apply: task.Add}}
	set.Retry.Interval = 500 * time.Millisecond
	return set
}

func newWorld(t testing.TB, seed uint64) *world {
	w := newWorldOf(t, seed)
	w.start(newState())
	return w
}

// newWorldOf is a world before its controller's start.
func newWorldOf(t testing.TB, seed uint64) *world {
	w := &world{
		t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 1)), acked: map[string]bool{}, applied: map[string]int{},
		shadow: newShadow(), hash: fnv.New64a(),
		now: moment{raw: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano(), mono: int64(time.Hour)},
	}
	for n := range 5 {
		w.execs = append(w.execs, &simExec{w: w, id: fmt.Sprintf("e%d", n), proto: 1 + n%2})
	}
	return w
}

func (w *world) start(s *state) {
	w.m = newMachine(s, simSettings(), slog.New(slog.DiscardHandler))
	w.m.rand = rand.New(rand.NewPCG(w.seed, uint64(len(w.journal))))
	w.m.set.base = time.Unix(0, 0)
	w.turn(false, func() { w.m.boot() })
}

// turn is one turn of the loop. A kill loses the batch or the answers.
func (w *world) turn(kill bool, do func()) {
	w.told = w.told[:0]
	w.m.begin(w.now, w.slept)
	w.slept = false
	do()
	w.m.settle()
	if kill && w.rand.IntN(2) == 0 {
		w.recover()
		return
	}
	start := 0
	for _, end := range w.m.batch.ends {
		w.record(string(w.m.batch.records.out[start:end]))
		start = end + 1
	}
	w.m.batch.records.out, w.m.batch.ends = w.m.batch.records.out[:0], w.m.batch.ends[:0]
	if kill {
		w.recover()
		return
	}
	sends := w.m.batch.sends
	w.m.batch.sends = nil
	for _, s := range sends {
		if s.order != nil {
			s.link.Order(s.order)
		} else {
			s.link.Answer(s.ref, s.answer, s.err)
		}
	}
	w.check()
}

// record makes one entry durable and counts results: no version twice.
func (w *world) record(entry string) {
	w.journal = append(w.journal, entry)
	fmt.Fprintf(&w.trace, "%d %s\n", len(w.journal), entry)
	w.hash.Write([]byte(entry))
	wall, r, err := parseRecord(entry)
	if wall < w.wall {
		w.fail("recorded time goes back")
	}
	w.wall = wall
	if err != nil {
		w.fail("a record does not read back: %v\n%s", err, entry)
	}
	var f fields
	appendRecord(&f, []byte(entry[:len(momentLayout)]), r)
	if string(f.out) != entry {
		w.fail("a record does not write back:\n%s\n%s", entry, f.out)
	}
	if broken := w.shadow.note(uint64(len(w.journal)), r); broken != "" {
		w.fail("%s", broken)
	}
	if r, ok := r.(*resulted); ok {
		key := r.Task + "@" + r.Version.String()
		if w.applied[key]++; w.applied[key] > 1 {
			w.fail("result %s applied twice", key)
		}
		if _, counts := r.Outputs.Get("n"); counts { // an undo hands nothing on
			w.ok++
		}
	}
}

// check holds the state against what is known to have happened.
func (w *world) check() {
	if k := w.m.keys["total"]; k != nil && k.value != fmt.Sprint(w.ok) {
		w.fail("total is %s after %d results", k.value, w.ok)
	}
	out := 0
	for _, x := range w.m.execs[1:] {
		if x != nil {
			out += x.held.len
		}
	}
	if want := w.m.states[task.Assigned].len + w.m.states[task.Running].len; out != want {
		w.fail("executors hold %d tasks, %d are out", out, want)
	}
	if n := w.m.types[w.m.typ("b")].out; n > 2 {
		w.fail("%d of type b are out, over the limit", n)
	}
	if *w.m.courses.at(0) != (course{}) {
		w.fail("the course of those that have none was written: %+v", *w.m.courses.at(0))
	}
	if w.sited {
		w.sites()
	} else {
		w.rests()
	}
	w.runs()
	w.reads()
	if len(w.journal)%64 == 0 {
		w.explains()
	}
}

// explains asks about a task, which changes nothing and always says something.
func (w *world) explains() {
	i := uint32(len(w.journal)) % w.m.slots.made
	if w.m.at(i).num == 0 {
		return
	}
	was := w.m.hash()
	x, err := w.m.explain(w.m.id(i))
	if err != nil || len(x.Lines) == 0 || w.m.hash() != was {
		w.fail("explained as %+v, %v", x, err)
	}
	for _, line := range append(x.Lines, x.Hints...) {
		if task.Printable(line) != line {
			w.fail("explained as %q", line)
		}
	}
}

// reads checks that who subscribed knows the state, unless there is news to tell.
func (w *world) reads() {
	if len(w.m.feed.changed) > 0 {
		return
	}
	for _, x := range w.execs {
		if x.link == nil || !x.link.reads || w.m.execs[w.m.execAt[x.id]].soft.link != x.link {
			continue
		}
		for name, k := range w.m.keys {
			if x.link.seen[name] != k.version {
				w.fail("%s believes key %s to be at version %d, it is at %d", x.id, name, x.link.seen[name], k.version)
			}
		}
		if len(x.link.seen) != len(w.m.keys) {
			w.fail("%s knows %d keys of %d", x.id, len(x.link.seen), len(w.m.keys))
		}
	}
}

// rests checks that no capable idle executor rests while there is work.
func (w *world) rests() {
	if w.m.paused || w.m.more {
		return
	}
	for _, t := range w.m.types[1:] {
		if t.queue.len == 0 || !w.m.mayStart(t) {
			continue
		}
		for _, e := range w.m.execs[1:] {
			if e == nil || e.soft.link == nil || e.offline || e.draining || e.load() > 0 || e.proto < 2 && !e.soft.ready {
				continue
			}
			if has, offers := e.offers.Get(t.name); offers && (has == "" || has == textHash(t.text)) {
				w.fail("%s rests while %d of %s are queued", e.id, t.queue.len, t.name)
			}
		}
	}
}

// recover kills the controller and starts it from the disk, both ways.
func (w *world) recover() {
	w.taking = nil
	for _, x := range w.execs {
		x.link, x.waiting = nil, false
	}
	whole := newState()
	for n, entry := range w.journal {
		if err := foldText(whole, uint64(n+1), entry); err != nil {
			w.fail("fold: %v", err)
		}
		if w.image != nil && w.image.seq == uint64(n+1) && whole.hash() != w.image.hash {
			w.fail("image of seq %d differs from the fold", w.image.seq)
		}
	}
	s, err := loadImage(w)
	if err != nil {
		w.fail("image: %v", err)
	}
	for n := s.seq; n < uint64(len(w.journal)); n++ {
		if err := foldText(s, n+1, w.journal[n]); err != nil {
			w.fail("fold after image: %v", err)
		}
	}
	if len(s.dirty)+len(whole.dirty) > 0 {
		w.fail("folding keeps a list of %d executors to place", len(whole.dirty))
	}
	if s.hash() != whole.hash() {
		w.fail("image and tail give another state than the whole journal")
	}
	for id := range w.acked {
		if s.find(id) == 0 && s.names.gone[id] == nil {
			w.fail("acknowledged task %s is lost", id)
		}
	}
	if n := len(s.names.gone); n > 0 && w.rand.IntN(2) == 0 {
		s.names.line = slices.Clip(s.names.line) // an alias would show
	}
	fmt.Fprintf(&w.trace, "-- controller restarted\n")
	w.start(s)
}

// ReadImage implements Source.
func (w *world) ReadImage(load func(uint64, []byte) error, line func([]byte) error) (bool, error) {
	if w.image == nil {
		return false, nil
	}
	if err := load(w.image.seq, fmt.Appendf(nil, `{"hash":%q}`, w.image.hash)); err != nil {
		return false, err
	}
	for _, l := range w.image.lines {
		if err := line([]byte(l)); err != nil {
			return false, fmt.Errorf("%s: %w", l, err)
		}
	}
	return true, nil
}

// Read implements Source; recover folds by itself.
func (w *world) Read(uint64, func(uint64, []byte) error) error { return errors.New("not used") }

// step does one random thing.
func (w *world) step() {
	w.now.raw += int64(w.rand.IntN(40)) * int64(time.Millisecond)
	w.now.mono += int64(w.rand.IntN(40)) * int64(time.Millisecond)
	w.now.raw -= w.now.raw % 1000
	kill := !w.calm && w.rand.IntN(150) == 0
	switch n := w.rand.IntN(100); {
	case n < 12 && !w.calm:
		w.turn(kill, w.submit)
	case n < 15 && !w.calm:
		w.operator(kill)
	case n < 17 && !w.calm:
		w.missions(kill)
	case n < 19:
		w.wait()
	case n < 20:
		w.imageStep()
	default:
		x := w.execs[w.rand.IntN(len(w.execs))]
		w.turn(kill, func() { x.act() })
	}
}

func (w *world) submit() {
	spec := task.Spec{Type: []string{"a", "b", "c", "fresh", "once"}[w.rand.IntN(5)], Retries: task.Unset}
	name := w.nextID - w.rand.IntN(2)*w.rand.IntN(3) // now and then one that was given before
	w.nextID++
	switch w.rand.IntN(4) {
	case 0, 1:
		spec.ID = fmt.Sprint("s", name)
	case 2:
		spec.Key = fmt.Sprint("k", name)
	}
	spec.Inputs = task.Values{{Name: "x", Value: "1\n=\\" + spec.ID + "é"}}
	if w.sited {
		w.siteWork(&spec)
	}
	if w.rand.IntN(8) == 0 {
		spec.NotBefore = time.Unix(0, w.now.raw+int64(w.rand.IntN(3000))*int64(time.Millisecond))
	}
	if w.rand.IntN(10) == 0 {
		spec.Deadline = time.Unix(0, w.now.raw+int64(5+w.rand.IntN(60))*int64(time.Second))
	}
	if n := len(w.asks); n > 0 && w.rand.IntN(4) == 0 { // the very same again, whatever became of it
		spec = w.asks[n-1-w.rand.IntN(min(n, 10))]
	}
	link := &simLink{w: w}
	tasks, err := w.m.submit(Submit{Specs: []task.Spec{spec}})
	if err != nil && (!errors.Is(err, ErrConflict) || spec.Key == "" && w.shadow.asked[spec.ID] == spec.Type) {
		w.fail("submit of %+v: %v", spec, err)
	}
	w.m.answer(Ask{Link: submitLink{link, spec}}, tasks, err)
}

// submitLink notes acknowledged submissions.
type submitLink struct {
	*simLink
	spec task.Spec
}

func (l submitLink) Answer(_ uint64, a Answer, err error) {
	if tasks, ok := a.([]view.Submitted); ok && err == nil {
		for _, s := range tasks {
			if l.spec.ID != "" || l.spec.Key != "" {
				l.w.acked[s.ID] = true
			}
			if l.spec.ID != "" { // what it names from now on, however its inputs are edited
				l.w.shadow.asked[s.ID] = l.spec.Type
				if !s.Existed {
					again := l.spec
					again.NotBefore, again.Deadline = time.Time{}, time.Time{}
					l.w.asks = append(l.w.asks, again)
				}
			}
			key := l.spec.Type + "/" + l.spec.Key
			if was := l.w.shadow.keys[key]; l.spec.Key != "" && was != "" && (was != s.ID || !s.Existed) {
				l.w.fail("key %s named %s, now it is answered %+v", key, was, s)
			}
			l.w.shadow.keys[key] = s.ID
		}
	}
}

func (w *world) operator(kill bool) {
	var command Command
	query := view.Selection{All: true, Query: view.Query{States: []task.State{task.Dead}}}
	some := fmt.Sprint("s", w.rand.IntN(w.nextID+1))
	switch w.rand.IntN(11) {
	case 0:
		command = Requeue{Selection: query, Actor: "sim"}
	case 1:
		command = Cancel{Selection: view.Selection{All: true, Query: view.Query{Type: "c"}}, Actor: "sim"}
	case 2:
		command = Pause{On: w.rand.IntN(3) == 0}
	case 3:
		command = Pause{Type: "a", On: w.rand.IntN(3) == 0}
	case 4:
		command = Drain{Exec: w.execs[w.rand.IntN(len(w.execs))].id}
	case 5:
		command = Repair{Key: "other", Value: fmt.Sprint(w.nextID), Reason: "sim"}
	case 6:
		command = Repair{Key: "other", Delete: true, Reason: "sim"}
	case 7:
		command = Cancel{Selection: view.Selection{IDs: []string{some}}, Actor: "sim"}
	case 8:
		command = Drop{Selection: query, Actor: "sim", Reason: "sim"}
	case 9:
		command = Drop{Selection: view.Selection{IDs: []string{some}}, Actor: "sim"}
	case 10:
		command = w.edit(some)
	}
	w.turn(kill, func() { w.m.decide(Ask{Command: command, Link: &simLink{w: w}}) })
}

// edit changes an input, or brings a default back; often it is refused.
func (w *world) edit(id string) Command {
	c := Edit{ID: id, Actor: "sim"}
	if w.rand.IntN(4) == 0 {
		c.Unset = []string{"y"}
	} else {
		c.Set = task.Values{{Name: []string{"x", "y"}[w.rand.IntN(2)], Value: fmt.Sprint("edited ", w.rand.IntN(3))}}
	}
	if w.sited && w.rand.IntN(2) == 0 {
		c.Set, c.Unset = task.Values{fileOf(w.rand.IntN(6))}, nil
	}
	return c
}

// wait lets time pass, in which nothing is heard of anybody.
func (w *world) wait() {
	d := int64(time.Duration(w.rand.IntN(8000)) * time.Millisecond)
	if !w.calm && w.rand.IntN(20) == 0 {
		d = int64(40 * time.Second)
	}
	w.now.mono += d
	w.now.raw += d
	w.slept = !w.calm && w.rand.IntN(10) == 0
	if !w.calm && w.rand.IntN(30) == 0 {
		w.now.raw += int64(24 * time.Hour)
	}
	if !w.calm && w.rand.IntN(30) == 0 {
		w.now.raw -= int64(time.Hour) // the clock is set back
	}
	for _, x := range w.execs {
		if x.link != nil && (w.calm || w.rand.IntN(5) > 0) {
			x.link.heard = time.Unix(0, w.now.mono)
		}
	}
	w.turn(false, func() {})
}

// imageStep goes on with an image, so that turns happen between its slices.
func (w *world) imageStep() {
	if w.taking == nil {
		w.taking = w.m.beginImage()
		w.image = nil
		if w.rand.IntN(2) == 0 {
			return
		}
	}
	g := w.taking
	if !w.m.step(g, w.rand.IntN(200)) {
		return
	}
	w.taking, w.m.image = nil, nil
	lines := strings.Split(strings.TrimSuffix(string(g.take()), "\n"), "\n")
	w.image = &simImage{seq: g.seq, lines: lines, hash: g.sum.String()}
}

// settled reports whether every task has ended.
func (w *world) settled() bool {
	for _, s := range task.States() {
		if !s.Terminal() && w.m.states[s].len > 0 {
			return false
		}
	}
	return true
}

// runWorld is one seed: faults, then calm, in which everything must end.
func runWorld(t testing.TB, seed uint64, steps int) *world {
	return newWorld(t, seed).run(steps)
}

func (w *world) run(steps int) *world {
	for range steps {
		w.step()
	}
	w.calm = true
	w.turn(false, func() {
		w.m.decide(Ask{Command: Pause{}})
		w.m.decide(Ask{Command: Pause{Type: "a"}})
	})
	for _, x := range w.execs { // drained executors are replaced by new processes
		if x.link != nil {
			w.turn(false, func() { w.m.decide(Ask{Command: Disconnected{Exec: x.id}, Link: x.link}) })
		}
		x.die()
		x.contract, x.lacks = 99, ""
	}
	for n := 0; !w.settled(); n++ {
		if n > 30_000 {
			w.fail("not settled: %v", w.m.status().Tasks)
		}
		w.step()
	}
	w.recover()
	return w
}

var (
	seeds     = flag.Uint64("seeds", 400, "simulated runs")
	firstSeed = flag.Uint64("seed", 0, "the first run's seed")
)

func TestSimulation(t *testing.T) {
	n := *seeds
	if testing.Short() {
		n = min(n, 30)
	}
	for seed := *firstSeed; seed < *firstSeed+n; seed++ {
		runWorld(t, seed, 400)
	}
}

// The same seed gives the same trace, so a failure can be looked at again.
func TestSimulationRepeats(t *testing.T) {
	if a, b := runWorld(t, 5, 300).hash.Sum64(), runWorld(t, 5, 300).hash.Sum64(); a != b {
		t.Errorf("seed 5 gives %x, then %x", a, b)
	}
}
