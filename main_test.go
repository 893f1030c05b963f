package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/rogpeppe/go-internal/testscript"

	"apollo11/engine"
	"apollo11/engine/mission"
	"apollo11/engine/unit"
	"apollo11/tui"
	"apollo11/tui/cli"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"apollo11": func() { os.Exit(run()) }})
}

// Each script is the program as a person uses it: real processes, real files,
// real signals. A controller that a script starts listens on a free port and has
// no local executors unless it asks for some.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "tui/cli/testdata/scripts",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("APOLLO_LISTEN", "127.0.0.1:0")
			e.Setenv("APOLLO_LOCAL_EXECUTORS", "0")
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("TMPDIR", e.WorkDir)
			e.Setenv("TZ", "UTC")
			// More than a script could hold as text.
			return os.WriteFile(filepath.Join(e.WorkDir, "big"), bytes.Repeat([]byte{'a'}, 200<<10), 0o600)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"eventually": eventually, "ready": ready, "slay": slay, "flip": flip, "cut": cut,
			"weather": weather, "terminal": terminal, "press": press, "resize": resize, "sees": sees, "workson": worksOn,
		},
		Condition: func(name string) (bool, error) {
			if tool, ok := strings.CutPrefix(name, "tool:"); ok {
				_, err := exec.LookPath(tool)
				if err != nil && os.Getenv("CI") == "true" {
					return false, fmt.Errorf("%s is not installed, and CI=true", tool)
				}
				return err == nil, nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
	})
}

// patience is how long a script waits for what real processes do.
const patience = 15 * time.Second

