package unit

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"apollo11/engine/task"
)

func mustParse(t *testing.T, text string) *Manifest {
	t.Helper()
	m, faults := parse("units/u.toml", "/units", []byte(text), testDefaults)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return m
}

func TestManifestDefaults(t *testing.T) {
	m := mustParse(t, `execute = "true"`)
	want := &Manifest{
		Unit: task.Unit{
			Name: "u", Timeout: 20 * time.Second, Idempotent: true,
			Retry: task.Retry{Retries: 1, Interval: 2 * time.Second, Backoff: 1, Jitter: 0.1},
		},
		Env: []string{"HOME", "PATH"}, Grace: 100 * time.Millisecond,
		Execute: Step{Args: []string{"/bin/sh", "-c", "true"}, Text: true},
		Dir:     "/units", print: m.print,
	}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("%+v", m)
	}
}

func TestManifestInFull(t *testing.T) {
	m := mustParse(t, "\xef\xbb\xbf"+strings.ReplaceAll(`name = "u"
engine = "exec"
kind = "task"
version = 3
prepare = ["./check", "${IN_URL}"]
execute = ["curl", "-o", "data.csv", "${IN_URL}", "${CTX_NEXT_BATCH}", "${HOME}", "${APOLLO_UNIT_DIR}"]
cleanup = ["rm", "x"]
timeout = "1m30s"
prepare_timeout = 2.5
cleanup_timeout = 7
grace = 0
retries = 4
retry_interval = 0
backoff = 2
jitter = 0.5
idempotent = false
context = ["next.batch", "a", "a"]
fresh = true
env = ["HOME", "PATH", "HOME"]
[in.url]
type = "string"
required = true
pattern = "^https?://"
min_length = 1
max_length = 10
description = "where"
[in.n]
type = "int"
default = 5
min = 1
max = 10
enum = [5, 6]
[out.t]
type = "time"
min = 2026-01-01T00:00:00Z
[out."a.b"]
type = "float"
max = 1.5
`, "\n", "\r\n"))
	u := m.Unit
	if u.Version != 3 || u.Timeout != 90*time.Second || u.Prepare != 2500*time.Millisecond || u.Cleanup != 7*time.Second || m.Grace != 0 {
		t.Errorf("%+v", m)
	}
	if (u.Retry != task.Retry{Retries: 4, Backoff: 2, Jitter: 0.5}) || u.Idempotent || !u.Fresh {
		t.Errorf("%+v", u)
	}
	if !slices.Equal(u.Context, []string{"a", "next.batch"}) || !slices.Equal(m.Env, []string{"HOME", "PATH"}) {
		t.Errorf("%v %v", u.Context, m.Env)
	}
	if len(u.In) != 2 || u.In[0].Name != "n" || u.In[0].Default != "5" || !slices.Equal(u.In[0].Enum, []string{"5", "6"}) || u.In[1].Pattern != "^https?://" {
		t.Errorf("in %+v", u.In)
	}
	if len(u.Out) != 2 || u.Out[0].Name != "a.b" || u.Out[0].Max != "1.5" || u.Out[1].Min != "2026-01-01T00:00:00Z" {
		t.Errorf("out %+v", u.Out)
	}
	back, err := task.ParseUnit(string(u.AppendText(nil)))
	if err != nil || string(back.AppendText(nil)) != string(u.AppendText(nil)) {
		t.Errorf("the contract does not survive its text: %v", err)
	}
}

