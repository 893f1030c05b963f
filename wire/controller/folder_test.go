package controller_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"apollo11/snapshot"
)

// ended starts a controller that should end by itself, and returns its code and
// words; one that becomes ready instead has code 0.
func (w *world) ended(args ...string) (code int, words string) {
	w.Helper()
	os.Remove(w.path("refused.out"))
	p := w.start("refused", args...)
	ready := false
	eventually(w.TB, "an end", func() bool {
		ready = strings.Contains(w.read("refused.out"), "controller ready")
		return ready || p.gone()
	})
	if ready {
		p.stop()
	}
	return p.wait(), w.read("refused.out")
}

// nobody runs as a user who may not do much; a test as root has no other way to
// a folder that cannot be written.
func (w *world) nobody(name string, args ...string) *process {
	c := w.command(program, args...)
	if os.Geteuid() == 0 {
		const nobody = 65534
		w.must(os.Chown(w.dir, nobody, nobody))
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	return w.run(name, c)
}

// A data folder that cannot be written is refused in words, not half used.
func TestReadOnlyFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brisk)
	w.must(os.Chmod(w.path("config.toml"), 0o644))
	w.must(os.Chmod(filepath.Dir(w.dir), 0o755))
	w.must(os.Mkdir(w.path("data"), 0o555))
	p := w.nobody("refused", "--no-tui")
	code, words := p.wait(), w.read("refused.out")
	if code != 1 || !strings.Contains(words, "apollo11: ") || !strings.Contains(words, "data") || !strings.Contains(words, "permission denied") {
		t.Errorf("code %d: %s", code, words)
	}
	entries, err := os.ReadDir(w.path("data"))
	w.must(err)
	if len(entries) != 0 {
		t.Errorf("it left %v", entries)
	}
}

// A folder that becomes read-only while the controller runs: what it holds open
// it can still write; what it acknowledged is there when the folder is well.
func TestFolderBecomesReadOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brisk)
	w.must(os.Chmod(w.path("config.toml"), 0o644))
	w.must(os.Chmod(filepath.Dir(w.dir), 0o755))
	p := w.nobody("controller", "--no-tui")
	p.ready()
	w.does("submit", "a", "--id", "first")
	w.must(os.Chmod(w.path("data"), 0o555))
	w.does("submit", "a", "--id", "second")
	p.signal(syscall.SIGTERM) // no image can be taken, no address removed
	p.wait()
	w.must(os.Chmod(w.path("data"), 0o700))
	w.must(os.Remove(w.path("data/ADDR")))
	p = w.nobody("controller", "--no-tui")
	p.ready()
	for _, id := range []string{"first", "second"} {
		if d := w.task(id); d.State != "queued" {
			t.Errorf("%s is %s", id, d.State)
		}
	}
	p.stop()
}

// journals are a folder's segments, oldest first.
func journals(t testing.TB, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "journal-*.log"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no journal in %s: %v", dir, err)
	}
	slices.Sort(names)
	return names
}

// unsealed is the newest segment's name; the seal that a slow moment before the
// kill may have left at its end is taken off.
func unsealed(w *world, dir string) string {
	w.Helper()
	names := journals(w, dir)
	name := names[len(names)-1]
	b, err := os.ReadFile(name)
	w.must(err)
	whole := bytes.TrimSuffix(b, []byte("\n"))
	if last := bytes.LastIndexByte(whole, '\n') + 1; bytes.HasSuffix(whole, []byte(" seal")) {
		w.must(os.Truncate(name, int64(last)))
	}
	return filepath.Base(name)
}

