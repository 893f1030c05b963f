// Package unit runs units: one attempt is a fresh folder, a few processes in a
// tree of their own, a read of what they answered.
//
// A unit is a manifest, units/NAME.toml, read by Load. Run carries out one
// attempt of it:
//
//	inputs held against the contract       fails: input_invalid, nothing ran
//	prepare    own limit, 30s              fails: prepare_failed
//	execute    the task's timeout          fails: execute_failed or timeout
//	answer read, held against the contract fails: output_invalid
//	cleanup    own limit, 30s, always      fails: noted, changes nothing
//	folder deleted
//
// What cannot start counts as prepare_failed, whichever step it was: nothing of
// the unit was executed, so even a unit that must not be repeated may be.
//
// # What a unit sees
//
// Its working folder is empty at prepare and gone after cleanup. Its
// environment holds the variables named by the manifest's env, and
//
//	IN_NAME            an input; NAME upper-cased, all but A-Z 0-9 as _
//	CTX_KEY            a pinned state key, named likewise
//	APOLLO_TASK        the task's id
//	APOLLO_ATTEMPT     1 for the first try
//	APOLLO_RUN         the run the task belongs to; empty outside a mission
//	APOLLO_UNIT_DIR    the folder of the manifest
//	APOLLO_INPUT       a JSON file: task, type, attempt, run, inputs, context
//	APOLLO_OUTPUT      append name=value lines
//	APOLLO_STATE       append set.key=value add.key=n max.key=n min.key=n del.key
//	APOLLO_PROGRESS    append "percent message" lines
//
// The last three are names of files that do not exist until the unit writes
// them. Lines are raw text up to the newline, split at the first "="; a name
// given again replaces what was said before (add sums up, max and min keep the
// extreme). Values never become part of a shell text. With engine = "exec",
// ${NAME} in an argument is replaced by that variable, as one argument.
//
// # What ends with an attempt
//
// Every process it started: the whole group is told TERM, after the grace KILL,
// and whatever has left the group is found and killed too. That last part needs
// Linux, where this process becomes the reaper of orphaned descendants; so only
// one Run may be active in a process. Elsewhere a process that makes its own
// session survives.
//
// What a unit prints is always read, and kept up to 1 MiB. A unit with more
// than 1,000 processes is ended, and the kernel is told to sacrifice a unit before
// the executor when memory runs out. Disk space is not limited here.
package unit
