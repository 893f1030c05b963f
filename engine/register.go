package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"apollo11/engine/task"
)

// execSoft is what the loop knows of an executor beside the journal: losing it
// costs nothing.
type execSoft struct {
	link     Link             // nil: not connected
	ready    bool             // protocol 1: a heartbeat waits for a task
	late     bool             // a beat was missed
	linked   int64            // when it registered
	mark     int64            // newest queue position then: what it holds up to it is from before
	silent   int64            // when it was disconnected, or the controller started
	answered int64            // its last result
	bytes    int              // of the tasks it holds
	long     int              // tasks it holds that nothing may wait behind
	zombies  map[zombie]int64 // fenced attempts it may still work on: until when
	progress progressNote
	why      string // of being silent
	losses   int    // times it was lost since the start
	groupPlace
	heap [dueKinds]uint32
}

// zombie is a fenced attempt.
type zombie struct {
	task    string
	version task.Version
}

type progressNote struct {
	task string
	text string
	wall int64
}

// load is how much an executor has on its hands.
func (e *executor) load() int { return e.held.len + len(e.soft.zombies) }

func (m *machine) forgetZombie(x uint32, id string, v task.Version) {
	if e := m.execs[x]; len(e.soft.zombies) > 0 {
		delete(e.soft.zombies, zombie{id, v})
		m.dirty = append(m.dirty, x)
	}
}

// register takes an executor in: reconciling what it holds with what it was
// sent happens here and nowhere else.
func (m *machine) register(link Link, c Register) (Registered, error) {
	if err := checkRegister(c); err != nil {
		return Registered{}, err
	}
	if m.stopping {
		return Registered{}, ErrStopping
	}
	x, same := m.admit(link, c)
	e := m.execs[x]
	kept, stale := m.reconcile(x, c, same)
	answer := m.registered(e)
	answer.Kept, answer.Stale = kept, stale
	answer.Refused = m.offer(x, c.Types, c.Units)
	m.setLife(x)
	return answer, nil
}

