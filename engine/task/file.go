package task

import (
	"encoding/hex"
	"fmt"
	"path"
	"strconv"
	"strings"
)

// File is a file handed on between units: its place in a share, its size and
// its content's SHA-256. The controller carries this, never the bytes.
type File struct {
	Share string // which file tree: executors with the same share see the same files
	Name  string // within it, with slashes, such as r-12/fetch/data.csv
	Size  int64
	Sum   string // 64 hex digits
}

// filePrefix begins the text of every File, which no plain path begins with.
const filePrefix = "share:"

// String is the value that stands for the file in inputs and outputs:
// share:SHARE/NAME#SIZE,SUM
func (f File) String() string {
	return fmt.Sprintf("%s%s/%s#%d,%s", filePrefix, f.Share, f.Name, f.Size, f.Sum)
}

// Within is the file as the unit named it that made it: its place in the folder
// of its attempt, which is the second one of Name.
func (f File) Within() string {
	parts := strings.SplitN(f.Name, "/", 3)
	return parts[len(parts)-1]
}

// Shown is a value as a person reads it: of a file that is handed on its name,
// size and the first digits of its sum.
func Shown(value string) string {
	f, handed, err := ParseFile(value)
	if !handed || err != nil {
		return value
	}
	return fmt.Sprintf("%s (%d bytes, %s)", f.Within(), f.Size, f.Sum[:6])
}

// ParseFile reads what String wrote; handed is false for any other text, such as
// a plain path.
func ParseFile(value string) (f File, handed bool, err error) {
	rest, handed := strings.CutPrefix(value, filePrefix)
	if !handed {
		return f, false, nil
	}
	at := strings.LastIndexByte(rest, '#')
	share, name, ok := strings.Cut(rest[:max(at, 0)], "/")
	size, sum, ok2 := strings.Cut(rest[at+1:], ",")
	n, err := strconv.ParseInt(size, 10, 64)
	raw, err2 := hex.DecodeString(sum)
	switch {
	case at < 0, !ok, !ok2, err != nil, n < 0, err2 != nil, len(raw) != 32, share == "", name == "":
		return f, true, fmt.Errorf("%s: not a file handed on: want %sSHARE/NAME#SIZE,SHA256", Printable(short(value)), filePrefix)
	case path.Clean(name) != name || path.IsAbs(name) || name == ".." || strings.HasPrefix(name, "../"):
		return f, true, fmt.Errorf("%s: the name leads out of the share", Printable(short(value)))
	}
	return File{Share: share, Name: name, Size: n, Sum: sum}, true, nil
}

// ContentHash is Hash, but a file that is handed on counts by its content: the
// same bytes in another place are the same input.
func (v Values) ContentHash() string {
	var changed Values
	for i, e := range v {
		if !strings.HasPrefix(e.Value, filePrefix) {
			continue
		}
		if f, handed, err := ParseFile(e.Value); handed && err == nil {
			if changed == nil {
				changed = append(Values(nil), v...)
			}
			changed[i].Value = filePrefix + f.Sum
		}
	}
	if changed == nil {
		return v.Hash()
	}
	return changed.Hash()
}

// Share is the share that the files among the values are in; empty: there are
// none. More than one is an error: no executor sees both.
func (v Values) Share() (share string, err error) {
	for _, e := range v {
		f, handed, err := ParseFile(e.Value)
		switch {
		case err != nil:
			return "", fmt.Errorf("%s: %w", e.Name, err)
		case handed && share != "" && f.Share != share:
			return "", fmt.Errorf("%s is in share %s and another file in %s: no executor sees both", e.Name, Printable(f.Share), Printable(share))
		case handed:
			share = f.Share
		}
	}
	return share, nil
}
