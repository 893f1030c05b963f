package task

import (
	"fmt"
	"time"
)

// Status is how an attempt ended, in the executor's eyes.
type Status uint8

const (
	Failed Status = iota
	Success
	Stopped // ended because the controller asked for it
)

func (s Status) String() string {
	switch s {
	case Success:
		return "success"
	case Stopped:
		return "cancelled"
	}
	return "failed"
}

// Outcome is what an executor answers for an assignment. Journal, wire and
// executor carry it as it is.
type Outcome struct {
	Task      string
	Version   Version // zero: the executor did not say, so what it was last sent
	Status    Status
	Class     Class // NoClass: execute_failed if it failed
	Error     string
	Outputs   Values
	Changes   []Change
	Timing    Timing
	Exit      int    // the process's exit code; -1: none
	Signal    string // the signal that ended it; empty: none
	Truncated bool   // its printed output was cut at the cap
	UnitHash  string // of what ran: manifest, program, image; empty: not known
}

// Timing is where an attempt's time went.
type Timing struct{ Prepare, Execute, Cleanup time.Duration }

// Total is the whole attempt on the executor.
func (t Timing) Total() time.Duration { return t.Prepare + t.Execute + t.Cleanup }

// Op is how a change treats a state key.
type Op uint8

const (
	Set Op = iota
	Add
	Max
	Min
	Del
	ops
)

var opNames = [ops]string{"set", "add", "max", "min", "del"}

func (o Op) String() string {
	if o < ops {
		return opNames[o]
	}
	return fmt.Sprintf("op(%d)", uint8(o))
}

// ParseOp is the inverse of String.
func ParseOp(text string) (Op, error) {
	for o := Set; o < ops; o++ {
		if opNames[o] == text {
			return o, nil
		}
	}
	return Set, fmt.Errorf("unknown state operation %q: want set, add, max, min or del", Printable(text))
}

// Change is one asked change of the global state; Value is empty for Del.
type Change struct {
	Op    Op
	Key   string
	Value string
}
