package cli

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is now in every test; its zone is not UTC, so that a forgotten
// conversion shows.
var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.FixedZone("test", 3600))

// at is noon less so long.
func at(before time.Duration) view.Time { return view.Time{Time: noon.Add(-before).UTC()} }

// fake is a controller without an engine: it answers what the test put in.
type fake struct {
	t     *testing.T
	addr  string
	token string // that it wants
	id    string // of its data folder

	mu          sync.Mutex // sessions and the test
	status      view.Status
	executors   []view.Executor
	queues      []view.Queue
	tasks       []view.Task
	details     map[string][]view.Detail // by id; the last one stays
	keys        []view.Key
	late        []view.Late
	events      []view.Event
	logs        map[int]string // by attempt
	ended       map[int]bool
	submitted   []task.Spec
	batches     []int
	known       map[string]bool // keys that were there already
	refuse      map[wire.Op]*wire.Error
	hangUp      wire.Op // closes instead of answering
	changed     view.Changed
	explanation view.Explanation
	asked       []string // what was asked, one line each
	fakeRuns
}

func newFake(t *testing.T) *fake {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{t: t, addr: listener.Addr().String(), details: map[string][]view.Detail{}, refuse: map[wire.Op]*wire.Error{}, fakeRuns: fakeRuns{shown: map[string][]view.RunDetail{}}}
	var sessions sync.WaitGroup
	sessions.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			sessions.Go(func() { f.serve(c) })
		}
	})
	t.Cleanup(func() { listener.Close(); sessions.Wait() })
	return f
}

func (f *fake) serve(c net.Conn) {
	defer c.Close()
	frames := wire.NewFrames(wire.MaxFrame)
	var submission wire.Submission
	for {
		text, ok, err := frames.Next()
		if err != nil {
			return
		}
		if !ok {
			if _, err := frames.ReadOnce(c); err != nil {
				return
			}
			continue
		}
		m, err := wire.ParseMessage(text)
		if err != nil {
			f.t.Errorf("a command sent %v", err)
			return
		}
		out := f.answer(m, &submission)
		if out == nil {
			return
		}
		if _, err := c.Write(out); err != nil {
			return
		}
	}
}

func (f *fake) answer(m *wire.Message, s *wire.Submission) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	op := wire.Op(m.Text("op"))
	if e := f.refuse[op]; e != nil {
		return wire.AppendError(nil, e)
	}
	if op == f.hangUp {
		return nil
	}
	ok := wire.AppendAck(nil, &wire.Ack{})
	switch op {
	case wire.OpHello:
		return f.hello(wire.ParseHello(m))
	case wire.OpStatus:
		return rows(f.t, nil, &f.status)
	case wire.OpExecutors:
		return rows(f.t, nil, pointers[view.Executor](f.executors)...)
	case wire.OpQueues:
		return rows(f.t, nil, pointers[view.Queue](f.queues)...)
	case wire.OpTasks:
		return f.page(m)
	case wire.OpTask:
		return f.detail(m)
	case wire.OpState:
		return f.keyPage(m)
	case wire.OpLate:
		return rows(f.t, nil, pointers[view.Late](f.late)...)
	case wire.OpSubmit:
		return f.submit(m, s)
	case wire.OpEdit:
		e, err := wire.ParseEdit(m)
		f.check(err)
		f.note("edit %+v", *e)
		return rows(f.t, nil, &view.Detail{Task: view.Task{ID: "t-7", Type: "echo", State: "queued"}, Inputs: view.Object(e.Set)})
	case wire.OpExplain:
		f.note("explain %s", m.Text("id"))
		return wire.AppendExplanation(nil, &f.explanation)
	case wire.OpRequeue, wire.OpCancel, wire.OpDrop:
		sel, reason, err := wire.ParseSelect(m)
		f.check(err)
		f.note("%s ids=%v all=%v count=%v states=%v type=%s error=%s reason=%s", op, sel.IDs, sel.All, sel.Count, sel.Query.States, sel.Query.Type, sel.Query.Error, reason)
		return wire.AppendChanged(nil, &f.changed)
	case wire.OpPause, wire.OpDebug:
		typ, on, err := wire.ParseSwitch(m)
		f.check(err)
		f.note("%s %q %v", op, typ, on)
		return ok
	case wire.OpDrain:
		f.note("drain %s", m.Text("id"))
		return ok
	case wire.OpRepair:
		r, err := wire.ParseRepair(m)
		f.check(err)
		f.note("repair %+v", *r)
		return rows(f.t, nil, &view.Key{Key: r.Key, Value: r.Value, Version: 3, Seq: 99})
	case wire.OpLogs:
		return f.log(m)
	case wire.OpTimeline:
		return f.timeline(m)
	}
	if out := f.answerRun(op, m); out != nil {
		return out
	}
	return wire.AppendError(nil, &wire.Error{Code: wire.CodeUnknownOp, Message: "unknown op " + string(op)})
}

