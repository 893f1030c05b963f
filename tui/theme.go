package tui

// style is what a piece of text is to the eye. Colour is never the only sign.
type style uint8

const (
	plain style = iota
	dim
	strong
	good
	warn
	bad
	busy
	heading
	bar    // the header and the status line
	chosen // the row under the cursor
	styles
)

// theme gives each style its SGR codes; empty: as plain. All are of the
// terminal's own sixteen colours, so that they fit what a person has set up.
type theme struct {
	name  string
	codes [styles]string
}

var themes = []theme{
	{"dark", [styles]string{dim: "90", strong: "1", good: "32", warn: "33", bad: "1;31", busy: "36", heading: "1;34", bar: "7", chosen: "7"}},
	{"light", [styles]string{dim: "90", strong: "1", good: "32", warn: "35", bad: "1;31", busy: "34", heading: "1;34", bar: "7", chosen: "7"}},
	{"mono", [styles]string{strong: "1", bad: "1", heading: "1", bar: "7", chosen: "7"}},
	{"colour-blind", [styles]string{dim: "90", strong: "1", good: "34", warn: "33", bad: "1;35", busy: "36", heading: "1", bar: "7", chosen: "7"}},
}

// themeAt finds a theme by name; what is not there is the first.
func themeAt(name string) int {
	for i := range themes {
		if themes[i].name == name {
			return i
		}
	}
	return 0
}

func (t *theme) paint(s style, text string) string {
	if t.codes[s] == "" || text == "" {
		return text
	}
	return "\x1b[" + t.codes[s] + "m" + text + "\x1b[0m"
}

// stateStyle is how states of tasks and executors look.
func stateStyle(state string) style {
	switch state {
	case "dead", "offline":
		return bad
	case "succeeded", "idle":
		return good
	case "retrying", "cancelled", "aborted", "draining":
		return warn
	case "running", "assigned":
		return busy
	case "skipped", "scheduled", "blocked":
		return dim
	}
	return plain
}
