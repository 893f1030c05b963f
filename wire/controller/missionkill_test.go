package controller_test

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"testing"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

var missionKills = flag.Int("missionkills", 200, "so many moments at which controller or executors are killed under missions")

// graphMission is a diamond of diamonds; every unit adds one to the state key n.
const graphMission = `name = "graph"
[[units]]
name = "a"
uses = "fast"
retries = 1000
[[units]]
name = "b"
uses = "real"
deps = ["a"]
retries = 1000
with = { x = "1" }
[[units]]
name = "c"
uses = "fast"
deps = ["a"]
retries = 1000
[[units]]
name = "d"
uses = "real"
deps = ["b", "c"]
retries = 1000
with = { x = "${b.n}" }
expect = "n == b.n"
[[units]]
name = "e"
uses = "fast"
deps = ["a"]
weak = ["b"]
retries = 1000
[[units]]
name = "f"
uses = "fast"
deps = ["d", "e"]
retries = 1000
`

// The controller, the executors, or both are killed at random moments of runs:
// every run goes on by itself and succeeds, no unit that succeeded is run again,
// and the state's total is exact.
func TestMissionKills(t *testing.T) {
	t.Parallel()
	k, n, from := newKilling(t, *missionKills, "[in.x]\ntype = \"int\"\n[out.n]\ntype = \"int\"\n")
	ctx, cancel := context.WithCancel(t.Context())
	defer k.group.Wait()
	defer cancel()
	starters, enough := context.WithCancel(ctx)
	defer enough()
	k.work(ctx, 4, from)
	for i := range 2 {
		k.clients.Go(func() { k.runs(starters, strconv.Itoa(i)) })
	}
	k.startReal()
	for range n {
		k.onceOfRuns()
	}
	c := k.controller()
	enough()
	k.clients.Wait()
	k.checkRuns()
	cancel()
	k.group.Wait()
	c.stop()
	k.countRuns()
	k.verified()
	t.Logf("%d runs acknowledged; the slowest of the starts took %s", len(k.acked), k.slowest)
}

// onceOfRuns is one moment: the controller dies, or the real executor, or both.
func (k *killing) onceOfRuns() {
	if k.random.IntN(4) > 0 {
		k.once()
		return
	}
	c := k.start("controller", k.quiet(nil)...)
	c.ready()
	pause(k.Context(), time.Duration(k.random.IntN(100))*time.Millisecond)
	k.real.kill()
	k.startReal()
	pause(k.Context(), time.Duration(k.random.IntN(100))*time.Millisecond)
	c.kill()
}

// runs starts missions one after the other until ctx ends. One without an answer
// is asked for again under the same key.
func (k *killing) runs(ctx context.Context, name string) {
	for n := 0; ctx.Err() == nil; {
		c, err := wire.Dial(ctx, k.addrFile(), wire.ClientOptions{Actor: name})
		if err != nil {
			pause(ctx, 5*time.Millisecond)
			continue
		}
		for err == nil {
			if err = c.Upload(ctx, "graph.toml", []byte(graphMission)); err != nil {
				break
			}
			var r *view.Run
			r, err = c.Start(ctx, wire.Start{File: "graph.toml", Key: fmt.Sprintf("%s-%d", name, n)})
			if err == nil {
				n++
				k.mu.Lock()
				k.acked[r.ID] = true
				k.mu.Unlock()
				pause(ctx, 40*time.Millisecond)
			}
		}
		// A mission that names a unit which no executor is there to offer yet is
		// refused: it is asked for again.
		c.Close()
		pause(ctx, 5*time.Millisecond)
	}
}

// checkRuns waits for the end of all runs and holds them against what clients know.
func (k *killing) checkRuns() {
	k.Helper()
	eventually(k.TB, "the end of all runs", func() bool { return unended(k.status().Tasks) == 0 })
	seen := map[string]bool{}
	k.ask(func(ctx context.Context, c *wire.Client) error {
		for cursor := ""; ; {
			p, err := c.Runs(ctx, view.RunQuery{Cursor: cursor})
			if err != nil {
				return err
			}
			for _, r := range p.Runs {
				if seen[r.ID] || r.State != "succeeded" || r.Done != 6 {
					k.Errorf("run %s is %s with %d units done: %s; seen before: %t", r.ID, r.State, r.Done, r.Why, seen[r.ID])
				}
				seen[r.ID] = true
			}
			if cursor = p.Cursor; cursor == "" {
				return nil
			}
		}
	})
	for id := range k.acked {
		if !seen[id] {
			k.Errorf("run %s was acknowledged and is lost", id)
		}
	}
	if got, want := k.key("n"), strconv.Itoa(6*len(seen)); got != want {
		k.Errorf("%d runs of 6 units succeeded, and the state counted %s", len(seen), got)
	}
	if len(k.acked) == 0 {
		k.Error("no run was acknowledged: this proves nothing")
	}
}

// countRuns reads in the journal itself how often each unit was applied, and that
// none began again after its success.
func (k *killing) countRuns() {
	k.Helper()
	applied, restarted, images := map[string]int{}, 0, 0
	last := k.events(func(e view.Event) {
		switch e.Kind {
		case "task.result":
			applied[e.Task]++
			k.fits(&e)
		case "task.start":
			if applied[e.Task] > 0 {
				k.Errorf("unit %s began again after its success", e.Task)
			}
			if attempt, _ := task.Values(e.Values).Get("attempt"); attempt != "1" {
				restarted++
			}
		case "image":
			images++
		}
	})
	for id, n := range applied {
		if n != 1 {
			k.Errorf("unit %s was applied %d times", id, n)
		}
	}
	k.Logf("%d records, %d units applied, %d attempts after the first, %d images", last, len(applied), restarted, images)
}
