package tui

import (
	"fmt"
	"strconv"
	"strings"
	"time"

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
	return append(lines, x.list.view(s.theme, logColumns, w, h-1, logCells(s.clock().Location()))...)
}

var logColumns = []column{{title: "TIME", wide: 12}, {title: "WHAT", wide: 20, share: true}}

// logCells shows a line by how grave it is.
func logCells(zone *time.Location) func(*logLine) []cell {
	return func(l *logLine) []cell {
		at, level, text := readLog(l.text, zone)
		tone := plain
		switch level {
		case "ERROR":
			tone, text = bad, "error: "+text
		case "WARN":
			tone, text = warn, "warning: "+text
		case "DEBUG":
			tone = dim
		}
		return []cell{{at, dim}, {text, tone}}
	}
}

// readLog takes a line of our log apart; one that is not of it is all text.
func readLog(line string, zone *time.Location) (at, level, text string) {
	stamp, rest := logField(line, "time")
	when, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return "", "", line
	}
	level, rest = logField(rest, "level")
	text, rest = logField(rest, "msg")
	if text == tapped {
		text, rest = "", tapText(rest)
	}
	return when.In(zone).Format("15:04:05.000"), level, strings.TrimSpace(text + "  " + rest)
}

// logField takes a field off the begin of a line; one that is not there is empty.
func logField(line, name string) (value, rest string) {
	value, ok := strings.CutPrefix(line, name+"=")
	if !ok {
		return "", line
	}
	if quoted, err := strconv.QuotedPrefix(value); err == nil {
		plain, _ := strconv.Unquote(quoted)
		return clean(plain), strings.TrimPrefix(value[len(quoted):], " ")
	}
	value, rest, _ = strings.Cut(value, " ")
	return value, rest
}

// tapped is what the controller says of each message while debug is on.
const tapped = "message"

// tapText is a message on the wire: which way, with whom, what.
func tapText(rest string) string {
	direction, after := logField(rest, "direction")
	peer, after := logField(after, "peer")
	_, after = logField(after, "type") // the text has it
	text, _ := logField(after, "text")
	way := map[string]string{"in": "<- ", "out": "-> "}[direction]
	if way == "" {
		return rest
	}
	return way + fit(peer, 21) + " " + strings.ReplaceAll(text, `\n`, " ")
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
