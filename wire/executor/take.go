package executor

import (
	"fmt"
	"os"
	"time"

	"apollo11/engine/task"
	"apollo11/wire"
)

// take does what the controller's messages ask for.
func (a *agent) take(batch []event) {
	a.link.beat.misses = 0 // whatever came, is life
	if a.link.state == up {
		a.link.beat.asked = time.Time{}
	}
	for _, e := range batch {
		if a.link.batches == nil {
			return // the connection was given up by the message before
		}
		a.takeOne(e)
	}
}

func (a *agent) takeOne(e event) {
	switch {
	case e.end != nil:
		a.lost(e.end)
	case e.bad != nil:
		a.Log.Warn("a message of the controller is not understood", "error", e.bad)
	case e.said != nil:
		a.takeError(e.said)
	case e.ack != nil:
		a.takeAck(e.ack)
	case a.link.state != up:
		a.Log.Warn("a message came before the register was answered, and is not taken")
	case e.task != nil:
		a.takeTask(e.task)
	case e.cancel != nil:
		a.takeCancel(*e.cancel, e.reason)
	case e.recall != nil:
		a.takeRecall(*e.recall)
	case e.drain:
		a.leave("drained: " + e.reason)
	}
}

func (a *agent) takeTask(t *task.Assignment) {
	if a.leaving.on {
		a.giveBack(refOf(t))
		return
	}
	a.desk.push(t)
}

// takeCancel ends a task; one that has ended answers with its result, which is
// on its way.
func (a *agent) takeCancel(ref wire.Ref, reason string) {
	switch {
	case !a.desk.holds(ref):
		a.giveBack(ref)
	case a.desk.takeBack(ref):
		o := &task.Outcome{
			Task: ref.Task, Version: ref.Version, Status: task.Stopped, Class: task.ByPerson,
			Error: "cancelled before it was started", Exit: -1,
		}
		a.desk.keep(o)
		a.link.add(a.desk.frame(o), a.now)
	case a.desk.stop(ref):
		a.Log.Info("cancelled", "task", ref.Task, "reason", reason)
	}
}

func (a *agent) takeRecall(ref wire.Ref) {
	if a.desk.takeBack(ref) || !a.desk.holds(ref) {
		a.giveBack(ref)
	}
}

// giveBack says that a task was not started; without a link the next register
// says it by not naming the task.
func (a *agent) giveBack(ref wire.Ref) {
	if a.link.state == up {
		a.link.add(wire.AppendReturned(nil, ref), a.now)
	}
}

// refuse gives back a task whose unit is not here, and says so first, lest the
// task come again.
func (a *agent) refuse(t *task.Assignment) {
	a.Log.Warn("a task of a unit that is not here is given back", "task", t.Task, "type", t.Type)
	if a.link.state == up {
		a.sayTypes(nil, []string{t.Type})
	}
	a.giveBack(refOf(t))
}

func (a *agent) takeAck(ack *wire.Ack) {
	for _, refused := range ack.Refused {
		a.Log.Warn("the controller does not take a unit from here: its contract differs", "unit", refused)
	}
	switch {
	case a.link.state == registering:
		a.registered(ack)
	case ack.Task != "":
		a.desk.acknowledged(wire.Ref{Task: ack.Task, Version: ack.Version})
		if ack.Status != wire.AckOK {
			a.Log.Warn("a result was not applied", "task", ack.Task, "status", ack.Status.String(), "reason", ack.Reason)
		}
	case ack.Proto != 0: // of a types message; a heartbeat's says no protocol
		a.link.types = max(0, a.link.types-1)
	}
}

