package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"apollo11/engine"
)

// listener stands for the engine: it notes what it is told, in words.
type listener struct {
	sync.Mutex
	told   []string
	refuse error
}

func (l *listener) do(_ context.Context, c engine.Command) (engine.Answer, error) {
	l.Lock()
	defer l.Unlock()
	switch c := c.(type) {
	case engine.SetMissions:
		line := "missions"
		for _, m := range c.Missions {
			line += " " + m.Name + "@" + filepath.Base(m.File)
			if m.Mission != nil {
				line += fmt.Sprintf("/%d", len(m.Mission.Units))
			}
			if m.Fault != "" {
				line += "!"
			}
		}
		l.told = append(l.told, line)
	case engine.FileSeen:
		l.told = append(l.told, fmt.Sprintf("file %s %d %s", c.Mission, c.Trigger, filepath.Base(c.Path)))
	}
	return engine.Done{}, l.refuse
}

// heard is what was told since it was asked last.
func (l *listener) heard() string {
	l.Lock()
	defer l.Unlock()
	text := strings.Join(l.told, "\n")
	l.told = nil
	return text
}

// lookout is a folder of missions under a clock that is set by hand.
type lookout struct {
	testing.TB
	*missions
	listener
	dir   string
	clock time.Time
	words bytes.Buffer
}

