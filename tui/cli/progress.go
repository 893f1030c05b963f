package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Progress tells how far long work has come: a bar with rate and time left on a
// terminal, a line now and then elsewhere. It says nothing of work that is done
// before a person would ask.
type Progress struct {
	w        io.Writer
	terminal bool
	now      func() time.Time
	did      string // past tense: "submitted"
	total    int    // 0: not known
	begun    time.Time
	shown    time.Time
	drawn    bool // a bar stands on the terminal's last line
}

const (
	barEvery  = 100 * time.Millisecond
	lineEvery = 10 * time.Second
	patience  = 500 * time.Millisecond // before the first bar
)

// Progress begins to tell of work, for main's own commands; did is in the past
// tense, total may be 0 for unknown.
func (p *Program) Progress(did string, total int) *Progress { return p.app.progress(did, total) }

func (a *app) progress(did string, total int) *Progress {
	now := a.Now()
	return &Progress{w: a.Stderr, terminal: a.Terminal, now: a.Now, did: did, total: total, begun: now, shown: now}
}

// Show is called as often as the caller likes; done counts from 0 to total.
func (p *Progress) Show(done int) {
	now := p.now()
	every := lineEvery
	if p.terminal {
		every = barEvery
		if !p.drawn {
			every = patience
		}
	}
	if now.Sub(p.shown) < every {
		return
	}
	p.shown = now
	if !p.terminal {
		fmt.Fprintln(p.w, p.line(done, now))
		return
	}
	p.drawn = true
	fmt.Fprintf(p.w, "\r\x1b[K%s%s", p.bar(done), p.line(done, now))
}

// Clear takes the bar away, so that words can follow.
func (p *Progress) Clear() {
	if p.drawn {
		io.WriteString(p.w, "\r\x1b[K")
		p.drawn = false
	}
}

func (p *Progress) bar(done int) string {
	const width = 20
	if p.total <= 0 {
		return ""
	}
	full := min(width, width*done/p.total)
	return "[" + strings.Repeat("=", full) + strings.Repeat(" ", width-full) + "] "
}

// perSecond is a rate, to three digits below a hundred.
func perSecond(each float64) string {
	if each < 100 {
		return fmt.Sprintf("%.3g/s", each)
	}
	return fmt.Sprintf("%.0f/s", each)
}

func (p *Progress) line(done int, now time.Time) string {
	text := fmt.Sprintf("%d %s", done, p.did)
	if p.total > 0 {
		text = fmt.Sprintf("%d of %d %s", done, p.total, p.did)
	}
	passed := now.Sub(p.begun)
	if done == 0 || passed <= 0 {
		return text
	}
	text += ", " + perSecond(float64(done)/passed.Seconds())
	if left := p.total - done; left > 0 {
		text += ", " + span(time.Duration(float64(passed)/float64(done)*float64(left))) + " left"
	}
	return text
}
