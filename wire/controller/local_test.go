package controller_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"apollo11/wire"
)

// patient gives up an executor that is silent only after longer than any test
// waits.
var patient = strings.NewReplacer(`timeout = "15s"`, `timeout = "10m"`, `reconnect_grace = "500ms"`, `reconnect_grace = "10m"`).Replace(brisk)

// endless makes a unit that says when it begins, and does not end within a test.
func (w *world) endless() {
	w.write("units/endless.toml", "engine = \"shell\"\nexecute = 'echo x >>\""+w.path("ran")+"\"; exec sleep 100'\nretries = 100\n")
}

// began waits until it has begun so often.
func (w *world) began(times int) {
	w.Helper()
	eventually(w.TB, "the unit's start", func() bool { return strings.Count(w.read("ran"), "x") >= times })
}

// executors are all that the controller knows, their names sorted.
func (w *world) executors() (names []string, pids map[string]int) {
	w.Helper()
	pids = map[string]int{}
	w.ask(func(ctx context.Context, c *wire.Client) error {
		list, err := c.Executors(ctx)
		for _, e := range list {
			pids[e.ID] = int(e.PID)
		}
		return err
	})
	return slices.Sorted(maps.Keys(pids)), pids
}

// What the local executors of a killed controller had is run again as soon as it
// is back, and there are no more of them at each start.
func TestLocalExecutorsOfAKilledController(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strings.Replace(patient, "executors = 0", "executors = 2", 1)+"[scheduler]\ncrash_limit = 100\n")
	w.endless()
	c := w.controller()
	w.does("submit", "endless", "--id", "e")
	for n := range 3 {
		w.began(n + 1)
		w.becomes("e", "running")
		c.kill()
		c = w.controller()
	}
	w.began(4)
	ids, _ := w.executors()
	if len(ids) != 2 || !strings.HasSuffix(ids[0], "-local-1") || !strings.HasSuffix(ids[1], "-local-2") {
		t.Errorf("executors %q", ids)
	}
	w.does("cancel", "e")
	w.becomes("e", "cancelled")
	c.stop()
}

// The same for an executor that is killed under a parent of its own, named or not.
func TestInstancesKeepTheirNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "w"} {
		t.Run("name="+name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, patient+"[scheduler]\ncrash_limit = 100\n")
			w.endless()
			c := w.controller()
			parent := w.start("parent", "exec", "--units", "units", "--instances", "2", "--name", name)
			eventually(t, "two executors", func() bool { names, _ := w.executors(); return len(names) == 2 })
			names, pids := w.executors()
			w.does("submit", "endless", "--id", "e")
			w.began(1)
			ran := w.becomes("e", "running").Executor
			w.must(syscall.Kill(pids[ran], syscall.SIGKILL))
			w.began(2)
			if now, _ := w.executors(); !slices.Equal(now, names) || name != "" && !slices.Equal(now, []string{"w-1", "w-2"}) {
				t.Errorf("executors %q, then %q", names, now)
			}
			w.does("cancel", "e")
			w.becomes("e", "cancelled")
			parent.stop()
			c.stop()
		})
	}
}
