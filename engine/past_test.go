package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// simJournal is what a simulated run left: its entries and every image that was
// taken. It reads as a Source whose image is the newest one not after last.
type simJournal struct {
	entries []string
	images  []*simImage
	last    uint64
	after   uint64 // images after it stay, however far that is; 0: those after last do not
	broken  uint64 // this entry and what follows cannot be read; 0: all can
	read    int    // entries given
}

func (j *simJournal) ReadImage(load func(uint64, []byte) error, line func([]byte) error) (bool, error) {
	var w world
	for _, i := range j.images {
		if i.seq <= max(j.last, j.after) {
			w.image = i
		}
	}
	return w.ReadImage(load, line)
}

var errBroken = errors.New("it does not check")

func (j *simJournal) Read(from uint64, fn func(uint64, []byte) error) error {
	for n := from; n <= uint64(len(j.entries)); n++ {
		if n == j.broken {
			return errBroken
		}
		j.read++
		if err := fn(n, []byte(j.entries[n-1])); err != nil {
			return err
		}
	}
	return nil
}

// seen is what the running controller answered at a moment.
type seen struct {
	seq   uint64
	hash  string
	keys  *view.KeyPage
	page  *view.Page
	tasks []*view.Detail
	runs  []*view.RunDetail
}

func (w *world) see() seen {
	s := seen{seq: w.m.seq, hash: w.m.hash(), keys: w.m.keyPage(view.KeyQuery{})}
	var err error
	if s.page, err = w.m.page(view.Query{Limit: 20}); err != nil {
		w.fail("%v", err)
	}
	s.page.Cursor = "" // names a place in memory
	for _, row := range s.page.Tasks {
		d, err := w.m.detail(row.ID)
		if err != nil {
			w.fail("%v", err)
		}
		d.Progress = "" // is not recorded
		s.tasks = append(s.tasks, d)
	}
	runs, err := w.m.runPage(view.RunQuery{})
	if err != nil {
		w.fail("%v", err)
	}
	for _, row := range runs.Runs {
		d, err := w.m.runDetail(GetRun{ID: row.ID})
		if err != nil {
			w.fail("%v", err)
		}
		s.runs = append(s.runs, sameClock(d))
	}
	return s
}

// sameClock leaves out how long a run took until the question was asked.
func sameClock(d *view.RunDetail) *view.RunDetail {
	if d.Finished.IsZero() {
		d.MS = 0
	}
	return d
}

// asked is a question to the past that has to be answered.
func asked[T any](t *testing.T, p *Past, c Command) T {
	t.Helper()
	a, err := p.Ask(c)
	if err != nil {
		t.Fatalf("record %d: %T: %v", p.Seq(), c, err)
	}
	return a.(T)
}

// Any moment of a run, asked for later, is answered as the controller answered
// at that moment: from the beginning of the journal, and from an image.
func TestPastIsWhatItWas(t *testing.T) {
	runs := 0
	for seed := uint64(1); seed <= 12; seed++ {
		w := newWorld(t, seed)
		random := rand.New(rand.NewPCG(seed, 2))
		var moments []seen
		var images []*simImage
		for range 300 {
			w.step()
			if n := len(images); w.image != nil && w.taking == nil && (n == 0 || images[n-1] != w.image) {
				images = append(images, w.image)
			}
			if random.IntN(12) == 0 {
				moments = append(moments, w.see())
			}
		}
		for _, was := range moments {
			runs += len(was.runs)
			whole := &simJournal{entries: w.journal, last: was.seq}
			tail := &simJournal{entries: w.journal, last: was.seq, images: images}
			for name, j := range map[string]*simJournal{"whole": whole, "from an image": tail} {
				p, err := OpenPast(t.Context(), PastOptions{Source: j, Seq: was.seq, Settings: simSettings()})
				if err != nil {
					t.Fatalf("seed %d, record %d, %s: %v", seed, was.seq, name, err)
				}
				if j.read > int(was.seq) {
					t.Fatalf("%d records were read for the state at %d", j.read, was.seq)
				}
				was.is(t, p, fmt.Sprintf("seed %d, record %d, %s", seed, was.seq, name))
			}
			if whole.read != int(was.seq) {
				t.Fatalf("%d records were folded from the beginning to %d", whole.read, was.seq)
			}
		}
	}
	if runs == 0 {
		t.Error("no run of a mission was looked at")
	}
}

