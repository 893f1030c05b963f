package controller_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

// handsOn is a mission in which files go from unit to unit, over two joins.
var handsOn = map[string]string{
	"units/make.toml": `execute = 'echo "made" >data; echo file=data >>"$APOLLO_OUTPUT"'
[out.file]
type = "path"`,
	"units/join.toml": `execute = 'cat "$IN_A" "$IN_B" >joined; echo file=joined >>"$APOLLO_OUTPUT"'
[in.a]
type = "path"
[in.b]
type = "path"
[out.file]
type = "path"`,
	"units/count.toml": `execute = 'echo lines=$(wc -l <"$IN_FILE") >>"$APOLLO_OUTPUT"'
[in.file]
type = "path"
[out.lines]
type = "int"`,
	"files.toml": `name = "files"
[[units]]
name = "a"
uses = "make"
[[units]]
name = "b"
uses = "make"
deps = ["a"]
[[units]]
name = "join"
deps = ["a", "b"]
with = { a = "${a.file}", b = "${b.file}" }
[[units]]
name = "count"
deps = ["join"]
with = { file = "${join.file}" }`,
	"one.toml": `name = "one"
[[units]]
name = "make"
[[units]]
name = "count"
deps = ["make"]
with = { file = "${make.file}" }`,
}

// runs starts a mission's file and waits for its end.
func (w *world) runs(file string, args ...string) *view.RunDetail {
	w.Helper()
	out, words, code := w.cli(append([]string{"run", file, "--wait"}, args...)...)
	id, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
	if id == "" {
		w.Fatalf("no run was started: code %d, %s", code, words)
	}
	return w.runDetail(id)
}

func (w *world) runDetail(id string) (d *view.RunDetail) {
	w.Helper()
	w.ask(func(ctx context.Context, c *wire.Client) (err error) {
		d, err = c.Run(ctx, id, "")
		return err
	})
	return d
}

func handsOnWorld(t *testing.T) *world {
	w := newWorld(t, brisk)
	for name, text := range handsOn {
		w.write(name, text)
	}
	w.controller()
	return w
}

// Two executors with the same folder, under two names of it, see the same files:
// what one has made the other reads.
func TestFilesAreShared(t *testing.T) {
	t.Parallel()
	w := handsOnWorld(t)
	w.must(os.Mkdir(w.path("share"), 0o700))
	w.must(os.Symlink("share", w.path("elsewhere")))
	w.executor("makes", "--share", "share", "--types", "make,count")
	w.executor("joins", "--share", "elsewhere", "--types", "join")
	d := w.runs("files.toml")
	if d.State != "succeeded" {
		t.Fatalf("%s: %s", d.State, d.Why)
	}
	last := d.Units[len(d.Units)-1]
	if lines, _ := task.Values(last.Outputs).Get("lines"); lines != "2" {
		t.Errorf("%+v", last)
	}
	made, err := filepath.Glob(w.path("share/" + d.ID + "/*/*"))
	if err != nil || len(made) != 3 {
		t.Errorf("the run's files: %v %v", made, err)
	}
}

// What a killed executor was about to hand on is deleted by the next that comes
// to its share; the attempt that succeeds hands on its own.
func TestFilesOfAKilledExecutor(t *testing.T) {
	t.Parallel()
	w := handsOnWorld(t)
	w.Cleanup(func() { w.write("open", "") })
	w.write("units/make.toml", `execute = '''
echo made >"$APOLLO_RUN_DIR/data"
echo x >>"$HOME/begun"
until test -e "$HOME/open"; do sleep 0.02; done
echo file="$APOLLO_RUN_DIR/data" >>"$APOLLO_OUTPUT"
'''
env = ["PATH", "HOME"]
[out.file]
type = "path"`)
	first := w.executor("first", "--share", "share")
	id := strings.TrimSpace(w.does("run", "one.toml"))
	eventually(t, "the first attempt", func() bool { return w.begun() == 1 })
	files := func() []string {
		list, err := filepath.Glob(w.path("share/" + id + "/*/data"))
		w.must(err)
		return list
	}
	left := files()
	if len(left) != 1 {
		t.Fatalf("the first attempt has written %v", left)
	}
	first.kill()
	w.executor("second", "--share", "share")
	eventually(t, "the second attempt", func() bool { return w.begun() == 2 })
	if now := files(); len(now) != 1 || now[0] == left[0] {
		t.Errorf("of the killed attempt's %v there is now %v", left, now)
	}
	w.write("open", "")
	eventually(t, "the run's end", func() bool { return w.runDetail(id).State == "succeeded" })
	if now := files(); len(now) != 1 {
		t.Errorf("after the run there is %v", now)
	}
}

// Two executors that share nothing, though they are on one host and both offer
// every unit: who reads a file runs where it was made.
func TestFilesStayWhereTheyAre(t *testing.T) {
	t.Parallel()
	w := handsOnWorld(t)
	for _, id := range []string{"one", "two", "three"} {
		w.executor(id, "--share", "share-"+id)
	}
	by := map[string]int{}
	for range 12 {
		d := w.runs("one.toml")
		if d.State != "succeeded" || len(d.Units) != 2 || d.Units[0].Executor != d.Units[1].Executor {
			t.Fatalf("%s %s: %+v", d.State, d.Why, d.Units)
		}
		by[d.Units[0].Executor]++
	}
	if len(by) < 2 {
		t.Errorf("all went to one executor: %v", by)
	}
}

// A unit whose file nobody sees who could run it waits, and says for what; an
// executor that comes with that share takes it.
func TestFileNobodySees(t *testing.T) {
	t.Parallel()
	w := handsOnWorld(t)
	w.executor("makes", "--share", "here", "--types", "make")
	w.executor("blind", "--share", "there", "--types", "count")
	id := strings.TrimSpace(w.does("run", "one.toml"))
	w.becomes(id+":make", "succeeded")
	if words := w.does("explain", id+":count"); !strings.Contains(words, "without the share") {
		t.Errorf("it is explained by: %s", words)
	}
	if state := w.task(id + ":count").State; state != "queued" {
		t.Errorf("the unit whose file nobody sees is %s", state)
	}
	w.executor("sees", "--share", "here", "--types", "count")
	eventually(t, "the run's end", func() bool { return w.runDetail(id).State == "succeeded" })
	if by := w.task(id + ":count").Executor; by != "sees" {
		t.Errorf("it ran on %s", by)
	}
}