func newLookout(t testing.TB) *lookout {
	l := &lookout{TB: t, dir: t.TempDir(), clock: time.Unix(1_700_000_000, 0)}
	var err error
	l.missions, err = newMissions(&Options{
		Missions: filepath.Join(l.dir, "missions"), Now: func() time.Time { return l.clock },
		Log: slog.New(slog.NewTextHandler(&l.words, nil)),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	l.missions.do = l.listener.do
	return l
}

func (l *lookout) write(name, text string) {
	l.Helper()
	path := filepath.Join(l.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		l.Fatal(err)
	}
}

// expect looks after so long, and holds what is told against what it should be.
func (l *lookout) expect(after time.Duration, want string) time.Duration {
	l.Helper()
	l.clock = l.clock.Add(after)
	wait := l.turn(l.Context(), false)
	if got := l.heard(); got != want {
		l.Fatalf("told %q, want %q", got, want)
	}
	return wait
}

const one = "[[units]]\nname = 'a'\n"

func TestMissionsAreToldWhenTheFolderChanges(t *testing.T) {
	l := newLookout(t)
	l.expect(0, "missions") // there is no folder yet
	l.expect(rescan, "")
	l.write("missions/b.toml", one)
	l.write("missions/a.yaml", "units:\n- name: x\n- name: y\n")
	l.write("missions/c.yml", "units:\n- name: x\n")
	l.write("missions/.d.toml", one)
	l.write("missions/readme.md", "# no mission")
	l.write("missions/e.toml/inner.toml", one)
	l.expect(rescan, "missions a@a.yaml/2 b@b.toml/1 c@c.yml/1")
	l.expect(rescan, "")
	// A slip keeps what was right, and says where it is, once.
	l.write("missions/b.toml", one+"x = 1\ny = 1\n")
	l.expect(rescan, "missions a@a.yaml/2 b@b.toml/1! c@c.yml/1")
	l.expect(rescan, "")
	for _, place := range []string{"missions/b.toml:3:1: ", "missions/b.toml:4:1: "} {
		if n := strings.Count(l.words.String(), place); n != 1 {
			t.Errorf("%s stands %d times in the log:\n%s", place, n, l.words.String())
		}
	}
	l.write("missions/b.toml", one+one[:10]+"name = 'b'\n")
	l.expect(rescan, "missions a@a.yaml/2 b@b.toml/2 c@c.yml/1")
	// What was never right is known by its fault, and takes no name from a mission.
	l.write("missions/0.toml", "nonsense")
	l.write("missions/d.toml", "name = '0'\n"+one)
	l.expect(rescan, "missions a@a.yaml/2 b@b.toml/2 c@c.yml/1 0@d.toml/1")
	l.write("missions/0.toml", "name = 'c'\n"+one) // the same name twice
	l.expect(rescan, "missions c@0.toml/1 a@a.yaml/2 b@b.toml/2 0@d.toml/1")
	if want := "c.yml: the name c is taken by "; !strings.Contains(l.words.String(), want) {
		t.Errorf("want %q in the log:\n%s", want, l.words.String())
	}
	if err := os.RemoveAll(filepath.Join(l.dir, "missions")); err != nil {
		t.Fatal(err)
	}
	l.expect(rescan-1, "")
	l.expect(1, "missions")
}

func TestAFolderThatCannotBeReadIsNoEmptyOne(t *testing.T) {
	l := newLookout(t)
	l.write("missions", "a file where a folder should be")
	l.expect(0, "")
	l.expect(rescan, "")
	if n := strings.Count(l.words.String(), "can't be read"); n != 1 {
		t.Errorf("it is said %d times: %s", n, &l.words)
	}
	if err := os.Remove(filepath.Join(l.dir, "missions")); err != nil {
		t.Fatal(err)
	}
	l.write("missions/m.toml", one)
	l.expect(rescan, "missions m@m.toml/1")
	if err := os.RemoveAll(filepath.Join(l.dir, "missions")); err != nil {
		t.Fatal(err)
	}
	l.write("missions", "a file again")
	l.expect(rescan, "")
}

func TestMissionsThatAreNotTakenAreToldAgain(t *testing.T) {
	l := newLookout(t)
	l.refuse = errors.New("no room")
	l.expect(0, "missions")
	l.expect(rescan, "missions")
	l.refuse = nil
	l.expect(rescan, "missions")
	l.expect(rescan, "")
}

// Triggers are counted as in the missions that were taken last.
func TestFilesOfMissionsThatAreNotTaken(t *testing.T) {
	l := newLookout(t)
	const missions, file = "missions m@m.toml/1", "[[triggers]]\nfile = 'in/*'\n"
	l.write("missions/m.toml", "name = 'm'\n"+one+file)
	l.expect(0, missions)
	l.write("in/a", "1")
	l.write("missions/m.toml", "name = 'm'\n"+one+"[[triggers]]\nstart = true\n"+file)
	l.refuse = errors.New("no room")
	l.expect(rescan, missions)
	l.refuse = nil
	l.expect(quiet, "file m 0 a")
	l.write("in/b", "1")
	l.expect(rescan-quiet, missions)
	l.expect(quiet, "file m 1 a\nfile m 1 b") // the engine knows of a
}

func TestAFileIsToldOnceItIsWhole(t *testing.T) {
	l := newLookout(t)
	l.write("missions/m.toml", "name = 'm'\n"+one+"[[triggers]]\nstart = true\n[[triggers]]\nfile = 'in[1]/*.csv'\n")
	const missions = "missions m@m.toml/1"
	if wait := l.expect(0, missions); wait != rescan {
		t.Errorf("waits %s with nothing there", wait)
	}
	l.write("in1/a.csv", "1")
	if wait := l.expect(time.Second, ""); wait != quiet {
		t.Errorf("waits %s for a new file, want %s", wait, quiet)
	}
	l.write("in1/a.csv", "12") // it grows
	l.expect(quiet, "")
	l.expect(quiet-1, "")
	if wait := l.expect(1, "file m 1 a.csv"); wait != rescan {
		t.Errorf("waits %s with nothing to come", wait)
	}
	l.expect(quiet, "")
	// What is not meant: another name, a hidden one, a folder.
	l.write("in1/a.txt", "1")
	l.write("in1/.b.csv", "1")
	l.write("in1/c.csv/x", "1")
	l.expect(quiet, "")
	l.expect(quiet, "")
	// Empty, it may be about to be written.
	l.write("in1/e.csv", "")
	l.expect(0, "")
	l.expect(quiet, "")
	l.expect(quietEmpty-quiet, "file m 1 e.csv")
	// Gone and back, or changed, it is another.
	path := filepath.Join(l.dir, "in1/a.csv")
	if err := os.Chtimes(path, time.Time{}, l.clock); err != nil {
		t.Fatal(err)
	}
	l.expect(time.Second, "")
	l.refuse = errors.New("no room")
	l.expect(quiet, "file m 1 a.csv")
	l.expect(offerAgain-1, "")
	l.refuse = nil
	l.expect(1, "file m 1 a.csv")
	l.expect(offerAgain, "")
	if !strings.Contains(l.words.String(), "no room") {
		t.Errorf("the refusal is not in the log: %s", &l.words)
	}
}

// What the clock set by hand leaves out: that changes are noticed.
func TestChangesAreNoticed(t *testing.T) {
	l := newLookout(t)
	l.missions.now, l.rescan = time.Now, time.Hour
	l.write("in/old.csv", "1")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { l.run(ctx); close(ended) }()
	defer func() { stop(); <-ended }()
	soon := func(want string) {
		t.Helper()
		var heard string
		for deadline := time.Now().Add(30 * time.Second); !strings.Contains(heard, want); time.Sleep(time.Millisecond) {
			if heard += l.heard(); time.Now().After(deadline) {
				t.Fatalf("heard %q, want %q", heard, want)
			}
		}
	}
	soon("missions")
	l.write("missions/m.toml", "name = 'm'\n"+one+"[[triggers]]\nfile = 'in/*.csv'\n")
	soon("m@m.toml/1")
	soon("file m 0 old.csv")
	l.write("in/aside", "1")
	if err := os.Rename(filepath.Join(l.dir, "in/aside"), filepath.Join(l.dir, "in/new.csv")); err != nil {
		t.Fatal(err)
	}
	soon("file m 0 new.csv")
	l.write("missions/m.toml", "name = 'm'\n"+one+"[[triggers]]\nfile = 'deep/er/*.csv'\n") // nothing of it is there
	soon("m@m.toml/1")
	l.write("deep/er/new.csv", "1")
	soon("file m 0 new.csv")
	l.write("missions/m.toml", "oops")
	soon("m@m.toml/1!")
}
