package unit

import (
	"reflect"
	"slices"
	"testing"

	"apollo11/engine/task"
)

func TestTraits(t *testing.T) {
	m := mustParse(t, `
execute = 'true'
undo = 'true'
deps = ["b", "a"]
nondeterministic = true
resources = { cpu = 0.5, memory = "256MiB", disk = 1000 }
secrets = { B = "file:b", A = "env:THE_A", C = "file:/run/c" }
`)
	want := task.Traits{
		Deps: []string{"b", "a"}, Resources: task.Resources{CPU: 500, Memory: 256 << 20, Disk: 1000}, Undo: true, Varies: true,
	}
	if !reflect.DeepEqual(m.Unit.Traits, want) {
		t.Errorf("%+v", m.Unit.Traits)
	}
	if secrets := []Secret{{"A", "THE_A", ""}, {"B", "", "/units/b"}, {"C", "", "/run/c"}}; !slices.Equal(m.Secrets, secrets) {
		t.Errorf("%+v", m.Secrets)
	}
	back, err := task.ParseUnit(string(m.Unit.AppendText(nil)))
	if err != nil || !reflect.DeepEqual(back.Traits, want) {
		t.Errorf("%+v: %v", back, err)
	}
}

func TestImage(t *testing.T) {
	d := testDefaults
	d.ContainerArgs = []string{"--runtime", "runc"}
	for text, want := range map[string]Image{
		"":                               {"i", false, []string{"--runtime", "runc"}},
		"network = true":                 {"i", true, []string{"--runtime", "runc"}},
		"arguments = ['--read-only']":    {"i", false, []string{"--runtime", "runc", "--read-only"}},
		"env = ['LANG']\narguments = []": {"i", false, []string{"--runtime", "runc"}},
	} {
		m, faults := parse("u.toml", "/units", []byte("engine = 'container'\nimage = 'i'\nexecute = 'true'\n"+text), d)
		if len(faults) > 0 || !reflect.DeepEqual(*m.Container, want) {
			t.Errorf("%q: %v %+v", text, faults, m)
		}
		if m != nil && len(m.Env) > 1 {
			t.Errorf("%q: inherits %v", text, m.Env)
		}
	}
}

func TestTraitFaults(t *testing.T) {
	const ok = "execute = 'true'\n"
	tests := []struct{ text, want string }{
		{ok + "deps = ['A']", `units/u.toml:2: deps: name "A": want [a-z0-9][a-z0-9_.-]{0,63}, no two dots in a row`},
		{ok + "deps = ['u']", `units/u.toml:2: deps: u would wait for itself`},
		{ok + "deps = ['a', 'a']", `units/u.toml:2: deps: a stands there twice`},
		{ok + "nondeterministic = 1", `units/u.toml:2: nondeterministic: is 1, want true or false`},
		{ok + "resources = 1", `units/u.toml:2: resources: is 1, want a table such as { cpu = 1, memory = "256MiB", disk = "1GiB" }`},
		{ok + "[resources]\ncpu = -1", `units/u.toml:3: resources.cpu: is -1, want a number from 0 to 65536`},
		{ok + "resources = { memory = '256 mib' }", `units/u.toml:2: resources.memory: is "256 mib", want a size such as "64KiB", "256MiB" or "1GiB", or a number of bytes, up to 1024TiB`},
		{ok + "resources = { disk = '9999999999TiB' }", `units/u.toml:2: resources.disk: is "9999999999TiB", want a size such as "64KiB", "256MiB" or "1GiB", or a number of bytes, up to 1024TiB`},
		{ok + "resources = { mem = '1GiB' }", "units/u.toml:2: resources.mem: unknown key"},
		{ok + "resources = { memoy = '1GiB' }", "units/u.toml:2: resources.memoy: unknown key: did you mean memory?"},
		{ok + "secrets = 'env:X'", `units/u.toml:2: secrets: is "env:X", want a table such as { DB_PASSWORD = "env:DB_PASSWORD" }`},
		{ok + "secrets = { PW = 'hunter22' }", `units/u.toml:2: secrets.PW: want "env:VARIABLE" or "file:PATH", never the secret itself`},
		{ok + "secrets = { PW = 'env:' }", `units/u.toml:2: secrets.PW: want "env:VARIABLE" or "file:PATH", never the secret itself`},
		{ok + "secrets = { PW = 1 }", `units/u.toml:2: secrets.PW: is 1, want a string`},
		{ok + "secrets = { IN_PW = 'env:X' }", `units/u.toml:2: secrets.IN_PW: IN_PW: variables that begin with IN_ are set by the executor`},
		{ok + "secrets = { PATH = 'env:X' }", `units/u.toml:2: secrets.PATH: is inherited too: leave it out of env`},
		{ok + "engine = 'container'\nimage = 'i'\nenv = []\nsecrets = { HOME = 'env:X' }", `units/u.toml:5: secrets.HOME: podman and docker look at this variable themselves: give the secret another name`},
		{"engine = 'exec'\nexecute = ['a', '${PW}']\nsecrets = { PW = 'env:PW' }", "units/u.toml:2: execute: ${PW} would show a secret to everyone who lists processes: have the program read the variable PW"},
		{"engine = 'exec'\nexecute = ['a', '${OUT_N}']\nundo = ['a', '${OUT_N}']\n[out.n]", "units/u.toml:2: execute: ${OUT_N} is no variable of this unit"},
		{ok + "kind = 'resident'\ntimeout = 3", `units/u.toml:3: timeout: a resident unit runs on and on: leave it out`},
		{ok + "venv = 'v'", `units/u.toml:2: venv: has a meaning only with engine = "python"`},
		{ok + "image = 'v'", `units/u.toml:2: image: has a meaning only with engine = "container"`},
		{ok + "engine = 'python'\nrequirements = ['numpy']", `units/u.toml:3: requirements: "numpy": want NAME==VERSION, so that every host runs the same`},
		{ok + "engine = 'python'\npython = 'python3'\nvenv = 'v'", `units/u.toml:3: python: a virtual environment brings its own: leave out python or venv`},
		{"engine = 'python'\nexecute = '../x.py'", `units/u.toml:2: execute: ../x.py: want a file within the units folder`},
		{"engine = 'python'\nexecute = ['${IN_X}']\n[in.x]", `units/u.toml:2: execute: ${IN_X}: want a file within the units folder`},
		{"engine = 'python'\nexecute = 1", `units/u.toml:2: execute: is 1, want a string, or an array, program first: ["prog", "argument"]`},
		{ok + "engine = 'container'", `units/u.toml: image: is missing: what should the container be made of?`},
		{ok + "engine = 'container'\nimage = '--privileged'", `units/u.toml:3: image: "--privileged" is no image's name`},
		{"\xff\xfee\x00", "units/u.toml: is UTF-16 text: save it as UTF-8"},
		{"\xfe\xff\x00e", "units/u.toml: is UTF-16 text: save it as UTF-8"},
		{"e\x00x\x00", "units/u.toml: holds a NUL byte: save it as UTF-8 text"},
	}
	for _, tt := range tests {
		m, faults := parse("units/u.toml", "/units", []byte(tt.text), testDefaults)
		if m != nil || len(faults) != 1 || faults[0].Error() != tt.want {
			t.Errorf("%.80q\n got %v\nwant %s", tt.text, faults, tt.want)
		}
	}
}
