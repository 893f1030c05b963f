package wire

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// recodeRun is recodeControl for what concerns missions and their runs.
func recodeRun(m *Message, op Op) ([]byte, error) {
	switch op {
	case OpUpload:
		var u Upload
		done, _ := u.Add(m)
		return appendUploadPart(nil, u.File, u.Text, !done), u.err
	case OpRun:
		return both(AppendStart)(ParseStart(m))
	case OpRerun:
		id, atContext, err := ParseRerun(m)
		return AppendRerun(nil, id, atContext), err
	case OpFork:
		return both(AppendFork)(ParseFork(m))
	case OpCancelRun:
		id, reason, err := ParseCancelRun(m)
		return AppendCancelRun(nil, id, reason), err
	case OpRollback:
		return both(AppendRollback)(ParseRollback(m))
	case OpRestore:
		return both(AppendRestore)(ParseRestore(m))
	case OpEvent:
		return both(AppendEvent)(ParseEvent(m))
	case OpRuns:
		return both(AppendRuns)(ParseRuns(m))
	case OpShow:
		id, cursor, err := ParseShow(m)
		return AppendShow(nil, id, cursor), err
	case OpSpec:
		return both(AppendSpec)(ParseSpec(m))
	case OpMoment:
		when, err := ParseMoment(m)
		return AppendMoment(nil, when), err
	}
	return nil, errors.New("no codec for " + string(op))
}

// runAnswer finds out which answer about missions and runs it is; nil: none.
func runAnswer(m *Message) func(*Message) ([]byte, error) {
	has := func(key string) bool { _, ok := m.Get(key); return ok }
	switch {
	case has("hash"):
		return func(m *Message) ([]byte, error) { return both(AppendSpecPiece)(ParseSpecPiece(m)) }
	case has("seq"):
		return func(m *Message) ([]byte, error) { seq, err := ParseSeq(m); return AppendSeq(nil, seq), err }
	case has("at"):
		return recodeRestored
	case has("1.undo"), has("1.without"):
		return func(m *Message) ([]byte, error) {
			var rows undoneRows
			if err := rows.read(m); err != nil || rows.Units == nil && rows.Without == nil {
				return nil, errors.Join(err, errors.New("nobody could tell its answer from others"))
			}
			return AppendUndone(nil, &rows.Undone, MaxFrame)
		}
	case m.Text("0.mission") != "":
		return func(m *Message) ([]byte, error) {
			var rows runRows
			if err := rows.read(m); err != nil || rows.Mission == "" {
				return nil, errors.Join(err, errors.New("nobody could tell its answer from others"))
			}
			return AppendRun(nil, &rows.RunDetail, MaxFrame)
		}
	}
	return nil
}

func recodeRestored(m *Message) ([]byte, error) {
	f := fields{m: m}
	r := &view.Restored{Seq: int64(f.count("at")), Total: int(f.count("total"))}
	err := eachRow(m, func(row *Message) error {
		r.Changed = append(r.Changed, view.KeyChange{})
		return ReadRow(row, &r.Changed[len(r.Changed)-1])
	})
	if err = errors.Join(f.err, err); err != nil {
		return nil, err
	}
	return AppendRestored(nil, r, MaxFrame)
}

func TestRunRoundTrip(t *testing.T) {
	start := &Start{Mission: "weather", Params: values("year", "2012", "note", hostile), Key: "k=1", Sample: 100, Check: true}
	check(t, AppendStart(nil, start), start, ParseStart)
	file := &Start{File: "missions/a b.toml"}
	check(t, AppendStart(nil, file), file, ParseStart)
	fork := &Fork{Run: "r-0001", From: "clean", With: values("limit", hostile)}
	check(t, AppendFork(nil, fork), fork, ParseFork)
	back := &Rollback{Run: "r-0001", To: "clean", Check: true}
	check(t, AppendRollback(nil, back), back, ParseRollback)
	restore := &Restore{Seq: 1 << 40, Check: true, Reason: hostile}
	check(t, AppendRestore(nil, restore), restore, ParseRestore)
	event := &Happening{Name: "landed", Params: values("file", hostile)}
	check(t, AppendEvent(nil, event), event, ParseEvent)
	runs := &view.RunQuery{Mission: "weather", State: "needs_person", Limit: 7, Cursor: "c"}
	check(t, AppendRuns(nil, runs), runs, ParseRuns)
	for _, spec := range []*SpecQuery{{Run: "r-0001", Offset: 9}, {Mission: "weather"}} {
		check(t, AppendSpec(nil, spec), spec, ParseSpec)
	}
	piece := &SpecPiece{Text: hostile, Next: 9, Size: 10, Hash: "sha256:00"}
	check(t, AppendSpecPiece(nil, piece), piece, ParseSpecPiece)
	when := view.Time{Time: time.Date(2026, 1, 31, 8, 0, 0, 5, time.UTC)}
	check(t, AppendMoment(nil, when), when, ParseMoment)
	check(t, AppendSeq(nil, 1<<40), 1<<40, ParseSeq)
	check(t, AppendSeq(nil, 0), 0, ParseSeq)
	keys := view.KeyQuery{Prefix: "a.", Cursor: "a.b", Limit: 3}
	check(t, AppendKeys(nil, &keys, 1<<40), keys, func(m *Message) (view.KeyQuery, error) {
		q, seq, err := ParseKeys(m)
		if seq != 1<<40 {
			t.Errorf("at %d", seq)
		}
		return q, err
	})
}

