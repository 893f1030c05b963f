package tui

import (
	"errors"
	"fmt"
	"strings"

	tea "github.com/charmbracelet/bubbletea"
)

// stroke gives one key to who is in front: a dialog, a prompt, the screen.
func (m *model) stroke(k stroke) tea.Cmd {
	if n := len(m.s.notices); n > 0 {
		m.s.notices[n-1].read = true
	}
	if b := m.s.box; b != nil {
		if m.s.clock().Sub(m.s.boxed) < lateKey {
			m.s.say("%s came before the question could be read: press it again", clean(k.key))
			return nil
		}
		cmd, over := b.take(m.s, k)
		if over && m.s.box == b {
			m.s.box = nil
		}
		return cmd
	}
	if m.prompt != nil {
		return m.typed(k)
	}
	b, why := bound(m.at, k.key)
	if b == nil {
		m.s.note(false, why)
		return nil
	}
	if b.alters {
		if err := m.allowed(b, k); err != nil {
			m.s.complain(err)
			return nil
		}
	}
	return m.act(input{act: b.act})
}

// allowed says why a key that changes something must not.
func (m *model) allowed(b *binding, k stroke) error {
	switch {
	case k.burst:
		return fmt.Errorf("%s came in a burst of keys and did nothing: press it alone", k.key)
	case m.o.ReadOnly:
		return errors.New("this console only watches (--read-only)")
	}
	return nil
}

// typed gives a key to the prompt.
func (m *model) typed(k stroke) tea.Cmd {
	p := m.prompt
	done, ok := p.take(k)
	if !done {
		return nil
	}
	m.prompt = nil
	if !ok {
		return nil
	}
	if p.act == runPalette {
		return m.palette(strings.TrimSpace(string(p.text)))
	}
	return m.act(input{act: p.act, text: strings.TrimSpace(string(p.text)) + " "})
}

// act does what an action means: the root's own, then the screen's.
func (m *model) act(in input) tea.Cmd {
	if in.act >= goMission && in.act <= goLog {
		return m.goTo(screenID(in.act-goMission) + onMission)
	}
	if m.scrolls(in.act) {
		return nil
	}
	switch in.act {
	case lastView:
		return m.goTo(m.before)
	case help:
		m.toggle(helpOverlay)
	case notices:
		m.toggle(noticeOverlay)
	case open:
		return m.openIt(in)
	case back:
		return m.back()
	case find:
		if in.text == "" {
			m.overlay, m.prompt = noOverlay, &prompt{lead: "/", act: find}
			return nil
		}
		return m.toScreen(in)
	case runPalette:
		m.prompt = &prompt{lead: ":", act: runPalette}
	case timeFormat:
		m.s.ages = !m.s.ages
	case nextTheme:
		m.nextTheme()
	case debug:
		return m.toggleDebug()
	case leave:
		return m.leave()
	default:
		return m.toScreen(in)
	}
	return nil
}

// openIt opens what is under the cursor: in the screen itself, if there is more
// of it than details.
func (m *model) openIt(in input) tea.Cmd {
	if m.overlay == noOverlay {
		if cmd, taken := m.screens[m.at].do(m.s, in); taken {
			m.scroll, m.focus = 0, false
			return tea.Batch(cmd, m.askAnew())
		}
	}
	m.toggle(detailOverlay)
	return m.askScreen()
}

// toScreen gives an action to the screen, and asks what that leads to.
func (m *model) toScreen(in input) tea.Cmd {
	cmd, taken := m.screens[m.at].do(m.s, in)
	switch {
	case !taken && in.act == nextPane:
		return m.goTo(m.next())
	case in.act >= moveDown && in.act <= pageUp && m.overlay == noOverlay:
		m.scroll = 0
	case in.act == find, in.act == sortTurn, in.act == live, in.act == back, in.act == runPalette, in.act == related, in.act == compareRuns:
		return tea.Batch(cmd, m.askAnew())
	}
	return tea.Batch(cmd, m.askScreen())
}

// next is the screen after this one.
func (m *model) next() screenID {
	for id := m.at%(screens-1) + 1; ; id = id%(screens-1) + 1 {
		if m.screens[id] != nil {
			return id
		}
	}
}

