package server

import (
	"container/list"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"apollo11/engine/task"
	"apollo11/wire"
)

const (
	maxLog      = 1 << 20   // of one attempt
	logChunk    = 256 << 10 // read at once
	openLogs    = 64        // files kept open
	cutMarker   = "\n[log cut at 1 MiB]\n"
	maxFileName = 100
)

// taskLogs keeps what units print: one file for each dispatch, in a folder of
// the first two letters of its name's hash.
type taskLogs struct {
	root *os.Root
	keep time.Duration // 0: for ever
	size int64         // of all files together, about; 0: no limit

	mu    sync.Mutex // guards what follows
	open  map[string]*list.Element
	used  *list.List // of *logFile, newest first
	fresh int        // files made since the start
}

// logFolders is how many folders there are: each keeps its share of the size.
const logFolders = 256

// sweepEvery is how many files are made between two looks at a folder.
const sweepEvery = 8

type logFile struct {
	name string
	file *os.File
	size int64
}

func openTaskLogs(dir string, keep time.Duration, size int64) (*taskLogs, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("task logs: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("task logs: %w", err)
	}
	return &taskLogs{root: root, keep: keep, size: size, open: map[string]*list.Element{}, used: list.New()}, nil
}

// logName is the file of a dispatch. An id that would not do as a file name is
// hashed, under a letter that no id has.
func logName(id string, v task.Version) (folder, name string) {
	sum := sha256.Sum256([]byte(id))
	hashed := hex.EncodeToString(sum[:])
	safe := id
	if len(id) > maxFileName || task.CheckID(id) != nil || strings.ContainsAny(id, ":") || strings.HasPrefix(id, ".") || id != strings.ToLower(id) {
		safe = "%" + hashed[:32]
	}
	return hashed[:2], fmt.Sprintf("%s/%s.%d.log", hashed[:2], safe, uint64(v))
}

// append adds to a dispatch's log, up to maxLog; what is over is dropped, once
// with a marker.
func (l *taskLogs) append(id string, v task.Version, data []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	f, err := l.file(id, v)
	if err != nil {
		return err
	}
	if f.size > maxLog {
		return nil // the marker is there
	}
	if room := maxLog - f.size; int64(len(data)) > room {
		data = append(data[:room:room], cutMarker...)
	}
	n, err := f.file.Write(data)
	f.size += int64(n)
	return err
}

// file is the open file of a dispatch; the one that was not used for the longest
// time is closed for it.
func (l *taskLogs) file(id string, v task.Version) (*logFile, error) {
	folder, name := logName(id, v)
	if e := l.open[name]; e != nil {
		l.used.MoveToFront(e)
		return e.Value.(*logFile), nil
	}
	if err := l.root.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	file, err := l.root.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, err
	}
	for l.used.Len() >= openLogs {
		l.drop(l.used.Back())
	}
	if info.Size() == 0 {
		if l.fresh++; l.fresh%sweepEvery == 0 {
			if err := l.sweep(folder, info.ModTime()); err != nil {
				file.Close()
				return nil, err
			}
		}
	}
	f := &logFile{name, file, info.Size()}
	l.open[name] = l.used.PushFront(f)
	return f, nil
}

// sweep removes a folder's files that are too old, and its oldest ones while it
// is over its share. Which folder a file is in is left to a hash, so looking at
// one folder now and then holds all of them to their limits; now is the time of
// the newest file.
func (l *taskLogs) sweep(folder string, now time.Time) error {
	entries, err := fs.ReadDir(l.root.FS(), folder)
	if err != nil {
		return err
	}
	files := make([]fs.FileInfo, 0, len(entries))
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	total := int64(0)
	for i, info := range files {
		total += info.Size()
		tooOld := l.keep > 0 && now.Sub(info.ModTime()) > l.keep
		tooMuch := l.size > 0 && i > 0 && total > max(l.size/logFolders, maxLog)
		if !tooOld && !tooMuch {
			continue
		}
		if err := l.root.Remove(folder + "/" + info.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (l *taskLogs) drop(e *list.Element) {
	f := l.used.Remove(e).(*logFile)
	delete(l.open, f.name)
	f.file.Close()
}

// read reads a piece of a dispatch's log; Ended says that there was no more at
// this moment. A dispatch that printed nothing has an empty log.
func (l *taskLogs) read(id string, v task.Version, offset int64) (*wire.LogChunk, error) {
	_, name := logName(id, v)
	file, err := l.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return &wire.LogChunk{Next: 0, Ended: true}, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data := make([]byte, logChunk)
	n, err := file.ReadAt(data, offset)
	if err != nil && err != io.EOF {
		return nil, err
	}
	return &wire.LogChunk{Data: data[:n], Next: offset + int64(n), Ended: err == io.EOF}, nil
}

func (l *taskLogs) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.used.Len() > 0 {
		l.drop(l.used.Back())
	}
	l.root.Close()
}
