package tui

import (
	"context"
	"fmt"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// missionsMsg is the missions there are to start.
type missionsMsg struct {
	list []view.Mission
	err  error
}

// pickMission asks which missions there are.
func (s *shared) pickMission() tea.Cmd {
	source := s.source
	return guarded(func() tea.Msg {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		list, err := source.Missions(ctx)
		return missionsMsg{list, err}
	})
}

// takeMissions opens the list of missions, unless something else came up.
func (m *model) takeMissions(msg missionsMsg) {
	switch {
	case msg.err != nil:
		m.s.complain(msg.err)
	case len(msg.list) == 0:
		m.s.say("no mission is known: put a file into the missions folder, or  apollo11 run FILE")
	case m.s.box == nil && m.prompt == nil:
		m.s.ask(&picker{missions: msg.list})
	}
}

// picker is the list of missions to start one of.
type picker struct {
	missions []view.Mission // as they are: what is shown of them is cleaned
	at       int
}

// take implements box.
func (p *picker) take(s *shared, k stroke) (cmd tea.Cmd, over bool) {
	switch k.key {
	case "esc", "ctrl+c", "q":
		return nil, true
	case "j", "down", "tab":
		p.at = min(p.at+1, len(p.missions)-1)
	case "k", "up", "shift+tab":
		p.at = max(p.at-1, 0)
	case "g", "home":
		p.at = 0
	case "G", "end":
		p.at = len(p.missions) - 1
	case "enter":
		m := &p.missions[p.at]
		switch {
		case k.burst:
		case m.Fault != "":
			first, _, _ := strings.Cut(m.Fault, "\n")
			s.complain(fmt.Errorf("%s can't be started: %s", m.Name, first))
		default:
			s.ask(newStartForm(m))
		}
	}
	return nil, false
}

// view implements box.
func (p *picker) view(th *theme, w, h int) []string {
	inner := min(100, w-4)
	about := p.about(th, inner)
	room := max(1, h-4-len(about))
	from := max(0, min(p.at-room/2, len(p.missions)-room))
	wide := 8
	for i := range p.missions {
		wide = max(wide, min(30, width(clean(p.missions[i].Name))))
	}
	var body []string
	for i := from; i < len(p.missions) && i < from+room; i++ {
		m := &p.missions[i]
		lead := "  "
		if i == p.at {
			lead = "> "
		}
		line := cut(lead+fit(clean(m.Name), wide)+fitRight(plural(m.Units, "unit"), 12)+"  "+lastOf(m), inner)
		switch {
		case i == p.at:
			line = th.paint(chosen, fit(line, inner))
		case m.Fault != "":
			line = th.paint(bad, line)
		}
		body = append(body, line)
	}
	return boxed(th, "Start a mission", append(body, about...), inner)
}

// lastOf is what is told of a mission behind its name.
func lastOf(m *view.Mission) string {
	switch {
	case m.Fault != "":
		return "! can't be started"
	case m.LastRun == "":
		return "never run"
	}
	return clean("last " + m.LastRun + " " + m.State)
}

// about is what is known of the mission under the cursor, and the keys.
func (p *picker) about(th *theme, inner int) []string {
	m := &p.missions[p.at]
	lines := []string{""}
	add := func(st style, text string) {
		for line := range strings.SplitSeq(text, "\n") {
			for _, part := range wrap(clean(line), inner) {
				lines = append(lines, th.paint(st, part))
			}
		}
	}
	switch {
	case m.Fault != "":
		add(bad, "! "+m.Fault)
	case len(m.Params) > 0:
		add(plain, "parameters: "+paramList(m.Params))
	}
	if m.Triggers != "" {
		add(plain, "starts by itself: "+m.Triggers)
	}
	lines = lines[:min(len(lines), 5)]
	add(dim, "enter starts it, after its parameters · esc leaves")
	return lines
}

// paramList is parameters with their types.
func paramList(params view.Object) string {
	parts := make([]string, len(params))
	for i, p := range params {
		parts[i] = p.Name + " (" + p.Value + ")"
	}
	return strings.Join(parts, ", ")
}

// newStartForm is a mission's parameters, a line each, with their defaults.
func newStartForm(m *view.Mission) *form {
	f := &form{id: m.Name, start: true}
	for _, p := range m.Params {
		kind, def, has := strings.Cut(p.Value, "=")
		text := []rune(def)
		r := formRow{name: p.Name, was: def, text: text, pos: len(text), hint: kind}
		if r.must = !has; r.must {
			r.hint += ", required"
		}
		f.rows = append(f.rows, r)
	}
	return f
}

// sendStart asks the controller to start the mission.
func (f *form) sendStart(s *shared) tea.Cmd {
	a := Action{Verb: StartRun, Name: f.id}
	f.faults = nil
	missing := -1
	for i := range f.rows {
		r := &f.rows[i]
		r.fault = ""
		text := string(r.text)
		switch {
		case r.must && text == "":
			r.fault = "has to be given"
			if missing < 0 {
				missing = i
			}
		case r.must || text != r.was:
			a.Set = append(a.Set, task.Value{Name: r.name, Value: text})
		}
	}
	if missing >= 0 {
		f.at = missing
		return nil
	}
	f.asked = true
	return s.actRun(a)
}
