package engine

import (
	"crypto/sha256"
	"strings"

	"apollo11/engine/task"
)

// names remembers which ids and keys named work, so that the same submission
// again answers the first one's status, also after the task left memory.
type names struct {
	keys map[nameKey]string // key of a live or remembered task: its id
	gone map[string]*tomb   // by id
	line []*tomb            // oldest end first
}

type nameKey struct{ typ, key string }

// tomb is what stays of a named task that left memory.
type tomb struct {
	ID    string
	Key   string
	Type  string
	State task.State
	Work  string // workHash of what was asked first
	Ended int64  // the name is remembered from then on: of a dropped one when it was dropped
}

func (b *tomb) walk(f *fields) {
	f.str("task", &b.ID)
	f.str("key", &b.Key)
	f.str("type", &b.Type)
	f.state("state", &b.State)
	f.str("work", &b.Work)
	f.moment("ended", &b.Ended)
}

// workHash tells apart submissions that name the same work: type and the inputs
// that were given, without what a contract filled in, for contracts change.
func workHash(typ string, inputs string) string {
	h := sha256.New()
	h.Write([]byte(typ))
	h.Write([]byte{0})
	h.Write([]byte(inputs))
	return hexText(h.Sum(nil)[:workHashBytes/2])
}

const workHashBytes = 32

// bury keeps a task's name when the task leaves memory.
func (s *state) bury(i uint32, from int64) {
	spec, t := s.specOf(i), s.at(i)
	s.names.add(&tomb{ID: spec.id, Key: spec.key, Type: s.types[t.typ].name, State: t.state, Work: s.workOf(i), Ended: from})
}

func (n *names) add(b *tomb) {
	n.gone[b.ID] = b
	n.line = append(n.line, b)
	if b.Key != "" {
		n.keys[nameKey{b.Type, b.Key}] = b.ID
	}
}

// name makes a key name a task. It copies: key and id are cut out of a frame or a
// line, which they would hold in memory.
func (n *names) name(key nameKey, id string) {
	n.keys[nameKey{key.typ, strings.Clone(key.key)}] = strings.Clone(id)
}

// forget drops the oldest count names.
func (n *names) forget(count int) {
	if count < 0 || count > len(n.line) {
		panic(brokenRule("no name left to forget"))
	}
	for _, b := range n.line[:count] {
		delete(n.gone, b.ID)
		if b.Key != "" {
			delete(n.keys, nameKey{b.Type, b.Key})
		}
	}
	// What was cut off is freed when the line next grows; an image being taken
	// may still read it until then.
	n.line = n.line[count:]
}
