package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"go.uber.org/goleak"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is now at the begin of every test.
var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.FixedZone("test", 3600))

func ago(d time.Duration) view.Time { return view.Time{Time: noon.Add(-d)} }

// fake is a Source that answers from what a test put in, and does what it is
// asked as far as a list of tasks goes.
type fake struct {
	over   view.Overview
	tasks  []view.Task // oldest first
	detail map[string]view.Detail
	keys   []view.Key
	events []view.Event
	fakeRuns
	did    []Action
	refuse error    // of Do
	asked  []string // what was read, one line each
	broken error
}

func (f *fake) ask(format string, args ...any) error {
	f.asked = append(f.asked, fmt.Sprintf(format, args...))
	return f.broken
}

func (f *fake) Overview(context.Context) (*view.Overview, error) {
	if f.broken != nil {
		return nil, f.broken
	}
	o := f.over
	o.Status.Tasks = view.Counts{}
	for i := range f.tasks {
		o.Status.Tasks[f.tasks[i].State]++
	}
	o.Executors, o.Queues = slices.Clone(o.Executors), slices.Clone(o.Queues)
	return &o, nil
}

func (f *fake) matching(q view.Query) (found []view.Task) {
	for _, t := range f.tasks {
		in := slices.ContainsFunc(q.States, func(s task.State) bool { return s.String() == t.State })
		if in && (q.Type == "" || q.Type == t.Type) && strings.Contains(t.Error, q.Error) {
			found = append(found, t)
		}
	}
	if !q.Oldest {
		slices.Reverse(found)
	}
	return found
}

// Tasks pages with the number of rows before as the cursor.
func (f *fake) Tasks(_ context.Context, q view.Query) (*view.Page, error) {
	err := f.ask("tasks %s %q %q after %q", q.Type, q.Error, fmt.Sprint(q.States), q.Cursor)
	found := f.matching(q)
	from, _ := strconv.Atoi(q.Cursor)
	from = min(from, len(found))
	p := &view.Page{Total: len(found), Tasks: found[from:min(len(found), from+q.Limit)]}
	if from+q.Limit < len(found) {
		p.Cursor = strconv.Itoa(from + q.Limit)
	}
	return p, err
}

func (f *fake) Task(_ context.Context, id string) (*view.Detail, error) {
	if d, ok := f.detail[id]; ok {
		d.Inputs, d.Attempts = slices.Clone(d.Inputs), slices.Clone(d.Attempts)
		return &d, nil
	}
	for _, t := range f.tasks {
		if t.ID == id {
			return &view.Detail{Task: t}, nil
		}
	}
	return nil, cmp.Or(f.broken, errors.New("not found: task "+id))
}

// Explain has something to say of every task there is.
func (f *fake) Explain(ctx context.Context, id string) (*view.Explanation, error) {
	d, err := f.Task(ctx, id)
	if err != nil {
		return nil, err
	}
	x := &view.Explanation{ID: d.ID, State: d.State, Lines: []string{"it is " + d.State + " because the fake says so", d.Error}}
	x.Hints = []string{"apollo11 logs " + d.ID}
	return x, f.ask("explain %s", id)
}

func (f *fake) Keys(_ context.Context, q view.KeyQuery) (*view.KeyPage, error) {
	err := f.ask("keys after %q", q.Cursor)
	return &view.KeyPage{Keys: slices.Clone(f.keys)}, err
}

func (f *fake) Timeline(_ context.Context, q view.EventQuery) (*view.EventPage, error) {
	err := f.ask("timeline from %d limit %d task %q run %q", q.From, q.Limit, q.Task, q.Run)
	p := &view.EventPage{Next: q.From}
	for _, e := range f.events {
		if e.Seq < q.From || q.Task != "" && e.Task != q.Task || q.Run != "" && e.Run != q.Run || e.Time.Before(q.After) {
			continue
		}
		if len(p.Events) == q.Limit {
			p.More = true
			break
		}
		e.Values = slices.Clone(e.Values)
		p.Events = append(p.Events, e)
		p.Next = e.Seq + 1
	}
	return p, err
}

