package task

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Kind is the type of a value under contract. The zero value is String.
type Kind uint8

const (
	String Kind = iota
	Int         // 64-bit signed
	Float       // finite
	Bool        // true or false
	Time        // RFC 3339
	Path        // a file handed on
	kinds
)

var kindNames = [kinds]string{"string", "int", "float", "bool", "time", "path"}

func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// ParseKind is the inverse of String.
func ParseKind(text string) (Kind, error) {
	for k := String; k < kinds; k++ {
		if kindNames[k] == text {
			return k, nil
		}
	}
	return String, fmt.Errorf("unknown type %q: want %s", Printable(text), strings.Join(kindNames[:], ", "))
}

// Rule is the contract of one input, output or state key.
type Rule struct {
	Name        string
	Kind        Kind
	Required    bool
	HasDefault  bool
	Default     string
	Min, Max    string // bounds of an int, float or time; empty: none
	MinLength   int    // characters; 0: none
	MaxLength   int    // characters; 0: none
	Enum        []string
	Pattern     string // a regular expression the value must contain a match of
	Description string

	pattern *regexp.Regexp // compiled by Prepare
}

// Prepare checks the rule itself and compiles it; Check works only after it.
func (r *Rule) Prepare() error {
	if err := CheckKey(r.Name); err != nil {
		return err
	}
	if r.Pattern != "" {
		re, err := regexp.Compile(r.Pattern)
		if err != nil {
			return fmt.Errorf("%s: pattern: %w", r.Name, err)
		}
		r.pattern = re
	}
	for bound, value := range map[string]string{"min": r.Min, "max": r.Max} {
		if value == "" {
			continue
		}
		if r.Kind != Int && r.Kind != Float && r.Kind != Time {
			return fmt.Errorf("%s: %s has no meaning for a %s", r.Name, bound, r.Kind)
		}
		if err := r.Kind.Check(value); err != nil {
			return fmt.Errorf("%s: %s: %w", r.Name, bound, err)
		}
	}
	if r.MinLength < 0 || r.MaxLength < 0 || r.MaxLength > 0 && r.MinLength > r.MaxLength {
		return fmt.Errorf("%s: lengths %d to %d leave no value", r.Name, r.MinLength, r.MaxLength)
	}
	if r.Min != "" && r.Max != "" && r.Kind.compare(r.Min, r.Max) > 0 {
		return fmt.Errorf("%s: min %s is above max %s", r.Name, r.Min, r.Max)
	}
	if r.HasDefault {
		if err := r.Check(r.Default); err != nil {
			return fmt.Errorf("default: %w", err)
		}
	}
	return nil
}

// Check says what is wrong with a value, in words a person can act on.
func (r *Rule) Check(value string) error {
	err := r.check(value)
	if err != nil {
		return fmt.Errorf("%s = %s: %w", r.Name, short(value), err)
	}
	return nil
}

func (r *Rule) check(value string) error {
	if err := r.Kind.Check(value); err != nil {
		return err
	}
	if r.Kind == Path { // of a file that is handed on, the rules mean its name
		f, handed, err := ParseFile(value)
		if err != nil {
			return err
		}
		if handed {
			value = f.Within()
		}
	}
	n := utf8.RuneCountInString(value)
	switch {
	case r.Min != "" && r.Kind.compare(value, r.Min) < 0:
		return fmt.Errorf("below the minimum %s", r.Min)
	case r.Max != "" && r.Kind.compare(value, r.Max) > 0:
		return fmt.Errorf("above the maximum %s", r.Max)
	case n < r.MinLength:
		return fmt.Errorf("%d characters, want at least %d", n, r.MinLength)
	case r.MaxLength > 0 && n > r.MaxLength:
		return fmt.Errorf("%d characters, want at most %d", n, r.MaxLength)
	case len(r.Enum) > 0 && !slices.Contains(r.Enum, value):
		return fmt.Errorf("want one of %s", strings.Join(r.Enum, ", "))
	case r.pattern != nil && !r.pattern.MatchString(value):
		return fmt.Errorf("does not match %s", r.Pattern)
	}
	return nil
}

var errNotFinite = errors.New("not a finite number")

// Check refuses a text that is not of the kind.
func (k Kind) Check(value string) error {
	switch k {
	case Int:
		if _, err := strconv.ParseInt(value, 10, 64); err != nil {
			return errors.New("not a whole number of 64 bits")
		}
	case Float:
		f, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return errNotFinite
		}
	case Bool:
		if value != "true" && value != "false" {
			return errors.New("want true or false")
		}
	case Time:
		if _, err := time.Parse(time.RFC3339Nano, value); err != nil {
			return errors.New("not an RFC 3339 time, such as 2026-01-31T08:00:00Z")
		}
	}
	return nil
}

// compare orders two values that have passed Check.
func (k Kind) compare(a, b string) int {
	switch k {
	case Int:
		x, _ := strconv.ParseInt(a, 10, 64)
		y, _ := strconv.ParseInt(b, 10, 64)
		return compareOrdered(x, y)
	case Float:
		x, _ := strconv.ParseFloat(a, 64)
		y, _ := strconv.ParseFloat(b, 64)
		return compareOrdered(x, y)
	case Time:
		x, _ := time.Parse(time.RFC3339Nano, a)
		y, _ := time.Parse(time.RFC3339Nano, b)
		return x.Compare(y)
	}
	return strings.Compare(a, b)
}

func compareOrdered[T int64 | float64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// short quotes a value for a message, cut where it gets long.
func short(value string) string {
	const most = 60
	if len(value) > most {
		return strconv.Quote(value[:most]) + fmt.Sprintf(" (%d bytes)", len(value))
	}
	return strconv.Quote(value)
}
