package engine

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"apollo11/engine/task"
)

// fields writes or reads the name=value part of a record, an image line or an
// arena blob. A type lists its fields once, in a walk method, and the same walk
// serves both directions: writing skips zero values, and reading takes what
// stands next if its name is the one asked for. What is left over at the end was
// written by a newer build, and is refused.
//
// A value is bare if it is printable ASCII without space, quote, backslash and
// equals sign; everything else is quoted, with escapes, in ASCII.
type fields struct {
	out     []byte // writing: what was written
	in      string // reading: what is left
	reading bool
	err     error
	seen    lastMoment
}

// lastMoment is the moment that was read last: what follows is mostly of the
// same turn.
type lastMoment struct {
	text string
	wall int64
}

func (l *lastMoment) parse(text string) (int64, error) {
	if text == l.text && text != "" {
		return l.wall, nil
	}
	wall, err := parseMoment(text)
	if err == nil {
		l.text, l.wall = text, wall
	}
	return wall, err
}

// read reads a line of fields, all of it.
func (f *fields) read(line string, walk func(*fields)) error {
	f.reading, f.in, f.err = true, line, nil
	walk(f)
	return f.end()
}

// next reports whether the next field is name and cuts its raw value.
func (f *fields) next(name string) (raw string, ok bool) {
	if f.err != nil || len(f.in) <= len(name) || f.in[len(name)] != '=' || f.in[:len(name)] != name {
		return "", false
	}
	rest := f.in[len(name)+1:]
	if rest != "" && rest[0] == '"' {
		end := closingQuote(rest)
		if end < 0 {
			f.fail(name, errors.New("quote is not closed"))
			return "", false
		}
		raw, rest = rest[:end+1], rest[end+1:]
		if rest != "" && rest[0] != ' ' {
			f.fail(name, errors.New("text after the closing quote"))
			return "", false
		}
	} else {
		end := strings.IndexByte(rest, ' ')
		if end < 0 {
			end = len(rest)
		}
		raw, rest = rest[:end], rest[end:]
	}
	if rest == " " {
		f.fail(name, errNotCanonical)
		return "", false
	}
	f.in = strings.TrimPrefix(rest, " ")
	return raw, true
}