// is holds the past against what was seen.
func (was seen) is(t *testing.T, p *Past, where string) {
	t.Helper()
	before := p.m.hash()
	if before != was.hash || p.Seq() != was.seq {
		t.Fatalf("%s: another state, at %d", where, p.Seq())
	}
	if keys := asked[*view.KeyPage](t, p, GetState{}); !reflect.DeepEqual(keys, was.keys) {
		t.Errorf("%s: keys\n%+v\nwere\n%+v", where, keys, was.keys)
	}
	less := p.Keys()
	if keys := asked[*view.KeyPage](t, less, GetState{}); !reflect.DeepEqual(keys, was.keys) || less.Seq() != was.seq || less.m.live != 0 {
		t.Errorf("%s: without tasks, keys\n%+v\nwere\n%+v", where, keys, was.keys)
	}
	page := asked[*view.Page](t, p, GetTasks{view.Query{Limit: 20}})
	page.Cursor = ""
	if !reflect.DeepEqual(page, was.page) {
		t.Errorf("%s: tasks\n%+v\nwere\n%+v", where, page, was.page)
	}
	for _, d := range was.tasks {
		if got := asked[*view.Detail](t, p, GetTask{d.ID}); !reflect.DeepEqual(got, d) {
			t.Errorf("%s: task\n%+v\nwas\n%+v", where, got, d)
		}
		x := asked[*view.Explanation](t, p, GetExplanation{d.ID})
		if len(x.Lines) < 2 || x.State != d.State {
			t.Errorf("%s: task %s in state %s is explained as %+v", where, d.ID, d.State, x)
		}
		for _, line := range x.Lines {
			if strings.Contains(line, "last heard") || strings.Contains(line, "has no connection") {
				t.Errorf("%s: it claims to know of connections: %s", where, line)
			}
		}
	}
	if runs := asked[*view.RunPage](t, p, GetRuns{}); len(runs.Runs) != len(was.runs) {
		t.Errorf("%s: %d runs, not %d", where, len(runs.Runs), len(was.runs))
	}
	for _, d := range was.runs {
		if got := sameClock(asked[*view.RunDetail](t, p, GetRun{ID: d.ID})); !reflect.DeepEqual(got, d) {
			t.Errorf("%s: run\n%+v\nwas\n%+v", where, got, d)
		}
		if text := asked[string](t, p, GetSpec{Run: d.ID}); !strings.Contains(text, d.Mission) {
			t.Errorf("%s: run %s has the spec %q", where, d.ID, text)
		}
		if x := asked[*view.Explanation](t, p, GetExplanation{d.ID}); len(x.Lines) < 2 {
			t.Errorf("%s: run %s is explained as %+v", where, d.ID, x)
		}
	}
	if p.m.hash() != before {
		t.Errorf("%s: asking changed the state", where)
	}
}

// A moment in the middle of a batch has happened up to that record.
func TestPastAtEveryRecord(t *testing.T) {
	w := newWorld(t, 3)
	for range 60 {
		w.step()
	}
	s := newState()
	for n, entry := range w.journal {
		if err := foldText(s, uint64(n+1), entry); err != nil {
			t.Fatal(err)
		}
		p, err := OpenPast(t.Context(), PastOptions{Source: &simJournal{entries: w.journal}, Seq: uint64(n + 1)})
		if err != nil || p.m.hash() != s.hash() {
			t.Fatalf("record %d: another state, %v", n+1, err)
		}
		at, err := RecordTime([]byte(entry))
		if err != nil || !at.Equal(p.Time()) {
			t.Fatalf("record %d is of %s, %v; the state says %s", n+1, at, err, p.Time())
		}
	}
}

func TestPastBeforeTheFirst(t *testing.T) {
	p, err := OpenPast(t.Context(), PastOptions{Source: &simJournal{}})
	if err != nil {
		t.Fatal(err)
	}
	if keys := asked[*view.KeyPage](t, p, GetState{}); len(keys.Keys) != 0 || !p.Time().IsZero() {
		t.Errorf("before the first record there was %+v, at %s", keys, p.Time())
	}
}