func sampleRun() view.Run {
	at := view.Time{Time: time.Date(2026, 1, 31, 8, 0, 0, 5, time.UTC)}
	return view.Run{
		ID: "r-0002", Mission: "weather", State: "failed", Mode: "resume", Parent: "r-0001", Child: "r-0003", Cause: "a time table",
		By: "ann", Why: hostile, Spec: "sha256:00", Units: 7, Done: 6, Running: 1, Failed: 1, Skipped: 2, Reused: 3,
		Created: at, Started: at, Finished: at, MS: 1234, Params: view.Object(values("year", hostile)),
	}
}

func sampleRunUnit(i int) view.RunUnit {
	at := view.Time{Time: time.Date(2026, 1, 31, 8, 0, 0, 5, time.UTC)}
	return view.RunUnit{
		Unit: fmt.Sprint("fetch-", i), Task: fmt.Sprint("r-0002:fetch-", i), Type: "fetch", State: "succeeded", Reason: "reused from r-0001",
		Deps: "a,b", Weak: "c", Attempt: 2, Version: 3_000_001, Executor: "e1", ErrorClass: "timeout", Error: hostile, InputHash: "i",
		OutputHash: "o", UnitHash: "u", Ready: at, Started: at, Finished: at, QueueMS: 1, PrepareMS: 2, ExecuteMS: 3, CleanupMS: 4,
		Inputs: view.Object(values("a", hostile)), Outputs: view.Object(values("b", hostile, "c", "")),
	}
}

// Every noun of missions comes back from its row as it was.
func TestRunRowsRoundTrip(t *testing.T) {
	run, unit := sampleRun(), sampleRunUnit(1)
	for _, row := range []view.Row{
		&run, &view.Run{}, &unit, &view.RunUnit{},
		&view.Mission{Name: "weather", Hash: "h", File: "f", Units: 7, Template: true, Params: view.Object(values("year", "int=2012")), Triggers: "cron", Next: run.Created, LastRun: "r-0001", State: "failed", Fault: hostile},
		&view.TypeStats{Type: "fetch", Samples: 9, MeanUS: 1, P50US: 2, P99US: 3, MaxUS: 4, Execs: 5, Unit: hostile},
		&view.KeyChange{Key: "k", Before: hostile, After: "", Gone: true}, &view.KeyChange{Key: "k", New: true},
	} {
		frame, err := AppendRows(nil, nil, slices.Values([]view.Row{row}), MaxFrame)
		if err != nil {
			t.Fatal(err)
		}
		m, err := ParseMessage(frame[header:])
		if err != nil {
			t.Fatal(err)
		}
		got := reflect.New(reflect.TypeOf(row).Elem()).Interface().(view.Row)
		if err := eachRow(m, func(r *Message) error { return ReadRow(r, got) }); err != nil || !reflect.DeepEqual(got, row) {
			t.Errorf("%T: %v\n got %+v\nwant %+v", row, err, got, row)
		}
	}
}

