package start

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"apollo11/engine/config"
)

func TestNameOf(t *testing.T) {
	dir := t.TempDir()
	self, other := filepath.Join(dir, "bin", "apollo11"), filepath.Join(dir, "other", "apollo11")
	for _, file := range []string{self, other} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		path, self string
		want       []string
	}{
		{filepath.Dir(self), self, []string{"apollo11"}}, {filepath.Dir(other), self, []string{self}}, {"", self, []string{self}},
		{filepath.Dir(self), "/home/ann/.cache/go-build/3f/3f00-d/apollo11", []string{"go", "run", "."}},
		{filepath.Dir(self), "/tmp/go-build123/b001/exe/apollo11", []string{"go", "run", "."}},
	} {
		t.Setenv("PATH", c.path)
		if got := nameOf(c.self); !slices.Equal(got, c.want) {
			t.Errorf("%s with PATH=%s is %q, want %q", c.self, c.path, got, c.want)
		}
	}
}

func TestCommandForAShell(t *testing.T) {
	if got, want := command([]string{"a11", "--data", "/a b/it's", "", "x=1"}), `a11 --data '/a b/it'\''s' '' x=1`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	s := serve{program: &program{}, config: config.Config{Data: "data"}}
	s.config.Auth.OperatorTokenFile = "op.token"
	want := command(append(s.calledAs(), "attach", "--data", filepath.Join(dir, "data"), "--token-file", filepath.Join(dir, "op.token")))
	if got := s.attachAgain(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
