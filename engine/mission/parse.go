package mission

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"apollo11/engine/task"
)

// MaxFile bounds a mission file.
const MaxFile = 1 << 20

// most bounds the lists of a mission.
const (
	mostUnits    = 20_000
	mostParams   = 200
	mostTriggers = 100
	longestText  = 8 << 10 // of a condition or a trigger's what
)

// longestSpec bounds a canonical text, which says in full what a file may leave out.
const longestSpec = 4 << 20

// ParseSpec reads a canonical text.
func ParseSpec(text string) (*Mission, error) {
	r := &reader{file: "spec.toml"}
	return r.parse(text, longestSpec)
}

// Parse reads a mission file: TOML if its name ends in .toml, YAML for .yaml and
// .yml. Every fault that is found is in the error, a Faults.
func Parse(file string, text []byte) (*Mission, error) {
	r := &reader{file: file}
	return r.parse(string(text), MaxFile)
}

func (r *reader) parse(text string, most int) (*Mission, error) {
	root := r.open(text, most)
	if root == nil {
		return nil, r.faults
	}
	m := r.mission(root)
	if len(r.faults) > 0 {
		return nil, sorted(r.faults)
	}
	return m, nil
}

func sorted(faults Faults) Faults {
	slices.SortStableFunc(faults, func(a, b Fault) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return faults
}

func (r *reader) open(text string, most int) *node {
	if len(text) > most {
		r.fault(place{}, "%d bytes: a mission file has at most %d", len(text), most)
		return nil
	}
	text = strings.TrimLeft(text, "\ufeff")
	if at := firstInvalid(text); at >= 0 { // such as what editors save that take two bytes a letter
		r.fault(findLines(text).place(at), "is no UTF-8 text from here on: save the file as UTF-8")
		return nil
	}
	read := map[string]func(string, string) (*node, Faults){".toml": fromTOML, ".yaml": fromYAML, ".yml": fromYAML}[filepath.Ext(r.file)]
	if read == nil {
		r.fault(place{}, "a mission file ends in .toml, .yaml or .yml")
		return nil
	}
	root, faults := read(r.file, text)
	r.faults = faults
	if root != nil && root.get("task_order") != nil {
		root = r.chain(root)
	}
	return root
}

// firstInvalid is where a text stops to be UTF-8, or -1.
func firstInvalid(text string) int {
	for i, c := range text {
		if c == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)) {
			return i
		}
	}
	return -1
}

func (r *reader) mission(root *node) *Mission {
	t := r.table(root, "")
	m := &Mission{source: source{file: r.file, root: root}}
	stem := strings.TrimSuffix(filepath.Base(r.file), filepath.Ext(r.file))
	m.Name = t.text("name", stem)
	if err := task.CheckName(m.Name); err != nil {
		if f := root.get("name"); f != nil {
			r.fault(f.value.at, "%s", err)
		} else {
			r.fault(place{}, "the file's %s: give the mission one with name = ", err)
		}
	}
	m.OnFailure = choice[OnFailure](t, "on_failure", onFailures)
	m.Template = t.flag("template")
	m.Params = t.params()
	for i, n := range t.list("units", mostUnits) {
		m.Units = append(m.Units, r.unit(n, i))
		m.source.units = append(m.source.units, n)
	}
	if len(m.Units) == 0 && len(r.faults) == 0 {
		r.fault(root.at, "no units: a mission has at least one, [[units]] with a name")
	}
	for i, n := range t.list("triggers", mostTriggers) {
		m.Triggers = append(m.Triggers, r.trigger(n, i))
	}
	t.finish()
	m.index = make(map[string]int, len(m.Units))
	for i := range m.Units {
		if _, twice := m.index[m.Units[i].Name]; !twice { // Check refuses it
			m.index[m.Units[i].Name] = i
		}
	}
	return m
}

// list is the elements of a list of tables.
func (t *table) list(key string, most int) []*node {
	n := t.take(key)
	switch {
	case n == nil:
		return nil
	case n.form != aList:
		t.wrong(n.at, key, "is %s, want a list of tables", n.describe())
		return nil
	case len(n.list) > most:
		t.wrong(n.at, key, "%d of them, at most %d are taken", len(n.list), most)
		return nil
	}
	return n.list
}

func (r *reader) unit(n *node, i int) Unit {
	what := fmt.Sprintf("unit %d: ", i+1)
	if f := n.get("name"); f != nil && f.value.form == aText {
		what = "unit " + task.Printable(f.value.text) + ": "
	}
	t := r.table(n, what)
	u := Unit{Name: t.text("name", "")}
	u.Uses = t.text("uses", u.Name)
	if !t.has("name") && n.form == aTable {
		r.fault(n.at, "%sname is missing", what)
	} else if f := n.get("name"); f != nil && f.value.form == aText {
		t.held("name", task.CheckName)
	}
	if t.has("uses") {
		t.held("uses", task.CheckType)
	}
	u.Deps, u.Weak = t.texts("deps", task.CheckName), t.texts("weak", task.CheckName)
	u.When, u.Expect = t.condition("when"), t.condition("expect")
	u.Timeout = t.duration("timeout", 0, time.Millisecond)
	u.Retries = t.count("retries", task.Unset, task.MaxRetries)
	u.RetryInterval = t.duration("retry_interval", Inherit, 0)
	u.With, u.Offer = t.values("with"), t.values("offer")
	for _, v := range u.Offer {
		if _, twice := u.With.Get(v.Name); twice {
			t.wrong(t.node.get("offer").at, "offer."+v.Name, "stands in with too")
		}
	}
	t.finish()
	return u
}

