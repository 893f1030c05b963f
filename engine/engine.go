package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// Options are what an Engine works with. Store is required.
type Options struct {
	Store    Store
	Images   Images // nil: none are taken
	Source   Source // what to recover from; nil: an empty journal
	Log      *slog.Logger
	Settings Settings
	Progress func(seq uint64) // called now and then while the journal is folded; may be nil
}

// Engine is a running controller. Its exported methods are safe for any goroutine.
type Engine struct {
	// For any goroutine.
	asks         chan []Ask
	booted, done chan struct{}
	stateVersion atomic.Uint64
	debugging    atomic.Bool

	// The loop's alone.
	m       *machine
	store   Store
	log     *slog.Logger
	base    time.Time
	pending []Ask
	entries [][]byte
	flush   map[Link]struct{}
	sealAt  int64 // monotonic; 0: nothing to seal
	sealed  bool  // the turn's first record is a seal
	imager
}

// imager is the loop's side of taking images.
type imager struct {
	images        Images
	imaging       *imaging // being encoded
	content       imageContent
	chunk         []byte        // waits for the writer
	chunks        chan []byte   // to the writer
	ends          chan imageEnd // from it; nil: there is none
	grown         int           // journal bytes since the last image
	imageSize     int           // of the last image
	imagedSeq     uint64
	imagedAt      int64
	imagedVersion uint64
}

// New recovers the state; Run sets it to work.
func New(o Options) (*Engine, error) {
	if o.Store == nil {
		return nil, errors.New("engine: no store")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := recovered{state: newState()}
	if o.Source != nil {
		var err error
		if s, err = recoverState(o.Source, o.Progress); err != nil {
			return nil, err
		}
	}
	if last := o.Store.Last(); s.seq != last {
		return nil, fmt.Errorf("%w: the state is of record %d, the journal ends at %d", ErrJournal, s.seq, last)
	}
	return &Engine{
		asks: make(chan []Ask, askBacklog), booted: make(chan struct{}), done: make(chan struct{}),
		m: newMachine(s.state, o.Settings, o.Log), store: o.Store, log: o.Log,
		imager: imager{images: o.Images, imagedVersion: s.imaged, grown: s.tail},
	}, nil
}

// Booted is closed when the engine has recorded its start and takes commands.
func (e *Engine) Booted() <-chan struct{} { return e.booted }

// Done is closed when Run has returned: nothing is answered any more.
func (e *Engine) Done() <-chan struct{} { return e.done }

// Post hands commands to the loop, in order; it waits while the loop is behind.
// Answers go to each Ask's Link. After Run has ended they are dropped.
func (e *Engine) Post(asks []Ask) {
	select {
	case e.asks <- asks:
	case <-e.done:
	}
}

// Do asks one command and waits for its answer.
func (e *Engine) Do(ctx context.Context, c Command) (Answer, error) {
	w := &waiter{got: make(chan struct{})}
	select {
	case e.asks <- []Ask{{Command: c, Link: w}}:
	case <-e.done:
		return nil, ErrStopping
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case <-w.got:
		return w.answer, w.err
	case <-e.done:
		select {
		case <-w.got: // answered in the last turn
			return w.answer, w.err
		default:
			return nil, ErrStopping
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// waiter is the Link of one Do.
type waiter struct {
	got    chan struct{}
	answer Answer
	err    error
}

// Answer implements Link.
func (w *waiter) Answer(_ uint64, a Answer, err error) {
	w.answer, w.err = a, err
	close(w.got)
}

// Order implements Link; nobody sends orders to an operator.
func (w *waiter) Order(Order) {}

// Flush implements Link.
func (w *waiter) Flush() {}

// Heard implements Link.
func (w *waiter) Heard() time.Time { return time.Time{} }

// StateVersion is the global state's version as of the last turn.
func (e *Engine) StateVersion() uint64 { return e.stateVersion.Load() }

// Debugging reports whether the wire tap is on.
func (e *Engine) Debugging() bool { return e.debugging.Load() }
