package engine

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"apollo11/engine/task"
)

// taskSpec is what the arena keeps of a submission: id and key first, so that
// they are found without reading the rest.
type taskSpec struct {
	id, key string
	work    string // workHash of what was asked first, once the inputs were edited; else empty
	filled  string // comma list of the inputs that the contract's defaults gave
	retries int    // task.Unset: the unit's
	timeout time.Duration
	inputs  string // canonical text
}

// append writes all but the inputs, whose canonical text follows.
func (p *taskSpec) append(dst []byte) []byte {
	dst = append(append(dst, byte(len(p.id))), p.id...)
	dst = append(append(dst, byte(len(p.key))), p.key...)
	dst = append(append(dst, byte(len(p.work))), p.work...)
	dst = append(binary.AppendUvarint(dst, uint64(len(p.filled))), p.filled...)
	dst = binary.AppendVarint(dst, int64(p.retries))
	return binary.AppendVarint(dst, int64(p.timeout))
}

// putSpec stores a spec with its inputs.
func (t *table) putSpec(p *taskSpec, inputs task.Values) text {
	f := t.blank()
	f.out = inputs.AppendText(p.append(f.out))
	return t.texts.put(f.out)
}

// check refuses what append could not write.
func (p *taskSpec) check() error {
	if err := task.CheckID(p.id); err != nil {
		return err
	}
	if p.work != "" && len(p.work) != workHashBytes {
		return fmt.Errorf("work %.40q: not a hash of ours", p.work)
	}
	if p.key == "" {
		return nil
	}
	return task.CheckID(p.key)
}

// given is the canonical text of the inputs without those that were filled in.
func (p *taskSpec) given() string {
	if p.filled == "" {
		return p.inputs
	}
	given := slices.DeleteFunc(mustParse(p.inputs), func(v task.Value) bool {
		return slices.Contains(strings.Split(p.filled, ","), v.Name)
	})
	return string(given.AppendText(nil))
}

// id is a slot's task id, as a copy.
func (t *table) id(i uint32) string { return string(t.idBytes(i)) }

func (t *table) idBytes(i uint32) []byte {
	b := t.texts.get(t.at(i).spec)
	return b[1 : 1+b[0]]
}

// specOf reads back what a slot's task was asked to do, as a copy.
func (t *table) specOf(i uint32) taskSpec {
	p := t.specAt(i)
	return taskSpec{
		id: string(p.id), key: string(p.key), work: string(p.work), filled: string(p.filled),
		retries: p.retries, timeout: p.timeout, inputs: string(p.inputs),
	}
}

// specText is a taskSpec where it lies in the arena: good until the task leaves
// memory or is edited.
type specText struct {
	id, key, work, filled []byte
	retries               int
	timeout               time.Duration
	inputs                []byte
}

func (t *table) specAt(i uint32) (p specText) {
	b := t.texts.get(t.at(i).spec)
	p.id, b = cutShort(b)
	p.key, b = cutShort(b)
	p.work, b = cutShort(b)
	filled, skip := binary.Uvarint(b)
	b = b[skip:]
	p.filled, b = b[:filled], b[filled:]
	retries, n := binary.Varint(b)
	timeout, m := binary.Varint(b[n:])
	p.retries, p.timeout = int(retries), time.Duration(timeout)
	p.inputs = b[n+m:]
	return p
}

func cutShort(b []byte) (cut, rest []byte) {
	n := int(b[0])
	return b[1 : 1+n], b[1+n:]
}

// taskResult is what a task ended with.
type taskResult struct {
	Outputs task.Values
	Timing  task.Timing
	Error   string // of an end without an attempt
	By      string // who ended it
	Settled string // why it is no dead letter any more
	Reused  string // the task of the parent run whose result it is
	Unit    string // hash of the unit that made it
}

func (r *taskResult) walk(f *fields) {
	f.values("out", &r.Outputs)
	walkTiming(f, &r.Timing)
	f.str("error", &r.Error)
	f.str("by", &r.By)
	f.str("settled", &r.Settled)
	f.str("reused", &r.Reused)
	f.str("unit", &r.Unit)
}

