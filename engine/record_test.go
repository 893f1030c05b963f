package engine

import (
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"apollo11/engine/task"
)

// filled is a record of every kind with every field set, by reflection, so that
// a field that walk forgets is found.
func filled(t testing.TB, kind string) record {
	r := newRecord[kind]()
	v := reflect.ValueOf(r).Elem()
	for i := range v.NumField() {
		fill(t, v.Field(i), v.Type().Field(i).Name)
	}
	return r
}

func fill(t testing.TB, v reflect.Value, name string) {
	switch v.Interface().(type) {
	case time.Duration:
		v.SetInt(int64(1234 * time.Microsecond))
		return
	case task.Version:
		v.SetUint(3_000_002)
		return
	case task.State:
		v.Set(reflect.ValueOf(task.Retrying))
		return
	case runState:
		v.Set(reflect.ValueOf(runFailed))
		return
	case runMode:
		v.Set(reflect.ValueOf(modeFork))
		return
	case task.Class:
		v.Set(reflect.ValueOf(task.Timeout))
		return
	case task.Values:
		v.Set(reflect.ValueOf(task.Values{{Name: "a", Value: "1\n=\\\"\x1bé\xff "}, {Name: "b"}}))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(name + " \"=\\\n\x00é\u202e")
	case reflect.Int64: // wall time
		v.SetInt(time.Date(2026, 5, 1, 2, 3, 4, 5000, time.UTC).UnixNano())
	case reflect.Int:
		v.SetInt(-7)
	case reflect.Uint64, reflect.Uint32:
		v.SetUint(9)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), v.Type().Field(i).Name)
		}
	default:
		t.Fatalf("field %s of kind %s", name, v.Kind())
	}
}

const someTime = "2026-01-02T03:04:05.678901Z"

// foldText folds an entry into a state.
func foldText(s *state, seq uint64, entry string) error {
	wall, r, err := parseRecord(entry)
	if err != nil {
		return err
	}
	return s.fold(happened{seq, wall, r, len(entry)})
}

func entryOf(r record) string {
	var f fields
	appendRecord(&f, []byte(someTime), r)
	return string(f.out)
}

func TestRecordsKeepEveryField(t *testing.T) {
	for kind := range newRecord {
		r := filled(t, kind)
		if r.kind() != kind {
			t.Errorf("%s calls itself %s", kind, r.kind())
		}
		entry := entryOf(r)
		for i := 0; i < len(entry); i++ {
			if c := entry[i]; c < ' ' || c >= 0x7f {
				t.Fatalf("%s: byte %q in the entry", kind, c)
			}
		}
		wall, back, err := parseRecord(entry)
		if err != nil {
			t.Errorf("%s: %v\n%s", kind, err, entry)
			continue
		}
		if !reflect.DeepEqual(back, r) {
			t.Errorf("%s reads back\n%+v, was\n%+v", kind, back, r)
		}
		if wall != time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC).UnixNano() {
			t.Errorf("%s: time %d", kind, wall)
		}
		if event, err := Describe(7, entry); err != nil || event.Kind != kind || event.Seq != 7 {
			t.Errorf("%s is described as %+v, %v", kind, event, err)
		}
		if _, empty, err := parseRecord(entryOf(newRecord[kind]())); err != nil || !reflect.DeepEqual(empty, newRecord[kind]()) {
			t.Errorf("an empty %s reads back %+v, %v", kind, empty, err)
		}
	}
}

func TestRecordRefuses(t *testing.T) {
	for name, entry := range map[string]string{
		"an unknown kind":          someTime + " task.dance task=a",
		"an unknown field":         someTime + " task.submit task=a type=b state=queued speed=9",
		"fields out of order":      someTime + " task.submit type=b task=a",
		"a field twice":            someTime + " task.submit task=a task=a",
		"no time":                  "task.submit task=a",
		"a time before our years":  "1969-12-31T23:59:59.999999Z seal",
		"a time beyond them":       "2262-01-01T00:00:00.000000Z seal",
		"a day that is none":       "2026-02-30T00:00:00.000000Z seal",
		"zero written out":         someTime + " image seq=0",
		"a leading zero":           someTime + " image seq=07",
		"a plus":                   someTime + " task.forget count=+1",
		"minus nothing":            someTime + " task.forget count=-0",
		"a number over 64 bits":    someTime + " image seq=18446744073709551616",
		"an open quote":            someTime + ` unit type="a`,
		"text behind a quote":      someTime + ` unit type="a b"c`,
		"quotes without need":      someTime + ` unit type="a"`,
		"an empty text":            someTime + ` unit type=""`,
		"an empty bare text":       someTime + " unit type= text=a",
		"a raw byte":               someTime + " unit type=\"a \xff\"",
		"a raw tab":                someTime + " unit type=\"a\tb\"",
		"another way to escape":    someTime + ` unit type="\u0061 "`,
		"a flag of two":            someTime + " pause on=2",
		"a version without a dot":  someTime + " task.running task=a v=3",
		"a version of nothing":     someTime + " task.running task=a v=0.0",
		"a version over an epoch":  someTime + " task.running task=a v=1.1000000",
		"an absurd epoch":          someTime + " task.running task=a v=9223372036855.1",
		"a state that is none":     someTime + " task.submit task=a type=b state=new",
		"a class that is none":     someTime + " task.end task=a class=sad",
		"values out of order":      someTime + ` task.submit task=a in="b=1\na=1"`,
		"a value twice":            someTime + ` task.submit task=a in="a=1\na=1"`,
		"values that are none":     someTime + ` task.submit task=a in="a"`,
		"microseconds over 64 bit": someTime + " clock.back us=9223372036854775807",
		"a double space":           someTime + " task.submit  task=a",
		"a trailing space":         someTime + " task.submit task=a ",
	} {
		if _, r, err := parseRecord(entry); err == nil {
			t.Errorf("%s is taken: %+v", name, r)
		}
	}
}

