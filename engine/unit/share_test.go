package unit

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"apollo11/engine/task"
)

const aPath = "[out.data]\ntype = 'path'\n[out.more]\ntype = 'path'"

// shared gives a rig a share and makes its task the unit of a run.
func (r *rig) shared() *rig {
	r.job.Share = &Share{Dir: r.t.TempDir(), ID: "s1"}
	r.job.Assignment.Run, r.job.Assignment.Task = "r-0001", "r-0001:make"
	return r
}

// tree lists what is in a share, folders that end in a slash among it.
func (r *rig) tree() (list []string) {
	filepath.WalkDir(r.job.Share.Dir, func(path string, e os.DirEntry, err error) error {
		name, _ := filepath.Rel(r.job.Share.Dir, path)
		if e.IsDir() {
			name += "/"
		}
		if name != "./" && name != attemptsFolder+"/" {
			list = append(list, name)
		}
		return err
	})
	return list
}

func TestHandOn(t *testing.T) {
	tests := []struct{ name, execute, data, more string }{
		{"in the work folder", `printf hello >data.csv; echo data=data.csv >>"$APOLLO_OUTPUT"`, "data.csv", ""},
		{"deeper", `mkdir -p a/b; printf hello >a/b/c; echo data=./a//b/c >>"$APOLLO_OUTPUT"`, "a/b/c", ""},
		{"by its whole name", `printf hello >d; echo "data=$PWD/d" >>"$APOLLO_OUTPUT"`, "d", ""},
		{"by the contract's name", `mkdir a; printf hello >d; printf hello >a/d.csv; printf 'data=d\nmore=a/d.csv\n' >>"$APOLLO_OUTPUT"`, "d", "a/d.csv"},
		{"in the run's folder", `printf hello >"$APOLLO_RUN_DIR/d"; echo "data=$APOLLO_RUN_DIR/d" >>"$APOLLO_OUTPUT"`, "d", ""},
		{"one file twice", `printf hello >d; printf 'data=d\nmore=d\n' >>"$APOLLO_OUTPUT"`, "d", "d"},
		{"two", `printf hello >d; mkdir a; printf hello >a/d; printf 'data=d\nmore=a/d\n' >>"$APOLLO_OUTPUT"`, "d", "a/d"},
		{"a # in the name", `printf hello >'a#b,c'; echo 'data=a#b,c' >>"$APOLLO_OUTPUT"`, "a#b,c", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			manifest := aPath
			if strings.Contains(tt.name, "contract") {
				manifest += "\npattern = '^a/.*\\.csv$'"
			}
			r := newRig(t, shell(tt.execute, manifest)).shared()
			o := r.run()
			if _, err := r.job.Manifest.Unit.CheckOutputs(o.Outputs); err != nil {
				t.Errorf("the controller refuses it: %v", err)
			}
			if o.Status != task.Success {
				t.Fatalf("%s", o.Error)
			}
			for name, want := range map[string]string{"data": tt.data, "more": tt.more} {
				value, given := o.Outputs.Get(name)
				if given != (want != "") {
					t.Errorf("%s: %v", name, o.Outputs)
				}
				if !given {
					continue
				}
				f, handed, err := task.ParseFile(value)
				if want := "r-0001/make-1.1/" + want; !handed || err != nil || f.Share != "s1" || f.Name != want || f.Size != 5 {
					t.Errorf("%s = %s: %v, want %s", name, value, err, want)
				}
				if text, err := os.ReadFile(filepath.Join(r.job.Share.Dir, f.Name)); string(text) != "hello" {
					t.Errorf("%s: %q %v", f.Name, text, err)
				}
			}
			if marks, _ := filepath.Glob(filepath.Join(r.job.Share.Dir, attemptsFolder, "*")); len(marks) > 0 {
				t.Errorf("marks are left: %v", marks)
			}
		})
	}
}

