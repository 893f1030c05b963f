package cli

import "maps"

// triggerTellers are the words for missions that are known, and for what starts
// them.
var triggerTellers = map[string]func(*teller) style{
	"mission.set":  tellMission,
	"mission.drop": func(t *teller) style { t.add("mission %s is gone", t.take("mission")); return dim },
	"trigger.next": tellNext,
	"trigger.drop": func(t *teller) style { t.trigger(); t.add("waits no longer"); return dim },
	"trigger.fire": tellFire,
	"event":        tellEvent,
}

func init() { maps.Copy(tellers, triggerTellers) }

// trigger says which one of which mission.
func (t *teller) trigger() { t.add("mission %s, %s", t.take("mission"), t.take("trigger")) }

// memory is what only the trigger itself needs.
func (t *teller) memory() {
	t.take("seen")
	t.take("stamp")
}

func tellMission(t *teller) style {
	t.add("mission %s can be started", t.take("mission"))
	t.some("%s", shortHash(t.take("hash")))
	t.some("from %s", t.take("file"))
	return dim
}

func tellNext(t *teller) style {
	t.trigger()
	t.some("%s", t.take("why"))
	if at := t.moment("at"); at != "" {
		t.add("next at %s", at)
	} else {
		t.add("waits")
	}
	t.memory()
	return dim
}

func tellFire(t *teller) style {
	t.trigger()
	t.some("%s", t.take("why"))
	tone, skipped := cyan, t.take("skipped")
	if skipped != "" {
		t.add("nothing started: %s", skipped)
		tone = yellow
	} else {
		t.some("started %s", t.event.Run)
	}
	t.some("file %s", t.take("path"))
	t.some("next at %s", t.moment("at"))
	t.memory()
	return tone
}

func tellEvent(t *teller) style {
	t.add("event %s", t.take("name"))
	t.some("%s", values(t.take("values")))
	t.by()
	return cyan
}
