package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"apollo11/engine/task"
	"apollo11/wire"
)

// addrFile is where a running controller says where it listens.
const addrFile = "ADDR"

// target is a controller's address, with where it was found.
type target struct {
	addr   string
	folder string // id of the data folder that is meant; empty: any
	source string // for messages
}

// online is a command that talks to a controller.
func (a *app) online(run func(ctx context.Context, c *wire.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := a.dial(cmd.Context())
		if err != nil {
			return err
		}
		defer c.Close()
		if err := run(cmd.Context(), c, args); err != nil {
			return a.failure(err)
		}
		return nil
	}
}

// Reach connects to the controller for a command that can do without. Both are
// nil if there is none, unless its address was given.
func (p *Program) Reach(ctx context.Context) (*wire.Client, error) {
	c, err := p.app.dial(ctx)
	var exit *ExitError
	if p.app.addr == "" && p.app.AddrEnv == "" && errors.As(err, &exit) && exit.Code == Unreachable {
		return nil, nil
	}
	return c, err
}

func (a *app) dial(ctx context.Context) (*wire.Client, error) { return a.dialAs(ctx, false) }

// dialAs connects; quiet: what is read is kept out of the log of every message.
func (a *app) dialAs(ctx context.Context, quiet bool) (*wire.Client, error) {
	at, err := a.find()
	if err != nil {
		return nil, err
	}
	token, err := a.token()
	if err != nil {
		return nil, err
	}
	c, err := wire.Dial(ctx, at.addr, wire.ClientOptions{Token: token, Folder: at.folder, Actor: a.Actor, Build: a.Build, Quiet: quiet})
	if err == nil {
		return c, nil
	}
	var said *wire.Error
	if errors.As(err, &said) && said.Code != wire.CodeWrongFolder || errors.Is(err, context.Canceled) {
		return nil, a.failure(err)
	}
	hint := "apollo11 --no-tui"
	if at.source != "" {
		err = fmt.Errorf("%s: %w", at.source, err)
	}
	if a.dataSet {
		hint += " --data " + a.data
	}
	return nil, &ExitError{Code: Unreachable, Err: fmt.Errorf("controller: %w", err), Hint: "is it running? start it: " + hint}
}

// find looks for the address: --addr, APOLLO_ADDR, the data folder.
func (a *app) find() (target, error) {
	for _, given := range []target{{addr: a.addr, source: "--addr"}, {addr: a.AddrEnv, source: "APOLLO_ADDR"}} {
		if given.addr == "" {
			continue
		}
		if _, _, err := net.SplitHostPort(given.addr); err != nil {
			return target{}, usage("apollo11 status --addr 127.0.0.1:7011", "%s: %s: want host:port", given.source, given.addr)
		}
		return given, nil
	}
	dir, err := a.folder()
	if err != nil {
		return target{}, err
	}
	file := filepath.Join(dir, addrFile)
	addr, err := readLine(file)
	if err != nil {
		why := err
		if errors.Is(err, os.ErrNotExist) {
			why = errors.New("no controller runs on it")
		}
		return target{}, &ExitError{
			Code: Unreachable, Err: fmt.Errorf("controller: data folder %s: %w", dir, why),
			Hint: "start one: apollo11 --no-tui --data " + dir + ", or say where it is: --addr HOST:PORT",
		}
	}
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return target{}, &ExitError{Code: Unreachable, Err: fmt.Errorf("controller: %s: %q is not host:port", file, addr), Hint: "rm " + file}
	}
	at := target{addr: addr, source: file}
	if a.FolderID != nil {
		at.folder = a.FolderID(dir)
	}
	return at, nil
}

// folder is the data folder: --data, else the configuration's.
func (a *app) folder() (string, error) {
	if a.data != "" {
		return a.data, nil
	}
	s, err := a.settings()
	if err != nil || s.Data == "" {
		s.Data = "data"
	}
	return s.Data, err
}

func (a *app) settings() (Settings, error) {
	if a.Settings == nil {
		return Settings{}, nil
	}
	s, err := a.Settings(a.config)
	if exit := (*ExitError)(nil); err != nil && !errors.As(err, &exit) {
		err = &ExitError{Code: Usage, Err: err}
	}
	return s, err
}

// token reads the operator's token; empty: none.
func (a *app) token() (string, error) {
	name := a.tokenFile
	if name == "" {
		s, err := a.settings()
		if err != nil {
			if a.addr != "" || a.AddrEnv != "" {
				return "", nil // a broken config here says nothing of a controller there
			}
			return "", err
		}
		name = s.TokenFile
	}
	return ReadToken(name)
}

// ReadToken reads a token's file, which nobody but its owner may read; without a
// name there is none.
func ReadToken(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	if info, err := os.Stat(name); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return "", usage("chmod 600 "+name, "token file %s: mode %04o: others can read it", name, info.Mode().Perm())
	}
	token, err := readLine(name)
	if err == nil && token == "" {
		err = errors.New("is empty")
	}
	if err != nil {
		return "", usage("", "token file %s: %w", name, err)
	}
	return token, nil
}

// readLine reads a small file of one line.
func readLine(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", bare(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 4096))
	return strings.TrimSpace(string(data)), bare(err)
}

// bare takes the operation and the path off an error: the caller names them.
func bare(err error) error {
	if path := (*os.PathError)(nil); errors.As(err, &path) {
		return path.Err
	}
	return err
}

// failure gives what went wrong at or with the controller its code and hint.
func (a *app) failure(err error) error {
	var exit *ExitError
	var output *outputError
	var said *wire.Error
	switch {
	case errors.As(err, &exit), errors.As(err, &output):
		return err
	case errors.As(err, &said):
		code, hint := meaning(said.Code)
		return &ExitError{Code: code, Err: err, Hint: hint}
	case errors.Is(err, context.Canceled):
		return &ExitError{Code: Failed, Err: errors.New("interrupted")}
	case isLink(err):
		return &ExitError{Code: Unreachable, Err: fmt.Errorf("controller: connection lost: %w", err), Hint: "apollo11 status"}
	}
	return err
}

// isLink reports whether the connection is to blame.
func isLink(err error) bool {
	var network net.Error
	var op *net.OpError
	return errors.As(err, &network) || errors.As(err, &op) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, wire.ErrClosed) || errors.Is(err, wire.ErrDrip) || errors.Is(err, wire.ErrSlowReader)
}

// isCode reports whether it is the controller's refusal of that kind.
func isCode(err error, code wire.Code) bool { return errors.Is(err, &wire.Error{Code: code}) }

// notFound reports whether the one that was asked knows no such thing.
func notFound(err error) bool { return isCode(err, wire.CodeNotFound) }

// meaning is what a controller's error code is to a person.
func meaning(code wire.Code) (Code, string) {
	switch code {
	case wire.CodeUnauthorized, wire.CodeForbidden:
		return Refused, "apollo11 … --token-file FILE, with the operators' token"
	case wire.CodeWrongFolder, wire.CodeBusy, wire.CodeTimeout:
		return Unreachable, ""
	case wire.CodeNotFound:
		return Failed, "apollo11 tasks"
	case wire.CodeDiskFull:
		return Failed, "free room on the disk of the data folder; it goes on by itself"
	case wire.CodeStopping:
		return Failed, "start it again: apollo11 --no-tui"
	}
	return Failed, ""
}

// clean is text from elsewhere, fit for a message.
func clean(s string) string { return task.Printable(s) }
