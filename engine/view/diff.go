package view

import (
	"strings"

	"apollo11/engine/task"
)

// Diff is two runs side by side, unit by unit.
type Diff struct {
	A      Run         `json:"a"`
	B      Run         `json:"b"`
	Spec   bool        `json:"spec"` // they ran different missions, or different texts of one
	Params []ValueDiff `json:"params"`
	Units  []UnitDiff  `json:"units"` // upstream before downstream
	First  int         `json:"first"` // index of the first unit that differs; -1: none does
}

// UnitDiff is what became of a unit in both runs.
type UnitDiff struct {
	Unit    string      `json:"unit"`
	A       *RunUnit    `json:"a"` // nil: the run has no such unit
	B       *RunUnit    `json:"b"`
	Parts   Part        `json:"differs"`
	Origin  bool        `json:"origin"` // it differs, and nothing that it waits for does
	Inputs  []ValueDiff `json:"inputs"` // those that differ
	Outputs []ValueDiff `json:"outputs"`
}

// ValueDiff is a value that is not the same in both.
type ValueDiff struct {
	Name string `json:"name"`
	A    string `json:"a"`
	B    string `json:"b"`
	InA  bool   `json:"in_a"`
	InB  bool   `json:"in_b"`
}

// Part is a set of what can differ between two tries of a unit. Attempts,
// executors and durations are no part of it: they differ between any two runs.
type Part uint8

// The parts.
const (
	PartUnit    Part = 1 << iota // one run has no such unit
	PartState                    // a result that was reused counts as succeeded
	PartError                    // the class
	PartInputs                   // a file counts by its content
	PartOutputs                  // likewise
	PartProgram                  // the manifest or the program; alone it makes no difference
)

var partNames = [...]string{"unit", "state", "error", "inputs", "outputs", "program"}

// String lists the parts; empty: there are none.
func (p Part) String() string {
	var names []string
	for i, name := range partNames {
		if p&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// MarshalText is String.
func (p Part) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// Differs reports whether what came of the unit is not the same.
func (u *UnitDiff) Differs() bool { return u.Parts&^PartProgram != 0 }

// Same reports whether both runs came to the same.
func (d *Diff) Same() bool { return d.First < 0 && d.A.State == d.B.State }

// Compare puts two runs side by side. Both need all their units.
func Compare(a, b *RunDetail) *Diff {
	d := &Diff{A: a.Run, B: b.Run, Spec: a.Spec != b.Spec, Params: differing(a.Params, b.Params), First: -1}
	d.Units = pair(a.Units, b.Units)
	changed := make(map[string]bool)
	for i := range d.Units {
		u := &d.Units[i]
		u.compare()
		if !u.Differs() {
			continue
		}
		changed[u.Unit] = true
		u.Origin = true
		for _, name := range u.upstreams() {
			u.Origin = u.Origin && !changed[name]
		}
		if d.First < 0 {
			d.First = i
		}
	}
	return d
}

// pair finds the units of both runs, each behind what it waits for.
func pair(a, b []RunUnit) []UnitDiff {
	o := ordering{at: make(map[string]int, len(a))}
	for i := range a {
		o.side(a[i].Unit).A = &a[i]
	}
	for i := range b {
		o.side(b[i].Unit).B = &b[i]
	}
	o.seen = make([]bool, len(o.units))
	for i := range o.units {
		o.visit(i)
	}
	return o.out
}

// ordering is units while they are put in order.
type ordering struct {
	at    map[string]int
	units []UnitDiff
	seen  []bool
	out   []UnitDiff
}

func (o *ordering) side(name string) *UnitDiff {
	i, ok := o.at[name]
	if !ok {
		i = len(o.units)
		o.at[name] = i
		o.units = append(o.units, UnitDiff{Unit: name})
	}
	return &o.units[i]
}

func (o *ordering) visit(i int) {
	if o.seen[i] {
		return
	}
	o.seen[i] = true
	for _, name := range o.units[i].upstreams() {
		if j, ok := o.at[name]; ok {
			o.visit(j)
		}
	}
	o.out = append(o.out, o.units[i])
}

// upstreams are the names of what the unit waits for, or runs beside, in either run.
func (u *UnitDiff) upstreams() (names []string) {
	for _, side := range [2]*RunUnit{u.A, u.B} {
		if side != nil {
			names = append(append(names, Names(side.Deps)...), Names(side.Weak)...)
		}
	}
	return names
}

// Names is the units of a comma list.
func Names(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

func (u *UnitDiff) compare() {
	a, b := u.A, u.B
	if a == nil || b == nil {
		u.Parts = PartUnit
		return
	}
	u.Inputs, u.Outputs = differing(a.Inputs, b.Inputs), differing(a.Outputs, b.Outputs)
	for _, c := range [...]struct {
		part    Part
		differs bool
	}{
		{PartState, a.settled() != b.settled()},
		{PartError, a.ErrorClass != b.ErrorClass},
		{PartInputs, unlike(a.InputHash, b.InputHash, u.Inputs)},
		{PartOutputs, unlike(a.OutputHash, b.OutputHash, u.Outputs)},
		{PartProgram, a.UnitHash != b.UnitHash && a.UnitHash != "" && b.UnitHash != ""},
	} {
		if c.differs {
			u.Parts |= c.part
		}
	}
}

// unlike compares by hash; where one is missing the values tell.
func unlike(a, b string, values []ValueDiff) bool {
	if a != "" && b != "" {
		return a != b
	}
	return len(values) > 0
}

// reusedReason begins the reason of a unit whose result was taken over.
const reusedReason = "reused from "

// ReusedFrom is the run whose result the unit has; empty: its own.
func (u *RunUnit) ReusedFrom() string {
	rest, ok := strings.CutPrefix(u.Reason, reusedReason)
	if !ok || u.State != task.Skipped.String() {
		return ""
	}
	if end := strings.IndexAny(rest, " :;,"); end >= 0 {
		rest = rest[:end] // of the unit's task
	}
	return rest
}

// settled is the state that counts.
func (u *RunUnit) settled() string {
	if u.ReusedFrom() != "" {
		return task.Succeeded.String()
	}
	return u.State
}

// differing are the values that are not the same, those of a first.
func differing(a, b Object) (out []ValueDiff) {
	of := make(map[string]string, len(b))
	for _, v := range b {
		of[v.Name] = v.Value
	}
	for _, v := range a {
		other, ok := of[v.Name]
		delete(of, v.Name)
		if !ok || !alike(v.Value, other) {
			out = append(out, ValueDiff{Name: v.Name, A: v.Value, B: other, InA: true, InB: ok})
		}
	}
	for _, v := range b {
		if _, ok := of[v.Name]; ok {
			out = append(out, ValueDiff{Name: v.Name, B: v.Value, InB: true})
		}
	}
	return out
}

// alike reports whether two values are the same; files are if their content is.
func alike(a, b string) bool {
	if a == b {
		return true
	}
	fa, ok, err := task.ParseFile(a)
	if !ok || err != nil {
		return false
	}
	fb, ok, err := task.ParseFile(b)
	return ok && err == nil && fa.Sum == fb.Sum
}