// poll asks until it is told yes.
func poll(ts *testscript.TestScript, what string, done func() bool) {
	for deadline := time.Now().Add(patience); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			ts.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// ready [DIR]: waits until a controller takes commands on a folder.
func ready(ts *testscript.TestScript, _ bool, args []string) {
	dir := "data"
	if len(args) > 0 {
		dir = args[0]
	}
	poll(ts, "a controller on "+dir, func() bool {
		_, err := os.Stat(ts.MkAbs(filepath.Join(dir, "ADDR")))
		return err == nil
	})
}

// eventually TEXT COMMAND…: runs a command until its output has the text.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: eventually TEXT COMMAND…")
	}
	var out string
	deadline := time.Now().Add(patience)
	for {
		err := ts.Exec(args[1], args[2:]...)
		out = ts.ReadFile("stdout") + ts.ReadFile("stderr")
		if err == nil && strings.Contains(out, args[0]) != neg {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("not within %s; last output:\n%s", patience, out)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// slay [DIR]: ends the controller of a folder as kill -9 does, and waits for it.
func slay(ts *testscript.TestScript, _ bool, args []string) {
	dir := "data"
	if len(args) > 0 {
		dir = args[0]
	}
	text := strings.TrimSpace(ts.ReadFile(filepath.Join(dir, "LOCK")))
	pid, err := strconv.Atoi(text)
	ts.Check(err)
	ts.Check(syscall.Kill(pid, syscall.SIGKILL))
	lock, err := os.Open(ts.MkAbs(filepath.Join(dir, "LOCK")))
	ts.Check(err)
	defer lock.Close()
	poll(ts, "the end of the controller", func() bool { // of all its threads: the first may be a zombie before the last is gone
		return syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
	})
	ts.Check(os.Remove(ts.MkAbs(filepath.Join(dir, "ADDR"))))
}

// journalFile is the folder's first journal file.
func journalFile(ts *testscript.TestScript, dir string) string {
	files, err := filepath.Glob(ts.MkAbs(filepath.Join(dir, "journal-*.log")))
	ts.Check(err)
	if len(files) == 0 {
		ts.Fatalf("no journal in %s", dir)
	}
	slices.Sort(files)
	return files[0]
}

// flip DIR AT: flips a bit of the first journal file.
func flip(ts *testscript.TestScript, _ bool, args []string) {
	name := journalFile(ts, args[0])
	b, err := os.ReadFile(name)
	ts.Check(err)
	at, err := strconv.Atoi(args[1])
	ts.Check(err)
	b[at] ^= 1
	ts.Check(os.WriteFile(name, b, 0o600))
}

// cut DIR N: takes the last n bytes off the newest journal file.
func cut(ts *testscript.TestScript, _ bool, args []string) {
	files, err := filepath.Glob(ts.MkAbs(filepath.Join(args[0], "journal-*.log")))
	ts.Check(err)
	slices.Sort(files)
	name := files[len(files)-1]
	info, err := os.Stat(name)
	ts.Check(err)
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(os.Truncate(name, info.Size()-int64(n)))
}

// weather holds the demo's answer against a plain computation over its data.
func weather(ts *testscript.TestScript, _ bool, _ []string) {
	file, err := mission.Examples().Open("data/seattle-weather.csv")
	ts.Check(err)
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	ts.Check(err)
	days, rain, warmest, month := 0, 0, math.Inf(-1), ""
	for _, row := range rows[1:] {
		whole, tenth, ok := strings.Cut(row[1], ".")
		n, err := strconv.Atoi(whole + tenth)
		ts.Check(err)
		if !ok || len(tenth) != 1 {
			ts.Fatalf("rain %q has not one decimal", row[1])
		}
		degrees, err := strconv.ParseFloat(row[2], 64)
		ts.Check(err)
		days, rain, warmest = days+1, rain+n, max(warmest, degrees)
		month = max(month, row[0][:4]+row[0][5:7])
	}
	want := fmt.Sprintf("answer: days_total=%d rain_total=%d (tenths of a millimetre) warmest=%g next_batch=%s\n", days, rain, warmest, month)
	if got := ts.ReadFile("stdout"); !strings.Contains(got, want) {
		ts.Fatalf("the demo's answer is not %s", want)
	}
}

// arrows is the map of the house: what each package may import of the others.
// A package that is missing here fails the test: a new room is a decision.
var arrows = map[string][]string{
	"apollo11":                {"tui/start"},
	"apollo11/engine":         {"engine/mission", "engine/task", "engine/view"},
	"apollo11/engine/config":  {"engine/task"}, // contracts of state keys are task.Rule
	"apollo11/engine/mission": {"engine/task"},
	"apollo11/engine/task":    {},
	"apollo11/engine/unit":    {"engine/task"},
	"apollo11/engine/view":    {"engine/task"}, // states and values are task's words
	"apollo11/snapshot":       {},
	"apollo11/tui":            {"engine/mission", "engine/task", "engine/view", "tui/hush"}, // hush: keeps the terminal library quiet at start
	"apollo11/tui/hush":       {},
	"apollo11/tui/cli":        {"engine/mission", "engine/task", "engine/view", "tui", "wire"}, // tui: attach
	"apollo11/wire":           {"engine/task", "engine/view"},
	"apollo11/wire/bench":     {"engine/task", "wire"},
	"apollo11/wire/executor":  {"engine/task", "engine/unit", "wire"},
	"apollo11/wire/server":    {"engine", "engine/mission", "engine/task", "engine/view", "wire"},
	// A running controller: the parts that main would wire, in a room of its own
	// so that main stays a map.
	"apollo11/wire/controller": {"engine", "engine/mission", "engine/task", "engine/view", "snapshot", "wire/server"},
	// The ways in which the program is started: configuration into options.
	"apollo11/tui/start": {
		"engine", "engine/config", "engine/mission", "engine/task", "engine/unit", "engine/view", "snapshot", "tui", "tui/cli", "wire", // tui: the log pane, and how the console was left
		"wire/bench", "wire/controller", "wire/executor", "wire/server",
	},
}

// homes are the libraries that one room has for itself.
var homes = map[string]string{
	"github.com/expr-lang/expr": "apollo11/engine/mission", // conditions
	"github.com/robfig/cron":    "apollo11/engine/mission", // reads time tables
	"go.yaml.in/yaml":           "apollo11/engine/mission", // the documents' mission files
}

func TestArrows(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		names := strings.Fields(line)
		allowed, known := arrows[names[0]]
		if !known {
			t.Errorf("%s is not on the map", names[0])
		}
		for _, name := range names[1:] {
			if room, ours := strings.CutPrefix(name, "apollo11/"); ours && !slices.Contains(allowed, room) {
				t.Errorf("%s imports %s: that arrow is not on the map", names[0], name)
			}
			if strings.HasPrefix(name, "github.com/spf13/cobra") && !strings.HasPrefix(names[0], "apollo11/tui/") {
				t.Errorf("%s imports the command-line library", names[0])
			}
			for library, home := range homes {
				if strings.HasPrefix(name, library) && names[0] != home {
					t.Errorf("%s imports %s, which is for %s", names[0], name, home)
				}
			}
		}
	}
}

// The timeline has words for every kind of record, and for no other.
func TestEveryRecordIsTold(t *testing.T) {
	if records, told := engine.Kinds(), cli.Kinds(); !slices.Equal(records, told) {
		t.Errorf("records are\n%s\ntold are\n%s", records, told)
	}
}

// clocks are the files that may read the clock; everybody else is given the time.
var clocks = []string{"engine/loop.go", "wire/executor/agent.go", "wire/conn.go"}

func TestClocks(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || slices.Contains(clocks, path) {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), "time.Now()") {
			t.Errorf("%s reads the clock: take the time as an argument", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// tmux runs the terminal multiplexer, with a server of the script's own.
func tmux(ts *testscript.TestScript, args ...string) (string, error) {
	cmd := exec.Command("tmux", append([]string{"-S", ts.MkAbs("tmux"), "-f", "/dev/null"}, args...)...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{
		"PATH", "HOME", "TMPDIR", "TZ", "LANG", "TERM", "APOLLO_LISTEN", "APOLLO_LOCAL_EXECUTORS",
	} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// terminal NAME WIDTH HEIGHT COMMAND: a real terminal in which a command runs.
// It stays when the command ends, so that its last words can be read.
func terminal(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 4 {
		ts.Fatalf("usage: terminal NAME WIDTH HEIGHT COMMAND")
	}
	ts.Defer(func() {
		tmux(ts, "kill-server")
		locks, _ := filepath.Glob(ts.MkAbs("apollo11-demo-*/data/LOCK"))
		for _, lock := range locks { // a controller outlives its terminal
			text, _ := os.ReadFile(lock)
			if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
	out, err := tmux(ts, "new-session", "-d", "-s", args[0], "-x", args[1], "-y", args[2], args[3]+"; exec sleep 600")
	if err != nil {
		ts.Fatalf("tmux: %v: %s", err, out)
	}
}

// press NAME KEY…: presses keys, by tmux's names or letter by letter.
func press(ts *testscript.TestScript, _ bool, args []string) {
	time.Sleep(200 * time.Millisecond) // a person reads first; the console insists on it in its dialogs
	if out, err := tmux(ts, append([]string{"send-keys", "-t", args[0]}, args[1:]...)...); err != nil {
		ts.Fatalf("tmux: %v: %s", err, out)
	}
}

// resize NAME WIDTH HEIGHT: another size for a terminal.
func resize(ts *testscript.TestScript, _ bool, args []string) {
	if out, err := tmux(ts, "resize-window", "-t", args[0], "-x", args[1], "-y", args[2]); err != nil {
		ts.Fatalf("tmux: %v: %s", err, out)
	}
}

// sees NAME PATTERN: waits until a terminal shows it, or, with !, does not.
func sees(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: sees NAME PATTERN")
	}
	pattern, err := regexp.Compile(args[1])
	ts.Check(err)
	screen := ""
	for deadline := time.Now().Add(3 * patience); ; time.Sleep(20 * time.Millisecond) {
		if screen, err = tmux(ts, "capture-pane", "-p", "-t", args[0]); err == nil && pattern.MatchString(screen) != neg {
			return
		}
		if time.Now().After(deadline) { // the demo takes its time, and a busy machine more
			ts.Fatalf("%s: not within %s; the terminal shows:\n%s", args[1], 3*patience, screen)
		}
	}
}

// worksOn: waits until more tasks have succeeded than had at first.
func worksOn(ts *testscript.TestScript, _ bool, _ []string) {
	succeeded := func() int64 {
		ts.Check(ts.Exec("apollo11", "status", "--json"))
		var status struct{ Tasks map[string]int64 }
		ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &status))
		return status.Tasks["succeeded"]
	}
	before := succeeded()
	poll(ts, "another task", func() bool { return succeeded() > before })
}

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

// What the README shows of units and of a mission can be copied: it passes the
// check together.
func TestReadmeExamples(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var checked []*mission.Mission
	for _, block := range regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		if name := regexp.MustCompile(`^# units/(\w+\.toml)\n`).FindStringSubmatch(block[1]); name != nil {
			if err := os.WriteFile(filepath.Join(dir, name[1]), []byte(block[1]), 0o600); err != nil {
				t.Fatal(err)
			}
		} else if strings.Contains(block[1], "[[units]]") {
			m, err := mission.Parse("numbers.toml", []byte(block[1]))
			if err != nil {
				t.Fatal(err)
			}
			checked = append(checked, m)
		}
	}
	set, err := unit.Load(dir, unit.Defaults{Retries: 1, Backoff: 1, Timeout: time.Minute})
	if err != nil || len(set.Faults) > 0 {
		t.Fatalf("%v, %v", set.Faults, err)
	}
	if n := len(set.Contracts()); n != 4 || len(checked) != 1 {
		t.Fatalf("%d units and %d missions in the README, want 4 and 1", n, len(checked))
	}
	for _, m := range checked {
		if _, err := m.Check(mission.Contracts{Units: set.Contracts()}, nil); err != nil {
			t.Error(err)
		}
	}
}
