package view

import (
	"time"

	"apollo11/engine/task"
)

// Selection names tasks one by one, or all that match a query.
type Selection struct {
	IDs   []string
	All   bool // use Query instead of IDs
	Query Query
	Count bool // only count what matches, with three samples; change nothing
}

// Changed answers an action on many tasks.
type Changed struct {
	Matched int      // tasks the selection named
	Changed int      // tasks that changed
	Skipped []string // "id: why" of those that did not, the first hundred
	Samples []string // ids, of a count
}

// Submitted is one accepted task.
type Submitted struct {
	ID      string
	State   task.State
	Existed bool   // the id or key named work that was there already
	Warning string // such as: no executor offers the type
}

// KeyQuery asks for a page of the global state, in order of key.
type KeyQuery struct {
	Keys   []string // these; none: all
	Prefix string
	Since  int64  // only keys changed after this state version
	Cursor string // after this key
	Limit  int    // 0: MaxRows
}

// KeyPage answers a KeyQuery.
type KeyPage struct {
	Version int64 // of the state
	Keys    []Key
	Cursor  string // empty: that was the last page
}

// EventQuery asks for a page of the timeline.
type EventQuery struct {
	From  int64     // first seq; 0: the oldest kept
	After time.Time // no event before; zero: any
	Until time.Time // no event after; zero: any
	Task  string    // only this task's; empty: all
	Run   string    // only this run's and its tasks'; empty: all
	Limit int       // 0: MaxRows
}

// EventPage answers an EventQuery.
type EventPage struct {
	Events []Event
	Next   int64 // seq to go on from
	More   bool  // there was more when this was read
}
