package task

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable returns text fit for a log line, a table or a screen: control
// characters, escape sequences, direction marks and broken UTF-8 appear as Go
// escapes. Text that is already clean comes back as it is.
func Printable(s string) string {
	if clean(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n <= 1 || !unicode.IsPrint(r) {
			q := strconv.QuoteToASCII(s[i : i+n])
			b.WriteString(q[1 : len(q)-1])
		} else {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

func clean(s string) bool {
	for i, r := range s {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n <= 1 {
				return false
			}
		}
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// Plural counts things in words: 1 task, 2 tasks, 2 dispatches.
func Plural[N int | int64 | uint64](n N, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "ch"):
		noun += "e"
	}
	return strconv.FormatInt(int64(n), 10) + " " + noun + "s"
}
