package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	"apollo11/tui"
)

// The README's tables are made from what they are about: `UPDATE=1 go test -run
// README .` writes them anew.
func TestREADMETables(t *testing.T) {
	file, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(file)
	for name, table := range map[string]string{"settings": settingsTable(t), "keys": tui.Keys()} {
		begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->"
		head, rest, ok := strings.Cut(readme, begin)
		kept, tail, closed := strings.Cut(rest, end)
		if !ok || !closed {
			t.Fatalf("README.md has no place for the %s", name)
		}
		if strings.TrimSpace(kept) != strings.TrimSpace(table) {
			if os.Getenv("UPDATE") == "" {
				t.Errorf("README.md: the table of %s is another now (UPDATE=1 go test -run README . writes it):\n%s", name, table)
			}
			readme = head + begin + "\n" + table + "\n" + end + tail
		}
	}
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile("README.md", []byte(readme), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

var (
	sectionLine = regexp.MustCompile(`^\[(\w+)\]\s*(?:# (.*))?$`)
	settingLine = regexp.MustCompile(`^(\w+) = (.*?)\s+# (.*)$`)
)

// settingsTable is config.toml as a table; every key in it must have its line.
func settingsTable(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("config.toml")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| setting | default | |\n|---|---|---|\n")
	row := func(name, value, what string) {
		b.WriteString("| `" + name + "` | " + value + " | " + strings.ReplaceAll(what, "|", `\|`) + " |\n")
	}
	section, told := "", []string{}
	for line := range strings.SplitSeq(string(text), "\n") {
		if m := sectionLine.FindStringSubmatch(line); m != nil {
			if section = m[1] + "."; m[2] != "" {
				row(section+"…", "", m[2])
			}
		} else if m := settingLine.FindStringSubmatch(line); m != nil {
			told = append(told, section+m[1])
			row(section+m[1], "`"+m[2]+"`", m[3])
		}
	}
	var all map[string]any
	meta, err := toml.Decode(string(text), &all)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range meta.Keys() {
		if name := key.String(); meta.Type(key...) != "Hash" && !slices.Contains(told, name) {
			t.Errorf("config.toml: %s has no comment on its line", name)
		}
	}
	return b.String()
}

// What the README tells a newcomer to type first is what the program has.
func TestREADMECommands(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"$ go run . demo ", "`go run . demo --no-tui`", "apollo11 attach"} {
		if !strings.Contains(string(readme), want) {
			t.Errorf("README.md does not say %q", want)
		}
	}
}