func TestHandOnFaults(t *testing.T) {
	tests := []struct{ name, execute, says string }{
		{"out of the folder", `echo data=../x >>"$APOLLO_OUTPUT"`, `output data = "../x": leads out of the work folder`},
		{"out by its whole name", `echo data=/etc/passwd >>"$APOLLO_OUTPUT"`, `output data = "/etc/passwd": leads out`},
		{"no name", `echo data= >>"$APOLLO_OUTPUT"`, `output data = "": is empty: name a file`},
		{"another name than the contract's", `mkdir a; echo >a/d.txt; echo more=a/d.txt >>"$APOLLO_OUTPUT"`, `does not match ^a/.*\.csv$`},
		{"the folder itself", `echo data=. >>"$APOLLO_OUTPUT"`, `output data = ".": is a folder`},
		{"a link out", `ln -s /etc/passwd d; echo data=d >>"$APOLLO_OUTPUT"`, "is a link: hand on the file itself"},
		{"a link within", `echo x >f; ln -s f d; echo data=d >>"$APOLLO_OUTPUT"`, "is a link"},
		{"over a link", `ln -s /etc d; echo data=d/passwd >>"$APOLLO_OUTPUT"`, `"d" is no folder of its own`},
		{"a folder", `mkdir d; echo data=d >>"$APOLLO_OUTPUT"`, "is a folder: hand on a file"},
		{"a pipe", `mkfifo d; echo data=d >>"$APOLLO_OUTPUT"`, "not a regular file"},
		{"nothing", `echo data=d >>"$APOLLO_OUTPUT"`, "there is no such file"},
		{"the second", `echo >a; printf 'data=a\nmore=b\n' >>"$APOLLO_OUTPUT"`, `output more = "b": there is no such file`},
		{"taken", `echo >d; echo >"$APOLLO_RUN_DIR/d"; echo data=d >>"$APOLLO_OUTPUT"`, "is in $APOLLO_RUN_DIR already"},
		{"a failure of another kind", `echo >"$APOLLO_RUN_DIR/d"; exit 4`, "exit code 4"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			manifest := aPath
			if strings.Contains(tt.name, "contract") {
				manifest += "\npattern = '^a/.*\\.csv$'"
			}
			r := newRig(t, shell(tt.execute, manifest)).shared()
			o := r.run()
			if o.Status != task.Failed || !strings.Contains(o.Error, tt.says) || len(o.Outputs) > 0 {
				t.Errorf("%v %v %q", o.Status, o.Outputs, o.Error)
			}
			if tt.says != "exit code 4" && o.Class != task.OutputInvalid {
				t.Errorf("class %v", o.Class)
			}
			if left := r.tree(); len(left) > 0 {
				t.Errorf("left in the share: %v", left)
			}
		})
	}
}

func TestNoShare(t *testing.T) {
	r := newRig(t, shell("echo ran", aPath))
	if o := r.run(); o.Class != task.PrepareFailed || !strings.Contains(o.Error, "no share") || r.logged.Len() > 0 {
		t.Errorf("%+v", o)
	}
}

// What a container leaves behind leads somewhere else from out here: a link among
// the folders that a file goes to, or in the place of an answer.
func TestNoLinkLeadsOut(t *testing.T) {
	for name, execute := range map[string]string{
		"a folder of the run's": `ln -s "$IN_OUT" "$APOLLO_RUN_DIR/sub"; mkdir sub; echo x >sub/new; echo data=sub/new >>"$APOLLO_OUTPUT"`,
		"the folder above":      `mkdir -p sub/a; ln -s "$IN_OUT" "$APOLLO_RUN_DIR/sub"; echo x >sub/a/new; echo data=sub/a/new >>"$APOLLO_OUTPUT"`,
		"the outputs":           `ln -s "$IN_OUT/told" "$APOLLO_OUTPUT"`,
		"the state":             `ln -s "$IN_OUT/set" "$APOLLO_STATE"`,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, shell(execute, "[in.out]\ntype = 'string'\n"+aPath+"\n[out.told]\ntype = 'string'")).shared()
			out := t.TempDir()
			for file, text := range map[string]string{"told": "told=of the host", "set": "set.key=of the host"} {
				if err := os.WriteFile(filepath.Join(out, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r.job.Assignment.Inputs = task.Values{{Name: "out", Value: out}}
			o := r.run()
			if o.Class != task.OutputInvalid || len(o.Outputs)+len(o.Changes) > 0 {
				t.Errorf("%v %v %v %q", o.Class, o.Outputs, o.Changes, o.Error)
			}
			if entries, err := os.ReadDir(out); err != nil || len(entries) != 2 {
				t.Errorf("what is outside was written to: %v %v", entries, err)
			}
		})
	}
}

