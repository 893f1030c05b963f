package mission

import (
	"fmt"
	"slices"
	"strings"

	"apollo11/engine/task"
)

// Contracts are what a mission is held against.
type Contracts struct {
	Units []task.Unit // by name
	Loose []string    // types that executors offer without a contract: any input is taken, no output can be referred to
	Keys  []Key       // the state keys that have a contract

	// Settled says which units are not run, such as those whose result a run takes over: they are
	// not held against anything. nil: none.
	Settled func(unit int) bool
}

// Key is a state key's contract.
type Key struct {
	task.Rule
	From string // the output that changes it; empty: none
}

// Check holds a mission against its contracts and the parameters that are given,
// before anything runs. It returns the parameters with their defaults; every
// fault is in the error, a Faults.
func (m *Mission) Check(c Contracts, given task.Values) (task.Values, error) {
	k := newChecker(m, c)
	k.mission()
	params := k.bind(given)
	settled := c.Settled
	if settled == nil {
		settled = func(int) bool { return false }
	}
	for i := range m.Units {
		if !settled(i) {
			k.unit(i)
		}
	}
	k.order()
	whole := len(k.faults) == 0
	for i := range m.Units {
		if whole && !settled(i) {
			k.known(i, params)
		}
	}
	if len(k.faults) > 0 {
		return nil, sorted(k.faults)
	}
	return params, nil
}

// CheckUnits is Check without the parameters, for a mission that needs some: what
// stands against it whatever they are.
func (m *Mission) CheckUnits(c Contracts) error {
	k := newChecker(m, c)
	k.mission()
	for i := range m.Units {
		k.unit(i)
	}
	k.order()
	if len(k.faults) > 0 {
		return sorted(k.faults)
	}
	return nil
}

// checker is one Check while it goes on.
type checker struct {
	*reader
	m         *Mission
	names     []string
	contracts map[string]*task.Unit
	types     []string
	loose     map[string]bool
	keys      map[string]*Key
	reads     [][]string // by unit: the state keys it reads
	depends   dependencies
}

// dependencies are those of the unit that was asked about last.
type dependencies struct {
	unit         int // and 1
	strong, weak map[string]bool
}

// of gathers a unit's dependencies, once for all of its references.
func (d *dependencies) of(m *Mission, i int) *dependencies {
	if d.unit == i+1 {
		return d
	}
	*d = dependencies{i + 1, make(map[string]bool, len(m.Units[i].Deps)), map[string]bool{}}
	for _, name := range m.Units[i].Deps {
		d.strong[name] = true
	}
	for _, name := range m.Units[i].Weak {
		d.weak[name] = true
	}
	return d
}

func newChecker(m *Mission, c Contracts) *checker {
	k := &checker{
		reader: &reader{file: m.source.file}, m: m, names: make([]string, len(m.Units)),
		contracts: make(map[string]*task.Unit, len(c.Units)), keys: make(map[string]*Key, len(c.Keys)),
		reads: make([][]string, len(m.Units)), loose: make(map[string]bool, len(c.Loose)),
	}
	for _, name := range c.Loose {
		k.loose[name], k.types = true, append(k.types, name)
	}
	for i := range c.Units {
		k.contracts[c.Units[i].Name] = &c.Units[i]
		k.types = append(k.types, c.Units[i].Name)
	}
	for i := range c.Keys {
		k.keys[c.Keys[i].Name] = &c.Keys[i]
	}
	for i := range m.Units {
		k.names[i] = m.Units[i].Name
		if first := m.index[k.names[i]]; first != i {
			k.at(i, "")("unit %d of the list has this name too: rename one", first+1)
		}
	}
	return k
}

// at is a fault of a unit's entry, or of an element of it.
func (k *checker) at(i int, key string, element ...any) func(format string, args ...any) {
	return func(format string, args ...any) {
		if k.full() {
			return
		}
		what := "unit " + k.m.Units[i].Name
		if key != "" {
			what += ": " + key
		}
		for _, e := range element {
			if s, ok := e.(string); ok {
				what += "." + s
			}
		}
		k.fault(k.m.source.unit(i, key, element...), "%s: %s", what, fmt.Sprintf(format, args...))
	}
}

// mission checks what belongs to no unit.
func (k *checker) mission() {
	for i, t := range k.m.Triggers {
		place := k.m.source.trigger(i)
		if t.Kind == After && t.What == k.m.Name {
			k.fault(place, "trigger %d: the mission would start itself for ever", i+1)
		}
		if k.m.Template {
			k.fault(place, "trigger %d: a template is started with parameters: drop the trigger, or template = true", i+1)
			continue
		}
		for p := range k.m.Params {
			if r := &k.m.Params[p]; r.Required && t.Kind != Event && !(t.Kind == File && r.Name == FileParam) {
				k.fault(k.m.source.param(r.Name), "params.%s: trigger %d (%s) cannot give it: add a default", r.Name, i+1, t.Kind)
			}
		}
	}
}

