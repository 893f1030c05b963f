package unit

import (
	"path/filepath"
	"strings"
	"testing"

	"apollo11/engine/task"
)

func TestUndo(t *testing.T) {
	r := newRig(t, shell("echo executed", "prepare = 'echo prepared'", `undo = '''
echo "undo $IN_N $OUT_ROWS $OUT_A_B"; echo add.rows=-3 >>"$APOLLO_STATE"; echo left=1 >>"$APOLLO_OUTPUT"; grep -q '"outputs":{"a.b":"x","rows":"3"}' "$APOLLO_INPUT"'''`, "cleanup = 'echo cleaned'",
		"[in.n]\n[out.rows]\ntype = 'int'\nrequired = true\n[out.'a.b']\n[out.data]\ntype = 'path'\nrequired = true")).inputs("n", "4")
	a := &r.job.Assignment
	a.Undo, a.Outputs = true, task.Values{{Name: "a.b", Value: "x"}, {Name: "rows", Value: "3"}}
	o := r.run()
	if o.Status != task.Success || len(o.Outputs) > 0 || len(o.Changes) != 1 || r.logged.String() != "undo 4 3 x\ncleaned\n" {
		t.Errorf("%+v, log %q", o, r.logged.String())
	}
	if !r.job.Manifest.Unit.Undo {
		t.Error("the contract says nothing of it")
	}
}

// What is undone may be gone or changed already.
func TestUndoOfAFile(t *testing.T) {
	r := newRig(t, shell("true", `undo = 'echo "$OUT_DATA"'`, "[out.data]\ntype = 'path'")).shared()
	f := task.File{Share: "s1", Name: "r-0001/make-1.1/d", Size: 1, Sum: strings.Repeat("0", 64)}
	r.job.Assignment.Undo, r.job.Assignment.Outputs = true, task.Values{{Name: "data", Value: f.String()}}
	if o := r.run(); o.Status != task.Success || r.logged.String() != filepath.Join(r.job.Share.Dir, f.Name)+"\n" {
		t.Errorf("%+v, log %q", o, r.logged.String())
	}
}

func TestUndoFaults(t *testing.T) {
	tests := []struct {
		manifest string
		class    task.Class
		says     string
	}{
		{shell("true"), task.InputInvalid, "unit u has no undo step"},
		{shell("true", "undo = 'exit 3'"), task.ExecuteFailed, "undo ended with exit code 3"},
		{shell("true", "undo = 'exec sleep 30'", "timeout = 0.1"), task.Timeout, "undo took longer than 100ms"},
		{shell("true", `undo = 'echo x >>"$APOLLO_STATE"'`), task.OutputInvalid, "$APOLLO_STATE: line 1"},
	}
	for _, tt := range tests {
		r := newRig(t, tt.manifest)
		r.job.Assignment.Undo = true
		if o := r.run(); o.Class != tt.class || !strings.Contains(o.Error, tt.says) {
			t.Errorf("%s: %v %s", tt.manifest, o.Class, o.Error)
		}
	}
}

func TestSample(t *testing.T) {
	for sample, want := range map[int]string{0: "[]\n0\n", 20: "[20]\n1\n"} {
		r := newRig(t, shell(`echo "[$APOLLO_SAMPLE]"; grep -c '"sample":20,' "$APOLLO_INPUT"; echo add.n=1 >>"$APOLLO_STATE"`))
		r.job.Assignment.Sample = sample
		if o := r.run(); o.Status != task.Success || r.logged.String() != want || len(o.Changes) != 1 {
			t.Errorf("%d: %+v, log %q", sample, o, r.logged.String())
		}
	}
}
