package tui

import (
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

// stroke is one key. A burst is several that came in one piece: a paste, or a
// stalled line; nothing may be changed by one.
type stroke struct {
	key   string
	burst bool
}

const (
	// escWait is how long a lone escape may be the begin of a sequence that was
	// torn in two.
	escWait = 50 * time.Millisecond
	// burstGap is less than a person needs between two keys.
	burstGap = 5 * time.Millisecond
)

// keystream makes strokes of what the terminal library read.
type keystream struct {
	last  time.Time
	held  string // a torn sequence after its escape
	esc   bool   // an escape is held
	turns int    // escapes held so far, to know a stale wait
}

// take is called for each message of keys. With wait, flush is to be called
// after escWait with the number of the turn.
func (k *keystream) take(msg tea.KeyMsg, now time.Time) (out []stroke, wait bool) {
	burst := now.Sub(k.last) < burstGap || msg.Paste || len(msg.Runes) > 1
	k.last = now
	if k.esc {
		if msg.Type == tea.KeyRunes && !msg.Paste && !msg.Alt && torn(k.held+string(msg.Runes)) {
			k.held += string(msg.Runes)
			key, whole := sequences[k.held]
			if !whole {
				return nil, false
			}
			k.esc, k.held = false, ""
			return []stroke{{key, burst}}, false
		}
		out = k.release()
	}
	switch {
	case msg.Type == tea.KeyEsc:
		k.esc, k.turns = true, k.turns+1
		return out, true
	case msg.Type == tea.KeyRunes && !msg.Alt:
		for _, r := range msg.Runes {
			out = append(out, stroke{runeKey(r), burst})
		}
		return out, false
	}
	name := msg.String()
	if name == " " {
		name = "space"
	}
	return append(out, stroke{name, burst}), false
}

func runeKey(r rune) string {
	if r == ' ' {
		return "space"
	}
	return string(r)
}

// flush ends a wait.
func (k *keystream) flush(turn int) []stroke {
	if !k.esc || turn != k.turns {
		return nil
	}
	return k.release()
}

// release gives up the held escape: it was one.
func (k *keystream) release() []stroke {
	out := []stroke{{key: "esc"}}
	for _, r := range k.held {
		out = append(out, stroke{runeKey(r), true})
	}
	k.esc, k.held = false, ""
	return out
}

// sequences are what terminals send after an escape for the keys used here.
var sequences = map[string]string{
	"[A": "up", "[B": "down", "[C": "right", "[D": "left", "OA": "up", "OB": "down", "OC": "right", "OD": "left",
	"[H": "home", "[F": "end", "[1~": "home", "[4~": "end", "[5~": "pgup", "[6~": "pgdown", "[Z": "shift+tab",
}

// torn reports whether text begins one of the sequences.
func torn(text string) bool {
	for s := range sequences {
		if strings.HasPrefix(s, text) {
			return true
		}
	}
	return false
}
