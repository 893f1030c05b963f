// Package unit runs units: one attempt is a fresh folder, a few processes in a
// tree of their own, a read of what they answered.
//
// A unit is a manifest, units/NAME.toml, read by Load. Run carries out one
// attempt of it:
//
//	inputs held against the contract,
//	files handed on against their hashes   fails: input_invalid, nothing ran
//	secrets read, image looked for         fails: prepare_failed
//	prepare    own limit, 30s              fails: prepare_failed
//	execute    the task's timeout          fails: execute_failed or timeout
//	answer read, held against the contract fails: output_invalid
//	files published                        fails: output_invalid
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
//	OUT_NAME           an output of the attempt that undo takes back
//	APOLLO_RUN         the run the task belongs to; empty outside a mission
//	APOLLO_SAMPLE      more than 0: only a try, on so much of the data; else empty
//	APOLLO_UNIT_DIR    the folder of the manifest
//	APOLLO_RUN_DIR     a folder to hand files on from; empty unless an output is a path
//	APOLLO_INPUT       a JSON file: task, type, attempt, run, sample, inputs, context
//	APOLLO_OUTPUT      append name=value lines
//	APOLLO_STATE       append set.key=value add.key=n max.key=n min.key=n del.key
//	APOLLO_PROGRESS    append "percent message" lines
//
// and its secrets. The last three are names of files that do not exist until the
// unit writes them. Lines are raw text up to the newline, split at the first "="; a name
// given again replaces what was said before (add sums up, max and min keep the
// extreme). Values never become part of a shell text. With engine = "exec",
// ${NAME} in an argument is replaced by that variable, as one argument.
//
// # Engines
//
// A shell step is a text; an exec step a program with its arguments. A python
// step is a text, the name of a file beside the manifest, or that with arguments.
// A container step is a text for the image's /bin/sh or a program with arguments;
// it runs under podman, or docker where there is no podman, without a network unless
// the manifest says so, and sees the work folder, the folder of manifests (to
// read) and the files handed on under the names that they have outside. It
// inherits no variable that its manifest does not name. Nothing is downloaded: an image that is not on the host fails the attempt. Its shell is
// process 1, which passes over TERM unless it traps it: such a container ends by
// KILL, after the grace. A unit whose interpreter or runtime is missing is in
// Set.Unavailable.
//
// # Files handed on
//
// An output of type path is a regular file in the work folder, or in
// $APOLLO_RUN_DIR. It is moved to the run's folder in the Share, made read-only, and
// its value becomes a task.File: place, size and hash. Who takes it as an input gets
// its real name, after its content was held against the hash.
//
// # Residents
//
// A unit of kind resident has no time limit, and its progress may hold lines
// such as set.key=value or add.key=n, which are handed on as they come. One that
// is no change ends it.
//
// # Secrets
//
// A secret is read on the executor, from its environment or a file, and given as
// a variable. In what the unit prints and reports its value is masked, however it
// is cut into pieces; an answer that holds it is refused. A unit that writes it in
// other letters (reversed, in base64), or into a file that it hands on, does give it away.
//
// # Undo
//
// To undo an attempt, the undo step runs in the place of prepare and execute. It
// sees the inputs and outputs as they were, may change state, and has no outputs;
// files are not looked at, since what is undone may be gone.
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
