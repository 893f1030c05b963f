package engine

import (
	"cmp"
	"hash/maphash"
	"math/bits"
	"slices"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// durations counts how long a type's execute steps took, in buckets of which
// eight make a power of two: a percentile is right to an eighth.
type durations struct {
	buckets [8 * 40]uint32 // of microseconds
	n       int64
	sum     time.Duration
	longest time.Duration
}

func (d *durations) add(took time.Duration) {
	d.n++
	d.sum += took
	d.longest = max(d.longest, took)
	d.buckets[bucketOf(took)]++
}

func bucketOf(took time.Duration) int {
	us := uint64(max(took.Microseconds(), 1))
	top := bits.Len64(us) - 1
	eighth := us << 3 >> top & 7
	return min(8*top+int(eighth), 8*40-1)
}

// percentile is an upper bound of the p-th of a hundred.
func (d *durations) percentile(p int64) time.Duration {
	left := (d.n*p + 99) / 100
	for b, n := range d.buckets {
		if left -= int64(n); left <= 0 && n > 0 {
			us := uint64(8+b%8+1) << (b / 8) >> 3
			return min(time.Duration(us)*time.Microsecond, d.longest)
		}
	}
	return d.longest
}

// noteSuccess keeps how long a success took.
func (m *machine) noteSuccess(i uint32, timing task.Timing) {
	t := m.at(i)
	took := timing.Execute
	if timing == (task.Timing{}) { // protocol 1 does not say
		took = time.Duration(max(0, t.finished-t.started))
	}
	soft := &m.types[t.typ].soft
	if soft.durations == nil {
		soft.durations = &durations{}
	}
	soft.durations.add(took)
}

// stats is what is known of every type's durations.
func (m *machine) stats() []view.TypeStats {
	rows := []view.TypeStats{}
	for _, t := range m.types[1:] {
		if t.name == "" {
			continue
		}
		row := view.TypeStats{Type: t.name, Execs: int64(t.soft.offering), Unit: t.text}
		if d := t.soft.durations; d != nil {
			row.Samples, row.MaxUS = d.n, d.longest.Microseconds()
			row.MeanUS = (d.sum / time.Duration(d.n)).Microseconds()
			row.P50US, row.P99US = d.percentile(50).Microseconds(), d.percentile(99).Microseconds()
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b view.TypeStats) int { return cmp.Compare(a.Type, b.Type) })
	return rows
}

// prints remember what came of which unit, inputs and context, the newest of
// them: the same again with other outputs says that a unit cannot be reproduced.
type prints struct {
	seed maphash.Seed
	seen map[uint64]fingerprint
	line []uint64 // in order of coming
}

type fingerprint struct {
	outputs uint64
	task    string
}

const maxPrints = 10_000

// note keeps a print and returns the one that was there with other outputs.
func (p *prints) note(key uint64, new fingerprint) (was fingerprint, differs bool) {
	if p.seen == nil {
		p.seen = map[uint64]fingerprint{}
	}
	was, there := p.seen[key]
	p.seen[key] = new
	if there {
		return was, was.outputs != new.outputs
	}
	if p.line = append(p.line, key); len(p.line) > maxPrints {
		delete(p.seen, p.line[0])
		p.line = p.line[1:]
	}
	return was, false
}

// printOf is a success as prints know it; ok is false if nothing can be said of it.
func (m *machine) printOf(i uint32) (key uint64, p fingerprint, ok bool) {
	t, result := m.at(i), m.resultOf(i)
	if result.Unit == "" || result.Reused != "" {
		return 0, p, false
	}
	if u := m.types[t.typ].unit; u == nil || u.Varies || u.Resident {
		return 0, p, false
	}
	if r := m.runOfTask(i); r != nil && (r.origin.Mode == modeRollback || r.origin.Sample > 0) {
		return 0, p, false
	}
	inputs := mustParse(string(m.specAt(i).inputs))
	var h maphash.Hash
	h.SetSeed(m.prints.seed)
	for _, part := range []string{m.types[t.typ].name, result.Unit, inputs.ContentHash(), m.contextOf(i).Values.Hash()} {
		h.WriteString(part)
		h.WriteByte(0)
	}
	return h.Sum64(), fingerprint{maphash.String(m.prints.seed, result.Outputs.ContentHash()), m.id(i)}, true
}

// compare holds a success against earlier ones of the same unit, inputs and context.
func (m *machine) compare(i uint32) {
	m.noteSuccess(i, m.reused.resulted.Timing)
	if m.reused.resulted.Unit == "" {
		return
	}
	key, p, ok := m.printOf(i)
	if !ok {
		return
	}
	if was, differs := m.prints.note(key, p); differs {
		m.emit(&varied{Task: p.task, Other: was.task, Unit: m.reused.resulted.Unit})
		m.log.Warn("nondeterministic: the same unit with the same inputs and context gave other outputs",
			"task", p.task, "other", was.task, "type", m.types[m.at(i).typ].name)
	}
}

// bootStats takes up what the newest finished tasks tell, in the order in which
// they told it.
func (m *machine) bootStats() {
	var newest []uint32
	for i := m.states[task.Succeeded].newest; i != 0 && len(newest) < maxPrints; i = m.at(i).list[byState].older {
		newest = append(newest, i)
	}
	for _, i := range slices.Backward(newest) {
		m.noteSuccess(i, m.resultOf(i).Timing)
		if key, p, ok := m.printOf(i); ok {
			m.prints.note(key, p)
		}
	}
}

// varied says that the same unit with the same inputs and context gave other
// outputs than before.
type varied struct {
	Task  string
	Other string // the task before
	Unit  string // hash
}

func (*varied) kind() string { return "nondeterministic" }
func (r *varied) walk(f *fields) {
	f.str("task", &r.Task)
	f.str("other", &r.Other)
	f.str("unit", &r.Unit)
}

func (r *varied) apply(s *state) uint32 {
	i := s.mustFind(r.Task)
	s.own(i).varies = true
	if x := s.runOfTask(i); x != nil {
		s.touchRun(x)
		x.note(x.unit(s.at(i)).Name + ": nondeterministic: other outputs than " + r.Other + " had of the same unit, inputs and context")
	}
	return i
}
