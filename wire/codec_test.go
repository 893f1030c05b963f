package wire

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// recode reads a message as what its type says and encodes that again.
func recode(m *Message, proto int) ([]byte, error) {
	switch m.Type {
	case TypeRegister:
		return both(AppendRegister)(ParseRegister(m))
	case TypeTypes:
		return both(AppendTypes)(ParseTypes(m))
	case TypeHeartbeat:
		return AppendHeartbeat(nil, ParseHeartbeat(m)), nil
	case TypeAck:
		return both(AppendAck)(ParseAck(m))
	case TypeTask:
		a, err := ParseTask(m, proto)
		return AppendTask(nil, a, proto), err
	case TypeResult:
		o, err := ParseResult(m, proto)
		return AppendResult(nil, o, proto), err
	case TypeProgress:
		return both(AppendProgress)(ParseProgress(m))
	case TypeQuery:
		return both(AppendQuery)(ParseQuery(m))
	case TypeState:
		if m.Text("since") != "" {
			return both(AppendStateChanged)(ParseStateChanged(m))
		}
		s, err := ParseState(m)
		page := &view.KeyPage{Version: int64(s.Version), Cursor: s.Cursor}
		for _, v := range s.Values {
			page.Keys = append(page.Keys, view.Key{Key: v.Name, Value: v.Value})
		}
		return AppendState(nil, page, MaxFrame), err
	case TypeError:
		return both(AppendError)(ParseError(m))
	case TypeCancel, TypeRecall, TypeReturned:
		r, reason, err := ParseRef(m)
		return appendRef(nil, m.Type, r, reason), err
	case TypeDrain, TypeOffline:
		return appendReason(nil, m.Type, ParseReason(m)), nil
	case TypeControl:
		return recodeControl(m)
	case TypeRows:
		return recodeRows(m)
	}
	return nil, errors.New("no codec for " + string(m.Type))
}

func both[T any](encode func([]byte, *T) []byte) func(*T, error) ([]byte, error) {
	return func(v *T, err error) ([]byte, error) {
		if err != nil {
			return nil, err
		}
		return encode(nil, v), nil
	}
}

func recodeControl(m *Message) ([]byte, error) {
	op := Op(m.Text("op"))
	switch op {
	case OpHello:
		return AppendHello(nil, ParseHello(m)), nil
	case OpStatus, OpExecutors, OpQueues, OpMissions, OpStats:
		return AppendControl(nil, op), nil
	case OpTasks:
		q, err := ParseTasks(m)
		return AppendTasks(nil, &q), err
	case OpTask, OpDrain, OpExplain, OpResume:
		id, err := ParseName(m)
		return AppendName(nil, op, id), err
	case OpState:
		q, seq, err := ParseKeys(m)
		return AppendKeys(nil, &q, seq), err
	case OpLate:
		limit, err := ParseLate(m)
		return AppendLate(nil, limit), err
	case OpEdit:
		return both(AppendEdit)(ParseEdit(m))
	case OpRequeue, OpCancel, OpDrop:
		s, reason, err := ParseSelect(m)
		return AppendSelect(nil, op, &s, reason), err
	case OpPause, OpDebug:
		typ, on, err := ParseSwitch(m)
		return AppendSwitch(nil, op, typ, on), err
	case OpRepair:
		return both(AppendRepair)(ParseRepair(m))
	case OpLogs:
		return both(AppendLogs)(ParseLogs(m))
	case OpTimeline:
		q, err := ParseTimeline(m)
		return AppendTimeline(nil, &q), err
	case OpSubmit:
		var s Submission
		if _, err := s.Add(m); err != nil {
			return nil, err
		}
		if s.Check {
			return AppendCheck(nil, s.Specs, MaxFrame)
		}
		return AppendSubmit(nil, s.Specs, MaxFrame)
	}
	return recodeRun(m, op)
}

