package task

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Value is one named text: an input, an output, a pinned context key.
type Value struct{ Name, Value string }

// Values is a set of values, sorted by name, each name once.
type Values []Value

// NewValues sorts a copy of list and refuses a repeated name.
func NewValues(list []Value) (Values, error) {
	v := slices.Clone(list)
	byName := func(a, b Value) int { return strings.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(v, byName) { // nearly always it is
		slices.SortFunc(v, byName)
	}
	for i := 1; i < len(v); i++ {
		if v[i].Name == v[i-1].Name {
			return nil, fmt.Errorf("%q is given twice", v[i].Name)
		}
	}
	return v, nil
}

// Get returns the value of name and whether it is there.
func (v Values) Get(name string) (string, bool) {
	i, ok := slices.BinarySearchFunc(v, name, func(e Value, n string) int { return strings.Compare(e.Name, n) })
	if !ok {
		return "", false
	}
	return v[i].Value, true
}

// Size is the bytes of all names and values together, what limits count.
func (v Values) Size() (n int) {
	for _, e := range v {
		n += len(e.Name) + len(e.Value)
	}
	return n
}

// AppendText appends the canonical text: name=value lines joined by newlines,
// in order, values escaped as on the wire.
func (v Values) AppendText(dst []byte) []byte {
	dst = slices.Grow(dst, v.Size()+2*len(v))
	for i, e := range v {
		if i > 0 {
			dst = append(dst, '\n')
		}
		dst = append(dst, e.Name...)
		dst = append(dst, '=')
		dst = AppendEscaped(dst, e.Value)
	}
	return dst
}

// ParseValues reads what AppendText wrote, and nothing else: names in order,
// each once, so that equal sets have equal texts.
func ParseValues(text string) (Values, error) {
	if text == "" {
		return nil, nil
	}
	list := make([]Value, 0, strings.Count(text, "\n")+1)
	for line := range strings.SplitSeq(text, "\n") {
		name, escaped, ok := strings.Cut(line, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%q is no name=value line", line)
		}
		if n := len(list); n > 0 && list[n-1].Name >= name {
			return nil, fmt.Errorf("%q after %q: names are not in order", name, list[n-1].Name)
		}
		value, err := Unescape(escaped)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		list = append(list, Value{name, value})
	}
	return list, nil
}

// Hash is the SHA-256 of the canonical text, "sha256:" and hex digits.
func (v Values) Hash() string {
	if len(v) == 0 {
		return emptyHash
	}
	return HashText(v.AppendText(nil))
}

const hashName = "sha256:"

// emptyHash is what most results without outputs have in common.
var emptyHash = HashText(nil)

// HashText is the hash of a set of which only the canonical text is at hand.
func HashText(text []byte) string {
	sum := sha256.Sum256(text)
	var out [len(hashName) + 2*sha256.Size]byte
	hex.Encode(out[copy(out[:], hashName):], sum[:])
	return string(out[:])
}

// AppendEscaped appends s with backslash, newline and equals sign written as
// \\ \n \e: the only escapes there are, on the wire and in canonical texts.
func AppendEscaped(dst []byte, s string) []byte {
	from := 0 // what stands before it is appended
	for i := 0; i < len(s); i++ {
		var letter byte
		switch s[i] {
		case '\\':
			letter = '\\'
		case '\n':
			letter = 'n'
		case '=':
			letter = 'e'
		default:
			continue
		}
		dst = append(append(dst, s[from:i]...), '\\', letter)
		from = i + 1
	}
	return append(dst, s[from:]...)
}

// Unescape undoes AppendEscaped in one scan from left to right; any other
// escape, or a bare equals sign or newline, is an error.
func Unescape(s string) (string, error) {
	if strings.IndexByte(s, '\\') < 0 && strings.IndexByte(s, '=') < 0 && strings.IndexByte(s, '\n') < 0 {
		return s, nil
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '=' || c == '\n' {
			return "", fmt.Errorf("unescaped %q in a value", c)
		}
		if c != '\\' {
			out = append(out, c)
			continue
		}
		i++
		if i == len(s) {
			return "", fmt.Errorf("a value ends in a lone backslash")
		}
		switch s[i] {
		case '\\':
			out = append(out, '\\')
		case 'n':
			out = append(out, '\n')
		case 'e':
			out = append(out, '=')
		default:
			return "", fmt.Errorf(`unknown escape \%c`, s[i])
		}
	}
	return string(out), nil
}
