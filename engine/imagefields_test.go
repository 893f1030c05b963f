package engine

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// notImaged are the fields of what an image holds that are no part of its line:
// soft, worked out from the rest, or on a line of their own. A field that is not
// named here has to survive its line.
var notImaged = map[string][]string{
	"run": {
		"spec", "refs", "conds", "below", // found by the hash; counted; compiled again
		"flow.units", "flow.left", "flow.counts", "flow.open", "flow.reused", "flow.settled", // of the tasks
		"flow.order", "order", "hash", // written as texts, made on the way
	},
	"exec": {"held", "refs", "soft"},
	"task": {
		"slot.spec", "slot.more", "slot.links", "slot.typ", "slot.mono", // by name; soft
		"course.attempts.context", "course.attempts.result", "course.attempts.history", // parts
		"course.exec", "course.run", "course.unit", "course.lane", "course.long", // by name; soft
	},
}

// Every durable field is in the image's line, and comes out of it as it was.
func TestImageLinesHaveEveryField(t *testing.T) {
	whole := func(kind string) imageLine {
		l := newImageLine[kind]()
		if r, ok := l.(*runLine); ok {
			r.spec = &missionSpec{}
		}
		return l
	}
	for kind := range newImageLine {
		if strings.HasPrefix(kind, "task.") {
			continue // a part is text, which the records' test reads
		}
		t.Run(kind, func(t *testing.T) {
			was, is := whole(kind), whole(kind)
			leaves(reflect.ValueOf(was), "", notImaged[kind], func(path string, v reflect.Value) {
				if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.String {
					v.Set(reflect.ValueOf([]string{"one", "two"}))
					return
				}
				fill(t, v, path)
			})
			var f fields
			was.walk(&f)
			if err := new(fields).read(string(f.out), is.walk); err != nil {
				t.Fatalf("%v\n%s", err, f.out)
			}
			got := map[string]any{}
			leaves(reflect.ValueOf(is), "", notImaged[kind], func(path string, v reflect.Value) { got[path] = v.Interface() })
			leaves(reflect.ValueOf(was), "", notImaged[kind], func(path string, v reflect.Value) {
				if v.IsZero() {
					t.Errorf("%s was not filled", path)
				}
				if !reflect.DeepEqual(got[path], v.Interface()) {
					t.Errorf("%s: was %v, is %v", path, v.Interface(), got[path])
				}
			})
		})
	}
}

// leaves visits the fields below v that are no plain structs of ours, by their
// path; embedded lines and pointers are looked through.
func leaves(v reflect.Value, path string, without []string, visit func(string, reflect.Value)) {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		visit(path, v)
		return
	}
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		at := strings.TrimPrefix(fmt.Sprintf("%s.%s", path, name), ".")
		if v.Type().Field(i).Anonymous && path == "" && name != "slot" && name != "course" {
			at = "" // a line that is what it holds
		}
		if at != "" && slices.Contains(without, at) {
			continue
		}
		field := v.Field(i)
		leaves(reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem(), at, without, visit)
	}
}

// A note is one note, whatever a unit's file is called.
func TestANoteIsALine(t *testing.T) {
	was := &runLine{run: &run{spec: &missionSpec{}}}
	was.note("make runs again: its file a\nb was changed or lost")
	var f fields
	was.walk(&f)
	is := &runLine{run: &run{}}
	if err := new(fields).read(string(f.out), is.walk); err != nil || !slices.Equal(is.notes, was.notes) || len(is.notes) != 1 {
		t.Errorf("notes %q were %q, %v", is.notes, was.notes, err)
	}
}