func (f *fake) Do(_ context.Context, a Action) (*view.Changed, error) {
	if f.broken != nil {
		return nil, f.broken
	}
	f.did = append(f.did, a)
	n := &view.Changed{}
	if f.refuse != nil {
		return nil, f.refuse
	}
	if a.Verb == DebugOn || a.Verb == DebugOff {
		f.over.Status.Debug = a.Verb == DebugOn
	}
	ids := a.Tasks.IDs
	if a.Tasks.All {
		ids = nil
		for _, t := range f.matching(a.Tasks.Query) {
			ids = append(ids, t.ID)
		}
	}
	n.Matched = len(ids)
	if a.Tasks.Count {
		n.Samples = ids[:min(3, len(ids))]
		return n, nil
	}
	for i := range f.tasks {
		if t := &f.tasks[i]; slices.Contains(ids, t.ID) {
			if f.skip != "" && runOf(t.ID) != "" {
				n.Skipped = append(n.Skipped, t.ID+": "+f.skip)
				continue
			}
			if a.Verb == Requeue && t.State != "dead" {
				n.Skipped = append(n.Skipped, t.ID+": is "+t.State)
				continue
			}
			n.Changed++
			if a.Verb == Edit && t.State != "dead" {
				continue
			}
			t.State = map[Verb]string{Requeue: "queued", Edit: "queued", Cancel: "cancelled", Drop: "gone"}[a.Verb]
		}
	}
	f.over.Status.Seq++
	return n, nil
}

// world is a fake with something of everything.
func world() *fake {
	f := &fake{fakeRuns: runWorld(), over: view.Overview{
		Status: view.Status{
			Epoch: 1, Seq: 40, StateVersion: 12, Executors: view.Counts{"running": 1, "idle": 1, "offline": 1}, Now: view.Time{Time: noon},
		},
		Executors: []view.Executor{
			{ID: "ares-1", State: "running", Types: "count,fetch", Load: 2, Task: "t-0004", Version: 1_000_001, HeartbeatMS: 900, Done: 17, Failed: 2, Host: "ares", PID: 41, Build: "1.0", Proto: 2},
			{ID: "ares-2", State: "idle", Types: "count", HeartbeatMS: 31_000, Late: true, Done: 4, Host: "ares", PID: 42, Build: "1.0", Proto: 2},
			{ID: "hera-1", State: "offline", Types: "fetch", HeartbeatMS: -1, Host: "hera", PID: 7, Build: "0.9", Proto: 2, Reason: "no heartbeat"},
		},
		Queues: []view.Queue{
			{Type: "count", Queued: 2, Out: 1, Executors: 2, OldestMS: 4000},
			{Type: "fetch", Queued: 1, Limit: 4, Executors: 0, OldestMS: 90_000},
			{Type: "report", Paused: true},
		},
		PerSecond: 2.5,
	}}
	add := func(id, typ, state, class, text string, age time.Duration) {
		t := view.Task{ID: id, Type: typ, State: state, Attempt: 1, ErrorClass: class, Error: text, Submitted: ago(age)}
		if state != "queued" {
			t.Executor, t.Started, t.Version = "ares-1", ago(age/2), 1<<20
		}
		f.tasks = append(f.tasks, t)
	}
	add("t-0001", "count", "succeeded", "", "", 10*time.Minute)
	add("t-0002", "fetch", "dead", "execute_failed", "connection refused by 10.0.0.7", 9*time.Minute)
	add("t-0003", "report", "dead", "timeout", "took longer than 30s", 8*time.Minute)
	add("t-0004", "count", "running", "", "", 30*time.Second)
	add("t-0005", "count", "queued", "", "", 4*time.Second)
	add("t-0006", "count", "queued", "", "", 3*time.Second)
	add("t-0007", "fetch", "queued", "", "", 90*time.Second)
	add("t-0008", "fetch", "dead", "execute_failed", "connection refused by 10.0.0.9", time.Minute)
	f.detail = map[string]view.Detail{"t-0008": {
		Task: f.tasks[7], Inputs: view.Object{{Name: "url", Value: "http://10.0.0.9/a"}}, Retries: 2, StateVersion: 9, StateNow: 12,
		Attempts: []view.Attempt{
			{Attempt: 1, Version: 1_000_001, Executor: "ares-2", Outcome: "lost", Error: "executor lost", Started: ago(55 * time.Second), Finished: ago(50 * time.Second)},
			{Attempt: 2, Version: 2_000_001, Executor: "ares-1", Outcome: "execute_failed", Error: "connection refused by 10.0.0.9", Started: ago(45 * time.Second), Finished: ago(44 * time.Second), MS: 812},
		},
	}}
	f.detail["r-0001:clean-2013"] = view.Detail{Task: runTask(), Retries: 2, Attempts: []view.Attempt{
		{Attempt: 3, Version: 1_000_003, Executor: "ares-1", Outcome: "execute_failed", Error: "line 12 has 4 fields, want 5", Started: ago(7 * time.Minute), Finished: ago(6 * time.Minute), MS: 1846},
	}}
	f.keys = []view.Key{
		{Key: "days_total", Value: "305", Version: 11, Seq: 33, Task: "t-0001"},
		{Key: "next_batch", Value: "tomorrow", Version: 2, Seq: 8, Fault: "not a whole number"},
		{Key: "report.2015", Value: "2015: 365 days, 144 wet, 1139.2 mm; sun 180, rain 144, fog 31, drizzle 7, snow 3", Version: 1, Seq: 30, Task: "t-0001"},
	}
	for i := range 40 {
		e := view.Event{Seq: int64(i + 1), Time: ago(time.Duration(40-i) * time.Second), Kind: "task.start", Task: fmt.Sprintf("t-%04d", i%8+1), Exec: "ares-1"}
		if i%10 == 9 {
			e.Kind, e.Values = "task.fail", view.Object{{Name: "error", Value: "connection refused"}}
		}
		f.events = append(f.events, e)
	}
	return f
}

