package tui

import (
	"slices"
	"strings"
)

// action is what a key means.
type action uint8

const (
	none action = iota
	goMission
	goExecutors
	goQueue
	goDead
	goMissions
	goTimeline
	goState
	goLog
	nextPane
	lastView
	moveDown
	moveUp
	moveTop
	moveBottom
	pageDown
	pageUp
	paneLeft
	paneRight
	open
	back
	find
	runPalette
	help
	sortNext
	sortTurn
	markOne
	markRange
	markAll
	requeue
	edit
	drop
	cancel
	explain
	pause
	debug
	related
	copyID
	timeFormat
	nextTheme
	notices
	leave
	prevFailure
	nextFailure
	stepBack
	stepOn
	live
	everyRecord
	start
	resume
	compareRuns
	later // bound, and does nothing yet: the binding says why
)

// screenID is a screen's number, which is its key.
type screenID uint8

const (
	onMission screenID = iota + 1
	onExecutors
	onQueue
	onDead
	onMissions
	onTimeline
	onState
	onLog
	screens
)

var screenNames = [screens]string{"", "control", "executors", "queue", "dead", "missions", "timeline", "state", "log"}

func (s screenID) String() string {
	if s < screens {
		return screenNames[s]
	}
	return "unknown"
}

// binding is one line of the registry: the keys of an action, where it works,
// and the words for help, hints and palette.
type binding struct {
	keys   []string
	act    action
	short  string     // for the hints; empty: not among them
	long   string     // for the help
	on     []screenID // none: everywhere
	alters bool       // never from a burst of keys, never read-only
	why    string     // of later
}

var lists = []screenID{onExecutors, onQueue, onDead, onMissions, onTimeline, onState, onLog}

