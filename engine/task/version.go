package task

import (
	"fmt"
	"strconv"
)

// Version fences one dispatch of a task: epoch times a million plus the count
// of that task's dispatches. Zero means that nobody holds the task.
type Version uint64

// VersionsPerEpoch bounds the dispatches of one task.
const VersionsPerEpoch = 1_000_000

// MakeVersion is the version of a task's n-th dispatch in an epoch.
func MakeVersion(epoch uint64, n uint32) Version {
	return Version(epoch*VersionsPerEpoch + uint64(n))
}

// Split is the inverse of MakeVersion.
func (v Version) Split() (epoch uint64, n uint32) {
	return uint64(v) / VersionsPerEpoch, uint32(uint64(v) % VersionsPerEpoch)
}

// String is the form for people, epoch.n; the wire carries the plain integer.
func (v Version) String() string {
	epoch, n := v.Split()
	return strconv.FormatUint(epoch, 10) + "." + strconv.FormatUint(uint64(n), 10)
}

// ParseVersion reads the wire's plain integer.
func ParseVersion(text string) (Version, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("version %q is not a whole number", text)
	}
	return Version(n), nil
}