func (m *model) goTo(to screenID) tea.Cmd {
	if m.screens[to] == nil {
		return nil // its place is kept; its key says why there is nothing
	}
	m.overlay, m.scroll, m.focus, m.s.why = noOverlay, 0, false, explaining{}
	if to != m.at {
		m.before, m.at = m.at, to
	}
	return m.askScreen()
}

func (m *model) toggle(o overlay) {
	if m.overlay == o {
		o = noOverlay
	}
	m.overlay, m.scroll = o, 0
}

// back closes what is in front; with nothing there it takes the filter away.
func (m *model) back() tea.Cmd {
	if m.overlay != noOverlay || m.focus {
		m.overlay, m.focus, m.scroll, m.s.why = noOverlay, false, 0, explaining{}
		return nil
	}
	return m.toScreen(input{act: back})
}

// scrolls takes the keys that move, where they scroll text.
func (m *model) scrolls(a action) bool {
	if m.overlay == noOverlay && !m.focus {
		if a == paneRight && m.s.split {
			m.focus = true
			return true
		}
		return false
	}
	page := max(1, m.h-6)
	switch a {
	case moveDown:
		m.scroll++
	case moveUp:
		m.scroll--
	case pageDown:
		m.scroll += page
	case pageUp:
		m.scroll -= page
	case moveTop:
		m.scroll = 0
	case moveBottom:
		m.scroll = 1 << 30 // the next frame brings it back
	case paneLeft:
		m.focus = false
	default:
		return false
	}
	m.scroll = max(0, m.scroll)
	return true
}

func (m *model) nextTheme() {
	next := (themeAt(m.s.theme.name) + 1) % len(themes)
	m.s.theme = &themes[next]
	m.s.say("theme %s", m.s.theme.name)
}

func (m *model) toggleDebug() tea.Cmd {
	verb := DebugOn
	if m.s.over.Status.Debug {
		verb = DebugOff
	}
	return m.s.act(Action{Verb: verb})
}

// leave ends the console; in the controller's own process it asks how.
func (m *model) leave() tea.Cmd {
	end := func(v Verdict) func() tea.Cmd {
		return func() tea.Cmd {
			m.verdict = v
			return tea.Quit
		}
	}
	if !m.o.Embedded {
		return end(Left)()
	}
	m.s.ask(&dialog{
		title: "Leave the console",
		lines: []string{
			"The controller runs in this process.",
			"Leave it running: it goes on without a screen, and apollo11 attach comes back to it.",
			"Stop it: no new work, executors told, journal synced. Nothing is lost.",
		},
		choices: []choice{{"esc", "stay", nil}, {"d", "leave it running", end(Left)}, {"s", "stop it", end(Stop)}},
	})
	return nil
}

// palette does what was named: a screen, an action, or a place in the timeline.
func (m *model) palette(text string) tea.Cmd {
	if text == "" {
		return nil
	}
	if text[0] >= '0' && text[0] <= '9' && len(text) > 1 || m.at == onTimeline && text[0] >= '0' && text[0] <= '9' {
		cmd := m.goTo(onTimeline)
		return tea.Batch(cmd, m.toScreen(input{act: runPalette, text: text}))
	}
	b, err := named(m.at, text)
	if err != nil {
		m.s.complain(err)
		return nil
	}
	if b.alters && m.o.ReadOnly {
		m.s.complain(errors.New("this console only watches (--read-only)"))
		return nil
	}
	return m.act(input{act: b.act})
}

// named finds the binding that a person means: by the begin of its short or
// long words, on this screen.
func named(at screenID, text string) (*binding, error) {
	var found []*binding
	text = strings.ToLower(text)
	for i := range registry {
		b := &registry[i]
		if b.why != "" || !b.here(at) {
			continue
		}
		if b.short == text || b.long == text {
			return b, nil
		}
		if strings.HasPrefix(b.long, text) || b.short != "" && strings.HasPrefix(b.short, text) {
			found = append(found, b)
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("%s: no such thing here; ? shows what there is", clean(text))
	case 1:
		return found[0], nil
	}
	var names []string
	for _, b := range found {
		names = append(names, b.long)
	}
	return nil, fmt.Errorf("%s: which one: %s", clean(text), strings.Join(names, "; "))
}
