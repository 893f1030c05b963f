package cli

import (
	"bufio"
	"context"
	"io"
	"time"

	"apollo11/engine/view"
)

// Env is the world as main found it.
type Env struct {
	Stdin    io.Reader
	Stdout   io.Writer
	Stderr   io.Writer
	Terminal bool             // stdout is one: tables fit it, what units printed is cleaned
	Ask      bool             // stdin is one: a person can answer
	Color    bool             // stdout is a terminal, and NO_COLOR is not set
	ASCII    bool             // the terminal shows nothing else
	Width    int              // columns of the terminal; 0: as wide as needed
	Now      func() time.Time // its location is the one that times are shown in
	AddrEnv  string           // APOLLO_ADDR; empty: not set
	Actor    string           // who asks, for the records
	Build    string           // of this program

	// Settings reads what a command needs of the configuration; file is
	// --config's. Nil: the defaults.
	Settings func(file string) (Settings, error)
	// FolderID is the id of a data folder, so that the address in it is not
	// taken for that of another controller; nil, or an empty id: not compared.
	FolderID func(dir string) string
	// Offline opens a data folder, a backup or a journal file for `replay --data`.
	Offline func(path string) (Timeline, error)

	poll time.Duration // between two questions of what is followed; 0: pollEvery
}

// Settings is the part of the configuration that commands look at.
type Settings struct {
	Data      string // the data folder
	TokenFile string // auth.operator_token_file
	Theme     string // console.theme
}

// Timeline is where replay reads from: a controller, or files.
type Timeline interface {
	Timeline(context.Context, view.EventQuery) (*view.EventPage, error)
}

const pollEvery = 250 * time.Millisecond

// app is one run of the program: the Env and the flags that all commands share.
type app struct {
	Env
	config    string
	data      string
	dataSet   bool
	addr      string
	tokenFile string
	json      bool
	noColor   bool
	out       *bufio.Writer // stdout; flushed before every wait and at the end
}

// pause waits, or returns why it should not go on.
func (a *app) pause(ctx context.Context, d time.Duration) error {
	if err := a.out.Flush(); err != nil {
		return err
	}
	if a.poll > 0 {
		d = a.poll
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a *app) paint() palette { return palette{on: a.Color && !a.noColor} }
