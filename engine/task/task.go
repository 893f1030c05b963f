package task

import (
	"fmt"
	"time"
)

// MaxBytes bounds a task's inputs, and its outputs and state changes, together.
const MaxBytes = 128 << 10

// Spec is what somebody asked to be done.
type Spec struct {
	ID        string // names the work; empty: the controller gives one
	Key       string // names the work too, within its type; empty: none
	Type      string
	Inputs    Values
	NotBefore time.Time     // zero: at once
	Deadline  time.Time     // start by then or expire; zero: none
	Retries   int           // Unset: the unit's
	Timeout   time.Duration // zero: the unit's
}

// Unset is a count that nobody gave.
const Unset = -1

// CheckType refuses what is not a task type: 1 to 64 of A-Z a-z 0-9 _ . -
func CheckType(name string) error {
	if name == "" || len(name) > 64 || !all(name, typeByte) {
		return fmt.Errorf("task type %q: want 1 to 64 of A-Z a-z 0-9 _ . -", Printable(name))
	}
	return nil
}

// CheckID refuses what is not a task id or an idempotency key: 1 to 128 of
// A-Z a-z 0-9 _ . : -
func CheckID(id string) error {
	if id == "" || len(id) > 128 || !all(id, idByte) {
		return fmt.Errorf("id %q: want 1 to 128 of A-Z a-z 0-9 _ . : -", Printable(id))
	}
	return nil
}

// CheckName refuses what is not a unit, mission or run name: these become file
// names, so [a-z0-9][a-z0-9_.-]{0,63} without "..".
func CheckName(name string) error {
	ok := name != "" && len(name) <= 64 && all(name, nameByte) && name[0] != '.' && name[0] != '_' && name[0] != '-'
	for i := 1; ok && i < len(name); i++ {
		ok = name[i] != '.' || name[i-1] != '.'
	}
	if !ok {
		return fmt.Errorf("name %q: want [a-z0-9][a-z0-9_.-]{0,63}, no two dots in a row", Printable(name))
	}
	return nil
}

// CheckKey refuses what is not a key of a message, an input, an output or the
// global state: 1 to 128 of A-Z a-z 0-9 _ . -
func CheckKey(name string) error {
	if name == "" || len(name) > 128 || !all(name, typeByte) {
		return fmt.Errorf("key %q: want 1 to 128 of A-Z a-z 0-9 _ . -", Printable(name))
	}
	return nil
}

func all(s string, ok func(byte) bool) bool {
	for i := 0; i < len(s); i++ {
		if !ok(s[i]) {
			return false
		}
	}
	return true
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == '-'
}

func typeByte(c byte) bool { return nameByte(c) || c >= 'A' && c <= 'Z' }

func idByte(c byte) bool { return typeByte(c) || c == ':' }
