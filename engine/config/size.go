package config

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes.
type Size int64

var sizeUnits = []struct {
	name  string
	bytes Size
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1},
}

var errSize = errors.New("want a size such as 512B, 64KiB, 1MiB or 1GiB")

// ParseSize reads a whole number with its unit; only 0 may stand without one.
func ParseSize(text string) (Size, error) {
	if text == "0" {
		return 0, nil
	}
	for _, unit := range sizeUnits {
		digits, ok := strings.CutSuffix(text, unit.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 63)
		if err != nil || Size(n) > math.MaxInt64/unit.bytes {
			return 0, errSize
		}
		return Size(n) * unit.bytes, nil
	}
	return 0, errSize
}

// String is the size in the largest unit that leaves a whole number.
func (s Size) String() string {
	for _, unit := range sizeUnits {
		if strings.HasSuffix(unit.name, "iB") && s != 0 && s%unit.bytes == 0 {
			return strconv.FormatInt(int64(s/unit.bytes), 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}
