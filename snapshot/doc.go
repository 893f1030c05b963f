// Package snapshot keeps the controller's journal on disk.
//
// It knows bytes and sequence numbers, never tasks. The engine appends batches
// of entries, each entry one printable line, and a batch is on disk when Append
// returns. From time to time it also saves an image, so that a start reads the
// newest image and the journal's tail instead of everything.
//
// FORMAT.md beside this file describes every byte, what is assumed of disks,
// the limits, and the rules of recovery. In short: only the last batch of the
// last segment may be torn, and is cut; anything else that does not check is
// damage, which is refused with the file, the byte and the way out.
//
// Owners: one goroutine (the engine's loop) calls Append, Full and Close; at
// most one other writes an image; any may call Read, Seek, ReadImageAt, Last and
// Prune. They meet in one mutex, in store.go, that nobody holds while the disk
// works.
package snapshot
