package unit

import (
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"apollo11/engine/task"
)

// stepLimit is how long prepare and cleanup may take unless the manifest says.
const stepLimit = 30 * time.Second

// parse reads one manifest; with a fault there is none.
func parse(file, dir string, text []byte, d Defaults) (*Manifest, []Fault) {
	sheet, t := openSheet(file, bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")))
	if t == nil {
		return nil, sheet.faults
	}
	m := &Manifest{Dir: dir}
	m.readHead(t, stem(file))
	m.readSteps(t, d)
	m.readPython(t, dir)
	m.readImage(t, d)
	m.readRetry(t, d)
	m.readTraits(t)
	m.readSecrets(t)
	m.readContract(t)
	t.finish()
	if len(sheet.faults) == 0 {
		m.checkArguments(t)
	}
	if len(sheet.faults) > 0 {
		return nil, sheet.faults
	}
	m.print = newFingerprint(m, text)
	return m, nil
}

func (m *Manifest) readHead(t *table, stem string) {
	m.Unit.Name = t.text("name", stem)
	if err := task.CheckName(m.Unit.Name); err != nil {
		t.fault("name", err.Error())
	} else if m.Unit.Name != stem {
		t.fault("name", fmt.Sprintf("%s, but the file is called %s.toml: one of the two must change", m.Unit.Name, task.Printable(stem)))
	}
	engine, err := parseEngine(t.text("engine", "shell"))
	if err != nil {
		t.fault("engine", err.Error())
	}
	m.Engine = engine
	switch kind := t.text("kind", "task"); kind {
	case "task":
	case "resident":
		m.Unit.Resident = true
	default:
		t.fault("kind", fmt.Sprintf("unknown kind %q: this build knows task, resident", task.Printable(kind)))
	}
	m.Unit.Version = t.count("version", 0, math.MaxInt32)
}

func (m *Manifest) readSteps(t *table, d Defaults) {
	u := &m.Unit
	m.Prepare, m.Execute = m.step(t, "prepare"), m.step(t, "execute")
	m.Undo, m.Cleanup = m.step(t, "undo"), m.step(t, "cleanup")
	u.Undo = !m.Undo.none()
	if m.Execute.none() && !t.sheet.hasFault("execute") {
		t.fault("execute", "is missing: what should the unit run?")
	}
	if _, given := t.left["timeout"]; given && u.Resident {
		t.fault("timeout", "a resident unit runs on and on: leave it out")
	}
	if u.Timeout = t.duration("timeout", d.Timeout, time.Millisecond); u.Resident {
		u.Timeout = 0
	}
	if limit := t.duration("prepare_timeout", stepLimit, time.Millisecond); !m.Prepare.none() {
		u.Prepare = limit
	}
	if limit := t.duration("cleanup_timeout", stepLimit, time.Millisecond); !m.Cleanup.none() {
		u.Cleanup = limit
	}
	m.Grace = t.duration("grace", d.Grace, 0)
	inherits := d.Env
	if m.Engine == Container {
		inherits = nil // a host's PATH means nothing in an image
	}
	m.Env = slices.Clone(t.texts("env", inherits))
	for _, name := range m.Env {
		if err := checkVariable(name); err != nil {
			t.fault("env", err.Error())
		}
	}
	slices.Sort(m.Env)
	m.Env = slices.Compact(m.Env)
}

func (s *sheet) hasFault(key string) bool {
	return slices.ContainsFunc(s.faults, func(f Fault) bool { return f.Key == key })
}

func (m *Manifest) readRetry(t *table, d Defaults) {
	_, retriesGiven := t.left["retries"]
	r := &m.Unit.Retry
	r.Retries = t.count("retries", d.Retries, task.MaxRetries)
	r.Interval = t.duration("retry_interval", d.RetryInterval, 0)
	r.Backoff = t.number("backoff", d.Backoff, 1, 100)
	r.Jitter = t.number("jitter", d.Jitter, 0, 1)
	// No retries, written out, means that a repeat does harm, unless it is said
	// that it does not.
	m.Unit.Idempotent = t.flag("idempotent", m.Unit.Resident || !(retriesGiven && r.Retries == 0))
	m.Unit.Fresh = t.flag("fresh", false)
}

func (m *Manifest) readContract(t *table) {
	u := &m.Unit
	u.Context = slices.Clone(t.texts("context", nil))
	slices.Sort(u.Context)
	u.Context = slices.Compact(u.Context)
	for _, key := range u.Context {
		if err := task.CheckKey(key); err != nil {
			t.fault("context", err.Error())
		}
	}
	if u.Fresh && len(u.Context) == 0 {
		t.fault("fresh", "has no meaning without context = [...], the keys that must not change meanwhile")
	}
	u.In, u.Out = rules(t, "in"), rules(t, "out")
	if err := u.ReadyRules(); err != nil && len(t.sheet.faults) == 0 { // else named one by one
		t.fault("", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	names := make([]string, len(u.In))
	for i := range u.In {
		names[i] = u.In[i].Name
	}
	t.oneVariableEach("in", "IN_", names)
	t.oneVariableEach("context", "CTX_", u.Context)
}

func (t *table) oneVariableEach(key, prefix string, names []string) {
	seen := map[string]string{}
	for _, name := range names {
		v := variable(prefix, name)
		if other, there := seen[v]; there {
			at := key
			if key == "in" {
				at += "." + name
			}
			t.fault(at, fmt.Sprintf("%s and %s would both be the variable %s: rename one", other, name, v))
		}
		seen[v] = name
	}
}

func rules(t *table, side string) []task.Rule {
	var list []task.Rule
	for _, inner := range t.tables(side) {
		name := strings.TrimPrefix(inner.path, side+".")
		before := len(t.sheet.faults)
		r := inner.rule(name)
		inner.finish()
		if task.Reserved(name) {
			t.fault(side+"."+name, "the name belongs to the protocol: choose another")
		}
		if len(t.sheet.faults) == before {
			if err := r.Prepare(); err != nil {
				t.fault(side+"."+name, strings.TrimPrefix(err.Error(), name+": "))
			}
		}
		list = append(list, r)
	}
	return list
}

func (t *table) rule(name string) task.Rule {
	r := task.Rule{Name: name}
	kind, err := task.ParseKind(t.text("type", "string"))
	if err != nil {
		t.fault("type", err.Error())
	}
	r.Kind = kind
	r.Required = t.flag("required", false)
	_, r.HasDefault = t.left["default"]
	r.Default = t.literal("default")
	r.Min, r.Max = t.literal("min"), t.literal("max")
	r.MinLength, r.MaxLength = t.count("min_length", 0, math.MaxInt32), t.count("max_length", 0, math.MaxInt32)
	r.Enum = taken(t, "enum", "an array of values", nil, toLiterals)
	r.Pattern = t.text("pattern", "")
	r.Description = t.text("description", "")
	return r
}

func (t *table) literal(key string) string {
	return taken(t, key, "a plain value", "", literal)
}

var plainVariable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// checkVariable refuses the inheritance of what the executor sets itself.
func checkVariable(name string) error {
	if !plainVariable.MatchString(name) {
		return fmt.Errorf("%q is no variable's name", task.Printable(name))
	}
	for _, prefix := range []string{"IN_", "OUT_", "CTX_", "APOLLO_"} {
		if strings.HasPrefix(name, prefix) {
			return fmt.Errorf("%s: variables that begin with %s are set by the executor", name, prefix)
		}
	}
	return nil
}

// variable is the environment's name for an input or a state key.
func variable(prefix, name string) string {
	b := []byte(prefix + name)
	for i, c := range b {
		switch {
		case c >= 'a' && c <= 'z':
			b[i] = c - 'a' + 'A'
		case c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		default:
			b[i] = '_'
		}
	}
	return string(b)
}

var reference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expand puts variables into an argument; the result stays one argument.
func expand(argument string, lookup func(string) string) string {
	if !strings.Contains(argument, "${") {
		return argument
	}
	return reference.ReplaceAllStringFunc(argument, func(m string) string { return lookup(m[2 : len(m)-1]) })
}

// checkArguments refuses a ${NAME} that no attempt of this unit will have.
func (m *Manifest) checkArguments(t *table) {
	known := slices.Concat(ownVariables, m.Env)
	for i := range m.Unit.In {
		known = append(known, variable("IN_", m.Unit.In[i].Name))
	}
	for _, key := range m.Unit.Context {
		known = append(known, variable("CTX_", key))
	}
	for key, step := range m.steps() {
		if step.Text {
			continue
		}
		names := known
		if key == "undo" {
			for i := range m.Unit.Out {
				names = append(slices.Clip(names), variable("OUT_", m.Unit.Out[i].Name))
			}
		}
		for _, ref := range reference.FindAllStringSubmatch(strings.Join(step.Args, "\n"), -1) {
			m.checkArgument(t, key, ref[1], names)
		}
	}
	slices.SortFunc(t.sheet.faults, func(a, b Fault) int { return a.Line - b.Line })
}

func (m *Manifest) checkArgument(t *table, key, name string, known []string) {
	switch near := task.Nearest(name, known); {
	case slices.Contains(known, name):
	case slices.ContainsFunc(m.Secrets, func(s Secret) bool { return s.Name == name }):
		t.fault(key, fmt.Sprintf("${%s} would show a secret to everyone who lists processes: have the program read the variable %s", name, name))
	case near != "":
		t.fault(key, fmt.Sprintf("${%s} is no variable of this unit: did you mean ${%s}?", name, near))
	default:
		t.fault(key, fmt.Sprintf("${%s} is no variable of this unit", name))
	}
}

// program is a step's program: a name with a slash in it belongs to the unit's
// folder, a plain one is looked for in the unit's PATH.
func (m *Manifest) program(name, path string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	if strings.ContainsRune(name, '/') {
		return filepath.Join(m.Dir, name), nil
	}
	if file := inPath(name, path); file != "" {
		return file, nil
	}
	return "", fmt.Errorf("program %s is not in PATH (%s): install it, or have it inherited with env = [\"PATH\"]", name, task.Printable(path))
}

// inPath looks for a program; empty: it is not there.
func inPath(name, path string) string {
	for _, dir := range filepath.SplitList(path) {
		if file := filepath.Join(dir, name); filepath.IsAbs(dir) && executable(file) {
			return file
		}
	}
	return ""
}