// readRows plays a client's reading of an answer that comes in frames.
func readRows(t *testing.T, stream []byte, limit int, read func(*Message) error) (frames int) {
	t.Helper()
	texts, _ := readAll(bytes.NewReader(stream), limit)
	for i, text := range texts {
		m, err := ParseMessage([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if last := i == len(texts)-1; (m.Text("part") == "") != last {
			t.Fatalf("frame %d of %d says part=%q", i, len(texts), m.Text("part"))
		}
		if err := read(m); err != nil {
			t.Fatal(err)
		}
	}
	return len(texts)
}

func TestRunDetailInFrames(t *testing.T) {
	d := &view.RunDetail{Run: sampleRun(), Notes: []string{"a changed from 1 to 2", hostile}, Cursor: "c"}
	for i := range 500 {
		d.Units = append(d.Units, sampleRunUnit(i))
	}
	for _, limit := range []int{4 << 10, 64 << 10, MaxFrame} {
		stream, err := AppendRun(nil, d, limit)
		if err != nil {
			t.Fatal(err)
		}
		var rows runRows
		n := readRows(t, stream, limit, rows.read)
		if !reflect.DeepEqual(&rows.RunDetail, d) || limit < MaxFrame && n < 2 {
			t.Errorf("limit %d: in %d frames came %d units, %q, %+v", limit, n, len(rows.Units), rows.Notes, rows.Run)
		}
	}
}

func TestUndoneInFrames(t *testing.T) {
	for _, u := range []*view.Undone{
		{}, {Units: []string{"a"}}, {Without: []string{"a"}},
		{Run: sampleRun(), Units: slices.Repeat([]string{"clean"}, 3000), Without: []string{"fetch", "report"}},
	} {
		stream, err := AppendUndone(nil, u, 8<<10)
		if err != nil {
			t.Fatal(err)
		}
		var rows undoneRows
		readRows(t, stream, 8<<10, rows.read)
		if !reflect.DeepEqual(&rows.Undone, u) {
			t.Errorf("got %+v\nwant %+v", rows.Undone, u)
		}
	}
}

// A unit with all that a task may hold fits a frame, is cut in the open, and two
// that differ only in what is cut off still differ.
func TestLongValuesAreCutInPages(t *testing.T) {
	long := strings.Repeat("\\", task.MaxBytes-10)
	many := values("a", "1")
	for i := range task.MaxBytes / 20 {
		many = append(many, task.Value{Name: fmt.Sprintf("b%06d", i), Value: "\\\n=\\\n=\\\n"})
	}
	shown := func(in, out task.Values) view.RunUnit {
		t.Helper()
		given := view.RunUnit{Unit: "u", Inputs: view.Object(in), Outputs: view.Object(out)}
		stream, err := AppendRun(nil, &view.RunDetail{Run: view.Run{ID: "r"}, Units: []view.RunUnit{given}}, MaxFrame)
		if err != nil {
			t.Fatal(err)
		}
		var rows runRows
		readRows(t, stream, MaxFrame, rows.read)
		return rows.Units[0]
	}
	u := shown(values("a", long, "b", "short"), many)
	a, _ := task.Values(u.Inputs).Get("a")
	b, _ := task.Values(u.Inputs).Get("b")
	if !strings.HasPrefix(a, long[:maxShown]+"… (131062 bytes, sha256:") || len(a) > maxShown+markBytes || b != "short" {
		t.Errorf("inputs are shown as %.100q… %q", a[maxShown:], b)
	}
	rest := u.Outputs[len(u.Outputs)-1]
	if rest.Name != "…" || !strings.Contains(rest.Value, " more (") || task.Values(u.Outputs).Size() > maxShownSide+200 || u.Outputs[0].Value != "1" {
		t.Errorf("outputs are shown as %d values, %v last", len(u.Outputs), rest)
	}
	other := shown(values("a", long[:len(long)-1]+"x"), nil)
	if c, _ := task.Values(other.Inputs).Get("a"); c == a {
		t.Error("two values look the same")
	}
	runes := shown(values("a", strings.Repeat("é", maxShown)), values("a", strings.Repeat("x", maxShown+markBytes)))
	if a, _ := task.Values(runes.Inputs).Get("a"); strings.Contains(a, "\uFFFD") {
		t.Error("a character is cut in half")
	}
	if a, _ := task.Values(runes.Outputs).Get("a"); a != strings.Repeat("x", maxShown+markBytes) {
		t.Error("a value at the limit is cut")
	}
	just := strings.Repeat("x", maxShown+markBytes+1)
	runes = shown(values("a", just), nil)
	if a, _ := task.Values(runes.Inputs).Get("a"); len(a) >= len(just) {
		t.Errorf("a value of %d bytes is cut to %d", len(just), len(a))
	}
}

func TestRestoredIsBounded(t *testing.T) {
	r := &view.Restored{Seq: 7}
	for i := range 2000 {
		r.Changed = append(r.Changed, view.KeyChange{Key: fmt.Sprint("k", i), Before: strings.Repeat("\\", 100<<10), After: "1"})
	}
	stream, err := AppendRestored(nil, r, MaxFrame)
	if err != nil || len(stream) > MaxQueued/2 {
		t.Fatalf("%d bytes, %v", len(stream), err)
	}
	n := 0
	readRows(t, stream, MaxFrame, func(m *Message) error {
		if n == 0 && (m.Text("total") != "2000" || m.Text("at") != "7") {
			t.Errorf("head %.100q", m.Append(nil))
		}
		return eachRow(m, func(*Message) error { n++; return nil })
	})
	if n != maxRestored || r.Changed[0].Before[100] != '\\' || len(r.Changed[0].Before) != 100<<10 {
		t.Errorf("%d changes are listed, or what was given is changed", n)
	}
}

func TestSpecInPieces(t *testing.T) {
	for _, text := range []string{"", "name = \"a\"\n", strings.Repeat("é", maxSpecPiece), strings.Repeat("x", 2*maxSpecPiece)} {
		got := ""
		for offset := int64(0); ; {
			p := CutSpec(text, offset)
			if p.Size != int64(len(text)) || p.Hash != task.HashText([]byte(text)) || p.Next == offset && p.Next != p.Size {
				t.Fatalf("piece at %d goes on at %d of %d", offset, p.Next, p.Size)
			}
			got, offset = got+p.Text, p.Next
			if p.Next == p.Size {
				break
			}
		}
		if got != text {
			t.Errorf("%d bytes came back as %d", len(text), len(got))
		}
	}
	if p := CutSpec("abc", 99); p.Text != "" || p.Next != 3 {
		t.Errorf("past the end: %+v", p)
	}
}

func TestUploadInParts(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "one": "name = \"a\"", "escapes": strings.Repeat("=\\\n", 5000), "letters": strings.Repeat("aé\u4e16\U0001f680", 3000),
		"no UTF-8": strings.Repeat("\xff\xfe\x00a", 3000), "all": strings.Repeat("=", MaxUpload),
	} {
		for _, limit := range []int{1 << 10, 64 << 10, MaxFrame} {
			stream, err := AppendUpload(nil, "missions/\x1b a=b.toml", []byte(text), limit)
			if err != nil {
				t.Fatal(err)
			}
			var u Upload
			ended := 0
			readRows(t, stream, limit, func(m *Message) error {
				done, err := u.Add(m)
				if u.Open() == done {
					t.Fatal("an upload is open when it is done, or not before")
				}
				if done {
					ended++
				}
				return err
			})
			if ended != 1 || string(u.Text) != text || u.File != "missions/\x1b a=b.toml" {
				t.Errorf("%s, limit %d: %d bytes of %d came, %d ends", name, limit, len(u.Text), len(text), ended)
			}
		}
	}
	if _, err := AppendUpload(nil, "a", make([]byte, MaxUpload+1), MaxFrame); !errors.Is(err, &Error{Code: CodeTooLarge}) {
		t.Errorf("too long a file: %v", err)
	}
	if _, err := AppendUpload(nil, strings.Repeat("a", 1<<10), []byte("x"), 1<<10); !errors.Is(err, &Error{Code: CodeTooLarge}) {
		t.Errorf("too long a name: %v", err)
	}
}

// The first fault of an upload is told at its end, and nothing is kept.
func TestUploadFaults(t *testing.T) {
	piece := strings.Repeat("x", 1000<<10)
	for name, c := range map[string]struct {
		parts []string
		want  string
	}{
		"no name":    {[]string{"text=x"}, "file: is missing"},
		"two files":  {[]string{"file=a\ntext=x\npart=true", "file=b\ntext=y"}, `a part of "b" comes in the upload of "a"`},
		"long name":  {[]string{"file=" + strings.Repeat("a", maxFileName+1)}, "over 1024 bytes"},
		"no base64":  {[]string{"file=a\ntext64=!\npart=true", "file=a\ntext=x"}, "not base64"},
		"bad part":   {[]string{"file=a\npart=perhaps"}, "want true or false"},
		"over limit": {append(slices.Repeat([]string{"file=a\npart=true\ntext=" + piece}, 5), "file=a"), "over 4194304 bytes"},
	} {
		var u Upload
		for i, text := range c.parts {
			m, err := ParseMessage([]byte("type=control\nop=upload\n" + text))
			if err != nil {
				t.Fatal(err)
			}
			done, err := u.Add(m)
			if last := i == len(c.parts)-1; done != last {
				t.Fatalf("%s: part %d of %d: done is %v", name, i+1, len(c.parts), done)
			}
			if done && (err == nil || !strings.Contains(err.Error(), c.want) || u.Text != nil) {
				t.Errorf("%s: %v, %d bytes kept", name, err, len(u.Text))
			}
		}
	}
}
