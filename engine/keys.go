package engine

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"apollo11/engine/task"
)

// KeyRule is the contract of one key of the global state.
type KeyRule struct {
	task.Rule
	From  string  // a result's output of this name updates the key; empty: none does
	Apply task.Op // how
}

// overlay is the global state with a result's changes on top, not yet made.
type overlay struct {
	m       *machine
	changed map[string]*string // nil value: deleted
	order   []string
}

// resolve works out what a result would make of the global state: the resolved
// values of the keys that really change, and the keys that go. It changes nothing.
func (m *machine) resolve(outputs task.Values, changes []task.Change) (set task.Values, del []string, err error) {
	o := overlay{m: m}
	for i := range m.set.Keys {
		rule := &m.set.Keys[i]
		if value, ok := outputs.Get(rule.From); ok && rule.From != "" {
			if err := o.apply(task.Change{Op: rule.Apply, Key: rule.Name, Value: value}); err != nil {
				return nil, nil, err
			}
		}
	}
	for _, c := range changes {
		if err := o.apply(c); err != nil {
			return nil, nil, err
		}
	}
	for _, key := range o.order {
		value, now := o.changed[key], m.keys[key]
		switch {
		case value == nil && now != nil:
			del = append(del, key)
		case value != nil && (now == nil || now.value != *value):
			set = append(set, task.Value{Name: key, Value: *value})
		}
	}
	if len(set) > 1 {
		set, err = task.NewValues(set)
	}
	slices.Sort(del)
	return set, del, err
}

// apply makes one change on top.
func (o *overlay) apply(c task.Change) error {
	rule, err := o.m.allowed(c.Key)
	if err != nil {
		return err
	}
	if c.Op == task.Del {
		if rule != nil && rule.Required {
			return fmt.Errorf("state key %s is required: it can't be deleted", c.Key)
		}
		o.put(c.Key, nil)
		return nil
	}
	value, err := o.combine(rule, c)
	if err != nil {
		return fmt.Errorf("state key %s: %w", c.Key, err)
	}
	if rule != nil {
		if err := rule.Check(value); err != nil {
			return fmt.Errorf("state key %w", err)
		}
	}
	o.put(c.Key, &value)
	return nil
}

func (o *overlay) put(key string, value *string) {
	if o.changed == nil {
		o.changed = map[string]*string{}
	}
	if _, seen := o.changed[key]; !seen {
		o.order = append(o.order, key)
	}
	o.changed[key] = value
}

// value is what a key holds with the changes so far.
func (o *overlay) value(key string) (string, bool) {
	if v, ok := o.changed[key]; ok {
		if v == nil {
			return "", false
		}
		return *v, true
	}
	if k := o.m.keys[key]; k != nil {
		return k.value, true
	}
	return "", false
}

// combine is the key's new value under the change's operation.
func (o *overlay) combine(rule *KeyRule, c task.Change) (string, error) {
	now, there := o.value(c.Key)
	if !there && rule != nil && rule.HasDefault {
		now, there = rule.Default, true
	}
	switch {
	case c.Op == task.Set:
		return c.Value, nil
	case rule != nil && rule.Kind == task.Time && c.Op != task.Add:
		return combineTimes(c, now, there)
	case isInt(c.Value) && (!there || isInt(now)) && (rule == nil || rule.Kind == task.Int):
		return combineInts(c, now, there)
	case rule != nil && rule.Kind != task.Float:
		return "", fmt.Errorf("%s %q to %q: not numbers of type %s", c.Op, c.Value, now, rule.Kind)
	}
	return combineFloats(c, now, there)
}

func isInt(s string) bool { return task.Int.Check(s) == nil }

func combineInts(c task.Change, now string, there bool) (string, error) {
	x, err := strconv.ParseInt(c.Value, 10, 64)
	if err != nil {
		return "", err
	}
	if there {
		y, err := strconv.ParseInt(now, 10, 64)
		if err != nil {
			return "", err
		}
		switch c.Op {
		case task.Add:
			if x > 0 && y > math.MaxInt64-x || x < 0 && y < math.MinInt64-x {
				return "", fmt.Errorf("%d + %d overflows 64 bits", y, x)
			}
			x += y
		case task.Max:
			x = max(x, y)
		case task.Min:
			x = min(x, y)
		}
	}
	return strconv.FormatInt(x, 10), nil
}

// combineTimes keeps the later or the earlier of two moments.
func combineTimes(c task.Change, now string, there bool) (string, error) {
	x, err := time.Parse(time.RFC3339Nano, c.Value)
	if err != nil || !there {
		return c.Value, err
	}
	y, err := time.Parse(time.RFC3339Nano, now)
	if err != nil {
		return "", err
	}
	if x.After(y) == (c.Op == task.Max) {
		return c.Value, nil
	}
	return now, nil
}

func combineFloats(c task.Change, now string, there bool) (string, error) {
	if err := task.Float.Check(c.Value); err != nil {
		return "", fmt.Errorf("%s %q: %w", c.Op, c.Value, err)
	}
	x, err := strconv.ParseFloat(c.Value, 64)
	if err != nil {
		return "", err
	}
	if there {
		if err := task.Float.Check(now); err != nil {
			return "", fmt.Errorf("%s to %q: %w", c.Op, now, err)
		}
		y, err := strconv.ParseFloat(now, 64)
		if err != nil {
			return "", err
		}
		switch c.Op {
		case task.Add:
			x += y
		case task.Max:
			x = max(x, y)
		case task.Min:
			x = min(x, y)
		}
	}
	if math.IsInf(x, 0) {
		return "", fmt.Errorf("%s %q to %q: not a finite number", c.Op, c.Value, now)
	}
	return strconv.FormatFloat(x, 'g', -1, 64), nil
}

// allowed is the contract of a key that a result or a person wants to change.
func (m *machine) allowed(key string) (*KeyRule, error) {
	if err := task.CheckKey(key); err != nil {
		return nil, fmt.Errorf("state %w", err)
	}
	if strings.HasPrefix(key, sysPrefix) {
		return nil, fmt.Errorf("state key %s belongs to the controller", key)
	}
	if rule := m.keyRule(key); rule != nil {
		return rule, nil
	}
	if !m.set.Undeclared {
		return nil, fmt.Errorf("state key %s is not declared, and engine.undeclared_state is false", key)
	}
	return nil, nil
}

func (m *machine) keyRule(key string) *KeyRule {
	for i := range m.set.Keys {
		if m.set.Keys[i].Name == key {
			return &m.set.Keys[i]
		}
	}
	return nil
}
