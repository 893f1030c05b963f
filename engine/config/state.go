package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"apollo11/engine/task"
)

// StateKey is the contract of one key of the global state, a [state.KEY] table.
type StateKey struct {
	task.Rule         // Name is the key; prepared
	From      string  // output that changes the key; empty: only changes that name it
	Apply     task.Op // how that output changes it
}

// systemPrefix is of the keys that the controller keeps itself.
const systemPrefix = "sys."

// stateFields are the lines that a [state.KEY] table may have.
var stateFields = []string{
	"type", "from", "apply", "min", "max", "min_length", "max_length",
	"enum", "pattern", "required", "default", "description",
}

// stateKeys reads the [state.KEY] tables; one of a later file replaces the
// whole of an earlier one.
func (l *loader) stateKeys(file string, md toml.MetaData, tables []node) {
	for _, n := range tables {
		name := "state." + task.Printable(n.name)
		if n.under == nil {
			l.fault(at(file, n.line), name, "want a section [state.KEY], found "+kindOf(n.value))
			continue
		}
		k := StateKey{Rule: task.Rule{Name: n.name}}
		before := len(l.faults)
		for _, field := range nodes(md, n.under) {
			if err := k.field(field); err != nil {
				l.fault(at(file, field.line), name+"."+task.Printable(field.name), err.Error())
			}
		}
		if len(l.faults) > before {
			continue // the rule as a whole cannot be judged
		}
		if err := k.prepare(); err != nil {
			l.fault(at(file, n.line), name, err.Error())
			continue
		}
		l.state[n.name] = k
	}
}

// field takes one line of the table.
func (k *StateKey) field(n node) (err error) {
	switch n.name {
	case "type":
		k.Kind, err = parseText(n.value, task.ParseKind)
		if err == nil && k.Kind == task.Path {
			err = errors.New("a path is no state: want string, int, float, bool or time")
		}
	case "from":
		k.From, err = parseText(n.value, keyName)
	case "apply":
		k.Apply, err = parseText(n.value, parseApply)
	case "min":
		k.Min, err = scalar(n.value)
	case "max":
		k.Max, err = scalar(n.value)
	case "min_length":
		k.MinLength, err = length(n.value)
	case "max_length":
		k.MaxLength, err = length(n.value)
	case "enum":
		k.Enum, err = scalars(n.value)
	case "pattern":
		k.Pattern, err = parseText(n.value, anyText)
	case "required":
		err = boolean("", &k.Required).takeTOML(n.value)
	case "default":
		k.Default, err = scalar(n.value)
		k.HasDefault = true
	case "description":
		k.Description, err = parseText(n.value, anyText)
	default:
		err = unknownField(n)
	}
	return err
}

func unknownField(n node) error {
	if n.under != nil {
		return errors.New(`a key with dots is written in quotes: [state."a.b"]`)
	}
	return errors.New("unknown key" + meant(task.Nearest(n.name, stateFields)))
}

// takeTOML sets a setting that is no Config field from its TOML value.
func (s setting) takeTOML(v any) error {
	text, ok := s.toml(v)
	if !ok {
		return errors.New("want " + s.want + ", found " + kindOf(v))
	}
	if err := s.set(text); err != nil {
		return fmt.Errorf("%s: %w", quoted(text), err)
	}
	return nil
}

// prepare checks the contract as a whole.
func (k *StateKey) prepare() error {
	if strings.HasPrefix(k.Name, systemPrefix) {
		return fmt.Errorf("keys that begin with %s belong to the controller", systemPrefix)
	}
	if err := k.Rule.Prepare(); err != nil {
		return err
	}
	switch {
	case k.Apply != task.Set && k.From == "":
		return fmt.Errorf("apply = %q needs from, the output that it applies", k.Apply)
	case k.Apply == task.Add && k.Kind != task.Int && k.Kind != task.Float:
		return fmt.Errorf("a %s cannot be added: want type int or float", k.Kind)
	case (k.Apply == task.Max || k.Apply == task.Min) && (k.Kind == task.String || k.Kind == task.Bool):
		return fmt.Errorf("a %s has no %s: want type int, float or time", k.Kind, k.Apply)
	}
	for _, word := range k.Enum {
		if err := k.Kind.Check(word); err != nil {
			return fmt.Errorf("enum: %s: %w", quoted(word), err)
		}
	}
	return nil
}

// values is the contract's part of the text that is hashed.
func (k *StateKey) values() []task.Value {
	fields := []task.Value{
		{Name: "type", Value: k.Kind.String()},
		{Name: "from", Value: k.From},
		{Name: "apply", Value: k.Apply.String()},
		{Name: "min", Value: k.Min},
		{Name: "max", Value: k.Max},
		{Name: "min_length", Value: strconv.Itoa(k.MinLength)},
		{Name: "max_length", Value: strconv.Itoa(k.MaxLength)},
		{Name: "pattern", Value: k.Pattern},
		{Name: "required", Value: strconv.FormatBool(k.Required)},
		{Name: "has_default", Value: strconv.FormatBool(k.HasDefault)},
		{Name: "default", Value: k.Default},
		{Name: "description", Value: k.Description},
	}
	for i, word := range k.Enum {
		fields = append(fields, task.Value{Name: fmt.Sprintf("enum.%04d", i), Value: word})
	}
	for i := range fields {
		fields[i].Name = "state." + k.Name + ":" + fields[i].Name
	}
	return fields
}

func parseText[T any](v any, parse func(string) (T, error)) (T, error) {
	text, ok := v.(string)
	if !ok {
		var zero T
		return zero, errors.New("want a text in quotes, found " + kindOf(v))
	}
	return parse(text)
}

func anyText(s string) (string, error) { return s, nil }

func keyName(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	if task.Reserved(s) {
		return "", fmt.Errorf("%q belongs to the protocol and is no output", s)
	}
	return s, task.CheckKey(s)
}

func parseApply(s string) (task.Op, error) {
	op, err := task.ParseOp(s)
	if err != nil || op == task.Del {
		return task.Set, fmt.Errorf("%s: want set, add, max or min", quoted(s))
	}
	return op, nil
}

func length(v any) (int, error) {
	var n int
	err := count("", &n, 0, task.MaxBytes).takeTOML(v)
	return n, err
}

// scalar is a bound or a default as text; TOML may write it in its own type.
func scalar(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case time.Time:
		return v.Format(time.RFC3339Nano), nil
	}
	if text, ok := asNumber(v); ok {
		return text, nil
	}
	return "", errors.New("want one value, found " + kindOf(v))
}

func scalars(v any) ([]string, error) {
	items, ok := v.([]any)
	if !ok {
		return nil, errors.New("want a list, found " + kindOf(v))
	}
	words := make([]string, len(items))
	for i, item := range items {
		var err error
		if words[i], err = scalar(item); err != nil {
			return nil, err
		}
	}
	return words, nil
}
