package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"apollo11/engine/mission"
	"apollo11/engine/task"
	"apollo11/engine/view"
)

// readMission is a mission of testdata.
func readMission(t *testing.T, name string) *mission.Mission {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "missions", name+".toml"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := mission.Parse(name+".toml", text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// runCommand is what the scripts ask about missions.
func (s *script) runCommand(word string, w *words) Command {
	switch word {
	case "run":
		c := StartRun{Mission: readMission(s.t, w.plain[0]), Actor: "ann", Key: w.take("key"), Check: w.flag("check")}
		if sample := w.take("sample"); sample != "" {
			c.Sample = int(mustNumber(s.t, sample))
		}
		c.Params = w.values
		return c
	case "resume-run":
		return Resume{Run: w.plain[0], Actor: "ann"}
	case "rerun":
		at := w.flag("at-context")
		return Rerun{ID: w.plain[0], AtContext: at, Actor: "ann"}
	case "fork":
		return Fork{Run: w.plain[0], From: w.take("from"), With: w.values, Actor: "ann"}
	case "cancel-run":
		return CancelRun{Run: w.plain[0], Reason: w.take("reason"), Actor: "ann"}
	case "rollback":
		check := w.flag("check")
		return Rollback{Run: w.plain[0], To: w.take("to"), Check: check, Actor: "ann"}
	case "restore":
		c := Restore{Seq: int64(mustNumber(s.t, w.take("seq"))), Reason: w.take("reason"), Actor: "ann", Check: w.flag("check")}
		c.Keys = w.values
		return c
	case "runs":
		q := view.RunQuery{Mission: w.take("mission"), State: w.take("state"), Cursor: w.take("cursor")}
		if limit := w.take("limit"); limit != "" {
			q.Limit = int(mustNumber(s.t, limit))
		}
		return GetRuns{q}
	case "show":
		return GetRun{ID: w.plain[0]}
	}
	return s.triggerCommand(word, w)
}

// describeRuns is an answer about missions in words.
func describeRuns(a Answer) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	switch a := a.(type) {
	case *view.Run:
		add("%s", runText(a))
		if a.Warning != "" {
			add("  (%s)", a.Warning)
		}
	case *view.RunPage:
		for i := range a.Runs {
			add("%s", runText(&a.Runs[i]))
		}
		add("cursor=%s", a.Cursor)
	case *view.RunDetail:
		add("%s", runText(&a.Run))
		for _, note := range a.Notes {
			add("  note: %s", note)
		}
		for _, u := range a.Units {
			text := fmt.Sprintf("  %s %s", u.Unit, u.State)
			for _, more := range []string{u.Reason, u.ErrorClass, u.Error} {
				if more != "" {
					text += " " + more
				}
			}
			add("%s in[%s] out[%s]", text, plainValues(task.Values(u.Inputs)), plainValues(task.Values(u.Outputs)))
		}
	case *view.Undone:
		add("undo %s without %s", strings.Join(a.Units, ","), strings.Join(a.Without, ","))
	case *view.Restored:
		for _, k := range a.Changed {
			add("%s %q to %q gone=%v new=%v", k.Key, k.Before, k.After, k.Gone, k.New)
		}
	default:
		lines = describeTriggers(a)
	}
	return lines
}

func runText(r *view.Run) string {
	return fmt.Sprintf("run %s of %s is %s mode=%s parent=%s child=%s done=%d/%d failed=%d skipped=%d reused=%d why=%q", r.ID, r.Mission, r.State, r.Mode, r.Parent, r.Child,
		r.Done, r.Units, r.Failed, r.Skipped, r.Reused, r.Why)
}
