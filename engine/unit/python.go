package unit

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"apollo11/engine/task"
)

// Interpreter is what a unit of engine python runs in.
type Interpreter struct {
	Program      string   // a name in PATH, or a file
	Venv         string   // folder of a virtual environment, absolute; empty: none
	Requirements []string // NAME==VERSION, as declared: nothing installs them
	Check        string   // a text for /bin/sh that says whether all is there; empty: none
}

var (
	pinned     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9,._-]+\])?==[A-Za-z0-9][A-Za-z0-9.!+_-]*$`)
	pythonKeys = []string{"python", "venv", "requirements", "check"}
)

func (m *Manifest) readPython(t *table, dir string) {
	if m.Engine != Python {
		t.onlyFor(Python, pythonKeys)
		return
	}
	p := &Interpreter{Program: t.text("python", "")}
	p.Venv = t.text("venv", "")
	p.Requirements = t.texts("requirements", nil)
	p.Check = t.text("check", "")
	for _, r := range p.Requirements {
		if !pinned.MatchString(r) {
			t.fault("requirements", fmt.Sprintf("%q: want NAME==VERSION, so that every host runs the same", task.Printable(r)))
		}
	}
	if p.Venv != "" {
		if p.Program != "" {
			t.fault("python", "a virtual environment brings its own: leave out python or venv")
		}
		if !filepath.IsAbs(p.Venv) {
			p.Venv = filepath.Join(dir, p.Venv)
		}
		p.Program = filepath.Join(p.Venv, "bin", "python")
	}
	if p.Program == "" {
		p.Program = "python3"
	}
	if !filepath.IsAbs(p.Program) && strings.ContainsRune(p.Program, '/') {
		p.Program = filepath.Join(dir, p.Program)
	}
	m.Python = p
	for key, s := range m.steps() {
		if !s.none() && s.Args[0] != "-c" && (!filepath.IsLocal(s.Args[0]) || reference.MatchString(s.Args[0])) {
			t.fault(key, fmt.Sprintf("%s: want a file within the units folder", task.Printable(s.Args[0])))
		}
	}
}

// onlyFor names keys that have no meaning for this unit's engine.
func (t *table) onlyFor(e Engine, keys []string) {
	for _, key := range keys {
		if _, there := t.left[key]; there {
			t.take(key)
			t.fault(key, fmt.Sprintf("has a meaning only with engine = %q", e))
		}
	}
	t.known = slices.DeleteFunc(t.known, func(k string) bool { return slices.Contains(keys, k) })
}

// find looks for the interpreter on this host.
func (p *Interpreter) find() (file string, err error) {
	if filepath.IsAbs(p.Program) {
		if executable(p.Program) {
			return p.Program, nil
		}
		if p.Venv != "" {
			return "", fmt.Errorf("there is no virtual environment in %s: make it with python3 -m venv", p.Venv)
		}
		return "", fmt.Errorf("there is no interpreter %s", p.Program)
	}
	if file = inPath(p.Program, os.Getenv("PATH")); file == "" {
		return "", fmt.Errorf("%s is not in PATH: install it", p.Program)
	}
	return file, nil
}

// pythonCommand has the interpreter write no caches beside the manifests, and hold
// back nothing that it prints.
func (m *Manifest) pythonCommand(step []string) (program string, args []string, err error) {
	args = append([]string{m.Python.Program, "-B", "-u"}, step...)
	if step[0] != "-c" {
		args[3] = filepath.Join(m.Dir, step[0])
		if _, err := os.Stat(args[3]); err != nil {
			return "", nil, err
		}
	}
	return m.found, args, nil
}