func (f *fake) note(format string, args ...any) {
	f.asked = append(f.asked, fmt.Sprintf(format, args...))
}

func (f *fake) check(err error) {
	if err != nil {
		f.t.Errorf("a command sent %v", err)
	}
}

func (f *fake) hello(h *wire.Hello) []byte {
	f.note("hello token=%s actor=%s", h.Token, h.Actor)
	if h.Token != f.token {
		return wire.AppendError(nil, &wire.Error{Code: wire.CodeUnauthorized, Message: "the operators' token is missing or wrong", Fatal: true})
	}
	if h.Folder != "" && f.id != h.Folder {
		return wire.AppendError(nil, &wire.Error{Code: wire.CodeWrongFolder, Message: "this controller serves another data folder", Fatal: true})
	}
	return wire.AppendAck(nil, &wire.Ack{Folder: f.id})
}

// page answers with the tasks whose state and type match; the cursor is an index.
func (f *fake) page(m *wire.Message) []byte {
	q, err := wire.ParseTasks(m)
	f.check(err)
	f.note("tasks type=%s states=%v error=%s older=%s limit=%d cursor=%s", q.Type, q.States, q.Error, q.Older, q.Limit, q.Cursor)
	from, _ := strconv.Atoi(q.Cursor)
	var page view.Page
	for i := from; i < len(f.tasks); i++ {
		if len(page.Tasks) == q.Limit {
			page.Cursor = strconv.Itoa(i)
			break
		}
		s, _ := task.ParseState(f.tasks[i].State)
		if len(q.States) == 0 || slices.Contains(q.States, s) {
			page.Tasks = append(page.Tasks, f.tasks[i])
		}
	}
	return rows(f.t, wire.PageHead(&page), pointers[view.Task](page.Tasks)...)
}

func (f *fake) detail(m *wire.Message) []byte {
	id, err := wire.ParseName(m)
	f.check(err)
	f.note("task %s", id)
	list := f.details[id]
	if len(list) == 0 {
		return wire.AppendError(nil, &wire.Error{Code: wire.CodeNotFound, Message: "not found"})
	}
	d := list[0]
	if len(list) > 1 {
		f.details[id] = list[1:]
	}
	return rows(f.t, nil, append([]view.Row{&d}, pointers[view.Attempt](d.Attempts)...)...)
}

func (f *fake) keyPage(m *wire.Message) []byte {
	q, seq, err := wire.ParseKeys(m)
	f.check(err)
	if seq > 0 {
		f.note("state at %d", seq)
	}
	var page view.KeyPage
	for _, k := range f.keysAt(seq) {
		if len(q.Keys) == 0 && strings.HasPrefix(k.Key, q.Prefix) && k.Key > q.Cursor || slices.Contains(q.Keys, k.Key) {
			page.Keys = append(page.Keys, k)
		}
	}
	if len(page.Keys) > 2 {
		page.Keys = page.Keys[:2]
		page.Cursor = page.Keys[1].Key
	}
	return rows(f.t, wire.KeysHead(&page), pointers[view.Key](page.Keys)...)
}

// checked refuses inputs with the name bad.
func (f *fake) checked(specs []task.Spec) []byte {
	e := &wire.Error{Code: wire.CodeInvalid, Message: "some are bad"}
	for i, spec := range specs {
		if _, bad := spec.Inputs.Get("bad"); bad {
			e.Faults = append(e.Faults, wire.Fault{Index: i, Message: "input bad is not declared"})
		}
	}
	f.note("check of %d", len(specs))
	if len(e.Faults) == 0 {
		return wire.AppendAck(nil, &wire.Ack{})
	}
	return wire.AppendError(nil, e)
}

