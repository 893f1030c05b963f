package unit

import (
	"fmt"
	"strings"

	"apollo11/engine/task"
)

// Engine is how a unit's steps become processes.
type Engine uint8

const (
	Shell     Engine = iota // a text for /bin/sh -c
	Exec                    // a program with its arguments
	Python                  // a text or a file for an interpreter
	Container               // any of the first two, within an image
	engines
)

var engineNames = [engines]string{"shell", "exec", "python", "container"}

func (e Engine) String() string {
	if e < engines {
		return engineNames[e]
	}
	return fmt.Sprintf("engine(%d)", uint8(e))
}

func parseEngine(text string) (Engine, error) {
	for e := Shell; e < engines; e++ {
		if engineNames[e] == text {
			return e, nil
		}
	}
	return Shell, fmt.Errorf("unknown engine %q: this build knows %s", task.Printable(text), strings.Join(engineNames[:], ", "))
}

// Step is what one step of a unit runs; the zero value is no step.
type Step struct {
	Args []string // program and arguments; for python a file, or -c and a text
	Text bool     // a text of the manifest: nothing in it is replaced
}

func (s Step) none() bool { return len(s.Args) == 0 }

const (
	wantArray  = `an array, program first: ["prog", "argument"] (a shell text needs engine = "shell")`
	wantText   = `a string, a text for /bin/sh (a program with its arguments needs engine = "exec")`
	wantEither = `a string, or an array, program first: ["prog", "argument"]`
)

// step reads a step in its engine's form; an empty one is none.
func (m *Manifest) step(t *table, key string) Step {
	_, isText := t.left[key].(string)
	_, isArray := t.left[key].([]any)
	switch {
	case m.Engine == Exec, isArray && m.Engine != Shell:
		return t.argumentStep(key)
	case m.Engine != Shell && t.left[key] != nil && !isText:
		taken(t, key, wantEither, nil, toTexts)
		return Step{}
	}
	text := taken(t, key, wantText, "", as[string])
	if strings.Contains(text, "\x00") {
		t.fault(key, "holds a NUL byte")
	}
	switch {
	case strings.TrimSpace(text) == "":
		return Step{}
	case m.Engine != Python:
		return Step{Args: []string{"/bin/sh", "-c", text}, Text: true}
	case strings.HasSuffix(text, ".py") && !strings.ContainsAny(text, "\n;()"):
		return Step{Args: []string{text}, Text: true}
	}
	return Step{Args: []string{"-c", text}, Text: true}
}

func (t *table) argumentStep(key string) Step {
	args := taken(t, key, wantArray, nil, toTexts)
	if len(args) > 0 && args[0] == "" {
		t.fault(key, "the program's name is empty")
	}
	if strings.Contains(strings.Join(args, ""), "\x00") {
		t.fault(key, "holds a NUL byte")
	}
	return Step{Args: args}
}

// command is a process before it is started.
type command struct {
	program string // a file
	args    []string
	env     []string
}

// command is what starts a step.
func (a *attempt) command(s Step) (c command, err error) {
	lookup := func(name string) string { return valueOf(a.env, name) }
	args := s.Args
	if !s.Text {
		args = make([]string, len(s.Args))
		for i, arg := range s.Args {
			args[i] = expand(arg, lookup)
		}
	}
	c = command{args: args, env: a.env}
	switch a.Manifest.Engine {
	case Container:
		return a.containerCommand(args)
	case Python:
		c.program, c.args, err = a.Manifest.pythonCommand(args)
	default:
		c.program, err = a.Manifest.program(args[0], lookup("PATH"))
	}
	return c, err
}