// putResult stores what a task ended with.
func (t *table) putResult(i uint32, r *taskResult) {
	f := t.blank()
	r.walk(f)
	t.replace(&t.own(i).result, f.out)
}

// pastAttempt is one failed try in a task's history.
type pastAttempt struct {
	Attempt  int
	Version  task.Version
	Exec     string
	Class    task.Class
	Error    string
	Started  int64
	Finished int64
	Timing   task.Timing
	Outputs  task.Values // of a result that was refused
	Told     bool        // its executor said so itself: the same again is a duplicate
}

func (p *pastAttempt) walk(f *fields) {
	f.num("attempt", &p.Attempt)
	f.version("v", &p.Version)
	f.str("exec", &p.Exec)
	f.class("class", &p.Class)
	f.str("error", &p.Error)
	f.moment("started", &p.Started)
	f.moment("finished", &p.Finished)
	walkTiming(f, &p.Timing)
	f.values("out", &p.Outputs)
	f.flag("told", &p.Told)
}

// maxHistory is how many failed attempts of a task are kept in memory; the
// journal has them all.
const maxHistory = 20

// maxHistoryText bounds what one kept attempt says in memory: its error text,
// and not its refused outputs if they are long.
const maxHistoryText = 2000

// remember adds a failed attempt to a slot's history.
func (t *table) remember(i uint32, p pastAttempt) {
	if len(p.Error) > maxHistoryText {
		p.Error = strings.ToValidUTF8(p.Error[:maxHistoryText], "") + " …"
	}
	if p.Outputs.Size() > maxHistoryText {
		p.Outputs = nil
	}
	f := t.blank()
	p.walk(f)
	t.addHistory(i, f.out)
}

// addHistory adds a line to a slot's history, the oldest falls out.
func (t *table) addHistory(i uint32, line []byte) {
	s := t.at(i)
	old := t.texts.get(s.history)
	if bytes.Count(old, []byte{'\n'}) >= maxHistory {
		_, old, _ = bytes.Cut(old, []byte{'\n'})
	}
	t.replace(&s.history, append(append(slices.Clone(old), line...), '\n'))
}

// historyOf reads a slot's failed attempts, oldest first.
func (t *table) historyOf(i uint32) []pastAttempt {
	var past []pastAttempt
	for line := range strings.Lines(string(t.texts.get(t.at(i).history))) {
		var p pastAttempt
		mustRead(strings.TrimSuffix(line, "\n"), p.walk)
		past = append(past, p)
	}
	return past
}

// lastFailure is the newest failed attempt, if there is one.
func (t *table) lastFailure(i uint32) (p pastAttempt, ok bool) {
	lines := strings.TrimSuffix(string(t.texts.get(t.at(i).history)), "\n")
	if lines == "" {
		return p, false
	}
	mustRead(lines[strings.LastIndexByte(lines, '\n')+1:], p.walk)
	return p, true
}

func (t *table) resultOf(i uint32) (r taskResult) {
	mustRead(string(t.texts.get(t.at(i).result)), r.walk)
	return r
}

// pinned is the context of a dispatch: values, and versions if its unit is fresh.
type pinned struct {
	Values task.Values
	At     task.Values
}

func (p *pinned) walk(f *fields) {
	f.values("ctx", &p.Values)
	f.values("ctx_at", &p.At)
}

func (t *table) contextOf(i uint32) (p pinned) {
	mustRead(string(t.texts.get(t.at(i).context)), p.walk)
	return p
}

// blank is where a text for the arena is written; the next one takes its place.
func (t *table) blank() *fields {
	t.scratch.out = t.scratch.out[:0]
	return &t.scratch
}

// mustRead reads a text of the arena.
func mustRead(line string, walk func(*fields)) {
	if err := readFields(line, walk); err != nil {
		panic("engine: a text of our own does not read back: " + err.Error())
	}
}

// readFields reads a line of fields, all of it.
func readFields(line string, walk func(*fields)) error { return new(fields).read(line, walk) }
