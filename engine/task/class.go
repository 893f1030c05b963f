package task

import "fmt"

// Class says why an attempt did not succeed; it decides whether the task is
// repeated by itself.
type Class uint8

const (
	NoClass       Class = iota
	PrepareFailed       // the unit's prepare step failed: nothing was executed
	ExecuteFailed       // the unit ran and reported failure
	Timeout             // the attempt's deadline passed
	OutputInvalid       // the result breaks the unit's contract
	InputInvalid        // the inputs break the unit's contract
	StateRejected       // a state change breaks a key's contract
	CrashLimit          // executors died under it too often
	ByPerson            // cancelled by a person
	Expired             // its deadline passed before it started
	TooLarge            // inputs, outputs or changes over the limit
	ExecutorLost        // the executor went away while it had the task
	StaleContext        // a pinned key changed while a fresh unit ran
	classes
)

var classNames = [classes]string{
	"", "prepare_failed", "execute_failed", "timeout", "output_invalid",
	"input_invalid", "state_rejected", "crash_limit", "cancelled", "expired",
	"too_large", "executor_lost", "stale_context",
}

func (c Class) String() string {
	if c < classes {
		return classNames[c]
	}
	return fmt.Sprintf("class(%d)", uint8(c))
}

// ParseClass is the inverse of String; the empty text is NoClass.
func ParseClass(text string) (Class, error) {
	for c := NoClass; c < classes; c++ {
		if classNames[c] == text {
			return c, nil
		}
	}
	return NoClass, fmt.Errorf("unknown error class %q", text)
}

// UsesRetry reports whether the class repeats by itself within the task's retries.
func (c Class) UsesRetry() bool {
	switch c {
	case PrepareFailed, ExecuteFailed, Timeout, OutputInvalid:
		return true
	}
	return false
}