func closingQuote(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

func (f *fields) fail(name string, err error) {
	if f.err == nil {
		f.err = fmt.Errorf("field %s: %w", name, err)
	}
}

// end reports the first fault of a reading, a left-over field included.
func (f *fields) end() error {
	if f.err == nil && f.in != "" {
		name, _, _ := strings.Cut(f.in, "=")
		f.err = fmt.Errorf("unknown field %q: written by a newer build?", name)
	}
	return f.err
}

// name starts a field.
func (f *fields) name(name string) {
	if n := len(f.out); n > 0 && f.out[n-1] != ' ' && f.out[n-1] != '\n' {
		f.out = append(f.out, ' ')
	}
	f.out = append(f.out, name...)
	f.out = append(f.out, '=')
}

func (f *fields) str(name string, v *string) {
	if !f.reading {
		if *v != "" {
			f.name(name)
			f.out = appendText(f.out, *v)
		}
		return
	}
	if raw, ok := f.next(name); ok {
		text, err := parseText(raw)
		f.check(name, err, text != "")
		*v = text
	}
}

func (f *fields) u64(name string, v *uint64) {
	if !f.reading {
		if *v != 0 {
			f.name(name)
			f.out = strconv.AppendUint(f.out, *v, 10)
		}
		return
	}
	if raw, ok := f.next(name); ok {
		n, err := strconv.ParseUint(raw, 10, 64)
		f.check(name, err, canonical(raw))
		*v = n
	}
}

// canonical reports whether a number stands as it is written: zero never is, and
// there is one way to write the others.
func canonical(number string) bool {
	number = strings.TrimPrefix(number, "-")
	return number != "" && number[0] >= '1' && number[0] <= '9'
}

var errNotCanonical = errors.New("not in the form in which it is written")

// check notes a field's fault, or that it was written by nobody of ours: what
// reads must write back the same, so that hashes of lines mean something.
func (f *fields) check(name string, err error, canonical bool) {
	if err == nil && !canonical {
		err = errNotCanonical
	}
	if err != nil {
		f.fail(name, err)
	}
}

func (f *fields) i64(name string, v *int64) {
	if !f.reading {
		if *v != 0 {
			f.name(name)
			f.out = strconv.AppendInt(f.out, *v, 10)
		}
		return
	}
	if raw, ok := f.next(name); ok {
		n, err := strconv.ParseInt(raw, 10, 64)
		f.check(name, err, canonical(raw))
		*v = n
	}
}

func (f *fields) u32(name string, v *uint32) {
	wide := uint64(*v)
	f.u64(name, &wide)
	if wide > 1<<32-1 {
		f.fail(name, errors.New("out of range"))
	}
	*v = uint32(wide)
}

func (f *fields) num(name string, v *int) {
	wide := int64(*v)
	f.i64(name, &wide)
	*v = int(wide) // 64 bits wherever this program runs
}

func (f *fields) flag(name string, v *bool) {
	n := uint64(0)
	if *v {
		n = 1
	}
	f.u64(name, &n)
	if n > 1 {
		f.fail(name, errors.New("want 1 or nothing"))
	}
	*v = n == 1
}

// version is epoch.n, the form for people.
func (f *fields) version(name string, v *task.Version) {
	if !f.reading {
		if *v != 0 {
			f.name(name)
			f.out = appendVersion(f.out, *v)
		}
		return
	}
	raw, ok := f.next(name)
	if !ok {
		return
	}
	epoch, n, _ := strings.Cut(raw, ".")
	e, err := strconv.ParseUint(epoch, 10, 63)
	d, err2 := strconv.ParseUint(n, 10, 32)
	if err != nil || err2 != nil || d >= task.VersionsPerEpoch || e > maxEpoch {
		f.fail(name, errors.New("want EPOCH.N"))
		return
	}
	*v = task.MakeVersion(e, uint32(d))
	var again [40]byte
	f.check(name, nil, *v != 0 && string(appendVersion(again[:0], *v)) == raw)
}

func appendVersion(dst []byte, v task.Version) []byte {
	epoch, n := v.Split()
	dst = strconv.AppendUint(dst, epoch, 10)
	return strconv.AppendUint(append(dst, '.'), uint64(n), 10)
}

const (
	maxEpoch  = (1<<63 - 1) / task.VersionsPerEpoch // of any version that the wire can carry
	maxMicros = int64(1<<63-1) / int64(time.Microsecond)
)

// moment is wall time in nanoseconds since 1970, written for people in UTC.
func (f *fields) moment(name string, v *int64) {
	if !f.reading {
		if *v != 0 {
			f.name(name)
			f.out = appendMoment(f.out, *v)
		}
		return
	}
	if raw, ok := f.next(name); ok {
		t, err := f.seen.parse(raw)
		f.check(name, err, t != 0)
		*v = t
	}
}

// micros is a duration, written in whole microseconds.
func (f *fields) micros(name string, v *time.Duration) {
	n := int64(*v / time.Microsecond)
	f.i64(name, &n)
	if n > maxMicros || n < -maxMicros {
		f.fail(name, errors.New("out of range"))
		n = 0
	}
	*v = time.Duration(n) * time.Microsecond
}

func (f *fields) state(name string, v *task.State) {
	if !f.reading {
		if *v != task.New {
			f.name(name)
			f.out = append(f.out, v.String()...)
		}
		return
	}
	if raw, ok := f.next(name); ok {
		s, err := task.ParseState(raw)
		if err != nil {
			f.fail(name, err)
		}
		*v = s
	}
}

func (f *fields) class(name string, v *task.Class) {
	if !f.reading {
		if *v != task.NoClass {
			f.name(name)
			f.out = append(f.out, v.String()...)
		}
		return
	}
	if raw, ok := f.next(name); ok {
		c, err := task.ParseClass(raw)
		f.check(name, err, c != task.NoClass)
		*v = c
	}
}

// values is the canonical text of a set of values.
func (f *fields) values(name string, v *task.Values) {
	if !f.reading {
		if len(*v) > 0 {
			f.name(name)
			f.out = append(f.out, '"')
			for i, e := range *v {
				if i > 0 {
					f.out = append(f.out, '\\', 'n')
				}
				f.out = appendQuoted(f.out, e.Name)
				f.out = append(f.out, '=')
				f.out = appendTwice(f.out, e.Value)
			}
			f.out = append(f.out, '"')
		}
		return
	}
	if raw, ok := f.next(name); ok {
		values, err := parseValues(raw)
		f.check(name, err, len(values) > 0)
		*v = values
	}
}

// parseValues reads a set as the field of a record holds it.
func parseValues(raw string) (task.Values, error) {
	if values, ok := cutValues(raw); ok {
		return values, nil
	}
	text, err := parseText(raw)
	if err != nil {
		return nil, err
	}
	return task.ParseValues(text)
}

// cutValues reads a set of which no value needs an escape, as nearly none does:
// the only ones are then the newlines between them.
func cutValues(raw string) (task.Values, bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return nil, false
	}
	rest := raw[1 : len(raw)-1]
	newlines := strings.Count(rest, `\n`)
	if strings.Count(rest, `\`) != newlines || !ascii(rest) {
		return nil, false
	}
	list := make(task.Values, 0, newlines+1)
	for more := true; more; {
		var line string
		line, rest, more = strings.Cut(rest, `\n`)
		name, value, ok := strings.Cut(line, "=")
		if !ok || name == "" || strings.IndexByte(value, '=') >= 0 {
			return nil, false
		}
		if n := len(list); n > 0 && list[n-1].Name >= name {
			return nil, false
		}
		list = append(list, task.Value{Name: name, Value: value})
	}
	return list, true
}

// appendTwice appends a value with the wire's escapes inside the escapes of a
// quoted text; plain runs, nearly all there is, are copied at once.
func appendTwice(dst []byte, s string) []byte {
	if plain(s) {
		return append(dst, s...)
	}
	return appendQuoted(dst, string(task.AppendEscaped(nil, s)))
}

func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if !plainBytes[s[i]] {
			return false
		}
	}
	return true
}

// plainBytes is a table because every byte of every record is looked up in it.
var plainBytes = func() (ok [256]bool) {
	for c := byte(' '); c < 0x7f; c++ {
		ok[c] = c != '"' && c != '\\' && c != '='
	}
	return ok
}()

// ascii reports whether a text is printable ASCII, spaces included.
func ascii(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

func bare(s string) bool {
	return s != "" && plain(s) && strings.IndexByte(s, ' ') < 0
}

// appendText appends a field's value, bare where it can be.
func appendText(dst []byte, s string) []byte {
	if bare(s) {
		return append(dst, s...)
	}
	dst = append(dst, '"')
	dst = appendQuoted(dst, s)
	return append(dst, '"')
}

// appendQuoted appends the inside of a quoted text.
func appendQuoted(dst []byte, s string) []byte {
	if plain(s) {
		return append(dst, s...)
	}
	start := len(dst)
	dst = strconv.AppendQuoteToASCII(dst, s)
	// Drop the quotes that strconv put around it.
	copy(dst[start:], dst[start+1:])
	return dst[:len(dst)-2]
}

func parseText(raw string) (string, error) {
	if raw == "" || raw[0] != '"' {
		if !bare(raw) {
			return "", fmt.Errorf("%.100q must be quoted", raw)
		}
		return raw, nil
	}
	inner := raw[1 : len(raw)-1]
	if strings.IndexByte(inner, '\\') < 0 {
		if bare(inner) || !ascii(inner) {
			return "", errNotCanonical
		}
		return inner, nil
	}
	s, err := strconv.Unquote(raw)
	if err != nil {
		return "", fmt.Errorf("%.100s: bad quoting", raw)
	}
	if bare(s) || string(appendQuoted(nil, s)) != inner {
		return "", errNotCanonical
	}
	return s, nil
}

// escapedSize is an upper bound of what a text takes in a record.
func escapedSize(s string) int {
	n := len(s) + 2
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '=' {
			n += 4
		}
	}
	return n
}

const momentLayout = "2006-01-02T15:04:05.000000Z"

// appendMoment writes wall nanoseconds as RFC 3339 in UTC, in microseconds, so
// that times sort as text. The loop cuts the clock to microseconds first.
func appendMoment(dst []byte, wall int64) []byte {
	t := time.Unix(0, wall).UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	dst = append(appendDigits(dst, year, 4), '-')
	dst = append(appendDigits(dst, int(month), 2), '-')
	dst = append(appendDigits(dst, day, 2), 'T')
	dst = append(appendDigits(dst, hour, 2), ':')
	dst = append(appendDigits(dst, minute, 2), ':')
	dst = append(appendDigits(dst, second, 2), '.')
	return append(appendDigits(dst, t.Nanosecond()/1000, 6), 'Z')
}

func appendDigits(dst []byte, n, digits int) []byte {
	var text [8]byte
	for i := digits - 1; i >= 0; i-- {
		text[i] = byte('0' + n%10)
		n /= 10
	}
	return append(dst, text[:digits]...)
}

func parseMoment(s string) (int64, error) {
	if len(s) != len(momentLayout) {
		return 0, errMoment
	}
	var n [7]int // year, month, day, hour, minute, second, microsecond
	for i, part := 0, 0; i < len(s); i++ {
		switch c, want := s[i], momentLayout[i]; {
		case want >= '0' && want <= '9':
			if c < '0' || c > '9' {
				return 0, errMoment
			}
			n[part] = n[part]*10 + int(c-'0')
		case c != want:
			return 0, errMoment
		default:
			part++
		}
	}
	t := time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], n[6]*1000, time.UTC)
	_, month, day := t.Date()
	if n[0] < firstYear || n[0] > lastYear || int(month) != n[1] || day != n[2] || n[3] > 23 || n[4] > 59 || n[5] > 59 {
		return 0, errMoment // such as the 30th of February
	}
	return t.UnixNano(), nil
}

var errMoment = errors.New("time: want " + momentLayout)

// Between these years a moment in nanoseconds is a number of 64 bits.
const (
	firstYear = 1970
	lastYear  = 2261
)