// recodeRows reads rows as tasks, or as what the other answers of rows are.
func recodeRows(m *Message) ([]byte, error) {
	switch {
	case m.Text("ended") != "" || m.Text("data") != "" || m.Text("data64") != "":
		return both(AppendLogChunk)(ParseLogChunk(m))
	case m.Text("id") != "":
		return both(AppendExplanation)(ParseExplanation(m))
	case m.Text("matched") != "":
		return both(AppendChanged)(ParseChanged(m))
	}
	if read := runAnswer(m); read != nil {
		return read(m)
	}
	if _, ok := m.Get("0.existed"); ok {
		list, err := ParseSubmitted(nil, m)
		if err != nil {
			return nil, err
		}
		return AppendSubmitted(nil, list, MaxFrame)
	}
	p := new(view.Page)
	f := fields{m: m}
	p.Cursor, p.Examined, p.Total = f.text("cursor"), int(f.count("examined")), int(f.count("total"))
	err := eachRow(m, func(row *Message) error {
		p.Tasks = append(p.Tasks, view.Task{})
		return ReadRow(row, &p.Tasks[len(p.Tasks)-1])
	})
	if err = errors.Join(f.err, err); err != nil {
		return nil, err
	}
	return AppendRows(nil, PageHead(p), rowsOf(p.Tasks), MaxFrame)
}

func rowsOf[T any, P interface {
	*T
	view.Row
}](list []T) func(yield func(view.Row) bool) {
	return func(yield func(view.Row) bool) {
		for i := range list {
			if !yield(P(&list[i])) {
				return
			}
		}
	}
}

const hostile = "a\\nb\\e=\\\n==\n\\\\n\r\x00\x1b[2J\u202e\U0001f680"

func values(pairs ...string) task.Values {
	var list []task.Value
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, task.Value{Name: pairs[i], Value: pairs[i+1]})
	}
	v, err := task.NewValues(list)
	if err != nil {
		panic(err)
	}
	return v
}

func sampleUnit() task.Unit {
	u := task.Unit{
		Name: "fetch", Retry: task.Retry{Retries: 2, Interval: time.Second, Backoff: 1.5, Jitter: 0.1}, Timeout: time.Minute,
		Context: []string{"batch"}, Version: 3,
		In: []task.Rule{{Name: "url", Required: true, Pattern: "^https?://.*=.*\\\\", Description: hostile}},
	}
	if err := u.ReadyRules(); err != nil {
		panic(err)
	}
	return u
}

