package snapshot

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A folder that is deleted, moved or replaced under a store ends it: what is
// appended then, segments that would begin and images that would be written are
// refused, and what others have made under its name stays as it is.
func TestFolderIsNotTheOneThatWasOpened(t *testing.T) {
	move := func(dir string) error { return os.Rename(dir, dir+".moved") }
	for name, spoil := range map[string]func(dir string) error{
		"deleted": os.RemoveAll,
		"moved":   move,
		"a file": func(dir string) error {
			return errors.Join(move(dir), os.WriteFile(dir, nil, 0o600))
		},
		"replaced": func(dir string) error {
			return errors.Join(move(dir), os.CopyFS(dir, os.DirFS(dir+".moved")))
		},
		"lock deleted":  func(dir string) error { return os.Remove(filepath.Join(dir, "LOCK")) },
		"lock replaced": func(dir string) error { return replaceFile(filepath.Join(dir, "LOCK")) },
		"segment deleted": func(dir string) error {
			return os.Remove(filepath.Join(dir, segmentName(2, 4)))
		},
		"segment replaced": func(dir string) error { return replaceFile(filepath.Join(dir, segmentName(2, 4))) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			s, err := Open(Options{Dir: dir}, day)
			if err != nil {
				t.Fatal(err)
			}
			add(t, s, 3)
			next := day.AddDate(0, 0, 1)
			if err := s.Append(next, bodies(4, 1)); err != nil { // in a second segment
				t.Fatal(err)
			}
			if err := s.Look(); err != nil {
				t.Fatalf("before: %v", err)
			}
			w, err := s.NewImage(2)
			if err != nil {
				t.Fatal(err)
			}
			if err := spoil(dir); err != nil {
				t.Fatal(err)
			}
			before := names(t, dir)
			for what, err := range map[string]error{
				"look": s.Look(), "commit": w.Commit([]byte("{}")), "append": s.Append(next.Add(lookEvery), bodies(5, 1)),
			} {
				if !errors.Is(err, ErrMoved) || what != "commit" && !errors.Is(err, ErrLost) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if _, err := s.NewImage(3); !errors.Is(err, ErrMoved) {
				t.Errorf("a new image: %v", err)
			}
			if _, err := s.Prune(next, time.Hour); !errors.Is(err, ErrMoved) {
				t.Errorf("prune: %v", err)
			}
			if s.Last() != 4 {
				t.Errorf("it ends at %d: what is not acknowledged is read", s.Last())
			}
			s.Close()
			if after := names(t, dir); after != before {
				t.Errorf("the folder had %s, and has %s", before, after)
			}
		})
	}
}

// A segment is not begun in a folder that is another's, however short ago was looked.
func TestNoSegmentBeginsInAnothersFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s, err := Open(Options{Dir: dir}, day)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	next := day.AddDate(0, 0, 1)
	s.looked = next
	if err := errors.Join(os.Rename(dir, dir+".moved"), os.Mkdir(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(next, bodies(1, 1)); !errors.Is(err, ErrMoved) {
		t.Error(err)
	}
	if got := names(t, dir); got != "" {
		t.Errorf("it left %s", got)
	}
}

// replaceFile puts a copy in a file's place.
func replaceFile(name string) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(name+".new", b, 0o600), os.Rename(name+".new", name))
}

// names are a folder's files, but those written aside.
func names(t *testing.T, dir string) (list string) {
	t.Helper()
	entries, _ := os.ReadDir(dir) // it may be gone, or a file
	for _, e := range entries {
		if filepath.Ext(e.Name()) != tempEnd {
			list += e.Name() + " "
		}
	}
	return list
}
