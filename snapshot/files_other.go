//go:build !linux

package snapshot

import "os"

func syncData(f *os.File) error { return f.Sync() }

func allocate(f *os.File, size int64) error { return fill(f, size) }
