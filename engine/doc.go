// Package engine is the controller: it owns all state and decides what happens.
//
// # The loop
//
// One goroutine, Run, turns like this:
//
//  1. take what waits: commands, the timer, the image writer; then what else has come
//  2. read the time once; decide and apply everything taken, dispatches included
//  3. append the turn's records to the journal: one write, one sync
//  4. release every answer, read and order of the turn, one flush per connection
//  5. set one timer to the earliest deadline
//
// Nothing leaves before the batch it was decided in is on disk. A journal that
// cannot be written ends Run: nothing is acknowledged that could be lost.
//
// # Who may touch what
//
// The machine (decide.go and the files beside it) is plain functions on state,
// command and time: no clock, no disk, no network, so it runs the same under a
// simulation's clock as under the real one. The state's durable fields change
// only in the apply methods of records (apply.go, executor.go); live and in
// recovery the path is the same. What is named soft is the loop's bookkeeping
// and is lost at a stop without loss. Readers get copies.
//
// A command was asked, a record happened, an order is sent to an executor.
//
// # Missions
//
// A run is a mission at work: a task for each of its units, with the id RUN:UNIT,
// blocked until what it waits for has succeeded. Start, stop and cancel of a run
// are one record each, which apply expands over the graph; the mission's text is
// stored once, by its hash. What a success makes ready and what a failure hangs
// on stands in two soft lists, which settle works off in the same turn as far as
// there is room (runflow.go), and which a start finds anew. A finished unit costs
// its children, whatever the size of the mission.
//
// A resume, a rerun and a fork are new runs that look at their parent, and the
// parent stays in memory as long as they do. A rollback is a run over the same
// units, one after the other, the latest first.
//
// # Goroutines
//
//	loop          Run's caller; ends with Run
//	image writer  at most one; started by the loop, which waits for its end
//	reader        while the journal is folded, before Run: reads and parses
//	              ahead; started by ahead, which waits for its end
package engine
