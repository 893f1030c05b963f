package mission

import (
	"fmt"
	"strings"

	"apollo11/engine/task"
)

// Facts are what references and conditions read.
type Facts interface {
	Param(name string) (string, bool)
	State(key string) (string, bool)
	Output(unit, name string) (string, bool)
	Status(unit string) string // the unit's state; empty: it has not begun
}

// scope is the first word of a reference.
type scope uint8

const (
	toOutput scope = iota
	toParam
	toState
)

// The scopes' words, which no unit of a mission may be called.
const (
	paramWord = "params"
	stateWord = "state"
)

// reference is one ${…}.
type reference struct {
	scope      scope
	path       string // as written: params.year, fetch.rows
	unit       string // of an output
	name       string // of the parameter, the key, the output
	hasDefault bool
	absent     string // taken if there is no value
}

// piece is a stretch of plain text, or a reference.
type piece struct {
	text string
	ref  *reference
}

func (p piece) refers() bool { return p.ref != nil }

// pieces takes a text apart; isUnit says which names are units of the mission.
func pieces(text string, isUnit func(string) bool) (list []piece, err error) {
	var plain []byte
	flush := func() {
		if len(plain) > 0 {
			list = append(list, piece{text: string(plain)})
			plain = plain[:0]
		}
	}
	for {
		i := strings.Index(text, "${")
		if i < 0 {
			plain = append(plain, text...)
			flush()
			return list, nil
		}
		if i > 0 && text[i-1] == '$' { // $${ is a plain ${
			plain = append(append(plain, text[:i-1]...), "${"...)
			text = text[i+2:]
			continue
		}
		inner, rest, closed := strings.Cut(text[i+2:], "}")
		if !closed {
			return nil, fmt.Errorf("%s: the } is missing", quote(text[i:]))
		}
		ref, err := parseReference(inner, isUnit)
		if err != nil {
			return nil, err
		}
		plain = append(plain, text[:i]...)
		flush()
		list, text = append(list, piece{ref: ref}), rest
	}
}

func parseReference(inner string, isUnit func(string) bool) (*reference, error) {
	r := &reference{}
	r.path, r.absent, r.hasDefault = strings.Cut(inner, ":-")
	first, rest, dotted := strings.Cut(r.path, ".")
	switch {
	case !dotted || task.CheckKey(r.path) != nil && len(r.path) <= 128:
		return nil, fmt.Errorf("${%s}: want ${params.NAME}, ${UNIT.OUTPUT} or ${state.KEY}", r.path)
	case first == paramWord:
		r.scope = toParam
	case first == stateWord:
		r.scope = toState
	default:
		for i := range r.path { // the longest unit's name that it begins with
			if r.path[i] == '.' && isUnit(r.path[:i]) {
				first, rest = r.path[:i], r.path[i+1:]
			}
		}
		r.unit = first
	}
	r.name = rest
	return r, nil
}

// value is what a reference stands for.
func (r *reference) value(f Facts) (string, error) {
	var v string
	var ok bool
	switch r.scope {
	case toParam:
		v, ok = f.Param(r.name)
	case toState:
		v, ok = f.State(r.name)
	default:
		v, ok = f.Output(r.unit, r.name)
	}
	if !ok {
		v, ok = r.absent, r.hasDefault
	}
	if !ok {
		return "", fmt.Errorf("${%s} has no value", r.path)
	}
	return v, nil
}

// Inputs are the inputs of a unit, its references replaced. What is offered
// counts as far as the contract names it.
func (m *Mission) Inputs(u *Unit, contract *task.Unit, f Facts) (task.Values, error) {
	list := make([]task.Value, 0, len(u.With))
	for _, v := range u.inputs(contract) {
		text, err := m.resolve(v.Value, f)
		if err != nil {
			return nil, fmt.Errorf("unit %s: input %s: %w", u.Name, v.Name, err)
		}
		list = append(list, task.Value{Name: v.Name, Value: text})
	}
	return task.NewValues(list)
}

// inputs are those that the unit is given, references and all; without a
// contract nothing says that it takes what is only offered.
func (u *Unit) inputs(contract *task.Unit) task.Values {
	list := u.With
	if contract == nil {
		return list
	}
	for _, v := range u.Offer {
		if rule(contract.In, v.Name) != nil {
			list = append(list[:len(list):len(list)], v)
		}
	}
	return list
}

func (m *Mission) resolve(text string, f Facts) (string, error) {
	list, err := pieces(text, m.isUnit)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, p := range list {
		if p.ref == nil {
			b.WriteString(p.text)
			continue
		}
		v, err := p.ref.value(f)
		if err != nil {
			return "", err
		}
		if b.WriteString(v); b.Len() > task.MaxBytes {
			return "", fmt.Errorf("more than %d bytes: hand on the name of a file", task.MaxBytes)
		}
	}
	return b.String(), nil
}

func (m *Mission) isUnit(name string) bool {
	_, there := m.index[name]
	return there
}

// rule is the rule of a name; nil: there is none.
func rule(rules []task.Rule, name string) *task.Rule {
	for i := range rules {
		if rules[i].Name == name {
			return &rules[i]
		}
	}
	return nil
}
