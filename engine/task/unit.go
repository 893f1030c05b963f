package task

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Unit is a kind of work as the controller knows it: the contract and the
// settings that a manifest declares, without how it is run.
type Unit struct {
	Name       string // the tasks' type
	Retry      Retry
	Prepare    time.Duration // longest prepare step
	Timeout    time.Duration // longest execute step
	Cleanup    time.Duration // longest cleanup step
	Idempotent bool          // may be repeated once execute has begun
	Fresh      bool          // refuse a result whose pinned context has changed
	Context    []string      // state keys pinned at dispatch
	In, Out    []Rule        // sorted by name; nil Out: any output
	Version    int           // of the contract, as its author counts
	Traits
}

// Traits are what a unit says about itself that few units have to.
type Traits struct {
	Deps      []string  // units that a mission's node of this type waits for, if the mission says nothing
	Resources Resources // what an attempt needs of its host
	Resident  bool      // runs on and on: no time-out, restarted when it ends, its progress may change state
	Undo      bool      // has a way to take its effect back
	Varies    bool      // equal inputs may give other outputs: never called nondeterministic
}

// Retry says how often and when a failed attempt is repeated.
type Retry struct {
	Retries  int
	Interval time.Duration
	Backoff  float64 // factor from one wait to the next; up to 1: constant
	Jitter   float64 // share of the wait that is drawn at random; 0.1 = up to 10 % more
}

// Wait is the pause before repeat n (1 for the first); draw is a random number
// in [0,1).
func (r Retry) Wait(n int, draw float64) time.Duration {
	wait := float64(r.Interval)
	for i := 1; i < n && wait < float64(longestWait) && r.Backoff > 1; i++ {
		wait *= r.Backoff
	}
	return time.Duration(min(wait*(1+r.Jitter*draw), float64(longestWait)))
}

// longestWait bounds the pause between two attempts, however it grew.
const longestWait = 24 * time.Hour

// MaxRetries bounds a count of retries.
const MaxRetries = 1000

// LongestStep bounds every time-out, so that sums of some stay numbers.
const LongestStep = 10_000 * time.Hour

// checkNumbers refuses settings that no arithmetic could hold: a unit comes from
// a manifest, or over the wire from an executor that read one.
func (u *Unit) checkNumbers() error {
	var faults []error
	within := func(name string, ok bool, want string) {
		if !ok {
			faults = append(faults, fmt.Errorf("%s: want %s", name, want))
		}
	}
	r := u.Retry
	within("retries", r.Retries >= 0 && r.Retries <= MaxRetries, fmt.Sprint("0 to ", MaxRetries))
	within("backoff", r.Backoff >= 0 && r.Backoff <= 100, "1 to 100")
	within("jitter", r.Jitter >= 0 && r.Jitter <= 1, "0 to 1")
	for name, d := range map[string]time.Duration{
		"retry_interval": r.Interval, "prepare": u.Prepare, "timeout": u.Timeout, "cleanup": u.Cleanup,
	} {
		within(name, d >= 0 && d <= LongestStep, "0 to "+LongestStep.String())
	}
	faults = append(faults, u.Resources.check())
	return errors.Join(faults...)
}

// ReadyRules holds a unit's settings and rules against what they may be, sorts
// rules and context keys and compiles the rules; it reports every fault it finds.
func (u *Unit) ReadyRules() error {
	faults := []error{u.checkNumbers()}
	slices.Sort(u.Context)
	u.Context = slices.Compact(u.Context)
	for _, key := range u.Context {
		if err := CheckKey(key); err != nil {
			faults = append(faults, fmt.Errorf("context %w", err))
		}
	}
	for side, rules := range map[string][]Rule{"in": u.In, "out": u.Out} {
		slices.SortFunc(rules, func(a, b Rule) int { return strings.Compare(a.Name, b.Name) })
		for i := range rules {
			if err := rules[i].Prepare(); err != nil {
				faults = append(faults, fmt.Errorf("%s.%w", side, err))
			}
			if i > 0 && rules[i].Name == rules[i-1].Name {
				faults = append(faults, fmt.Errorf("%s.%s is declared twice", side, rules[i].Name))
			}
			if Reserved(rules[i].Name) {
				faults = append(faults, fmt.Errorf("%s.%s: the name belongs to the protocol", side, rules[i].Name))
			}
		}
	}
	return errors.Join(faults...)
}

// CheckInputs holds inputs against the contract and returns them with the
// defaults filled in. Only declared inputs are taken.
func (u *Unit) CheckInputs(in Values) (Values, error) {
	return checkSide("input", u.In, in)
}

// CheckOutputs is CheckInputs for a result, but a unit that declares no output
// at all allows any.
func (u *Unit) CheckOutputs(out Values) (Values, error) {
	if len(u.Out) == 0 {
		return out, nil
	}
	return checkSide("output", u.Out, out)
}

func checkSide(side string, rules []Rule, values Values) (Values, error) {
	var faults []error
	full := values
	for i := range rules {
		value, given := values.Get(rules[i].Name)
		switch {
		case given:
			if err := rules[i].Check(value); err != nil {
				faults = append(faults, fmt.Errorf("%s %w", side, err))
			}
		case rules[i].HasDefault:
			full = append(slices.Clip(full), Value{rules[i].Name, rules[i].Default})
		case rules[i].Required:
			faults = append(faults, fmt.Errorf("%s %s is missing", side, rules[i].Name))
		}
	}
	for _, v := range values {
		if !slices.ContainsFunc(rules, func(r Rule) bool { return r.Name == v.Name }) {
			faults = append(faults, fmt.Errorf("%s %s is not declared%s", side, Printable(v.Name), near(v.Name, rules)))
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	if len(full) == len(values) {
		return values, nil // in order as they came
	}
	return NewValues(full)
}

func near(name string, rules []Rule) string {
	names := make([]string, len(rules))
	for i := range rules {
		names[i] = rules[i].Name
	}
	if best := Nearest(name, names); best != "" {
		return fmt.Sprintf(": did you mean %s?", best)
	}
	return ""
}

// reserved are the protocol's own keys: no input or output may be called so.
var reserved = []string{
	"type", "task_id", "version", "task_type", "attempt", "timeout_ms", "state_version",
	"status", "error", "executor_id", "task_types", "load", "token", "proto",
	"class", "exit", "signal", "truncated", "prepare_ms", "execute_ms", "cleanup_ms", "code", "reason",
}

var reservedPrefixes = []string{"set.", "add.", "max.", "min.", "del.", "in.", "out.", "ctx.", "s."}

// Reserved reports whether a name belongs to the protocol.
func Reserved(name string) bool {
	return slices.Contains(reserved, name) ||
		slices.ContainsFunc(reservedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}