// A file in a share on another file system is copied, and seen whole or not at all.
func TestCopy(t *testing.T) {
	if info, err := os.Stat(memoryFolder); err != nil || !info.IsDir() {
		if os.Getenv("CI") == "true" {
			t.Fatal("needs a second file system:", memoryFolder)
		}
		t.Skip("needs a second file system:", memoryFolder)
	}
	r := newRig(t, shell(`printf hello >d; echo data=d >>"$APOLLO_OUTPUT"`, aPath)).shared()
	dir, err := os.MkdirTemp(memoryFolder, "share")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	r.job.Share.Dir = dir
	o := r.run()
	if want := []string{"r-0001/", "r-0001/make-1.1/", "r-0001/make-1.1/d"}; o.Status != task.Success || !slices.Equal(r.tree(), want) {
		t.Errorf("%s: %v", o.Error, r.tree())
	}
}

// What one unit hands on, the next one reads by its real name.
func TestTakeOver(t *testing.T) {
	maker := newRig(t, shell(`printf hello >d; echo data=d >>"$APOLLO_OUTPUT"`, aPath)).shared()
	made := maker.run()
	value, _ := made.Outputs.Get("data")
	f, _, _ := task.ParseFile(value)
	file := filepath.Join(maker.job.Share.Dir, f.Name)
	rewrite := func(text string) func(*rig) {
		return func(*rig) {
			os.Chmod(file, 0o600)
			write(t, file, text)
		}
	}
	tests := []struct {
		name   string
		before func(*rig)
		says   string
	}{
		{"as it was", func(*rig) {}, ""},
		{"changed", rewrite("hallo"), "data: file r-0001/make-1.1/d: has SHA-256 d3751d33f9cd5049c4af2b462735457e4d3baf130bcbb87f389e349fbaeb20b9, and had " + f.Sum},
		{"grown", rewrite("hello!"), "has 6 bytes, and had 5"},
		{"another share", func(r *rig) { r.job.Share = &Share{Dir: r.job.Share.Dir, ID: "s2"} }, "is in share s1, and this executor sees share s2"},
		{"no share", func(r *rig) { r.job.Share = nil }, "this executor has no share"},
		{"a plain path", func(r *rig) { r.inputs("data", "/some/where") }, ""},
		{"nonsense", func(r *rig) { r.inputs("data", "share:x") }, "not a file handed on"},
		{"led out", func(r *rig) { r.inputs("data", "share:s1/../x#5,"+f.Sum) }, "leads out of the share"},
		{"a link", func(*rig) { os.Remove(file); os.Symlink("/etc/hostname", file) }, "is a link"},
		{"gone", func(*rig) { os.Remove(file) }, "is gone: run the unit again that made it"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, shell(`echo "$IN_DATA"; grep -o '"data":"[^"]*"' "$APOLLO_INPUT"`, "[in.data]\ntype = 'path'")).inputs("data", value)
			r.job.Share = maker.job.Share
			tt.before(r)
			given, _ := r.job.Assignment.Inputs.Get("data")
			o := r.run()
			if tt.says != "" {
				if o.Class != task.InputInvalid || !strings.Contains(o.Error, tt.says) {
					t.Errorf("%v %s", o.Class, o.Error)
				}
				return
			}
			want := given
			if given == value {
				want = file
			}
			if got := r.logged.String(); o.Status != task.Success || got != want+"\n\"data\":\""+want+"\"\n" {
				t.Errorf("%s %q", o.Error, got)
			}
			if again, _ := r.job.Assignment.Inputs.Get("data"); again != given {
				t.Errorf("the assignment was changed: %s", again)
			}
		})
	}
}