func (f *fake) submit(m *wire.Message, s *wire.Submission) []byte {
	done, err := s.Add(m)
	f.check(err)
	if !done {
		return []byte{}
	}
	specs, check := s.Specs, s.Check
	*s = wire.Submission{}
	if check {
		return f.checked(specs)
	}
	var list []view.Submitted
	for _, spec := range specs {
		out := view.Submitted{ID: spec.ID, State: task.Queued, Existed: f.known[spec.Key]}
		if out.ID == "" {
			out.ID = fmt.Sprintf("t-%d", len(f.submitted)+1)
		}
		if spec.Type == "nobody" {
			out.Warning = "no executor offers nobody"
		}
		f.submitted = append(f.submitted, spec)
		list = append(list, out)
	}
	f.batches = append(f.batches, len(specs))
	out, err := wire.AppendSubmitted(nil, list, wire.MaxFrame)
	f.check(err)
	return out
}

// log hands out five bytes at a time.
func (f *fake) log(m *wire.Message) []byte {
	q, err := wire.ParseLogs(m)
	f.check(err)
	if q.Attempt == 0 {
		q.Attempt = len(f.logs)
	}
	text, ok := f.logs[q.Attempt]
	if !ok {
		return wire.AppendError(nil, &wire.Error{Code: wire.CodeNotFound, Message: "no output of it"})
	}
	text = text[q.Offset:]
	text = text[:min(len(text), 5)]
	return wire.AppendLogChunk(nil, &wire.LogChunk{
		Data: []byte(text), Next: q.Offset + int64(len(text)), Attempt: q.Attempt, Ended: f.ended[q.Attempt] && text == "",
	})
}

// timeline hands out two events at a time.
func (f *fake) timeline(m *wire.Message) []byte {
	q, err := wire.ParseTimeline(m)
	f.check(err)
	if q.Run != "" {
		f.note("timeline of %s from=%d", q.Run, q.From)
	} else {
		f.note("timeline from=%d task=%s after=%s until=%s", q.From, q.Task, stamp(q.After), stamp(q.Until))
	}
	page, err := (&events{list: f.events}).Timeline(context.Background(), q)
	f.check(err)
	return rows(f.t, wire.EventsHead(page), pointers[view.Event](page.Events)...)
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// events is a Timeline of two events a page.
type events struct{ list []view.Event }

func (e *events) Timeline(_ context.Context, q view.EventQuery) (*view.EventPage, error) {
	p := &view.EventPage{Next: q.From}
	for _, event := range e.list {
		if event.Seq < q.From || q.Task != "" && event.Task != q.Task || q.Run != "" && event.Run != q.Run {
			continue
		}
		if len(p.Events) == 2 {
			p.More = true
			break
		}
		p.Events = append(p.Events, event)
		p.Next = event.Seq + 1
	}
	return p, nil
}

func rows(t *testing.T, head []wire.Field, list ...view.Row) []byte {
	out, err := wire.AppendRows(nil, head, slices.Values(list), wire.MaxFrame)
	if err != nil {
		t.Error(err)
	}
	return out
}

func pointers[T any, P interface {
	*T
	view.Row
}](list []T) []view.Row {
	out := make([]view.Row, len(list))
	for i := range list {
		out[i] = P(&list[i])
	}
	return out
}

// ran is what a command left behind.
type ran struct {
	stdout, stderr string
	code           Code
}

func (f *fake) env() Env {
	return Env{Now: func() time.Time { return noon }, AddrEnv: f.addr, Actor: "tester", poll: time.Millisecond}
}

// run runs a command against the fake; prepare may change its Env.
func (f *fake) run(args string, prepare ...func(*Env)) ran {
	f.t.Helper()
	env := f.env()
	for _, p := range prepare {
		p(&env)
	}
	return run(f.t, env, strings.Fields(args)...)
}

func run(t *testing.T, env Env, args ...string) ran {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return runContext(ctx, env, args...)
}

func runContext(ctx context.Context, env Env, args ...string) ran {
	var out, words bytes.Buffer
	if env.Stdin == nil {
		env.Stdin = strings.NewReader("")
	}
	if env.Stdout == nil {
		env.Stdout = &out
	}
	env.Stderr = &words
	code := New(env).Run(ctx, args)
	return ran{out.String(), words.String(), code}
}

// want compares all that a command left behind.
func (r ran) want(t *testing.T, stdout, stderr string, code Code) {
	t.Helper()
	if r.stdout != stdout || r.stderr != stderr || r.code != code {
		t.Errorf("got code %d, stdout\n%s\nstderr\n%s\nwant code %d, stdout\n%s\nstderr\n%s", r.code, r.stdout, r.stderr, code, stdout, stderr)
	}
}

// golden compares with a file of testdata; UPDATE=1 rewrites it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
	}
}

var errPipe = syscall.EPIPE
