package server

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"apollo11/engine"
	"apollo11/engine/view"
	"apollo11/wire"
)

const (
	admission   = 5 * time.Second // to register or say hello
	parting     = time.Second     // for a peer to take the last message
	perAddress  = 1024            // connections of one address before they are admitted
	allAddress  = 2048            // of all addresses
	acceptPause = 50 * time.Millisecond
)

// ErrOpenAddress refuses to listen where anybody could come in.
var ErrOpenAddress = errors.New("listening beyond this machine needs an executor and an operator token")

// Engine is what the server asks: *engine.Engine.
type Engine interface {
	Post(asks []engine.Ask)
	Do(ctx context.Context, c engine.Command) (engine.Answer, error)
	StateVersion() uint64
	Debugging() bool
}

// Options say how to serve. Engine is needed, and Addr or Listener.
type Options struct {
	Addr           string
	Listener       net.Listener // instead of Addr
	Engine         Engine
	Log            *slog.Logger                                                   // nil: none
	ExecutorToken  string                                                         // empty: executors need none
	OperatorToken  string                                                         // empty: operators need none
	Insecure       bool                                                           // listen beyond this machine without tokens
	MaxFrame       int                                                            // 0: wire.MaxFrame
	MaxConnections int                                                            // 0: 20000
	Folder         string                                                         // the data folder's id, for hello
	Build          string                                                         // told in hello
	LogDir         string                                                         // for what units print; empty: it is not kept
	LogKeep        time.Duration                                                  // of those files; 0: for ever
	LogSize        int64                                                          // of all of them together, about; 0: no limit
	Timeline       func(context.Context, view.EventQuery) (view.EventPage, error) // nil: unavailable
	Past           Past                                                           // nil: unavailable
}

// Server takes connections until it is stopped.
type Server struct {
	o        Options
	log      *slog.Logger
	listener net.Listener
	logs     *taskLogs
	counts   Counts
	ctx      context.Context // ends when Stop is called
	cancel   context.CancelFunc
	group    sync.WaitGroup // the sessions' goroutines

	mu       sync.Mutex // guards what follows
	sessions map[*session]netip.Addr
	strange  map[netip.Addr]int // sessions not admitted yet, by address
	stranger int                // all of them
}

// Counts counts what a person may want to know of the connections since the start.
type Counts struct {
	Malformed atomic.Int64 // messages
	Skipped   atomic.Int64 // lines without an equals sign
	Refused   atomic.Int64 // connections that were not let in
	Panics    atomic.Int64 // connections closed for a fault of ours
}

