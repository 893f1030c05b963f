package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/tui"
)

// The kinds of records that more than the words depend on.
const (
	kindFail = "task.fail"
	kindEnd  = "task.end"
)

// words of an event, taken field by field; what no one took follows as it is,
// so that a newer controller's fields are shown too.
type teller struct {
	event *view.Event
	zone  *time.Location
	taken []string
	parts []string
}

// unsaid are fields that say nothing to a person; --json has them.
var unsaid = []string{
	"in", "filled", "out_hash", "instance", "hash", "text", "ctx_at", "build", "named", "head", "told", "pid", "tries", "stales", "retries1", "unit",
}

// Kinds is the kinds of records that have words of their own, in order.
func Kinds() []string { return slices.Sorted(maps.Keys(tellers)) }

// describe says in words what matters of an event, and how it is to look.
func describe(e *view.Event, zone *time.Location) (string, style) {
	t := &teller{event: e, zone: zone}
	tone := plain
	if tell := tellers[e.Kind]; tell != nil {
		tone = tell(t)
	}
	t.rest()
	return strings.Join(t.parts, ", "), tone
}

// tellers has one function for each kind of record.
var tellers = map[string]func(*teller) style{
	"start":         func(t *teller) style { t.add("controller started, epoch %s", t.take("epoch")); return cyan },
	"seal":          func(t *teller) style { t.add("quiet"); return dim },
	"clock.back":    func(t *teller) style { t.add("clock was set back by %s", t.micros("us")); return yellow },
	"config":        tellConfig,
	"image":         func(t *teller) style { t.add("image of record %s", t.take("seq")); return dim },
	"task.submit":   tellSubmit,
	"task.start":    tellStart,
	"task.running":  func(t *teller) style { t.add("running"); t.version(); return plain },
	"task.result":   tellResult,
	kindFail:        tellFail,
	"task.back":     tellBack,
	"task.queue":    tellQueue,
	kindEnd:         tellEnd,
	"task.edit":     tellEdit,
	"task.drop":     func(t *teller) style { t.add("dropped"); t.some("by %s", t.take("by")); t.reason(); return yellow },
	"task.forget":   func(t *teller) style { t.add("%s ended tasks left memory", t.take("count")); return dim },
	"key.forget":    func(t *teller) style { t.add("%s remembered ids and keys left", t.take("count")); return dim },
	"exec.register": tellRegister,
	"exec.types":    func(t *teller) style { t.add("offers %s", cmp.Or(names(t.take("types")), "nothing")); return plain },
	"exec.late":     func(t *teller) style { t.add("missed a beat"); return yellow },
	"exec.offline":  tellOffline,
	"exec.drain":    func(t *teller) style { t.add("draining"); t.some("by %s", t.take("by")); return yellow },
	"exec.forget":   func(t *teller) style { t.add("offline for long, forgotten"); return dim },
	"unit":          func(t *teller) style { t.add("contract of %s", t.take("type")); return dim },
	"pause":         tellPause,
	"state.repair":  tellRepair,
	"late":          tellLate,
}

func tellConfig(t *teller) style {
	t.add("configuration %s", t.take("version"))
	t.some("%s", t.take("why"))
	return dim
}

func tellSubmit(t *teller) style {
	t.add("%s %s", t.take("type"), t.take("state"))
	t.some("key %s", t.take("key"))
	t.some("not before %s", t.moment("not_before"))
	t.some("deadline %s", t.moment("deadline"))
	t.some("timeout %s", t.micros("timeout_us"))
	if n, err := strconv.Atoi(t.take("retries1")); err == nil {
		t.add("%s", task.Plural(n-1, "repeat"))
	}
	t.some("%s", values(t.take("in")))
	return plain
}

func tellStart(t *teller) style {
	t.add("attempt %s", t.take("attempt"))
	t.version()
	t.some("sees state %s", t.take("sv"))
	t.some("%s", values(t.take("ctx")))
	return plain
}

func tellResult(t *teller) style {
	t.add("succeeded")
	t.timing()
	t.some("%s", values(t.take("out")))
	t.some("set %s", values(t.take("set")))
	t.some("deleted %s", t.take("del"))
	t.some("state %s", t.take("sv"))
	t.version()
	return green
}

func tellFail(t *teller) style {
	t.add("failed: %s", failText(t.take("class"), t.take("error")))
	t.some("exit %s", t.take("exit"))
	t.some("signal %s", t.take("signal"))
	t.timing()
	next := t.take("state")
	if due := t.moment("due"); due != "" {
		next += " at " + due
	}
	t.some("now %s", next)
	t.some("executors lost under it: %s", t.take("crashes"))
	t.version()
	t.some("%s", values(t.take("out")))
	return red
}

