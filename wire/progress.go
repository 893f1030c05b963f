package wire

import (
	"encoding/base64"
	"errors"
	"unicode/utf8"

	"apollo11/engine/task"
)

// Progress is a sign from a running attempt; every part is optional.
type Progress struct {
	Task    string
	Version task.Version // zero: what was last sent of that task
	Start   bool         // it still runs after 50 ms
	Percent string
	Message string
	Log     []byte        // a chunk of the unit's output, any bytes
	Changes []task.Change // of a resident unit
}

// AppendProgress appends a progress frame. Log goes as text if it is valid
// UTF-8, else in base64 as log64.
func AppendProgress(dst []byte, p *Progress) []byte {
	dst, at := beginMessage(dst, TypeProgress)
	dst = appendText(dst, "task_id", p.Task)
	dst = appendCount(dst, "version", uint64(p.Version))
	if p.Start {
		dst = appendText(dst, "phase", "start")
	}
	dst = appendSome(dst, "percent", p.Percent)
	dst = appendSome(dst, "message", p.Message)
	dst = appendBytes(dst, "log", p.Log)
	return endMessage(appendChanges(dst, p.Changes), at)
}

// ParseProgress reads a progress message.
func ParseProgress(m *Message) (*Progress, error) {
	f := fields{m: m}
	p := &Progress{
		Task:    f.need("task_id"),
		Version: f.version("version"),
		Start:   f.text("phase") == "start",
		Percent: f.text("percent"),
		Message: f.text("message"),
		Log:     f.bytes("log"),
	}
	r := resultReader{fields: f, proto: 2}
	for key, value := range m.All() {
		r.fail(key, r.free(key, value))
	}
	p.Changes = r.o.Changes
	return p, r.err
}

func appendBytes(dst []byte, key string, data []byte) []byte {
	if len(data) == 0 {
		return dst
	}
	if utf8.Valid(data) {
		return appendText(dst, key, string(data))
	}
	dst = append(append(dst, key...), "64="...)
	for _, c := range base64.StdEncoding.AppendEncode(nil, data) {
		if c == '=' {
			dst = append(dst, '\\', 'e')
			continue
		}
		dst = append(dst, c)
	}
	return append(dst, '\n')
}

func (f *fields) bytes(key string) []byte {
	if text, ok := f.m.Get(key); ok {
		return []byte(text)
	}
	encoded := f.text(key + "64")
	if encoded == "" {
		return nil
	}
	data, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil {
		f.fail(key+"64", errors.New("not base64"))
	}
	return data
}
