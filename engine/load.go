package engine

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"apollo11/engine/task"
)

// loading reads an image into an empty state, line by line. An image has its
// checksums, but a line that could not have been written is refused here, not
// found out later: what is loaded holds every rule that the machine relies on.
type loading struct {
	*state
	counted bool // the counters came
}

// imageLine is one line of an image, read. Like a record it walks over its
// fields; load puts it into the state that is being loaded.
type imageLine interface {
	walk(*fields)
	load(*loading) error
}

// readLine is a line with its kind.
type readLine struct {
	kind string
	line imageLine
}

// newImageLine makes an empty line of a kind.
var newImageLine = map[string]func() imageLine{
	"counters":  func() imageLine { return new(counterLine) },
	"key":       func() imageLine { return new(keyLine) },
	"type":      func() imageLine { return new(typeLine) },
	"exec":      func() imageLine { return &execLine{new(executor)} },
	"name":      func() imageLine { return new(tomb) },
	"late":      func() imageLine { return new(ledgerLine) },
	"spec":      func() imageLine { return new(specLine) },
	"run":       func() imageLine { return &runLine{run: new(run)} },
	"mission":   func() imageLine { return new(missionLine) },
	"trigger":   func() imageLine { return new(triggerLine) },
	"file":      func() imageLine { return new(fileLine) },
	"task":      func() imageLine { return new(taskLine) },
	partContext: func() imageLine { return &contextPart{} },
	partResult:  func() imageLine { return &resultPart{} },
	partPast:    func() imageLine { return &pastPart{} },
}

// imageLine reads a line of an image.
func (f *fields) imageLine(text string) (readLine, error) {
	kind, rest, _ := strings.Cut(text, " ")
	empty := newImageLine[kind]
	if empty == nil {
		return readLine{}, fmt.Errorf("image line %.60q: unknown kind: written by a newer build?", kind)
	}
	l := readLine{kind, empty()}
	if err := f.read(rest, l.line.walk); err != nil {
		return readLine{}, fmt.Errorf("image line %s: %w", kind, err)
	}
	return l, nil
}

// take takes one line.
func (s *loading) take(l readLine) error {
	if err := l.line.load(s); err != nil {
		return fmt.Errorf("image line %s: %w", l.kind, err)
	}
	return nil
}

func (l *counterLine) load(s *loading) error {
	if s.counted || l.seq == 0 || l.epoch == 0 || l.head > 0 || l.tail < 0 {
		return errors.New("no counters of a state, or the second")
	}
	s.counters, s.counted = l.counters, true
	return nil
}

func (l *keyLine) load(s *loading) error {
	if s.keys[l.name] != nil {
		return fmt.Errorf("%s stands twice", l.name)
	}
	s.keys[l.name] = &l.stateKey
	return task.CheckKey(l.name)
}

func (l *typeLine) load(s *loading) error {
	if _, twice := s.typeAt[l.name]; twice {
		return fmt.Errorf("%s stands twice", l.name)
	}
	if err := task.CheckType(l.name); err != nil {
		return err
	}
	t := s.types[s.typ(l.name)]
	t.paused = l.paused
	if l.text == "" {
		return nil
	}
	u, err := task.ParseUnit(l.text)
	if err != nil {
		return fmt.Errorf("unit %s: %w", l.name, err)
	}
	t.unit, t.text = &u, l.text
	return nil
}

func (l *execLine) load(s *loading) error {
	if _, twice := s.execAt[l.id]; twice || l.id == "" {
		return fmt.Errorf("executor %q stands twice, or has no name", l.id)
	}
	s.execs[s.placeExec(l.id)] = l.executor
	return nil
}

func (b *tomb) load(s *loading) error {
	if _, twice := s.names.gone[b.ID]; twice || b.ID == "" || b.Key != "" && s.names.keys[nameKey{b.Type, b.Key}] != "" {
		return fmt.Errorf("%q stands twice, or has no name", b.ID)
	}
	s.names.add(b)
	return nil
}

func (l *ledgerLine) load(s *loading) error {
	s.ledger.add(*l)
	return nil
}

func (l *taskLine) load(s *loading) error {
	spec := taskSpec{
		id: l.id, key: l.key, work: l.work, filled: l.filled, retries: l.retries - 1, timeout: l.timeout,
	}
	if err := errors.Join(spec.check(), task.CheckType(l.typ)); err != nil {
		return err
	}
	x, err := s.checkTask(l)
	if err != nil {
		return fmt.Errorf("task %s: %w", l.id, err)
	}
	i := s.create(l.id)
	if i == 0 {
		return fmt.Errorf("task %s: stands twice", l.id)
	}
	t := s.at(i)
	l.slot.chain, l.slot.typ, l.course.exec = t.chain, s.typ(l.typ), x
	*t.slot = l.slot
	t.spec = s.putSpec(&spec, l.inputs)
	if l.course != (course{}) {
		*s.own(i).course = l.course
	}
	s.types[t.typ].refs++
	if x != 0 {
		s.execs[x].refs++
	}
	if l.key != "" {
		s.names.name(nameKey{s.types[t.typ].name, l.key}, l.id)
	}
	if err := s.joinRun(l, i); err != nil {
		return fmt.Errorf("task %s: %w", l.id, err)
	}
	return nil
}

