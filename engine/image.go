package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/bits"
	"time"

	"apollo11/engine/task"
)

// An image is the durable state at one journal position, as lines in the
// journal's grammar: a kind and its fields. Lines of one kind stand in an order
// that loading keeps; a state's hash does not depend on any order.

// lineSum is an order-free hash of lines: the sum, in 128 bits, of the first
// half of each line's SHA-256.
type lineSum struct{ high, low uint64 }

func (s *lineSum) add(line []byte) {
	sum := sha256.Sum256(line)
	low, carry := bits.Add64(s.low, binary.BigEndian.Uint64(sum[8:]), 0)
	s.high, _ = bits.Add64(s.high, binary.BigEndian.Uint64(sum[:]), carry)
	s.low = low
}

func (s lineSum) String() string { return fmt.Sprintf("%016x%016x", s.high, s.low) }

// imaging is an image being taken while the loop goes on. Slots are encoded in
// order, a slice a turn; one that is about to change before its turn is encoded
// first, and tasks submitted since are left out. So the image is the state at
// one position, and nobody waits for it.
type imaging struct {
	seq   uint64
	nums  uint64       // tasks submitted up to seq
	names []*tomb      // to encode before the slots; a tomb never changes
	late  []ledgerLine // likewise
	runs  runImaging
	next  uint32              // slot to encode next
	early map[uint32]struct{} // slots encoded before their turn
	lines fields
	sum   lineSum
}

// beginImage takes what is small at once.
func (s *state) beginImage() *imaging {
	g := s.newImaging()
	s.image = g
	return g
}

func (s *state) newImaging() *imaging {
	g := &imaging{
		seq: s.seq, nums: s.nums, next: 1, early: map[uint32]struct{}{}, names: s.names.line, late: s.ledger.copied(),
		runs: s.newRunImaging(),
	}
	s.smallLines(g)
	return g
}

// line adds one line.
func (g *imaging) line(kind string, walk func(*fields)) {
	start := len(g.lines.out)
	g.lines.out = append(g.lines.out, kind...)
	walk(&g.lines)
	g.sum.add(g.lines.out[start:])
	g.lines.out = append(g.lines.out, '\n')
}

// step encodes up to n lines or slots; done is true when the last is.
func (s *state) step(g *imaging, n int) (done bool) {
	for ; n > 0 && len(g.names) > 0; n-- {
		g.line("name", g.names[0].walk)
		g.names = g.names[1:]
	}
	for ; n > 0 && len(g.late) > 0; n-- {
		g.line("late", g.late[0].walk)
		g.late = g.late[1:]
	}
	for ; n > 0 && len(g.runs.left) > 0; n-- {
		s.encodeRun(g, g.runs.left[0])
		g.runs.left = g.runs.left[1:]
	}
	for ; n > 0 && g.next < s.slots.made; n-- {
		s.encode(g, g.next)
		g.next++
	}
	return len(g.names) == 0 && len(g.late) == 0 && len(g.runs.left) == 0 && g.next >= s.slots.made
}

// encode adds a slot's lines if the image has a task there that has none yet.
func (s *state) encode(g *imaging, i uint32) {
	t := s.at(i)
	if t.num == 0 || t.num > g.nums {
		return
	}
	if _, done := g.early[i]; done {
		return
	}
	s.encodeRun(g, s.runs[t.run]) // a task's line follows that of its run
	line := s.taskLine(i)
	g.line("task", line.walk)
	g.part(partContext, line.id, s.texts.get(t.context))
	g.part(partResult, line.id, s.texts.get(t.result))
	for past := range bytes.Lines(s.texts.get(t.history)) {
		g.part(partPast, line.id, past[:len(past)-1])
	}
}

// A task's long texts stand on lines of their own behind it, so that every line
// stays in bounds.
const (
	partContext = "task.context"
	partResult  = "task.result"
	partPast    = "task.past"
)

