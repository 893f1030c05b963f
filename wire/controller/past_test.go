package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"apollo11/engine"
	"apollo11/engine/mission"
	"apollo11/engine/view"
	"apollo11/snapshot"
)

// live is an engine on a store whose segments are short, so that they rotate all
// the time.
type live struct {
	t      *testing.T
	dir    string
	store  *snapshot.Store
	engine *engine.Engine
	end    func()

	mu      sync.Mutex
	moments []moment
}

// moment is what is known of a state: this record left the key "n" with this value.
type moment struct {
	seq   int64
	value string
}

func startLive(t *testing.T, dir string, segment int64, keep time.Duration) *live {
	t.Helper()
	return startLiveWith(t, dir, segment, keep, engine.DefaultSettings())
}

func startLiveWith(t *testing.T, dir string, segment int64, keep time.Duration, set engine.Settings) *live {
	t.Helper()
	store, err := snapshot.Open(snapshot.Options{Dir: dir, SegmentSize: segment}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Options{
		Store: store, Images: disk{store: store, now: time.Now, keep: keep, log: slog.New(slog.DiscardHandler)},
		Source: source{store}, Settings: set,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	l := &live{t: t, dir: dir, store: store, engine: e}
	l.end = sync.OnceFunc(func() {
		cancel()
		if err := errors.Join(<-ended, store.Close()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(l.end)
	return l
}

// write changes the key n times; padding makes records, and so images, come sooner.
func (l *live) write(n, padding int) {
	l.t.Helper()
	for range n {
		value := fmt.Sprint(len(l.moments))
		a, err := l.engine.Do(l.t.Context(), engine.Repair{Key: "n", Value: value + strings.Repeat("x", padding), Reason: "test", Actor: "test"})
		if err != nil {
			l.t.Error(err)
			return
		}
		l.mu.Lock()
		l.moments = append(l.moments, moment{a.(view.Key).Seq, value})
		l.mu.Unlock()
	}
}

// some is one of the known moments, chosen at random.
func (l *live) some(r *rand.Rand) (m moment, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.moments) == 0 {
		return m, false
	}
	return l.moments[r.IntN(len(l.moments))], true
}

// valueOf is the key of a page of all keys.
func valueOf(p *view.KeyPage) string {
	for _, k := range p.Keys {
		if k.Key == "n" {
			return strings.TrimRight(k.Value, "x")
		}
	}
	return ""
}

// The past is asked beside a controller that writes, rotates, takes images,
// replaces them and prunes: each answer is what was, or says that it is no
// longer kept.
func TestPastBesideTheWriter(t *testing.T) {
	for name, keep := range map[string]time.Duration{"all is kept": 0, "pruned": time.Nanosecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := startLive(t, t.TempDir(), 100<<10, keep)
			past := newLooker(l.store, engine.DefaultSettings())
			stop := make(chan struct{})
			var asking sync.WaitGroup
			var asked, gone [2]int
			for n, at := range []func(context.Context, int64, view.KeyQuery) (*view.KeyPage, error){past.State, offlineAt(l.dir)} {
				r := rand.New(rand.NewPCG(uint64(n), 7))
				asking.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						m, ok := l.some(r)
						if !ok {
							continue
						}
						page, err := at(t.Context(), m.seq, view.KeyQuery{})
						switch {
						case errors.Is(err, engine.ErrNotFound) && keep != 0:
							gone[n]++
						case err != nil:
							t.Errorf("asker %d: record %d: %v", n, m.seq, err)
							return
						case valueOf(page) != m.value:
							t.Errorf("asker %d: at record %d it was %q, not %q", n, m.seq, m.value, valueOf(page))
							return
						}
						asked[n]++
					}
				})
			}
			l.write(300, 12<<10)
			close(stop)
			asking.Wait()
			if asked[0]-gone[0] == 0 || asked[1]-gone[1] == 0 {
				t.Errorf("answered %v, of those %v were gone", asked, gone)
			}
			if _, err := os.Stat(filepath.Join(l.dir, "snapshot.prev.json")); err != nil {
				t.Errorf("there were not two images: %v", err)
			}
			m := l.moments[0]
			page, err := past.State(t.Context(), m.seq, view.KeyQuery{})
			switch {
			case keep == 0 && (err != nil || valueOf(page) != m.value):
				t.Errorf("at the first: %v, %v", page, err)
			case keep != 0 && (!errors.Is(err, engine.ErrNotFound) || !strings.Contains(err.Error(), "oldest image that they go on from is of record")):
				t.Errorf("long pruned: %v", err)
			}
		})
	}
}

