// Package start is the ways in which the program is started: with the console
// or headless, as an executor, as the demo, or to look at a data folder offline.
//
// It turns the configuration into each room's own options and wires the rooms;
// what they do is theirs. Commands that talk to a controller are tui/cli's.
//
// Goroutines: one that waits for signals, for the life of the program; one that
// keeps the local executors, which serve waits for; one that gives the demo its
// work, which the console's end waits for.
package start
