// Package engine is the controller: all state, decided on by one goroutine.
package engine

import (
	"context"
)

// Engine is a running controller. Its methods are safe for any goroutine.
type Engine struct{}

// Post hands commands to the loop, in order; it waits while the loop is behind.
// Answers go to each Ask's Link.
func (e *Engine) Post(asks []Ask) { panic("not yet") }

// Do asks one command and waits for its answer.
func (e *Engine) Do(ctx context.Context, c Command) (Answer, error) { panic("not yet") }

// StateVersion is the global state's version as of the last turn; any goroutine may ask.
func (e *Engine) StateVersion() uint64 { panic("not yet") }

// Debugging reports whether the wire tap is on; any goroutine may ask.
func (e *Engine) Debugging() bool { panic("not yet") }