func TestIdempotent(t *testing.T) {
	for text, want := range map[string]bool{
		"":                                true,
		"retries = 0":                     false,
		"retries = 0\nidempotent = true":  true,
		"retries = 3\nidempotent = false": false,
		"retries = 3":                     true,
	} {
		if got := mustParse(t, "execute = 'true'\n"+text).Unit.Idempotent; got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestManifestFaults(t *testing.T) {
	const ok = "execute = 'true'\n"
	tests := []struct{ text, want string }{
		{"", "units/u.toml: execute: is missing: what should the unit run?"},
		{"execute = ''", "units/u.toml:1: execute: is missing: what should the unit run?"},
		{ok + "retires = 1", "units/u.toml:2: retires: unknown key: did you mean retries?"},
		{ok + "zzzzzzzzzzz = 1", "units/u.toml:2: zzzzzzzzzzz: unknown key"},
		{ok + "retries = '1'", `units/u.toml:2: retries: is "1", want a whole number from 0 to 1000`},
		{ok + "retries = -1", `units/u.toml:2: retries: is -1, want a whole number from 0 to 1000`},
		{ok + "retries = 1.5", `units/u.toml:2: retries: is 1.5, want a whole number from 0 to 1000`},
		{ok + "backoff = 0.5", `units/u.toml:2: backoff: is 0.5, want a number from 1 to 100`},
		{ok + "jitter = 1.5", `units/u.toml:2: jitter: is 1.5, want a number from 0 to 1`},
		{ok + "retries = 1001", `units/u.toml:2: retries: is 1001, want a whole number from 0 to 1000`},
		{ok + "backoff = nan", `units/u.toml:2: backoff: is NaN, want a number from 1 to 100`},
		{ok + "timeout = '30 s'", `units/u.toml:2: timeout: is "30 s", want a duration such as "30s", or a number of seconds, from 1ms to a year`},
		{ok + "timeout = 0", `units/u.toml:2: timeout: is 0, want a duration such as "30s", or a number of seconds, from 1ms to a year`},
		{ok + "timeout = 1e300", `units/u.toml:2: timeout: is 1e+300, want a duration such as "30s", or a number of seconds, from 1ms to a year`},
		{ok + "timeout = true", `units/u.toml:2: timeout: is true, want a duration such as "30s", or a number of seconds, from 1ms to a year`},
		{ok + "idempotent = 1", `units/u.toml:2: idempotent: is 1, want true or false`},
		{ok + "env = 'PATH'", `units/u.toml:2: env: is "PATH", want an array of strings`},
		{ok + "env = ['A=B']", `units/u.toml:2: env: "A=B" is no variable's name`},
		{ok + "env = ['IN_X']", `units/u.toml:2: env: IN_X: variables that begin with IN_ are set by the executor`},
		{ok + "name = 'v'", `units/u.toml:2: name: v, but the file is called u.toml: one of the two must change`},
		{ok + "name = '../v'", `units/u.toml:2: name: name "../v": want [a-z0-9][a-z0-9_.-]{0,63}, no two dots in a row`},
		{ok + "engine = 'podman'", `units/u.toml:2: engine: unknown engine "podman": this build knows shell, exec, python, container`},
		{ok + "kind = 'daemon'", `units/u.toml:2: kind: unknown kind "daemon": this build knows task, resident`},
		{ok + "fresh = true", "units/u.toml:2: fresh: has no meaning without context = [...], the keys that must not change meanwhile"},
		{ok + "context = ['a b']", `units/u.toml:2: context: key "a b": want 1 to 128 of A-Z a-z 0-9 _ . -`},
		{ok + "context = ['a.b', 'a-b']", "units/u.toml:2: context: a-b and a.b would both be the variable CTX_A_B: rename one"},
		{ok + "in = 1", "units/u.toml:2: in: is 1, want tables such as [in.NAME]"},
		{ok + "[in]\nx = 1", "units/u.toml:3: in.x: is 1, want a table: [in.x]"},
		{ok + "[in.a]\n[in.A]", "units/u.toml:2: in.a: A and a would both be the variable IN_A: rename one"},
		{ok + "[in.status]", "units/u.toml:2: in.status: the name belongs to the protocol: choose another"},
		{ok + "[in.\"set.x\"]", "units/u.toml:2: in.set.x: the name belongs to the protocol: choose another"},
		{ok + "[in.\"a b\"]", `units/u.toml:2: in.a b: key "a b": want 1 to 128 of A-Z a-z 0-9 _ . -`},
		{ok + "[in.a]\ntyp = 'int'", "units/u.toml:3: in.a.typ: unknown key: did you mean type?"},
		{ok + "[in.a]\ntype = 'integer'", `units/u.toml:3: in.a.type: unknown type "integer": want string, int, float, bool, time, path`},
		{ok + "[in.a]\ntype = 'int'\nmin = 5\nmax = 4", "units/u.toml:2: in.a: min 5 is above max 4"},
		{ok + "[in.a]\ntype = 'int'\ndefault = 'x'", `units/u.toml:2: in.a: default: a = "x": not a whole number of 64 bits`},
		{ok + "[in.a]\npattern = '('", "units/u.toml:2: in.a: pattern: error parsing regexp: missing closing ): `(`"},
		{ok + "[in.a]\nenum = [[1]]", "units/u.toml:3: in.a.enum: is an array of 1, want an array of values"},
		{"execute = ['a']", `units/u.toml:1: execute: is an array of 1, want a string, a text for /bin/sh (a program with its arguments needs engine = "exec")`},
		{"engine = 'exec'\nexecute = 'a b'", `units/u.toml:2: execute: is "a b", want an array, program first: ["prog", "argument"] (a shell text needs engine = "shell")`},
		{"engine = 'exec'\nexecute = ['', 'x']", `units/u.toml:2: execute: the program's name is empty`},
		{"engine = 'exec'\nexecute = ['a', '${IN_ULR}']\n[in.url]", "units/u.toml:2: execute: ${IN_ULR} is no variable of this unit: did you mean ${IN_URL}?"},
		{`execute = "a\u0000b"`, "units/u.toml:1: execute: holds a NUL byte"},
		{"execute = \"\"\"\nretires = 1\n\"\"\"\nretires = 2", "units/u.toml:4: retires: unknown key: did you mean retries?"},
		{"execute = 'x\n", "units/u.toml:1: execute: strings cannot contain newlines"},
		{"execute = 'a'\nexecute = 'b'", "units/u.toml:2: execute: Key 'execute' has already been defined."},
		{"\xff", "units/u.toml:1: invalid UTF-8 byte: 0xff"},
		{strings.Repeat("#", 70000), "units/u.toml: 70000 bytes: a manifest has at most 65536"},
	}
	for _, tt := range tests {
		m, faults := parse("units/u.toml", "/units", []byte(tt.text), testDefaults)
		if m != nil || len(faults) != 1 || faults[0].Error() != tt.want {
			t.Errorf("%.80q\n got %v\nwant %s", tt.text, faults, tt.want)
		}
	}
}

func TestAllFaultsAtOnce(t *testing.T) {
	_, faults := parse("u.toml", "/units", []byte("retires = 1\nengine = 'pyhton'\ntimeout = 'x'\n[in.a]\ntype = 'x'\n[out.b]\nmni = 1"), testDefaults)
	if len(faults) != 6 { // and execute is missing
		t.Errorf("%d: %v", len(faults), faults)
	}
}

func TestLoad(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"good.toml": "execute = 'true'", "b.toml": "execute = 'true'", "bad.toml": "execute = 1",
		"notes.txt": "", ".hidden.toml": "x", "Bad Name.toml": "execute = 'true'",
	} {
		write(t, filepath.Join(dir, name), text)
	}
	write(t, filepath.Join(outside, "evil.toml"), "execute = 'true'")
	for _, err := range []error{
		os.Mkdir(filepath.Join(dir, "folder.toml"), 0o700),
		os.Symlink(filepath.Join(outside, "evil.toml"), filepath.Join(dir, "evil.toml")),
		os.Symlink("good.toml", filepath.Join(dir, "link.toml")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	set, err := Load(dir, testDefaults)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, u := range set.Units() {
		names = append(names, u.Name)
	}
	if want := []string{"b", "good", "link"}; !slices.Equal(names, want) {
		t.Errorf("loaded %v, want %v", names, want)
	}
	if set.Get("good").Dir != dir || set.Get("bad") != nil {
		t.Error("Get")
	}
	var faulty []string
	for _, f := range set.Faults {
		faulty = append(faulty, filepath.Base(f.File))
	}
	if want := []string{"Bad Name.toml", "bad.toml", "evil.toml"}; !slices.Equal(faulty, want) {
		t.Errorf("faults %v", set.Faults)
	}
	if _, err := Load(filepath.Join(dir, "gone"), testDefaults); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Error(err)
	}
}

func TestStamp(t *testing.T) {
	dir := t.TempDir()
	stamp := func() string {
		s, err := Stamp(dir)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	file := filepath.Join(dir, "a.toml")
	seen := []string{stamp()}
	change := func(what string, changes bool) {
		s := stamp()
		if slices.Contains(seen, s) == changes {
			t.Errorf("%s: changed %v", what, !changes)
		}
		seen = append(seen, s)
	}
	write(t, file, "1")
	change("added", true)
	change("nothing", false)
	write(t, file, "12")
	change("written", true)
	if err := os.Chtimes(file, time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	change("touched", true)
	write(t, filepath.Join(dir, "a.toml.swp"), "1")
	change("something else", false)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if stamp() != seen[0] {
		t.Error("removed")
	}
}

func FuzzManifest(f *testing.F) {
	f.Add("execute = 'true'\n[in.a]\ntype = 'int'\ndefault = 3\n")
	f.Add("engine = 'exec'\nexecute = ['a', '${IN_B}']\nin = { b = { min_length = 1 } }\n")
	f.Add("timeout = 1e99\nexecute = \"\"\"\nx\"\"\"\ncontext=['a']\nfresh=true")
	f.Add("engine='python'\nexecute='a.py'\nvenv='v'\nrequirements=['a==1']\nkind='resident'\nundo=['b.py']\nsecrets={A='file:a'}\n")
	f.Add("engine='container'\nimage='i'\nexecute=['a']\narguments=['-t']\nnetwork=true\nresources={cpu=.5,memory='1MiB',disk=3}\ndeps=['a','b']\n[out.p]\ntype='path'\npattern='x'")
	f.Add("[out.x]\ntype='time'\nmin=2020-01-01\nmax=07:00:00\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, faults := parse("units/u.toml", "/units", []byte(text), testDefaults)
		if (m == nil) == (len(faults) == 0) {
			t.Fatalf("manifest %v, faults %v", m, faults)
		}
		for _, fault := range faults {
			if s := fault.Error(); s != task.Printable(s) || fault.Line > strings.Count(text, "\n")+1 {
				t.Fatalf("fault %q line %d", s, fault.Line)
			}
		}
		if m == nil {
			return
		}
		contract := string(m.Unit.AppendText(nil))
		back, err := task.ParseUnit(contract)
		if err != nil || string(back.AppendText(nil)) != contract {
			t.Fatalf("the contract does not survive its text: %v\n%s", err, contract)
		}
	})
}
