package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// words are a command's arguments: plain ones, and NAME=VALUE, both in order.
type words struct {
	t      *testing.T
	plain  []string
	values []task.Value
}

func (s *script) words(text string) words {
	w := words{t: s.t}
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		var word string
		if at := strings.Index(text, `="`); at >= 0 && !strings.Contains(text[:at], " ") {
			quoted, err := strconv.QuotedPrefix(text[at+1:])
			if err != nil {
				s.t.Fatalf("%s: %v", text, err)
			}
			value, _ := strconv.Unquote(quoted)
			w.values = append(w.values, task.Value{Name: text[:at], Value: value})
			text = text[at+1+len(quoted):]
			continue
		}
		word, text, _ = strings.Cut(text, " ")
		if name, value, ok := strings.Cut(word, "="); ok {
			w.values = append(w.values, task.Value{Name: name, Value: value})
		} else {
			w.plain = append(w.plain, word)
		}
	}
	return w
}

// take removes a named value.
func (w *words) take(name string) string {
	n := slices.IndexFunc(w.values, func(v task.Value) bool { return v.Name == name })
	if n < 0 {
		return ""
	}
	value := w.values[n].Value
	w.values = slices.Delete(w.values, n, n+1)
	return value
}

func (w *words) list(name string) []string {
	text := w.take(name)
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

func (w *words) duration(name string) time.Duration {
	if text := w.take(name); text != "" {
		return mustDuration(w.t, text)
	}
	return 0
}

// flag removes a plain word.
func (w *words) flag(name string) bool {
	n := slices.Index(w.plain, name)
	if n >= 0 {
		w.plain = slices.Delete(w.plain, n, n+1)
	}
	return n >= 0
}

// link is the present connection of an executor, or of an operator.
func (s *script) link(id string) *scriptLink {
	l := s.links[id]
	if l == nil {
		l = &scriptLink{s: s, id: id, sent: map[string]task.Version{}, heard: s.now.mono}
		s.links[id] = l
	}
	return l
}

// command asks one thing of the machine, within a turn.
func (s *script) command(text string) {
	word, rest, _ := strings.Cut(text, " ")
	w := s.words(rest)
	link := s.link("op")
	var c Command
	switch word {
	case "register":
		c, link = s.register(&w)
	case "types", "ready", "result", "returned", "progress", "offline", "disconnect":
		id := w.plain[0]
		w.plain = w.plain[1:]
		link = s.link(id)
		c = s.executorCommand(word, id, &w)
	case "submit":
		c = s.submit(&w)
	default:
		c = s.operatorCommand(word, &w)
	}
	if c == nil {
		s.t.Fatalf("no such command: %s", text)
	}
	s.m.decide(Ask{Command: c, Link: link})
}

func (s *script) register(w *words) (Command, *scriptLink) {
	name := w.plain[0] // E or E@LABEL: the label names the connection
	id, _, _ := strings.Cut(name, "@")
	c := Register{Exec: id, Types: w.list("types"), Proto: 2, Instance: w.take("instance")}
	c.Subscribe = w.flag("subscribe")
	s.equip(&c, w)
	if w.take("proto") == "1" {
		c.Proto = 1
	}
	mute := c.Proto == 1
	for _, unit := range w.list("units") {
		c.Units = append(c.Units, s.units[unit])
		if name := s.units[unit].Name; !slices.Contains(c.Types, name) {
			c.Types = append(c.Types, name)
		}
	}
	for _, h := range w.list("running") {
		parts := strings.Split(h, ":")
		last := len(parts) - 1 // the id may hold colons itself
		held := Held{Task: strings.Join(parts[:last-1], ":"), Version: mustVersion(s, parts[last-1])}
		held.Phase = map[string]Phase{"queued": PhaseQueued, "running": PhaseRunning, "done": PhaseDone}[parts[last]]
		c.Running = append(c.Running, held)
	}
	old := s.links[id]
	delete(s.links, id)
	l := s.link(id)
	l.id, l.mute = name, mute
	if old != nil {
		l.sent = old.sent
	}
	if old != nil && !old.gone {
		s.links[old.id+"!"] = old // the connection before, which nobody closed: "E!"
	}
	return c, l
}

// equip reads where the executor is: cpu in cores, memory and disk in MiB.
func (s *script) equip(c *Register, w *words) {
	c.Host, c.Share = w.take("host"), w.take("share")
	for name, to := range map[string]*int64{"cpu": &c.Capacity.CPU, "memory": &c.Capacity.Memory, "disk": &c.Capacity.Disk} {
		unit := int64(1 << 20)
		if name == "cpu" {
			unit = 1000
		}
		if text := w.take(name); text != "" {
			*to = int64(mustNumber(s.t, text)) * unit
		}
	}
}

func mustVersion(s *script, text string) task.Version {
	epoch, n, _ := strings.Cut(text, ".")
	return task.MakeVersion(mustNumber(s.t, epoch), uint32(mustNumber(s.t, n)))
}

// versionFor is the version that is given, or what the link was last sent.
func (s *script) versionFor(link *scriptLink, id string, w *words) task.Version {
	if text := w.take("v"); text != "" {
		return mustVersion(s, text)
	}
	return link.sent[id]
}

func (s *script) executorCommand(word, id string, w *words) Command {
	link := s.link(id)
	id = strings.TrimSuffix(id, "!")
	switch word {
	case "types":
		c := Types{Exec: id, Add: w.list("add"), Remove: w.list("remove")}
		for _, unit := range w.list("units") {
			c.Units = append(c.Units, s.units[unit])
		}
		return c
	case "ready":
		link.heard = s.now.mono
		return Ready{Exec: id}
	case "returned":
		return Returned{Exec: id, Task: w.plain[0], Version: s.versionFor(link, w.plain[0], w)}
	case "progress":
		link.heard = s.now.mono
		c := Progress{Exec: id, Task: w.plain[0], Version: s.versionFor(link, w.plain[0], w), Start: w.flag("start"), Message: w.take("message")}
		c.Changes = s.changes(w)
		return c
	case "offline":
		return Offline{Exec: id, Reason: w.take("reason")}
	case "disconnect":
		link.gone = true
		return Disconnected{Exec: id, Reason: w.take("reason")}
	}
	return s.result(id, link, w)
}

func (s *script) result(id string, link *scriptLink, w *words) Command {
	link.heard = s.now.mono
	o := task.Outcome{Task: w.plain[0], Version: s.versionFor(link, w.plain[0], w), Status: task.Success}
	switch status := w.take("status"); status {
	case "", "success":
	case "cancelled":
		o.Status = task.Stopped
	default:
		o.Status = task.Failed
	}
	o.Error, o.UnitHash, o.Timing.Execute = w.take("error"), w.take("made"), w.duration("took")
	if o.Timing.Execute == 0 {
		o.Timing.Execute = time.Second
	}
	if class := w.take("class"); class != "" {
		o.Class, _ = task.ParseClass(class)
	}
	for n := 0; n < len(w.values); n++ {
		if key, is := strings.CutPrefix(w.values[n].Name, "out."); is {
			o.Outputs = append(o.Outputs, task.Value{Name: key, Value: w.values[n].Value})
			w.values = slices.Delete(w.values, n, n+1)
			n--
		}
	}
	o.Changes = s.changes(w)
	c := Result{Exec: id, Outcome: o}
	if w.flag("malformed") {
		c.Raw = fmt.Errorf("malformed message: output n: bad escape")
	}
	return c
}

// changes are a result's, or a progress message's, of the state.
func (s *script) changes(w *words) (list []task.Change) {
	for _, v := range w.values {
		op, key, ok := strings.Cut(v.Name, ".")
		change := task.Change{Key: key, Value: v.Value}
		var err error
		if change.Op, err = task.ParseOp(op); err != nil || !ok {
			s.t.Fatalf("no change of the state: %s", v.Name)
		}
		list = append(list, change)
	}
	return list
}

func (s *script) submit(w *words) Command {
	c := Submit{Check: w.flag("check")}
	spec := task.Spec{Type: w.plain[0], ID: w.take("id"), Key: w.take("key"), Retries: task.Unset, Timeout: w.duration("timeout")}
	if after := w.duration("after"); after != 0 {
		spec.NotBefore = time.Unix(0, s.now.raw).Add(after)
	}
	if by := w.duration("deadline"); by != 0 {
		spec.Deadline = time.Unix(0, s.now.raw).Add(by)
	}
	if retries := w.take("retries"); retries != "" {
		spec.Retries = int(mustNumber(s.t, retries))
	}
	big, many := w.take("big"), w.take("times")
	spec.Inputs = w.values
	if big != "" {
		spec.Inputs = append(spec.Inputs, task.Value{Name: "big", Value: strings.Repeat("x", int(mustNumber(s.t, big)))})
	}
	c.Specs = []task.Spec{spec}
	if many != "" {
		c.Specs = slices.Repeat(c.Specs, int(mustNumber(s.t, many)))
	}
	for _, also := range w.plain[1:] { // more tasks of the same submission, by type
		c.Specs = append(c.Specs, task.Spec{Type: also, Retries: task.Unset})
	}
	return c
}

func (s *script) operatorCommand(word string, w *words) Command {
	switch word {
	case "requeue":
		return Requeue{Selection: s.selection(w), Actor: "ann"}
	case "cancel":
		reason := w.take("reason")
		return Cancel{Selection: s.selection(w), Actor: "ann", Reason: reason}
	case "drop":
		reason := w.take("reason")
		return Drop{Selection: s.selection(w), Actor: "ann", Reason: reason}
	case "edit":
		return s.edit(w)
	case "pause", "resume":
		c := Pause{On: word == "pause"}
		if len(w.plain) > 0 {
			c.Type = w.plain[0]
		}
		return c
	case "drain":
		return Drain{Exec: w.plain[0]}
	case "repair":
		c := Repair{Reason: w.take("reason"), Actor: "ann", Delete: w.flag("delete")}
		if c.Delete {
			c.Key = w.plain[0]
		} else {
			c.Key, c.Value = w.values[0].Name, w.values[0].Value
		}
		return c
	case "status":
		return GetStatus{}
	case "executors":
		return GetExecutors{}
	case "queues":
		return GetQueues{}
	case "tasks":
		return GetTasks{Query: s.query(w)}
	case "task":
		return GetTask{ID: w.plain[0]}
	case "late":
		return GetLate{}
	case "explain":
		return GetExplanation{ID: w.plain[0]}
	case "state":
		q := view.KeyQuery{Prefix: w.take("prefix"), Cursor: w.take("cursor"), Keys: w.plain}
		if since := w.take("since"); since != "" {
			q.Since = int64(mustNumber(s.t, since))
		}
		if limit := w.take("limit"); limit != "" {
			q.Limit = int(mustNumber(s.t, limit))
		}
		return GetState{Query: q}
	}
	return s.runCommand(word, w)
}

func (s *script) edit(w *words) Command {
	c := Edit{ID: w.plain[0], Unset: w.list("unset"), Actor: "ann"}
	if big := w.take("big"); big != "" {
		w.values = append(w.values, task.Value{Name: "big", Value: strings.Repeat("x", int(mustNumber(s.t, big)))})
	}
	c.Set = w.values
	return c
}

func (s *script) query(w *words) view.Query {
	q := view.Query{Type: w.take("type"), Error: w.take("error"), Cursor: w.take("cursor"), Older: w.duration("older"), Oldest: w.flag("oldest")}
	for _, name := range w.list("states") {
		state, err := task.ParseState(name)
		if err != nil {
			s.t.Fatal(err)
		}
		q.States = append(q.States, state)
	}
	if limit := w.take("limit"); limit != "" {
		q.Limit = int(mustNumber(s.t, limit))
	}
	return q
}

func (s *script) selection(w *words) view.Selection {
	if w.flag("all") {
		count := w.flag("count")
		return view.Selection{All: true, Query: s.query(w), Count: count}
	}
	return view.Selection{IDs: w.plain}
}

// describeAnswer is an answer in words, a line for each thing in it.
func describeAnswer(a Answer) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	switch a := a.(type) {
	case Registered:
		add("registered epoch=%d sv=%d config=%d heartbeat=%s", a.Epoch, a.StateVersion, a.ConfigVersion, a.Heartbeat)
		for _, refused := range a.Refused {
			add("  refused %s", refused)
		}
		for _, h := range a.Kept {
			add("  kept %s %s", h.Task, h.Version)
		}
		for _, h := range a.Stale {
			add("  stale %s %s", h.Task, h.Version)
		}
	case Applied:
		add("%s sv=%d %s", [...]string{"ok", "duplicate", "stale", "rejected"}[a.Verdict], a.StateVersion, a.Reason)
	case Done:
		add("done")
	case []view.Submitted:
		if len(a) > 4 {
			add("%d tasks %s … %s", len(a), a[0].ID, a[len(a)-1].ID)
			break
		}
		for _, t := range a {
			text := t.ID + " " + t.State.String()
			if t.Existed {
				text += " existed"
			}
			if t.Warning != "" {
				text += " (" + t.Warning + ")"
			}
			add("%s", text)
		}
	case *view.Changed:
		add("matched=%d changed=%d %s", a.Matched, a.Changed, strings.Join(a.Samples, " "))
		for n, skipped := range a.Skipped {
			if n < 3 {
				add("  %s", skipped)
			}
		}
	default:
		return describeView(a)
	}
	return lines
}

