package unit

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"apollo11/engine/task"
)

const (
	longestProgress = 1 << 10   // of one line; the rest of it is dropped
	mostProgress    = 256 << 10 // of an attempt; what follows is not read
)

// follower reads the lines that are appended to a file as they come.
type follower struct {
	file   string
	open   *os.File // nil until the unit has made it
	offset int64
	part   []byte // a line without its end yet

	*secrets
	report func(percent int, message string) // nil: not wanted

	// Of a resident unit, whose file has no end.
	resident bool
	change   func([]task.Change) // nil: not wanted
	changes  []task.Change       // not handed on yet, of each key one
	size     int                 // of changes
	freed    int64               // so much of the file has no memory any more
	latest   []byte              // message that is reported at the poll's end; nil: none
}

// poll reports the lines that have come since; at the end an unfinished one
// too. The error is a resident unit's line that should be a change and is none.
func (f *follower) poll(end bool) (err error) {
	if f.report == nil && f.change == nil || !f.ready() {
		return nil
	}
	buf := make([]byte, 4<<10)
	for err == nil && (f.offset < mostProgress || f.resident) {
		n, readErr := f.open.ReadAt(buf, f.offset)
		f.offset += int64(n)
		f.part = append(f.part, buf[:n]...)
		err = f.lines()
		if readErr != nil || n == 0 {
			break
		}
	}
	if err == nil && end && len(f.part) > 0 {
		err = f.line(f.part)
		f.part = nil
	}
	f.handOn()
	if f.latest != nil {
		f.message(f.latest)
		f.latest = nil
	}
	if f.resident {
		f.free()
	}
	return err
}

func (f *follower) ready() bool {
	if f.open != nil {
		return true
	}
	file, err := os.OpenFile(f.file, os.O_RDONLY|nonblock|noFollow, 0)
	if err != nil {
		return false
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		file.Close()
		return false
	}
	f.open = file
	return true
}

func (f *follower) lines() error {
	for {
		i := bytes.IndexByte(f.part, '\n')
		if i < 0 {
			if len(f.part) > longestAnswer {
				f.part = f.part[:longestAnswer] // of a line that has no end
			}
			return nil
		}
		if err := f.line(f.part[:i]); err != nil {
			return err
		}
		f.part = f.part[i+1:]
	}
}

// line takes one line. A resident unit's may be a change; once it has said as
// much as a task may in all, only the last message of each poll is reported.
func (f *follower) line(line []byte) error {
	if len(line) == 0 {
		return nil
	}
	if f.resident && looksLikeChange(line) {
		return f.changeLine(line)
	}
	if f.resident && f.offset > mostProgress {
		f.latest = append(f.latest[:0], line...)
		return nil
	}
	f.message(line)
	return nil
}

// message reports "percent message"; a line without a number has percent -1.
func (f *follower) message(line []byte) {
	if f.report == nil {
		return
	}
	masked := f.text(strings.ToValidUTF8(string(line), "\ufffd"))
	text := strings.ToValidUTF8(masked[:min(len(masked), longestProgress)], "\ufffd")
	first, rest, _ := strings.Cut(text, " ")
	if n, err := strconv.ParseFloat(strings.TrimSuffix(first, "%"), 64); err == nil && n >= 0 && n <= 100 {
		f.report(int(n), rest)
		return
	}
	f.report(-1, text)
}

// looksLikeChange tells a change from a message: no message begins with an
// operation, a dot and a letter or a digit.
func looksLikeChange(line []byte) bool {
	word, rest, ok := bytes.Cut(line, []byte("."))
	_, err := task.ParseOp(string(word))
	return ok && err == nil && len(rest) > 0 && rest[0] != ' '
}

// mostChanges is how large the changes get that are handed on together.
const mostChanges = task.MaxBytes / 4

func (f *follower) changeLine(line []byte) error {
	shown := quote(f.text(string(line)))
	change, err := parseChange(string(line))
	switch name := f.within(string(line)); {
	case name != "":
		return fmt.Errorf("a change holds the value of the secret %s: a secret may not leave the executor", name)
	case !utf8.Valid(line):
		return fmt.Errorf("%s: %w", shown, errNotUTF8)
	case err != nil:
		return fmt.Errorf("%s: %w", shown, err)
	case len(line) > task.MaxBytes:
		return fmt.Errorf("%s: %d bytes, at most %d", shown, len(line), task.MaxBytes)
	}
	if f.size+len(line) > mostChanges {
		f.handOn()
	}
	i := slices.IndexFunc(f.changes, func(c task.Change) bool { return c.Key == change.Key })
	if i >= 0 && f.changes[i].Op != change.Op {
		f.handOn()
		i = -1
	}
	f.size += len(line)
	if i < 0 {
		f.changes = append(f.changes, change)
		return nil
	}
	if f.changes[i], err = merge(f.changes[i], change); err != nil {
		return fmt.Errorf("%s: %w", shown, err)
	}
	return nil
}

// handOn hands on the changes so far.
func (f *follower) handOn() {
	if len(f.changes) > 0 && f.change != nil {
		f.change(f.changes)
	}
	f.changes, f.size = nil, 0
}

// freeEvery is how much of a file is read before its memory is given back.
const freeEvery = 256 << 10

// free gives back the memory of what was read of a file that has no end. It
// keeps its length, so that the unit appends where it did.
func (f *follower) free() {
	if f.offset-f.freed >= freeEvery && freeStart(f.file, f.offset) == nil {
		f.freed = f.offset
	}
}

func (f *follower) close() {
	if f.open != nil {
		f.open.Close()
	}
}
