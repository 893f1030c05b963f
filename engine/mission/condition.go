package mission

import (
	"fmt"

	"apollo11/engine/task"
)

// Conditions are a unit's, compiled; nil: it has none.
type Conditions struct{ When, Expect *Expression }

// Conditions compiles those of every unit, of a mission that has passed Check
// with these contracts.
func (m *Mission) Conditions(c Contracts) ([]Conditions, error) {
	k := newChecker(m, c)
	list := make([]Conditions, len(m.Units))
	for i := range m.Units {
		list[i] = k.conditions(i, k.contracts[m.Units[i].Uses])
	}
	if len(k.faults) > 0 {
		return nil, sorted(k.faults)
	}
	return list, nil
}

// conditions checks and compiles a unit's.
func (k *checker) conditions(i int, contract *task.Unit) (c Conditions) {
	u := &k.m.Units[i]
	var err error
	if u.When != "" {
		if c.When, err = compile(u.When, nil, k.looker(i)); err != nil {
			k.at(i, "when")("%s", err)
		}
	}
	if u.Expect != "" && contract != nil {
		if c.Expect, err = compile(u.Expect, contract.Out, k.looker(i)); err != nil {
			k.at(i, "expect")("%s", err)
		}
	}
	return c
}

// looker finds the kinds of the names in a unit's conditions.
func (k *checker) looker(i int) func(*operand) error {
	return func(o *operand) error {
		var err error
		switch {
		case o.status:
			o.kind, err = task.String, k.declared(i, o.unit)
		case o.scope == toOutput && k.depends.of(k.m, i).weak[o.unit]:
			err = fmt.Errorf("%s is weak and may not be there: only %s.status can be asked", o.unit, o.unit)
		default:
			o.kind, err = k.refer(i, &o.reference)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", o.path, err)
		}
		return nil
	}
}
