package mission

import (
	"strconv"
	"strings"

	"apollo11/engine/task"
)

// Spec is the canonical text of a mission: a mission file in TOML that says the
// same, and that Parse reads back. Two files that differ only in language,
// spelling or order of keys have the same.
func (m *Mission) Spec() string {
	w := &writer{}
	w.text("name", m.Name)
	w.text("on_failure", m.OnFailure.String())
	w.flag("template", m.Template)
	for i := range m.Params {
		w.param(&m.Params[i])
	}
	for i := range m.Units {
		w.unit(&m.Units[i])
	}
	for i := range m.Triggers {
		w.trigger(&m.Triggers[i])
	}
	return w.b.String()
}

// Hash is the SHA-256 of the spec, "sha256:" and hex digits.
func (m *Mission) Hash() string { return task.HashText([]byte(m.Spec())) }

// writer writes TOML; what is absent or the default is left out.
type writer struct{ b strings.Builder }

func (w *writer) line(parts ...string) {
	for _, p := range parts {
		w.b.WriteString(p)
	}
	w.b.WriteByte('\n')
}

func (w *writer) text(key, value string) {
	if value != "" {
		w.line(key, " = ", tomlText(value))
	}
}

func (w *writer) flag(key string, value bool) {
	if value {
		w.line(key, " = true")
	}
}

func (w *writer) count(key string, value int) {
	if value > 0 {
		w.line(key, " = ", strconv.Itoa(value))
	}
}

func (w *writer) texts(key string, list []string) {
	if len(list) == 0 {
		return
	}
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = tomlText(s)
	}
	w.line(key, " = [", strings.Join(quoted, ", "), "]")
}

func (w *writer) values(key string, values task.Values) {
	if len(values) == 0 {
		return
	}
	pairs := make([]string, len(values))
	for i, v := range values {
		pairs[i] = tomlText(v.Name) + " = " + tomlText(v.Value)
	}
	w.line(key, " = { ", strings.Join(pairs, ", "), " }")
}

func (w *writer) param(r *task.Rule) {
	w.line("[params.", tomlText(r.Name), "]")
	w.text("type", r.Kind.String())
	if r.HasDefault {
		w.line("default = ", tomlText(r.Default))
	}
	w.text("min", r.Min)
	w.text("max", r.Max)
	w.count("min_length", r.MinLength)
	w.count("max_length", r.MaxLength)
	w.texts("enum", r.Enum)
	w.text("pattern", r.Pattern)
	w.text("description", r.Description)
}

func (w *writer) unit(u *Unit) {
	w.line("[[units]]")
	w.text("name", u.Name)
	w.text("uses", u.Uses)
	w.texts("deps", u.Deps)
	w.texts("weak", u.Weak)
	w.text("when", u.When)
	w.text("expect", u.Expect)
	if u.Timeout > 0 {
		w.text("timeout", u.Timeout.String())
	}
	if u.Retries != task.Unset {
		w.line("retries = ", strconv.Itoa(u.Retries))
	}
	if u.RetryInterval != Inherit {
		w.text("retry_interval", u.RetryInterval.String())
	}
	w.values("with", u.With)
	w.values("offer", u.Offer)
}

func (w *writer) trigger(t *Trigger) {
	w.line("[[triggers]]")
	if t.Kind == Start {
		w.flag("start", true)
	} else {
		w.text(t.Kind.String(), t.What)
	}
	if t.Kind == Cron {
		w.text("timezone", t.Timezone)
		w.text("catch_up", t.CatchUp.String())
	}
	w.text("overlap", t.Overlap.String())
}

// tomlText is a text as a basic string of TOML.
func tomlText(s string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			b.WriteString(`\u00`)
			b.WriteByte(digits[r>>4])
			b.WriteByte(digits[r&15])
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
