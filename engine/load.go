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

// line takes one line.
func (s *loading) line(line string) error {
	kind, rest, _ := strings.Cut(line, " ")
	if err := s.load(kind, rest); err != nil {
		return fmt.Errorf("image line %.60q: %w", kind, err)
	}
	return nil
}

func (s *loading) load(kind, line string) error {
	switch kind {
	case "counters":
		return s.loadCounters(line)
	case "key":
		return s.loadKey(line)
	case "type":
		return s.loadType(line)
	case "exec":
		return s.loadExec(line)
	case "name":
		return s.loadName(line)
	case "late":
		return s.loadLate(line)
	case "task":
		return s.loadTask(line)
	case partContext:
		return s.loadContext(line)
	case partResult:
		return s.loadResult(line)
	case partPast:
		return s.loadPast(line)
	}
	return errors.New("unknown kind: written by a newer build?")
}

func (s *loading) loadCounters(line string) error {
	var l counterLine
	if err := readFields(line, l.walk); err != nil {
		return err
	}
	if s.counted || l.seq == 0 || l.epoch == 0 || l.head > 0 || l.tail < 0 {
		return errors.New("no counters of a state, or the second")
	}
	s.counters, s.counted = l.counters, true
	return nil
}

func (s *loading) loadKey(line string) error {
	var l keyLine
	if err := readFields(line, l.walk); err != nil {
		return err
	}
	if s.keys[l.name] != nil {
		return fmt.Errorf("%s stands twice", l.name)
	}
	s.keys[l.name] = &l.stateKey
	return task.CheckKey(l.name)
}

func (s *loading) loadType(line string) error {
	var l typeLine
	if err := readFields(line, l.walk); err != nil {
		return err
	}
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

func (s *loading) loadExec(line string) error {
	var e executor
	if err := readFields(line, (&execLine{&e}).walk); err != nil {
		return err
	}
	if _, twice := s.execAt[e.id]; twice || e.id == "" {
		return fmt.Errorf("executor %q stands twice, or has no name", e.id)
	}
	*s.execs[s.placeExec(e.id)] = e
	return nil
}

func (s *loading) loadName(line string) error {
	var b tomb
	if err := readFields(line, b.walk); err != nil {
		return err
	}
	if _, twice := s.names.gone[b.ID]; twice || b.ID == "" || b.Key != "" && s.names.keys[nameKey{b.Type, b.Key}] != "" {
		return fmt.Errorf("%q stands twice, or has no name", b.ID)
	}
	s.names.add(&b)
	return nil
}

func (s *loading) loadLate(line string) error {
	var l ledgerLine
	if err := readFields(line, l.walk); err != nil {
		return err
	}
	s.ledger.add(l)
	return nil
}

func (s *loading) loadTask(line string) error {
	var l taskLine
	if err := readFields(line, l.walk); err != nil {
		return err
	}
	spec := taskSpec{
		id: l.id, key: l.key, work: l.work, filled: l.filled, retries: l.retries - 1, timeout: l.timeout,
	}
	if err := errors.Join(spec.check(), task.CheckType(l.typ)); err != nil {
		return err
	}
	x, err := s.checkTask(&l)
	if err != nil {
		return fmt.Errorf("task %s: %w", l.id, err)
	}
	i := s.create(l.id)
	t := s.at(i)
	chain := t.chain
	*t = l.slot
	t.chain, t.exec, t.typ = chain, x, s.typ(l.typ)
	t.spec = s.putSpec(&spec, l.inputs)
	s.types[t.typ].refs++
	if x != 0 {
		s.execs[x].refs++
	}
	if l.key != "" {
		s.names.keys[nameKey{l.typ, l.key}] = l.id
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
	case s.find(l.id) != 0 || s.names.gone[l.id] != nil:
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

// partOf reads the task that a part belongs to; the rest of the line is its own.
func (s *loading) partOf(line string) (i uint32, rest string, err error) {
	f := fields{reading: true, in: line}
	var id string
	f.str("task", &id)
	if f.err != nil {
		return 0, "", f.err
	}
	if i = s.find(id); i == 0 {
		return 0, "", fmt.Errorf("no task %q", id)
	}
	if f.in == "" {
		return 0, "", fmt.Errorf("task %s: an empty part", id)
	}
	return i, f.in, nil
}

// loadPart stores a part's text after it was read once for its faults.
func (s *loading) loadPart(line string, walk func(*fields), at func(*slot) *text) error {
	i, rest, err := s.partOf(line)
	if err != nil {
		return err
	}
	if err := readFields(rest, walk); err != nil {
		return err
	}
	to := at(s.at(i))
	if *to != 0 {
		return fmt.Errorf("task %s: the part stands twice", s.id(i))
	}
	*to = s.texts.put([]byte(rest))
	return nil
}

func (s *loading) loadContext(line string) error {
	return s.loadPart(line, new(pinned).walk, func(t *slot) *text { return &t.context })
}

func (s *loading) loadResult(line string) error {
	return s.loadPart(line, new(taskResult).walk, func(t *slot) *text { return &t.result })
}

func (s *loading) loadPast(line string) error {
	i, rest, err := s.partOf(line)
	if err != nil {
		return err
	}
	var p pastAttempt
	if err := readFields(rest, p.walk); err != nil {
		return err
	}
	if bytes.Count(s.texts.get(s.at(i).history), []byte{'\n'}) >= maxHistory {
		return fmt.Errorf("task %s: more attempts than are kept", s.id(i))
	}
	s.addHistory(i, []byte(rest))
	return nil
}

var errSharedPlace = errors.New("image: two tasks share a place")

// linkAll puts loaded tasks into their lists, each in the order that the list
// has by its nature.
func (s *state) linkAll() error {
	slots := make([]uint32, 0, s.live)
	for i := uint32(1); i < s.made; i++ {
		if s.at(i).num != 0 {
			slots = append(slots, i)
		}
	}
	inOrder := func(rank func(*slot) int64, link func(uint32)) (twice bool) {
		slices.SortFunc(slots, func(a, b uint32) int { return cmp.Compare(rank(s.at(a)), rank(s.at(b))) })
		for n, i := range slots {
			twice = twice || n > 0 && rank(s.at(slots[n-1])) == rank(s.at(i))
			link(i)
		}
		return twice
	}
	twice := inOrder(func(t *slot) int64 { return int64(t.num) }, func(i uint32) { s.push(&s.all, byNum, i) })
	twice = inOrder(func(t *slot) int64 { return int64(t.stamp) }, func(i uint32) { s.push(&s.states[s.at(i).state], byState, i) }) || twice
	if twice {
		return errSharedPlace
	}
	inOrder(func(t *slot) int64 { return t.order }, s.linkQueue)
	return nil
}

func (s *state) linkQueue(i uint32) {
	t := s.at(i)
	switch {
	case t.state == task.Queued:
		s.push(&s.types[t.typ].queue, inQueue, i)
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