// Every message with everything in it comes back as it was.
func TestRoundTrip(t *testing.T) {
	assignment := &task.Assignment{
		Task: "t:1", Type: "fetch", Version: 3_000_002, Attempt: 2, Timeout: 90 * time.Second, StateVersion: 17,
		Inputs: values("a", hostile, "b", "", "run", "an input's name"), Context: values("batch", "7", "z.z", hostile),
	}
	outcome := &task.Outcome{
		Task: "t:1", Version: 3_000_002, Status: task.Failed, Class: task.Timeout, Error: hostile,
		Outputs: values("n", "42", "text", hostile), Exit: 137, Signal: "killed", Truncated: true,
		Changes: []task.Change{{Op: task.Set, Key: "a.b", Value: hostile}, {Op: task.Add, Key: "n", Value: "1"}, {Op: task.Max, Key: "x", Value: "2"}, {Op: task.Min, Key: "y", Value: "-3"}, {Op: task.Del, Key: "gone"}},
		Timing:  task.Timing{Prepare: 12 * time.Millisecond, Execute: 1234567 * time.Microsecond, Cleanup: 5 * time.Microsecond},
	}
	for _, proto := range []int{1, 2} {
		check(t, AppendTask(nil, assignment, proto), assignment, func(m *Message) (*task.Assignment, error) { return ParseTask(m, proto) })
		check(t, AppendResult(nil, outcome, proto), outcome, func(m *Message) (*task.Outcome, error) { return ParseResult(m, proto) })
	}
	assignment.Run, assignment.Sample, assignment.Undo, assignment.Outputs = "r-0001", 100, true, values("rows", "42", "text", hostile)
	check(t, AppendTask(nil, assignment, 2), assignment, func(m *Message) (*task.Assignment, error) { return ParseTask(m, 2) })
	outcome.UnitHash = strings.Repeat("9f", 32)
	check(t, AppendResult(nil, outcome, 2), outcome, func(m *Message) (*task.Outcome, error) { return ParseResult(m, 2) })
	register := &Register{
		Exec: "host-1-ab", Types: []string{"fetch", "echo"}, Load: 2, Token: hostile, Proto: 2, Instance: "i9", Host: "host", PID: 4711,
		Build: "v1", Share: "mnt=x", Capacity: task.Resources{CPU: 4500, Memory: 1 << 40, Disk: 9}, Hashes: values("echo", "77", "fetch", "x y"), Subscribe: []string{"later", "state"}, Units: []task.Unit{sampleUnit()},
		Running: []Held{{"a:b:c", 1_000_001, Waiting}, {"t2", 7, Running}, {"t3", 8, Ended}},
	}
	frame := AppendRegister(nil, register)
	check(t, frame, frame, func(m *Message) ([]byte, error) { return both(AppendRegister)(ParseRegister(m)) })
	m, _ := ParseMessage(frame[header:])
	if r, err := ParseRegister(m); err != nil || !slices.Equal(r.Running, register.Running) || r.Token != hostile || len(r.Units) != 1 ||
		r.Capacity != register.Capacity || !slices.Equal(r.Hashes, register.Hashes) || r.Share != register.Share {
		t.Errorf("register: %+v, %v", r, err)
	}
	change := &TypeChange{Add: []string{"a", "b"}, Remove: []string{"c"}, Units: nil, Hashes: values("a", "h")}
	check(t, AppendTypes(nil, change), change, ParseTypes)
	ack := &Ack{
		Status: AckRejected, Task: "t", Version: 9, Duplicate: true, Reason: hostile, StateVersion: 1, ConfigVersion: 2, Epoch: 3,
		Proto: 2, Heartbeat: 10 * time.Second, Refused: []string{"fetch: timeout differs: 1m0s, not 2m0s"}, Folder: "f", Build: "b",
	}
	check(t, AppendAck(nil, ack), ack, ParseAck)
	for _, log := range [][]byte{nil, []byte(hostile), {0xff, 0, 0xfe}, {0xff}} {
		progress := &Progress{Task: "t", Version: 1, Start: true, Percent: "12.5", Message: hostile, Log: log, Changes: []task.Change{{Op: task.Add, Key: "n", Value: "1"}}}
		check(t, AppendProgress(nil, progress), progress, ParseProgress)
		chunk := &LogChunk{Data: log, Next: 12, Attempt: 2, Ended: true}
		check(t, AppendLogChunk(nil, chunk), chunk, ParseLogChunk)
	}
	query := &view.KeyQuery{Keys: []string{"a", "b"}, Prefix: "p.", Since: 9, Cursor: "c", Limit: 10}
	check(t, AppendQuery(nil, query), query, ParseQuery)
	news := &StateChanged{Version: 9, Since: 0, More: true, Keys: []KeyChange{{"a.b", 7}, {"gone", 0}}}
	check(t, AppendStateChanged(nil, news), news, ParseStateChanged)
	failure := &Error{Code: CodeConflict, Message: hostile, Fatal: true, Faults: []Fault{{0, "a"}, {7, hostile}}}
	check(t, AppendError(nil, failure), failure, ParseError)
	changed := &view.Changed{Matched: 5, Changed: 3, Skipped: []string{"a: dead", hostile}, Samples: []string{"x", "y"}}
	check(t, AppendChanged(nil, changed), changed, ParseChanged)
	repair := &Repair{Key: "k", Value: hostile, Delete: true, Reason: "why"}
	check(t, AppendRepair(nil, repair), repair, ParseRepair)
	edit := &Edit{ID: "t:1", Set: values("a", hostile, "b", ""), Unset: []string{"c", "d.e"}}
	check(t, AppendEdit(nil, edit), edit, ParseEdit)
	explanation := &view.Explanation{ID: "t:1", State: "dead", Lines: []string{"it is dead", hostile}, Hints: []string{"apollo11 requeue t:1"}}
	check(t, AppendExplanation(nil, explanation), explanation, ParseExplanation)
	logs := &LogQuery{Task: "t", Attempt: 2, Offset: 1 << 40}
	check(t, AppendLogs(nil, logs), logs, ParseLogs)
}