// A journal that the program wrote is cut at every byte of its last batch, and
// opens each time with everything before that batch.
func TestCutEveryByte(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brisk)
	c := w.controller()
	w.does("submit", "a", "--id", "first")
	w.write("jobs", `{"type":"a","id":"x","in":{"k":"v"}}`+"\n"+`{"type":"a","id":"y"}`+"\n"+`{"type":"a","id":"z"}`+"\n")
	w.does("submit", "--file", "jobs") // one batch of three
	c.kill()
	name := unsealed(w, w.path("data"))
	text := []byte(w.read("data/" + name))
	from, before := lastBatch(t, text)
	for at := from; at <= len(text); at++ {
		dir := filepath.Join(w.path("tmp"), "cut")
		w.must(os.RemoveAll(dir))
		copyFolder(t, w.path("data"), dir)
		w.must(os.Truncate(filepath.Join(dir, name), int64(at)))
		s, err := snapshot.Open(snapshot.Options{Dir: dir}, time.Now())
		if err != nil {
			t.Fatalf("cut to %d of %d bytes: %v", at, len(text), err)
		}
		want := before
		if at == len(text) {
			want += 3
		}
		if s.Last() != want {
			t.Errorf("cut to %d of %d bytes: it ends at record %d, want %d", at, len(text), s.Last(), want)
		}
		w.must(s.Close())
		torn, err := filepath.Glob(filepath.Join(dir, "*.torn*"))
		w.must(err)
		if got := len(torn) > 0; got != (at > from && at < len(text)) {
			t.Errorf("cut to %d of %d bytes: a copy of the torn bytes: %t", at, len(text), got)
		}
	}
	t.Logf("%d cuts", len(text)-from+1)
}

// lastBatch is where the last batch of a segment begins, and the record before it.
func lastBatch(t testing.TB, text []byte) (from int, before uint64) {
	t.Helper()
	lines := bytes.SplitAfter(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	var crc string
	var seq, batch uint64
	last := lines[len(lines)-1]
	if _, err := fmt.Sscan(string(last), &crc, &seq, &batch); err != nil {
		t.Fatalf("%q: %v", last, err)
	}
	if size := seq - batch + 1; size != 3 {
		t.Fatalf("the last batch has %d records, want 3: %q", size, last)
	}
	from = len(text)
	for _, line := range lines[len(lines)-3:] {
		from -= len(line)
	}
	return from - 1, batch - 1 // the newline that was trimmed
}

// The same, with the program: a torn start says so and goes on; it can be torn
// again and again.
func TestCutAgainAndAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brisk)
	for n := range 4 {
		c := w.controller()
		w.does("submit", "a", "--id", fmt.Sprint("kept-", n))
		w.does("submit", "a", "--id", fmt.Sprint("torn-", n))
		c.kill()
		name := w.path("data/" + unsealed(w, w.path("data")))
		info, err := os.Stat(name)
		w.must(err)
		w.must(os.Truncate(name, info.Size()-int64(1+n)))
	}
	c := w.controller()
	for n := range 4 {
		if d := w.task(fmt.Sprint("kept-", n)); d.State != "queued" {
			t.Errorf("kept-%d is %s", n, d.State)
		}
		if _, words, code := w.cli("task", fmt.Sprint("torn-", n)); code != 1 {
			t.Errorf("torn-%d: code %d: %s", n, code, words)
		}
	}
	if n := strings.Count(w.read("controller.out"), "torn"); n < 4 {
		t.Errorf("the log speaks of %d torn tails, want 4", n)
	}
	c.stop()
	w.verified()
}