func describeView(a Answer) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	switch a := a.(type) {
	case view.Key:
		add("%s=%s version=%d by=%s %s", a.Key, a.Value, a.Version, a.Task, a.Fault)
	case *view.KeyPage:
		add("state version=%d cursor=%s", a.Version, a.Cursor)
		for _, k := range a.Keys {
			add("  %s=%s version=%d by=%s %s", k.Key, k.Value, k.Version, k.Task, k.Fault)
		}
	case *view.Status:
		var tasks []string
		for _, state := range task.States() {
			if n := a.Tasks[state.String()]; n > 0 {
				tasks = append(tasks, fmt.Sprintf("%s=%d", state, n))
			}
		}
		add("status epoch=%d sv=%d config=%d late=%d duplicates=%d paused=%v %s", a.Epoch, a.StateVersion, a.ConfigVersion, a.Late,
			a.Duplicates, a.Paused, strings.Join(tasks, " "))
	case []view.Executor:
		for _, e := range a {
			add("%s %s types=%s load=%d task=%s late=%v done=%d failed=%d %s", e.ID, e.State, e.Types, e.Load, e.Task, e.Late, e.Done, e.Failed, e.Reason)
		}
	case []view.Queue:
		for _, q := range a {
			add("%s queued=%d out=%d limit=%d paused=%v executors=%d", q.Type, q.Queued, q.Out, q.Limit, q.Paused, q.Executors)
		}
	case *view.Page:
		var ids []string
		for _, t := range a.Tasks {
			ids = append(ids, t.ID+":"+t.State)
		}
		add("%d of %d examined, cursor=%s: %s", a.Examined, a.Total, a.Cursor, strings.Join(ids, " "))
	case []view.Late:
		for _, l := range a {
			add("%s v=%s current=%s by %s: %s [%s]", l.Task, task.Version(l.Version), task.Version(l.Current), l.Executor, l.Reason, l.Effect)
		}
	case *view.Detail:
		return describeDetail(a)
	case *view.Explanation:
		add("%s %s", a.ID, a.State)
		for _, line := range a.Lines {
			add("  %s", line)
		}
		for _, hint := range a.Hints {
			add("  hint: %s", hint)
		}
	default:
		return describeRuns(a)
	}
	return lines
}

func describeDetail(d *view.Detail) (lines []string) {
	lines = append(lines, fmt.Sprintf("%s %s %s attempt=%d v=%s exec=%s crashes=%d retries=%d error=%s %q out[%s]", d.ID, d.Type, d.State, d.Attempt,
		task.Version(d.Version), d.Executor, d.Crashes, d.Retries, d.ErrorClass, d.Error, plainValues(task.Values(d.Outputs))))
	for _, a := range d.Attempts {
		lines = append(lines, fmt.Sprintf("  attempt %d v=%s %s %s %q", a.Attempt, task.Version(a.Version), a.Executor, a.Outcome, a.Error))
	}
	if d.Late != "" {
		lines = append(lines, "  late "+d.Late)
	}
	if d.Progress != "" {
		lines = append(lines, "  progress "+d.Progress)
	}
	return lines
}