// TestRoundTripQueries is TestRoundTrip for what is passed by value.
func TestRoundTripQueries(t *testing.T) {
	q := view.Query{Type: "a", States: task.States(), Error: hostile, Older: 1500 * time.Millisecond, Limit: 7, Cursor: "c", Oldest: true}
	check(t, AppendTasks(nil, &q), q, ParseTasks)
	when := time.Date(2026, 1, 31, 8, 0, 0, 123456789, time.UTC)
	events := view.EventQuery{From: 9, After: when, Until: when.Add(time.Hour), Task: "t", Run: "r-0001", Limit: 3}
	check(t, AppendTimeline(nil, &events), events, ParseTimeline)
	for _, s := range []view.Selection{{IDs: []string{"a", "b:c"}}, {All: true, Count: true, Query: q}} {
		check(t, AppendSelect(nil, OpCancel, &s, hostile), s, func(m *Message) (view.Selection, error) {
			got, reason, err := ParseSelect(m)
			if reason != hostile {
				t.Errorf("reason %q", reason)
			}
			return got, err
		})
	}
}

func check[T any](t *testing.T, frame []byte, want T, parse func(*Message) (T, error)) {
	t.Helper()
	m, err := ParseMessage(frame[header:])
	if err != nil {
		t.Errorf("%q: %v", frame, err)
		return
	}
	got, err := parse(m)
	if err != nil {
		t.Errorf("%q: %v", frame, err)
		return
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%T:\n got %+v\nwant %+v", want, got, want)
	}
	if again := m.Append(nil); !bytes.Equal(again, frame) {
		t.Errorf("%q encodes again to %q", frame, again)
	}
}

func sampleTask(i int) view.Task {
	at := view.Time{Time: time.Date(2026, 1, 31, 8, 0, i, 5, time.UTC)}
	return view.Task{
		ID: fmt.Sprint("t", i), Type: "fetch", State: "dead", Attempt: 3, Version: int64(i), ErrorClass: "timeout", Error: hostile,
		Submitted: at, Started: at, Outputs: view.Object(values("x", hostile)),
	}
}

func TestRowsRoundTrip(t *testing.T) {
	rows := map[string]view.Row{
		"task": ptr(sampleTask(1)), "zero task": &view.Task{},
		"detail":   &view.Detail{Task: sampleTask(2), Key: "k", Inputs: view.Object(values("a", hostile)), Retries: 2, Late: hostile},
		"attempt":  &view.Attempt{Attempt: 0, Version: 3, Executor: "e", Error: hostile, MS: 12},
		"executor": &view.Executor{ID: "e", HeartbeatMS: -1, Late: true},
		"key":      &view.Key{Key: "k", Value: hostile}, "late": &view.Late{Task: "t", Current: 1, Effect: hostile},
		"queue": &view.Queue{Type: "a", Paused: true, OldestMS: 9}, "zero queue": &view.Queue{},
		"event":  &view.Event{Seq: 1, Kind: "result", Run: "r-0001", Values: view.Object(values("in.x", hostile, "a b", "odd name"))},
		"status": &view.Status{Epoch: 3, Debug: true, Executors: view.Counts{"idle": 4}, Tasks: view.Counts{"dead": 1 << 40}},
	}
	for name, row := range rows {
		frame, err := AppendRows(nil, nil, slices.Values([]view.Row{row}), MaxFrame)
		if err != nil {
			t.Fatal(err)
		}
		m, err := ParseMessage(frame[header:])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := reflect.New(reflect.TypeOf(row).Elem()).Interface().(view.Row)
		n := 0
		err = eachRow(m, func(r *Message) error { n++; return ReadRow(r, got) })
		if err != nil || n != 1 {
			t.Errorf("%s: %d rows, %v", name, n, err)
		}
		if s, ok := got.(*view.Status); ok { // every state is present
			maps.DeleteFunc(s.Executors, func(_ string, n int64) bool { return n == 0 })
			maps.DeleteFunc(s.Tasks, func(_ string, n int64) bool { return n == 0 })
			maps.DeleteFunc(row.(*view.Status).Executors, func(_ string, n int64) bool { return n == 0 })
			maps.DeleteFunc(row.(*view.Status).Tasks, func(_ string, n int64) bool { return n == 0 })
		}
		if !reflect.DeepEqual(got, row) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, row)
		}
	}
}

