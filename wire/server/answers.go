package server

import (
	"apollo11/engine/task"
	"apollo11/wire"
)

// promise is an answer that is due: what the message was about, and the frames
// once they are there but not yet their turn.
type promise struct {
	op      wire.Op // of a control message; empty: an executor's
	task    string  // of a result or returned
	version task.Version
	fault   *wire.Error // sent instead of a good answer
	enters  bool        // a register: a refusal ends the connection
	done    bool
	frames  []byte
}

// answers gives every message its answer in the order of the messages, whatever
// the order in which the engine is done: bulk commands take several turns. The
// Conn's lock guards it.
type answers struct {
	passed uint64 // answers sent so far; ref passed+1 is the next
	list   []promise
	head   int // list[head] is the next
	held   int // bytes of frames that wait for others
}

// maxHeld bounds them.
const maxHeld = wire.MaxQueued

// due adds a promise and returns its ref; refs start at 1, 0 is for what has no
// answer.
func (a *answers) due(p promise) uint64 {
	a.list = append(a.list, p)
	return a.passed + uint64(len(a.list)-a.head)
}

// at is the promise of a ref; nil if it was kept already.
func (a *answers) at(ref uint64) *promise {
	if ref <= a.passed || ref-a.passed > uint64(len(a.list)-a.head) {
		return nil
	}
	p := &a.list[a.head+int(ref-a.passed)-1]
	if p.done {
		return nil
	}
	return p
}

// next reports whether ref's answer is the next to be sent.
func (a *answers) next(ref uint64) bool { return ref == a.passed+1 }

// keep stores frames for later; false if too much waits already.
func (a *answers) keep(p *promise, frames []byte) bool {
	p.done, p.frames = true, frames
	a.held += len(frames)
	return a.held <= maxHeld
}

// pass takes the first promise as kept, and appends those that waited for it.
func (a *answers) pass(dst []byte) []byte {
	for first := true; a.head < len(a.list) && (first || a.list[a.head].done); first = false {
		dst = append(dst, a.list[a.head].frames...)
		a.held -= len(a.list[a.head].frames)
		a.list[a.head] = promise{}
		a.head++
		a.passed++
	}
	if a.head*2 >= len(a.list) { // each promise is moved once or never
		n := copy(a.list, a.list[a.head:])
		clear(a.list[n:])
		a.list, a.head = a.list[:n], 0
	}
	return dst
}
