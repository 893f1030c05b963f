package executor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"apollo11/wire"
)

// What a unit runs may change without its manifest, and what a host lacks for
// one may come while the executor runs.
func TestWhatUnitsRunChanges(t *testing.T) {
	program := func(s *stage, name, text string) string {
		file := filepath.Join(s.o.Units, name)
		if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
			s.t.Fatal(err)
		}
		return file
	}
	started := func(o *Options) {
		for name, text := range map[string]string{
			"u.toml": "engine = 'exec'\nexecute = ['./prog']",
			"prog":   "#!/bin/sh\n",
			"p.toml": "engine = 'python'\npython = './snake'\nexecute = '1'",
		} {
			if err := os.WriteFile(filepath.Join(o.Units, name), []byte(text), 0o700); err != nil {
				panic(err)
			}
		}
	}
	staged(t, started, func(t *testing.T, s *stage) {
		c := s.accept()
		r := c.registered()
		first, _ := r.Hashes.Get("u")
		if !slices.Equal(r.Types, []string{"u"}) || first == "" {
			t.Errorf("%v %v", r.Types, r.Hashes)
		}
		synctest.Wait()
		if log := s.log.String(); !strings.Contains(log, "cannot run") || !strings.Contains(log, "unit=p") || !strings.Contains(log, "snake") {
			t.Error(log)
		}
		program(s, "prog", "#!/bin/sh\nexit 0\n")
		if got := c.types(); !slices.Equal(got.Add, []string{"u"}) || len(got.Units) != 1 || len(got.Remove) > 0 {
			t.Errorf("%+v", got)
		} else if second, _ := got.Hashes.Get("u"); second == "" || second == first {
			t.Errorf("hash %q, then %q", first, second)
		}
		snake := program(s, "snake", "#!/bin/sh\n")
		if got := c.types(); !slices.Equal(got.Add, []string{"p"}) || len(got.Remove) > 0 {
			t.Errorf("%+v", got)
		}
		if err := os.Remove(snake); err != nil {
			t.Fatal(err)
		}
		if got := c.types(); !slices.Equal(got.Remove, []string{"p"}) || len(got.Add) > 0 {
			t.Errorf("%+v", got)
		}
		c.quiet(10 * time.Second)
		c.leave()
	})
}

func TestRefusedTypes(t *testing.T) {
	staged(t, nil, func(t *testing.T, s *stage) {
		c := s.accept()
		c.next(wire.TypeRegister)
		c.send(wire.AppendAck(nil, &wire.Ack{Proto: 2, Refused: []string{"u: timeout differs: 1m, others 2m"}}))
		c.leave()
		if !strings.Contains(s.log.String(), "u: timeout differs: 1m, others 2m") {
			t.Error(s.log.String())
		}
	})
}

func TestUnknownUnitIsGivenBack(t *testing.T) {
	staged(t, nil, func(t *testing.T, s *stage) {
		c := s.accept()
		c.registered()
		a := assign("t", 1)
		a.Type = "x"
		c.give(a)
		if change, err := wire.ParseTypes(c.next(wire.TypeTypes)); err != nil || !slices.Equal(change.Remove, []string{"x"}) {
			t.Errorf("%+v %v", change, err)
		}
		c.ref(wire.TypeReturned, "t", 1)
		c.leave()
	})
}

func TestUnitsFolderChanges(t *testing.T) {
	staged(t, func(o *Options) { o.Types = []string{"u", "v"} }, func(t *testing.T, s *stage) {
		c := s.accept()
		c.registered()
		s.unit("v", "execute = 'true'")
		s.unit("not-offered", "execute = 'true'")
		if got := c.types(); !slices.Equal(got.Add, []string{"v"}) || len(got.Units) != 1 || len(got.Remove) != 0 {
			t.Errorf("added: %+v", got)
		}
		s.unit("v", "execute = 'true'\nretries = 4")
		if got := c.types(); !slices.Equal(got.Add, []string{"v"}) || got.Units[0].Retry.Retries != 4 {
			t.Errorf("changed: %+v", got)
		}
		s.unit("v", "execute = 'true'\nretries = 5x")
		c.quiet(10 * time.Second) // a slip while editing takes no unit out of work
		if !strings.Contains(s.log.String(), "v.toml:2") || !strings.Contains(s.log.String(), "stays as it was") {
			t.Error(s.log.String())
		}
		for n := range 30 { // somebody goes on writing while it is about to be read
			s.unit("v", "execute = 'true'\nretries = 6 #"+strings.Repeat("x", n))
			time.Sleep(lookAgain * 2 / 3)
		}
		s.unit("v", "execute = 'true'\nretries = 77")
		began := time.Now()
		if got := c.types(); !slices.Equal(got.Add, []string{"v"}) || got.Units[0].Retry.Retries != 77 {
			t.Errorf("changed again and again: %+v", got)
		}
		if took := time.Since(began); took > lookEvery+2*lookAgain {
			t.Errorf("offered after %v", took)
		}
		if err := os.RemoveAll(s.o.Units); err != nil { // gone for a moment: nothing is said
			t.Fatal(err)
		}
		c.quiet(10 * time.Second)
		c.leave()
	})
}

func TestManyContractsComeAfterTheRegister(t *testing.T) {
	many := func(o *Options) {
		for i := range 60 {
			text := fmt.Sprintf("execute = 'true'\n[in.a]\ndescription = '%s'\n", strings.Repeat("x", 20<<10))
			if err := os.WriteFile(filepath.Join(o.Units, fmt.Sprintf("m%02d.toml", i)), []byte(text), 0o600); err != nil {
				panic(err)
			}
		}
	}
	staged(t, many, func(t *testing.T, s *stage) {
		c := s.accept()
		if r := c.registered(); len(r.Types) != 0 {
			t.Errorf("%v", r.Types)
		}
		found := map[string]bool{}
		for len(found) < 61 {
			m := c.next(wire.TypeTypes)
			if n := len(m.Append(nil)); n > wire.MaxFrame {
				t.Fatalf("a frame of %d bytes", n)
			}
			change, err := wire.ParseTypes(m)
			if err != nil {
				t.Fatal(err)
			}
			for i, u := range change.Units {
				if found[u.Name] || change.Add[i] != u.Name {
					t.Errorf("%s twice, or not in add", u.Name)
				}
				found[u.Name] = true
			}
		}
		c.leave()
	})
}
