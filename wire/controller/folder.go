package controller

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"apollo11/snapshot"
)

const (
	addrFile = "ADDR" // host:port of the controller that runs on the folder
	idFile   = "ID"   // names the folder, so that a stale address is noticed
)

// FolderID is a data folder's id; empty if it has none.
func FolderID(dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, idFile))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// folderID is FolderID of a folder that gets one if it has none.
func folderID(dir string) (string, error) {
	if id := FolderID(dir); id != "" {
		return id, nil
	}
	random := make([]byte, 8)
	rand.Read(random) // never fails
	id := hex.EncodeToString(random)
	return id, writeWhole(filepath.Join(dir, idFile), id+"\n")
}

// usedBefore refuses a folder that a controller has worked on and whose journal
// is gone: to start empty there in silence would lose what was acknowledged. A
// repair that started with nothing left its originals in a .broken folder.
func usedBefore(dir string) error {
	if FolderID(dir) == "" {
		return nil
	}
	for _, pattern := range []string{"journal-*", "snapshot*.json", "*.broken"} {
		if found, err := filepath.Glob(filepath.Join(escapeGlob(dir), pattern)); err != nil || len(found) > 0 {
			return err
		}
	}
	return &snapshot.Damage{
		File: filepath.Join(dir, "journal-*"), What: "a controller has worked on this folder, and its journal is gone",
		Hint: "bring a copy of the folder back; to start with nothing all the same: rm " + filepath.Join(dir, idFile),
	}
}

// lookPause is between two looks at the folder while nothing is written to it.
const lookPause = 2 * time.Second

// lookAtFolder ends with ctx, or with what look says of a folder that is not the
// controller's any more: with nothing to write nobody else would notice. Only
// then there is an error.
func lookAtFolder(ctx context.Context, look func() error) error {
	ticks := time.NewTicker(lookPause)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
		if err := look(); err != nil {
			return err
		}
	}
}

// escapeGlob takes the meaning off a path's pattern characters.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

func writeAddr(dir, addr string) error { return writeWhole(filepath.Join(dir, addrFile), addr+"\n") }

func removeAddr(dir string) error {
	err := os.Remove(filepath.Join(dir, addrFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// writeWhole makes a file appear with all its text.
func writeWhole(name, text string) error {
	aside := name + ".tmp"
	if err := os.WriteFile(aside, []byte(text), 0o600); err != nil {
		return err
	}
	if err := os.Rename(aside, name); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
