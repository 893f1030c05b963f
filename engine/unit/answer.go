package unit

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"apollo11/engine/task"
)

// longestAnswer bounds what is read of an answer file: the limit itself and
// some room for lines that replace one another.
const longestAnswer = 4 * task.MaxBytes

// readAnswer reads a file that a unit may have written; no file is an empty
// answer. A link is none: what it leads to from within a container is another
// file out here.
func readAnswer(file string) ([]byte, error) {
	if info, err := os.Lstat(file); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return nil, fmt.Errorf("%s: %w", file, errNotRegular)
	}
	data, err := readSmall(file, noFollow)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// readSmall reads a file of no more than longestAnswer.
func readSmall(file string, flags int) ([]byte, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|nonblock|flags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w", file, errNotRegular)
	}
	if info.Size() > longestAnswer {
		return nil, fmt.Errorf("%d bytes, at most %d are read", info.Size(), longestAnswer)
	}
	return io.ReadAll(io.LimitReader(f, longestAnswer))
}

// eachLine calls f for every line that is not empty, and puts the line's number
// into its error.
func eachLine(data []byte, f func(line string) error) error {
	n := 0
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		n++
		if len(line) == 0 {
			continue
		}
		err := errNotUTF8
		if utf8.Valid(line) {
			err = f(string(line))
		}
		if err != nil {
			return fmt.Errorf("line %d, %s: %w", n, quote(string(line)), err)
		}
	}
	return nil
}

var (
	errNotUTF8 = errors.New("not UTF-8 text")
	errNoEqual = errors.New("want name=value")
)

// parseOutputs reads name=value lines; of one name the last line counts.
func parseOutputs(data []byte) (task.Values, error) {
	var list []task.Value
	at := map[string]int{}
	err := eachLine(data, func(line string) error {
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			return errNoEqual
		}
		if err := task.CheckKey(name); err != nil {
			return err
		}
		if task.Reserved(name) {
			return fmt.Errorf("the name %s belongs to the protocol: choose another", name)
		}
		if i, again := at[name]; again {
			list[i].Value = value
			return nil
		}
		at[name] = len(list)
		list = append(list, task.Value{Name: name, Value: value})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return task.NewValues(list)
}

// parseChanges reads op.key=value lines; the lines of one key become one change.
func parseChanges(data []byte) ([]task.Change, error) {
	var list []task.Change
	at := map[string]int{}
	err := eachLine(data, func(line string) error {
		change, err := parseChange(line)
		if err != nil {
			return err
		}
		i, again := at[change.Key]
		if !again {
			at[change.Key] = len(list)
			list = append(list, change)
			return nil
		}
		list[i], err = merge(list[i], change)
		return err
	})
	return list, err
}

func parseChange(line string) (task.Change, error) {
	name, value, hasValue := strings.Cut(line, "=")
	word, key, ok := strings.Cut(name, ".")
	if !ok {
		return task.Change{}, errors.New("want set.key=value, add.key=n, max.key=n, min.key=n or del.key")
	}
	op, err := task.ParseOp(word)
	if err != nil {
		return task.Change{}, err
	}
	if err := task.CheckKey(key); err != nil {
		return task.Change{}, err
	}
	switch {
	case op == task.Del && value != "":
		return task.Change{}, errors.New("del takes no value")
	case op != task.Del && !hasValue:
		return task.Change{}, errNoEqual
	case op == task.Add:
		err = task.Float.Check(value)
	}
	return task.Change{Op: op, Key: key, Value: value}, err
}

// merge makes one change of two to the same key, as if one came after the other.
func merge(a, b task.Change) (task.Change, error) {
	if a.Op != b.Op {
		return a, fmt.Errorf("%s was already changed by %s: one operation for a key", a.Key, a.Op)
	}
	switch a.Op {
	case task.Add:
		return addUp(a, b)
	case task.Max, task.Min:
		return extreme(a, b)
	}
	return b, nil
}

func addUp(a, b task.Change) (task.Change, error) {
	x, errX := strconv.ParseInt(a.Value, 10, 64)
	y, errY := strconv.ParseInt(b.Value, 10, 64)
	if errX == nil && errY == nil {
		sum := x + y
		if (sum > x) != (y > 0) && y != 0 {
			return a, fmt.Errorf("the sum of add.%s leaves 64 bits", a.Key)
		}
		b.Value = strconv.FormatInt(sum, 10)
		return b, nil
	}
	f, _ := strconv.ParseFloat(a.Value, 64)
	g, _ := strconv.ParseFloat(b.Value, 64)
	b.Value = strconv.FormatFloat(f+g, 'g', -1, 64)
	if math.IsInf(f+g, 0) {
		return a, fmt.Errorf("the sum of add.%s is not finite", a.Key)
	}
	return b, nil
}

// extreme keeps the larger or the smaller of two numbers, or of two times.
func extreme(a, b task.Change) (task.Change, error) {
	order, ok := compare(a.Value, b.Value)
	if !ok {
		return a, fmt.Errorf("%s and %s are neither two numbers nor two times", quote(a.Value), quote(b.Value))
	}
	if order < 0 == (a.Op == task.Max) {
		return b, nil
	}
	return a, nil
}

func compare(a, b string) (order int, ok bool) {
	if x, y, err := both(a, b, func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }); err == nil {
		return cmp.Compare(x, y), true
	}
	if task.Float.Check(a) == nil && task.Float.Check(b) == nil {
		x, y, _ := both(a, b, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
		return cmp.Compare(x, y), true
	}
	x, y, err := both(a, b, func(s string) (time.Time, error) { return time.Parse(time.RFC3339Nano, s) })
	return x.Compare(y), err == nil
}

func both[T any](a, b string, parse func(string) (T, error)) (x, y T, err error) {
	if x, err = parse(a); err == nil {
		y, err = parse(b)
	}
	return x, y, err
}

// quote shows a piece of a unit's text, cut where it gets long.
func quote(s string) string {
	const most = 80
	if len(s) > most {
		return strconv.QuoteToASCII(s[:most]) + "…"
	}
	return strconv.QuoteToASCII(s)
}

func changesSize(changes []task.Change) (n int) {
	for _, c := range changes {
		n += len(c.Op.String()) + 1 + len(c.Key) + len(c.Value)
	}
	return n
}
