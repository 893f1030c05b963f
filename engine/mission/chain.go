package mission

import "slices"

// settings are the entries of a task_order task that set its unit.
var settings = []string{"timeout", "retries", "retry_interval"}

// chain rewrites the task_order form as the ordinary one, each value keeping
// its place: task after task, and what stands in a task's table as its inputs.
func (r *reader) chain(root *node) *node {
	order := root.get("task_order").value
	if order.form != aList {
		r.fault(order.at, "task_order: is %s, want a list of names", order.describe())
		return nil
	}
	tables := make(map[string]*field, len(root.fields))
	for i := range root.fields {
		tables[root.fields[i].name] = &root.fields[i]
	}
	units := &node{form: aList, at: order.at}
	names := []string{"task_order", "name"}
	known := map[string]bool{"task_order": true}
	for i, e := range order.list {
		if e.form != aText {
			r.fault(e.at, "task_order: %s in the list, want a name", e.describe())
			continue
		}
		deps := &node{form: aList, at: e.at}
		if i > 0 {
			deps.list = []*node{{at: e.at, text: order.list[i-1].text}}
		}
		unit := &node{form: aTable, at: e.at, fields: []field{{"name", e.at, e}, {"deps", e.at, deps}}}
		if f := tables[e.text]; f != nil && !known[e.text] {
			unit.fields = append(unit.fields, r.settings(f)...)
		}
		units.list = append(units.list, unit)
		names, known[e.text] = append(names, e.text), true
	}
	out := &node{form: aTable, at: root.at, fields: []field{{"units", order.at, units}}}
	for _, f := range root.fields {
		switch {
		case known[f.name] || r.full():
		case f.name == "name":
			out.fields = append(out.fields, f)
		default:
			r.fault(f.at, "%s: stands neither in task_order nor is it known here%s", f.name, meant(f.name, names))
		}
	}
	return out
}

// settings sorts a task's table: what sets the unit, and is offered to it too,
// and what is an input.
func (r *reader) settings(f *field) []field {
	if f.value.form == nothing {
		return nil
	}
	if f.value.form != aTable {
		r.fault(f.value.at, "%s: is %s, want a table of inputs", f.name, f.value.describe())
		return nil
	}
	with := &node{form: aTable, at: f.value.at}
	offer := &node{form: aTable, at: f.value.at}
	var fields []field
	for _, inner := range f.value.fields {
		if slices.Contains(settings, inner.name) {
			fields = append(fields, inner)
			offer.fields = append(offer.fields, inner)
		} else {
			with.fields = append(with.fields, inner)
		}
	}
	return append(fields, field{"with", f.at, with}, field{"offer", f.at, offer})
}
