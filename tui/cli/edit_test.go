package cli

import (
	"strings"
	"testing"

	"apollo11/engine/view"
)

func TestEdit(t *testing.T) {
	for _, tt := range []struct{ args, asked string }{
		{"edit t-7 b=2 a=x=y", "edit {ID:t-7 Set:[{Name:a Value:x=y} {Name:b Value:2}] Unset:[]}"},
		{"--unset c edit t-7 --unset d,e a=", "edit {ID:t-7 Set:[{Name:a Value:}] Unset:[c d e]}"},
		{"edit t-7 --unset c", "edit {ID:t-7 Set:[] Unset:[c]}"},
	} {
		f := newFake(t)
		f.run(tt.args).want(t, "", "edited t-7: it is queued now\n", Done)
		if f.asked[1] != tt.asked {
			t.Errorf("%s: asked %q", tt.args, f.asked[1])
		}
	}
	r := newFake(t).run("edit t-7 a=1 --json")
	if r.code != Done || r.stderr != "" || !strings.HasPrefix(r.stdout, `{"id":"t-7","type":"echo","state":"queued"`) || !strings.Contains(r.stdout, `"inputs":{"a":"1"}`) {
		t.Errorf("JSON: code %d, %q, %q", r.code, r.stdout, r.stderr)
	}
}

func TestExplain(t *testing.T) {
	f := newFake(t)
	f.explanation = view.Explanation{
		ID: "t-7", State: "dead", Lines: []string{"dead letter: " + hostile, "its repeats are used up"},
		Hints: []string{"apollo11 requeue t-7", "apollo11 drop t-7"},
	}
	want := "t-7: dead\n  dead letter: " + clean(strings.ToValidUTF8(hostile, "\uFFFD")) +
		"\n  its repeats are used up\nhint: apollo11 requeue t-7\nhint: apollo11 drop t-7\n"
	f.run("explain t-7").want(t, want, "", Done)
	if f.asked[1] != "explain t-7" {
		t.Errorf("asked %q", f.asked[1])
	}
	if r := f.run("explain t-7", func(e *Env) { e.Color = true }); !strings.HasPrefix(r.stdout, "t-7: \x1b[31mdead\x1b[0m\n") {
		t.Errorf("a dead letter does not stand out: %q", r.stdout)
	}
	f.explanation = view.Explanation{ID: "t-7", State: "queued"}
	f.run("explain t-7 --json").want(t, `{"id":"t-7","state":"queued","lines":[],"hints":[]}`+"\n", "", Done)
}
