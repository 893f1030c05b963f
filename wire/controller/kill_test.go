package controller_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

var killConfig = hasty + `
[scheduler]
crash_limit = 1000
[retention]
tasks = 10000000
`

// The controller is killed again and again under load, and the executors now
// and then: nothing acknowledged is lost, nothing is applied twice.
func TestKills(t *testing.T) {
	t.Parallel()
	k, n, from := newKilling(t, *kills, "")
	ctx, cancel := context.WithCancel(t.Context())
	defer k.group.Wait()
	defer cancel()
	clients, enough := context.WithCancel(ctx)
	defer enough()
	k.begin(ctx, clients, from)
	for range n {
		k.once()
	}
	c := k.controller()
	enough()
	k.clients.Wait()
	k.check()
	cancel()
	k.group.Wait()
	c.stop()
	k.count()
	k.verified()
	t.Logf("%d tasks, %d of them acknowledged; the slowest of %d starts took %s", len(k.asked), len(k.acked), n, k.slowest)
}

type killing struct {
	*world
	load
	random  *rand.Rand
	group   sync.WaitGroup // the workers
	clients sync.WaitGroup
	real    *process
	slowest time.Duration
}

// newKilling is a world in which n moments bring a kill; more is what the unit
// real says besides. The seed it draws stands in the log.
func newKilling(t *testing.T, n int, more string) (k *killing, moments int, from uint64) {
	if testing.Short() {
		n = min(n, 10)
	}
	if from = *seed; from == 0 {
		from = uint64(time.Now().UnixNano())
	}
	t.Logf("%d kills, -seed %d", n, from)
	k = &killing{world: newWorld(t, killConfig), random: rand.New(rand.NewPCG(from, 0)), load: load{acked: map[string]bool{}, asked: map[string]bool{}}}
	k.write("units/real.toml", "name = \"real\"\nengine = \"shell\"\nexecute = 'echo n=1 >>\"$APOLLO_OUTPUT\"'\nretries = 1000\n"+more)
	return k, n, from
}

// work starts workers of protocols 1 and 2, some of which keep what was not acknowledged.
func (k *killing) work(ctx context.Context, workers int, from uint64) {
	for i := range workers {
		w := newWorker(fmt.Sprint("worker-", i), 1+min(i, 1), k.addrFile, rand.New(rand.NewPCG(from, uint64(i+1))))
		w.keeps = i%2 == 1
		k.group.Go(func() { w.work(ctx, k) })
	}
}

// load is what clients asked for.
type load struct {
	mu    sync.Mutex
	acked map[string]bool
	asked map[string]bool
}

// begin starts workers and clients; they look for a controller by themselves.
func (k *killing) begin(ctx, clients context.Context, from uint64) {
	k.work(ctx, 6, from)
	for i := range 3 {
		random := rand.New(rand.NewPCG(from, uint64(i+100)))
		k.clients.Go(func() { k.submit(clients, strconv.Itoa(i), random) })
	}
	k.startReal()
}

func (k *killing) startReal() { k.real = k.start("real", "exec", "--units", "units", "--name", "real") }

// addrFile is where a controller is, or was.
func (k *killing) addrFile() string {
	b, err := os.ReadFile(k.path("data/ADDR"))
	if err != nil {
		return "127.0.0.1:1" // nobody
	}
	return strings.TrimSpace(string(b))
}

// once is a controller's life and its end.
func (k *killing) once() {
	began := time.Now()
	c := k.start("controller", k.quiet(nil)...)
	if k.random.IntN(10) > 0 { // some die before they are ready
		c.ready()
		k.slowest = max(k.slowest, time.Since(began))
	}
	r := k.random.Float64()
	moment := time.NewTimer(2*time.Millisecond + time.Duration(r*r*float64(300*time.Millisecond))) // early ones more often
	defer moment.Stop()
	select {
	case <-c.ended:
		k.Fatalf("a controller ended by itself: %s", tail(k.read("controller.out")))
	case <-moment.C:
	}
	c.kill()
	if k.random.IntN(10) == 0 {
		k.real.kill()
		k.startReal()
	}
}

