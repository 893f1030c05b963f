package bench

import (
	"errors"
	"os"
	"time"
)

const (
	syncFor   = 300 * time.Millisecond
	syncBytes = 4096
)

// syncRate is how many small appends a second the disk makes durable just now:
// whoever compares two runs has to know that it was the same.
func syncRate(now func() time.Time) (rate float64, err error) {
	f, err := os.CreateTemp("", "apollo11-bench-disk-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	block := make([]byte, syncBytes)
	begun := now()
	n := 0
	for ; now().Sub(begun) < syncFor; n++ {
		if _, err := f.Write(block); err != nil {
			return 0, err
		}
		if err := syncData(f); err != nil {
			return 0, err
		}
	}
	return float64(n) / now().Sub(begun).Seconds(), nil
}
