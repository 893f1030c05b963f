package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// filter is what a person typed after /, understood.
type filter struct {
	text  string // as typed; empty: no filter
	typ   string
	task  string
	run   string
	error string
	older time.Duration
	// states is what the filter leaves; nil: it does not say.
	states []string
	words  []string
	not    []string // words that must not be there
}

// parseFilter reads `type:x state:dead,retrying error~text older:10m task:id
// run:id word !word`; ! before state: leaves all others. Double quotes hold words
// together. The states are those that there are where it is typed; nil: none.
func parseFilter(text string, states []string) (filter, error) {
	f := filter{text: strings.TrimSpace(text)}
	for _, token := range tokens(f.text) {
		if err := f.add(token, states); err != nil {
			return filter{}, err
		}
	}
	return f, nil
}

// tokens splits at spaces outside double quotes, which it takes away.
func tokens(text string) (out []string) {
	var b strings.Builder
	quoted := false
	for _, r := range text {
		switch {
		case r == '"':
			quoted = !quoted
		case r == ' ' && !quoted:
			if b.Len() > 0 {
				out = append(out, b.String())
			}
			b.Reset()
		default:
			b.WriteRune(r)
		}
	}
	if b.Len() > 0 {
		out = append(out, b.String())
	}
	return out
}

func (f *filter) add(token string, states []string) (err error) {
	bare, not := strings.CutPrefix(token, "!")
	name, value, has := strings.Cut(bare, ":")
	if name2, value2, ok := strings.Cut(bare, "~"); ok && (!has || len(name2) < len(name)) {
		name, value, has = name2, value2, true
	}
	if !slices.Contains([]string{"type", "state", "error", "older", "task", "run"}, name) {
		has = false // a colon of a word's own
	}
	switch {
	case bare == "":
		return fmt.Errorf("! needs a word after it")
	case !has && not:
		f.not = append(f.not, strings.ToLower(bare))
	case !has:
		f.words = append(f.words, strings.ToLower(bare))
	case value == "":
		return fmt.Errorf("%s: needs a value", name)
	case name == "state":
		f.states, err = parseStates(value, not, states)
	case not:
		return fmt.Errorf("!%s: ! goes before a word or state: only", name)
	case name == "type":
		f.typ, err = value, task.CheckType(value)
	case name == "task":
		f.task, err = value, task.CheckID(value)
	case name == "run":
		f.run, err = value, task.CheckName(value)
	case name == "error":
		f.error = value
	case name == "older":
		if f.older, err = time.ParseDuration(value); err != nil || f.older < 0 {
			err = fmt.Errorf("older:%s: want a time such as 10m", value)
		}
	}
	return err
}

// parseStates picks among the states that there are, or leaves those out.
func parseStates(text string, not bool, all []string) ([]string, error) {
	list := strings.Split(text, ",")
	if all == nil {
		return list, nil // plain refuses it
	}
	for _, name := range list {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("state:%s: want %s", name, strings.Join(all, ", "))
		}
	}
	if !not {
		return list, nil
	}
	others := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(list, name) })
	if len(others) == 0 {
		return nil, fmt.Errorf("!state:%s leaves nothing here", text)
	}
	return others, nil
}

// stateNames are the names of states of tasks.
func stateNames(states []task.State) []string {
	names := make([]string, len(states))
	for i, s := range states {
		names[i] = s.String()
	}
	return names
}

// query narrows a screen's own query.
func (f *filter) query(base view.Query) (view.Query, error) {
	q := base
	q.Type, q.Error, q.Older = f.typ, f.error, f.older
	if f.states != nil {
		q.States = nil
		for _, s := range base.States {
			if slices.Contains(f.states, s.String()) {
				q.States = append(q.States, s)
			}
		}
	}
	switch {
	case f.task != "" || f.run != "":
		return base, fmt.Errorf("task: and run: work in the timeline")
	case len(f.not) > 0:
		return base, fmt.Errorf("!%s: ! goes before state: here", f.not[0])
	case len(f.words) > 0 && f.error != "":
		return base, fmt.Errorf("%s: next to error~ a word has no meaning here", f.words[0])
	case len(f.words) > 0:
		q.Error = strings.Join(f.words, " ") // a plain word is looked for in the error
	}
	return q, nil
}

// narrow reports whether the controller is to look for one thing's records.
func (f *filter) narrow() bool { return f.task != "" || f.run != "" }

// match reports whether a line has all the words and none of the others.
func (f *filter) match(line string) bool {
	if len(f.words) == 0 && len(f.not) == 0 {
		return true
	}
	line = strings.ToLower(line)
	for _, w := range f.words {
		if !strings.Contains(line, w) {
			return false
		}
	}
	for _, w := range f.not {
		if strings.Contains(line, w) {
			return false
		}
	}
	return true
}

// leaves reports whether a run is one of those that the filter leaves.
func (f *filter) leaves(r *view.Run) bool {
	return (f.states == nil || slices.Contains(f.states, r.State)) &&
		f.match(strings.Join([]string{r.ID, r.Mission, r.State, r.Mode, r.Cause, r.By, r.Why, pairs(r.Params)}, " "))
}

// plain checks that nothing but words is asked for.
func (f *filter) plain() error {
	if f.typ != "" || f.task != "" || f.run != "" || f.error != "" || f.older != 0 || f.states != nil {
		return fmt.Errorf("this screen takes words and !words only")
	}
	return nil
}
