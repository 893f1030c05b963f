package engine

import "time"

// Store keeps the journal. Append returns when the batch is durable; whatever
// error it returns, the engine stops.
type Store interface {
	Append(now time.Time, entries [][]byte) error
	Last() uint64 // last durable position, 0: empty
	Full() bool   // no room for new work
}

// Images writes and reads images of the state beside the journal.
type Images interface {
	NewImage(seq uint64) (ImageWriter, error)
}

// ImageWriter takes one image. It is used by one goroutine, not the loop's.
type ImageWriter interface {
	Line(body []byte) error
	Commit(content []byte) error
	Abort() error
}
