package engine

import (
	"slices"
	"strings"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// Describe reads a journal entry as an event of the timeline. It reads any kind,
// also one that a newer build wrote.
func Describe(seq uint64, entry string) (view.Event, error) {
	stamp, rest, _ := strings.Cut(entry, " ")
	wall, err := parseMoment(stamp)
	if err != nil {
		return view.Event{}, err
	}
	event := view.Event{Seq: int64(seq), Time: viewTime(wall)}
	event.Kind, rest, _ = strings.Cut(rest, " ")
	f := fields{reading: true, in: rest}
	var values []task.Value
	for f.in != "" && f.err == nil {
		name, _, ok := strings.Cut(f.in, "=")
		if !ok {
			break
		}
		var value string
		f.str(name, &value)
		switch name {
		case "task":
			event.Task, event.Run = value, runOf(value)
		case "run":
			event.Run = value
		case "exec":
			event.Exec = value
		default:
			values = append(values, task.Value{Name: name, Value: value})
		}
	}
	slices.SortFunc(values, func(a, b task.Value) int { return strings.Compare(a.Name, b.Name) })
	event.Values = view.Object(values)
	return event, f.end()
}
