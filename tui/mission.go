package tui

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// missionScreen is mission control: everything at a glance, from the overview,
// with the last records of the timeline where there is room.
type missionScreen struct {
	events []record
	runs   []view.Run // those that are not over
	fault  string     // why they could not be read; empty: they were
	asked  int64      // seq of the overview before the last answer, +1
}

const stripEvents = 64

func (x *missionScreen) ask(s *shared) request {
	seq := s.over.Status.Seq
	if seq == 0 || x.asked == seq+1 {
		return nil
	}
	events := s.events(view.EventQuery{From: max(1, seq-stripEvents+1), Limit: stripEvents}, anew, seq+1)
	return func(ctx context.Context, source Source) (any, error) {
		body, err := events(ctx, source)
		if err != nil {
			return nil, err
		}
		a := controlAnswer{}
		a.events, _ = body.(eventsAnswer)
		a.runs, a.fault = liveRuns(ctx, source)
		return a, nil
	}
}

// controlAnswer is what mission control shows beside the overview.
type controlAnswer struct {
	events eventsAnswer
	runs   []view.Run
	fault  error
}

// mostRuns is how many runs mission control asks for in each state.
const mostRuns = 20

// liveRuns are the runs that are not over, those that wait for a person first.
func liveRuns(ctx context.Context, source Source) (runs []view.Run, err error) {
	for _, state := range []string{"needs_person", "running", "waiting"} {
		page, err := source.Runs(ctx, view.RunQuery{State: state, Limit: mostRuns})
		if err != nil {
			return runs, err
		}
		cleanRows(page.Runs)
		runs = append(runs, page.Runs...)
	}
	return runs, nil
}

func (x *missionScreen) take(_ *shared, body any) {
	a, ok := body.(controlAnswer)
	if !ok {
		return
	}
	x.events, x.asked = slices.DeleteFunc(a.events.events, func(e record) bool { return e.mark() }), a.events.asked
	x.runs, x.fault = a.runs, ""
	if a.fault != nil {
		x.fault = clean(a.fault.Error())
	}
}

func (x *missionScreen) do(s *shared, in input) (tea.Cmd, bool) {
	switch in.act {
	case pause:
		return s.pause("", s.over.Status.Paused), true
	case start:
		return s.pickMission(), true
	}
	return nil, false
}

func (x *missionScreen) detail(*shared, int) []string { return nil }

func (x *missionScreen) view(s *shared, w, h int) []string {
	if w < splitFrom {
		lines := append(x.gauges(s, w), x.fleet(s, w, max(3, h/3))...)
		return block(append(lines, x.strip(s, w, h-len(lines))...), w, h)
	}
	left := w / 2
	one, two := x.gauges(s, left), x.fleet(s, w-left-1, h)
	top := min(h, max(len(one), len(two)))
	if rest := h - top; rest < 8 {
		top = max(min(h, len(one)), h-8)
	}
	lines := beside(block(one, left, top), block(two, w-left-1, top), "│")
	return block(append(lines, x.strip(s, w, h-top)...), w, h)
}

// gauges are what counts: tasks by state, what is done, how fast, what is wrong.
func (x *missionScreen) gauges(s *shared, w int) []string {
	lines := []string{" " + s.theme.paint(heading, "TASKS")}
	lines = append(lines, counters(s, w)...)
	lines = append(lines, doneBar(s, w), rateLine(s, w), "", " "+s.theme.paint(heading, "ALERTS"))
	for _, a := range alerts(s) {
		lines = append(lines, " "+s.theme.paint(a.tone, cut(a.text, w-1)))
	}
	return append(append(lines, ""), x.running(s, w)...)
}

