package tui

import (
	"strings"
	"sync"
)

// logKept is how many lines a Log keeps.
const logKept = 5000

// Log is where the program's log goes while the screen is up: a writer that
// keeps the last lines. It never waits for the screen, which looks when it
// likes.
type Log struct {
	mu    sync.Mutex // writers, and the screen that reads
	lines []string   // cleaned
	first int        // number of the oldest line kept
	part  string     // a line without its end yet
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := l.part + string(p)
	for {
		line, rest, whole := strings.Cut(text, "\n")
		if !whole {
			break
		}
		l.lines = append(l.lines, clean(strings.TrimRight(line, "\r")))
		text = rest
	}
	l.part = text[max(0, len(text)-64<<10):]
	if over := len(l.lines) - logKept; over > logKept/4 {
		l.lines = append([]string(nil), l.lines[over:]...)
		l.first += over
	}
	return len(p), nil
}

// since returns the lines from number from on, and the number of the first of
// them.
func (l *Log) since(from int) (lines []string, first int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first = max(from, l.first)
	if first-l.first >= len(l.lines) {
		return nil, l.first + len(l.lines)
	}
	return append([]string(nil), l.lines[first-l.first:]...), first
}