// registry is every key there is. Help, hints, palette and the README's table
// are made from it; the first binding of a key that fits the screen counts.
var registry = []binding{
	{keys: []string{"1"}, act: goMission, long: "mission control"},
	{keys: []string{"2"}, act: goExecutors, long: "executors"},
	{keys: []string{"3"}, act: goQueue, long: "queue"},
	{keys: []string{"4"}, act: goDead, long: "dead letters"},
	{keys: []string{"5"}, act: goMissions, long: "missions: their runs"},
	{keys: []string{"6"}, act: goTimeline, long: "timeline"},
	{keys: []string{"7"}, act: goState, long: "state"},
	{keys: []string{"8"}, act: goLog, long: "log"},
	{keys: []string{"tab"}, act: nextPane, long: "the next pane, or the next screen"},
	{keys: []string{"-"}, act: lastView, long: "the screen before"},
	{keys: []string{"j", "down"}, act: moveDown, long: "down"},
	{keys: []string{"k", "up"}, act: moveUp, long: "up"},
	{keys: []string{"g", "home"}, act: moveTop, long: "to the top"},
	{keys: []string{"G", "end"}, act: moveBottom, long: "to the end of what is loaded"},
	{keys: []string{"pgdown", "ctrl+f"}, act: pageDown, long: "a page down"},
	{keys: []string{"pgup", "ctrl+u"}, act: pageUp, long: "a page up"},
	{keys: []string{"h", "left"}, act: paneLeft, long: "to the list"},
	{keys: []string{"l", "right"}, act: paneRight, long: "to the detail, to scroll it"},
	{keys: []string{"enter"}, act: open, short: "open", long: "open what is under the cursor", on: lists},
	{keys: []string{"esc"}, act: back, long: "close, or take the filter away"},
	{keys: []string{"/"}, act: find, short: "filter", long: "filter: type:x state:dead error~text older:10m task:id run:id word !word; a state is that of a task, or of a run on missions", on: lists},
	{keys: []string{"s"}, act: sortNext, long: "sort by the next column", on: []screenID{onExecutors}},
	{keys: []string{"S"}, act: sortTurn, long: "turn the order", on: []screenID{onExecutors, onQueue, onDead}},
	{keys: []string{"m"}, act: start, short: "start", long: "start a mission, after its parameters", on: []screenID{onMission, onMissions}, alters: true},
	{keys: []string{"R"}, act: resume, short: "resume", long: "resume the run: what succeeded with unchanged inputs is not run again", on: []screenID{onMissions}, alters: true},
	{keys: []string{"c"}, act: cancel, short: "cancel", long: "cancel the run and all its tasks", on: []screenID{onMissions}, alters: true},
	{keys: []string{"D"}, act: compareRuns, short: "compare", long: "compare the two marked runs, or this one with the one that it goes on from, or that goes on from it", on: []screenID{onMissions}},
	{keys: []string{"space"}, act: markOne, short: "mark", long: "mark a row", on: []screenID{onQueue, onDead, onMissions}},
	{keys: []string{"v"}, act: markRange, long: "mark from here to the next v", on: []screenID{onQueue, onDead}},
	{keys: []string{"*"}, act: markAll, short: "all", long: "choose all that match the filter, loaded or not", on: []screenID{onQueue, onDead}},
	{keys: []string{"r"}, act: requeue, short: "requeue", long: "requeue one, the marked, or all that match; of a task of a run, the run is resumed", on: []screenID{onDead}, alters: true},
	{keys: []string{"e"}, act: edit, short: "edit", long: "edit the inputs of one; a dead letter is requeued with them", on: []screenID{onQueue, onDead}, alters: true},
	{keys: []string{"X"}, act: drop, short: "drop", long: "drop one, the marked, or all that match, for good; the history stays in the journal", on: []screenID{onDead}, alters: true},
	{keys: []string{"c"}, act: cancel, short: "cancel", long: "cancel one, the marked, or all that match", on: []screenID{onQueue}, alters: true},
	{keys: []string{"p"}, act: pause, short: "drain", long: "drain the executor", on: []screenID{onExecutors}, alters: true},
	{keys: []string{"p"}, act: pause, short: "pause", long: "pause or continue dispatch: of the type under the cursor in the types pane, else of everything",
		on: []screenID{onMission, onQueue}, alters: true},
	{keys: []string{"d"}, act: debug, short: "debug", long: "every message to the log, or not", alters: true},
	{keys: []string{"["}, act: prevFailure, long: "the failure before", on: []screenID{onTimeline}},
	{keys: []string{"]"}, act: nextFailure, short: "next failure", long: "the next failure", on: []screenID{onTimeline}},
	{keys: []string{","}, act: stepBack, long: "a record back", on: []screenID{onTimeline}},
	{keys: []string{"."}, act: stepOn, long: "a record on", on: []screenID{onTimeline}},
	{keys: []string{"a"}, act: everyRecord, long: "show all records, those that mark quiet too, or hide them", on: []screenID{onTimeline}},
	{keys: []string{"L"}, act: live, short: "live", long: "follow what happens", on: []screenID{onTimeline, onLog}},
	{keys: []string{"J"}, act: related, short: "task", long: "the task that belongs to it", on: []screenID{onExecutors, onTimeline, onState}},
	{keys: []string{"J"}, act: related, short: "run", long: "the run that the task is of", on: []screenID{onQueue, onDead}},
	{keys: []string{"J"}, act: related, short: "records", long: "what happened in the run, in the timeline", on: []screenID{onMissions}},
	{keys: []string{"i"}, act: explain, short: "explain", long: "explain why the task or the run stands where it does, and what can be done",
		on: []screenID{onExecutors, onQueue, onDead, onMissions, onTimeline, onState}},
	{keys: []string{"y"}, act: copyID, long: "copy the id to the clipboard", on: []screenID{onExecutors, onQueue, onDead, onMissions, onTimeline, onState}},
	{keys: []string{"t"}, act: timeFormat, long: "times as the clock has them, or as ages"},
	{keys: []string{"T"}, act: nextTheme, long: "the next theme: dark, light, mono, colour-blind"},
	{keys: []string{":"}, act: runPalette, long: "name what to do; a number, or a time such as 12:03, jumps in the timeline"},
	{keys: []string{"?"}, act: help, short: "help", long: "this help"},
	{keys: []string{"!"}, act: notices, long: "what was said at the bottom"},
	{keys: []string{"q", "ctrl+c"}, act: leave, short: "leave", long: "leave"},

	{keys: []string{"space"}, act: later, on: []screenID{onTimeline}, why: "playing the timeline like a film comes with a later version; , and . step through it"},
	{keys: []string{"<", ">"}, act: later, on: []screenID{onTimeline}, why: "there are no film speeds yet; , and . step through the timeline"},
	{keys: []string{"<", ">"}, act: later, why: "the columns have one order; s and S sort where a list can be sorted"},
	{keys: []string{"n", "N"}, act: later, why: "a filter leaves only what matches: j and k go through it"},
	{keys: []string{"f", "F"}, act: later, why: "lists follow what happens by themselves; they can't be frozen yet"},
	{keys: []string{"u"}, act: later, why: "nothing is taken back: what happened is in the journal. A requeued task that should not run is cancelled: 3, c"},
	{keys: []string{"ctrl+z", "ctrl+a", "ctrl+b", "~"}, act: later, why: "left to your terminal and its multiplexer"},
}