func ptr[T any](v T) *T { return &v }

// A page over the cap goes out in parts, each within it.
func TestRowsAreCutIntoFrames(t *testing.T) {
	var list []view.Task
	for i := range 2500 {
		list = append(list, sampleTask(i))
	}
	for _, limit := range []int{1 << 10, 64 << 10, MaxFrame} {
		stream, err := AppendRows(nil, head("cursor", "c"), rowsOf(list), limit)
		if err != nil {
			t.Fatal(err)
		}
		texts, _ := readAll(bytes.NewReader(stream), limit)
		var got []view.Task
		for i, text := range texts {
			m, err := ParseMessage([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if last := i == len(texts)-1; (m.Text("part") == "") != last {
				t.Fatalf("limit %d: frame %d of %d says part=%q", limit, i, len(texts), m.Text("part"))
			}
			eachRow(m, func(row *Message) error {
				got = append(got, view.Task{})
				return ReadRow(row, &got[len(got)-1])
			})
		}
		if !reflect.DeepEqual(got, list) {
			t.Errorf("limit %d: %d rows in %d frames came back", limit, len(got), len(texts))
		}
	}
	_, err := AppendRows(nil, nil, rowsOf([]view.Task{{ID: "t", Error: strings.Repeat("x", 2000)}}), 1<<10)
	if !errors.Is(err, &Error{Code: CodeTooLarge}) {
		t.Errorf("a row over the cap: %v", err)
	}
}

func TestStatePageIsCutWithACursor(t *testing.T) {
	page := &view.KeyPage{Version: 5}
	for i := range 100 {
		page.Keys = append(page.Keys, view.Key{Key: fmt.Sprintf("k%03d", i), Value: strings.Repeat("=", 50)})
	}
	const limit = 2000
	var got []string
	for rounds := 0; ; rounds++ {
		frame := AppendState(nil, page, limit)
		if len(frame)-header > limit {
			t.Fatalf("frame of %d bytes", len(frame)-header)
		}
		m, _ := ParseMessage(frame[header:])
		s, err := ParseState(m)
		if err != nil || len(s.Values) == 0 {
			t.Fatalf("%v: %v", s, err)
		}
		for _, v := range s.Values {
			got = append(got, v.Name)
		}
		if s.Cursor == "" {
			break
		}
		i := slices.IndexFunc(page.Keys, func(k view.Key) bool { return k.Key > s.Cursor })
		page.Keys = page.Keys[i:]
	}
	if len(got) != 100 || !slices.IsSorted(got) {
		t.Errorf("%d keys came", len(got))
	}
}

func TestSubmitInParts(t *testing.T) {
	when := time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)
	var specs []task.Spec
	for i := range 3000 {
		s := task.Spec{Type: "fetch", ID: fmt.Sprint("t", i), Retries: task.Unset, Inputs: values("a", hostile, "b", "")}
		if i%2 == 0 {
			s.Key, s.NotBefore, s.Deadline, s.Retries, s.Timeout = "k", when, when.Add(time.Hour), 0, time.Second
		}
		specs = append(specs, s)
	}
	for _, limit := range []int{1 << 10, 64 << 10, MaxFrame} {
		stream, err := AppendSubmit(nil, specs, limit)
		if err != nil {
			t.Fatal(err)
		}
		got, err := assemble(t, stream, limit)
		if err != nil || !reflect.DeepEqual(got.Specs, specs) {
			t.Errorf("limit %d: %d specs, %v", limit, len(got.Specs), err)
		}
	}
	if _, err := AppendSubmit(nil, []task.Spec{{Type: strings.Repeat("x", 2000)}}, 1<<10); !errors.Is(err, &Error{Code: CodeTooLarge}) {
		t.Errorf("a task over the cap: %v", err)
	}
	if _, err := AppendSubmit(nil, make([]task.Spec, MaxSubmit+1), MaxFrame); !errors.Is(err, &Error{Code: CodeTooLarge}) {
		t.Errorf("too many tasks: %v", err)
	}
}

func assemble(t *testing.T, stream []byte, limit int) (*Submission, error) {
	t.Helper()
	texts, _ := readAll(bytes.NewReader(stream), limit)
	s := new(Submission)
	for i, text := range texts {
		m, err := ParseMessage([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		done, err := s.Add(m)
		if last := i == len(texts)-1; done != last {
			t.Fatalf("frame %d of %d: done is %v", i, len(texts), done)
		}
		if done {
			return s, err
		}
	}
	return s, errors.New("it has no end")
}

func TestSubmitFaults(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"no task", "", "without a task"},
		{"starts late", "1.type=a", "task number 1 comes where 0 was due"},
		{"gap", "0.type=a\n2.type=a", "task number 2 comes where 1 was due"},
		{"apart", "0.type=a\n1.type=a\n0.id=x", "task number 0 comes where 2 was due"},
		{"odd number", "00.type=a", "task number 00 comes where 0 was due"},
		{"bad time", "0.type=a\n1.type=a\n1.deadline=soon", "task 2: deadline: not an RFC 3339 time"},
		{"bad retries", "0.type=a\n0.retries=-1", "task 1: retries"},
		{"bad input name", "0.type=a\n0.in.=1", "task 1: in.: key"},
	} {
		for _, part := range []bool{false, true} {
			text := "type=control\nop=submit\n" + c.text
			var s Submission
			if part { // the fault is told at the end, and only then
				m, _ := ParseMessage([]byte(text + "\npart=true"))
				if done, _ := s.Add(m); done {
					t.Fatalf("%s: a part ended it", c.name)
				}
				text = "type=control\nop=submit"
			}
			m, err := ParseMessage([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			done, err := s.Add(m)
			if !done || err == nil || !strings.Contains(err.Error(), c.want) || len(s.Specs) != 0 {
				t.Errorf("%s: %v %v, %d specs", c.name, done, err, len(s.Specs))
			}
		}
	}
}

// A submit ends at its limits, whoever sends it, and keeps nothing then.
func TestSubmitLimits(t *testing.T) {
	many := func(i int) string { return fmt.Sprintf("%d.type=a\n", i) }
	large := func(i int) string { return fmt.Sprintf("%d.type=a\n%d.in.x=%s\n", i, i, strings.Repeat("x", 500<<10)) }
	for name, c := range map[string]struct {
		line     func(i int) string
		each, in int // tasks in a part, parts that are too many
	}{
		"tasks": {many, 20_000, MaxSubmit/20_000 + 1},
		"bytes": {large, 2, MaxSubmitBytes/(1000<<10) + 1},
	} {
		var s Submission
		n := 0
		for part := range c.in {
			text := new(strings.Builder)
			text.WriteString("type=control\nop=submit\npart=true\n")
			for range c.each {
				text.WriteString(c.line(n))
				n++
			}
			m, err := ParseMessage([]byte(text.String()))
			if err != nil {
				t.Fatal(err)
			}
			if _, err = s.Add(m); (err != nil) != (part == c.in-1) {
				t.Fatalf("%s: part %d of %d: %v", name, part+1, c.in, err)
			}
		}
		if !errors.Is(s.err, &Error{Code: CodeTooLarge}) || s.Specs != nil {
			t.Errorf("%s: %v, %d kept", name, s.err, len(s.Specs))
		}
	}
}

func FuzzMessage(f *testing.F) {
	for _, text := range docMessages(f) {
		f.Add([]byte(text.text), text.proto == 2)
	}
	f.Add([]byte("type=result\ntask_id=t\nout.a=\\x"), true)
	f.Add([]byte("a=1\na=2"), false)
	f.Fuzz(func(t *testing.T, text []byte, second bool) {
		m, err := ParseMessage(text)
		if err != nil {
			return
		}
		frame := m.Append(nil)
		if m.Skipped == 0 && !bytes.Equal(frame[header:], text) {
			t.Fatalf("%q encodes again to %q", text, frame[header:])
		}
		proto := 1
		if second {
			proto = 2
		}
		once, err := recode(m, proto)
		if err != nil {
			return
		}
		m2, err := ParseMessage(once[header:])
		if err != nil {
			t.Fatalf("%q gives %q: %v", text, once, err)
		}
		twice, err := recode(m2, proto)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%q gives\n%q, then\n%q: %v", text, once, twice, err)
		}
	})
}
