package tui

import (
	"fmt"
	"strconv"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"apollo11/engine/view"
)

// actOn does an action on tasks: one requeue at once, for it can be cancelled;
// anything else is asked first, and how many match is counted before that.
func (s *shared) actOn(a Action) tea.Cmd {
	switch {
	case a.Tasks.All:
		count := a
		count.Tasks.Count = true
		return s.act(count)
	case len(a.Tasks.IDs) > 1:
		s.ask(s.manyDialog(a, len(a.Tasks.IDs), a.Tasks.IDs))
		return nil
	case a.Verb == Requeue:
		return s.act(a)
	}
	title, lines := "Cancel "+a.Tasks.IDs[0]+"?", []string{"It ends now; an executor that runs it is told to stop."}
	if a.Verb == Drop {
		title, lines = "Drop "+a.Tasks.IDs[0]+"?", []string{dropMeans}
		if runOf(a.Tasks.IDs[0]) != "" {
			lines = []string{settleMeans}
		}
	}
	s.ask(yesNo(clean(title), lines, func() tea.Cmd { return s.act(a) }))
	return nil
}

// dropMeans is what a person should know before.
const dropMeans = "It leaves memory for good and can't be requeued. Its history stays in the journal: apollo11 replay."

// settleMeans is what dropping is for a task of a run.
const settleMeans = "It is no dead letter any more. It stays with its run, which can be resumed as before."

// askMany asks about all that match, once they are counted.
func (s *shared) askMany(a Action, n *view.Changed) {
	if n.Matched == 0 {
		s.say("no task matches")
		return
	}
	a.Tasks.Count = false
	s.ask(s.manyDialog(a, n.Matched, n.Samples))
}

func (s *shared) manyDialog(a Action, n int, ids []string) *dialog {
	lines := []string{"such as " + strings.Join(ids[:min(3, len(ids))], ", ")}
	if f := filterText(&a); f != "" {
		lines = append(lines, f)
	}
	lines = append(lines, "Each is checked again when it is done.")
	count := ""
	switch a.Verb {
	case Cancel:
		lines = append(lines, "Work under way is lost.")
		count = strconv.Itoa(n)
	case Drop:
		lines = append(lines, strings.Replace(dropMeans, "It leaves", "They leave", 1))
		count = strconv.Itoa(n)
	}
	verb := a.Verb.String()
	title := fmt.Sprintf("%s%s %s?", strings.ToUpper(verb[:1]), verb[1:], plural(n, "task"))
	return many(title, lines, count, func() tea.Cmd { return s.act(a) })
}

func filterText(a *Action) string {
	q := &a.Tasks.Query
	if !a.Tasks.All {
		return ""
	}
	var parts []string
	if q.Type != "" {
		parts = append(parts, "type "+q.Type)
	}
	if q.Error != "" {
		parts = append(parts, "error has "+strconv.Quote(clean(q.Error)))
	}
	if q.Older > 0 {
		parts = append(parts, "older than "+span(q.Older))
	}
	var states []string
	for _, st := range q.States {
		states = append(states, st.String())
	}
	return "all with: " + strings.Join(append(parts, "state "+strings.Join(states, " or ")), ", ")
}

// report says what an action did.
func (s *shared) report(a Action, n *view.Changed) {
	what := "everything"
	if a.Name != "" {
		what = a.Name
	}
	switch a.Verb {
	case Requeue:
		s.note(n.Changed < n.Matched, changedText(a.Verb, n))
		s.offerResume(a, n)
	case Cancel, Drop:
		s.note(n.Changed < n.Matched, changedText(a.Verb, n))
	case Pause:
		s.say("paused %s: nothing new is given out", what)
	case Continue:
		s.say("continued %s", what)
	case Drain:
		s.say("draining %s: it finishes what it runs", what)
	case DebugOn:
		s.say("debug is on: every message goes to the log, but for what this console reads")
	case DebugOff:
		s.say("debug is off")
	}
}

// offerResume asks about the run of a task that can't be requeued by itself.
func (s *shared) offerResume(a Action, n *view.Changed) {
	if a.Tasks.All || len(a.Tasks.IDs) != 1 || n.Changed > 0 || len(n.Skipped) == 0 {
		return
	}
	run := runOf(a.Tasks.IDs[0])
	if run == "" || !strings.Contains(n.Skipped[0], "resume") { // its run goes on, or was resumed already
		return
	}
	lines := []string{n.Skipped[0], "Resuming its run runs it again, and what comes after it; what succeeded is not run again."}
	s.ask(yesNo("Resume "+run+"?", lines, func() tea.Cmd { return s.actRun(Action{Verb: ResumeRun, Name: run}) }))
}

func changedText(v Verb, n *view.Changed) string {
	did := map[Verb]string{Requeue: "requeued", Cancel: "cancelled", Drop: "dropped"}[v]
	text := fmt.Sprintf("%d %s", n.Changed, did)
	if rest := n.Matched - n.Changed; rest > 0 {
		text += fmt.Sprintf(", %d not", rest)
		if len(n.Skipped) > 0 {
			text += ": " + n.Skipped[0]
		}
	}
	return text
}