// Folders that are no data folders, or not any more, are refused with a code and
// a hint that can be typed; nothing in them is changed.
func TestBadFolders(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brisk)
	w.filled("good")
	for name, c := range map[string]struct {
		spoil  func(dir string)
		code   int
		words  []string
		repair string // what it says; empty: repair is not the way out
	}{
		"newest flipped": {func(dir string) { flip(w, journals(w, dir)[2], -300) }, 4,
			[]string{"journal-0000000003", "byte", "hint: apollo11 "}, "lost: "},
		"oldest flipped": {func(dir string) { flip(w, journals(w, dir)[0], -300) }, 4,
			[]string{"journal-0000000001", "byte", "hint: apollo11 "}, "history that goes: "},
		"a header flipped": {func(dir string) { replace(w, journals(w, dir)[1], "#a11 v=1 seg=2", "#a11 v=1 seg=3") }, 4,
			[]string{"journal-0000000002", "hint: apollo11 "}, "repaired: records 1 to "},
		"all gone": {func(dir string) { removeAll(w, journals(w, dir)) }, 4,
			[]string{"ahead of the journal", "hint: apollo11 "}, "step: "},
		"a newer version": {func(dir string) { replace(w, journals(w, dir)[2], "#a11 v=1 ", "#a11 v=9 ") }, 4, []string{"newer"}, ""},
		"a file": {func(dir string) {
			w.must(os.RemoveAll(dir))
			w.must(os.WriteFile(dir, nil, 0o600))
		}, 1, []string{"not a directory"}, ""},
	} {
		dir := w.path(strings.ReplaceAll(name, " ", "-"))
		copyFolder(t, w.path("good"), dir)
		c.spoil(dir)
		before := listing(t, dir)
		code, words := w.ended("--no-tui", "--data", dir)
		if code != c.code {
			t.Errorf("%s: code %d, want %d: %s", name, code, c.code, words)
		}
		for _, want := range c.words {
			if !strings.Contains(words, want) {
				t.Errorf("%s: no %q in: %s", name, want, words)
			}
		}
		if after := listing(t, dir); after != before {
			t.Errorf("%s: it was changed from\n%s to\n%s", name, before, after)
		}
		if c.repair != "" {
			w.repaired(name, dir, c.repair)
		}
	}
}

// repaired takes the way out that a refused folder is offered.
func (w *world) repaired(name, dir, says string) {
	w.Helper()
	if out := w.does("repair", dir, "--yes"); !strings.Contains(out, says) || !strings.Contains(out, "repaired: ") {
		w.Errorf("%s: repair said %s", name, out)
	}
	if code, words := w.ended("--no-tui", "--data", dir); code != 0 {
		w.Errorf("%s: after the repair code %d: %s", name, code, words)
	}
	w.does("verify", dir)
}

// filled makes a data folder with three segments; an image covers the first two.
func (w *world) filled(dir string) {
	w.Helper()
	for n := range 3 {
		c := w.controller()
		w.does("submit", "a", "--id", fmt.Sprint("a-", n), "--count", "1")
		for i := range 4 {
			w.does("state", "repair", "k", fmt.Sprint(n, ".", i), "--reason", "test")
		}
		if n < 2 {
			c.stop()
		} else {
			c.kill()
		}
	}
	os.Remove(w.path("data/ADDR"))
	w.must(os.Rename(w.path("data"), w.path(dir)))
}

// flip changes a bit of a byte that is so far from the end.
func flip(w *world, name string, at int) {
	b, err := os.ReadFile(name)
	w.must(err)
	b[len(b)+at] ^= 1
	w.must(os.WriteFile(name, b, 0o600))
}

func removeAll(w *world, names []string) {
	for _, name := range names {
		w.must(os.Remove(name))
	}
}

func replace(w *world, name, old, new string) {
	b, err := os.ReadFile(name)
	w.must(err)
	if !bytes.Contains(b, []byte(old)) {
		w.Fatalf("%s has no %q", name, old)
	}
	w.must(os.WriteFile(name, bytes.Replace(b, []byte(old), []byte(new), 1), 0o600))
}

// listing is the journal files and images of a folder with their sizes.
func listing(t testing.TB, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if errors.Is(err, syscall.ENOTDIR) {
		return "a file"
	}
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, e := range entries {
		if name := e.Name(); name == "LOCK" || strings.HasSuffix(name, "apollo11.log") {
			continue
		}
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&text, e.Name(), info.Size())
	}
	return text.String()
}
