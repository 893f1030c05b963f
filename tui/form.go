package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// form is the inputs of a task being edited, or the parameters of a mission that
// is to be started, a line each. The controller checks them; what it says stands
// under the line it is about.
type form struct {
	id     string // of the task, or the mission's name
	start  bool   // a mission is to be started
	ended  bool   // the task: it is requeued with its inputs
	rows   []formRow
	at     int      // row under the cursor; a task's last one is for another input
	faults []string // of no row
	asked  bool     // sent, and not answered yet
}

// formRow is an input, or the line for a new one, whose text has the name as well.
type formRow struct {
	name  string // empty: the new one
	was   string
	text  []rune
	pos   int  // of the cursor in text
	unset bool // the input is taken out
	must  bool // a parameter without a default
	hint  string
	fault string
}

func newForm(d *view.Detail) *form {
	f := &form{id: d.ID, ended: task.Dead.String() == d.State}
	for _, v := range d.Inputs {
		text := []rune(v.Value)
		f.rows = append(f.rows, formRow{name: v.Name, was: string(text), text: text, pos: len(text)})
	}
	f.rows = append(f.rows, formRow{})
	return f
}

// formMsg is the task whose inputs are to be edited, as they are: the details on
// the screen are cleaned.
type formMsg struct {
	detail *view.Detail
	err    error
}

// edit asks for the inputs of the task under the cursor.
func (l *taskList) edit(s *shared) tea.Cmd {
	at := l.list.at()
	switch {
	case at == nil:
		s.say("no task to edit")
		return nil
	case l.all || len(l.list.marked) > 0:
		s.say("e edits one task: esc takes the marks away first")
		return nil
	case runOf(at.ID) != "":
		s.say("%s  runs it with other inputs", forkOf(at.ID))
		return nil
	}
	source, id := s.source, at.ID
	return guarded(func() tea.Msg {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		d, err := source.Task(ctx, id)
		return formMsg{d, err}
	})
}

// take implements box.
func (f *form) take(s *shared, k stroke) (cmd tea.Cmd, over bool) {
	switch k.key {
	case "esc", "ctrl+c":
		return nil, true
	case "enter":
		switch {
		case k.burst || f.asked:
			return nil, false
		case f.start:
			return f.sendStart(s), false
		}
		return f.send(s)
	}
	if len(f.rows) == 0 {
		return nil, false // a mission without parameters
	}
	row := &f.rows[f.at]
	switch k.key {
	case "up", "shift+tab":
		f.at = (f.at + len(f.rows) - 1) % len(f.rows)
	case "down", "tab":
		f.at = (f.at + 1) % len(f.rows)
	case "ctrl+x":
		row.unset = row.name != "" && !f.start && !row.unset
	default:
		if row.key(k.key) {
			row.unset, row.fault = false, ""
		}
	}
	return nil, false
}

// key edits a line in place; changed is false for a key that only moves, or is
// none of the line's.
func (r *formRow) key(key string) (changed bool) {
	switch key {
	case "left":
		r.pos = max(0, r.pos-1)
		return false
	case "right":
		r.pos = min(len(r.text), r.pos+1)
		return false
	case "home", "ctrl+a":
		r.pos = 0
		return false
	case "end", "ctrl+e":
		r.pos = len(r.text)
		return false
	case "backspace":
		from := max(0, r.pos-1)
		r.text, r.pos = slices.Delete(r.text, from, r.pos), from
	case "delete":
		r.text = slices.Delete(r.text, r.pos, min(len(r.text), r.pos+1))
	case "ctrl+u":
		r.text, r.pos = nil, 0
	case "space":
		r.insert(' ')
	case "\r":
		r.insert('\n') // of a paste
	default:
		c := []rune(key)
		if len(c) != 1 || !unicode.IsPrint(c[0]) && c[0] != '\n' && c[0] != '\t' {
			return false
		}
		r.insert(c[0])
	}
	return true
}

func (r *formRow) insert(c rune) {
	if len(r.text) < task.MaxBytes {
		r.text = slices.Insert(r.text, r.pos, c)
		r.pos++
	}
}

// send asks the controller for what was changed.
func (f *form) send(s *shared) (cmd tea.Cmd, over bool) {
	a := Action{Verb: Edit, Tasks: view.Selection{IDs: []string{f.id}}}
	f.faults = nil
	for i := range f.rows {
		r := &f.rows[i]
		r.fault = ""
		switch text := string(r.text); {
		case r.unset:
			a.Unset = append(a.Unset, r.name)
		case r.name != "" && text != r.was:
			a.Set = append(a.Set, task.Value{Name: r.name, Value: text})
		case r.name == "" && strings.TrimSpace(text) != "":
			name, value, ok := strings.Cut(text, "=")
			if name = strings.TrimSpace(name); !ok || name == "" {
				r.fault = "want name = value"
				f.at = i
				return nil, false
			}
			a.Set = append(a.Set, task.Value{Name: name, Value: strings.TrimPrefix(value, " ")})
		}
	}
	if len(a.Set)+len(a.Unset) == 0 {
		f.faults = []string{"nothing is changed; esc leaves the task as it is"}
		if f.ended {
			f.faults[0] += ", r requeues it with the same inputs"
		}
		return nil, false
	}
	f.asked = true
	return s.act(a), false
}