func tellBack(t *teller) style {
	t.add("handed back")
	t.reason()
	t.take("attempt")
	t.version()
	return yellow
}

func tellQueue(t *teller) style {
	t.add("queued")
	t.reason()
	t.some("by %s", t.take("by"))
	t.take("anew")
	return plain
}

func tellEnd(t *teller) style {
	state, class := t.take("state"), t.take("class")
	if class == state {
		class = "" // cancelled twice says no more than once
	}
	t.add("ended %s", state)
	t.some("%s", failText(class, t.take("error")))
	t.some("by %s", t.take("by"))
	if state == task.Dead.String() {
		return red
	}
	return yellow
}

func tellEdit(t *teller) style {
	t.add("inputs edited")
	t.some("now %s", values(t.take("in")))
	t.some("by %s", t.take("by"))
	return yellow
}

func tellRegister(t *teller) style {
	t.add("registered")
	t.some("offers %s", names(t.take("types")))
	t.some("protocol %s", t.take("proto"))
	t.some("on %s", t.take("host"))
	return plain
}

// tellOffline is a failure only if the executor was lost.
func tellOffline(t *teller) style {
	t.add("offline")
	t.reason()
	if tui.LeftInOrder(valueOf(t.event, "reason")) {
		return yellow
	}
	return red
}

func tellPause(t *teller) style {
	what := t.take("type")
	if what == "" {
		what = "everything"
	}
	if on := t.take("on"); on == "true" || on == "1" {
		t.add("paused %s", what)
		t.some("by %s", t.take("by"))
		return yellow
	}
	t.add("continued %s", what)
	t.some("by %s", t.take("by"))
	return plain
}

func tellRepair(t *teller) style {
	value := t.take("value")
	if t.take("delete") != "" {
		t.add("deleted %s", t.take("key"))
	} else {
		t.add("set %s = %s", t.take("key"), value)
	}
	t.some("by %s", t.take("by"))
	t.reason()
	return yellow
}

func tellLate(t *teller) style {
	t.add("result not applied")
	t.reason()
	t.some("would have: %s", t.take("effect"))
	t.version()
	t.some("current %s", t.take("current"))
	return yellow
}

// valueOf is a field of the record; empty: it was zero.
func valueOf(e *view.Event, name string) string {
	value, _ := task.Values(e.Values).Get(name)
	return value
}

func (t *teller) take(name string) string {
	t.taken = append(t.taken, name)
	return valueOf(t.event, name)
}

func (t *teller) add(format string, args ...any) {
	t.parts = append(t.parts, fmt.Sprintf(format, args...))
}

// some adds a text that may be missing.
func (t *teller) some(format, text string) {
	if text != "" {
		t.add(format, text)
	}
}

func (t *teller) version() { t.some("version %s", t.take("v")) }
func (t *teller) reason()  { t.some("%s", t.take("reason")) }

func (t *teller) micros(name string) string {
	n, err := strconv.ParseInt(t.take(name), 10, 64)
	if err != nil {
		return valueOf(t.event, name)
	}
	return span(time.Duration(n) * time.Microsecond)
}

// moment is a time of day, or with the day if it is another.
func (t *teller) moment(name string) string {
	text := t.take(name)
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return text
	}
	return moment(at, t.event.Time.In(t.zone))
}

// timing is the whole time, and its parts if there is more than the execution.
func (t *teller) timing() {
	var total, execute time.Duration
	for _, name := range []string{"prepare_us", "execute_us", "cleanup_us"} {
		n, _ := strconv.ParseInt(t.take(name), 10, 64)
		total += time.Duration(n) * time.Microsecond
		if name == "execute_us" {
			execute = time.Duration(n) * time.Microsecond
		}
	}
	switch {
	case total == 0:
	case span(total) == span(execute):
		t.add("in %s", span(total))
	default:
		t.add("in %s (execute %s)", span(total), span(execute))
	}
}

func (t *teller) rest() {
	for _, v := range t.event.Values {
		if !slices.Contains(t.taken, v.Name) && !slices.Contains(unsaid, v.Name) {
			t.add("%s=%s", v.Name, v.Value)
		}
	}
}

// values shows a set of values, which a record carries as its canonical text.
func values(text string) string {
	set, err := task.ParseValues(text)
	if err != nil {
		return text
	}
	return pairs(view.Object(set))
}

// names are the names alone of a set of values.
func names(text string) string {
	set, err := task.ParseValues(text)
	if err != nil {
		return text
	}
	list := make([]string, len(set))
	for i := range set {
		list[i] = set[i].Name
	}
	return strings.Join(list, " ")
}
