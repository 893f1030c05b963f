package tui

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// width is the columns that text takes, styled or not; there is no other
// function that says so.
func width(s string) int {
	if isASCII(s) {
		return len(s)
	}
	return ansi.StringWidth(s)
}

// isASCII reports whether every byte is one column.
func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// cut shortens text to at most w columns, the last of them a mark if something
// is missing.
func cut(s string, w int) string {
	switch {
	case w <= 0:
		return ""
	case width(s) <= w:
		return s
	case isASCII(s):
		return s[:w-1] + "…"
	}
	return ansi.Truncate(s, w, "…")
}

// fit cuts text or pads it to exactly w columns.
func fit(s string, w int) string {
	s = cut(s, w)
	return s + strings.Repeat(" ", max(0, w-width(s)))
}

// fitRight is fit with the text at the right end.
func fitRight(s string, w int) string {
	s = cut(s, w)
	return strings.Repeat(" ", max(0, w-width(s))) + s
}

// wrap breaks text into lines of at most w columns, at spaces where it can.
func wrap(s string, w int) []string {
	if w < 1 {
		return nil
	}
	if width(s) <= w {
		return []string{s}
	}
	lines := strings.Split(ansi.Wrap(s, w, ""), "\n")
	for i := range lines {
		lines[i] = cut(lines[i], w) // a character wider than the line itself
	}
	return lines
}

// block is exactly h lines of exactly w columns.
func block(lines []string, w, h int) []string {
	out := make([]string, h)
	for i := range out {
		line := ""
		if i < len(lines) {
			line = lines[i]
		}
		out[i] = fit(line, w)
	}
	return out
}

// beside puts two blocks of the same height next to each other.
func beside(left, right []string, middle string) []string {
	out := make([]string, len(left))
	for i := range left {
		out[i] = left[i] + middle + right[i]
	}
	return out
}

// over puts a box into the middle of a block of width w.
func over(under, box []string, w int) []string {
	if len(box) == 0 {
		return under
	}
	wide := width(box[0])
	left := max(0, (w-wide)/2)
	top := max(0, (len(under)-len(box))/2)
	for i, line := range box {
		if top+i < len(under) {
			under[top+i] = fit(strings.Repeat(" ", left)+line, w)
		}
	}
	return under
}

// clean is text of others fit for the screen. Marks that only choose how the
// character before them looks are dropped: terminals do not agree on the width
// of what comes out.
func clean(s string) string {
	s = task.Printable(s)
	if isASCII(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Variation_Selector, r) || r >= 0x1f3fb && r <= 0x1f3ff {
			return -1
		}
		return r
	}, s)
}

// cleaner cleans every text of a noun, in place.
type cleaner struct{}

func (cleaner) Text(_ string, v *string)    { *v = clean(*v) }
func (cleaner) Int(string, *int64)          {}
func (cleaner) Bool(string, *bool)          {}
func (cleaner) Time(_ string, _ *view.Time) {}
func (cleaner) Values(_ string, v *task.Values) {
	for i := range *v {
		(*v)[i].Name, (*v)[i].Value = clean((*v)[i].Name), clean((*v)[i].Value)
	}
}

// cleanRows cleans a list of nouns.
func cleanRows[T any, P interface {
	*T
	view.Row
}](rows []T) {
	for i := range rows {
		P(&rows[i]).Fields(cleaner{})
	}
}

// ours are the characters that frames are drawn with, each next to what a
// terminal without UTF-8 shows instead; all are one column wide.
var ours = strings.NewReplacer("│", "|", "─", "-", "┌", "+", "┐", "+", "└", "+", "┘", "+", "·", ".", "…", "~",
	"█", "#", "░", ".", "♥", "*", "♡", "o", "▁", "_", "▂", "_", "▃", "-", "▄", "-", "▅", "=", "▆", "=", "▇", "#", "→", ">", "├", "|", "└", "`", "↓", "v")

// toASCII is a line for a terminal that has nothing else, as wide as before.
func toASCII(line string) string {
	line = ours.Replace(line)
	if utf8.RuneCountInString(line) == len(line) {
		return line
	}
	var b strings.Builder
	for len(line) > 0 {
		seq, w, n, _ := ansi.DecodeSequence(line, ansi.NormalState, nil)
		if n == 0 {
			break
		}
		if w == 0 || w == 1 && len(seq) == 1 {
			if utf8.RuneCountInString(seq) == len(seq) {
				b.WriteString(seq)
			}
		} else {
			b.WriteString(strings.Repeat("?", w))
		}
		line = line[n:]
	}
	return b.String()
}
