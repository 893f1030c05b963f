package task

import "time"

// Assignment is one dispatch of a task: what an executor is told. Journal,
// wire and executor carry it as it is.
type Assignment struct {
	Task         string
	Type         string
	Version      Version
	Attempt      int           // 1 for the first try
	Timeout      time.Duration // of execute; zero: the executor's manifest decides
	StateVersion uint64        // the global state's, when it was dispatched
	Inputs       Values
	Context      Values // state keys pinned at dispatch
	Run          string // the run it belongs to; empty: none
	Sample       int    // more than 0: a try on so much of the data; state changes are thrown away
	Undo         bool   // run the unit's undo step instead of execute
	Outputs      Values // of the attempt to undo
}