// offlineAt opens the folder anew for every question, as a command does. Between
// two looks at the folder a file may go: then it is asked again, as a person would.
func offlineAt(dir string) func(context.Context, int64, view.KeyQuery) (*view.KeyPage, error) {
	return func(ctx context.Context, seq int64, q view.KeyQuery) (*view.KeyPage, error) {
		o, err := OpenOffline(dir)
		if err != nil {
			return nil, err
		}
		return o.KeysAt(ctx, seq, q)
	}
}

func TestLooker(t *testing.T) {
	l := startLive(t, t.TempDir(), 0, 0)
	began := time.Now()
	l.write(5, 0)
	past := newLooker(l.store, engine.DefaultSettings())
	for _, m := range append(slices.Clone(l.moments), l.moments...) {
		page, err := past.State(t.Context(), m.seq, view.KeyQuery{})
		if err != nil || valueOf(page) != m.value {
			t.Errorf("record %d: %v, %v, want %s", m.seq, page, err, m.value)
		}
		keys, err := past.Keys(t.Context(), m.seq)
		if err != nil || len(keys) != 1 || keys[0].Name != "n" || keys[0].Value != m.value {
			t.Errorf("keys at record %d: %v, %v", m.seq, keys, err)
		}
	}
	kept := <-past.turn
	if len(kept) != maxKept {
		t.Errorf("%d moments are kept", len(kept))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := past.State(ctx, 1, view.KeyQuery{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while another asks: %v", err)
	}
	past.turn <- kept
	if page, err := past.State(t.Context(), 1<<62, view.KeyQuery{}); err != nil || valueOf(page) != "4" {
		t.Errorf("past the end: %v, %v", page, err)
	}
	if page, err := past.State(t.Context(), 0, view.KeyQuery{}); err != nil || len(page.Keys) != 0 {
		t.Errorf("before the first: %v, %v", page, err)
	}
	if _, err := past.State(t.Context(), -1, view.KeyQuery{}); !errors.Is(err, engine.ErrInvalid) {
		t.Errorf("a negative number: %v", err)
	}
	for when, want := range map[time.Time]int64{began.Add(-time.Hour): 0, time.Now().Add(time.Hour): int64(l.store.Last())} {
		if seq, err := past.At(t.Context(), when); err != nil || seq != want {
			t.Errorf("at %s: %d, %v, want %d", when, seq, err, want)
		}
	}
}

// stopped is a data folder of several segments and two images that nobody runs on.
func stopped(t *testing.T) (dir string, moments []moment) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	l := startLive(t, dir, 500<<10, 0)
	l.write(450, 8<<10)
	l.end()
	return dir, l.moments
}

// listing is the names, sizes and times of a folder's files.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		all[f.Name()] = fmt.Sprint(info.Size(), info.ModTime(), info.Mode())
	}
	return all
}