func checkRegister(c Register) error {
	if c.Exec == "" || len(c.Exec) > 128 || task.Printable(c.Exec) != c.Exec {
		return fmt.Errorf("%w: executor_id %q: want 1 to 128 printable bytes", ErrInvalid, task.Printable(c.Exec))
	}
	for _, name := range c.Types {
		if err := task.CheckType(name); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	return nil
}

// admit gives the executor its link; same says that the process is one that was
// here before.
func (m *machine) admit(link Link, c Register) (x uint32, same bool) {
	x, known := m.execAt[c.Exec]
	if known {
		e := m.execs[x]
		same = c.Instance != "" && e.instance == c.Instance
		if e.soft.link != nil && e.soft.link != link {
			m.order(e, Dismiss{Reason: "another connection registered as " + c.Exec})
		}
		if !same {
			e.soft.zombies = nil
		}
	}
	m.emit(&registered{
		Exec: c.Exec, Proto: c.Proto, Instance: c.Instance, Host: c.Host, PID: c.PID, Build: c.Build,
		Types: m.presentOffers(x, c.Types),
	})
	x = m.execAt[c.Exec]
	e := m.execs[x]
	e.soft.link, e.soft.ready, e.soft.linked, e.soft.why = link, false, m.now.mono, ""
	e.soft.answered, e.soft.mark, e.soft.late = m.now.mono, m.tail, false
	m.dropHold(x)
	return x, same
}

// presentOffers is what a registering executor is recorded with before its
// contracts are looked at.
func (m *machine) presentOffers(x uint32, types []string) task.Values {
	if x != 0 && m.execs[x] != nil {
		return m.execs[x].offers
	}
	return nil
}

// registered is the answer to a register or a change of types.
func (m *machine) registered(*executor) Registered {
	return Registered{Epoch: m.epoch, StateVersion: m.stateVersion, ConfigVersion: m.configVersion, Heartbeat: m.heartbeat()}
}

// slowBeats is the number of executors above which they are told to beat half as
// often.
const slowBeats = 2000

func (m *machine) heartbeat() time.Duration {
	if len(m.execAt) > slowBeats {
		return 2 * m.set.Heartbeat
	}
	return m.set.Heartbeat
}

// reconcile compares what an executor presents with what it was sent. Only a
// protocol 2 executor presents anything; what a protocol 1 executor had waits
// out the grace, for its connection may only have been replaced.
func (m *machine) reconcile(x uint32, c Register, same bool) (kept, stale []Held) {
	if c.Proto < 2 {
		if m.execs[x].held.len > 0 {
			m.monoQ.set(due{dueOrphan, x}, m.now.mono+int64(m.set.ReconnectGrace))
		}
		return nil, nil
	}
	presented := map[uint32]bool{}
	for _, h := range c.Running {
		if i := m.find(h.Task); i != 0 && m.holds(i, x, h.Version) {
			presented[i] = true
			kept = append(kept, h)
			if h.Phase == PhaseRunning && m.at(i).state == task.Assigned {
				m.emit(&running{Task: h.Task, Version: h.Version})
			}
			m.setAttemptEnd(i)
			continue
		}
		if h.Phase != PhaseDone {
			stale = append(stale, h)
		}
	}
	for n, i := range m.heldBy(x) {
		switch {
		case presented[i]:
		case same:
			m.handBack(i, "never arrived", true)
		default:
			m.lost(i, "its executor was restarted", n == 0 || m.at(i).state == task.Running)
		}
	}
	return kept, stale
}

// endStale cancels what an executor presented and should not have; it is told
// after it was told that it is registered.
func (m *machine) endStale(id string, stale []Held) {
	for _, h := range stale {
		e := m.execs[m.execAt[id]]
		e.soft.fence(zombie{h.Task, h.Version}, m.now.mono)
		m.order(e, Revoke{Task: h.Task, Version: h.Version, Reason: "not yours any more"})
	}
}

// fence counts an attempt that nobody waits for as work of its executor.
func (x *execSoft) fence(z zombie, now int64) {
	if x.zombies == nil {
		x.zombies = map[zombie]int64{}
	}
	x.zombies[z] = now + int64(zombieTime)
}

// heldBy is the slots of what an executor holds, oldest dispatch first.
func (m *machine) heldBy(x uint32) []uint32 {
	var all []uint32
	for i := m.execs[x].held.oldest; i != 0; i = m.at(i).list[inQueue].newer {
		all = append(all, i)
	}
	return all
}

// lost gives up a dispatch whose executor is gone.
func (m *machine) lost(i uint32, why string, begun bool) {
	m.fail(i, failure{class: task.ExecutorLost, text: why, begun: begun})
}

// offer records what an executor offers, contract by contract. A newcomer whose
// contract differs from the one that others hold is refused that type.
func (m *machine) offer(x uint32, types []string, units []task.Unit) (refused []string) {
	offers := make([]task.Value, 0, len(types))
	for _, name := range slices.Compact(slices.Sorted(slices.Values(types))) {
		n := slices.IndexFunc(units, func(u task.Unit) bool { return u.Name == name })
		if n < 0 {
			offers = append(offers, task.Value{Name: name})
			continue
		}
		if difference := m.declare(x, &units[n]); difference != "" {
			refused = append(refused, name+": "+difference)
			m.log.Warn("executor refused for a type", "executor", m.execs[x].id, "type", name, "difference", difference)
			continue
		}
		offers = append(offers, task.Value{Name: name, Value: textHash(string(units[n].AppendText(nil)))})
	}
	values, err := task.NewValues(offers)
	if err != nil {
		panic("engine: offers were not unique: " + err.Error())
	}
	if !slices.Equal(values, m.execs[x].offers) {
		m.emit(&offered{Exec: m.execs[x].id, Types: values})
	}
	m.regroup(x)
	return refused
}

// textHash tells two contracts apart.
func textHash(text string) string { return workHash("unit", text) }

// declare takes a contract in, or says how it differs from the one in force.
func (m *machine) declare(x uint32, u *task.Unit) (difference string) {
	text := string(u.AppendText(nil))
	t := m.types[m.typ(u.Name)]
	switch {
	case t.text == text:
		return ""
	case t.unit != nil && m.offeredByOthers(x, u.Name) && !m.offers(x, u.Name):
		return firstDifference(t.text, text)
	}
	m.emit(&unitDeclared{Type: u.Name, Text: text})
	m.emit(&configured{Version: m.configVersion + 1, Hash: m.configHash, Why: "contract of " + u.Name})
	m.regroupOffering(u.Name)
	return ""
}

// offers reports whether an executor offers a type under its present contract.
func (m *machine) offers(x uint32, name string) bool {
	value, ok := m.execs[x].offers.Get(name)
	return ok && value != "" && value == textHash(m.types[m.typ(name)].text)
}

func (m *machine) offeredByOthers(x uint32, name string) bool {
	for other, e := range m.execs {
		if e != nil && uint32(other) != x && e.soft.link != nil && !e.offline && m.offers(uint32(other), name) {
			return true
		}
	}
	return false
}

// firstDifference names the first line in which two contracts differ.
func firstDifference(now, other string) string {
	a, b := strings.Split(now, "\n"), strings.Split(other, "\n")
	for _, line := range b {
		if !slices.Contains(a, line) {
			name, _, _ := strings.Cut(line, "=")
			for _, was := range a {
				if strings.HasPrefix(was, name+"=") {
					return "others have " + was + ", this one " + line
				}
			}
			return "this one adds " + line
		}
	}
	for _, line := range a {
		if !slices.Contains(b, line) {
			return "this one lacks " + line
		}
	}
	return "none"
}

// changeTypes adds and removes what a registered executor offers.
func (m *machine) changeTypes(link Link, c Types) (Registered, error) {
	x, e, err := m.linked(link, c.Exec)
	if err != nil {
		return Registered{}, err
	}
	for _, name := range c.Add {
		if err := task.CheckType(name); err != nil {
			return Registered{}, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	// Contracts first, while the executor still counts as one that offers the type.
	refused := map[string]string{}
	for n := range c.Units {
		if difference := m.declare(x, &c.Units[n]); difference != "" {
			refused[c.Units[n].Name] = difference
		}
	}
	offers := map[string]string{}
	for _, v := range e.offers {
		if !slices.Contains(c.Remove, v.Name) {
			offers[v.Name] = v.Value
		}
	}
	for _, name := range c.Add {
		offers[name] = ""
	}
	for n := range c.Units {
		if _, no := refused[c.Units[n].Name]; !no {
			offers[c.Units[n].Name] = textHash(string(c.Units[n].AppendText(nil)))
		}
	}
	values := make(task.Values, 0, len(offers))
	for name, hash := range offers {
		if _, no := refused[name]; !no {
			values = append(values, task.Value{Name: name, Value: hash})
		}
	}
	slices.SortFunc(values, func(a, b task.Value) int { return cmp.Compare(a.Name, b.Name) })
	m.emit(&offered{Exec: e.id, Types: values})
	m.regroup(x)
	answer := m.registered(e)
	for name, difference := range refused {
		answer.Refused = append(answer.Refused, name+": "+difference)
	}
	slices.Sort(answer.Refused)
	return answer, nil
}