// rig is a console without a terminal: keys go in, frames come out, commands
// are run one after the other.
type rig struct {
	t      *testing.T
	f      *fake
	m      *model
	now    time.Time
	quit   bool
	frozen bool // commands are kept, not run
	kept   []tea.Cmd
}

func newRig(t *testing.T, f *fake, w, h int, change ...func(*Options)) *rig {
	r := &rig{t: t, f: f, now: noon}
	o := Options{
		Source: f, Now: func() time.Time { return r.now }, Theme: "mono", Title: "data", Embedded: true, Log: &Log{},
		Describe: func(e *view.Event) (string, bool) { return "words of " + e.Kind, e.Kind == "task.fail" },
	}
	for _, c := range change {
		c(&o)
	}
	r.m = newModel(o)
	r.send(tea.WindowSizeMsg{Width: w, Height: h})
	r.poll()
	r.poll()
	return r
}

func (r *rig) send(msg tea.Msg) {
	_, cmd := r.m.Update(msg)
	r.m.View()
	r.run(cmd)
}

func (r *rig) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	if r.frozen {
		r.kept = append(r.kept, cmd)
		return
	}
	switch msg := cmd().(type) {
	case nil, tickMsg:
	case tea.QuitMsg:
		r.quit = true
	case tea.BatchMsg:
		for _, c := range msg {
			r.run(c)
		}
	default:
		r.send(msg)
	}
}

// poll is what a tick does.
func (r *rig) poll() {
	r.now = r.now.Add(time.Second)
	r.run(r.m.poll())
}

var special = map[string]tea.KeyType{
	"enter": tea.KeyEnter, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown, "pgdown": tea.KeyPgDown, "left": tea.KeyLeft,
	"backspace": tea.KeyBackspace, "right": tea.KeyRight, "home": tea.KeyHome, "end": tea.KeyEnd, "delete": tea.KeyDelete,
	"ctrl+x": tea.KeyCtrlX, "ctrl+u": tea.KeyCtrlU, "ctrl+e": tea.KeyCtrlE, "ctrl+c": tea.KeyCtrlC, "ctrl+z": tea.KeyCtrlZ, "space": tea.KeySpace,
}

// press presses keys as a person does: one after the other. A key of several
// letters that is no name is typed letter by letter.
func (r *rig) press(keys ...string) *rig {
	for _, k := range keys {
		if k == "esc" {
			r.now = r.now.Add(time.Second)
			r.m.Update(tea.KeyMsg{Type: tea.KeyEsc}) // its command waits for the rest of a sequence
			r.send(escMsg{r.m.keys.turns})
			continue
		}
		if typ, ok := special[k]; ok {
			r.now = r.now.Add(time.Second)
			r.send(tea.KeyMsg{Type: typ})
			continue
		}
		for _, c := range k {
			r.now = r.now.Add(time.Second)
			r.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{c}})
		}
	}
	return r
}

// frame is what is to be seen.
func (r *rig) frame() string { return r.m.View() }

// sees fails unless the frame has a text, whatever its colours.
func (r *rig) sees(text string) *rig {
	r.t.Helper()
	if f := sgr.ReplaceAllString(r.frame(), ""); !strings.Contains(f, text) {
		r.t.Errorf("the frame has no %q:\n%s", text, f)
	}
	return r
}

func (r *rig) misses(text string) *rig {
	r.t.Helper()
	if f := sgr.ReplaceAllString(r.frame(), ""); strings.Contains(f, text) {
		r.t.Errorf("the frame has %q:\n%s", text, f)
	}
	return r
}

// last is the last action, and how many there were.
func (r *rig) last() (Action, int) {
	if len(r.f.did) == 0 {
		return Action{}, 0
	}
	return r.f.did[len(r.f.did)-1], len(r.f.did)
}
