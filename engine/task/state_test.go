package task

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The drawing in doc.go and the table have the same edges, line by line.
func TestTransitionsMatchTheDrawing(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	drawn := map[string]string{}
	for _, line := range regexp.MustCompile(`(?m)^//\t(\w+) +->(.*)$`).FindAllStringSubmatch(string(doc), -1) {
		drawn[line[1]] = strings.TrimSpace(line[2])
	}
	if len(drawn) != int(states) {
		t.Errorf("the drawing has %d states, the table %d", len(drawn), states)
	}
	for from := New; from < states; from++ {
		var next []string
		for to := New; to < states; to++ {
			if from.May(to) {
				next = append(next, to.String())
			}
		}
		want := map[string]bool{}
		for name := range strings.FieldsSeq(drawn[from.String()]) {
			want[name] = true
		}
		for _, name := range next {
			if !want[name] {
				t.Errorf("%s -> %s is in the table, not in the drawing", from, name)
			}
			delete(want, name)
		}
		for name := range want {
			t.Errorf("%s -> %s is in the drawing, not in the table", from, name)
		}
	}
}

func TestStates(t *testing.T) {
	for _, s := range States() {
		back, err := ParseState(s.String())
		if err != nil || back != s {
			t.Errorf("%s reads back as %s, %v", s, back, err)
		}
		if s.Terminal() && s.Out() {
			t.Errorf("%s is over and out", s)
		}
		if s.Terminal() && s != Dead && s != Cancelled && s != Aborted && transitions[s] != 0 {
			t.Errorf("%s is not final", s)
		}
	}
	for _, bad := range []string{"", "new", "Queued", "state(1)"} {
		if s, err := ParseState(bad); err == nil {
			t.Errorf("%q is taken as %s", bad, s)
		}
	}
	if New.May(Running) || State(200).May(Queued) || Queued.May(State(200)) || State(99).Terminal() {
		t.Error("a step that is in no drawing may be taken")
	}
}

func TestClasses(t *testing.T) {
	for c := NoClass; c < classes; c++ {
		back, err := ParseClass(c.String())
		if err != nil || back != c {
			t.Errorf("%q reads back as %v, %v", c, back, err)
		}
	}
	if _, err := ParseClass("bad luck"); err == nil {
		t.Error("an unknown class is taken")
	}
	uses := map[Class]bool{PrepareFailed: true, ExecuteFailed: true, Timeout: true, OutputInvalid: true}
	for c := NoClass; c <= classes; c++ {
		if c.UsesRetry() != uses[c] {
			t.Errorf("%s uses a retry: %v", c, c.UsesRetry())
		}
	}
}

func TestVersions(t *testing.T) {
	if v := MakeVersion(3, 2); v != 3_000_002 || v.String() != "3.2" {
		t.Errorf("3.2 is %d, %s", v, v)
	}
	if MakeVersion(4, 1) <= MakeVersion(3, VersionsPerEpoch-1) {
		t.Error("a new epoch's versions are not above the old one's")
	}
	for text, want := range map[string]Version{"0": 0, "3000002": 3_000_002, "9223372036854775807": 1<<63 - 1} {
		if v, err := ParseVersion(text); err != nil || v != want {
			t.Errorf("%s: %d, %v", text, v, err)
		}
	}
	for _, bad := range []string{"", "-1", "3.2", "9223372036854775808", "x"} {
		if v, err := ParseVersion(bad); err == nil {
			t.Errorf("%q is taken as %d", bad, v)
		}
	}
}
