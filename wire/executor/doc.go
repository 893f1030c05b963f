// Package executor is the program that takes tasks from a controller and runs
// their units, one at a time.
//
// It keeps nothing that matters: what it has not finished the controller gives
// to others, what it has finished it keeps until that is acknowledged, across
// any number of connections, and not across its own end.
//
// One goroutine, the loop in agent.go, owns the state: the link, what waits,
// what runs, what is not acknowledged. The others hand it what they have:
//
//	runner    runs one attempt after the other     Run waits for it
//	reader    cuts a connection into messages      ends with the connection
//	dialer    while a connection is being made     ends with the attempt to
//	watcher   looks at the units folder            Run waits for it
//
// How it leaves: on the first signal (Run's context ends) or the controller's
// drain it finishes what runs, gives back the rest, says offline. On the second
// (Options.Abort) it says offline at once and ends what runs.
//
// Parent keeps a number of such programs alive; they end when it does, however
// it ends, since they read a pipe that it holds open.
package executor
