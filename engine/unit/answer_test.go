package unit

import (
	"slices"
	"strings"
	"testing"
)

func TestOutputs(t *testing.T) {
	tests := []struct {
		text, want, fault string
	}{
		{"", "", ""},
		{"\n\na=1\n\n", "a=1", ""},
		{"b=2\na=1", "a=1\nb=2", ""},
		{"a=1\na=2\n", "a=2", ""},
		{"a=", "a=", ""},
		{"a=x=y\\n", `a=x\ey\\n`, ""},
		{"a= x \r\n", "a= x \r", ""},
		{"a=\x00", "a=\x00", ""},
		{"a", "", `line 1, "a": want name=value`},
		{"a=1\n=2", "", `line 2, "=2": key ""`},
		{"a b=1", "", `line 1, "a b=1": key "a b"`},
		{"a=\xff", "", "not UTF-8"},
		{"status=ok", "", "belongs to the protocol"},
		{"out.x=ok", "", "belongs to the protocol"},
	}
	for _, tt := range tests {
		values, err := parseOutputs([]byte(tt.text))
		if tt.fault != "" {
			if err == nil || !strings.Contains(err.Error(), tt.fault) {
				t.Errorf("%q: %v", tt.text, err)
			}
			continue
		}
		if got := string(values.AppendText(nil)); err != nil || got != tt.want {
			t.Errorf("%q: %q %v", tt.text, got, err)
		}
	}
}

func TestChanges(t *testing.T) {
	const far = "9223372036854775807"
	tests := []struct {
		text, want, fault string
	}{
		{"", "", ""},
		{"set.a=1\nadd.b=2\nmax.c=3\nmin.d=4\ndel.e\ndel.f=\n", "set.a=1 add.b=2 max.c=3 min.d=4 del.e= del.f=", ""},
		{"set.a.b=x=y", "set.a.b=x=y", ""},
		{"add.n=1\nset.x=\nadd.n=-3", "add.n=-2 set.x=", ""},
		{"add.n=1\nadd.n=0.5", "add.n=1.5", ""},
		{"add.n=" + far + "\nadd.n=0", "add.n=" + far, ""},
		{"add.n=" + far + "\nadd.n=1", "", "leaves 64 bits"},
		{"add.n=-" + far + "\nadd.n=-2", "", "leaves 64 bits"},
		{"add.n=1e308\nadd.n=1e308", "", "not finite"},
		{"add.n=NaN", "", "not a finite number"},
		{"add.n=x", "", "not a finite number"},
		{"max.n=9\nmax.n=10\nmax.n=2", "max.n=10", ""},
		{"min.n=9\nmin.n=10\nmin.n=2.5", "min.n=2.5", ""},
		{"max.t=2026-01-01T00:00:00Z\nmax.t=2025-01-01T00:00:00Z", "max.t=2026-01-01T00:00:00Z", ""},
		{"max.t=b\nmax.t=a", "", "neither two numbers nor two times"},
		{"set.a=1\nset.a=2", "set.a=2", ""},
		{"set.a=1\nadd.a=2", "", "a was already changed by set"},
		{"del.a=1", "", "del takes no value"},
		{"set.a", "", "want name=value"},
		{"a=1", "", "want set.key=value"},
		{"inc.a=1", "", `unknown state operation "inc"`},
		{"set.=1", "", `key ""`},
		{"set.a=\xff", "", "not UTF-8"},
	}
	for _, tt := range tests {
		changes, err := parseChanges([]byte(tt.text))
		if tt.fault != "" {
			if err == nil || !strings.Contains(err.Error(), tt.fault) {
				t.Errorf("%q: %v, want %s", tt.text, err, tt.fault)
			}
			continue
		}
		var got []string
		for _, c := range changes {
			got = append(got, c.Op.String()+"."+c.Key+"="+c.Value)
		}
		if err != nil || strings.Join(got, " ") != tt.want {
			t.Errorf("%q: %q %v", tt.text, got, err)
		}
	}
}

// What parses, written out again, parses to the same.
func FuzzAnswers(f *testing.F) {
	f.Add("a=1\nb=x=y\n\na=2\n")
	f.Add("set.a=1\nadd.n=1\nadd.n=0.5\nmax.m=1\nmax.m=3\ndel.x\n")
	f.Fuzz(func(t *testing.T, text string) {
		if values, err := parseOutputs([]byte(text)); err == nil {
			var b strings.Builder
			for _, v := range values {
				b.WriteString(v.Name + "=" + v.Value + "\n")
			}
			again, err := parseOutputs([]byte(b.String()))
			if err != nil || !slices.Equal(again, values) {
				t.Fatalf("%q: %v %v", b.String(), again, err)
			}
		}
		if changes, err := parseChanges([]byte(text)); err == nil {
			var b strings.Builder
			seen := map[string]bool{}
			for _, c := range changes {
				b.WriteString(c.Op.String() + "." + c.Key + "=" + c.Value + "\n")
				if seen[c.Key] {
					t.Fatalf("%s is changed twice", c.Key)
				}
				seen[c.Key] = true
			}
			again, err := parseChanges([]byte(b.String()))
			if err != nil || !slices.Equal(again, changes) {
				t.Fatalf("%q: %v %v", b.String(), again, err)
			}
		}
	})
}

func TestTail(t *testing.T) {
	tests := []struct {
		chunks []string
		want   string
	}{
		{nil, ""},
		{[]string{"one\ntwo"}, "two"},
		{[]string{"one\nt", "wo\n\n \n"}, "two"},
		{[]string{"\x1b[31mred\u202e"}, `\x1b[31mred\u202e`},
		{[]string{strings.Repeat("x", 5000), "\nend"}, "end"},
		{[]string{strings.Repeat("x", 5000)}, strings.Repeat("x", longestLine)},
	}
	for _, tt := range tests {
		var last tail
		for _, c := range tt.chunks {
			last.add([]byte(c))
		}
		if got := last.line(); got != tt.want {
			t.Errorf("%.50q: %q", tt.chunks, got)
		}
	}
}
