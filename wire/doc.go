// Package wire is the protocol between the controller and those who talk to it.
//
// PROTOCOL.md beside this file is the same in words. A frame is a length and a
// text (frame.go), a text is key=value lines (message.go), and every message
// type has one function that appends it as a whole frame and one that reads it,
// beside each other. Strings that a Parse function returns share the memory of
// their frame's text: whoever keeps one for long clones it.
//
// Long-lived goroutines: Conn starts a writer while its socket is full; it ends
// when the queue is empty or the Conn is closed, and Close waits for it.
package wire
