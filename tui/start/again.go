package start

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// attachAgain is the command that comes back to this controller, from any folder.
func (s *serve) attachAgain() string {
	words := append(s.calledAs(), "attach", "--data", absolute(s.config.Data))
	if file := s.config.Auth.OperatorTokenFile; file != "" {
		words = append(words, "--token-file", absolute(file))
	}
	return command(words)
}

// calledAs is how a person can call this very program again.
func (p *program) calledAs() []string {
	self, err := os.Executable()
	if err != nil {
		return []string{"apollo11"}
	}
	return nameOf(self)
}

// nameOf is what to type for a program: its name where the shell finds it by
// that, and what go built for a moment is built again.
func nameOf(self string) []string {
	if strings.Contains(filepath.ToSlash(self), "/go-build") {
		return []string{"go", "run", "."}
	}
	name := filepath.Base(self)
	found, err := exec.LookPath(name)
	if err != nil {
		return []string{self}
	}
	one, err1 := os.Stat(found)
	two, err2 := os.Stat(self)
	if err1 != nil || err2 != nil || !os.SameFile(one, two) {
		return []string{self}
	}
	return []string{name}
}

// absolute is a path from the root, as far as that can be known.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// command is words as a shell reads them.
func command(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = w
		plain := strings.IndexFunc(w, func(r rune) bool {
			return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && !strings.ContainsRune("_./:=@%+-", r)
		}) < 0
		if !plain || w == "" {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
