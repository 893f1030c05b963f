package cli

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"apollo11/engine/task"
)

const (
	maxLine   = 1 << 20   // bytes of one line of a jobs file
	maxJobs   = 256 << 20 // bytes of the whole file: it is held until all is checked
	maxFaults = 20        // bad lines that are named; the rest is counted
)

// readJobs reads a jobs file whole and checks every line; lines are the line
// numbers of the specs. A line without id and key gets a key of its own.
func readJobs(name string, r io.Reader) (specs []task.Spec, lines []int, err error) {
	var faults []string
	sum := sha256.New()
	in := bufio.NewReaderSize(io.TeeReader(&io.LimitedReader{R: r, N: maxJobs + 1}, sum), 64<<10)
	total := 0
	for n := 1; ; n++ {
		line, size, err := readJobLine(in)
		if total += size; total > maxJobs {
			return nil, nil, usage("split "+name, "submit: %s: over %d MiB", name, maxJobs>>20)
		}
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		if err != nil && err != io.EOF {
			return nil, nil, usage("", "submit: %s:%d: %w", name, n, bare(err))
		}
		if len(bytes.TrimSpace(line)) > 0 || size > maxLine {
			spec, fault := parseJob(line, size)
			if fault != nil {
				faults = append(faults, fmt.Sprintf("submit: %s:%d: %s", name, n, fault))
			}
			specs, lines = append(specs, spec), append(lines, n)
		}
		if err == io.EOF {
			break
		}
	}
	if len(faults) > 0 {
		return nil, nil, badLines(Usage, faults)
	}
	if len(specs) == 0 {
		return nil, nil, usage("", "submit: %s: no lines", name)
	}
	nameJobs(specs, lines, hex.EncodeToString(sum.Sum(nil)))
	return specs, lines, nil
}

// readJobLine reads up to the end of a line. Of one over maxLine it returns
// nothing but the size.
func readJobLine(in *bufio.Reader) (line []byte, size int, err error) {
	for {
		part, err := in.ReadSlice('\n')
		size += len(part)
		if size <= maxLine {
			line = append(line, part...)
		} else {
			line = nil
		}
		if err != bufio.ErrBufferFull {
			return line, size, err
		}
	}
}

func badLines(code Code, faults []string) error {
	more := len(faults) - maxFaults
	if more > 0 {
		faults = append(faults[:maxFaults], fmt.Sprintf("submit: and %s more", task.Plural(more, "bad line")))
	}
	return &ExitError{Code: code, Err: errors.New(strings.Join(faults, "\n")), Hint: `a line is {"type":"TYPE","in":{"name":"value"}}, optionally with "id" or "key"; nothing was submitted`}
}

// nameJobs gives keys to lines without a name: the same file again gives the
// same keys.
func nameJobs(specs []task.Spec, lines []int, hash string) {
	for i := range specs {
		if specs[i].ID == "" && specs[i].Key == "" {
			specs[i].Key = fmt.Sprintf("file:%s:%d", hash[:24], lines[i])
		}
	}
}

// parseJob reads one line, strictly: fields known and given once, no nesting
// beyond the inputs.
func parseJob(line []byte, size int) (task.Spec, error) {
	var s task.Spec
	if size > maxLine {
		return s, fmt.Errorf("%d bytes: want at most %d", size, maxLine)
	}
	if !utf8.Valid(line) {
		return s, errors.New("not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	var inputs []task.Value
	err := eachMember(d, func(name string) (err error) {
		switch name {
		case "type":
			s.Type, err = jsonText(d)
		case "id":
			s.ID, err = jsonText(d)
		case "key":
			s.Key, err = jsonText(d)
		case "in":
			err = eachMember(d, func(name string) error {
				value, err := jsonValue(d)
				inputs = append(inputs, task.Value{Name: name, Value: value})
				return err
			})
		default:
			err = errors.New("unknown field" + near(name, "type", "in", "id", "key"))
		}
		return err
	})
	if err != nil {
		return s, err
	}
	if _, err := d.Token(); err != io.EOF {
		return s, errors.New("text after the object")
	}
	if s.Inputs, err = task.NewValues(inputs); err != nil {
		return s, err
	}
	return s, checkSpec(&s)
}

func near(name string, known ...string) string {
	if best := task.Nearest(name, known); best != "" {
		return ": did you mean " + best + "?"
	}
	return ""
}

// eachMember walks an object; read takes the value.
func eachMember(d *json.Decoder, read func(name string) error) error {
	if t, err := d.Token(); err != nil {
		return jsonFault(err)
	} else if t != json.Delim('{') {
		return fmt.Errorf("want an object, found %s", jsonKind(t))
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return jsonFault(err)
		}
		name := t.(string) // in an object, the decoder lets nothing else through
		if seen[name] {
			return fmt.Errorf("%s: is given twice", clean(name))
		}
		seen[name] = true
		if err := read(name); err != nil {
			return fmt.Errorf("%s: %w", clean(name), err)
		}
	}
	_, err := d.Token()
	return jsonFault(err)
}

func jsonText(d *json.Decoder) (string, error) {
	t, err := d.Token()
	if err != nil {
		return "", jsonFault(err)
	}
	text, ok := t.(string)
	if !ok {
		return "", fmt.Errorf("want a text, found %s", jsonKind(t))
	}
	return text, nil
}

// jsonValue is an input: a text, or a number or bool as it is written.
func jsonValue(d *json.Decoder) (string, error) {
	t, err := d.Token()
	if err != nil {
		return "", jsonFault(err)
	}
	switch v := t.(type) {
	case string:
		return v, nil
	case json.Number:
		return v.String(), nil
	case bool:
		return fmt.Sprint(v), nil
	}
	return "", fmt.Errorf("want a text, a number, true or false, found %s", jsonKind(t))
}

func jsonKind(t json.Token) string {
	switch t := t.(type) {
	case nil:
		return "null"
	case json.Delim:
		if t == '[' {
			return "a list"
		}
		return "an object"
	case string:
		return "a text"
	case bool:
		return fmt.Sprint(t)
	}
	return fmt.Sprintf("the number %v", t)
}

func jsonFault(err error) error {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the line ends too early")
	}
	return err
}
