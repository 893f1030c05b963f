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
	link     Link          // nil: not connected
	ready    bool          // protocol 1: a heartbeat waits for a task
	late     bool          // a beat was missed
	linked   int64         // when it registered
	mark     int64         // newest queue position then: what it holds up to it is from before
	beat     time.Duration // what it was told of heartbeats; 0: not registered since the start
	answered int64         // its last result
	absence
	fences
	burden
	place
	talk
	groupPlace
	heap [dueKinds]uint32
}

// talk is what an executor wants to be told, and told last.
type talk struct {
	subscribed bool // to changes of the state
	progress   progressNote
}

// place is where an executor is: what it sees, and what its host has.
type place struct {
	share    string         // file tree; empty: none
	capacity task.Resources // of the host, shared by all executors there
}

// burden is what an executor's tasks weigh.
type burden struct {
	bytes  int            // of the tasks it holds
	long   int            // tasks it holds that nothing may wait behind
	uses   task.Resources // declared by the tasks it holds
	fenced task.Resources // and by its zombies, when it was last looked at
	host   *host          // that has to carry them
}

// absence is an executor without a connection.
type absence struct {
	silent int64         // when it lost it, or the controller started
	grace  time.Duration // to come back from then on
	why    string
	losses int // since the controller's start
}

// fences are attempts that nobody waits for, and an executor may still work on.
type fences struct {
	zombies map[zombie]haunting
	busy    int64 // protocol 1: until when they excuse its silence
}

// zombie is a fenced attempt.
type zombie struct {
	task    string
	version task.Version
}

// haunting is how long a fenced attempt is believed in, and what it takes up.
type haunting struct {
	until int64
	needs task.Resources
}

type progressNote struct {
	task string
	text string
	wall int64
}

// load is how much an executor has on its hands.
func (e *executor) load() int { return e.held.len + len(e.soft.zombies) }