// Any entry that is taken writes back the same bytes, and any can be described
// without a panic.
func FuzzRecord(f *testing.F) {
	for kind := range newRecord {
		f.Add(strings.TrimPrefix(entryOf(filled(f, kind)), someTime+" "))
	}
	f.Add("task.submit task=a in=\"a=\\\\n\"")
	f.Fuzz(func(t *testing.T, rest string) {
		entry := someTime + " " + rest
		_, r, err := parseRecord(entry)
		if err == nil {
			if back := entryOf(r); back != entry {
				t.Fatalf("%q writes back %q", entry, back)
			}
		}
		_, _ = Describe(1, entry)
	})
}

// Whatever entries a journal holds, folding them ends in a state or an error,
// and the state can be hashed, taken as an image and read back.
func FuzzFold(f *testing.F) {
	w := newWorld(f, 1)
	for range 60 {
		w.step()
	}
	var lines []string
	for _, entry := range w.journal {
		lines = append(lines, entry[len(someTime)+1:])
	}
	f.Add(strings.Join(lines, "\n"))
	f.Add("start epoch=1\nkey.forget count=-1")
	f.Add("start epoch=1\ntask.forget count=-1\ntask.forget count=1")
	f.Add("start epoch=1\ntask.submit task=a type=t state=blocked\ntask.end task=a state=succeeded")
	f.Add("start epoch=1\ntask.submit task=a type=t state=queued\nexec.register exec=e\ntask.start task=a v=1.1 exec=e\ntask.fail task=a v=1.1 exec=e state=running")
	f.Fuzz(func(t *testing.T, text string) {
		s := newState()
		for n, line := range strings.Split(text, "\n") {
			if err := foldText(s, uint64(n+1), someTime+" "+line); err != nil {
				return // the state is not used any more
			}
		}
		reload(t, s)
	})
}

// reload takes an image of a state and reads it back.
func reload(t testing.TB, s *state) *state {
	t.Helper()
	g := s.newImaging()
	for !s.step(g, 3) {
	}
	l := loading{state: newState()}
	for line := range strings.Lines(string(g.take())) {
		if err := loadText(&l, strings.TrimSuffix(line, "\n")); err != nil {
			t.Fatalf("a line of our own image: %v\n%s", err, line)
		}
	}
	if err := l.linkAll(); err != nil {
		t.Fatal(err)
	}
	if got, want := l.hash(), g.sum.String(); got != want {
		t.Fatalf("read back, the image's hash is %s, was %s", got, want)
	}
	return l.state
}

var quiet = slog.New(slog.DiscardHandler)

func TestMoments(t *testing.T) {
	for year := firstYear; year <= lastYear; year += 13 {
		for _, at := range []time.Time{
			time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(year, 2, 28, 23, 59, 59, 999_999_000, time.UTC),
			time.Date(year, 3, 0, 12, 30, 1, 1000, time.UTC), time.Date(year, 12, 31, 23, 59, 59, 0, time.UTC),
		} {
			text := string(appendMoment(nil, at.UnixNano()))
			if want := at.Format(momentLayout); text != want {
				t.Fatalf("%s is written %s", want, text)
			}
			if back, err := parseMoment(text); err != nil || back != at.UnixNano() {
				t.Fatalf("%s reads back %d, %v", text, back, err)
			}
		}
	}
	for _, bad := range []string{
		"", "2026-02-29T00:00:00.000000Z", "2026-13-01T00:00:00.000000Z", "2026-00-01T00:00:00.000000Z", "2026-01-00T00:00:00.000000Z",
		"2026-01-01T24:00:00.000000Z", "2026-01-01T00:60:00.000000Z", "2026-01-01T00:00:60.000000Z", "2026-01-01 00:00:00.000000Z",
		"2026-01-01T00:00:00.00000 Z", "2026-01-01T00:00:00.000000+", "+026-01-01T00:00:00.000000Z",
	} {
		if at, err := parseMoment(bad); err == nil {
			t.Errorf("%s is taken as %d", bad, at)
		}
	}
}
