package start

import (
	"os"
	"strings"
	"testing"
)

func TestWhatTheTerminalCanShow(t *testing.T) {
	for _, c := range []struct {
		environ string
		ascii   bool
		theme   string // of auto
	}{
		{"TERM=xterm LANG=en_US.UTF-8", false, "dark"}, {"TERM=xterm LANG=C.utf8 COLORFGBG=0;15", false, "light"},
		{"TERM=linux LANG=en_US.UTF-8 COLORFGBG=15;0", true, "dark"}, {"TERM=vt100 LANG=en_US.UTF-8", true, "dark"},
		{"TERM=xterm LANG=en_US.UTF-8 LC_ALL=C", true, "dark"}, {"TERM=xterm", true, "dark"}, {"TERM=xterm LC_CTYPE=UTF-8", false, "dark"},
	} {
		p := &program{World: World{Environ: strings.Fields(c.environ)}}
		if p.ascii() != c.ascii || p.theme("auto") != c.theme || p.theme("mono") != "mono" {
			t.Errorf("%s: ascii %v, theme %s", c.environ, p.ascii(), p.theme("auto"))
		}
	}
}

func TestNoScreenWithoutATerminal(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	p := &program{World: World{Stdin: null, Stdout: null, Environ: []string{"TERM=xterm"}}}
	if p.screen() != "no terminal" {
		t.Error(p.screen())
	}
}

// A terminal that shows no screen gets log lines, and is told why.
func TestDumbTerminal(t *testing.T) {
	p := onTerminalAs(t, t.TempDir(), "dumb")
	p.sees("can't show a screen")
	p.sees("controller ready")
	p.asked()
}