// running are the runs that are not over, a few of them.
func (x *missionScreen) running(s *shared, w int) (lines []string) {
	const most = 4
	if len(x.runs) == 0 && x.fault == "" {
		return nil
	}
	lines = []string{" " + s.theme.paint(heading, "RUNS")}
	if x.fault != "" {
		lines = append(lines, " "+s.theme.paint(warn, cut("not read: "+x.fault, w-1)))
	}
	for i := range x.runs {
		if i == most-1 && len(x.runs) > most {
			lines = append(lines, fmt.Sprintf(" … and %d more: 5 shows them", len(x.runs)-i))
			break
		}
		r := &x.runs[i]
		text := " " + fit(r.ID, 8) + " " + fit(r.Mission, max(8, min(20, w/4))) + " " + fitRight(ended(r), 7) + "  " + s.theme.paint(runStyle(r.State), r.State)
		if r.Why != "" {
			text += " " + r.Why
		}
		lines = append(lines, cut(text, w))
	}
	return append(lines, "")
}

// alwaysCounted are the states whose zero says something too.
var alwaysCounted = []task.State{task.Queued, task.Running, task.Succeeded, task.Dead}

// counters are the tasks by state, several in a line.
func counters(s *shared, w int) []string {
	const wide = 18
	var lines []string
	line := ""
	for _, st := range task.States() {
		n := s.over.Status.Tasks[st.String()]
		tone := stateStyle(st.String())
		if n == 0 && !slices.Contains(alwaysCounted, st) {
			continue
		}
		if n == 0 {
			tone = dim
		}
		line += " " + s.theme.paint(tone, fit(fmt.Sprintf("%6d %s", n, st), wide-1))
		if width(line)+wide > w {
			lines, line = append(lines, line), ""
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// doneBar is how much of all that is known has ended.
func doneBar(s *shared, w int) string {
	var ended, all int64
	for _, st := range task.States() {
		n := s.over.Status.Tasks[st.String()]
		all += n
		if st.Terminal() {
			ended += n
		}
	}
	text := fmt.Sprintf(" %d of %d ended", ended, all)
	room := max(0, min(40, w-2-width(text)))
	full := 0
	if all > 0 {
		full = int(int64(room) * ended / all)
	}
	return " " + s.theme.paint(good, strings.Repeat("█", full)) + s.theme.paint(dim, strings.Repeat("░", room-full)) + text
}

var sparks = []rune("▁▂▃▄▅▆▇█")

// rateLine is the results a second, now and over the last minutes.
func rateLine(s *shared, w int) string {
	text := fmt.Sprintf(" %.1f results/s ", s.over.PerSecond)
	rates := s.pulse.rates
	rates = rates[max(0, len(rates)-max(0, min(60, w-width(text)-1))):]
	most := 0.0
	for _, r := range rates {
		most = max(most, r)
	}
	line := make([]rune, len(rates))
	for i, r := range rates {
		at := 0
		if most > 0 {
			at = min(len(sparks)-1, int(r/most*float64(len(sparks)-1)+0.5))
		}
		line[i] = sparks[at]
	}
	return text + s.theme.paint(busy, string(line))
}

// alert is a sentence about what a person should know.
type alert struct {
	text string
	tone style
}

// lostFor is how long the loss of an executor is news; screen 2 has it for longer.
const lostFor = 15 * time.Minute

// alerts follow from the overview alone.
func alerts(s *shared) []alert {
	var list []alert
	add := func(tone style, format string, args ...any) {
		list = append(list, alert{"! " + fmt.Sprintf(format, args...), tone})
	}
	st := &s.over.Status
	if st.DiskFull {
		add(bad, "the disk is full: nothing is accepted until there is room")
	}
	if n := st.Tasks[task.Dead.String()]; n > 0 {
		add(bad, "%s: 4 shows them, and what can be done", plural(n, "dead letter"))
	}
	for i := range s.over.Executors {
		switch e := &s.over.Executors[i]; beatBucket(e) {
		case "lost":
			if e.HeartbeatMS > lostFor.Milliseconds() {
				continue
			}
			add(bad, "executor %s is lost: %s", e.ID, cmp.Or(e.Reason, "not heard"))
		case "late":
			add(warn, "executor %s is late", e.ID)
		}
	}
	for i := range s.over.Queues {
		switch q := &s.over.Queues[i]; {
		case q.Queued > 0 && q.Executors == 0:
			add(bad, "%s of type %s, and no executor offers it", plural(q.Queued, "task"), q.Type)
		case q.Queued > 0 && q.OldestMS > time.Minute.Milliseconds() && !q.Paused && !st.Paused:
			add(warn, "type %s waits for %s", q.Type, ageBucket(time.Duration(q.OldestMS)*time.Millisecond))
		}
	}
	if st.Paused {
		add(warn, "dispatch is paused: p continues")
	}
	if len(list) == 0 {
		list = []alert{{"none", good}}
	}
	const most = 6
	if over := len(list) - most; over > 0 {
		list = append(list[:most], alert{fmt.Sprintf("and %d more", over), warn})
	}
	return list
}

// fleet is the executors and the queues at a glance, in at most about h lines.
func (x *missionScreen) fleet(s *shared, w, h int) []string {
	now := s.clock()
	lines := []string{" " + s.theme.paint(heading, "EXECUTORS") + " " + countText(s.over.Status.Executors, view.ExecutorStates)}
	room := max(2, h/2)
	for i := range s.over.Executors {
		if i == room && len(s.over.Executors) > room+1 {
			lines = append(lines, fmt.Sprintf(" … and %d more: 2 shows them", len(s.over.Executors)-i))
			break
		}
		lines = append(lines, fleetLine(s, &s.over.Executors[i], now, w))
	}
	return append(append(lines, "", " "+s.theme.paint(heading, "QUEUES")), append(queuesLine(s, w, max(2, h/3)), "")...)
}

// queuesLine is the queues in which something happens, at most so many, and how
// many others there are.
func queuesLine(s *shared, w, most int) (lines []string) {
	idle, more := 0, 0
	for i := range s.over.Queues {
		q := &s.over.Queues[i]
		switch {
		case q.Queued+q.Out == 0 && !q.Paused:
			idle++
			continue
		case len(lines) == most:
			more++
			continue
		}
		cells := queueCells(q)
		line := " " + fit(q.Type, 14) + fitRight(cells[1].text, 6) + " queued" + fitRight(cells[2].text, 5) + " out  " + fit(cells[5].text, 5)
		lines = append(lines, cut(line+" "+s.theme.paint(cells[6].style, cells[6].text), w))
	}
	switch {
	case more > 0:
		lines = append(lines, fmt.Sprintf(" … and %d more: 3 shows them", more))
	case len(s.over.Queues) == 0:
		lines = append(lines, " no work was given yet:  apollo11 submit TYPE name=value")
	case idle > 0:
		lines = append(lines, s.theme.paint(dim, " "+plural(idle, "type")+" with nothing to do"))
	}
	return lines
}

// countText is the counts that are not zero.
func countText(counts view.Counts, names []string) string {
	var parts []string
	for _, name := range names {
		if n := counts[name]; n > 0 {
			parts = append(parts, strconv.FormatInt(n, 10)+" "+name)
		}
	}
	if parts == nil {
		return "none: start one with  apollo11 exec"
	}
	return strings.Join(parts, " · ")
}

func fleetLine(s *shared, e *view.Executor, now time.Time, w int) string {
	bucket := beatBucket(e)
	work := e.State
	if e.Task != "" {
		work += " " + e.Task + " " + versionOf(e)
	}
	id := max(12, min(24, w/3))
	tone := stateStyle(e.State)
	if bucket == "gone" {
		tone = dim
	}
	return " " + s.theme.paint(bucketStyle(bucket), s.pulse.mark(e.ID, now)+" "+fit(bucket, 4)) + " " + fit(e.ID, id) + " " +
		s.theme.paint(tone, cut(work, max(0, w-id-9)))
}

// strip is the last records, the newest below.
func (x *missionScreen) strip(s *shared, w, h int) []string {
	if h < 4 {
		return nil
	}
	lines := []string{" " + s.theme.paint(heading, "TIMELINE")}
	from := max(0, len(x.events)-(h-1))
	wide := 0
	for i := from; i < len(x.events); i++ {
		wide = max(wide, width(cmp.Or(x.events[i].Task, x.events[i].Run)))
	}
	t := layout(columnsFor(timelineColumns, "TASK", wide), w)
	cells := eventCells(s)
	for i := from; i < len(x.events); i++ {
		lines = append(lines, t.line(s.theme, "  ", cells(&x.events[i]), false))
	}
	return lines
}
