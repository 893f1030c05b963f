package snapshot

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// rubble writes lines from words: "12/11+" is seq 12 of batch 11 with mark +, "~"
// is rubble with a newline, "!" rubble without one, "#end" and "#a11" are good ones.
func rubble(salt uint32, words string) []byte {
	var b []byte
	for w := range strings.FieldsSeq(words) {
		switch w {
		case "~":
			b = append(b, "6fda2ad5 rubble\x00 \n"...)
		case "!":
			b = append(b, 0, 0, 0)
		case "#end":
			b = append(b, encodeEnd(10, 10, salt)...)
		case "#a11":
			b = append(b, newHeader(1, 11, 0, day).encode()...)
		default:
			s, _ := strings.CutSuffix(w[:len(w)-1], "/")
			q, t, _ := strings.Cut(s, "/")
			seq, _, _ := parseUint([]byte(q + " "))
			batch, _, _ := parseUint([]byte(t + " "))
			b, _ = appendLine(b, salt, line{seq: seq, batch: batch, last: w[len(w)-1] == '=', body: []byte("x")})
		}
	}
	return b
}

// The last whole batch ended at 10.
func TestJudge(t *testing.T) {
	for words, why := range map[string]string{
		"":                         "",
		"~":                        "",
		"!":                        "",
		"11/11+":                   "",
		"11/11+ 12/11+":            "",
		"11/11+ ~ 13/11=":          "",
		"~ 12/11+ ! 14/11=":        "",
		"! 14/11=":                 "",
		"11/11= ~":                 "something follows",
		"~ 12/11= !":               "something follows",
		"11/11+ 13/11=":            "11|12 is missing",
		"12/11+":                   "11 is missing",
		"~ 12/12=":                 "12 of a later batch",
		"! 12/12=":                 "12 of a later batch",
		"11/11+ ! 13/12+":          "13 of a later batch",
		"~ 10/10=":                 "10 stands twice",
		"~ 9/3+":                   "9 stands twice",
		"11/11+ ~ 11/11+":          "11 stands twice",
		"11/11+ ~ 13/11+ ~ 12/11+": "12 stands twice",
		"~ 11/11+":                 "before entry 11",
		"! 11/11=":                 "before entry 11",
		"11/11+ ! 12/11+":          "before entry 12",
		"11/11+ ~ 13/11+ ~ 14/11=": "before entry 14",
		"~ #end":                   "closing line",
		"! #end":                   "closing line",
		"11/11+ ~ #a11":            "header",
	} {
		got := judge(rubble(5, words), 5, 10)
		if why = why[strings.Index(why, "|")+1:]; why == "" && got != "" || !strings.Contains(got, why) {
			t.Errorf("%q: %q, want %q", words, got, why)
		}
		if why != "" && judge(rubble(6, words), 5, 10) != "" && !strings.Contains(words, "#a11") {
			t.Errorf("%q of another file was believed", words)
		}
	}
	if judge(make([]byte, MaxBatch+1), 5, 10) == "" {
		t.Error("more than a batch is torn")
	}
}

// Lines longer than the buffer, at its edges, and without an end.
func TestLines(t *testing.T) {
	long := strings.Repeat("x", 3*readSize)
	for _, text := range []string{"", "\n", "a", "a\n", "\n\n", "a\n" + long + "\nb\n" + long, strings.Repeat("y", readSize-1) + "\nz\n", strings.Repeat("y", readSize) + "\n"} {
		in := lines{f: bytes.NewReader([]byte(text)), end: int64(len(text))}
		var got strings.Builder
		for {
			b, whole, err := in.next()
			if err != nil {
				break
			}
			got.Write(b)
			if whole {
				got.WriteByte('\n')
			}
		}
		if got.String() != text || in.at != int64(len(text)) {
			t.Errorf("%d bytes were read as %d", len(text), got.Len())
		}
	}
	endless := lines{f: bytes.NewReader(make([]byte, 8*MaxLine)), end: 8 * MaxLine}
	if b, whole, err := endless.next(); whole || err != nil || len(endless.buf) > 4*MaxLine || len(b) <= MaxLine {
		t.Errorf("endless line: %d bytes, buffer %d, %v", len(b), len(endless.buf), err)
	}
	short := lines{f: bytes.NewReader([]byte("abc")), end: 10}
	if _, _, err := short.next(); err == nil {
		t.Error("a file shorter than it should be was read")
	}
}

// Whatever follows a good header: no panic, and what is accepted is written back
// the same, without what was cut.
func FuzzTail(f *testing.F) {
	h := newHeader(1, 1, 0, day)
	head := h.encode()
	for _, words := range []string{"", "1/1=", "1/1+ 2/1= 3/3=", "1/1= ~ 3/2=", "1/1= 2/2+ !"} {
		f.Add(rubble(h.salt, words))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = append(bytes.Clone(head), b...)
		w := startWalk("f", h, lines{f: bytes.NewReader(b), at: int64(len(head)), end: int64(len(b))})
		torn, err := w.tail()
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Error(err)
			}
			return
		}
		out := bytes.Clone(head)
		r := startWalk("f", h, lines{f: bytes.NewReader(b), at: int64(len(head)), end: w.good})
		for {
			l, err := r.line()
			if err != nil {
				break
			}
			out, _ = appendLine(out, h.salt, l)
		}
		if w.closed {
			out = append(out, encodeEnd(w.last, w.entries, h.salt)...)
		}
		if !bytes.Equal(append(out, torn...), b) {
			t.Errorf("%q was read as %q and %q", b, out, torn)
		}
	})
}