// part adds a line of fields that are written already.
func (g *imaging) part(kind, id string, written []byte) {
	if len(written) == 0 {
		return
	}
	g.line(kind, func(f *fields) {
		f.str("task", &id)
		f.out = append(append(f.out, ' '), written...)
	})
}

// touch is called before a slot changes.
func (s *state) touch(i uint32) {
	if g := s.image; g != nil && i >= g.next {
		s.encode(g, i)
		g.early[i] = struct{}{}
	}
}

// take hands over the lines encoded so far.
func (g *imaging) take() []byte {
	lines := g.lines.out
	g.lines.out = make([]byte, 0, cap(lines)) // as much again, and no growing on the way
	return lines
}

// smallLines adds everything that is small, and changes in place.
func (s *state) smallLines(g *imaging) {
	g.line("counters", (&counterLine{s.counters}).walk)
	for _, name := range s.sortedKeys() {
		k := s.keys[name]
		g.line("key", (&keyLine{name, *k}).walk)
	}
	for _, t := range s.types[1:] {
		if t.paused || t.text != "" {
			g.line("type", (&typeLine{t.name, t.paused, t.text}).walk)
		}
	}
	for _, e := range s.execs[1:] {
		if e != nil {
			g.line("exec", (&execLine{e}).walk)
		}
	}
	s.triggerLines(g)
}

// hash is the whole state's hash, for comparing two ways to the same state.
func (s *state) hash() string {
	g := s.newImaging()
	for !s.step(g, 1000) {
		g.lines.out = g.lines.out[:0]
	}
	return g.sum.String()
}

type counterLine struct{ counters }

func (l *counterLine) walk(f *fields) {
	f.u64("epoch", &l.epoch)
	f.u64("seq", &l.seq)
	f.moment("wall", &l.wall)
	f.u64("nums", &l.nums)
	f.u64("stamps", &l.stamps)
	f.i64("tail", &l.tail)
	f.i64("head", &l.head)
	f.u64("state_version", &l.stateVersion)
	f.u64("config_version", &l.configVersion)
	f.str("config_hash", &l.configHash)
	f.u64("lates", &l.lates)
	f.u64("runs", &l.runNums)
	f.flag("paused", &l.paused)
}

type keyLine struct {
	name string
	stateKey
}

func (l *keyLine) walk(f *fields) {
	f.str("key", &l.name)
	f.str("value", &l.value)
	f.u64("version", &l.version)
	f.u64("seq", &l.seq)
	f.u64("at", &l.at)
	f.str("task", &l.task)
}

type typeLine struct {
	name   string
	paused bool
	text   string
}

func (l *typeLine) walk(f *fields) {
	f.str("type", &l.name)
	f.flag("paused", &l.paused)
	f.str("unit", &l.text)
}

type execLine struct{ *executor }

func (l *execLine) walk(f *fields) {
	f.str("exec", &l.id)
	f.values("types", &l.executor.offers)
	f.num("proto", &l.proto)
	f.str("instance", &l.instance)
	f.str("host", &l.host)
	f.num("pid", &l.pid)
	f.str("build", &l.build)
	f.flag("offline", &l.offline)
	f.str("reason", &l.reason)
	f.flag("draining", &l.draining)
	f.moment("since", &l.since)
	f.u64("done", &l.done)
	f.u64("failed", &l.failed)
}

func (l *ledgerLine) walk(f *fields) {
	f.moment("time", &l.Time)
	l.lateResult.walk(f)
}

// taskLine is a task with what is durable about it, but for the parts.
type taskLine struct {
	slot
	course
	id, key, typ, exec string
	runID              string
	retries            int // plus one
	timeout            time.Duration
	inputs             task.Values
	filled             string
	work               string
}

// taskLine reads a slot.
func (s *state) taskLine(i uint32) taskLine {
	t, spec := s.at(i), s.specOf(i)
	l := taskLine{
		slot: *t.slot, course: *t.course, id: spec.id, key: spec.key, typ: s.types[t.typ].name, retries: spec.retries + 1, timeout: spec.timeout,
		inputs: mustParse(spec.inputs), filled: spec.filled, work: spec.work,
	}
	if t.exec != 0 {
		l.exec = s.execs[t.exec].id
	}
	if r := s.runs[t.run]; r != nil {
		l.runID = r.id
	}
	return l
}

