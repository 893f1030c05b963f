package unit

import (
	"bytes"
	"strconv"
	"strings"

	"apollo11/engine/task"
)

// maskText is what stands where a secret stood.
const maskText = "***"

// shortestSecretLine is what is masked of a secret with several lines, line by line.
const shortestSecretLine = 8

// secrets are the texts that must not leave an attempt; none is the zero value.
type secrets struct {
	texts []string // each at least shortestSecret bytes
	names []string // whose text it is
}

func (s *secrets) add(name, value string) {
	s.one(name, value)
	if lines := strings.Split(value, "\n"); len(lines) > 1 {
		for _, line := range lines {
			if line = strings.TrimRight(line, "\r"); len(line) >= shortestSecretLine {
				s.one(name, line)
			}
		}
	}
}

func (s *secrets) one(name, text string) {
	s.texts, s.names = append(s.texts, text), append(s.names, name)
}

// within is the name of a secret whose value a text holds; empty: of none.
func (s *secrets) within(text string) string {
	for i, secret := range s.texts {
		if strings.Contains(text, secret) {
			return s.names[i]
		}
	}
	return ""
}

// text is a whole text masked. Messages quote what they name, so the quoted
// forms of a secret are masked as well.
func (s *secrets) text(text string) string {
	if len(s.texts) == 0 {
		return text
	}
	all := secrets{}
	for i, secret := range s.texts {
		quoted := strconv.QuoteToASCII(secret)
		for _, form := range []string{secret, task.Printable(secret), quoted[1 : len(quoted)-1]} {
			all.one(s.names[i], form)
		}
	}
	m := masker{secrets: &all}
	return string(append(m.mask(nil, []byte(text)), m.rest()...))
}

// masker masks a stream that comes in pieces, whichever way a secret is cut. It
// holds back the end of a piece that may be the beginning of a secret.
type masker struct {
	*secrets
	held   []byte
	masked int // so many bytes of held have their mask in what was handed on
}

// mask appends what may be handed on of all that came so far.
func (m *masker) mask(dst, piece []byte) []byte {
	if len(m.texts) == 0 {
		return append(dst, piece...)
	}
	m.held = append(m.held, piece...)
	return m.handOn(dst, m.undecided())
}

// rest is what was held back, when nothing more will come.
func (m *masker) rest() []byte { return m.handOn(nil, len(m.held)) }

// handOn appends the first bytes of what is held, masked. Secrets that overlap
// have one mask.
func (m *masker) handOn(dst []byte, upTo int) []byte {
	done, from := m.masked, 0 // held[:done] is in dst or masked
	for {
		start, end := m.find(from)
		if start < 0 || start >= upTo {
			break
		}
		if start >= done {
			dst = append(append(dst, m.held[done:start]...), maskText...)
		}
		done, from = max(done, end), start+1
	}
	if done < upTo {
		dst = append(dst, m.held[done:upTo]...)
	}
	m.held = append([]byte(nil), m.held[upTo:]...)
	m.masked = max(done-upTo, 0)
	return dst
}

// find is the first secret from a place on, the longest of those there.
func (m *masker) find(from int) (start, end int) {
	start = -1
	for _, secret := range m.texts {
		i := bytes.Index(m.held[from:], []byte(secret))
		if i >= 0 && (start < 0 || from+i < start || from+i == start && from+i+len(secret) > end) {
			start, end = from+i, from+i+len(secret)
		}
	}
	return start, end
}

// undecided is where something begins that may become a secret.
func (m *masker) undecided() int {
	first := len(m.held)
	for _, secret := range m.texts {
		for n := min(len(secret)-1, len(m.held)); n > 0; n-- {
			if bytes.HasSuffix(m.held, []byte(secret[:n])) {
				first = min(first, len(m.held)-n)
				break
			}
		}
	}
	return first
}
