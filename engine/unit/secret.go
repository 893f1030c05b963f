package unit

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"apollo11/engine/task"
)

// Secret is a variable whose value only the executor knows.
type Secret struct {
	Name string // of the variable
	Env  string // the executor's variable that holds it; empty: it is in a file
	File string // absolute
}

// shortestSecret is what can be masked without masking half of all that is printed.
const shortestSecret = 4

// longestSecret bounds a file that is read for one.
const longestSecret = 64 << 10

func (m *Manifest) readSecrets(t *table) {
	inner := t.table("secrets", `a table such as { DB_PASSWORD = "env:DB_PASSWORD" }`)
	if inner == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(inner.left)) {
		s := Secret{Name: name}
		text := inner.text(name, "")
		kind, from, _ := strings.Cut(text, ":")
		switch {
		case checkVariable(name) != nil:
			inner.fault(name, checkVariable(name).Error())
		case slices.Contains(m.Env, name):
			inner.fault(name, "is inherited too: leave it out of env")
		case m.Engine == Container && slices.Contains(clientVariables, name):
			inner.fault(name, "podman and docker look at this variable themselves: give the secret another name")
		case kind == "env" && plainVariable.MatchString(from):
			s.Env = from
		case kind == "file" && from != "" && !strings.Contains(from, "\x00"):
			if s.File = from; !filepath.IsAbs(from) {
				s.File = filepath.Join(m.Dir, from)
			}
		case !t.sheet.hasFault(join(inner.path, name)):
			inner.fault(name, `want "env:VARIABLE" or "file:PATH", never the secret itself`)
		}
		m.Secrets = append(m.Secrets, s)
	}
}

// resolve reads a secret's value; no error holds it.
func (s Secret) resolve(environ []string) (value string, err error) {
	from := s.File
	if s.Env != "" {
		var there bool
		from = "variable " + s.Env
		if value, there = inherited(environ, s.Env); !there {
			return "", fmt.Errorf("secret %s: the executor has no %s", s.Name, from)
		}
	} else if value, err = readSecret(s.File); err != nil {
		return "", fmt.Errorf("secret %s: %w", s.Name, err)
	}
	switch {
	case len(value) < shortestSecret:
		return "", fmt.Errorf("secret %s: %s holds %d bytes: too short to be masked, want at least %d", s.Name, from, len(value), shortestSecret)
	case strings.Contains(value, "\x00"):
		return "", fmt.Errorf("secret %s: %s holds a NUL byte, which no variable can", s.Name, from)
	case len(value) > longestSecret:
		return "", fmt.Errorf("secret %s: %s holds %d bytes, at most %d", s.Name, from, len(value), longestSecret)
	}
	return value, nil
}

// readSecret drops the newline that every editor puts at the end.
func readSecret(file string) (string, error) {
	data, err := readSmall(file, 0)
	return strings.TrimRight(string(data), "\r\n"), err
}

// takeSecrets resolves what the manifest names; from here on all that leaves
// the attempt is masked.
func (a *attempt) takeSecrets() error {
	for _, s := range a.Manifest.Secrets {
		value, err := s.resolve(a.Environ)
		if err != nil {
			return err
		}
		a.secrets.add(s.Name, value)
		a.secretEnv = append(a.secretEnv, s.Name+"="+value)
	}
	return nil
}

// refuseSecrets refuses an answer that gives a secret away.
func (a *attempt) refuseSecrets(where string, data []byte) error {
	if name := a.secrets.within(string(data)); name != "" {
		return fmt.Errorf("%s holds the value of the secret %s: a secret may not leave the executor", where, task.Printable(name))
	}
	return nil
}