// Listen opens the address; connections are taken by Serve.
func Listen(o Options) (*Server, error) {
	if o.Engine == nil {
		panic("server: Options.Engine is missing")
	}
	if o.MaxFrame <= 0 || o.MaxFrame > wire.MaxFrame {
		o.MaxFrame = wire.MaxFrame
	}
	if o.MaxConnections <= 0 {
		o.MaxConnections = 20_000
	}
	s := &Server{o: o, log: o.Log, sessions: map[*session]netip.Addr{}, strange: map[netip.Addr]int{}}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if err := s.open(); err != nil {
		return nil, err
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Bind takes the address alone, for Options.Listener: what of Options speaks of
// coming in is all it asks for.
func Bind(o *Options) (net.Listener, error) {
	if err := o.guarded(o.Addr); err != nil {
		return nil, err
	}
	return net.Listen("tcp", o.Addr)
}

// open checks the address before anybody can come in through it.
func (s *Server) open() (err error) {
	s.listener = s.o.Listener
	if s.listener == nil {
		if s.listener, err = Bind(&s.o); err != nil {
			return err
		}
	}
	if err := s.o.guarded(s.listener.Addr().String()); err != nil {
		s.listener.Close()
		return err
	}
	if s.o.LogDir != "" {
		if s.logs, err = openTaskLogs(s.o.LogDir, s.o.LogKeep, s.o.LogSize); err != nil {
			s.listener.Close()
			return err
		}
	}
	return nil
}

func (o *Options) guarded(addr string) error {
	if o.Insecure || o.ExecutorToken != "" && o.OperatorToken != "" || loopback(addr) {
		return nil
	}
	return fmt.Errorf("listen on %s: %w", addr, ErrOpenAddress)
}

func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr == "pipe" || addr == "bufconn" // a listener inside this process
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// Addr is where the server listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Counts are the server's counters.
func (s *Server) Counts() *Counts { return &s.counts }

// Serve takes connections until Stop; it returns nil then.
func (s *Server) Serve() error {
	for {
		nc, err := s.listener.Accept()
		switch {
		case err == nil:
			s.admit(nc)
		case s.ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		default: // such as no file left: it gets better when a connection goes
			s.log.Warn("cannot take a connection", "error", err)
			select {
			case <-time.After(acceptPause):
			case <-s.ctx.Done():
			}
		}
	}
}

// admit starts a session, or refuses it.
func (s *Server) admit(nc net.Conn) {
	if err := wire.SetKeepAlive(nc); err != nil {
		s.log.Debug("keepalive", "peer", peerName(nc), "error", err)
	}
	sess := newSession(s, nc)
	if why := s.add(sess, addressOf(nc)); why != "" {
		s.counts.Refused.Add(1)
		s.log.Warn("connection refused", "peer", sess.peer, "reason", why)
		sess.conn.Append(wire.AppendError(nil, &wire.Error{Code: wire.CodeBusy, Message: why, Fatal: true}))
		sess.conn.Flush()
		sess.conn.Break(wire.ErrClosed)
		return
	}
	s.group.Go(sess.run)
}

func addressOf(nc net.Conn) netip.Addr {
	ap, err := netip.ParseAddrPort(nc.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap()
}

func peerName(nc net.Conn) string { return nc.RemoteAddr().String() }

// add takes a session into the set, or says why not.
func (s *Server) add(sess *session, addr netip.Addr) (refused string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ctx.Err() != nil:
		return "controller is stopping"
	case len(s.sessions) >= s.o.MaxConnections:
		return fmt.Sprintf("%d connections are open, which is the limit", len(s.sessions))
	case s.stranger >= allAddress || s.strange[addr] >= perAddress:
		return "too many connections wait to register"
	}
	s.sessions[sess] = addr
	s.strange[addr]++
	s.stranger++
	return ""
}

// known says that a session has been let in: it counts as a stranger no more.
func (s *Server) known(sess *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetStranger(s.sessions[sess])
}

func (s *Server) forgetStranger(addr netip.Addr) {
	s.stranger--
	if s.strange[addr]--; s.strange[addr] == 0 {
		delete(s.strange, addr)
	}
}

func (s *Server) remove(sess *session, wasKnown bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !wasKnown {
		s.forgetStranger(s.sessions[sess])
	}
	delete(s.sessions, sess)
}

// Stop takes no more connections, ends those that are open once they have sent
// what is queued, and waits for all of it.
func (s *Server) Stop() {
	s.cancel()
	s.listener.Close()
	s.mu.Lock()
	for sess := range s.sessions {
		sess.conn.End(errStopping)
	}
	s.mu.Unlock()
	s.group.Wait()
	if s.logs != nil {
		s.logs.close()
	}
}

var errStopping = errors.New("controller is stopping")

// same compares in a time that says nothing about where they differ.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// checkToken says whether token opens what want guards; other is the other
// role's.
func checkToken(token, want, other string) *wire.Error {
	mine, others := same(token, want), same(token, other)
	switch {
	case want == "" && (other == "" || !others), mine:
		return nil
	case other != "" && others:
		return &wire.Error{Code: wire.CodeForbidden, Message: "the token is for the other role", Fatal: true}
	}
	return &wire.Error{Code: wire.CodeUnauthorized, Message: "the token is missing or wrong", Fatal: true}
}
