package tui

import (
	"fmt"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// shared is what all screens look at; Update alone writes it.
type shared struct {
	source   Source
	clock    func() time.Time
	describe func(*view.Event) (text string, alarm bool)
	log      *Log
	write    func(string) error // to the terminal, beside the frames; nil: nowhere
	theme    *theme

	over    *view.Overview // the newest that came; never nil
	heard   time.Time      // when; zero: none came yet
	fault   string         // why the newest did not come; empty: it did
	pulse   pulse
	ages    bool // times as ages
	notices []notice
	box     box            // over everything; nil: none
	boxed   time.Time      // when it was opened
	why     explaining     // what the explain overlay shows
	strip   *missionScreen // the last records, for all screens
	split   bool           // there is room for details beside lists
}

// notice is what was said at the bottom of the screen.
type notice struct {
	at   time.Time
	text string
	bad  bool
	read bool // a key was pressed since
}

const (
	noticeTime = 3 * time.Second // how long one stands at the bottom, if no key comes before
	noticeKept = 100
)

func (s *shared) say(format string, args ...any) { s.note(false, fmt.Sprintf(format, args...)) }
func (s *shared) complain(err error)             { s.note(true, clean(err.Error())) }
func (s *shared) note(bad bool, text string) {
	s.notices = append(s.notices, notice{at: s.clock(), text: text, bad: bad})
	s.notices = s.notices[max(0, len(s.notices)-noticeKept):]
}

// takeOverview takes a new overview in.
func (s *shared) takeOverview(o *view.Overview, now time.Time) {
	s.pulse.take(s.over, o, now)
	s.over, s.heard, s.fault = o, now, ""
}

// shift is how far the controller's clock is ahead of ours.
func (s *shared) shift() time.Duration {
	if s.heard.IsZero() || s.over.Status.Now.IsZero() {
		return 0
	}
	return s.over.Status.Now.Sub(s.heard)
}

// moment is a time as lists show it.
func (s *shared) moment(t view.Time) string {
	now := s.clock()
	switch {
	case t.IsZero():
		return "-"
	case s.ages:
		return ageBucket(now.Add(s.shift()).Sub(t.Time))
	}
	local := t.In(now.Location())
	if local.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return local.Format(time.TimeOnly)
	}
	return local.Format("Jan _2 15:04")
}

// ageBucket is an age in steps, so that a screen of them does not change with
// every second.
func ageBucket(d time.Duration) string {
	for _, step := range []struct {
		under time.Duration
		name  string
	}{{2 * time.Second, "<2s"}, {5 * time.Second, "<5s"}, {10 * time.Second, "<10s"}, {30 * time.Second, "<30s"}, {time.Minute, "<1m"}} {
		if d < step.under {
			return step.name
		}
	}
	switch {
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

// span is a duration in short.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
}

// plural is a count with its noun.
func plural[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// pairs shows values in one line.
func pairs(values view.Object) string {
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = v.Name + "=" + task.Shown(v.Value)
	}
	return strings.Join(parts, " ")
}

// pulse knows when executors were heard, and how fast work ends.
type pulse struct {
	beats map[string]time.Time // by executor: when a beat was seen last
	rates []float64            // results a second, one a second, the newest last
	rated time.Time
}

const (
	beatShown = 700 * time.Millisecond
	ratesKept = 300
)

func (p *pulse) take(before, now *view.Overview, at time.Time) {
	old := make(map[string]int64, len(before.Executors))
	for i := range before.Executors {
		old[before.Executors[i].ID] = before.Executors[i].HeartbeatMS
	}
	beats := make(map[string]time.Time, len(now.Executors))
	for i := range now.Executors {
		e := &now.Executors[i]
		beats[e.ID] = p.beats[e.ID]
		if was, known := old[e.ID]; e.HeartbeatMS >= 0 && e.State != "offline" && (!known || was < 0 || e.HeartbeatMS < was) {
			beats[e.ID] = at
		}
	}
	p.beats = beats
	if at.Sub(p.rated) >= time.Second {
		p.rates = append(p.rates, now.PerSecond)
		p.rates = p.rates[max(0, len(p.rates)-ratesKept):]
		p.rated = at
	}
}

// mark is an executor's heart: full for a moment after each beat.
func (p *pulse) mark(id string, now time.Time) string {
	if at := p.beats[id]; !at.IsZero() && now.Sub(at) < beatShown {
		return "♥"
	}
	return "♡"
}

// input is a key's action as a screen gets it, with the text of a prompt.
type input struct {
	act  action
	text string
}

// screen is one of the numbered views. No method waits.
type screen interface {
	// ask is what the screen wants to know now; nil: nothing.
	ask(*shared) request
	// take takes the answer in.
	take(*shared, any)
	// do acts on a key; taken is false if the screen has no use for it.
	do(*shared, input) (cmd tea.Cmd, taken bool)
	// view is exactly h lines of w columns.
	view(s *shared, w, h int) []string
	// detail is all that is known of what the cursor is on, wrapped to w
	// columns; nil: the screen has no details.
	detail(s *shared, w int) []string
}
