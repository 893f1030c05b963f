package controller_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

var undoKills = flag.Int("undokills", 30, "so many moments at which controller or executors are killed while runs are undone")

// step leaves a file and counts in the state; its undo takes both back.
const step = `
env = ["PATH", "HOME"]
execute = 'echo made >"$HOME/made/$APOLLO_TASK"; echo file="$HOME/made/$APOLLO_TASK" >>"$APOLLO_OUTPUT"; echo add.total=7 >>"$APOLLO_STATE"; echo "add.$IN_ME=1" >>"$APOLLO_STATE"'
undo = 'rm -f "$OUT_FILE"; echo add.total=-7 >>"$APOLLO_STATE"; echo "add.$IN_ME=-1" >>"$APOLLO_STATE"; sleep 0.01'
retries = 1000
[in.me]
type = "string"
[out.file]
type = "string"
`

func undoneMission() string {
	var b strings.Builder
	b.WriteString("name = \"six\"\n")
	for i, deps := range []string{"", `"u1"`, `"u1"`, `"u2", "u3"`, `"u1"`, `"u4", "u5"`} {
		fmt.Fprintf(&b, "[[units]]\nname = \"u%d\"\nuses = \"step\"\ndeps = [%s]\nwith = { me = \"u%[1]d\" }\n", i+1, deps)
	}
	return b.String()
}

// Runs are undone while the controller, the executor, or both are killed: each
// comes to its end, each undo is applied once, the latest first, and what the
// runs counted is back at zero.
func TestUndoKills(t *testing.T) {
	t.Parallel()
	n, from := *undoKills, *seed
	if testing.Short() {
		n = min(n, 5)
	}
	if from == 0 {
		from = uint64(time.Now().UnixNano())
	}
	t.Logf("-undokills %d -seed %d", n, from)
	u := &undoing{world: newWorld(t, killConfig), random: rand.New(rand.NewPCG(from, 0))}
	u.must(os.Mkdir(u.path("made"), 0o700))
	u.write("units/step.toml", step)
	u.write("six.toml", undoneMission())
	u.c, u.e = u.controller(), u.executor("e")
	for n > 0 {
		n -= u.round(min(n, 5))
	}
	u.c.stop()
	u.count()
	u.verified()
}

type undoing struct {
	*world
	random *rand.Rand
	c, e   *process
	undone []string // runs that undo others
}

// round undoes two runs, one after the other, under so many kills.
func (u *undoing) round(kills int) int {
	u.Helper()
	var runs []string
	for range 2 {
		runs = append(runs, u.runs("six.toml").ID)
	}
	if left := u.made(); len(left) != 12 || u.key("total") != strconv.Itoa(12*7) {
		u.Fatalf("before they are undone two runs made %q, and counted %s", left, u.key("total"))
	}
	var by []string
	for _, id := range runs {
		by = append(by, strings.TrimSpace(u.does("rollback", id, "--yes")))
	}
	for range kills {
		u.once()
	}
	for _, id := range by {
		eventually(u.TB, id+" has undone its run", func() bool { return u.runDetail(id).State == "succeeded" })
	}
	if left := u.made(); len(left) > 0 {
		u.Errorf("after they are undone %q are there", left)
	}
	for _, name := range []string{"total", "u1", "u2", "u3", "u4", "u5", "u6"} {
		if value := u.key(name); value != "0" {
			u.Errorf("after the runs are undone %s is %q", name, value)
		}
	}
	u.undone = append(u.undone, by...)
	return kills
}

func (u *undoing) made() []string {
	list, err := filepath.Glob(u.path("made/*"))
	u.must(err)
	return list
}

// once kills one or both at some moment, and starts them again.
func (u *undoing) once() {
	time.Sleep(time.Duration(u.random.IntN(60)) * time.Millisecond) // the moment is what is tested
	what := u.random.IntN(3)
	if what > 0 {
		u.e.kill()
	}
	if what < 2 {
		u.c.kill()
		u.c = u.controller()
	}
	if what > 0 {
		u.e = u.start("e", "exec", "--units", "units", "--name", "e")
	}
}

