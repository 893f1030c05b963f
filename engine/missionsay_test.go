package engine

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"apollo11/engine/mission"
)

// heard is a script whose log is listened to.
type heard struct {
	*script
	words bytes.Buffer
}

func newHeard(t *testing.T) *heard {
	h := &heard{script: newScript(t)}
	h.start(newState())
	h.m.log = slog.New(slog.NewTextHandler(&h.words, nil))
	return h
}

// says runs commands and compares what the log says of missions with what it
// should, a line each: level, mission, and a part of the fault.
func (h *heard) says(commands string, want ...string) {
	h.t.Helper()
	for line := range strings.SplitSeq(commands, "; ") {
		h.run([]string{line})
	}
	var got []string
	for line := range strings.Lines(h.words.String()) {
		if strings.Contains(line, "a mission can") {
			got = append(got, line)
		}
	}
	h.words.Reset()
	if len(got) != len(want) {
		h.t.Fatalf("after %s: %d lines, want %d: %s", commands, len(got), len(want), got)
	}
	for n, line := range got {
		for part := range strings.FieldsSeq(want[n]) {
			if !strings.Contains(line, part) {
				h.t.Errorf("after %s: no %q in %s", commands, part, line)
			}
		}
	}
}

// A mission that cannot start is an error in the log when it is loaded and when
// the reason changes, and no more; after the start executors get the time to come.
func TestMissionsThatCannotStartAreTold(t *testing.T) {
	h := newHeard(t)
	h.says("missions strange nightly lost ring-a ring-b; advance 4s")
	h.says("register e1 types=work; advance 2s",
		"ERROR mission=lost nighty", "ERROR mission=ring-a other", "ERROR mission=ring-b other", "ERROR mission=strange odd")
	h.says("advance 10m; missions strange nightly lost ring-a ring-b; advance 10m")
	h.says("missions strange nightly lost ring-a; advance 1s", "ERROR mission=ring-a ring-b")
	h.says("register e2 types=odd instance=1; advance 1s", "ERROR mission=strange odder")
	h.says("register e3 types=odder instance=1; advance 1s", "INFO mission=strange")
	h.says("offline e3; advance 1s", "ERROR mission=strange odder")
	h.says("missions nightly; advance 10m")
	h.says("missions nightly strange; advance 1s", "ERROR mission=strange odder")
}

// Many missions are checked over several turns, and each of them is.
func TestManyMissionsAreChecked(t *testing.T) {
	h := newHeard(t)
	h.run([]string{"register e1 types=work"})
	var set SetMissions
	var want []string
	for n := range 30 {
		text := fmt.Sprintf("name = 'm%02d'\n", n)
		for u := range 500 {
			text += fmt.Sprintf("[[units]]\nname = 'u%d'\nuses = 'work'\n", u)
		}
		text += "[[units]]\nname = 'none'\n"
		m, err := mission.Parse("m.toml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		set.Missions = append(set.Missions, NamedMission{Name: m.Name, File: "m.toml", Mission: m})
		want = append(want, "ERROR mission="+m.Name+" none")
	}
	h.turn(func() { h.m.decide(Ask{Command: set, Link: h.link("op")}) })
	turns := h.m.turns
	h.says("advance 10s", want...)
	if h.m.turns-turns < 3 {
		t.Errorf("%d turns for 15,000 units", h.m.turns-turns)
	}
}

// A template that needs parameters is held against the units all the same.
func TestTemplatesAreHeldAgainstTheUnits(t *testing.T) {
	h := newHeard(t)
	h.run([]string{"register e1 types=work"})
	tell := func(uses string) {
		text := "template = true\nparams.year = { type = 'int' }\n[[units]]\nname = 'u'\nuses = '" + uses + "'\nwith = { year = '${params.year}' }\n"
		m, err := mission.Parse("year.toml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		set := SetMissions{Missions: []NamedMission{{Name: "year", File: "year.toml", Mission: m}}}
		h.turn(func() { h.m.decide(Ask{Command: set, Link: h.link("op")}) })
	}
	tell("wrok")
	h.says("advance 10s", "ERROR mission=year year.toml:5:8 wrok work?")
	tell("work")
	h.says("advance 10s", "INFO mission=year")
}
