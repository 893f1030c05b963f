package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"apollo11/engine/task"
)

// load puts text into a file that is called config.toml.
func load(t testing.TB, text string, env []string, flags map[string]string) (Config, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("config.toml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(testDefaults, "config.toml", env, flags)
}

var testDefaults []byte

func TestMain(m *testing.M) {
	var err error
	if testDefaults, err = os.ReadFile("../../config.toml"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestDefaultsAreTheFile(t *testing.T) {
	want := Config{
		Listen: "127.0.0.1:7011", Data: "data", Limits: map[string]int{},
		Heartbeat: Heartbeat{10 * time.Second, 30 * time.Second, 2, 5 * time.Second},
		Scheduler: Scheduler{256, 3},
		Wire:      Wire{2 * time.Second, 1 << 20, 20000},
		Local:     Local{2, "units", "missions", "share"},
		Engine:    Engine{true},
		Unit:      Unit{1, 2 * time.Second, 1, 0.1, 5 * time.Minute, 5 * time.Second, []string{"PATH", "HOME", "LANG", "TZ"}, nil},
		Retention: Retention{100000, 168 * time.Hour, 168 * time.Hour, 720 * time.Hour, 720 * time.Hour, 168 * time.Hour, 1 << 30, 7, "03:00"},
		Log:       Log{"apollo11.log", 64 << 20, 5},
		Console:   Console{Theme: "auto"},
	}
	got, err := Load(testDefaults, "", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("defaults\n got %+v\nwant %+v", got, want)
	}
	again, err := Load(testDefaults, "../../config.toml", nil, nil)
	if err != nil || !reflect.DeepEqual(again, want) {
		t.Errorf("config.toml over itself: %v\n got %+v", err, again)
	}
}

// Every field of Config is reached by exactly one setting, so that none can be
// forgotten in the list.
func TestEverySettingHasOneField(t *testing.T) {
	var c Config
	settings := c.settings()
	fields := countFields(reflect.TypeOf(c)) - 2 // Limits and State have their own readers
	if len(settings) != fields {
		t.Errorf("%d settings for %d fields", len(settings), fields)
	}
	variables := map[string]string{"APOLLO_ADDR": "the commands' own"}
	for _, s := range settings {
		if other := variables[Variable(s.name)]; other != "" {
			t.Errorf("%s: variable %s is taken by %s", s.name, Variable(s.name), other)
		}
		variables[Variable(s.name)] = s.name
	}
}

func countFields(typ reflect.Type) (n int) {
	for f := range typ.Fields() {
		if f.Type.Kind() == reflect.Struct {
			n += countFields(f.Type)
		} else {
			n++
		}
	}
	return n
}

func TestEverySettingIsExplained(t *testing.T) {
	line := regexp.MustCompile(`^[a-z_]+ = .*$`)
	for i, text := range strings.Split(string(testDefaults), "\n") {
		if line.MatchString(text) && !strings.Contains(text, "  # ") && !strings.Contains(text, " # ") {
			t.Errorf("config.toml:%d: no comment: %s", i+1, text)
		}
	}
}

func TestOrder(t *testing.T) {
	file := "listen = '127.0.0.1:1'\n[local]\nexecutors = 3\nunits = 'u'\n"
	env := []string{
		"APOLLO_LOCAL_EXECUTORS=9", "APOLLO_LOCAL_EXECUTORS=0", "APOLLO_LISTEN=127.0.0.1:2",
		"APOLLO_ADDR=elsewhere:1", "APOLLO_TASK=t-1", "APOLLO_LOCAL_EXECUTOR=7", "PATH=/bin", "APOLLO_LIMITS_FETCH=2",
		"APOLLO_UNIT_ENV=PATH,APOLLO_X",
	}
	c, err := load(t, file, env, map[string]string{"listen": "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "127.0.0.1:0" || c.Local.Executors != 0 || c.Local.Units != "u" || c.Local.Missions != "missions" {
		t.Errorf("got listen %q, local %+v", c.Listen, c.Local)
	}
	if !slices.Equal(c.Unit.Env, []string{"PATH", "APOLLO_X"}) {
		t.Errorf("unit.env %q", c.Unit.Env)
	}
}

// A command's arguments keep their order, and one may stand twice.
func TestWordsKeepOrder(t *testing.T) {
	got, err := Load(testDefaults, "", []string{"APOLLO_UNIT_CONTAINER_ARGS=--ulimit,b=2,--ulimit,a=1"}, nil)
	if want := []string{"--ulimit", "b=2", "--ulimit", "a=1"}; err != nil || !slices.Equal(got.Unit.ContainerArgs, want) {
		t.Errorf("%q, %v", got.Unit.ContainerArgs, err)
	}
}

func TestFaults(t *testing.T) {
	tests := []struct {
		name, file string
		env        []string
		flags      map[string]string
		want       string
	}{
		{"unknown key", "\n[heartbeat]\nintervall = '3s'\n", nil, nil,
			"config.toml:3: heartbeat.intervall: unknown key; did you mean heartbeat.interval?"},
		{"in no section", "executors = 3", nil, nil,
			"config.toml:1: executors: unknown key; did you mean local.executors?"},
		{"nothing near", "zzzzzzzzzzzzz = 3", nil, nil, "config.toml:1: zzzzzzzzzzzzz: unknown key"},
		{"unknown section", "[hartbeat]\ninterval='1s'", nil, nil,
			"config.toml:1: hartbeat: unknown section; did you mean [heartbeat]?"},
		{"section as value", "heartbeat = 3", nil, nil, "config.toml:1: heartbeat: is a section: write [heartbeat]"},
		{"sections as list", "[[limits]]\nfetch = 3", nil, nil, "config.toml:1: limits: is a section: write [limits]"},
		{"value as section", "[heartbeat.interval]\na=1", nil, nil,
			"config.toml:1: heartbeat.interval: want a duration in quotes, such as \"10s\", found a section"},
		{"text for number", "[local]\nexecutors = '2'", nil, nil,
			"config.toml:2: local.executors: want a whole number without quotes, found the text \"2\""},
		{"number for text", "listen = 7011", nil, nil, "config.toml:1: listen: want a text in quotes, found the number 7011"},
		{"number for duration", "[wire]\nhold = 2", nil, nil,
			"config.toml:2: wire.hold: want a duration in quotes, such as \"10s\", found the number 2"},
		{"number for switch", "debug = 1", nil, nil, "config.toml:1: debug: want true or false, found the number 1"},
		{"bad duration", "[wire]\nhold = '2 parsecs'", nil, nil,
			"config.toml:2: wire.hold: \"2 parsecs\": want a duration such as 500ms, 10s, 5m or 168h"},
		{"long hold", "[wire]\nhold = '5s'", nil, nil, "config.toml:2: wire.hold: \"5s\": out of range: want 1ms to 4s"},
		{"bad size", "[wire]\nmax_frame = '1M'", nil, nil,
			"config.toml:2: wire.max_frame: \"1M\": want a size such as 512B, 64KiB, 1MiB or 1GiB"},
		{"small size", "[wire]\nmax_frame = '1KiB'", nil, nil,
			"config.toml:2: wire.max_frame: \"1KiB\": out of range: want 256KiB to 64MiB"},
		{"no old log", "[log]\nkeep = 0", nil, nil, "config.toml:2: log.keep: \"0\": out of range: want 1 to 10000"},
		{"range", "[local]\nexecutors = -1", nil, nil, "config.toml:2: local.executors: \"-1\": out of range: want 0 to 1000"},
		{"NaN", "[unit]\njitter = nan", nil, nil, "config.toml:2: unit.jitter: \"NaN\": out of range: want 0 to 1"},
		{"port", "listen = 'localhost:70110'", nil, nil, "config.toml:1: listen: \"localhost:70110\": port \"70110\": want 0 to 65535"},
		{"no port", "listen = 'localhost'", nil, nil,
			"config.toml:1: listen: \"localhost\": want host:port, such as 127.0.0.1:7011 or [::1]:7011"},
		{"theme", "[console]\ntheme = 'drak'", nil, nil,
			"config.toml:2: console.theme: \"drak\": want one of auto, dark, light, mono, colour-blind; did you mean dark?"},
		{"clock", "[retention]\nbackup_at = '24:00'", nil, nil,
			"config.toml:2: retention.backup_at: \"24:00\": want a time of day such as 03:00"},
		{"variable name", "[unit]\nenv = ['PATH', 'A=B']", nil, nil,
			"config.toml:2: unit.env: \"PATH,A=B\": \"A=B\" is not the name of a variable"},
		{"list item", "[unit]\nenv = [1]", nil, nil,
			"config.toml:2: unit.env: want a list of texts, such as [\"PATH\", \"HOME\"], found a list"},
		{"empty folder", "data = ' '", nil, nil, "config.toml:1: data: \" \": must not be empty"},
		{"two lines", `data = "a\nb"`, nil, nil, "config.toml:1: data: \"a\\nb\": want one line"},
		{"limit zero", "[limits]\nfetch = 0", nil, nil,
			"config.toml:2: limits.fetch: 0: out of range: want 1 to 1000000; `apollo11 pause TYPE` stops a type"},
		{"limit text", "[limits]\nfetch = '4'", nil, nil,
			"config.toml:2: limits.fetch: want a whole number without quotes, found the text \"4\""},
		{"limit name", "[limits]\n'a b' = 4", nil, nil,
			"config.toml:2: limits.a b: task type \"a b\": want 1 to 64 of A-Z a-z 0-9 _ . -"},
		{"no TOML", "listen = \n", nil, nil, "config.toml:1: expected value but found '\\n' instead"},
		{"twice", "debug = true\ndebug = true\n", nil, nil, "config.toml:2: Key 'debug' has already been defined."},
		{"hostile key", "\"a\\u001b[2J\" = 1", nil, nil, "config.toml:1: a\\x1b[2J: unknown key"},
		{"variable", "", []string{"APOLLO_LOCAL_EXECUTORS=two"}, nil,
			"APOLLO_LOCAL_EXECUTORS: local.executors: \"two\": want a whole number"},
		{"variable empty", "", []string{"APOLLO_DEBUG="}, nil, "APOLLO_DEBUG: debug: \"\": want true or false"},
		{"flag", "", nil, map[string]string{"local.executors": "99999999999999999999"},
			"--local.executors: local.executors: \"99999999999999999999\": out of range: want 0 to 1000"},
		{"flag unknown", "", nil, map[string]string{"listn": "x"}, "--listn: listn: unknown setting; did you mean listen?"},
		{"together", "[heartbeat]\ntimeout = '1s'", nil, nil,
			"config.toml:2: heartbeat.timeout: 1s is shorter than heartbeat.interval 10s"},
		{"tls", "[auth]\ntls_cert = 'c.pem'", nil, nil,
			"config.toml:2: auth.tls_cert: auth.tls_cert and auth.tls_key are needed together"},
		{"client ca", "[auth]\nclient_ca = 'c.pem'", nil, nil, "config.toml:2: auth.client_ca: needs auth.tls_cert and auth.tls_key"},
		{"ssh", "", []string{"APOLLO_CONSOLE_SSH_LISTEN=127.0.0.1:2222"}, nil,
			"APOLLO_CONSOLE_SSH_LISTEN: console.ssh_listen: needs console.authorized_keys"},
		{"all at once", "debug = 1\nlisten = 2\n[nope]\n", []string{"APOLLO_LOG_KEEP=x"}, map[string]string{"data": ""},
			"config.toml:1: debug: want true or false, found the number 1\n" +
				"config.toml:2: listen: want a text in quotes, found the number 2\n" +
				"config.toml:3: nope: unknown section\n" +
				"APOLLO_LOG_KEEP: log.keep: \"x\": want a whole number\n" +
				"--data: data: \"\": must not be empty"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := load(t, tt.file, tt.env, tt.flags)
			var faults *Error
			if !errors.As(err, &faults) {
				t.Fatalf("got %v, want *Error", err)
			}
			if err.Error() != tt.want {
				t.Errorf("got\n%s\nwant\n%s", err, tt.want)
			}
		})
	}
}

func TestForms(t *testing.T) {
	tests := []struct{ name, text string }{
		{"CRLF", "debug = true\r\n[local]\r\nexecutors = 5\r\n"},
		{"BOM", "\xef\xbb\xbfdebug = true\n[local]\nexecutors = 5\n"},
		{"inline", "debug = true\nlocal = {executors = 5}\n"},
		{"dotted", "debug = true\nlocal.executors = 5\n"},
		{"brackets in texts", "debug = true\n# [[[[[[[[[[[[[[[[[[[[[[[[\n[local]\nunits = '[[[[[[[[[[[[[[[[[[[[[['\nexecutors = 5\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := load(t, tt.text, nil, nil)
			if err != nil || !c.Debug || c.Local.Executors != 5 {
				t.Errorf("got %+v, %v", c.Local, err)
			}
		})
	}
}

func TestFilePath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "配置 – données")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "настройки.toml")
	if err := os.WriteFile(name, []byte("data = 'данные/数据'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(testDefaults, name, nil, nil)
	if err != nil || c.Data != "данные/数据" {
		t.Errorf("got %q, %v", c.Data, err)
	}
	if _, err = Load(testDefaults, name+"x", nil, nil); !errors.Is(err, os.ErrNotExist) || strings.Count(err.Error(), name) != 1 {
		t.Errorf("absent file: %v", err)
	}
	if _, err = Load(testDefaults, dir, nil, nil); err == nil {
		t.Error("a folder was read as a file")
	}
}

func TestBounds(t *testing.T) {
	for name, text := range map[string]string{
		"large":    strings.Repeat("# much\n", maxFile/7+1),
		"brackets": "a = " + strings.Repeat("[", maxFile/2),
		"tables":   "a = " + strings.Repeat("{a=", maxFile/4),
		"dots":     strings.Repeat("a.", maxFile/4) + "a = 1",
		"header":   "[" + strings.Repeat("a.", maxFile/4) + "a]",
	} {
		if _, err := load(t, text, nil, nil); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestStateKeys(t *testing.T) {
	c, err := load(t, `
[limits]
fetch = 4
[state.output_total]
type = "int"
from = "output_count"
apply = "add"
[state."next.batch"]
type = "int"
from = "next_batch"
min = 0
default = 7
[state.mode]
enum = ["fast", "slow"]
max_length = 4
description = "how"
[state.seen]
type = "time"
from = "at"
apply = "max"
min = 2026-01-31T08:00:00Z
[state.rate]
type = "float"
max = 1
required = true
`, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range c.State {
		names = append(names, c.State[i].Name)
	}
	if want := []string{"mode", "next.batch", "output_total", "rate", "seen"}; !slices.Equal(names, want) {
		t.Fatalf("keys %q, want %q", names, want)
	}
	if c.Limits["fetch"] != 4 {
		t.Errorf("limits %v", c.Limits)
	}
	batch, total, seen := c.State[1], c.State[2], c.State[4]
	if batch.Default != "7" || !batch.HasDefault || batch.From != "next_batch" || batch.Apply != task.Set || batch.Check("-1") == nil {
		t.Errorf("next.batch: %+v", batch)
	}
	if total.Kind != task.Int || total.Apply != task.Add || total.From != "output_count" {
		t.Errorf("output_total: %+v", total)
	}
	if seen.Check("2026-01-31T07:59:59Z") == nil || seen.Check("2026-01-31T08:00:00Z") != nil {
		t.Errorf("seen: bound not kept: %+v", seen)
	}
}

func TestStateFaults(t *testing.T) {
	tests := []struct{ file, want string }{
		{"[state]\na = 1", "config.toml:2: state.a: want a section [state.KEY], found the number 1"},
		{"[state.a.b]\ntype = 'int'", `config.toml:1: state.a.b: a key with dots is written in quotes: [state."a.b"]`},
		{"[state.'sys.x']", "config.toml:1: state.sys.x: keys that begin with sys. belong to the controller"},
		{"[state.'a b']", `config.toml:1: state.a b: key "a b": want 1 to 128 of A-Z a-z 0-9 _ . -`},
		{"[state.a]\ntyp = 'int'", "config.toml:2: state.a.typ: unknown key; did you mean type?"},
		{"[state.a]\ntype = 'path'", "config.toml:2: state.a.type: a path is no state: want string, int, float, bool or time"},
		{"[state.a]\ntype = 'in'", `config.toml:2: state.a.type: unknown type "in": want string, int, float, bool, time, path`},
		{"[state.a]\napply = 'del'", `config.toml:2: state.a.apply: "del": want set, add, max or min`},
		{"[state.a]\ntype='int'\napply = 'add'", `config.toml:1: state.a: apply = "add" needs from, the output that it applies`},
		{"[state.a]\nfrom='b'\napply = 'add'", "config.toml:1: state.a: a string cannot be added: want type int or float"},
		{"[state.a]\nfrom='b'\napply = 'max'", "config.toml:1: state.a: a string has no max: want type int, float or time"},
		{"[state.a]\nfrom='status'", `config.toml:2: state.a.from: "status" belongs to the protocol and is no output`},
		{"[state.a]\ntype='int'\nenum=['x']", `config.toml:1: state.a: enum: "x": not a whole number of 64 bits`},
		{"[state.a]\nmin=1", "config.toml:1: state.a: a: min has no meaning for a string"},
		{"[state.a]\nmin_length=-1", `config.toml:2: state.a.min_length: "-1": out of range: want 0 to 131072`},
		{"[state.a]\nrequired='yes'", `config.toml:2: state.a.required: want true or false, found the text "yes"`},
		{"[state.a]\ndefault=[1]", "config.toml:2: state.a.default: want one value, found a list"},
		{"[state.a]\nenum='x'", `config.toml:2: state.a.enum: want a list, found the text "x"`},
		{"[state.a]\npattern='('", "config.toml:1: state.a: a: pattern: error parsing regexp: missing closing ): `(`"},
	}
	for _, tt := range tests {
		_, err := load(t, tt.file, nil, nil)
		if err == nil || err.Error() != tt.want {
			t.Errorf("%q\n got %v\nwant %s", tt.file, err, tt.want)
		}
	}
}

func TestHash(t *testing.T) {
	hash := func(text string) string {
		c, err := load(t, text, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c.Hash()
	}
	base := hash("")
	for _, same := range []string{
		"[heartbeat]\ntimeout = '0.5m'", "[wire]\nmax_frame = '1024KiB'", "[unit]\nbackoff = 1",
		"[unit]\nenv = ['TZ', 'LANG', 'HOME', 'PATH']", "# words\n", "[limits]\n",
	} {
		if hash(same) != base {
			t.Errorf("%q changed the hash", same)
		}
	}
	seen := map[string]string{base: ""}
	for _, other := range []string{
		"debug = true", "[limits]\na = 1", "[limits]\na = 2", "[limits]\nb = 1", "[state.a]", "[state.b]",
		"[state.a]\nfrom = 'x'", "[state.a]\ndefault = ''", "[state.a]\nenum = ['x', 'y']", "[state.a]\nenum = ['y', 'x']",
		"[state.a]\ndescription = 'd'", "[unit]\nenv = []",
	} {
		h := hash(other)
		if was, ok := seen[h]; ok {
			t.Errorf("%q and %q have one hash", other, was)
		}
		seen[h] = other
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0B", "0B": "0B", "7B": "7B", "1024B": "1KiB", "1 MiB": "1MiB", "1MB": "1000000B", "1kB": "1000B",
		"1KB": "1000B", "3GiB": "3GiB", "2048GiB": "2TiB",
	} {
		s, err := ParseSize(text)
		if err != nil || s.String() != want {
			t.Errorf("%s: got %s, %v, want %s", text, s, err, want)
		}
		if back, err := ParseSize(s.String()); err != nil || back != s {
			t.Errorf("%s: comes back as %d, %v", s, back, err)
		}
	}
	for _, text := range []string{"", "B", "1", "-1B", "1.5MiB", "9999999999TiB", "18446744073709551616B", "1mib", "MiB"} {
		if s, err := ParseSize(text); err == nil {
			t.Errorf("%q gave %d", text, s)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(string(testDefaults))
	f.Add("[state.a]\ntype = 'int'\nmin = 1.5\n[limits]\n'x' = 3\n")
	f.Add("a.b.c = {d = [1, '''x''']}\n[[e]]\n")
	f.Fuzz(func(t *testing.T, text string) {
		l := loader{config: Config{Limits: map[string]int{}}, state: map[string]StateKey{}, from: map[string]string{}}
		l.settings = l.config.settings()
		l.document("f", []byte(text))
		for _, fault := range l.faults {
			if s := fault.String(); strings.ContainsAny(s, "\n\x1b") || s == "" {
				t.Errorf("a fault that cannot be printed: %q", s)
			}
		}
		if len(l.faults) == 0 {
			_ = l.config.Hash()
		}
	})
}
