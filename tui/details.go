package tui

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// facts are lines of a detail: names and values, long values wrapped.
type facts struct {
	theme *theme
	w     int
	lines []string
}

const factName = 11 // columns of a name

func (f *facts) title(text string) { f.lines = append(f.lines, f.theme.paint(strong, cut(text, f.w))) }
func (f *facts) head(text string) {
	f.lines = append(f.lines, "", f.theme.paint(heading, cut(text, f.w)))
}

// add adds a value; an empty one says nothing.
func (f *facts) add(name, value string) { f.styled(name, value, plain) }
func (f *facts) styled(name, value string, st style) {
	if value == "" || value == "-" {
		return
	}
	for i, part := range wrap(value, max(1, f.w-factName-1)) {
		lead := ""
		if i == 0 {
			lead = name
		}
		f.lines = append(f.lines, f.theme.paint(dim, fit(lead, factName))+" "+f.theme.paint(st, part))
	}
}

func (f *facts) values(title string, values view.Object) {
	if len(values) == 0 {
		return
	}
	f.head(title)
	for _, v := range values {
		for i, part := range wrap(v.Name+" = "+task.Shown(v.Value), f.w-2) {
			lead := "  "
			if i > 0 {
				lead = "    "
			}
			f.lines = append(f.lines, cut(lead+part, f.w))
		}
	}
}

func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func versionText(n int64) string {
	if n == 0 {
		return ""
	}
	return task.Version(n).String()
}

// taskDetail is all that is known of a task.
func taskDetail(s *shared, d *view.Detail, w int) []string {
	f := facts{theme: s.theme, w: w}
	f.title(d.ID + "  " + d.Type)
	if run := runOf(d.ID); run != "" {
		f.add("run", run)
		f.add("unit", d.ID[len(run)+1:])
	}
	f.styled("state", d.State, stateStyle(d.State))
	f.styled("error", failText(d.ErrorClass, d.Error), bad)
	f.add("next", nextKeys(d.ID, d.State))
	f.add("attempt", attemptText(d))
	f.add("executor", d.Executor)
	f.add("version", versionText(d.Version))
	f.add("progress", d.Progress)
	f.add("key", d.Key)
	f.add("submitted", s.moment(d.Submitted))
	f.add("started", s.moment(d.Started))
	f.add("finished", s.moment(d.Finished))
	f.add("not before", s.moment(d.NotBefore))
	f.add("deadline", s.moment(d.Deadline))
	f.add("goes on", s.moment(d.Due))
	f.add("saw state", stateSeen(d))
	f.add("crashes", number(d.Crashes))
	f.styled("late", d.Late, warn)
	attempts(s, &f, d.Attempts)
	f.values("inputs", d.Inputs)
	f.values("outputs", d.Outputs)
	f.values("context it was given", d.Context)
	return f.lines
}

func attemptText(d *view.Detail) string {
	if d.Attempts == nil {
		return number(d.Attempt)
	}
	if d.Retries == 0 {
		return fmt.Sprintf("%d, no repeats allowed", d.Attempt)
	}
	return fmt.Sprintf("%d, %s allowed", d.Attempt, plural(d.Retries, "repeat"))
}

func stateSeen(d *view.Detail) string {
	if d.StateVersion == 0 {
		return ""
	}
	return fmt.Sprintf("%d, now %d", d.StateVersion, d.StateNow)
}

// attempts are a task's tries, the newest first.
func attempts(s *shared, f *facts, list []view.Attempt) {
	if len(list) == 0 {
		return
	}
	f.head("attempts")
	for i := len(list) - 1; i >= 0; i-- {
		a := &list[i]
		tone := bad
		if a.Outcome == task.Succeeded.String() || a.Finished.IsZero() {
			tone = stateStyle(a.Outcome)
		}
		line := fmt.Sprintf("  %d  %s", a.Attempt, fit(a.Outcome, 16))
		rest := strings.Join([]string{s.moment(a.Started), took(a), a.Executor, versionText(a.Version)}, "  ")
		f.lines = append(f.lines, f.theme.paint(tone, cut(line, f.w))+cut("  "+rest, max(0, f.w-width(line))))
		if a.Error != "" {
			for _, part := range wrap(a.Error, max(1, f.w-5)) {
				f.lines = append(f.lines, "     "+part)
			}
		}
	}
}

// executorDetail is all that is known of an executor.
func executorDetail(s *shared, e *view.Executor, w int) []string {
	f := facts{theme: s.theme, w: w}
	f.title(e.ID)
	f.styled("state", e.State, stateStyle(e.State))
	f.add("heartbeat", beatBucket(e)+", "+beatAge(e))
	f.styled("note", e.Reason, warn)
	f.add("works on", e.Task)
	f.add("version", versionText(e.Version))
	f.add("saw state", number(e.StateVersion))
	f.add("load", strconv.FormatInt(e.Load, 10))
	f.add("done", strconv.FormatInt(e.Done, 10))
	f.add("failed", strconv.FormatInt(e.Failed, 10))
	f.add("host", e.Host)
	f.add("pid", number(e.PID))
	f.add("build", e.Build)
	f.add("protocol", number(e.Proto))
	f.head("types it runs")
	for typ := range strings.SplitSeq(e.Types, ",") {
		f.lines = append(f.lines, cut("  "+typ, w))
	}
	return f.lines
}

func beatAge(e *view.Executor) string {
	age := ageBucket(time.Duration(e.HeartbeatMS) * time.Millisecond)
	switch {
	case e.State == "offline" && e.HeartbeatMS < 0:
		return "not there any more"
	case e.State == "offline":
		return "for " + age
	case e.HeartbeatMS < 0:
		return "not heard since the controller started"
	}
	return "heard " + age + " ago"
}

// LeftInOrder reports whether an executor that went offline for a reason took its
// leave; any other was lost.
func LeftInOrder(reason string) bool {
	begins := func(begin string) bool { return strings.HasPrefix(reason, begin) }
	return slices.ContainsFunc([]string{"told to stop", "drained", "went offline in order"}, begins)
}

// beatBucket is what an executor's silence means.
func beatBucket(e *view.Executor) string {
	switch {
	case e.State == "offline" && LeftInOrder(e.Reason):
		return "gone"
	case e.State == "offline":
		return "lost"
	case e.Late || e.HeartbeatMS < 0:
		return "late"
	}
	return "ok"
}

func bucketStyle(bucket string) style {
	switch bucket {
	case "lost":
		return bad
	case "late":
		return warn
	case "gone":
		return dim
	}
	return good
}

// keyDetail is all that is known of a state key.
func keyDetail(s *shared, k *view.Key, w int) []string {
	f := facts{theme: s.theme, w: w}
	f.title(k.Key)
	f.add("value", k.Value)
	f.styled("fault", k.Fault, bad)
	f.add("changes", number(k.Version))
	f.add("at record", number(k.Seq))
	f.add("by", k.Task)
	if k.Task == "" {
		f.add("by", "an operator, or the configuration")
	}
	return f.lines
}

// eventDetail is all that a record of the timeline says.
func eventDetail(s *shared, e *record, w int) []string {
	f := facts{theme: s.theme, w: w}
	f.title(fmt.Sprintf("record %d  %s", e.Seq, e.Kind))
	f.add("time", e.Time.In(s.clock().Location()).Format("2006-01-02 15:04:05.000 -07:00"))
	f.add("task", e.Task)
	f.add("run", e.Run)
	f.add("executor", e.Exec)
	tone := plain
	if e.alarm {
		tone = bad
	}
	f.styled("what", e.words, tone)
	f.values("fields", e.Values)
	return f.lines
}
