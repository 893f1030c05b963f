package unit

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"apollo11/engine/task"
)

// The hash follows what runs: the manifest's text, and the program beside it.
func TestHash(t *testing.T) {
	dir := t.TempDir()
	manifest, script := filepath.Join(dir, "u.toml"), filepath.Join(dir, "bin", "go")
	if err := os.Mkdir(filepath.Dir(script), 0o700); err != nil {
		t.Fatal(err)
	}
	hashOf := func(m *Manifest) string {
		h, err := m.Hash()
		if err != nil || len(h) != 64 {
			t.Fatal(h, err)
		}
		return h
	}
	write(t, manifest, "engine = 'exec'\nexecute = ['bin/go']\n")
	write(t, script, "#!/bin/sh\n")
	m := mustLoad(t, dir).Get("u")
	first := hashOf(m)
	if again := mustLoad(t, dir); hashOf(again.Get("u")) != first || again.Hashes()["u"] != first {
		t.Error("the same unit has two hashes")
	}
	if err := os.Chtimes(script, time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if hashOf(m) != first {
		t.Error("a touch is a change")
	}
	write(t, script, "#!/bin/true")
	second := hashOf(m) // of the same length, without another load
	if second == first {
		t.Error("a change of the program is none")
	}
	write(t, manifest, "engine = 'exec'\nexecute = ['bin/go']\n# a remark\n")
	set := mustLoad(t, dir)
	if third := hashOf(set.Get("u")); third == first || third == second {
		t.Error("a change of the manifest is none")
	}
	if err := os.Remove(script); err != nil {
		t.Fatal(err)
	}
	if gone := hashOf(set.Get("u")); gone == first || set.Hashes()["u"] != gone {
		t.Errorf("%s %v", gone, set.Hashes())
	}
	// What cannot be read has no hash, but may be run.
	if err := os.Symlink("go", script); err != nil {
		t.Fatal(err)
	}
	again := mustLoad(t, dir)
	if hash, err := again.Get("u").Hash(); err == nil || len(again.Hashes()) != 0 {
		t.Errorf("%s %v", hash, again.Hashes())
	}
}

func TestOutcomeHasTheHash(t *testing.T) {
	r := newRig(t, shell("exit 3"))
	want, err := r.job.Manifest.Hash()
	if o := r.run(); o.UnitHash != want || err != nil || want == "" || o.Class != task.ExecuteFailed {
		t.Errorf("%+v, want %s", o, want)
	}
}

// A program counts if it lies beside the manifest, however it is named.
func TestOwnProgram(t *testing.T) {
	tests := []struct {
		engine Engine
		step   Step
		want   string
	}{
		{Exec, Step{Args: []string{"./go", "x/y"}}, "/units/go"},
		{Exec, Step{Args: []string{"bin/go"}}, "/units/bin/go"},
		{Exec, Step{Args: []string{"/units/go"}}, "/units/go"},
		{Exec, Step{Args: []string{"${APOLLO_UNIT_DIR}/go"}}, "/units/go"},
		{Exec, Step{Args: []string{"${IN_DIR}/go"}}, ""},
		{Exec, Step{Args: []string{"/bin/true"}}, ""},
		{Exec, Step{Args: []string{"/units/../bin/true"}}, ""},
		{Exec, Step{Args: []string{"true"}}, ""},
		{Python, Step{Args: []string{"a.py"}, Text: true}, "/units/a.py"},
		{Python, Step{Args: []string{"-c", "a.py"}, Text: true}, ""},
		{Shell, Step{Args: []string{"/bin/sh", "-c", "./go"}, Text: true}, ""},
		{Container, Step{Args: []string{"./go"}}, ""},
		{Exec, Step{}, ""},
	}
	for _, tt := range tests {
		m := &Manifest{Engine: tt.engine, Dir: "/units"}
		if got := m.ownProgram(tt.step); got != tt.want {
			t.Errorf("%v %v: %q, want %q", tt.engine, tt.step, got, tt.want)
		}
	}
}

// A script that a text names counts as well; one that is not there leaves
// the attempt to fail by itself.
func TestHashOfWhatIsNamed(t *testing.T) {
	r := newRig(t, shell(`cd / && exec sh "$APOLLO_UNIT_DIR/lib/a.sh" ${APOLLO_UNIT_DIR}`))
	if o := r.run(); o.Class != task.ExecuteFailed {
		t.Errorf("%+v", o)
	}
	lib := filepath.Join(r.job.Manifest.Dir, "lib")
	if err := os.Mkdir(lib, 0o700); err != nil {
		t.Fatal(err)
	}
	hashes := map[string]bool{}
	for _, text := range []string{"echo 1", "echo 2"} {
		write(t, filepath.Join(lib, "a.sh"), text)
		if err := os.Chtimes(filepath.Join(lib, "a.sh"), time.Time{}, time.Unix(int64(len(hashes)), 0)); err != nil {
			t.Fatal(err)
		}
		o := r.run()
		if o.Status != task.Success || o.UnitHash == "" {
			t.Errorf("%+v", o)
		}
		hashes[o.UnitHash] = true
	}
	if len(hashes) != 2 {
		t.Error("another script, the same hash")
	}
}
