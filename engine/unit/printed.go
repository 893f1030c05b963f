package unit

import (
	"bytes"

	"apollo11/engine/task"
)

const (
	// mostPrinted is how much of an attempt's output is kept.
	mostPrinted = 1 << 20
	// flushAt is when collected output is handed on without waiting for the tick.
	flushAt = 32 << 10
)

const cutMark = "\n[apollo11: cut here after 1 MiB; the rest was read, not kept]\n"

// printed collects what an attempt prints and hands it on in pieces.
type printed struct {
	log  func([]byte)
	held []byte
	room int // bytes that are still kept
	cut  bool
}

func (p *printed) add(chunk []byte) {
	if p.cut {
		return
	}
	if len(chunk) > p.room {
		chunk, p.cut = chunk[:p.room], true
	}
	p.room -= len(chunk)
	p.held = append(p.held, chunk...)
	if p.cut {
		p.held = append(p.held, cutMark...)
	}
	if len(p.held) >= flushAt {
		p.flush()
	}
}

func (p *printed) flush() {
	if len(p.held) > 0 && p.log != nil {
		p.log(p.held)
	}
	p.held = nil // the receiver owns it now
}

// note adds a line of our own, which does not count.
func (p *printed) note(text string) {
	p.held = append(p.held, "[apollo11: "+text+"]\n"...)
}

// tail keeps the end of a stream.
type tail struct{ kept []byte }

const longestLine = 400

func (t *tail) add(chunk []byte) {
	t.kept = append(t.kept, chunk...)
	if most := 2 * longestLine; len(t.kept) > most {
		t.kept = append(t.kept[:0], t.kept[len(t.kept)-most:]...)
	}
}

// line is the last line that is not blank, printable, its end kept if it is long.
func (t *tail) line() string {
	text := bytes.TrimSpace(t.kept)
	text = bytes.TrimSpace(text[bytes.LastIndexByte(text, '\n')+1:])
	if len(text) > longestLine {
		text = text[len(text)-longestLine:]
	}
	return task.Printable(string(text))
}
