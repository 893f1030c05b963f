package unit

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"apollo11/engine/task"
)

// need skips a test by the name of what it needs, but not where CI has promised it.
func need(t testing.TB, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err == nil {
			continue
		}
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not installed", program)
		}
		t.Skipf("needs %s", program)
	}
}

func TestPython(t *testing.T) {
	need(t, "python3")
	const answer = `
import os, json
with open(os.environ["APOLLO_INPUT"]) as f: n = json.load(f)["inputs"]["n"]
with open(os.environ["APOLLO_OUTPUT"], "a") as f: f.write(f"twice={2 * n}\n")
`
	const contract = "\n[in.n]\ntype = 'int'\n"
	tests := []struct{ name, manifest, script string }{
		{"a text", "execute = '''" + answer + "'''", ""},
		{"a file", "execute = 'twice.py'", answer},
		{"a file and arguments", "execute = ['twice.py', '${IN_N}', '${APOLLO_TASK}']", "import sys\nassert sys.argv[1:] == ['21', 't1'], sys.argv\nimport beside" + answer},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, "engine = 'python'\nprepare = 'print(1)'\n"+tt.manifest+contract).inputs("n", "21")
			dir := r.job.Manifest.Dir
			if tt.script != "" {
				write(t, filepath.Join(dir, "twice.py"), tt.script)
				write(t, filepath.Join(dir, "beside.py"), "")
			}
			o := r.run()
			if got, _ := o.Outputs.Get("twice"); o.Status != task.Success || got != "42" || r.logged.String() != "1\n" {
				t.Errorf("%+v, log %q", o, r.logged.String())
			}
			if _, err := os.Stat(filepath.Join(dir, "__pycache__")); err == nil {
				t.Error("a cache was written beside the manifests")
			}
		})
	}
}

func TestPythonFaults(t *testing.T) {
	need(t, "python3")
	tests := []struct {
		execute string
		class   task.Class
		says    string
	}{
		{"raise ValueError('no')", task.ExecuteFailed, "exit code 1: ValueError: no"},
		{"gone.py", task.PrepareFailed, "gone.py: no such file"},
	}
	for _, tt := range tests {
		r := newRig(t, "engine = 'python'\nexecute = \"\"\""+tt.execute+"\"\"\"\n")
		if o := r.run(); o.Class != tt.class || !strings.Contains(o.Error, tt.says) {
			t.Errorf("%s: %v %s", tt.execute, o.Class, o.Error)
		}
	}
}

func TestVenv(t *testing.T) {
	need(t, "python3")
	python, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "u.toml"), "engine = 'python'\nvenv = 'v'\nexecute = 'import sys, os; print(sys.prefix, os.environ[\"VIRTUAL_ENV\"])'\n")
	set := mustLoad(t, dir)
	if len(set.Unavailable) != 1 || !strings.Contains(set.Unavailable[0].Reason, "python3 -m venv") || set.Get("u") != nil || len(set.Units()) != 0 || len(set.Contracts()) != 1 {
		t.Fatalf("%+v", set)
	}
	if set.Stale() {
		t.Error("stale at once")
	}
	// What python3 -m venv makes, less pip.
	venv := filepath.Join(dir, "v")
	if err := os.MkdirAll(filepath.Join(venv, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(venv, "pyvenv.cfg"), "home = "+filepath.Dir(strings.TrimSpace(string(python)))+"\n")
	if err := os.Symlink(strings.TrimSpace(string(python)), filepath.Join(venv, "bin/python")); err != nil {
		t.Fatal(err)
	}
	if !set.Stale() {
		t.Error("not stale though it can run now")
	}
	r := newRig(t, shell("true"))
	r.job.Manifest = mustLoad(t, dir).Get("u")
	if o := r.run(); o.Status != task.Success || r.logged.String() != venv+" "+venv+"\n" {
		t.Errorf("%+v, log %q", o, r.logged.String())
	}
}

func mustLoad(t testing.TB, dir string) *Set {
	t.Helper()
	set, err := Load(dir, testDefaults)
	if err != nil || len(set.Faults) > 0 {
		t.Fatalf("load: %v %v", err, set.Faults)
	}
	return set
}

// A unit whose engine is missing is left out, and says what to do.
func TestUnavailable(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "p.toml"), "engine = 'python'\nexecute = 'x = 1'\n")
	write(t, filepath.Join(dir, "c.toml"), "engine = 'container'\nimage = 'i'\nexecute = 'true'\n")
	write(t, filepath.Join(dir, "s.toml"), "execute = 'true'\n")
	t.Setenv("PATH", t.TempDir())
	set := mustLoad(t, dir)
	if len(set.Unavailable) != 2 || len(set.Units()) != 1 || len(set.Contracts()) != 3 {
		t.Fatalf("%+v", set)
	}
	for i, want := range []string{"neither podman nor docker is in PATH: install one", "python3 is not in PATH: install it"} {
		if set.Unavailable[i].Reason != want {
			t.Errorf("%q, want %q", set.Unavailable[i].Reason, want)
		}
	}
}