// bind holds the given parameters against their rules and fills in the rest.
func (k *checker) bind(given task.Values) task.Values {
	full := slices.Clone(given)
	names := make([]string, len(k.m.Params))
	for i := range k.m.Params {
		r := &k.m.Params[i]
		names[i] = r.Name
		value, ok := given.Get(r.Name)
		switch {
		case ok:
			if err := r.Check(value); err != nil {
				k.fault(k.m.source.param(r.Name), "params.%s", err)
			}
		case r.HasDefault:
			full = append(full, task.Value{Name: r.Name, Value: r.Default})
		default:
			k.fault(k.m.source.param(r.Name), "params.%s has no value: give %s=VALUE, %s", r.Name, r.Name, one(r.Kind))
		}
	}
	for _, v := range given {
		if !slices.Contains(names, v.Name) {
			k.fault(place{}, "there is no parameter %s%s", v.Name, meant(v.Name, names))
		}
	}
	params, err := task.NewValues(full)
	if err != nil {
		k.fault(place{}, "parameters: %s", err)
	}
	return params
}

func (k *checker) unit(i int) {
	if k.full() {
		return
	}
	u := &k.m.Units[i]
	if u.Name == paramWord || u.Name == stateWord {
		k.at(i, "")("references need this word: choose another")
	}
	k.upstream(i, "deps", u.Deps, nil)
	k.upstream(i, "weak", u.Weak, u.Deps)
	contract := k.contracts[u.Uses]
	if contract == nil && !k.loose[u.Uses] {
		k.at(i, "uses")("there is no unit %s%s", u.Uses, meant(u.Uses, k.types))
	}
	for _, v := range u.With {
		k.input(i, "with", v, contract)
	}
	for _, v := range u.Offer {
		if contract != nil && rule(contract.In, v.Name) != nil {
			k.input(i, "offer", v, contract)
		}
	}
	if contract != nil {
		k.reads[i] = append(k.reads[i], contract.Context...)
		k.required(i, contract)
	}
	k.conditions(i, contract)
}

// upstream checks a list of names that a unit depends on.
func (k *checker) upstream(i int, key string, list, other []string) {
	seen := make(map[string]string, len(other)+len(list))
	for _, name := range other {
		seen[name] = "deps"
	}
	for n, name := range list {
		if k.full() {
			return
		}
		fault := k.at(i, key, n)
		switch _, there := k.m.index[name]; {
		case !there:
			fault("there is no unit %s in this mission%s", name, meant(name, k.names))
		case name == k.m.Units[i].Name:
			fault("the unit waits for itself: take it out")
		case seen[name] != "":
			fault("%s stands in %s already: take one out", name, seen[name])
		default:
			seen[name] = key
		}
	}
}

// required checks that every input which has to be there is.
func (k *checker) required(i int, contract *task.Unit) {
	given := k.m.Units[i].inputs(contract)
	for r := range contract.In {
		in := &contract.In[r]
		if !in.Required || in.HasDefault || slices.ContainsFunc(given, func(v task.Value) bool { return v.Name == in.Name }) {
			continue
		}
		k.at(i, "")("%s needs the input %s, %s: add with = { %s = … }", contract.Name, in.Name, one(in.Kind), in.Name)
	}
}

// input checks one input: that it is taken, and what it refers to.
func (k *checker) input(i int, key string, v task.Value, contract *task.Unit) {
	fault := k.at(i, key, v.Name)
	var in *task.Rule
	if contract != nil {
		if in = rule(contract.In, v.Name); in == nil {
			fault("%s takes no such input%s", contract.Name, choices(v.Name, contract.In))
		}
	}
	list, err := pieces(v.Value, k.m.isUnit)
	if err != nil {
		fault("%s", err)
		return
	}
	if in != nil && !slices.ContainsFunc(list, piece.refers) {
		k.value(fault, in, v.Value)
	}
	for _, p := range list {
		if p.ref == nil {
			continue
		}
		from, err := k.refer(i, p.ref)
		switch {
		case err != nil:
			fault("${%s}: %s", p.ref.path, err)
		case in != nil && len(list) > 1 && in.Kind != task.String && in.Kind != task.Path:
			fault("a text around ${%s} is no %s: give the reference alone", p.ref.path, in.Kind)
			return
		case in != nil && len(list) == 1:
			k.fits(fault, p.ref, from, in)
		}
	}
}

// choices names what a contract has, near to what was asked for.
func choices(name string, rules []task.Rule) string {
	var names []string
	for i := range rules {
		names = append(names, rules[i].Name)
	}
	if hint := meant(name, names); hint != "" {
		return hint
	}
	if len(names) == 0 {
		return ": it has none"
	}
	return ": it has " + strings.Join(names, ", ")
}

// fits checks that what a reference gives is of the input's kind.
func (k *checker) fits(fault func(string, ...any), ref *reference, from task.Kind, in *task.Rule) {
	if ok := from == in.Kind || in.Kind == task.String || from == task.Int && in.Kind == task.Float; !ok {
		fault("${%s} is %s, but this input is %s: %s", ref.path, one(from), one(in.Kind), k.declare(ref, in.Kind))
		return
	}
	if ref.hasDefault {
		if err := in.Check(ref.absent); err != nil {
			fault("${%s}: after the :- stands %s", ref.path, err)
		}
	}
}

