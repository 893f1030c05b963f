package snapshot

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// -write-v1 writes testdata/v1 anew. The files must never change: a new format
// gets a new folder.
var writeV1 = flag.Bool("write-v1", false, "write testdata/v1")

var v1Entries = [][]string{
	{"2026-11-29T14:00:00.000274Z task.submit task=t-1 unit=clean in=\"a b\""},
	{
		"2026-11-29T14:00:00.001Z task.dispatch task=t-1 exec=e14 v=1.1",
		"2026-11-29T14:00:00.412Z task.result task=t-1 exec=e14 v=1.1 out=sha256:9f31 ms=411",
	},
	{"2026-11-30T00:00:00Z seal"},
}

// v1 writes the same folder each time it is called.
func v1(t *testing.T, dir string) {
	t.Helper()
	s := open(t, dir)
	for i, batch := range v1Entries {
		var b [][]byte
		for _, e := range batch {
			b = append(b, []byte(e))
		}
		if err := s.Append(day.AddDate(0, 0, i/2), b); err != nil {
			t.Fatal(err)
		}
		w, err := s.NewImage(s.Last())
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Line([]byte("task=t-1 unit=clean state=queued")), w.Commit([]byte("{\"epoch\": 1}"))); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{lockFile, reserveFile} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// The bytes that this build writes are those of version 1, and FORMAT.md shows them.
func TestFormatV1(t *testing.T) {
	const golden = "testdata/v1"
	dir := t.TempDir()
	v1(t, dir)
	if *writeV1 {
		if err := os.CopyFS(golden, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	names, err := list(golden)
	if err != nil || len(names) != 6 {
		t.Fatalf("%q, %v", names, err)
	}
	for _, name := range names {
		want, err1 := os.ReadFile(filepath.Join(golden, name))
		got, err2 := os.ReadFile(filepath.Join(dir, name))
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is now\n%s\nwas\n%s", name, got, want)
		}
		shown := strings.Contains(name, "-00000000000000000001.log") || name == imageFile || name == taskFile(4)
		if shown && !strings.Contains(string(page), "```\n"+string(want)+"```") {
			t.Errorf("FORMAT.md does not show %s", name)
		}
	}
}

// A folder of version 1 is read by this build.
func TestReadV1(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/v1")); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	var got []string
	if err := s.Read(0, func(e Entry) error { got = append(got, string(e.Body)); return nil }); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{v1Entries[0][0], v1Entries[1][0], v1Entries[1][1], v1Entries[2][0]}, "\n")
	if strings.Join(got, "\n") != want {
		t.Errorf("read %q", got)
	}
	var im Image
	var lines []string
	ok, err := s.ReadImage(func(i Image) error { im = i; return nil }, func(b []byte) error { lines = append(lines, string(b)); return nil })
	if !ok || err != nil || im.Seq != 4 || string(im.Content) != "{\"epoch\": 1}" || len(lines) != 1 {
		t.Errorf("image %t %v %+v %q", ok, err, im, lines)
	}
}
