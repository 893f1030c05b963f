package tui

import (
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

// box is what lies over everything and gets all keys.
type box interface {
	// take acts on a key; over is true when the box has no business any more.
	take(*shared, stroke) (cmd tea.Cmd, over bool)
	// view is the box drawn, for a screen of w columns and h lines.
	view(th *theme, w, h int) []string
}

// dialog asks before something happens. The choice that changes nothing comes
// first and is the one that enter takes.
type dialog struct {
	title   string
	lines   []string
	choices []choice
	at      int
	want    string // to be typed before the last choice counts; empty: nothing
	typed   string
}

// lateKey is how soon after a box has opened a key may answer it: what was
// typed before a person can have read it is no answer.
const lateKey = 150 * time.Millisecond

// ask opens a box.
func (s *shared) ask(b box) { s.box, s.boxed = b, s.clock() }

// choice is one way out of a dialog.
type choice struct {
	key  string
	name string
	then func() tea.Cmd // nil: nothing happens
}

// yesNo asks about one thing.
func yesNo(title string, lines []string, then func() tea.Cmd) *dialog {
	return &dialog{title: title, lines: lines, choices: []choice{{"n", "no", nil}, {"y", "yes", then}}}
}

// many asks about many, with samples; what can't be undone wants their number typed.
func many(title string, lines []string, count string, then func() tea.Cmd) *dialog {
	d := &dialog{title: title, lines: lines, want: count, choices: []choice{{"n", "cancel", nil}, {"y", "do it", then}}}
	if count != "" {
		d.lines = append(d.lines, "", "type "+count+" to do it")
		d.choices[1].key = ""
	}
	return d
}

// take implements box. A burst answers nothing.
func (d *dialog) take(_ *shared, k stroke) (cmd tea.Cmd, over bool) {
	if k.burst && d.want == "" {
		return nil, false
	}
	switch k.key {
	case "esc", "ctrl+c":
		return nil, true
	case "tab", "right", "l", "left", "h", "shift+tab":
		d.at = (d.at + 1) % len(d.choices)
		if k.key == "left" || k.key == "h" || k.key == "shift+tab" {
			d.at = (d.at + len(d.choices) - 2) % len(d.choices)
		}
		return nil, false
	case "backspace":
		d.typed = d.typed[:max(0, len(d.typed)-1)]
		return nil, false
	case "enter":
		if k.burst {
			return nil, false
		}
		return d.choose(d.at)
	}
	for i, c := range d.choices {
		if c.key == k.key {
			return d.choose(i)
		}
	}
	if d.want != "" && len(k.key) == 1 && k.key >= "0" && k.key <= "9" && len(d.typed) < 9 {
		d.typed += k.key
		d.at = 0
		if d.typed == d.want {
			d.at = len(d.choices) - 1
		}
	}
	return nil, false
}

func (d *dialog) choose(i int) (tea.Cmd, bool) {
	c := d.choices[i]
	if c.then == nil {
		return nil, true
	}
	if d.typed != d.want {
		return nil, false
	}
	return c.then(), true
}

// view implements box.
func (d *dialog) view(th *theme, w, _ int) []string {
	inner := min(64, w-4)
	var body []string
	for _, line := range d.lines {
		body = append(body, wrap(line, inner)...)
	}
	if d.want != "" {
		body = append(body, "> "+d.typed+"_")
	}
	var buttons []string
	for i, c := range d.choices {
		name := " " + c.name + " "
		if c.key != "" {
			name = " " + c.name + " (" + c.key + ") "
		}
		if i == d.at {
			name = th.paint(chosen, "["+name+"]")
		} else {
			name = " " + name + " "
		}
		buttons = append(buttons, name)
	}
	body = append(body, "", strings.Join(buttons, " "))
	return boxed(th, d.title, body, inner)
}

// boxed draws a box around lines; inner is its width inside.
func boxed(th *theme, title string, lines []string, inner int) []string {
	if inner < 1 {
		return nil
	}
	title = cut(title+" ", inner)
	out := []string{"┌ " + th.paint(heading, title) + strings.Repeat("─", max(0, inner-width(title))) + "┐"}
	for _, line := range lines {
		out = append(out, "│ "+fit(line, inner)+"│")
	}
	return append(out, "└"+strings.Repeat("─", inner+1)+"┘")
}

// prompt is a line being typed at the bottom.
type prompt struct {
	lead string // what it is for
	text []rune
	act  action
}

// take acts on a key; done says that it was finished, ok that it was not given up.
func (p *prompt) take(k stroke) (done, ok bool) {
	switch k.key {
	case "enter":
		return true, true
	case "esc", "ctrl+c":
		return true, false
	case "backspace":
		p.text = p.text[:max(0, len(p.text)-1)]
	case "ctrl+w":
		text := strings.TrimRight(string(p.text), " ")
		p.text = []rune(text[:strings.LastIndexByte(text, ' ')+1])
	case "ctrl+u":
		p.text = nil
	case "space":
		p.text = append(p.text, ' ')
	default:
		if r := []rune(k.key); len(r) == 1 && len(p.text) < 500 {
			p.text = append(p.text, r...)
		}
	}
	return false, false
}

func (p *prompt) view(w int) string {
	text := []rune(clean(string(p.text)))
	for len(text) > 0 && width(p.lead)+width(string(text))+1 > w {
		text = text[1:]
	}
	return p.lead + string(text) + "_"
}
