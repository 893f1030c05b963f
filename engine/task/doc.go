// Package task holds the nouns of one piece of work.
//
// A task walks this drawing; the table in state.go has the same edges, which a
// test compares with the text below, line by line.
//
//	new        -> scheduled blocked queued
//	scheduled  -> queued dead cancelled aborted
//	blocked    -> queued skipped dead cancelled aborted
//	queued     -> assigned dead cancelled aborted
//	assigned   -> running succeeded retrying queued dead cancelled aborted
//	running    -> succeeded retrying queued dead cancelled aborted
//	retrying   -> queued dead cancelled aborted
//	succeeded  ->
//	dead       -> queued aborted
//	cancelled  -> queued
//	aborted    -> queued
//	skipped    ->
//
// The edges that leave dead, cancelled and aborted are a person's requeue, but for
// the dead letter of a run that a person has settled: its run was resumed, or it
// was dropped.
package task