// submit asks for tasks in small batches until ctx ends. A batch without an
// answer is asked for again, or given up: then nobody knows.
func (k *killing) submit(ctx context.Context, name string, random *rand.Rand) {
	var batch []task.Spec
	for n := 0; ctx.Err() == nil; {
		c, err := wire.Dial(ctx, k.addrFile(), wire.ClientOptions{Actor: name})
		if err != nil {
			pause(ctx, 5*time.Millisecond)
			continue
		}
		for err == nil {
			if batch == nil {
				batch = k.batch(name, &n, random)
			}
			var got []view.Submitted
			if got, err = c.Submit(ctx, batch); err == nil {
				k.note(batch, got)
				batch = nil
				pause(ctx, 15*time.Millisecond)
			}
		}
		var said *wire.Error
		if errors.As(err, &said) {
			k.Errorf("a submit was refused: %v", said)
		}
		if random.IntN(2) == 0 {
			batch = nil
		}
		c.Close()
	}
}

// bulk makes the journal grow, so that images are taken, and cut off, too.
var bulk = strings.Repeat("bulk", 700)

func (k *killing) batch(name string, n *int, random *rand.Rand) []task.Spec {
	batch := make([]task.Spec, 1+random.IntN(20))
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range batch {
		*n++
		batch[i] = task.Spec{ID: fmt.Sprintf("c%s-%d", name, *n), Type: "fast", Retries: 1000, Inputs: task.Values{{Name: "x", Value: bulk[:random.IntN(len(bulk))]}}}
		if random.IntN(100) == 0 {
			batch[i].Type, batch[i].Inputs = "real", nil
		}
		k.asked[batch[i].ID] = true
	}
	return batch
}

func (k *killing) note(batch []task.Spec, got []view.Submitted) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(got) != len(batch) {
		k.Errorf("%d answers for %d tasks", len(got), len(batch))
	}
	for i, s := range got {
		if s.ID != batch[i].ID {
			k.Errorf("task %s was answered as %s", batch[i].ID, s.ID)
		}
		k.acked[s.ID] = true
	}
}

// check waits for the end of all work and holds it against what clients know.
func (k *killing) check() {
	k.Helper()
	eventually(k.TB, "the end of all tasks", func() bool {
		s := k.status()
		return unended(s.Tasks) == 0
	})
	seen := map[string]bool{}
	k.ask(func(ctx context.Context, c *wire.Client) error {
		for cursor := ""; ; {
			p, err := c.Tasks(ctx, view.Query{Cursor: cursor, Limit: view.MaxRows})
			if err != nil {
				return err
			}
			for _, t := range p.Tasks {
				if seen[t.ID] || !k.asked[t.ID] || t.State != "succeeded" {
					k.Errorf("task %s is %s %s; asked for: %t, seen before: %t", t.ID, t.State, t.Error, k.asked[t.ID], seen[t.ID])
				}
				seen[t.ID] = true
			}
			if cursor = p.Cursor; cursor == "" {
				return nil
			}
		}
	})
	for id := range k.acked {
		if !seen[id] {
			k.Errorf("task %s was acknowledged and is lost", id)
		}
	}
	if n := k.key("n"); n != strconv.Itoa(len(seen)) {
		k.Errorf("%d tasks succeeded, and the state counted %s", len(seen), n)
	}
	if len(k.acked) == 0 {
		k.Error("nothing was acknowledged: this proves nothing")
	}
}

func unended(c view.Counts) (n int64) {
	for _, s := range task.States() {
		if !s.Terminal() {
			n += c[s.String()]
		}
	}
	return n
}

// fits: what was applied is the result of the dispatch that was waited for.
func (k *killing) fits(e *view.Event) {
	k.Helper()
	version, _ := task.Values(e.Values).Get("v")
	text, _ := task.Values(e.Values).Get("out")
	outputs, err := task.ParseValues(text)
	k.must(err)
	if made, ok := outputs.Get(madeBy); version == "" || ok && made != version {
		k.Errorf("task %s was out at version %q, and the result of %q was applied", e.Task, version, made)
	}
}

// count reads in the journal itself how often each task was applied.
func (k *killing) count() {
	k.Helper()
	applied, starts, images := map[string]int{}, 0, 0
	last := k.events(func(e view.Event) {
		switch e.Kind {
		case "task.result":
			applied[e.Task]++
			k.fits(&e)
		case "start":
			starts++
		case "image":
			images++
		}
	})
	for id, n := range applied {
		if n != 1 {
			k.Errorf("task %s was applied %d times", id, n)
		}
	}
	for id := range k.acked {
		if applied[id] == 0 {
			k.Errorf("task %s was never applied", id)
		}
	}
	names, err := filepath.Glob(k.path("data/journal-*"))
	k.must(err)
	k.Logf("%d records, %d starts, %d images, %d segments", last, starts, images, len(names))
}
