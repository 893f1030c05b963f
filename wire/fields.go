package wire

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"apollo11/engine/task"
)

// fields reads a message's keys and keeps the first fault, so that a reader can
// name all its keys in a row and look at the fault once.
type fields struct {
	m   *Message
	err error
}

var errMissing = errors.New("is missing")

func (f *fields) fail(key string, err error) {
	if err != nil && f.err == nil {
		f.err = f.m.fault(key, err)
	}
}

// need is the value of a key that must be there and say something.
func (f *fields) need(key string) string {
	value := f.m.Text(key)
	if value == "" {
		f.fail(key, errMissing)
	}
	return value
}

func (f *fields) text(key string) string { return f.m.Text(key) }

func (f *fields) count(key string) uint64 {
	n, err := parseCount(f.m.Text(key))
	f.fail(key, err)
	return n
}

func (f *fields) flag(key string) bool {
	on, err := parseFlag(f.m.Text(key))
	f.fail(key, err)
	return on
}

func (f *fields) version(key string) task.Version {
	v, err := parseVersion(f.m.Text(key))
	f.fail(key, err)
	return v
}

func (f *fields) millis(key string) time.Duration {
	d, err := parseMillis(f.m.Text(key))
	f.fail(key, err)
	return d
}

func (f *fields) time(key string) time.Time {
	t, err := parseTime(f.m.Text(key))
	f.fail(key, err)
	return t
}

func (f *fields) list(key string) []string { return splitList(f.m.Text(key)) }

func splitList(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// The parse functions take the empty text, an absent key, as zero.

func parseCount(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, errors.New("not a whole number from 0 on")
	}
	return n, nil
}

func parseFlag(text string) (bool, error) {
	switch text {
	case "true":
		return true, nil
	case "", "false":
		return false, nil
	}
	return false, errors.New("want true or false")
}

func parseVersion(text string) (task.Version, error) {
	if text == "" {
		return 0, nil
	}
	return task.ParseVersion(text)
}

// maxMillis keeps every duration on the wire far from overflow: over 30 years.
const maxMillis = 1e12

// parseMillis reads milliseconds with up to three decimals.
func parseMillis(text string) (time.Duration, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	ms, err := parseCount(whole)
	if err != nil || ms > maxMillis {
		return 0, errors.New("not milliseconds")
	}
	d := time.Duration(ms) * time.Millisecond
	if fraction == "" {
		return d, nil
	}
	for i, unit := 0, 100*time.Microsecond; i < len(fraction); i, unit = i+1, unit/10 {
		c := fraction[i]
		if c < '0' || c > '9' {
			return 0, errors.New("not milliseconds")
		}
		d += time.Duration(c-'0') * unit.Truncate(time.Microsecond) // finer digits are dropped
	}
	return d, nil
}

// appendMillis writes d in milliseconds, with decimals only where there are
// microseconds; zero is left out.
func appendMillis(dst []byte, key string, d time.Duration) []byte {
	us := d.Microseconds()
	if us <= 0 {
		return dst
	}
	dst = append(append(dst, key...), '=')
	dst = strconv.AppendInt(dst, us/1000, 10)
	if us %= 1000; us != 0 {
		dst = append(dst, '.', byte('0'+us/100), byte('0'+us/10%10), byte('0'+us%10))
	}
	return append(dst, '\n')
}

func parseTime(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, errors.New("not an RFC 3339 time")
	}
	return t.UTC(), nil
}

// appendTime leaves the zero time out.
func appendTime(dst []byte, key string, t time.Time) []byte {
	if t.IsZero() {
		return dst
	}
	dst = append(append(dst, key...), '=')
	return append(t.UTC().AppendFormat(dst, time.RFC3339Nano), '\n')
}

// prefixed collects the keys that start with prefix, without it.
func (f *fields) prefixed(prefix string) task.Values {
	var list []task.Value
	for key, value := range f.m.All() {
		name, ok := strings.CutPrefix(key, prefix)
		if !ok {
			continue
		}
		f.fail(key, checkName(name))
		list = append(list, task.Value{Name: name, Value: value})
	}
	return f.sorted(list)
}

func (f *fields) sorted(list []task.Value) task.Values {
	if list == nil {
		return nil
	}
	for i := 1; i < len(list); i++ {
		if list[i].Name <= list[i-1].Name {
			values, err := task.NewValues(list)
			f.fail("values", err)
			return values
		}
	}
	return list
}