func TestPastErrors(t *testing.T) {
	w := newWorld(t, 4)
	for range 200 {
		w.step()
	}
	end := uint64(len(w.journal))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	image := &simImage{seq: end, lines: nil}
	for name, c := range map[string]struct {
		ctx  context.Context
		j    simJournal
		seq  uint64
		want error
		text string
	}{
		"beyond the end":       {j: simJournal{}, seq: end + 1, want: ErrNotFound, text: fmt.Sprintf("the journal ends at %d", end)},
		"damage on the way":    {j: simJournal{broken: end / 2}, seq: end, want: errBroken, text: fmt.Sprintf("state at record %d", end)},
		"damage at the record": {j: simJournal{broken: end}, seq: end, want: errBroken},
		"damage behind it":     {j: simJournal{broken: end}, seq: end - 1},
		"cancelled":            {ctx: cancelled, j: simJournal{}, seq: end, want: context.Canceled},
		"cancelled at once":    {ctx: cancelled, j: simJournal{}, seq: 0, want: context.Canceled},
		"image of a later one": {j: simJournal{images: []*simImage{image}, after: end}, seq: end - 1, want: ErrJournal, text: "is after record"},
	} {
		c.j.entries = w.journal
		if c.ctx == nil {
			c.ctx = t.Context()
		}
		p, err := OpenPast(c.ctx, PastOptions{Source: &c.j, Seq: c.seq})
		if !errors.Is(err, c.want) || c.want != nil && !strings.Contains(err.Error(), c.text) || (err == nil) != (p != nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The past is not changed: what asks for a change is refused.
func TestPastOnlyReads(t *testing.T) {
	w := newWorld(t, 5)
	for range 50 {
		w.step()
	}
	p, err := OpenPast(t.Context(), PastOptions{Source: &simJournal{entries: w.journal}, Seq: uint64(len(w.journal))})
	if err != nil {
		t.Fatal(err)
	}
	was := p.m.hash()
	for _, c := range []Command{
		Pause{On: true}, Submit{Specs: []task.Spec{{Type: "a"}}}, Repair{Key: "x", Value: "1", Reason: "r"}, Drain{Exec: "e0"},
	} {
		if a, err := p.Ask(c); !errors.Is(err, ErrInvalid) || a != nil {
			t.Errorf("%T is answered %v, %v", c, a, err)
		}
	}
	if _, err := p.Ask(GetTask{"nobody"}); !errors.Is(err, ErrNotFound) {
		t.Errorf("no such task: %v", err)
	}
	if p.m.hash() != was {
		t.Error("the state changed")
	}
}

// What waited for an executor waited for what is recorded of executors: not for
// a connection, which nothing is known of.
func TestPastExplains(t *testing.T) {
	r := newPastRig(t)
	for id, want := range map[string]string{
		"t-wait": "1 task of type a is before it",
		"t-none": "no executor offers type nobody",
		"t-runs": "it was sent to executor e1",
	} {
		x := asked[*view.Explanation](t, r, GetExplanation{id})
		if !strings.Contains(strings.Join(x.Lines, "\n"), want) || len(x.Hints) != 1 || x.Hints[0] != "apollo11 replay "+id {
			t.Errorf("%s: %+v, want %q", id, x, want)
		}
	}
	status := asked[*view.Status](t, r, GetStatus{})
	if status.Executors["running"] != 1 || status.Tasks["queued"] != 3 {
		t.Errorf("status %+v", status)
	}
}

// newPastRig is a moment with one busy executor, of which e1 has t-runs.
func newPastRig(t *testing.T) *Past {
	t.Helper()
	m := newMachine(newState(), DefaultSettings(), nil)
	m.set.base = time.Unix(0, 0)
	m.begin(moment{raw: 1e18}, false)
	m.boot()
	link := &pastLink{}
	m.decide(Ask{Command: Register{Exec: "e1", Types: []string{"a"}, Proto: 2, Instance: "i"}, Link: link})
	for _, id := range []string{"t-runs", "t-next", "t-wait"} {
		m.decide(Ask{Command: Submit{Specs: []task.Spec{{Type: "a", ID: id, Retries: task.Unset}}}, Link: link})
	}
	m.decide(Ask{Command: Submit{Specs: []task.Spec{{Type: "nobody", ID: "t-none", Retries: task.Unset}}}, Link: link})
	m.settle()
	j := &simJournal{}
	start := 0
	for _, end := range m.batch.ends {
		j.entries = append(j.entries, string(m.batch.records.out[start:end]))
		start = end + 1
	}
	p, err := OpenPast(t.Context(), PastOptions{Source: j, Seq: m.seq, Settings: DefaultSettings()})
	if err != nil {
		t.Fatal(err)
	}
	return p
}
