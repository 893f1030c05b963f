package engine

import (
	"fmt"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// triggerCommand is what the scripts tell of missions by their names, and of
// what starts them.
func (s *script) triggerCommand(word string, w *words) Command {
	switch word {
	case "missions":
		c := SetMissions{}
		for _, bad := range w.list("bad") {
			c.Missions = append(c.Missions, NamedMission{Name: bad, File: bad + ".toml", Fault: bad + ".toml:1:1: nonsense"})
		}
		for _, name := range w.plain {
			c.Missions = append(c.Missions, NamedMission{Name: name, File: name + ".toml", Mission: readMission(s.t, name)})
		}
		return c
	case "named":
		return StartRun{Name: w.plain[0], Actor: "ann"}
	case "event":
		return Happening{Name: w.plain[0], Values: w.values, Actor: "ann"}
	case "file":
		return FileSeen{Mission: w.plain[0], Trigger: int(mustNumber(s.t, w.plain[1])), Path: w.plain[2], Stamp: w.plain[3]}
	case "list":
		return GetMissions{}
	}
	return nil
}

func describeTriggers(a Answer) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	switch a := a.(type) {
	case []view.Run:
		add("%d runs", len(a))
		for i := range a {
			add("  %s %q", runText(&a[i]), a[i].Cause)
		}
	case []view.Mission:
		add("%d missions", len(a))
		for _, m := range a {
			add("  %s of %s units=%d template=%v params[%s] triggers[%s] next=%s last=%s %s fault=%q", m.Name, m.File, m.Units, m.Template,
				plainValues(task.Values(m.Params)), m.Triggers, timeText(m.Next), m.LastRun, m.State, m.Fault)
		}
	default:
		add("%T", a)
	}
	return lines
}

func timeText(t view.Time) string {
	text, _ := t.MarshalText()
	return string(text)
}
