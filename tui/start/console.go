package start

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	"apollo11/tui"
	"apollo11/tui/cli"
)

// voice is where log lines go beside the file: the log pane while the screen is
// up, the terminal after that.
type voice struct {
	mu sync.Mutex // writers, and who turns it
	to io.Writer
}

// Write implements io.Writer.
func (v *voice) Write(p []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.to.Write(p)
}

func (v *voice) turn(to io.Writer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.to = to
}

// screen says why there is no console here; empty: there can be one.
func (p *program) screen() string {
	switch {
	case !term.IsTerminal(int(p.Stdin.Fd())) || !term.IsTerminal(int(p.Stdout.Fd())):
		return "no terminal"
	case p.variable("TERM") == "" || p.variable("TERM") == "dumb":
		return "the terminal can't show a screen (TERM)"
	}
	return ""
}

// ascii reports whether the terminal shows nothing else: an old one, or one
// whose locale is not UTF-8.
func (p *program) ascii() bool {
	switch name := p.variable("TERM"); {
	case name == "linux" || strings.HasPrefix(name, "vt"):
		return true
	}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := strings.ToLower(p.variable(name)); value != "" {
			return !strings.Contains(value, "utf-8") && !strings.Contains(value, "utf8")
		}
	}
	return true // the C locale
}

// theme resolves auto by what the terminal says of itself, without asking it.
func (p *program) theme(name string) string {
	if name != "auto" {
		return name
	}
	colors := p.variable("COLORFGBG")
	if strings.HasSuffix(colors, ";7") || strings.HasSuffix(colors, ";15") {
		return "light"
	}
	return "dark"
}

// withConsole runs a controller with the console on it; beside is work that
// begins with it, nil: none.
func (s *serve) withConsole(ctx context.Context, beside tour) error {
	log := &tui.Log{}
	v := &voice{to: log}
	s.words = v
	token, err := cli.ReadToken(s.config.Auth.OperatorTokenFile)
	if err != nil {
		return err
	}
	return s.run(ctx, func(ctx context.Context, addr string) error {
		working, enough := context.WithCancel(ctx)
		worked := make(chan error, 1)
		go func() {
			if beside == nil {
				worked <- nil
				return
			}
			worked <- beside(working, addr)
		}()
		err := s.console(ctx, v, cli.Console{
			Addr: addr, Token: token, Title: s.config.Data, Theme: s.theme(s.config.Console.Theme), Log: log, Embedded: true,
		})
		enough()
		if failed := <-worked; failed != nil && !errors.Is(failed, context.Canceled) {
			s.log.Error("the demo's work", "error", failed)
		}
		return err
	})
}

// console shows the screen. A person who leaves it, or a terminal that goes
// away, ends no work: the process goes on without one until it is stopped.
func (s *serve) console(ctx context.Context, v *voice, c cli.Console) error {
	verdict, err := s.Console(ctx, c)
	v.turn(s.Stdout)
	switch {
	case errors.Is(err, tui.ErrScreen):
		s.log.Warn("the console ended, the controller goes on", "error", err)
	case err != nil:
		return err
	case verdict == tui.Stop:
		return nil
	}
	fmt.Fprintf(s.Stderr, "apollo11: detached: the controller goes on here, process %d, %s; ctrl+c stops it\n", os.Getpid(), c.Addr)
	fmt.Fprintf(s.Stderr, "hint: %s\n", s.attachAgain())
	<-ctx.Done()
	return nil
}
