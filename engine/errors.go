package engine

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrNotFound is returned when nothing has the id, or several share the prefix.
	ErrNotFound = errors.New("not found")
	// ErrConflict is returned when an id names other work already.
	ErrConflict = errors.New("conflict")
	// ErrInvalid is returned when a command breaks a rule; the text says which.
	ErrInvalid = errors.New("invalid")
	// ErrTooLarge is returned when a task's values pass task.MaxBytes.
	ErrTooLarge = errors.New("too large")
	// ErrDiskFull is returned for new work while the journal's disk has no room.
	ErrDiskFull = errors.New("disk full")
	// ErrStopping is returned for new work while the controller stops.
	ErrStopping = errors.New("controller is stopping")
	// ErrUnregistered is returned to a link that has not registered, or was replaced.
	ErrUnregistered = errors.New("executor is not registered")
	// ErrJournal ends Run: the journal could not be written, or does not fold.
	ErrJournal = errors.New("journal failed")
)

// SubmitError lists what is wrong with the specs of a Submit; none was queued.
type SubmitError struct{ Faults []SubmitFault }

// SubmitFault is one refused spec.
type SubmitFault struct {
	Index int // in Submit.Specs
	Err   error
}

func (e *SubmitError) Error() string {
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		lines[i] = f.Err.Error()
		if f.Index > 0 || len(e.Faults) > 1 {
			lines[i] = fmt.Sprintf("task %d: %s", f.Index+1, lines[i])
		}
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.Is see the first fault's kind.
func (e *SubmitError) Unwrap() error { return e.Faults[0].Err }
