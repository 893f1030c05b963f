package engine

import (
	"fmt"
	"strings"

	"apollo11/engine/task"
)

// shadow is a second, much simpler opinion of what records may say. It knows
// only records, not the state: what it finds wrong is wrong in the journal.
type shadow struct {
	keys    map[string]string   // idempotency key: task, as it was acknowledged
	types   map[string]string   // task: its type
	out     map[string]sentTask // tasks that are out
	last    map[string]task.Version
	changed map[string]uint64 // state key: record that changed it last
	begun   map[string]bool   // tasks of type once that may have begun in this life
	ended   map[string]task.State
	inputs  map[string]string // hash of what a task has to be sent with
	runs    shadowRuns
	asked   map[string]string // id of a submission: its type, as it was acknowledged
}

// sentTask is one dispatch.
type sentTask struct {
	version task.Version
	exec    string
	seq     uint64
	keys    []string // pinned, of a fresh unit
}

func newShadow() shadow {
	return shadow{
		keys: map[string]string{}, types: map[string]string{}, out: map[string]sentTask{}, last: map[string]task.Version{},
		changed: map[string]uint64{}, begun: map[string]bool{}, ended: map[string]task.State{},
		inputs: map[string]string{}, asked: map[string]string{}, runs: newShadowRuns(),
	}
}

// note takes one record, and says which rule it breaks.
func (s *shadow) note(seq uint64, r record) (broken string) {
	switch r := r.(type) {
	case *submitted:
		s.types[r.Task], s.inputs[r.Task] = r.Type, r.Inputs.ContentHash()
	case *edited:
		return s.noteEdit(r)
	case *dropped:
		return s.noteDrop(r)
	case *dispatched:
		return s.noteStart(seq, r)
	case *resulted:
		return s.noteResult(seq, r)
	case *failed:
		broken = s.noteEnd(r.Task, r.Version, r.Exec)
		once := s.types[r.Task] == "once"
		if run := s.runs.of[r.Task]; run != nil {
			once = once || run.units[r.Task].Retries == 0
		}
		if once && r.Class != task.PrepareFailed {
			s.begun[r.Task] = true
		}
		s.over(r.Task, r.Next)
	case *handedBack:
		broken = s.noteEnd(r.Task, r.Version, r.Exec)
	case *ended:
		delete(s.out, r.Task)
		s.over(r.Task, r.State)
	case *enqueued:
		if r.Fresh {
			delete(s.ended, r.Task)
			delete(s.begun, r.Task)
		}
	case *repaired:
		s.changed[r.Key] = seq
	default:
		return s.noteRun(r)
	}
	return broken
}

func (s *shadow) noteEdit(r *edited) string {
	s.inputs[r.Task] = r.Inputs.ContentHash()
	if was, out := s.out[r.Task]; out || s.ended[r.Task] == task.Succeeded {
		return fmt.Sprintf("task %s is edited though its inputs were used: %+v, %s", r.Task, was, s.ended[r.Task])
	}
	return ""
}

func (s *shadow) noteDrop(r *dropped) string {
	if state := s.ended[r.Task]; state != task.Dead && state != task.Cancelled {
		return fmt.Sprintf("task %s is dropped though it is %s", r.Task, state)
	}
	return "" // it stays among the ended: it must not be sent any more
}

// over notes an end, which nothing but a person takes back.
func (s *shadow) over(id string, state task.State) {
	if state.Terminal() {
		s.ended[id] = state
	}
}

func (s *shadow) noteStart(seq uint64, r *dispatched) string {
	if was, out := s.out[r.Task]; out {
		return fmt.Sprintf("task %s is sent twice: %+v, then %s", r.Task, was, r.Version)
	}
	if state, over := s.ended[r.Task]; over {
		return fmt.Sprintf("task %s is sent though it is %s", r.Task, state)
	}
	if r.Version <= s.last[r.Task] {
		return fmt.Sprintf("task %s is sent as %s after %s", r.Task, r.Version, s.last[r.Task])
	}
	if r.InputHash != s.inputs[r.Task] {
		return fmt.Sprintf("task %s is sent with other inputs than it has", r.Task)
	}
	if s.begun[r.Task] {
		return fmt.Sprintf("task %s must not begin twice, and is sent again", r.Task)
	}
	sent := sentTask{version: r.Version, exec: r.Exec, seq: seq}
	for _, v := range r.ContextAt {
		for other, o := range s.out {
			for _, key := range o.keys {
				if key == v.Name {
					return fmt.Sprintf("tasks %s and %s are out with the context key %s", other, r.Task, key)
				}
			}
		}
		sent.keys = append(sent.keys, v.Name)
	}
	s.out[r.Task], s.last[r.Task] = sent, r.Version
	return ""
}

func (s *shadow) noteEnd(id string, v task.Version, exec string) string {
	sent, out := s.out[id]
	delete(s.out, id)
	if !out || sent.version != v || sent.exec != exec {
		return fmt.Sprintf("task %s ends at %s by %s, but was sent %+v", id, v, exec, sent)
	}
	return ""
}

func (s *shadow) noteResult(seq uint64, r *resulted) string {
	sent := s.out[r.Task]
	if broken := s.noteEnd(r.Task, r.Version, r.Exec); broken != "" {
		return broken
	}
	for _, key := range sent.keys {
		if s.changed[key] > sent.seq {
			return fmt.Sprintf("the result of %s was applied though context key %s changed since", r.Task, key)
		}
	}
	for _, v := range r.Set {
		s.changed[v.Name] = seq
	}
	for key := range strings.SplitSeq(r.Del, ",") {
		s.changed[key] = seq
	}
	s.over(r.Task, task.Succeeded)
	if run := s.runs.of[r.Task]; run != nil {
		run.done[r.Task] = true
	}
	return ""
}
