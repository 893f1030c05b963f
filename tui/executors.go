package tui

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"apollo11/engine/view"
)

// executorsScreen is the executors with their heartbeats.
type executorsScreen struct {
	list   list[view.Executor]
	filter filter
	sort   int
	turned bool
	wide   int          // columns of the longest task id ever seen here: columns do not jump to and fro
	pinned string       // task whose detail is shown instead of the executor's; empty: none
	task   *view.Detail // of pinned
}

func newExecutorsScreen() *executorsScreen {
	return &executorsScreen{list: newList(func(e *view.Executor) string { return e.ID })}
}

// executorSorts are the orders that s goes through.
var executorSorts = []struct {
	name    string
	compare func(a, b *view.Executor) int
}{
	{"id", func(a, b *view.Executor) int { return cmp.Compare(a.ID, b.ID) }},
	{"state", func(a, b *view.Executor) int { return cmp.Compare(a.State, b.State) }},
	{"load", func(a, b *view.Executor) int { return cmp.Compare(b.Load, a.Load) }},
	{"done", func(a, b *view.Executor) int { return cmp.Compare(b.Done, a.Done) }},
	{"failed", func(a, b *view.Executor) int { return cmp.Compare(b.Failed, a.Failed) }},
	{"silence", func(a, b *view.Executor) int { return cmp.Compare(b.HeartbeatMS, a.HeartbeatMS) }},
}

// ask takes the executors from the overview; what it asks for is the task
// that J has opened.
func (x *executorsScreen) ask(s *shared) request {
	rows := make([]view.Executor, 0, len(s.over.Executors))
	for i := range s.over.Executors {
		e := &s.over.Executors[i]
		if x.filter.match(e.ID + " " + e.State + " " + beatBucket(e) + " " + e.Types + " " + e.Host + " " + e.Task + " " + e.Reason) {
			rows = append(rows, *e)
			x.wide = max(x.wide, width(e.Task))
		}
	}
	order := executorSorts[x.sort].compare
	slices.SortStableFunc(rows, func(a, b view.Executor) int {
		if x.turned {
			a, b = b, a
		}
		return cmp.Or(order(&a, &b), cmp.Compare(a.ID, b.ID))
	})
	x.list.set(rows)
	if x.pinned == "" {
		return nil
	}
	return askTask(x.pinned)
}

// askTask reads one task.
func askTask(id string) request {
	return func(ctx context.Context, source Source) (any, error) {
		d, err := source.Task(ctx, id)
		if err == nil {
			d.Fields(cleaner{})
			cleanRows(d.Attempts)
		}
		return d, err
	}
}

func (x *executorsScreen) take(_ *shared, body any) {
	if d, ok := body.(*view.Detail); ok {
		x.task = d
	}
}

func (x *executorsScreen) do(s *shared, in input) (tea.Cmd, bool) {
	if x.list.move(in.act) {
		x.pinned, x.task = "", nil
		return nil, true
	}
	at := x.list.at()
	switch in.act {
	case sortNext:
		x.sort = (x.sort + 1) % len(executorSorts)
	case sortTurn:
		x.turned = !x.turned
	case find:
		s.wordsOnly(&x.filter, in.text)
	case back:
		x.filter, x.pinned, x.task = filter{}, "", nil
	case pause:
		return x.drain(s, at), true
	case related:
		switch {
		case at == nil || at.Task == "":
			s.say("no task here")
		default:
			x.pinned, x.task = at.Task, nil
		}
	case explain:
		id := ""
		if at != nil {
			id = at.Task
		}
		return s.explain(id), true
	case copyID:
		if at != nil {
			return s.copy(at.ID), true
		}
	default:
		return nil, false
	}
	return nil, true
}

func (x *executorsScreen) drain(s *shared, at *view.Executor) tea.Cmd {
	switch {
	case at == nil:
		s.say("no executor here")
	case at.State == "offline" || at.State == "draining":
		s.say("%s is %s already", at.ID, at.State)
	default:
		a := Action{Verb: Drain, Name: at.ID}
		s.ask(yesNo("Drain "+at.ID+"?", []string{"It finishes what it runs, gets nothing new, and goes."}, func() tea.Cmd { return s.act(a) }))
	}
	return nil
}

// wordsOnly takes a filter for a screen that knows words alone.
func (s *shared) wordsOnly(f *filter, text string) {
	parsed, err := parseFilter(text, nil)
	if err == nil {
		err = parsed.plain()
	}
	if err != nil {
		s.complain(fmt.Errorf("filter: %w", err))
		return
	}
	*f = parsed
}

var executorColumns = []column{
	{title: " ", wide: 1}, {title: "ID", wide: 16, share: true}, {title: "BEAT", wide: 4}, {title: "STATE", wide: 11},
	{title: "LOAD", wide: 4, right: true, keep: 5}, {title: "TASK", wide: 10}, {title: "VERSION", wide: 8, right: true, keep: 4},
	{title: "DONE", wide: 8, right: true, keep: 3}, {title: "FAILED", wide: 6, right: true, keep: 3}, {title: "BUILD", wide: 12, keep: 1},
	{title: "NOTE", wide: 20, keep: 2},
}

func executorCells(s *shared) func(*view.Executor) []cell {
	now := s.clock()
	return func(e *view.Executor) []cell {
		bucket := beatBucket(e)
		return []cell{
			{s.pulse.mark(e.ID, now), bucketStyle(bucket)}, {text: e.ID}, {bucket, bucketStyle(bucket)}, {e.State, stateStyle(e.State)},
			{text: strconv.FormatInt(e.Load, 10)}, {text: e.Task}, {text: versionOf(e)}, {text: strconv.FormatInt(e.Done, 10)},
			{text: strconv.FormatInt(e.Failed, 10)}, {e.Build, dim}, {e.Reason, warn},
		}
	}
}

func versionOf(e *view.Executor) string {
	if e.Task == "" {
		return ""
	}
	return versionText(e.Version)
}

func (x *executorsScreen) view(s *shared, w, h int) []string {
	text := fmt.Sprintf("executors: %d of %d · sorted by %s", len(x.list.rows), len(s.over.Executors), executorSorts[x.sort].name)
	if x.filter.text != "" {
		text += " · filter " + clean(x.filter.text)
	}
	lines := []string{fit(" "+s.theme.paint(strong, text), w)}
	if len(s.over.Executors) == 0 {
		x.list.height = max(1, h-2)
		return block(append(lines, " none: start one with  apollo11 exec"), w, h)
	}
	return append(lines, x.list.view(s.theme, columnsFor(executorColumns, "TASK", x.wide), w, h-1, executorCells(s))...)
}

func (x *executorsScreen) detail(s *shared, w int) []string {
	at := x.list.at()
	if at == nil {
		return []string{"no executor here"}
	}
	if x.pinned != "" {
		if x.task == nil {
			return []string{"reading " + x.pinned + "…"}
		}
		return append(taskDetail(s, x.task, w), "", strings.Repeat("─", min(w, 20)), "esc: back to "+at.ID)
	}
	return executorDetail(s, at, w)
}
