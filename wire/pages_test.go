package wire

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

func readEvents(t *testing.T, stream []byte) *view.EventPage {
	t.Helper()
	p := new(view.EventPage)
	readRows(t, stream, MaxFrame, func(m *Message) error {
		f := fields{m: m}
		if m.Text("next") != "" {
			p.Next, p.More = int64(f.count("next")), f.flag("more")
		}
		return eachRow(m, func(row *Message) error {
			p.Events = append(p.Events, view.Event{})
			return ReadRow(row, &p.Events[len(p.Events)-1])
		})
	})
	return p
}

// A timeline of records as large as they come is told page by page, none of
// which drowns the connection, and nothing is left out between two pages.
func TestLargeEventsMakeShortPages(t *testing.T) {
	var all []view.Event
	for i := range view.MaxRows {
		in := values("inputs", strings.Repeat("\\", task.MaxBytes*2), "outputs", strings.Repeat("=\n", 2<<10))
		all = append(all, view.Event{Seq: int64(i + 10), Kind: "result", Values: view.Object(in)})
	}
	many := values()
	for i := range 2000 {
		many = append(many, task.Value{Name: fmt.Sprintf("%s%04d", strings.Repeat("a", 100), i), Value: "\\\\\\\\"})
	}
	all[7].Values = view.Object(many)
	seen, pages := 0, 0
	for next := int64(10); next < int64(view.MaxRows+10); pages++ {
		stream, err := AppendEvents(nil, &view.EventPage{Events: all[next-10:], Next: int64(view.MaxRows + 10)}, MaxFrame)
		if err != nil || len(stream) > MaxQueued*3/4 {
			t.Fatalf("a page of %d bytes: %v", len(stream), err)
		}
		p := readEvents(t, stream)
		for i, e := range p.Events {
			if e.Seq != next+int64(i) {
				t.Fatalf("after %d comes %d", next+int64(i)-1, e.Seq)
			}
		}
		seen += len(p.Events)
		if next += int64(len(p.Events)); p.Next != next || p.More != (next < int64(view.MaxRows+10)) || len(p.Events) == 0 {
			t.Fatalf("a page of %d ends at %d, more %v", len(p.Events), p.Next, p.More)
		}
	}
	if seen != view.MaxRows || pages < 2 {
		t.Errorf("%d events in %d pages", seen, pages)
	}
	if !strings.HasPrefix(all[0].Values[0].Value, `\\`) || len(all[0].Values[0].Value) != task.MaxBytes*2 {
		t.Error("what was given is changed")
	}
}

func TestSmallEventsStayWhole(t *testing.T) {
	p := &view.EventPage{Events: []view.Event{{Seq: 7, Run: "r-0001", Values: view.Object(values("a", hostile))}, {Seq: 9}}, Next: 10, More: true}
	stream, err := AppendEvents(nil, p, MaxFrame)
	if got := readEvents(t, stream); err != nil || !reflect.DeepEqual(got, p) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// A task is shown whole while it fits a frame, and cut rather than not at all.
func TestDetailAlwaysFits(t *testing.T) {
	read := func(d *view.Detail) *view.Detail {
		t.Helper()
		stream, err := AppendDetail(nil, d, MaxFrame)
		if err != nil {
			t.Fatal(err)
		}
		var got *view.Detail
		readRows(t, stream, MaxFrame, func(m *Message) error {
			return eachRow(m, func(row *Message) error {
				if got == nil {
					got = new(view.Detail)
					return ReadRow(row, got)
				}
				got.Attempts = append(got.Attempts, view.Attempt{})
				return ReadRow(row, &got.Attempts[len(got.Attempts)-1])
			})
		})
		return got
	}
	d := &view.Detail{
		Task: view.Task{ID: "t1"}, Inputs: view.Object(values("a", strings.Repeat("x", task.MaxBytes-1))),
		Attempts: []view.Attempt{{Attempt: 1}, {Attempt: 2}},
	}
	if got := read(d); !reflect.DeepEqual(got, d) {
		t.Error("a task that fits is not whole")
	}
	worst := view.Object(values("a", strings.Repeat("\\", task.MaxBytes-1)))
	d.Inputs, d.Outputs, d.Context, d.Late = worst, worst, worst, strings.Repeat("\\", task.MaxBytes)
	got := read(d)
	if len(got.Attempts) != 2 || !strings.Contains(got.Inputs[0].Value, "… (131071 bytes, sha256:") || len(d.Inputs[0].Value) != task.MaxBytes-1 {
		t.Errorf("the worst task: %d attempts, inputs end in %q", len(got.Attempts), got.Inputs[0].Value[maxShown:])
	}
}
