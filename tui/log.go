package tui

import (
	"fmt"
	"strconv"
	"strings"

	tea "github.com/charmbracelet/bubbletea"
)

// logScreen is the program's own log, the wire's messages among it while debug
// is on.
type logScreen struct {
	list   list[logLine]
	all    []logLine
	next   int // number of the first line not read yet
	filter filter
	follow bool
}

type logLine struct {
	number int
	text   string
}

func newLogScreen() *logScreen {
	return &logScreen{list: newList(func(l *logLine) string { return strconv.Itoa(l.number) }), follow: true}
}

// ask reads the log, which is in memory; nothing is asked of the Source.
func (x *logScreen) ask(s *shared) request {
	if s.log == nil {
		return nil
	}
	lines, first := s.log.since(x.next)
	x.next = first + len(lines)
	for i, text := range lines {
		x.all = append(x.all, logLine{first + i, text})
	}
	if over := len(x.all) - logKept; over > 0 {
		x.all = append([]logLine(nil), x.all[over:]...)
	}
	if len(lines) > 0 {
		x.refilter()
	}
	return nil
}

func (x *logScreen) refilter() {
	rows := make([]logLine, 0, len(x.all))
	for _, l := range x.all {
		if x.filter.match(l.text) {
			rows = append(rows, l)
		}
	}
	x.list.set(rows)
	if x.follow {
		x.list.move(moveBottom)
	}
}

func (x *logScreen) take(*shared, any) {}

func (x *logScreen) do(s *shared, in input) (tea.Cmd, bool) {
	if x.list.move(in.act) {
		x.follow = x.list.cursor == len(x.list.rows)-1
		return nil, true
	}
	switch in.act {
	case live:
		x.follow = true
		x.list.move(moveBottom)
	case find:
		s.wordsOnly(&x.filter, in.text)
		x.refilter()
	case back:
		x.filter = filter{}
		x.refilter()
	default:
		return nil, false
	}
	return nil, true
}

func (x *logScreen) view(s *shared, w, h int) []string {
	if s.log == nil {
		return block([]string{
			" The log is the controller's own, and this console watches from outside.",
			" It is in the file apollo11.log of the controller's data folder.",
		}, w, h)
	}
	text := fmt.Sprintf("log: %s", plural(len(x.list.rows), "line"))
	if x.filter.text != "" {
		text += fmt.Sprintf(" of %d · filter %s", len(x.all), clean(x.filter.text))
	}
	if x.follow {
		text += " · following"
	} else {
		text += " · L follows"
	}
	if s.over.Status.Debug {
		text += " · debug: every message"
	}
	lines := []string{fit(" "+s.theme.paint(strong, text), w)}
	return append(lines, x.list.view(s.theme, []column{{title: "", wide: 10, share: true}}, w, h-1, logCells)...)
}

// logCells shows a line by how grave it is.
func logCells(l *logLine) []cell {
	text, tone := l.text, plain
	switch {
	case strings.Contains(text, "level=ERROR"):
		tone = bad
	case strings.Contains(text, "level=WARN"):
		tone = warn
	case strings.Contains(text, "level=DEBUG"):
		tone = dim
	}
	if rest, ok := strings.CutPrefix(text, "time="); ok && len(rest) > 20 && rest[10] == 'T' {
		text = rest[11:] // the day is seldom the question
	}
	return []cell{{text, tone}}
}

func (x *logScreen) detail(s *shared, w int) []string {
	if s.log == nil || x.list.at() == nil {
		return nil
	}
	if s.split {
		return nil // a line needs the width more than its detail does
	}
	return wrap(x.list.at().text, w)
}
