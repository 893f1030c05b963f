package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"apollo11/engine/view"
)

// Past is the controller at a moment of its journal, for questions only. It
// writes nothing and has no goroutine; one goroutine at a time may use it.
type Past struct {
	m    *machine
	link pastLink
}

// PastOptions say which moment is meant.
type PastOptions struct {
	// Source's image must not be after Seq.
	Source   Source
	Seq      uint64   // last record that has happened; 0: before the first
	Settings Settings // what the journal does not have: limits, contracts of keys
	Progress func(seq uint64)
}

// OpenPast folds a journal up to a moment. It takes as much memory as the state
// had then, and ends early with ctx.
func OpenPast(ctx context.Context, o PastOptions) (*Past, error) {
	src := until{ctx, o.Source, o.Seq}
	s, err := recoverState(src, o.Progress)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("state at record %d: %w", o.Seq, err)
	case s.seq != o.Seq:
		return nil, fmt.Errorf("%w: record %d: the journal ends at %d", ErrNotFound, o.Seq, s.seq)
	}
	return newPast(s.state, o.Settings), nil
}

// newPast sets a folded state to work. Who was connected then is not recorded;
// an executor that was not offline counts as connected, for it was, or was
// waited for.
func newPast(s *state, set Settings) *Past {
	set.base = time.Unix(0, 0)
	p := &Past{m: newMachine(s, set, slog.New(slog.DiscardHandler))}
	p.m.tick(moment{raw: s.wall, wall: s.wall})
	p.m.since = s.wall
	for x, e := range p.m.execs {
		if e != nil && !e.offline {
			e.soft.link, e.soft.ready = &p.link, true
			p.m.regroup(uint32(x))
		}
	}
	p.m.replaceDirty()
	return p
}

// Seq is the last record that has happened.
func (p *Past) Seq() uint64 { return p.m.seq }

// Time is when it happened; zero before the first.
func (p *Past) Time() time.Time { return viewTime(p.m.wall).Time }

// Keys is the same moment without tasks and runs: what GetState is answered
// from, in a part of the memory.
func (p *Past) Keys() *Past {
	s := newState()
	s.keys, s.counters = p.m.keys, p.m.counters
	return newPast(s, p.m.set)
}

// Ask answers a command that asks and changes nothing, as it would have been
// answered then. Any other is ErrInvalid.
func (p *Past) Ask(c Command) (Answer, error) {
	p.link = pastLink{}
	p.m.read(Ask{Command: c, Link: &p.link})
	for _, s := range p.m.batch.sends {
		s.link.Answer(s.ref, s.answer, s.err)
	}
	p.m.batch = outbox{}
	if x, ok := p.link.answer.(*view.Explanation); ok {
		pastExplanation(x)
	}
	return p.link.answer, p.link.err
}

// pastExplanation takes out what cannot be known of a past moment, and what can
// only be done about a present one.
func pastExplanation(x *view.Explanation) {
	x.Lines = slices.DeleteFunc(x.Lines, func(line string) bool { return strings.HasPrefix(line, "that executor was last heard") })
	x.Lines = append(x.Lines, "this was so then; who was connected, and how busy a host was, is not recorded")
	x.Hints = []string{"apollo11 replay " + x.ID}
}

// pastLink is the connection of executors of the past, and gets the answers.
type pastLink struct {
	answer Answer
	err    error
}

// Answer implements Link.
func (l *pastLink) Answer(_ uint64, a Answer, err error) { l.answer, l.err = a, err }

// Order implements Link; nothing is ordered in the past.
func (l *pastLink) Order(Order) {}

// Flush implements Link.
func (l *pastLink) Flush() {}

// Heard implements Link: everybody was heard at that very moment.
func (l *pastLink) Heard() time.Time { return time.Unix(0, 0) }

// until is a journal up to a moment, and only as long as ctx lasts.
type until struct {
	ctx  context.Context
	src  Source
	last uint64
}

// errReached ends reading at the moment meant; nobody else sees it.
var errReached = errors.New("that was the last record wanted")

// often is how many entries or lines are read between two looks at ctx.
const often = 1024

// Read implements Source.
func (u until) Read(from uint64, fn func(uint64, []byte) error) error {
	if from > u.last {
		return u.ctx.Err()
	}
	err := u.src.Read(from, func(seq uint64, body []byte) error {
		if seq%often == 0 && u.ctx.Err() != nil {
			return u.ctx.Err()
		}
		if err := fn(seq, body); err != nil || seq < u.last {
			return err
		}
		return errReached
	})
	if errors.Is(err, errReached) {
		return nil
	}
	return err
}

// ReadImage implements Source.
func (u until) ReadImage(load func(uint64, []byte) error, line func([]byte) error) (bool, error) {
	n := 0
	return u.src.ReadImage(func(seq uint64, content []byte) error {
		if seq > u.last {
			return fmt.Errorf("image of record %d is after record %d", seq, u.last)
		}
		return load(seq, content)
	}, func(b []byte) error {
		if n++; n%often == 0 && u.ctx.Err() != nil {
			return u.ctx.Err()
		}
		return line(b)
	})
}

// RecordTime is when a journal entry happened. It never decreases along a
// journal, so that a moment can be looked for by halving.
func RecordTime(entry []byte) (time.Time, error) {
	stamp, _, _ := strings.Cut(string(entry[:min(len(entry), len(momentLayout)+1)]), " ")
	wall, err := parseMoment(stamp)
	return viewTime(wall).Time, err
}
