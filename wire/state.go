package wire

import (
	"strconv"
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

// StateChanged tells an executor that subscribed which keys of the global state
// changed. It is a state message nobody asked for: it says since, no answer does.
type StateChanged struct {
	Version uint64
	Since   uint64 // keys that changed after this version of the state are named
	Keys    []KeyChange
	More    bool // not all of them: ask for what changed since Since
}

// KeyChange is a key with its version, zero if it is gone.
type KeyChange struct {
	Key     string
	Version uint64
}

// AppendStateChanged appends an unasked state frame.
func AppendStateChanged(dst []byte, s *StateChanged) []byte {
	dst, at := beginMessage(dst, TypeState)
	dst = appendUint(dst, "state_version", s.Version)
	dst = appendUint(dst, "since", s.Since)
	dst = appendFlag(dst, "more", s.More)
	for _, k := range s.Keys {
		dst = appendPrefixed(dst, "v.", k.Key, strconv.FormatUint(k.Version, 10))
	}
	return endMessage(dst, at)
}

// ParseStateChanged reads an unasked state message.
func ParseStateChanged(m *Message) (*StateChanged, error) {
	f := fields{m: m}
	f.need("since")
	s := &StateChanged{Version: f.count("state_version"), Since: f.count("since"), More: f.flag("more")}
	for _, v := range f.prefixed("v.") {
		n, err := parseCount(v.Value)
		f.fail("v."+v.Name, err)
		s.Keys = append(s.Keys, KeyChange{v.Name, n})
	}
	return s, f.err
}