func (m *machine) forgetZombie(x uint32, id string, v task.Version) {
	e := m.execs[x]
	if len(e.soft.zombies) == 0 {
		return
	}
	delete(e.soft.zombies, zombie{id, v})
	m.dirty = append(m.dirty, x)
	if len(e.soft.zombies) == 0 {
		e.soft.busy = 0
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
	refused := m.offer(x, c.Types, c.Units)
	answer := m.registered(e) // after the offer: a new contract raises versions
	answer.Kept, answer.Stale, answer.Refused = kept, stale, refused
	m.setLife(x)
	return answer, nil
}

func checkRegister(c Register) error {
	if c.Exec == "" || len(c.Exec) > 128 || task.Printable(c.Exec) != c.Exec {
		return fmt.Errorf("%w: executor_id %q: want 1 to 128 printable bytes", ErrInvalid, task.Printable(c.Exec))
	}
	if len(c.Running) > maxPresented {
		return fmt.Errorf("%w: %d running tasks presented, at most %d", ErrTooLarge, len(c.Running), maxPresented)
	}
	for name, text := range map[string]string{"instance": c.Instance, "host": c.Host, "build": c.Build} {
		if len(text) > maxAbout {
			return fmt.Errorf("%w: %s of %d bytes, at most %d", ErrTooLarge, name, len(text), maxAbout)
		}
	}
	return checkOffer(c.Types, c.Units)
}

// Bounds of what an executor may say of itself at once: it has to fit a batch.
const (
	maxPresented  = 4 * maxDepth // tasks it holds
	maxAbout      = 256          // bytes of a text
	maxOffered    = 500          // types
	maxOfferBytes = maxCommandBytes / 2
)

func checkOffer(types []string, units []task.Unit) error {
	size := 0
	for _, name := range types {
		if err := task.CheckType(name); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		size += len(name) + 100
	}
	for i := range units {
		if err := task.CheckType(units[i].Name); err != nil {
			return fmt.Errorf("%w: contract: %w", ErrInvalid, err)
		}
		size += escapedSize(string(units[i].AppendText(nil)))
	}
	if len(types) > maxOffered || len(units) > maxOffered || size > maxOfferBytes {
		return fmt.Errorf("%w: %d types, %d contracts of %d bytes: at most %d, %d bytes", ErrTooLarge,
			len(types), len(units), size, maxOffered, maxOfferBytes)
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
	e.soft.link, e.soft.ready, e.soft.linked, e.soft.why, e.soft.busy = link, false, m.now.mono, "", 0
	e.soft.answered, e.soft.mark, e.soft.late = m.now.mono, m.tail, false
	m.equip(e, place{cutText(c.Share, maxShare), c.Capacity})
	m.noteHashes(c.Hashes)
	m.dropHold(x)
	m.subscribe(e, c.Subscribe && c.Proto > 1)
	return x, same
}

// maxShare bounds the name of a share.
const maxShare = 128

// noteHashes keeps what executors say their units are made of.
func (m *machine) noteHashes(hashes task.Values) {
	for _, v := range hashes {
		if _, known := m.hashes[v.Name]; known || len(m.hashes) < manyTypes {
			m.hashes[v.Name] = cutText(v.Value, maxUnitHash)
		}
	}
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
func (m *machine) registered(e *executor) Registered {
	e.soft.beat = m.heartbeat()
	return Registered{Epoch: m.epoch, StateVersion: m.stateVersion, ConfigVersion: m.configVersion, Heartbeat: e.soft.beat}
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
	missing := slices.DeleteFunc(m.heldBy(x), func(i uint32) bool { return presented[i] })
	if same {
		for _, i := range slices.Backward(missing) { // so that they stand at the head as before
			m.handBack(i, "never arrived", true)
		}
		return kept, stale
	}
	m.loseAll(missing, m.presumed(x), "its executor was restarted")
	return kept, stale
}

// presumed is the task that an executor is known, or else presumed, to run: it
// runs one at a time, in order.
func (m *machine) presumed(x uint32) uint32 {
	held := m.heldBy(x)
	for _, i := range held {
		if m.at(i).state == task.Running {
			return i
		}
	}
	if len(held) == 0 {
		return 0
	}
	return held[0]
}

// greet orders what a registered executor has to do beside its work, after it
// was told that it is registered: end what it should not have, and drain still.
func (m *machine) greet(id string, reg Registered) {
	e := m.execs[m.execAt[id]]
	for _, h := range reg.Stale {
		ghost := haunting{until: m.now.mono + int64(undeclaredAttempt)}
		if i := m.find(h.Task); i != 0 {
			ghost.needs = m.types[m.at(i).typ].needs()
		}
		e.soft.fence(zombie{h.Task, h.Version}, ghost)
		m.order(e, Revoke{Task: h.Task, Version: h.Version, Reason: "not yours any more"})
	}
	if e.draining {
		m.order(e, DrainOrder{Reason: "drained by an operator"})
	}
}

// fence counts an attempt that nobody waits for as work of its executor.
func (x *fences) fence(z zombie, h haunting) {
	if x.zombies == nil {
		x.zombies = map[zombie]haunting{}
	}
	x.zombies[z] = h
}

// heldBy is the slots of what an executor holds, oldest dispatch first.
func (m *machine) heldBy(x uint32) []uint32 {
	var all []uint32
	for i := m.execs[x].held.oldest; i != 0; i = m.at(i).list[inQueue].newer {
		all = append(all, i)
	}
	return all
}

// loseAll gives up dispatches whose executor is gone, oldest first. Only the one
// that ran counts a crash; what must not begin twice is never said not to have.
func (m *machine) loseAll(held []uint32, ran uint32, why string) {
	m.giveBack(held, func(i uint32, head bool) {
		if i != ran && m.at(i).state != task.Running && m.idempotent(i) {
			m.handBack(i, why, head)
			return
		}
		m.fail(i, failure{class: task.ExecutorLost, text: why, begun: true}, nil)
	})
}

// giveBack calls back for each task in an order that leaves them in the queue as
// they were: what goes to the head goes there last first.
func (m *machine) giveBack(held []uint32, back func(i uint32, head bool)) {
	for _, i := range slices.Backward(held) {
		if m.at(i).deadline != 0 {
			back(i, true)
		}
	}
	for _, i := range held {
		if t := m.at(i); t.deadline == 0 {
			back(i, false)
		}
	}
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
	if t.text == text {
		return ""
	}
	_, err := task.ParseUnit(text)
	before := t.needs()
	switch {
	case err != nil:
		return cutText(err.Error(), maxReason)
	case len(text) > task.MaxBytes:
		return fmt.Sprintf("a contract of %d bytes, at most %d", len(text), task.MaxBytes)
	case t.unit != nil && m.offeredByOthers(x, u.Name) && !m.offers(x, u.Name):
		return firstDifference(t.text, text)
	}
	m.emit(&unitDeclared{Type: u.Name, Text: text})
	m.emit(&configured{Version: m.configVersion + 1, Hash: m.configHash, Why: "contract of " + u.Name})
	if t.needs() != before && t.out > 0 {
		m.recount()
	}
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
	if err := checkOffer(c.Add, c.Units); err != nil {
		return Registered{}, err
	}
	m.noteHashes(c.Hashes)
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
