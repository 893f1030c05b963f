package controller_test

import (
	"strconv"
	"syscall"
	"testing"
)

// collector is a resident unit: it feeds the state until the world is over, and
// goes on where the state says that it was.
const collector = `
kind = "resident"
execute = '''
n=${CTX_COLLECTED:-0}
until test -e "$HOME/open"; do
  n=$((n+1))
  echo "set.collected=$n" >>"$APOLLO_PROGRESS"
  sleep 0.02
done
'''
context = ["collected"]
env = ["PATH", "HOME"]
retry_interval = "10ms"
`

// collected is how far the collector has come.
func (w *world) collected() int {
	w.Helper()
	text := w.key("collected")
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	w.must(err)
	return n
}

// collects waits until the collector has gone on from where it was.
func (w *world) collects(from int) int {
	w.Helper()
	n := 0
	eventually(w.TB, "the collector goes on from "+strconv.Itoa(from), func() bool {
		before := n
		n = w.collected()
		if n < max(before, from) {
			w.Fatalf("it fell from %d to %d", max(before, from), n)
		}
		return n > from+3
	})
	return n
}

// A resident unit feeds the state while it runs. It survives its executor's
// death and its leave in order, and the controller's death: it runs again, on
// whoever is there, and what it had fed is there. When an executor leaves, that
// is no failure.
func TestResidentSurvives(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brisk)
	w.write("units/collector.toml", collector)
	w.Cleanup(func() { w.write("open", "") })
	c := w.controller()
	first := w.executor("first")
	w.does("submit", "collector", "--id", "t")
	n := w.collects(0)
	second := w.executor("second")
	n = w.collects(n)
	if by := w.task("t").Executor; by != "first" {
		t.Errorf("it wandered to %s", by)
	}
	first.kill()
	eventually(t, "another executor takes it", func() bool { return w.task("t").Executor == "second" })
	n = w.collects(n)
	third := w.executor("third")
	second.signal(syscall.SIGTERM)
	if code := second.wait(); code != 0 {
		t.Errorf("told to leave, the executor ended with code %d", code)
	}
	eventually(t, "a third executor takes it", func() bool { return w.task("t").Executor == "third" })
	n = w.collects(n)
	c.kill()
	c = w.controller()
	n = w.collects(n)
	if d := w.task("t"); d.State != "running" || d.Executor != "third" {
		t.Errorf("after all that it is %s on %s", d.State, d.Executor)
	}
	if n := w.recorded("task.fail"); n != 1 {
		t.Errorf("%d attempts failed, want only that of the executor that was killed", n)
	}
	w.write("open", "") // it ends by itself
	w.becomes("t", "succeeded")
	if now := w.collected(); now < n {
		t.Errorf("collected fell from %d to %d", n, now)
	}
	third.stop()
	c.stop()
	w.verified()
}

// A resident unit fills its executor: nothing waits behind what never ends.
func TestResidentFillsItsExecutor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brisk)
	w.write("units/collector.toml", collector)
	w.write("units/fast.toml", "execute = 'true'")
	w.Cleanup(func() { w.write("open", "") })
	w.controller()
	w.executor("first")
	for i := range 20 { // short ones, so that many are sent ahead
		w.does("submit", "fast", "--id", "before-"+strconv.Itoa(i), "--wait")
	}
	w.does("submit", "collector", "--id", "t")
	for i := range 20 {
		w.does("submit", "fast", "--id", "beside-"+strconv.Itoa(i))
	}
	w.collects(0)
	w.executor("second")
	for i := range 20 {
		w.becomes("beside-"+strconv.Itoa(i), "succeeded")
	}
	if by := w.task("t").Executor; by != "first" {
		t.Errorf("it wandered to %s", by)
	}
}
