// Package server is the controller's end of the wire: connections into commands.
//
// A session translates and decides nothing: it reads frames, asks the engine,
// and encodes what the engine answers and orders. It never looks at task states.
//
// Goroutines: Serve, which the caller starts and waits for; one per connection,
// started by Serve and ended by Stop, which waits for them. Locks: Server.mu for
// the set of sessions; each wire.Conn's for its queue and for what its session
// keeps in step with it; taskLogs.mu for the open log files.
package server