// one is a kind with its article.
func one(k task.Kind) string {
	if k == task.Int {
		return "an int"
	}
	return "a " + k.String()
}

// declare says which contract would have to be another.
func (k *checker) declare(ref *reference, want task.Kind) string {
	where := fmt.Sprintf("[params.%s] in this file", ref.name)
	switch ref.scope {
	case toState:
		where = fmt.Sprintf("[state.%q] in config.toml", ref.name)
	case toOutput:
		where = fmt.Sprintf("[out.%s] of unit %s", ref.name, k.m.Units[k.m.index[ref.unit]].Uses)
	}
	return fmt.Sprintf("%s would have to say type = %q", where, want)
}

// refer finds what a reference of a unit means; the error names the way out.
func (k *checker) refer(i int, ref *reference) (task.Kind, error) {
	switch ref.scope {
	case toParam:
		if r := rule(k.m.Params, ref.name); r != nil {
			return r.Kind, nil
		}
		return 0, fmt.Errorf("there is no parameter %s%s", ref.name, choices(ref.name, k.m.Params))
	case toState:
		k.reads[i] = append(k.reads[i], ref.name)
		if key := k.keys[ref.name]; key != nil {
			return key.Kind, nil
		}
		return task.String, nil
	}
	if err := k.declared(i, ref.unit); err != nil {
		return 0, err
	}
	if k.depends.of(k.m, i).weak[ref.unit] && !ref.hasDefault {
		return 0, fmt.Errorf("%s is weak and may not be there: write ${%s:-VALUE}", ref.unit, ref.path)
	}
	return k.output(ref)
}

// declared checks that a unit of which another reads something is among its
// dependencies: else they are hidden.
func (k *checker) declared(i int, upstream string) error {
	u, depends := &k.m.Units[i], k.depends.of(k.m, i)
	switch {
	case !k.m.isUnit(upstream):
		return fmt.Errorf("there is no unit %s in this mission%s", upstream, meant(upstream, append([]string{paramWord, stateWord}, k.names...)))
	case upstream == u.Name:
		return fmt.Errorf("a unit cannot read its own outputs")
	case !depends.strong[upstream] && !depends.weak[upstream]:
		return fmt.Errorf("a hidden dependency: add %s", depsLine(append(slices.Clip(u.Deps), upstream)))
	}
	return nil
}

func depsLine(deps []string) string {
	quoted := make([]string, len(deps))
	for i, d := range deps {
		quoted[i] = tomlText(d)
	}
	return "deps = [" + strings.Join(quoted, ", ") + "]"
}

func (k *checker) output(ref *reference) (task.Kind, error) {
	contract := k.contracts[k.m.Units[k.m.index[ref.unit]].Uses]
	switch {
	case contract == nil:
		return 0, fmt.Errorf("unit %s has no contract", k.m.Units[k.m.index[ref.unit]].Uses)
	case len(contract.Out) == 0:
		return 0, fmt.Errorf("unit %s declares no outputs: add [out.%s] to its manifest", contract.Name, ref.name)
	}
	if r := rule(contract.Out, ref.name); r != nil {
		return r.Kind, nil
	}
	return 0, fmt.Errorf("unit %s has no output %s%s", contract.Name, ref.name, choices(ref.name, contract.Out))
}

// known holds the inputs that the parameters decide against the contract.
func (k *checker) known(i int, params task.Values) {
	u := &k.m.Units[i]
	contract := k.contracts[u.Uses]
	if contract == nil {
		return
	}
	for _, v := range u.inputs(contract) {
		list, err := pieces(v.Value, k.m.isUnit)
		open := slices.ContainsFunc(list, func(p piece) bool { return p.refers() && p.ref.scope != toParam })
		if err != nil || open || !slices.ContainsFunc(list, piece.refers) {
			continue // not known yet, or checked before
		}
		k.value(k.at(i, "with", v.Name), rule(contract.In, v.Name), v.Value, params...)
	}
}

// value holds a text in which only parameters stand against a rule.
func (k *checker) value(fault func(string, ...any), in *task.Rule, text string, params ...task.Value) {
	value, err := k.m.resolve(text, Given(params))
	if err == nil {
		err = in.Check(value)
	}
	if err != nil {
		fault("%s", strings.TrimPrefix(err.Error(), in.Name+" = "))
	}
}

// Given are the facts before the start: parameters, and nothing else.
type Given task.Values

// Param is a parameter's value.
func (g Given) Param(name string) (string, bool) { return task.Values(g).Get(name) }

// State knows no key.
func (Given) State(string) (string, bool) { return "", false }

// Output knows none.
func (Given) Output(string, string) (string, bool) { return "", false }

// Status knows that nothing has begun.
func (Given) Status(string) string { return "" }
