package wire

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"apollo11/engine/task"
)

// Type says what a message is. The set of the protocol is frozen, but a peer
// may send anything.
type Type string

// The message types.
const (
	TypeRegister  Type = "register"
	TypeHeartbeat Type = "heartbeat"
	TypeQuery     Type = "query"
	TypeTypes     Type = "types"
	TypeProgress  Type = "progress"
	TypeOffline   Type = "offline"
	TypeAck       Type = "ack"
	TypeState     Type = "state"
	TypeError     Type = "error"
	TypeTask      Type = "task"
	TypeCancel    Type = "cancel"
	TypeRecall    Type = "recall"
	TypeDrain     Type = "drain"
	TypeResult    Type = "result"
	TypeReturned  Type = "returned"
	TypeControl   Type = "control"
	TypeRows      Type = "rows"
)

// Types lists all of them.
func Types() []Type {
	return []Type{
		TypeRegister, TypeHeartbeat, TypeQuery, TypeTypes, TypeProgress, TypeOffline, TypeAck, TypeState, TypeError,
		TypeTask, TypeCancel, TypeRecall, TypeDrain, TypeResult, TypeReturned, TypeControl, TypeRows,
	}
}

const (
	// MaxKey is the longest key: a name of task.CheckKey and its prefixes.
	MaxKey = 160
	// MaxFields is the most lines of one message.
	MaxFields = 1 << 16

	quadratic = 24 // up to so many keys, comparing all with all is the fastest
)

// Field is one line of a message, unescaped.
type Field struct{ Key, Value string }

// Message is a frame's text taken apart, in the order of its lines.
type Message struct {
	Type    Type
	Skipped int // lines without an equals sign, which are not looked at
	fields  []Field
}

// MalformedError is a text that breaks the rules of messages. The frame around
// it was whole, so the connection may go on.
type MalformedError struct {
	Reason  string
	Type    Type         // empty: not readable
	Task    string       // task_id; empty: none, or not readable
	Version task.Version // zero: none, or not readable
}

func (e *MalformedError) Error() string { return "malformed message: " + e.Reason }

// Parse reads a text into m, whose memory is used again.
func (m *Message) Parse(text []byte) error {
	m.Type, m.Skipped, m.fields = "", 0, m.fields[:0]
	s := string(text)
	if err := m.scan(s); err != nil {
		m.Type, m.fields = "", m.fields[:0]
		return salvage(s, err)
	}
	return nil
}

// ParseMessage is Parse into a new Message.
func ParseMessage(text []byte) (*Message, error) {
	m := new(Message)
	return m, m.Parse(text)
}

func (m *Message) scan(s string) error {
	if !utf8.ValidString(s) {
		return errors.New("not valid UTF-8")
	}
	for more := s != ""; more; {
		at := 0
		for at < len(s) && keyBytes[s[at]] {
			at++
		}
		if at == len(s) || s[at] != '=' { // no key, or no key of ours
			at += max(0, strings.IndexAny(s[at:], "=\n"))
		}
		var line string
		if line, s, more = cutLine(s, at); at >= len(line) || line[at] != '=' {
			m.Skipped++
			continue
		}
		if len(m.fields) == MaxFields {
			return fmt.Errorf("over %d lines", MaxFields)
		}
		f, err := parseLine(line[:at], line[at+1:])
		if err != nil {
			return err
		}
		if f.Key == "type" {
			m.Type = Type(f.Value)
		}
		m.fields = append(m.fields, f)
	}
	return m.checkRepeats()
}

// cutLine cuts the first line off; before from there is no newline.
func cutLine(s string, from int) (line, rest string, more bool) {
	if i := strings.IndexByte(s[from:], '\n'); i >= 0 {
		return s[:from+i], s[from+i+1:], true
	}
	return s, "", false
}

func parseLine(key, escaped string) (Field, error) {
	if !validKey(key) {
		return Field{}, fmt.Errorf("key %q: want 1 to %d of A-Z a-z 0-9 _ . -", cut(key, 60), MaxKey)
	}
	if strings.IndexByte(escaped, '\\') < 0 && strings.IndexByte(escaped, '=') < 0 {
		return Field{key, escaped}, nil
	}
	value, err := task.Unescape(escaped)
	if err != nil {
		return Field{}, fmt.Errorf("%s: %w", key, err)
	}
	return Field{key, value}, nil
}

var keyBytes = func() (ok [256]bool) {
	for _, c := range "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-" {
		ok[c] = true
	}
	return ok
}()

func validKey(key string) bool {
	for i := 0; i < len(key); i++ {
		if !keyBytes[key[i]] {
			return false
		}
	}
	return key != "" && len(key) <= MaxKey
}

