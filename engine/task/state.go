package task

import "fmt"

// State is where a task stands. The zero value, New, is a task that no record
// has placed yet; it is never shown and never stored.
type State uint8

const (
	New       State = iota
	Scheduled       // not before a time
	Blocked         // waits for other tasks
	Queued          // ready, waits for an executor
	Assigned        // sent to an executor, which has not said that it started
	Running         // an executor works on it
	Retrying        // failed, attempts left, waits its interval
	Succeeded       // terminal: its result is applied
	Dead            // terminal: will not be tried again without a person
	Cancelled       // terminal: by a person
	Aborted         // terminal: by the system, its run stopped
	Skipped         // terminal: condition false, or reused on resume
	states          // how many there are
)

var stateNames = [states]string{
	"new", "scheduled", "blocked", "queued", "assigned", "running", "retrying",
	"succeeded", "dead", "cancelled", "aborted", "skipped",
}

// States lists every state a task can be shown in, in the order of a task's life.
func States() []State {
	all := make([]State, 0, states-1)
	for s := Scheduled; s < states; s++ {
		all = append(all, s)
	}
	return all
}

func (s State) String() string {
	if s < states {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// ParseState is the inverse of String; new is not a state anybody may name.
func ParseState(text string) (State, error) {
	for s := Scheduled; s < states; s++ {
		if stateNames[s] == text {
			return s, nil
		}
	}
	return New, fmt.Errorf("unknown task state %q", text)
}

// Terminal reports whether only a person can move the task on.
func (s State) Terminal() bool { return s >= Succeeded && s < states }

// Out reports whether an executor holds the task.
func (s State) Out() bool { return s == Assigned || s == Running }

// transitions[from] has a bit for every state that may follow.
var transitions = [states]uint16{
	New:       bits(Scheduled, Blocked, Queued),
	Scheduled: bits(Queued, Dead, Cancelled, Aborted),
	Blocked:   bits(Queued, Skipped, Dead, Cancelled, Aborted),
	Queued:    bits(Assigned, Dead, Cancelled, Aborted),
	Assigned:  bits(Running, Succeeded, Retrying, Queued, Dead, Cancelled, Aborted),
	Running:   bits(Succeeded, Retrying, Queued, Dead, Cancelled, Aborted),
	Retrying:  bits(Queued, Dead, Cancelled, Aborted),
	Dead:      bits(Queued, Aborted),
	Cancelled: bits(Queued),
	Aborted:   bits(Queued),
}

func bits(to ...State) (b uint16) {
	for _, s := range to {
		b |= 1 << s
	}
	return b
}

// May reports whether the step from s to next is in the drawing.
func (s State) May(next State) bool {
	return s < states && next < states && transitions[s]&(1<<next) != 0
}