func (l *taskLine) walk(f *fields) {
	f.str("task", &l.id)
	f.str("type", &l.typ)
	f.str("key", &l.key)
	f.u64("num", &l.num)
	f.flag("named", &l.named)
	f.moment("submitted", &l.submitted)
	f.moment("not_before", &l.notBefore)
	f.moment("deadline", &l.deadline)
	f.num("retries1", &l.retries)
	f.micros("timeout_us", &l.timeout)
	f.values("in", &l.inputs)
	f.str("filled", &l.filled)
	f.str("work", &l.work)
	f.state("state", &l.state)
	f.class("class", &l.class)
	f.flag("fresh", &l.fresh)
	f.flag("moved", &l.moved)
	f.u64("stamp", &l.stamp)
	f.i64("order", &l.order)
	f.moment("due", &l.due)
	f.moment("entered", &l.entered)
	f.str("exec", &l.exec)
	f.str("run", &l.runID)
	f.flag("varies", &l.varies)
	f.flag("kept", &l.kept)
	f.flag("undone", &l.undone)
	l.walkAttempts(f)
}

func (l *taskLine) walkAttempts(f *fields) {
	f.version("v", &l.version)
	f.version("applied", &l.applied)
	f.u64("sv", &l.seen)
	f.moment("started", &l.started)
	f.moment("finished", &l.finished)
	f.u32("sent", &l.sent)
	f.u32("attempt", &l.attempt)
	f.u32("tries", &l.tries)
	f.u32("crashes", &l.crashes)
	f.u32("stales", &l.stales)
}

// imageContent is snapshot.json's part for people: document 000's snapshot.
type imageContent struct {
	Hash          string                 `json:"hash"` // of the state at the image's seq
	Time          time.Time              `json:"time"`
	Epoch         uint64                 `json:"epoch"`
	StateVersion  uint64                 `json:"state_version"`
	ConfigVersion uint64                 `json:"config_version"`
	ConfigHash    string                 `json:"config_hash"`
	Tasks         map[string]int         `json:"tasks"`
	State         map[string]imageKey    `json:"state"`
	Executors     map[string]imageWorker `json:"executors"`
}

type imageKey struct {
	Value   string `json:"value"`
	Version uint64 `json:"version"`
}

type imageWorker struct {
	Types   []string `json:"types"`
	Host    string   `json:"host,omitempty"`
	Offline bool     `json:"offline,omitempty"`
}

// content describes the state for people, as of now; the hash is filled in when
// the last task has been encoded.
func (s *state) content() imageContent {
	c := imageContent{
		Time: viewTime(s.wall).Time, Epoch: s.epoch, StateVersion: s.stateVersion, ConfigVersion: s.configVersion,
		ConfigHash: s.configHash, Tasks: map[string]int{}, State: map[string]imageKey{}, Executors: map[string]imageWorker{},
	}
	for _, state := range task.States() {
		if n := s.states[state].len; n > 0 {
			c.Tasks[state.String()] = n
		}
	}
	for name, k := range s.keys {
		c.State[name] = imageKey{k.value, k.version}
	}
	for _, e := range s.execs[1:] {
		if e == nil {
			continue
		}
		w := imageWorker{Host: e.host, Offline: e.offline, Types: []string{}}
		for _, v := range e.offers {
			w.Types = append(w.Types, v.Name)
		}
		c.Executors[e.id] = w
	}
	return c
}

func (c imageContent) json() ([]byte, error) { return json.MarshalIndent(c, "", "  ") }

// imageHash reads the hash that an image says it has.
func imageHash(content []byte) (string, error) {
	var c imageContent
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return "", fmt.Errorf("image: %w", err)
	}
	return c.Hash, nil
}
