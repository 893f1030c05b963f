package task

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// AppendText appends the canonical text of a unit: name=value lines, sorted,
// escaped as on the wire. Equal units give equal texts, so texts are compared
// and hashed; it is what registers, journals and images carry.
func (u *Unit) AppendText(dst []byte) []byte {
	list := []Value{
		{"name", u.Name},
		{"retries", strconv.Itoa(u.Retry.Retries)},
		{"retry_interval", u.Retry.Interval.String()},
		{"backoff", formatFloat(u.Retry.Backoff)},
		{"jitter", formatFloat(u.Retry.Jitter)},
		{"prepare", u.Prepare.String()},
		{"timeout", u.Timeout.String()},
		{"cleanup", u.Cleanup.String()},
		{"idempotent", strconv.FormatBool(u.Idempotent)},
		{"fresh", strconv.FormatBool(u.Fresh)},
		{"context", strings.Join(u.Context, ",")},
		{"version", strconv.Itoa(u.Version)},
	}
	list = u.Traits.appendValues(list)
	for i := range u.In {
		list = u.In[i].appendValues(list, "in."+u.In[i].Name)
	}
	for i := range u.Out {
		list = u.Out[i].appendValues(list, "out."+u.Out[i].Name)
	}
	values, err := NewValues(list)
	if err != nil {
		panic("task: a unit's rules were not checked: " + err.Error())
	}
	return values.AppendText(dst)
}

// appendValues adds what is said; a unit without traits has the text it always had.
func (t *Traits) appendValues(list []Value) []Value {
	add := func(said bool, name, value string) {
		if said {
			list = append(list, Value{name, value})
		}
	}
	add(len(t.Deps) > 0, "deps", strings.Join(t.Deps, ","))
	add(t.Resources.CPU > 0, "cpu_milli", strconv.FormatInt(t.Resources.CPU, 10))
	add(t.Resources.Memory > 0, "memory", strconv.FormatInt(t.Resources.Memory, 10))
	add(t.Resources.Disk > 0, "disk", strconv.FormatInt(t.Resources.Disk, 10))
	add(t.Resident, "resident", "true")
	add(t.Undo, "undo", "true")
	add(t.Varies, "varies", "true")
	return list
}

func (t *Traits) set(field, value string) (err error) {
	switch field {
	case "deps":
		t.Deps = strings.Split(value, ",")
	case "cpu_milli":
		t.Resources.CPU, err = strconv.ParseInt(value, 10, 64)
	case "memory":
		t.Resources.Memory, err = strconv.ParseInt(value, 10, 64)
	case "disk":
		t.Resources.Disk, err = strconv.ParseInt(value, 10, 64)
	case "resident":
		t.Resident, err = strconv.ParseBool(value)
	case "undo":
		t.Undo, err = strconv.ParseBool(value)
	case "varies":
		t.Varies, err = strconv.ParseBool(value)
	}
	return err // a field of a later build is not ours to judge
}

// appendValues adds the rule's fields under prefix; ":" separates the two since
// a rule's own name may hold dots.
func (r *Rule) appendValues(list []Value, prefix string) []Value {
	add := func(field, value string) { list = append(list, Value{prefix + ":" + field, value}) }
	add("type", r.Kind.String())
	if r.Required {
		add("required", "true")
	}
	if r.HasDefault {
		add("default", r.Default)
	}
	for field, value := range map[string]string{"min": r.Min, "max": r.Max, "pattern": r.Pattern, "description": r.Description} {
		if value != "" {
			add(field, value)
		}
	}
	if r.MinLength > 0 {
		add("min_length", strconv.Itoa(r.MinLength))
	}
	if r.MaxLength > 0 {
		add("max_length", strconv.Itoa(r.MaxLength))
	}
	for i, e := range r.Enum {
		add(fmt.Sprintf("enum.%04d", i), e)
	}
	return list
}

// ParseUnit reads what AppendText wrote and readies its rules.
func ParseUnit(text string) (Unit, error) {
	var u Unit
	values, err := ParseValues(text)
	if err != nil {
		return u, err
	}
	for _, v := range values {
		if side, rest, ok := strings.Cut(v.Name, "."); ok && (side == "in" || side == "out") {
			err = u.setRule(side, rest, v.Value)
		} else {
			err = u.set(v.Name, v.Value)
		}
		if err != nil {
			return u, fmt.Errorf("%s: %w", Printable(v.Name), err)
		}
	}
	if err := CheckType(u.Name); err != nil {
		return u, err
	}
	return u, u.ReadyRules()
}

func (u *Unit) set(field, value string) (err error) {
	switch field {
	case "name":
		u.Name = value
	case "retries":
		u.Retry.Retries, err = parseCount(value)
	case "retry_interval":
		u.Retry.Interval, err = parseDuration(value)
	case "backoff":
		u.Retry.Backoff, err = strconv.ParseFloat(value, 64)
	case "jitter":
		u.Retry.Jitter, err = strconv.ParseFloat(value, 64)
	case "prepare":
		u.Prepare, err = parseDuration(value)
	case "timeout":
		u.Timeout, err = parseDuration(value)
	case "cleanup":
		u.Cleanup, err = parseDuration(value)
	case "idempotent":
		u.Idempotent, err = strconv.ParseBool(value)
	case "fresh":
		u.Fresh, err = strconv.ParseBool(value)
	case "context":
		if value != "" {
			u.Context = strings.Split(value, ",")
		}
	case "version":
		u.Version, err = parseCount(value)
	default:
		err = u.Traits.set(field, value)
	}
	return err
}

func (u *Unit) setRule(side, rest, value string) error {
	name, field, ok := strings.Cut(rest, ":")
	if !ok {
		return fmt.Errorf("want %s.NAME:FIELD", side)
	}
	rules := &u.In
	if side == "out" {
		rules = &u.Out
	}
	if n := len(*rules); n == 0 || (*rules)[n-1].Name != name {
		*rules = append(*rules, Rule{Name: name})
	}
	return (*rules)[len(*rules)-1].set(field, value)
}

func (r *Rule) set(field, value string) (err error) {
	switch field {
	case "type":
		r.Kind, err = ParseKind(value)
	case "required":
		r.Required, err = strconv.ParseBool(value)
	case "default":
		r.HasDefault, r.Default = true, value
	case "min":
		r.Min = value
	case "max":
		r.Max = value
	case "pattern":
		r.Pattern = value
	case "description":
		r.Description = value
	case "min_length":
		r.MinLength, err = parseCount(value)
	case "max_length":
		r.MaxLength, err = parseCount(value)
	default:
		if strings.HasPrefix(field, "enum.") {
			r.Enum = append(r.Enum, value)
		}
	}
	return err
}

func parseCount(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	return int(n), err
}

func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err == nil && d < 0 {
		err = fmt.Errorf("%s is negative", s)
	}
	return d, err
}

func formatFloat(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
