package unit

import (
	"strings"
	"testing"
)

func TestMask(t *testing.T) {
	tests := []struct {
		secrets, pieces []string
		want            string
	}{
		{nil, []string{"a", "b"}, "ab"},
		{[]string{"hunter2"}, []string{"pw=hunter2!"}, "pw=***!"},
		{[]string{"hunter2"}, []string{"pw=hun", "ter2!"}, "pw=***!"},
		{[]string{"hunter2"}, []string{"h", "u", "n", "t", "e", "r", "2"}, "***"},
		{[]string{"hunter2"}, []string{"hunterhunter", "2"}, "hunter***"},
		{[]string{"hunter2"}, []string{"hunter2hunter2"}, "******"},
		{[]string{"hunter2"}, []string{"hunter"}, "hunter"}, // never came in full
		{[]string{"abcd", "abcdefgh"}, []string{"abcd", "efgh"}, "***"},
		{[]string{"abcd", "abcdefgh"}, []string{"abcd", "efx"}, "***efx"},
		{[]string{"abcd", "cdef"}, []string{"xabc", "defx"}, "x***x"},
		{[]string{"aaaa"}, []string{"aaa", "aaa", "aaab"}, "***b"},
		{[]string{"line one\nline two"}, []string{"line o", "ne\nline two"}, "***"},
		{[]string{"line one\nline two"}, []string{"line two\nline one"}, "***\n***"},
		{[]string{"first line\nab"}, []string{"cab\n"}, "cab\n"}, // a line too short to be masked alone
	}
	for _, tt := range tests {
		var s secrets
		for _, text := range tt.secrets {
			s.add("S", text)
		}
		m := masker{secrets: &s}
		var got []byte
		for _, piece := range tt.pieces {
			got = m.mask(got, []byte(piece))
		}
		if got = append(got, m.rest()...); string(got) != tt.want {
			t.Errorf("%q %q: %q, want %q", tt.secrets, tt.pieces, got, tt.want)
		}
	}
}

func TestMaskedMessages(t *testing.T) {
	var s secrets
	s.add("S", "pa\"ss\x1bwörd")
	for _, text := range []string{"pa\"ss\x1bwörd", `pa"ss\x1bwörd`, quote("pa\"ss\x1bwörd")} {
		if got := s.text("is " + text + "."); strings.Contains(got, "ss") || !strings.Contains(got, maskText) {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// However a text is cut, what is handed on is the same, holds no secret, and
// has nothing else left out.
func FuzzMask(f *testing.F) {
	f.Add("abcd", "cdef", "xxabcdefabcdx", uint16(3))
	f.Add("aaaa", "aab0", "aaaaaaaaab0aaab", uint16(1))
	f.Fuzz(func(t *testing.T, one, two, text string, cut uint16) {
		if len(one) < shortestSecret || len(two) < shortestSecret || len(text) > 1<<12 {
			return
		}
		s := secrets{texts: []string{one, two}, names: []string{"ONE", "TWO"}}
		m := masker{secrets: &s}
		var got []byte
		for rest := []byte(text); len(rest) > 0; {
			n := min(len(rest), int(cut)%7+1)
			got = m.mask(got, rest[:n])
			if len(m.held) > max(len(one), len(two)) {
				t.Fatalf("%d bytes are held back", len(m.held))
			}
			rest = rest[n:]
		}
		got = append(got, m.rest()...)
		if want := maskedSlowly(text, s.texts); string(got) != want {
			t.Fatalf("%q of %q, %q: %q, want %q", text, one, two, got, want)
		}
	})
}

// maskedSlowly marks every byte of a secret, and where one begins that does not
// begin within another.
func maskedSlowly(text string, secrets []string) string {
	var b strings.Builder
	covered := 0
	for i := range len(text) {
		for _, s := range secrets {
			if strings.HasPrefix(text[i:], s) {
				if i >= covered {
					b.WriteString(maskText)
				}
				covered = max(covered, i+len(s))
			}
		}
		if i >= covered {
			b.WriteByte(text[i])
		}
	}
	return b.String()
}
