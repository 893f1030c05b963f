package cli

import (
	"cmp"
	"maps"
	"strings"

	"apollo11/engine/task"
)

// runTellers are the words for what happens to runs and their tasks.
var runTellers = map[string]func(*teller) style{
	"mission.spec": tellSpec,
	"run.start":    tellRunStart,
	"run.go":       func(t *teller) style { t.add("its turn has come"); return plain },
	"run.stop":     tellRunStop,
	"run.cancel":   func(t *teller) style { t.add("run cancelled"); t.by(); t.some("%s", t.take("why")); return yellow },
	"run.end":      tellRunEnd,
	"run.forget":   func(t *teller) style { t.add("the run left memory"); return dim },
	kindReady:      tellReady,
	"task.skip":    tellSkip,
	"task.settle": func(t *teller) style {
		t.add("no dead letter any more")
		t.some("%s", t.take("why"))
		t.by()
		return plain
	},
	"task.progress":    tellProgress,
	"nondeterministic": tellVaried,
	"state.restore":    tellRestore,
}

func init() { maps.Copy(tellers, runTellers) }

func (t *teller) by() { t.some("by %s", t.take("by")) }

func tellSpec(t *teller) style {
	t.add("text of a mission, %s", shortHash(t.take("hash")))
	if parts := t.take("parts"); parts != "1" {
		t.some("part %s of "+strings.ReplaceAll(parts, "%", ""), t.take("part"))
	}
	t.take("part")
	return dim
}

func tellRunStart(t *teller) style {
	mode, parent := t.take("mode"), t.take("parent")
	t.add("run: %s", cmp.Or(mode, "start"))
	t.some("of %s", parent)
	t.some("from %s", t.take("from"))
	t.some("with %s", values(t.take("with")))
	t.some("spec %s", shortHash(t.take("spec")))
	t.some("%s", t.take("state"))
	t.some("sample of %s", t.take("sample"))
	t.some("key %s", t.take("key"))
	t.some("%s", values(t.take("params")))
	if cause := t.take("cause"); cause != byPerson {
		t.some("%s", cause)
	}
	t.by()
	t.take("order") // numbers of units; the units' own records say it
	return cyan
}

func tellRunStop(t *teller) style {
	unit := t.take("unit")
	if t.take("all") != "" {
		t.add("stopped: nothing of it begins any more")
	} else {
		t.add("what waits for %s ends", unit)
	}
	t.some("%s", t.take("why"))
	return yellow
}

func tellRunEnd(t *teller) style {
	state := t.take("state")
	t.add("run ended %s", state)
	t.some("%s", t.take("why"))
	if state == task.Succeeded.String() {
		return green
	}
	return stateStyle(state)
}

func tellReady(t *teller) style {
	if t.take("undo") != "" {
		t.add("ready to be undone")
	} else {
		t.add("ready")
	}
	t.some("%s", values(t.take("in")))
	t.some("when %s", t.take("when"))
	t.some("%s", t.take("note"))
	return plain
}

func tellSkip(t *teller) style {
	if t.take("reused") == "" {
		t.add("skipped")
	}
	t.reason() // it names the task whose result is taken over
	t.some("%s", values(t.take("out")))
	if note := t.take("note"); note != "" {
		t.add("%s", note)
		return yellow
	}
	return dim
}

// tellProgress is a resident unit that feeds the state while it runs.
func tellProgress(t *teller) style {
	t.add("feeds the state")
	t.some("set %s", values(t.take("set")))
	t.some("deleted %s", t.take("del"))
	t.some("state %s", t.take("sv"))
	t.version()
	return plain
}

func tellVaried(t *teller) style {
	t.add("not what %s gave, from the same inputs, context and program", cmp.Or(t.take("other"), "an earlier task"))
	return yellow
}

func tellRestore(t *teller) style {
	t.add("state put back to record %s", t.take("to"))
	t.some("set %s", values(t.take("set")))
	t.some("deleted %s", t.take("del"))
	t.by()
	t.reason()
	return yellow
}
