package server

import (
	"context"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// Past tells what the global state was. A seq is the place of a record in the
// journal; the state meant is the one that this record left, and one past the
// end is the present state. Any goroutine may call it, several at once; an end of
// ctx cuts it short. Its errors wrap engine.ErrNotFound for what is no longer
// kept, and say what is.
type Past interface {
	// State is a page of it.
	State(ctx context.Context, seq int64, q view.KeyQuery) (*view.KeyPage, error)
	// Keys is all of it, but for sys. keys.
	Keys(ctx context.Context, seq int64) (task.Values, error)
	// At is the last record that is not after a time; 0: there was none yet.
	At(ctx context.Context, when time.Time) (int64, error)
}