// A repeated attempt leaves alone what the one before has handed on; the run's
// end takes both.
func TestOnePlaceForEachAttempt(t *testing.T) {
	r := newRig(t, shell(`printf "$APOLLO_ATTEMPT" >d; echo data=d >>"$APOLLO_OUTPUT"`, aPath)).shared()
	for n := range 2 {
		r.job.Assignment.Attempt, r.job.Assignment.Version = n+1, task.MakeVersion(1, uint32(n+1))
		if o := r.run(); o.Status != task.Success {
			t.Fatal(o.Error)
		}
	}
	r.job.Assignment = task.Assignment{Task: "t-0007", Version: task.MakeVersion(2, 9)}
	if o := r.run(); o.Status != task.Success {
		t.Fatal(o.Error)
	}
	want := []string{"r-0001/", "r-0001/make-1.1/", "r-0001/make-1.1/d", "r-0001/make-1.2/", "r-0001/make-1.2/d", "t-0007/", "t-0007/t-0007-2.9/", "t-0007/t-0007-2.9/d"}
	if !slices.Equal(r.tree(), want) {
		t.Errorf("%v", r.tree())
	}
	for _, id := range []string{"r-0001", "r-0001", "t-0007", "never-was"} {
		if err := r.job.Share.Remove(id); err != nil {
			t.Error(err)
		}
	}
	for _, id := range []string{"", "..", "a/../..", "."} {
		if r.job.Share.Remove(id); len(r.tree()) > 0 {
			t.Error(r.tree())
		}
	}
	if _, err := os.Stat(r.job.Share.Dir); err != nil {
		t.Error(err)
	}
}

// What an executor that was killed has left half done is swept, and nothing else.
func TestShareSweep(t *testing.T) {
	s := &Share{Dir: t.TempDir(), ID: "s"}
	open := func(n uint32) place {
		p, err := s.openPlace(task.Assignment{Task: "r-1:u", Run: "r-1", Version: task.MakeVersion(1, n)})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	killed, alive, done := open(1), open(2), open(3)
	killed.mark.Close()
	done.keep()
	for i, text := range []string{"../../etc", "r-1/make", "r-1/../..", "", "r-1"} {
		if text != "r-1/make" {
			write(t, filepath.Join(s.Dir, attemptsFolder, fmt.Sprint(markPrefix(), "bad", i)), text)
		}
	}
	foreign := filepath.Join(s.Dir, attemptsFolder, "helsewhere@1")
	write(t, foreign, "r-1/u-1.3")
	s.Sweep()
	for file, want := range map[string]bool{killed.dir: false, alive.dir: true, done.dir: true, foreign: true, alive.mark.Name(): true} {
		if _, err := os.Stat(file); (err == nil) != want {
			t.Errorf("%s: %v", file, err)
		}
	}
	if marks, _ := filepath.Glob(filepath.Join(s.Dir, attemptsFolder, "*")); len(marks) != 2 {
		t.Errorf("marks %v", marks)
	}
	alive.drop()
	if _, err := os.Stat(alive.dir); err == nil {
		t.Error("dropped")
	}
}

// A long look at a file ends when the attempt is to be stopped.
// What nobody added to for long goes; what one attempt was added to lately stays,
// and what is not a run's is left alone.
func TestShareExpire(t *testing.T) {
	dir := t.TempDir()
	s := &Share{Dir: dir, ID: "x"}
	now := time.Now()
	for _, name := range []string{"r-1/a-1.1", "r-2/a-1.1", "r-2/b-1.1", ".attempts"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	old := func(name string, age time.Duration) {
		if err := os.Chtimes(filepath.Join(dir, name), now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	old("r-1/a-1.1", 3*time.Hour)
	old("r-1", 3*time.Hour)
	old("r-2/a-1.1", 3*time.Hour)
	old("r-2", 3*time.Hour)
	old(".attempts", 9*time.Hour)
	gone, err := s.Expire(now.Add(-time.Hour))
	if err != nil || !slices.Equal(gone, []string{"r-1"}) {
		t.Fatalf("%q, %v", gone, err)
	}
	for name, there := range map[string]bool{"r-1": false, "r-2/a-1.1": true, "r-2/b-1.1": true, ".attempts": true} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != there {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStoppedWhileReading(t *testing.T) {
	r := newRig(t, shell("echo ran", "[in.data]\ntype = 'path'")).shared()
	write(t, filepath.Join(r.job.Share.Dir, "d"), "x")
	r.inputs("data", task.File{Share: "s1", Name: "d", Size: 1, Sum: strings.Repeat("0", 64)}.String())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if o := r.runFor(ctx); o.Status != task.Stopped || o.Class != task.ByPerson || r.logged.Len() > 0 {
		t.Errorf("%+v", o)
	}
}
