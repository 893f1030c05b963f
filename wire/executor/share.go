package executor

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"apollo11/engine/unit"
)

// shareFile holds a share's id, within its folder. Executors that read the same
// file see the same files; equal paths on two hosts mean nothing.
const shareFile = ".share"

// shareBytes is how many random bytes an id is made of.
const shareBytes = 8

// openShare makes sure of a folder and of its id, which the first executor that
// comes there draws.
func openShare(dir string) (*unit.Share, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("share folder: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("share folder: %w", err)
	}
	id, err := shareID(filepath.Join(dir, shareFile))
	if err != nil {
		return nil, fmt.Errorf("share folder: %w", err)
	}
	return &unit.Share{Dir: dir, ID: id}, nil
}

// expireEvery is how often the share is looked through for what is too old.
const expireEvery = time.Hour

// expire deletes the files of runs that nobody adds to any more.
func expire(ctx context.Context, s *unit.Share, o Options) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-timer.C:
			runs, err := s.Expire(now.Add(-o.KeepRuns))
			if len(runs) > 0 {
				o.Log.Info("files of old runs deleted", "runs", len(runs), "kept", o.KeepRuns)
			}
			if err != nil {
				o.Log.Warn("files of old runs stay", "error", err)
			}
			timer.Reset(expireEvery)
		}
	}
}

func shareID(file string) (string, error) {
	id, err := readShare(file)
	if errors.Is(err, fs.ErrNotExist) {
		if err = drawShare(file); err == nil || errors.Is(err, fs.ErrExist) {
			id, err = readShare(file)
		}
	}
	return id, err
}

func readShare(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(text))
	if b, err := hex.DecodeString(id); err != nil || len(b) != shareBytes {
		return "", fmt.Errorf("%s: want %d hexadecimal digits: delete it if no run's files there are needed any more", file, 2*shareBytes)
	}
	return id, nil
}

// drawShare writes a new id aside and links it into its place, which fails if
// another was faster, and shows nobody half an id. A file system without links
// may: who starts at that very moment is told so, and starts again.
func drawShare(file string) error {
	aside := fmt.Sprintf("%s-%s", file, randomHex(shareBytes))
	defer os.Remove(aside)
	id := randomHex(shareBytes) + "\n"
	if err := writeOnce(aside, id); err != nil {
		return err
	}
	if os.Link(aside, file) == nil {
		return nil
	}
	return writeOnce(file, id) // which fails too if another was faster
}

// writeOnce makes a file that all who see the folder may read.
func writeOnce(file, text string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close())
}
