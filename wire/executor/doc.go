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
//	expirer   deletes the files of old runs        Run waits for it
//
// What it tells of itself at its registration: what its host has for all
// executors there, the id of its share, the units that this host can run, with
// contracts and hashes. A unit that lacks its interpreter or its runtime stands
// in the log and is offered as soon as that is there.
//
// A resident unit's changes of the state go out as it runs, in order, a few times
// a second. Without a link they wait, and if they find no more room the attempt
// fails rather than losing some. What was on its way when a link broke is lost:
// a unit that must be exact sets a value, or adds in its result.
//
// How it leaves: on the first signal (Run's context ends) or the controller's
// drain it finishes what runs, gives back the rest, says offline. A resident unit,
// which would never finish, is ended in order, and the offline gives it to
// another. On the second (Options.Abort) it says offline at once and ends what runs.
//
// Parent keeps a number of such programs alive; they end when it does, however
// it ends, since they read a pipe that it holds open.
package executor