func TestOffline(t *testing.T) {
	dir, moments := stopped(t)
	backup := filepath.Join(t.TempDir(), "backup")
	if err := os.CopyFS(backup, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(backup, "LOCK")); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{dir, backup} {
		before := listing(t, folder)
		o, err := OpenOffline(folder)
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; n < len(moments); n += 97 {
			page, err := o.KeysAt(t.Context(), moments[n].seq, view.KeyQuery{})
			if err != nil || valueOf(page) != moments[n].value {
				t.Errorf("record %d: %v, want %s", moments[n].seq, err, moments[n].value)
			}
		}
		if page, err := o.KeysAt(t.Context(), 0, view.KeyQuery{}); err != nil || valueOf(page) != moments[len(moments)-1].value {
			t.Errorf("in the end: %v", err)
		}
		end := o.Last()
		if _, err := o.KeysAt(t.Context(), int64(end)+1, view.KeyQuery{}); !errors.Is(err, engine.ErrNotFound) || !strings.Contains(err.Error(), fmt.Sprintf("the journal ends at %d", end)) {
			t.Errorf("beyond the end: %v", err)
		}
		if _, err := o.Task(t.Context(), "nobody"); !errors.Is(err, engine.ErrNotFound) {
			t.Errorf("no such task: %v", err)
		}
		if _, err := o.Run(t.Context(), "r-9999", ""); !errors.Is(err, engine.ErrNotFound) {
			t.Errorf("no such run: %v", err)
		}
		if page, err := o.Tasks(t.Context(), view.Query{}); err != nil || len(page.Tasks) != 0 {
			t.Errorf("tasks: %+v, %v", page, err)
		}
		if after := listing(t, folder); !maps.Equal(before, after) {
			t.Errorf("reading changed the folder:\n%v\n%v", before, after)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := o.KeysAt(ctx, 3, view.KeyQuery{}); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
	}
}

// A run that ended long ago has left memory; out of files it is shown as it was.
func TestOfflineForgottenRun(t *testing.T) {
	dir := t.TempDir()
	set := engine.DefaultSettings()
	set.RetainAge = time.Nanosecond
	l := startLiveWith(t, dir, 0, 0, set)
	m, err := mission.Parse("m.toml", []byte("name = \"m\"\n[[units]]\nname = \"a\"\n[[units]]\nname = \"b\"\ndeps = [\"a\"]\n"))
	if err != nil {
		t.Fatal(err)
	}
	do := func(c engine.Command) engine.Answer {
		t.Helper()
		a, err := l.engine.Do(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	do(engine.Register{Exec: "e1", Types: []string{"a", "b"}, Proto: 2, Instance: "i"})
	id := do(engine.StartRun{Mission: m, Actor: "test"}).(*view.Run).ID
	do(engine.CancelRun{Run: id, Reason: "enough", Actor: "test"})
	l.write(3, 0)
	if _, err := l.engine.Do(t.Context(), engine.GetRun{ID: id}); !errors.Is(err, engine.ErrNotFound) {
		t.Fatalf("the run did not leave memory: %v", err)
	}
	l.end()
	o, err := OpenOffline(dir)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		d, err := o.Run(t.Context(), id, "")
		if err != nil || d.State != "cancelled" || len(d.Units) != 2 {
			t.Fatalf("%+v, %v", d, err)
		}
		if text, err := o.RunSpec(t.Context(), id); err != nil || !strings.Contains(text, "deps") {
			t.Errorf("its spec: %q, %v", text, err)
		}
	}
	if page, err := o.Runs(t.Context(), view.RunQuery{}); err != nil || len(page.Runs) != 0 {
		t.Errorf("in the end: %+v, %v", page, err)
	}
	if _, err := o.Run(t.Context(), "r-9999", ""); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("one that never was: %v", err)
	}
}

// segmentsOf is the journal's files, oldest first.
func segmentsOf(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "journal-*.log"))
	if err != nil || len(names) < 4 {
		t.Fatalf("segments %v, %v", names, err)
	}
	return names
}

func TestOfflineOneFile(t *testing.T) {
	dir, moments := stopped(t)
	names := segmentsOf(t, dir)
	first, err := OpenOffline(names[0])
	if err != nil {
		t.Fatal(err)
	}
	if page, err := first.KeysAt(t.Context(), moments[9].seq, view.KeyQuery{}); err != nil || valueOf(page) != "9" {
		t.Errorf("in the first file: %v", err)
	}
	second, err := OpenOffline(names[1])
	if err != nil {
		t.Fatal(err)
	}
	_, err = second.KeysAt(t.Context(), 0, view.KeyQuery{})
	want := fmt.Sprintf("%s begins at record %d: only its timeline can be read; for the state, read the folder that it is from", filepath.Base(names[1]), first.Last()+1)
	if !errors.Is(err, ErrTimelineOnly) || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	page, err := second.Timeline(t.Context(), view.EventQuery{Limit: 3})
	if err != nil || len(page.Events) != 3 || page.Events[0].Seq != int64(first.Last())+1 {
		t.Errorf("its timeline: %+v, %v", page, err)
	}
}