// checkTask holds a task against the rest of the image, and finds its executor.
func (s *loading) checkTask(l *taskLine) (x uint32, err error) {
	if l.exec != "" {
		if x = s.execAt[l.exec]; x == 0 {
			return 0, fmt.Errorf("no executor %q", l.exec)
		}
	}
	switch {
	case s.names.gone[l.id] != nil:
		return 0, errors.New("stands twice")
	case l.key != "" && s.names.keys[nameKey{l.typ, l.key}] != "":
		return 0, fmt.Errorf("key %s stands twice", l.key)
	case l.num == 0 || l.num > s.nums || l.stamp == 0 || l.stamp > s.stamps || l.order < s.head || l.order > s.tail:
		return 0, errors.New("numbers beyond the counters")
	case l.state == task.New:
		return 0, errors.New("no state")
	case (l.state.Out() || l.state == task.Succeeded) && (x == 0 || l.version == 0):
		return 0, fmt.Errorf("%s without an executor or a version", l.state)
	}
	return x, nil
}

// part is a long text of a task.
type part struct{ id, text string }

// read keeps what stands behind the task's id, and reads it once for its faults.
func (p *part) read(f *fields, walk func(*fields)) {
	f.str("task", &p.id)
	p.text = f.in
	walk(f)
}

// of is the part's task.
func (p *part) of(s *loading) (i uint32, err error) {
	if i = s.find(p.id); i == 0 {
		return 0, fmt.Errorf("no task %q", p.id)
	}
	if p.text == "" {
		return 0, fmt.Errorf("task %s: an empty part", p.id)
	}
	return i, nil
}

// store puts the text in its place.
func (p *part) store(s *loading, at func(*course) *text) error {
	i, err := p.of(s)
	if err != nil {
		return err
	}
	to := at(s.own(i).course)
	if *to != 0 {
		return fmt.Errorf("task %s: the part stands twice", p.id)
	}
	*to = s.texts.put([]byte(p.text))
	return nil
}

type contextPart struct{ part }

func (p *contextPart) walk(f *fields) { p.read(f, new(pinned).walk) }
func (p *contextPart) load(s *loading) error {
	return p.store(s, func(c *course) *text { return &c.context })
}

type resultPart struct{ part }

func (p *resultPart) walk(f *fields) { p.read(f, new(taskResult).walk) }
func (p *resultPart) load(s *loading) error {
	return p.store(s, func(c *course) *text { return &c.result })
}

type pastPart struct{ part }

func (p *pastPart) walk(f *fields) { p.read(f, new(pastAttempt).walk) }
func (p *pastPart) load(s *loading) error {
	i, err := p.of(s)
	if err != nil {
		return err
	}
	if bytes.Count(s.texts.get(s.at(i).history), []byte{'\n'}) >= maxHistory {
		return fmt.Errorf("task %s: more attempts than are kept", s.id(i))
	}
	s.addHistory(i, []byte(p.text))
	return nil
}

var errSharedPlace = errors.New("image: two tasks share a place")

// linkAll puts loaded tasks into their lists, each in the order that the list
// has by its nature.
func (s *state) linkAll() error {
	slots := make([]uint32, 0, s.live)
	for i := uint32(1); i < s.slots.made; i++ {
		if s.slots.at(i).num != 0 {
			slots = append(slots, i)
		}
	}
	inOrder := func(rank func(*slot) int64, link func(uint32)) (twice bool) {
		slices.SortFunc(slots, func(a, b uint32) int { return cmp.Compare(rank(s.slots.at(a)), rank(s.slots.at(b))) })
		for n, i := range slots {
			twice = twice || n > 0 && rank(s.slots.at(slots[n-1])) == rank(s.slots.at(i))
			link(i)
		}
		return twice
	}
	twice := inOrder(func(t *slot) int64 { return int64(t.num) }, func(i uint32) { s.push(&s.all, byNum, i) })
	twice = inOrder(func(t *slot) int64 { return int64(t.stamp) }, func(i uint32) {
		s.push(&s.states[s.slots.at(i).state], byState, i)
		s.retiring(i)
	}) || twice
	if twice {
		return errSharedPlace
	}
	inOrder(func(t *slot) int64 { return t.order }, s.linkQueue)
	return s.linkRuns()
}

func (s *state) linkQueue(i uint32) {
	t := s.at(i)
	switch {
	case t.state == task.Queued:
		s.push(&s.chooseLane(i).list, inQueue, i)
	case t.state.Out():
		e := s.execs[t.exec]
		s.push(&e.held, inQueue, i)
		e.soft.bytes += len(s.texts.get(t.spec))
		s.types[t.typ].out++
		if t.fresh {
			for _, v := range s.contextOf(i).At {
				s.held[v.Name] = i
			}
		}
	}
}