// count reads in the journal how often, and in which order, undos were applied.
func (u *undoing) count() {
	u.Helper()
	order, kills := map[string][]string{}, 0
	parent := map[string]string{}
	u.events(func(e view.Event) {
		run, unit, _ := strings.Cut(e.Task, ":")
		switch e.Kind {
		case "task.result":
			order[run] = append(order[run], unit)
		case "run.start", "run.new":
			parent[e.Run], _ = task.Values(e.Values).Get("parent")
		case "task.fail":
			kills++
		}
	})
	for _, id := range u.undone {
		of := parent[id]
		want := slices.Clone(order[of])
		slices.Reverse(want)
		if len(want) != 6 || !slices.Equal(order[id], want) {
			u.Errorf("run %s did %v, and %s undid %v", of, order[of], id, order[id])
		}
	}
	u.Logf("%d runs undone, %d attempts lost", len(u.undone), kills)
}

// manyKeys is a state that no single record holds.
const manyKeys = 48

// A rollback of the state is asked for while the controller is killed: it is done
// whole or not at all, though it takes several records.
func TestStateRollbackKills(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brisk)
	c := w.controller()
	at := w.setKeys("a")
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	done, longest := map[string]int{}, 20*time.Millisecond
	for i := 0; i < 80 && (done["a"] < 3 || done["b"] < 3); i++ {
		w.setKeys("b")
		ended := w.restores(int64(at))
		began := time.Now()
		moment := time.NewTimer(time.Duration(random.Int64N(int64(longest))))
		answered := false
		select {
		case err := <-ended:
			w.must(err)
			answered, longest = true, 2*time.Since(began)
			ended <- nil
		case <-moment.C:
			longest += longest / 10
		}
		c.kill()
		answered = <-ended == nil || answered
		c = w.controller()
		found := w.letters()
		if len(found) != 1 || answered && found != "a" {
			t.Errorf("rollback %d, answered %t: the keys are of %q", i, answered, found)
		}
		done[found]++
	}
	c.stop()
	if n := w.recorded("state.restore"); done["a"] == 0 || done["b"] == 0 || n%done["a"] != 0 || n/done["a"] < 2 {
		t.Errorf("%v were done or not, with %d records: this proves nothing", done, n)
	}
	t.Logf("done or not: %v", done)
	w.verified()
}

// restores asks for a rollback of the state.
func (w *world) restores(at int64) chan error {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	c, err := wire.Dial(ctx, w.addr(), wire.ClientOptions{Actor: "test"})
	w.must(err)
	ended := make(chan error, 1)
	go func() {
		defer cancel()
		defer c.Close()
		_, err := c.Restore(ctx, wire.Restore{Seq: at, Reason: "test"})
		ended <- err
	}()
	return ended
}

// setKeys sets every key, to so many of a letter; at is the record of the last.
func (w *world) setKeys(letter string) (at uint64) {
	w.Helper()
	w.ask(func(ctx context.Context, c *wire.Client) error {
		for i := range manyKeys {
			r := wire.Repair{Key: fmt.Sprint("k", i), Value: strings.Repeat(letter, 16<<10), Reason: "test"}
			if _, err := c.Repair(ctx, r); err != nil {
				return err
			}
		}
		return nil
	})
	return w.events(func(view.Event) {})
}

// letters are those that the keys are made of, each once.
func (w *world) letters() (found string) {
	w.Helper()
	for i := range manyKeys {
		value := w.key(fmt.Sprint("k", i))
		if letter := value[:1]; value != strings.Repeat(letter, 16<<10) {
			w.Errorf("k%d is broken: %q", i, value)
		} else if !strings.Contains(found, letter) {
			found += letter
		}
	}
	return found
}