// refused puts what the controller said to the lines that it is about.
func (f *form) refused(err error) {
	f.asked = false
	first := -1
	for line := range strings.SplitSeq(err.Error(), "\n") {
		i := f.about(line)
		if i < 0 {
			f.faults = append(f.faults, clean(line))
			continue
		}
		_, text, _ := strings.Cut(line, f.names())
		f.rows[i].fault = clean(text)
		if first < 0 {
			first = i
		}
	}
	if first >= 0 {
		f.at = first
	}
}

// names is what stands before a name in a refusal. The controller words it
// `input NAME …` or `params.NAME …`; only the place to show it hangs on that.
func (f *form) names() string {
	if f.start {
		return "params."
	}
	return "input "
}

// about is the row that a line of a refusal names; -1: none.
func (f *form) about(line string) int {
	_, rest, ok := strings.Cut(line, f.names())
	if !ok {
		return -1
	}
	name, _, _ := strings.Cut(rest, " ")
	name = strings.TrimRight(name, ":")
	return slices.IndexFunc(f.rows, func(r formRow) bool {
		own := r.name
		if own == "" {
			own, _, _ = strings.Cut(string(r.text), "=")
		}
		return strings.TrimSpace(own) == name && name != ""
	})
}

// view implements box.
func (f *form) view(th *theme, w, h int) []string {
	inner := min(100, w-4)
	wide := 4
	for i := range f.rows {
		wide = max(wide, min(24, width(clean(f.rows[i].name))))
	}
	var body []string
	focus := 0
	for i := range f.rows {
		if i == f.at {
			focus = len(body)
		}
		body = append(body, f.line(th, i, wide, inner))
		for _, part := range wrap(f.rows[i].fault, inner-2) {
			if part != "" {
				body = append(body, "  "+th.paint(bad, "! "+cut(part, inner-4)))
			}
		}
	}
	foot := f.foot(th, inner)
	if room := max(1, h-2-len(foot)); len(body) > room {
		from := max(0, min(focus-room/2, len(body)-room))
		body = body[from : from+room]
	}
	return boxed(th, clean(f.title()), append(body, foot...), inner)
}

func (f *form) title() string {
	switch {
	case f.start:
		return "Start " + f.id
	case f.ended:
		return "Edit the inputs of " + f.id + ", and requeue it"
	}
	return "Edit the inputs of " + f.id
}

// foot is what stands under the inputs.
func (f *form) foot(th *theme, inner int) []string {
	lines := []string{""}
	for _, fault := range f.faults {
		for _, part := range wrap(fault, inner-2) {
			lines = append(lines, th.paint(bad, "! "+part))
		}
	}
	state := "enter saves · esc leaves it as it is · up and down move · ctrl+x takes an input out"
	switch {
	case f.asked:
		state = "asking the controller…"
	case f.start && len(f.rows) == 0:
		state = "it has no parameters · enter starts it · esc starts nothing"
	case f.start:
		state = "enter starts it · esc starts nothing · up and down move · ctrl+u clears a line"
	case f.ended:
		state = strings.Replace(state, "saves", "saves and requeues", 1)
	}
	for _, part := range wrap(state, inner) {
		lines = append(lines, th.paint(dim, part))
	}
	return lines
}

func (f *form) line(th *theme, i, wide, inner int) string {
	r := &f.rows[i]
	name, lead := clean(r.name), "  "
	if r.name == "" {
		name = "new"
	}
	if i == f.at {
		lead = "> "
	}
	head := lead + fit(name, wide) + " = "
	if r.name == "" {
		head = lead + fit(name, wide) + "   "
	}
	room := max(1, inner-width(head))
	switch {
	case r.unset:
		return head + th.paint(warn, cut("(taken out)", room))
	case i == f.at && r.hint != "" && width(clean(r.hint))+20 < room:
		hint := "  " + clean(r.hint)
		return head + r.window(th, room-width(hint)) + th.paint(dim, hint)
	case i == f.at:
		return head + r.window(th, room)
	case r.name == "" && len(r.text) == 0:
		return head + th.paint(dim, cut("name = value", room))
	}
	text := cut(clean(string(r.text[:min(len(r.text), enough*room)])), room)
	tone := plain
	if r.name == "" || string(r.text) != r.was {
		tone = strong
	}
	if hint := "  " + clean(r.hint); r.hint != "" && width(text)+width(hint) <= room {
		return head + th.paint(tone, text) + th.paint(dim, hint)
	}
	return head + th.paint(tone, text)
}

// enough characters a column are looked at, of values that may be long: some
// have no width.
const enough = 4

// window is the part of the line around the cursor that fits, the cursor shown.
func (r *formRow) window(th *theme, room int) string {
	left := clean(string(r.text[max(0, r.pos-enough*room):r.pos]))
	under, right := " ", ""
	if r.pos < len(r.text) {
		under = clean(string(r.text[r.pos]))
		right = clean(string(r.text[r.pos+1 : min(len(r.text), r.pos+1+enough*room)]))
	}
	keep := room - width(under)
	if keep < 1 {
		return th.paint(chosen, cut(under, room))
	}
	if over := width(left) - keep*2/3; width(left)+width(right) > keep && over > 0 {
		left = ansi.TruncateLeft(left, over+1, "…")
	}
	return left + th.paint(chosen, under) + cut(right, max(0, keep-width(left)))
}

// done is what is said of an edit that went through.
func (f *form) done() string {
	if f.ended {
		return fmt.Sprintf("%s edited and requeued", clean(f.id))
	}
	return fmt.Sprintf("%s edited: it goes on with these inputs", clean(f.id))
}
