//go:build unix

package wire

import "syscall"

// oneWrite writes to a socket without waiting for room.
type oneWrite struct {
	raw syscall.RawConn
	try func(fd uintptr) bool // made once: a closure a call would cost memory

	p   []byte
	n   int
	err error
}

func newOneWrite(raw syscall.RawConn) *oneWrite {
	w := &oneWrite{raw: raw}
	w.try = func(fd uintptr) bool {
		for {
			w.n, w.err = syscall.Write(int(fd), w.p)
			if w.err != syscall.EINTR {
				return true // whatever it was: do not wait
			}
		}
	}
	return w
}

// write sends as much of p as the socket takes now.
func (w *oneWrite) write(p []byte) (int, error) {
	w.p = p
	err := w.raw.Write(w.try)
	w.p = nil
	switch {
	case err != nil:
		return 0, err
	case w.err == syscall.EAGAIN:
		return 0, nil
	case w.err != nil:
		return 0, w.err
	}
	return w.n, nil
}