// bound finds what a key does on a screen. Where it does nothing, why says so.
func bound(at screenID, key string) (b *binding, why string) {
	var elsewhere []string
	for i := range registry {
		b := &registry[i]
		if !slices.Contains(b.keys, key) {
			continue
		}
		if b.act == later || b.why != "" {
			if b.here(at) {
				return nil, b.why
			}
			continue
		}
		if b.here(at) {
			return b, ""
		}
		for _, s := range b.on {
			elsewhere = append(elsewhere, s.String())
		}
	}
	if len(elsewhere) > 0 {
		return nil, clean(key) + " works on: " + strings.Join(elsewhere, ", ")
	}
	return nil, clean(key) + " is no key of the console; ? shows those there are"
}

func (b *binding) here(at screenID) bool { return len(b.on) == 0 || slices.Contains(b.on, at) }

// label is the keys of a binding as the help shows them.
func (b *binding) label() string { return strings.Join(b.keys, " ") }

// hints are the keys worth knowing on a screen, as many as fit; how to get help
// and how to leave are always among them.
func hints(at screenID, w int) string {
	const end = "? help · q leave"
	line := ""
	for i := range registry {
		b := &registry[i]
		if b.short == "" || !b.here(at) || b.act == help || b.act == leave {
			continue
		}
		if hint := b.keys[0] + " " + b.short + " · "; width(line)+width(hint)+len(end) <= w {
			line += hint
		}
	}
	return line + end
}

// helpLines are the help of a screen: its own keys first, then those that work
// everywhere, then what does nothing yet; wrapped to w columns.
func helpLines(at screenID, w int) []string {
	const keys = 16
	line := func(b *binding, text string) (lines []string) {
		for i, part := range wrap(text, max(1, w-keys-3)) {
			label := ""
			if i == 0 {
				label = b.label()
			}
			lines = append(lines, "  "+fit(label, keys)+" "+part)
		}
		return lines
	}
	own, all, not := []string{"on this screen"}, []string{"", "everywhere"}, []string{"", "not in this version"}
	for i := range registry {
		switch b := &registry[i]; {
		case b.why != "" && b.here(at):
			not = append(not, line(b, b.why)...)
		case b.why != "" || !b.here(at):
		case len(b.on) > 0:
			own = append(own, line(b, b.long)...)
		default:
			all = append(all, line(b, b.long)...)
		}
	}
	if len(own) == 1 {
		own, all = nil, all[1:]
	}
	return append(append(own, all...), not...)
}

// Keys is the registry as the README's table has it.
func Keys() string {
	var b strings.Builder
	b.WriteString("| keys | what they do | where |\n|---|---|---|\n")
	for i := range registry {
		if b2 := &registry[i]; b2.why == "" {
			where := "everywhere"
			if len(b2.on) > 0 {
				var names []string
				for _, s := range b2.on {
					names = append(names, s.String())
				}
				where = strings.Join(names, ", ")
			}
			b.WriteString("| `" + strings.Join(b2.keys, "` `") + "` | " + b2.long + " | " + where + " |\n")
		}
	}
	return b.String()
}
