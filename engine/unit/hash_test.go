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
	if _, err := set.Get("u").Hash(); err == nil || len(set.Hashes()) != 0 {
		t.Errorf("%v %v", err, set.Hashes())
	}
}

func TestOutcomeHasTheHash(t *testing.T) {
	r := newRig(t, shell("exit 3"))
	want, err := r.job.Manifest.Hash()
	if o := r.run(); o.UnitHash != want || err != nil || want == "" || o.Class != task.ExecuteFailed {
		t.Errorf("%+v, want %s", o, want)
	}
}
