package tui

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"apollo11/engine/view"
)

const (
	leastWidth, leastHeight = 60, 15
	// splitFrom is the width from which details stand beside lists.
	splitFrom = 120
	// aroundBody are the lines that are not a screen's own: header, status, hints.
	aroundBody = 3
)

// render is one frame: exactly h lines of exactly w columns.
func (m *model) render() string {
	if m.w <= 0 || m.h <= 0 {
		return ""
	}
	lines := m.lines()
	if m.o.ASCII {
		for i := range lines {
			lines[i] = toASCII(lines[i])
		}
	}
	return strings.Join(lines, "\n")
}

func (m *model) lines() []string {
	if m.w < leastWidth || m.h < leastHeight {
		text := fmt.Sprintf("apollo11 wants %dx%d: %dx%d is too small", leastWidth, leastHeight, m.w, m.h)
		return block(append(wrap(text, m.w), "q leaves"), m.w, m.h)
	}
	body := m.body(m.h - aroundBody - m.stripHeight())
	if h := m.stripHeight(); h > 0 {
		body = append(body, block(m.s.strip.strip(m.s, m.w, h), m.w, h)...)
	}
	if b := m.s.box; b != nil {
		body = over(body, b.view(m.s.theme, m.w, len(body)), m.w)
	}
	out := make([]string, 0, m.h)
	out = append(out, m.header())
	out = append(out, body...)
	return append(out, m.status(), m.bottom())
}

// stripHeight is the lines of the last records under a screen that does not
// show them itself; only a large terminal has room for them.
func (m *model) stripHeight() int {
	if m.w < 200 || m.h < 60 || m.at == onMission || m.at == onTimeline {
		return 0
	}
	return 10
}

// header names the screens, in fewer words where there is less room.
func (m *model) header() string {
	line := " APOLLO 11 "
	names := func(format string) (text string) {
		for id := onMission; id < screens; id++ {
			switch {
			case m.screens[id] == nil:
			case id == m.at:
				text += fmt.Sprintf("[%d %s]", id, id)
			default:
				text += fmt.Sprintf(format, id, id)
			}
		}
		return text
	}
	switch full, some := names(" %d %s "), names(" %d %s"); {
	case width(line+full) <= m.w:
		line += full
	case width(some) <= m.w:
		line = some
	default:
		line = names(" %d%.0s ")
	}
	if m.o.Title != "" && m.w-width(line) > width(m.o.Title)+1 {
		line += fitRight(clean(m.o.Title)+" ", m.w-width(line))
	}
	return m.s.theme.paint(bar, fit(line, m.w))
}

// body is the screen, or what lies over it.
func (m *model) body(h int) []string {
	switch m.overlay {
	case helpOverlay:
		return m.text(helpLines(m.at, m.w-2), m.w, h)
	case noticeOverlay:
		return m.text(m.noticeLines(), m.w, h)
	case explainOverlay:
		return m.text(m.s.why.lines(m.s, m.w-2), m.w, h)
	case detailOverlay:
		if lines := m.screens[m.at].detail(m.s, m.w-1); lines != nil {
			return m.text(lines, m.w, h)
		}
	}
	if !m.s.split {
		return m.screens[m.at].view(m.s, m.w, h)
	}
	right := m.w / 3
	if m.w >= 160 {
		right = m.w * 2 / 5
	}
	lines := m.screens[m.at].detail(m.s, right-1)
	if lines == nil {
		return m.screens[m.at].view(m.s, m.w, h)
	}
	middle := "│"
	if m.focus {
		middle = m.s.theme.paint(busy, "█")
	}
	return beside(m.screens[m.at].view(m.s, m.w-right-1, h), m.text(lines, right, h), middle)
}

