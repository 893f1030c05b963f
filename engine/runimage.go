package engine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"apollo11/engine/task"
)

// specPart is how much of a spec's text stands on one line.
const specPart = 256 << 10

// specLines are a spec's text in the parts that records and images hold.
func specLines(hash, text string) (parts []specStored) {
	n := max(1, (len(text)+specPart-1)/specPart)
	for p := range n {
		cut := text[p*specPart : min(len(text), (p+1)*specPart)]
		parts = append(parts, specStored{Hash: hash, Part: p + 1, Parts: n, Text: cut})
	}
	return parts
}

// runImaging is how far the runs of an image have come. Like a slot, a run that is
// about to change is encoded first, and runs started since are left out.
type runImaging struct {
	nums  uint64              // runs started up to the image's position
	left  []*run              // to encode; nil where there is none
	done  map[*run]struct{}   // encoded
	specs map[string]struct{} // likewise, by hash
}

func (s *state) newRunImaging() runImaging {
	return runImaging{nums: s.runNums, left: slices.Clone(s.runs[1:]), done: map[*run]struct{}{}, specs: map[string]struct{}{}}
}

// encodeRun adds a run's line, behind what it executes, if the image has none yet.
func (s *state) encodeRun(g *imaging, r *run) {
	if r == nil || r.num > g.runs.nums {
		return
	}
	if _, done := g.runs.done[r]; done {
		return
	}
	g.runs.done[r] = struct{}{}
	if _, done := g.runs.specs[r.spec.hash]; !done {
		g.runs.specs[r.spec.hash] = struct{}{}
		for _, part := range specLines(r.spec.hash, r.spec.text) {
			g.line("spec", part.walk)
		}
	}
	g.line("run", (&runLine{run: r}).walk)
}

// touchRun is called before a run changes.
func (s *state) touchRun(r *run) {
	if s.image != nil {
		s.encodeRun(s.image, r)
	}
}

// specLine is a part of a spec in an image.
type specLine struct{ specStored }

func (l *specLine) load(s *loading) error { return s.storeSpec(&l.specStored) }

// runLine is what is durable of a run, but for its tasks.
type runLine struct {
	*run
	hash  string
	order string
}

func (l *runLine) walk(f *fields) {
	notes := strings.Join(l.notes, "\n")
	if !f.reading {
		l.hash, l.order = l.spec.hash, orderText(l.flow.order)
	}
	f.str("run", &l.id)
	f.u64("num", &l.num)
	f.str("spec", &l.hash)
	f.values("params", &l.params)
	f.u64("config", &l.config)
	f.str("order", &l.order)
	l.origin.walk(f)
	f.runState("state", &l.run.state)
	f.str("why", &l.why)
	f.str("notes", &notes)
	f.str("child", &l.child)
	f.moment("created", &l.times.created)
	f.moment("started", &l.times.started)
	f.moment("finished", &l.times.finished)
	f.u64("rank", &l.times.rank)
	f.flag("stopping", &l.flow.stopping)
	if f.reading && notes != "" {
		l.notes = strings.Split(notes, "\n")
	}
}

func orderText(order []int32) string {
	texts := make([]string, len(order))
	for n, u := range order {
		texts[n] = fmt.Sprint(u)
	}
	return strings.Join(texts, ",")
}

func (l *runLine) load(s *loading) (err error) {
	r := l.run
	r.spec = s.specs[l.hash]
	switch {
	case r.spec == nil || r.spec.mission == nil:
		return fmt.Errorf("run %q: no spec %q", r.id, l.hash)
	case s.findRun(r.id) != nil || runOf(r.id+":") == "" || r.num == 0 || r.num > s.runNums:
		return fmt.Errorf("run %q: stands twice, or is none", r.id)
	case r.state == runNew:
		return fmt.Errorf("run %q: no state", r.id)
	}
	if r.flow.order, err = parseOrder(l.order, len(r.spec.mission.Units)); err != nil {
		return fmt.Errorf("run %q: %w", r.id, err)
	}
	r.flow.units = make([]uint32, len(r.spec.mission.Units))
	s.placeRun(r)
	return nil
}

// joinRun puts a loaded task into its run.
func (s *loading) joinRun(l *taskLine, i uint32) error {
	if l.runID == "" {
		return nil
	}
	at := s.runAt[l.runID]
	name, of := strings.CutPrefix(l.id, l.runID+":")
	if at == 0 || !of {
		return fmt.Errorf("no run %q", l.runID)
	}
	r := s.runs[at]
	u := r.spec.mission.Find(name)
	if u < 0 || r.flow.units[u] != 0 || r.spec.mission.Units[u].Uses != l.typ {
		return fmt.Errorf("run %s has no unit %q, or has it already", r.id, name)
	}
	r.flow.units[u] = i
	r.flow.counts[l.slot.state]++
	if !l.slot.state.Terminal() {
		r.flow.open++
	}
	t := s.own(i)
	t.run, t.unit = at, uint32(u)
	return nil
}

// linkRuns works out what follows from the runs' tasks.
func (s *state) linkRuns() error {
	for at, r := range s.runs {
		if r == nil {
			continue
		}
		if parent := s.findRun(r.origin.Parent); parent != nil {
			parent.refs++
		}
		if slices.Contains(r.flow.units, 0) {
			return fmt.Errorf("image: run %s lacks a task", r.id)
		}
		if r.state.ended() {
			s.finished = append(s.finished, uint32(at))
			s.retired += len(r.flow.units)
		}
		if r.state == runRunning && r.flow.open == 0 && r.times.started == 0 {
			return errors.New("image: a run that never started")
		}
		r.flow.left = r.began()
		for u, i := range r.flow.units {
			if s.at(i).state == task.Aborted && s.resultOf(i).Settled != "" {
				r.flow.settled++
			}
			if !s.succeeded(i) {
				continue
			}
			if s.at(i).state == task.Skipped {
				r.flow.reused++
			}
			for _, next := range r.next(u) {
				r.flow.left[next]--
			}
		}
	}
	slices.SortFunc(s.finished, func(a, b uint32) int { return cmp.Compare(s.runs[a].times.rank, s.runs[b].times.rank) })
	return nil
}
