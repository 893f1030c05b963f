// Package mission is the graph of tasks that a file describes.
//
// It is pure: no goroutine, no clock, no I/O. Parse reads a file's text, Check
// holds what it says against the contracts of its units, NewGraph counts and
// orders. A mission counts, it does not search: finishing a unit costs its
// children.
//
// A mission file is TOML, or YAML with the same keys. The whole of it:
//
//	name = "weather"              # the file's name, if left out
//	on_failure = "stop"           # stop | continue: branches that do not depend on the failure go on
//	template = false              # true: started by a person with parameters, never by a trigger
//	[params.year]                 # also min, max, min_length, max_length, enum, pattern, description
//	type = "int"
//	default = 2012                # left out: the parameter has to be given
//	[[units]]
//	name = "fetch"                # unique in the mission
//	uses = "fetch_data"           # the unit's type; the name, if left out
//	deps = ["first"]              # waits for it, and for its success
//	weak = ["note"]               # may run beside it; its outputs are used if they are there by then
//	when = "params.year > 2000"   # else it is skipped, and so is what depends on it
//	expect = "rows == first.rows" # of its own outputs; false: the result is refused
//	timeout = "30s"               # these three are the manifest's, if left out
//	retries = 2
//	retry_interval = "5s"
//	with = { url = "https://…/${params.year}.csv", n = "${first.rows}", say = "${note.text:-nothing}" }
//	offer = { timeout = "30" }    # like with, but only if the unit's contract names the input
//	[[triggers]]                  # one of cron, after, event, file, state, start
//	cron = "0 2 * * *"            # minute, hour, day, month, weekday, or @daily and its like
//	timezone = "Europe/Berlin"    # of cron; the controller's, if left out
//	catch_up = "none"             # none | one | all: runs for the times that were missed
//	overlap = "skip"              # skip | queue | allow: what happens while a run of it is on; of event and file: queue, if left out
//
// The other triggers are after = "MISSION", which fires at the other's success;
// event = "NAME", whose values are parameters; file = "incoming/*.csv", from the
// folder above the missions', where a parameter named file gets the path;
// state = "KEY", changed by anybody but the mission itself; and start = true, when
// the controller starts. A local time that a clock change skips fires at the next
// minute that there is, one that comes twice fires once.
//
// References are ${params.NAME}, ${UNIT.OUTPUT} and ${state.KEY}, each with a
// value for its absence after :- where that may be; $${ is a plain ${. Conditions
// know the same three, without the ${}, and UNIT.status of every upstream.
//
// Two short forms are read as well. A list of units alone is a mission. And
// task_order, a list of names, is a chain: beside it stand tables of those names,
// whose entries are the units' inputs; timeout, retries and retry_interval set
// the unit and are offered to it too. A bare number is seconds.
package mission
