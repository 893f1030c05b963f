package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// object prints v as one line of JSON.
func (a *app) object(v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("json: %w", err)
	}
	_, err := a.out.Write(printableJSON(b.Bytes()))
	return err
}

// printableJSON escapes what the encoder leaves as it is though a terminal may
// act on it: direction marks, DEL and the like. It means the same.
func printableJSON(line []byte) []byte {
	out := make([]byte, 0, len(line))
	for i := 0; i < len(line); {
		r, n := utf8.DecodeRune(line[i:])
		switch {
		case r == '\n' || unicode.IsPrint(r):
			out = append(out, line[i:i+n]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		i += n
	}
	return out
}

// list prints rows as JSON lines, or as a table. It may be called again with
// more rows of the same list.
func list[T any](a *app, t *table, rows []T, cells func(*T) []cell) error {
	if !a.json {
		lines := make([][]cell, len(rows))
		for i := range rows {
			lines[i] = cells(&rows[i])
		}
		return t.print(lines)
	}
	for i := range rows {
		if err := a.object(&rows[i]); err != nil {
			return err
		}
	}
	return nil
}