// What is broken or missing is said, and what is before it can be read.
func TestOfflineDamage(t *testing.T) {
	dir, moments := stopped(t)
	names := segmentsOf(t, dir)
	early, late := moments[3], moments[len(moments)-1]
	remove := func(t *testing.T, name string) {
		t.Helper()
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	flip := func(t *testing.T, name string, at int) {
		t.Helper()
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if at < 0 {
			at += len(b)
		}
		b[at] ^= 1
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	images := []string{"snapshot.json", "snapshot.prev.json"}
	for name, c := range map[string]struct {
		spoil       func(*testing.T, string)
		early, late string // what the error says; empty: there is none
	}{
		"a flipped bit in the middle": {func(t *testing.T, dir string) {
			flip(t, filepath.Join(dir, filepath.Base(names[1])), 30000)
			for _, i := range images {
				remove(t, filepath.Join(dir, i))
			}
		}, "", filepath.Base(names[1]) + " is damaged at byte"},
		"a flipped bit that an image covers": {func(t *testing.T, dir string) { flip(t, filepath.Join(dir, filepath.Base(names[1])), 30000) }, "", ""},
		"both images bad": {func(t *testing.T, dir string) {
			for _, i := range images {
				flip(t, filepath.Join(dir, i), 100)
			}
		}, "", ""},
		"the first segment is missing": {func(t *testing.T, dir string) { remove(t, filepath.Join(dir, filepath.Base(names[0]))) }, "can no longer be told: records are kept from", ""},
		"a segment in the middle is missing": {func(t *testing.T, dir string) {
			remove(t, filepath.Join(dir, filepath.Base(names[1])))
		}, "can no longer be told: records are kept from", ""},
		"no segment is left": {func(t *testing.T, dir string) {
			for _, n := range names {
				remove(t, filepath.Join(dir, filepath.Base(n)))
			}
		}, "no records are there", "no records are there"},
		"the end is torn": {func(t *testing.T, dir string) {
			last := filepath.Join(dir, filepath.Base(names[len(names)-1]))
			info, err := os.Stat(last)
			if err == nil {
				err = os.Truncate(last, info.Size()-100)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, "", "the journal ends at"},
		"damage in the newest segment": {func(t *testing.T, dir string) {
			flip(t, filepath.Join(dir, filepath.Base(names[len(names)-1])), 300)
		}, "", "what was before can be read, up to record"},
	} {
		t.Run(name, func(t *testing.T) {
			dir2 := filepath.Join(t.TempDir(), "data")
			if err := os.CopyFS(dir2, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			c.spoil(t, dir2)
			o, err := OpenOffline(dir2)
			if err != nil {
				t.Fatal(err)
			}
			for want, m := range map[*string]moment{&c.early: early, &c.late: late} {
				page, err := o.KeysAt(t.Context(), m.seq, view.KeyQuery{})
				switch {
				case *want == "" && (err != nil || valueOf(page) != m.value):
					t.Errorf("record %d: %v", m.seq, err)
				case *want != "" && (err == nil || !strings.Contains(err.Error(), *want)):
					t.Errorf("record %d: %v\nwant %s", m.seq, err, *want)
				}
			}
		})
	}
	if _, err := OpenOffline(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing there: %v", err)
	}
}

// A page of the timeline is the same as if everything had been read, whatever
// times and records it is asked for.
func TestTimelineByTime(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	store, err := snapshot.Open(snapshot.Options{Dir: t.TempDir(), SegmentSize: 400 << 10}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var all []view.Event
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for store.Last() < 5_000 {
		var batch [][]byte
		for range 1 + r.IntN(300) {
			if r.IntN(3) == 0 { // many share a time
				at = at.Add(time.Duration(r.IntN(5_000_000)) * time.Microsecond)
			}
			entry := fmt.Sprintf("%s test task=r-%d:u n=%s", at.Format("2006-01-02T15:04:05.000000Z"), r.IntN(3), strings.Repeat("x", 100))
			batch = append(batch, []byte(entry))
			e, err := engine.Describe(uint64(len(all)+1), entry)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, e)
		}
		if err := store.Append(time.Now(), batch); err != nil {
			t.Fatal(err)
		}
	}
	line := timeline{store}
	pick := func() time.Time {
		switch r.IntN(6) {
		case 0:
			return time.Time{}
		case 1:
			return all[0].Time.Add(-time.Hour)
		case 2:
			return at.Add(time.Hour)
		}
		return all[r.IntN(len(all))].Time.Add(time.Duration(r.IntN(3)-1) * time.Microsecond)
	}
	for range 100 {
		q := view.EventQuery{After: pick(), Until: pick(), Limit: 1 + r.IntN(500)}
		if r.IntN(3) == 0 {
			q.From = int64(r.IntN(len(all)))
		}
		if r.IntN(3) == 0 {
			q.Run = "r-1"
		}
		page, err := line.page(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		var want []int64
		for _, e := range all {
			of, _, _ := strings.Cut(e.Task, ":")
			if e.Seq >= q.From && !e.Time.Before(q.After) && (q.Until.IsZero() || !e.Time.After(q.Until)) && (q.Run == "" || of == q.Run) && len(want) < q.Limit {
				want = append(want, e.Seq)
			}
		}
		var got []int64
		for _, e := range page.Events {
			got = append(got, e.Seq)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%+v gives %v, want %v", q, got, want)
		}
	}
	last := int64(0)
	for n, e := range all {
		if n+1 < len(all) && all[n+1].Time.Equal(e.Time.Time) || r.IntN(50) > 0 {
			continue
		}
		last++
		if seq, err := line.lastAt(e.Time.Time); err != nil || seq != uint64(e.Seq) {
			t.Errorf("the last at %s is %d, %v, want %d", e.Time, seq, err, e.Seq)
		}
	}
	if last < 10 {
		t.Errorf("only %d times were looked for", last)
	}
}