// registered sends what could not be sent before.
func (a *agent) registered(ack *wire.Ack) {
	if ack.Proto != 2 {
		a.lost(fmt.Errorf("the controller speaks protocol %d, not 2", max(ack.Proto, 1)))
		return
	}
	l := &a.link
	l.state, l.pause = up, pauseFirst
	if ack.Heartbeat > 0 {
		l.beat.every = ack.Heartbeat
	}
	l.beat.asked, l.beat.at = time.Time{}, a.now.Add(l.beat.every)
	a.Log.Info("registered", "executor", a.ID, "units", len(a.units.names()), "kept results", len(a.desk.results))
	if a.desk.cut {
		a.Log.Warn("output of units was dropped while there was no link")
	}
	if len(a.desk.held) > 0 {
		l.add(a.desk.held, a.now)
	}
	a.desk.held, a.desk.cut = nil, false
	a.sayLive(true)
	for _, k := range a.desk.results {
		l.add(a.desk.frame(k.outcome), a.now)
	}
	if l.bare && !a.leaving.on {
		a.sayTypes(a.units.names(), nil)
	}
	if r := a.desk.running; r != nil {
		r.said = false // the controller may be another one than was told
	}
	l.flush()
}

func (a *agent) takeError(said *wire.Error) {
	a.Log.Warn("the controller refuses a message", "code", string(said.Code), "message", said.Message, "fatal", said.Fatal)
	switch {
	case said.Code == wire.CodeUnauthorized,
		a.link.state == registering && (said.Code == wire.CodeForbidden || said.Code == wire.CodeInvalid || said.Code == wire.CodeTooLarge):
		a.fatal = said
	case said.Code == wire.CodeUnregistered:
		a.link.pause = pauseMost // another with our id: do not fight for it
		a.lost(said)
	case said.Fatal || a.link.state == registering:
		a.lost(said)
	}
}

// registerFrame is the register, with the contracts if the first frame of a
// connection has room for them.
func (a *agent) registerFrame() (frame []byte, bare bool) {
	host, _ := os.Hostname()
	offered := a.units.names()
	if a.leaving.on {
		offered = nil
	}
	r := &wire.Register{
		Exec: a.ID, Types: offered, Load: a.desk.load(), Token: a.Token, Proto: 2, Instance: a.instance,
		Running: a.desk.list(), Host: host, PID: os.Getpid(), Build: a.Build, Capacity: a.capacity,
		Units: a.units.contracts(offered), Hashes: a.units.hashOf(offered),
	}
	if a.share != nil {
		r.Share = a.share.ID
	}
	frame = wire.AppendRegister(nil, r)
	for ; len(frame) > wire.FirstFrame; frame = wire.AppendRegister(nil, r) {
		if !bare {
			bare, r.Types, r.Units, r.Hashes = true, nil, nil, nil
			continue
		}
		r.Running = r.Running[:len(r.Running)/2] // the rest counts as never arrived
	}
	return frame, bare
}

// typesBytes is about how long a types message gets.
const typesBytes = wire.MaxFrame / 4

// sayTypes offers and takes back units, in as many messages as it needs.
func (a *agent) sayTypes(add, remove []string) {
	change := wire.TypeChange{Remove: remove}
	size := 0
	for i, u := range a.units.contracts(add) {
		change.Add, change.Units = append(change.Add, u.Name), append(change.Units, u)
		change.Hashes = append(change.Hashes, a.units.hashOf([]string{u.Name})...)
		if size += len(u.AppendText(nil)); size > typesBytes && i+1 < len(add) {
			a.sayChange(&change)
			change, size = wire.TypeChange{}, 0
		}
	}
	a.sayChange(&change)
}

func (a *agent) sayChange(change *wire.TypeChange) {
	a.link.add(wire.AppendTypes(nil, change), a.now)
	a.link.types++
}

// changeUnits follows the units folder. Tasks of a unit that is gone are given
// back when their turn comes.
func (a *agent) changeUnits(units *catalog) {
	add, remove := units.since(a.units)
	a.units = units
	units.logFaults(a.Log)
	if len(add)+len(remove) == 0 {
		return
	}
	a.Log.Info("the units changed", "added or changed", add, "removed", remove)
	if a.link.state == up && !a.leaving.on {
		a.sayTypes(add, remove)
		a.link.flush()
	}
}