// text is lines scrolled, with a mark where there is more.
func (m *model) text(lines []string, w, h int) []string {
	if m.overlay != noOverlay || m.focus {
		m.scroll = max(0, min(m.scroll, len(lines)-h))
		lines = lines[m.scroll:]
	}
	out := make([]string, 0, h)
	for _, line := range lines[:min(len(lines), h)] {
		out = append(out, " "+line)
	}
	if more := len(lines) - h; more > 0 {
		out[h-1] = m.s.theme.paint(dim, fmt.Sprintf(" … %s", plural(more+1, "more line")))
	}
	return block(out, w, h)
}

func (m *model) noticeLines() []string {
	lines := []string{"what was said, the newest first", ""}
	for i := len(m.s.notices) - 1; i >= 0; i-- {
		n := m.s.notices[i]
		for j, part := range wrap(n.text, m.w-12) {
			lead := strings.Repeat(" ", 10)
			if j == 0 {
				lead = n.at.Format(time.TimeOnly) + "  "
			}
			lines = append(lines, lead+part)
		}
	}
	return lines
}

// status is the one line whose text is volatile.
func (m *model) status() string {
	s, now := m.s, m.s.clock()
	var parts []string
	switch {
	case s.heard.IsZero() && s.fault == "":
		parts = append(parts, "CONNECTING")
	case s.fault != "":
		parts = append(parts, "NO DATA "+ageBucket(now.Sub(s.heard)), s.fault)
		if s.heard.IsZero() {
			parts[len(parts)-2] = "NO DATA"
		}
	default:
		parts = append(parts, "LIVE seq "+strconv.FormatInt(s.over.Status.Seq, 10), "data "+ageBucket(now.Sub(s.heard)))
	}
	st := &s.over.Status
	for _, badge := range []struct {
		on   bool
		text string
	}{{st.DiskFull, "DISK FULL"}, {st.Debug, debugBadge(st)}, {st.Paused, "PAUSED"}, {st.PausedTypes != "", "PAUSED " + st.PausedTypes}} {
		if badge.on {
			parts = append(parts, badge.text)
		}
	}
	role := "operate"
	if m.o.ReadOnly {
		role = "watch"
	}
	right := " · " + role + " · " + now.Format(time.TimeOnly) + " "
	line := fit(" "+strings.Join(parts, " · "), m.w-width(right)) + right
	if s.fault != "" {
		return s.theme.paint(bad, line)
	}
	return s.theme.paint(bar, line)
}

// debugBadge says how long debug stays, if it goes off by itself.
func debugBadge(st *view.Status) string {
	if st.DebugLeftMS == 0 {
		return "DEBUG"
	}
	return "DEBUG " + ageBucket(time.Duration(st.DebugLeftMS)*time.Millisecond)
}

// bottom is what is typed, what was said last, or the keys worth knowing.
func (m *model) bottom() string {
	if m.prompt != nil {
		return fit(m.prompt.view(m.w), m.w)
	}
	if n := len(m.s.notices); n > 0 {
		last := &m.s.notices[n-1]
		if !last.read && m.s.clock().Sub(last.at) < noticeTime {
			tone := strong
			if last.bad {
				tone = bad
			}
			return m.s.theme.paint(tone, fit(" "+last.text, m.w))
		}
	}
	if m.s.box != nil {
		return strings.Repeat(" ", m.w) // the keys of the screen do not count now
	}
	lead := m.overlay.keys()
	return m.s.theme.paint(dim, fit(" "+lead+m.overlay.hints(m.at, m.w-1-width(lead)), m.w))
}

// keys are those that an overlay has of its own.
func (o overlay) keys() string {
	const text = "esc closes · j k scroll · "
	switch o {
	case noOverlay, detailOverlay:
		return ""
	case explainOverlay:
		return text + "i asks again · "
	}
	return text
}

// hints are the screen's keys that count while an overlay is before it.
func (o overlay) hints(at screenID, w int) string {
	switch o {
	case helpOverlay, noticeOverlay:
		return "q leave"
	case explainOverlay:
		return "? help · q leave"
	case detailOverlay:
		return strings.Replace(hints(at, w), "enter open", "esc closes", 1)
	}
	return hints(at, w)
}