// held puts a text that was already taken against a rule.
func (t *table) held(key string, check func(string) error) {
	if f := t.node.get(key); f != nil && f.value.form == aText {
		if err := check(f.value.text); err != nil {
			t.wrong(f.value.at, key, "%s", err)
		}
	}
}

func (t *table) condition(key string) string {
	text := t.text(key, "")
	if f := t.node.get(key); f != nil && f.value.form == aText {
		if strings.TrimSpace(text) == "" {
			t.wrong(f.value.at, key, "is empty: leave it out")
		} else if len(text) > longestText {
			t.wrong(f.value.at, key, "%d bytes, at most %d are taken", len(text), longestText)
		}
	}
	return text
}

// params reads the parameters' rules.
func (t *table) params() []task.Rule {
	n := t.take("params")
	if n == nil {
		return nil
	}
	if n.form != aTable || len(n.fields) > mostParams {
		t.wrong(n.at, "params", "want up to %d tables such as [params.NAME]", mostParams)
		return nil
	}
	var rules []task.Rule
	for _, f := range n.fields {
		rules = append(rules, t.param(f))
	}
	slices.SortFunc(rules, func(a, b task.Rule) int { return strings.Compare(a.Name, b.Name) })
	return rules
}

func (t *table) param(f field) task.Rule {
	inner := t.table(f.value, "params."+f.name+": ")
	before := len(t.faults)
	r := task.Rule{Name: f.name}
	kind, err := task.ParseKind(inner.text("type", "string"))
	if err == nil && kind == task.Path {
		err = fmt.Errorf(`unknown type "path": want string, int, float, bool, time`)
	}
	if err != nil {
		inner.wrong(inner.node.get("type").value.at, "type", "%s", err)
	}
	r.Kind = kind
	r.HasDefault = inner.has("default")
	r.Required = !r.HasDefault
	r.Default, r.Min, r.Max = inner.literal("default"), inner.literal("min"), inner.literal("max")
	const longest = task.MaxBytes
	r.MinLength, r.MaxLength = inner.count("min_length", 0, longest), inner.count("max_length", 0, longest)
	r.Enum = taken(inner, "enum", "a list of plain values", nil, literals)
	r.Pattern, r.Description = inner.text("pattern", ""), inner.text("description", "")
	inner.finish()
	if len(t.faults) == before {
		if err := r.Prepare(); err != nil {
			t.fault(f.at, "params.%s", strings.TrimPrefix(err.Error(), "default: "))
		}
	}
	return r
}

func (t *table) literal(key string) string {
	return taken(t, key, "a plain value", "", func(n *node) (string, bool) { return n.text, n.plain() })
}

func literals(n *node) ([]string, bool) {
	if n.form != aList {
		return nil, false
	}
	var list []string
	for _, e := range n.list {
		if !e.plain() {
			return nil, false
		}
		list = append(list, e.text)
	}
	return list, true
}

func (r *reader) trigger(n *node, i int) Trigger {
	t := r.table(n, fmt.Sprintf("trigger %d: ", i+1))
	tr := Trigger{}
	given := 0
	for k, key := range triggerKinds {
		if t.has(key) {
			given++
			tr.Kind = TriggerKind(k)
		}
		if TriggerKind(k) == Start {
			if t.has(key) && !t.flag(key) {
				t.wrong(t.node.get(key).value.at, key, "only start = true means something")
			}
			t.known = append(t.known, key)
		} else if what := t.text(key, ""); TriggerKind(k) == tr.Kind {
			tr.What = what
		}
	}
	switch {
	case n.form != aTable:
		return tr
	case given != 1:
		r.fault(n.at, "trigger %d: has %d of %s: want one", i+1, given, strings.Join(triggerKinds, ", "))
	case tr.Kind != Start:
		t.held(triggerKinds[tr.Kind], tr.Kind.check)
	}
	if t.has("timezone") && tr.Kind == Cron {
		t.held("timezone", func(name string) error { _, err := zoneOf(name, time.UTC); return err })
	}
	if tr.Overlap = choice[Overlap](t, "overlap", overlaps); !t.has("overlap") {
		tr.Overlap = tr.Kind.overlap()
	}
	tr.Timezone, tr.CatchUp = t.text("timezone", ""), choice[CatchUp](t, "catch_up", catchUps)
	for _, key := range []string{"timezone", "catch_up"} {
		if f := t.node.get(key); f != nil && tr.Kind != Cron {
			t.wrong(f.at, key, "has no meaning without cron")
		}
	}
	t.finish()
	return tr
}

// check holds what a trigger names against what its kind may name.
func (k TriggerKind) check(what string) error {
	switch {
	case strings.TrimSpace(what) == "":
		return fmt.Errorf("is empty")
	case len(what) > longestText:
		return fmt.Errorf("%d bytes, at most %d are taken", len(what), longestText)
	case k == Cron:
		_, err := readTable(what)
		return err
	case k == After:
		return task.CheckName(what)
	case k == Event, k == State:
		return task.CheckKey(what)
	case k == File:
		if _, err := path.Match(what, ""); err != nil {
			return fmt.Errorf("%s is no pattern of file names: a [ without its ]?", quote(what))
		}
	}
	return nil
}
