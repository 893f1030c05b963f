package mission

import (
	"fmt"
	"strings"
	"time"

	"apollo11/engine/task"
)

// Mission is what a file asks for. Parse makes it.
type Mission struct {
	Name      string
	OnFailure OnFailure
	Template  bool        // started by a person with parameters, never by a trigger
	Params    []task.Rule // by name, prepared; without a default: has to be given
	Units     []Unit      // in the file's order
	Triggers  []Trigger

	index  map[string]int // of the units, by name
	source source
}

// Find is the index of a unit, -1 if there is none of that name.
func (m *Mission) Find(unit string) int {
	if i, ok := m.index[unit]; ok {
		return i
	}
	return -1
}

// Unit is one node: a task that is made of a unit's type, and what it waits for.
type Unit struct {
	Name          string
	Uses          string        // the unit's type
	Deps          []string      // waits for their success
	Weak          []string      // may run beside them
	When          string        // condition; empty: always
	Expect        string        // condition over the outputs; empty: none
	Timeout       time.Duration // 0: the manifest's
	Retries       int           // task.Unset: the manifest's
	RetryInterval time.Duration // Inherit: the manifest's
	With          task.Values   // inputs, with references
	Offer         task.Values   // inputs that only count if the contract names them
}

// Inherit is a retry interval that the mission leaves to the manifest.
const Inherit = time.Duration(-1)

// OnFailure is what a failed unit does to the rest of the mission.
type OnFailure uint8

const (
	Stop     OnFailure = iota // nothing new starts
	Continue                  // what does not depend on the failure goes on
)

// String is the word in the file.
func (o OnFailure) String() string { return word(onFailures, o) }

// Trigger starts the mission by itself.
type Trigger struct {
	Kind     TriggerKind
	What     string // the time table, mission, event, file or key; empty for Start
	Timezone string // of Cron; empty: the controller's
	CatchUp  CatchUp
	Overlap  Overlap
}

// String is the trigger in words: "cron 0 2 * * * Europe/Berlin".
func (t *Trigger) String() string {
	words := t.Kind.String()
	for _, word := range []string{t.What, t.Timezone} {
		if word != "" {
			words += " " + word
		}
	}
	return words
}

// FileParam is the parameter that a file trigger gives the file's path.
const FileParam = "file"

// TriggerKind is what a trigger waits for.
type TriggerKind uint8

const (
	Cron  TriggerKind = iota // a time table
	After                    // another mission's success
	Event                    // an event by name
	File                     // a file that appears
	State                    // a change of a state key by somebody else
	Start                    // the controller's start
)

// String is the word in the file.
func (k TriggerKind) String() string { return word(triggerKinds, k) }

// overlap is what a trigger of the kind does when it does not say: a file or an
// event brings something of its own that would be lost, a time comes again.
func (k TriggerKind) overlap() Overlap {
	if k == File || k == Event {
		return Queue
	}
	return Skip
}

// CatchUp is what happens to the times that Cron missed.
type CatchUp uint8

const (
	CatchNone CatchUp = iota
	CatchOne          // one run for all of them
	CatchAll          // a run for each
)

// String is the word in the file.
func (c CatchUp) String() string { return word(catchUps, c) }

// Overlap is what happens when a run of the mission is still on.
type Overlap uint8

const (
	Skip  Overlap = iota // this start is left out
	Queue                // it waits
	Allow                // both run
)

// String is the word in the file.
func (o Overlap) String() string { return word(overlaps, o) }

// The words of the file, by value.
var (
	onFailures   = []string{Stop: "stop", Continue: "continue"}
	triggerKinds = []string{Cron: "cron", After: "after", Event: "event", File: "file", State: "state", Start: "start"}
	catchUps     = []string{CatchNone: "none", CatchOne: "one", CatchAll: "all"}
	overlaps     = []string{Skip: "skip", Queue: "queue", Allow: "allow"}
)

func word[T ~uint8](words []string, v T) string {
	if int(v) < len(words) {
		return words[v]
	}
	return fmt.Sprintf("%T(%d)", v, uint8(v))
}

// Fault is one thing wrong with a mission.
type Fault struct {
	File    string
	Line    int // from 1; 0: the mission as a whole
	Column  int // in characters, from 1; 0: the whole line
	Problem string
}

func (f Fault) Error() string {
	where := task.Printable(f.File)
	if f.Line > 0 {
		where += fmt.Sprintf(":%d", f.Line)
	}
	if f.Column > 0 {
		where += fmt.Sprintf(":%d", f.Column)
	}
	return where + ": " + task.Printable(f.Problem)
}

// Faults are all that was found, by place.
type Faults []Fault

func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].Error()
	}
	return strings.Join(lines, "\n")
}
