package wire

import (
	"strings"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// AppendQuery appends a query frame: a page of the global state, all of it by
// default.
func AppendQuery(dst []byte, q *view.KeyQuery) []byte {
	dst, at := beginMessage(dst, TypeQuery)
	return endMessage(appendKeyQuery(dst, q), at)
}

// ParseQuery reads a query message.
func ParseQuery(m *Message) (*view.KeyQuery, error) {
	f := fields{m: m}
	q := f.keyQuery()
	return &q, f.err
}

func appendKeyQuery(dst []byte, q *view.KeyQuery) []byte {
	dst = appendSome(dst, "keys", strings.Join(q.Keys, ","))
	dst = appendSome(dst, "prefix", q.Prefix)
	dst = appendCount(dst, "since", uint64(max(0, q.Since)))
	dst = appendSome(dst, "cursor", q.Cursor)
	return appendCount(dst, "limit", uint64(max(0, q.Limit)))
}

func (f *fields) keyQuery() view.KeyQuery {
	return view.KeyQuery{
		Keys:   f.list("keys"),
		Prefix: f.text("prefix"),
		Since:  int64(f.count("since")),
		Cursor: f.text("cursor"),
		Limit:  f.limit(),
	}
}

// limit bounds a page's length.
func (f *fields) limit() int { return int(min(f.count("limit"), view.MaxRows)) }

// State is a page of the global state, as executors read it.
type State struct {
	Version uint64
	Values  task.Values
	Cursor  string // ask again with it; empty: that was all
}

// AppendState appends a state frame. A page that does not fit a frame of limit
// bytes of text is cut, with a cursor to go on from.
func AppendState(dst []byte, p *view.KeyPage, limit int) []byte {
	keys, cursor := p.Keys, p.Cursor
	size := header + 256 + len(cursor)
	for i := range keys {
		size += len("s.") + len(keys[i].Key) + 2 + escapedLen(keys[i].Value)
		if size > limit && i > 0 {
			keys, cursor = keys[:i], keys[i-1].Key
			break
		}
	}
	dst, at := beginMessage(dst, TypeState)
	dst = appendUint(dst, "state_version", uint64(max(0, p.Version)))
	dst = appendSome(dst, "cursor", cursor)
	for i := range keys {
		dst = appendPrefixed(dst, "s.", keys[i].Key, keys[i].Value)
	}
	return endMessage(dst, at)
}

// escapedLen is how long AppendEscaped makes s.
func escapedLen(s string) int {
	return len(s) + strings.Count(s, "\\") + strings.Count(s, "\n") + strings.Count(s, "=")
}

// ParseState reads a state message.
func ParseState(m *Message) (*State, error) {
	f := fields{m: m}
	s := &State{Version: f.count("state_version"), Values: f.prefixed("s."), Cursor: f.text("cursor")}
	return s, f.err
}
