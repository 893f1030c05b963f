package unit

import (
	"bytes"
	"os"
	"strconv"
	"strings"
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
	report func(percent int, message string)
}

// poll reports the lines that have come since; at the end an unfinished one too.
func (f *follower) poll(end bool) {
	if f.report == nil || !f.ready() {
		return
	}
	buf := make([]byte, 4<<10)
	for f.offset < mostProgress {
		n, err := f.open.ReadAt(buf, f.offset)
		f.offset += int64(n)
		f.part = append(f.part, buf[:n]...)
		f.lines()
		if err != nil || n == 0 {
			break
		}
	}
	if end && len(f.part) > 0 {
		f.line(f.part)
		f.part = nil
	}
}

func (f *follower) ready() bool {
	if f.open != nil {
		return true
	}
	file, err := os.OpenFile(f.file, os.O_RDONLY|nonblock, 0)
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

func (f *follower) lines() {
	for {
		i := bytes.IndexByte(f.part, '\n')
		if i < 0 {
			return
		}
		f.line(f.part[:i])
		f.part = f.part[i+1:]
	}
}

// line reports "percent message"; a line without a number has percent -1.
func (f *follower) line(line []byte) {
	if len(line) == 0 {
		return
	}
	text := strings.ToValidUTF8(string(line[:min(len(line), longestProgress)]), "\ufffd")
	first, rest, _ := strings.Cut(text, " ")
	if n, err := strconv.ParseFloat(strings.TrimSuffix(first, "%"), 64); err == nil && n >= 0 && n <= 100 {
		f.report(int(n), rest)
		return
	}
	f.report(-1, text)
}

func (f *follower) close() {
	if f.open != nil {
		f.open.Close()
	}
}