func (m *Message) checkRepeats() error {
	if len(m.fields) > quadratic {
		return m.checkManyRepeats()
	}
	for i := range m.fields {
		for j := range i {
			if m.fields[i].Key == m.fields[j].Key {
				return repeated(m.fields[i].Key)
			}
		}
	}
	return nil
}

func (m *Message) checkManyRepeats() error {
	keys := make([]string, len(m.fields))
	for i := range m.fields {
		keys[i] = m.fields[i].Key
	}
	slices.Sort(keys)
	for i := 1; i < len(keys); i++ {
		if keys[i] == keys[i-1] {
			return repeated(keys[i])
		}
	}
	return nil
}

func repeated(key string) error { return fmt.Errorf("key %s is given twice", key) }

// salvage picks out of a broken text what tells whose it was.
func salvage(s string, why error) *MalformedError {
	e := &MalformedError{Reason: why.Error()}
	var version string
	found := map[string]*string{"type": (*string)(&e.Type), "task_id": &e.Task, "version": &version}
	for line := range strings.SplitSeq(s, "\n") {
		key, escaped, ok := strings.Cut(line, "=")
		into := found[key]
		if !ok || into == nil {
			continue
		}
		value, err := task.Unescape(escaped)
		if err != nil || !utf8.ValidString(value) || *into != "" {
			value = "" // broken, or given twice: which one is meant?
			delete(found, key)
		}
		*into = value
	}
	e.Version, _ = task.ParseVersion(version)
	return e
}

// cut keeps a hostile text in an error short, and valid.
func cut(s string, most int) string {
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// Len is how many fields there are.
func (m *Message) Len() int { return len(m.fields) }

// Get returns the value of key and whether it is there.
func (m *Message) Get(key string) (string, bool) {
	for i := range m.fields {
		if m.fields[i].Key == key {
			return m.fields[i].Value, true
		}
	}
	return "", false
}

// Text is Get for those who take an absent key as empty.
func (m *Message) Text(key string) string {
	value, _ := m.Get(key)
	return value
}

// All walks the fields in the order of their lines.
func (m *Message) All() iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		for i := range m.fields {
			if !yield(m.fields[i].Key, m.fields[i].Value) {
				return
			}
		}
	}
}

// Append appends the message as one frame, lines in the order they came.
func (m *Message) Append(dst []byte) []byte {
	dst, at := beginFrame(dst)
	for i := range m.fields {
		dst = appendText(dst, m.fields[i].Key, m.fields[i].Value)
	}
	return endMessage(dst, at)
}

// fault is a field that does not say what its key promises.
func (m *Message) fault(key string, why error) error {
	version, _ := task.ParseVersion(m.Text("version"))
	return &MalformedError{
		Reason: fmt.Sprintf("%s: %v", key, why), Type: m.Type, Task: m.Text("task_id"), Version: version,
	}
}

// beginMessage starts a frame whose first line is the type; every append…
// below adds a line and its newline, and endMessage takes the last newline back.
func beginMessage(dst []byte, t Type) ([]byte, int) {
	dst, at := beginFrame(dst)
	return appendText(dst, "type", string(t)), at
}

func endMessage(dst []byte, at int) []byte {
	if len(dst) > at+header {
		dst = bytes.TrimSuffix(dst, []byte{'\n'})
	}
	return endFrame(dst, at)
}

func appendText(dst []byte, key, value string) []byte {
	dst = append(dst, key...)
	return appendValue(dst, value)
}

func appendPrefixed(dst []byte, prefix, key, value string) []byte {
	dst = append(dst, prefix...)
	return appendText(dst, key, value)
}

func appendValue(dst []byte, value string) []byte {
	dst = append(dst, '=')
	dst = task.AppendEscaped(dst, value)
	return append(dst, '\n')
}

func appendUint(dst []byte, key string, n uint64) []byte {
	dst = append(append(dst, key...), '=')
	return append(strconv.AppendUint(dst, n, 10), '\n')
}

// appendSome leaves an empty value out.
func appendSome(dst []byte, key, value string) []byte {
	if value == "" {
		return dst
	}
	return appendText(dst, key, value)
}

// appendCount leaves a zero out.
func appendCount(dst []byte, key string, n uint64) []byte {
	if n == 0 {
		return dst
	}
	return appendUint(dst, key, n)
}

// appendFlag leaves a false out.
func appendFlag(dst []byte, key string, on bool) []byte {
	if !on {
		return dst
	}
	return appendText(dst, key, "true")
}

func appendValues(dst []byte, prefix string, values task.Values) []byte {
	for _, v := range values {
		dst = appendPrefixed(dst, prefix, v.Name, v.Value)
	}
	return dst
}
