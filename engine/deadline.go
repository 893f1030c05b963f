package engine

// deadlines is a heap of moments, the earliest on top. Each entry belongs to
// something that knows its place in the heap, so that it can be moved or taken
// out in O(log n); there is no timer per task or executor.
type deadlines struct {
	entries []deadline
	place   func(due) *uint32 // where an owner keeps its position plus one
}

type deadline struct {
	at  int64
	due due
}

// due says whose moment it is.
type due struct {
	kind dueKind
	i    uint32 // slot or executor
}

type dueKind uint8

const (
	dueTask    dueKind = iota // scheduled, retrying, expiring, or an attempt's end
	dueLife                   // an executor's next beat, or the end of its grace
	dueHold                   // a protocol 1 heartbeat's answer
	dueRecall                 // tasks waiting in an executor's local queue
	dueOrphan                 // tasks from before a protocol 1 executor's return
	dueFeed                   // what those who subscribed to the state are told; of no executor
	dueTap                    // the end of a tap; of no executor
	dueTrigger                // the next moment of a time table; of no executor
	dueCheck                  // missions held against the units; of no executor
	dueKinds
)

// set puts the owner's moment at at, wherever it was before.
func (d *deadlines) set(who due, at int64) {
	pos := d.place(who)
	if *pos == 0 {
		d.entries = append(d.entries, deadline{at, who})
		*pos = uint32(len(d.entries))
		d.up(len(d.entries) - 1)
		return
	}
	i := int(*pos) - 1
	d.entries[i].at = at
	if !d.down(i) {
		d.up(i)
	}
}

// drop takes the owner's moment out, if there is one.
func (d *deadlines) drop(who due) {
	pos := d.place(who)
	if *pos == 0 {
		return
	}
	i, last := int(*pos)-1, len(d.entries)-1
	*pos = 0
	if i != last {
		d.entries[i] = d.entries[last]
		*d.place(d.entries[i].due) = uint32(i + 1)
	}
	d.entries = d.entries[:last]
	if i != last && !d.down(i) {
		d.up(i)
	}
}

// next is the earliest moment.
func (d *deadlines) next() (at int64, ok bool) {
	if len(d.entries) == 0 {
		return 0, false
	}
	return d.entries[0].at, true
}

// pop takes out the earliest owner if its moment has come.
func (d *deadlines) pop(now int64) (who due, ok bool) {
	if len(d.entries) == 0 || d.entries[0].at > now {
		return due{}, false
	}
	who = d.entries[0].due
	d.drop(who)
	return who, true
}

func (d *deadlines) swap(i, j int) {
	d.entries[i], d.entries[j] = d.entries[j], d.entries[i]
	*d.place(d.entries[i].due) = uint32(i + 1)
	*d.place(d.entries[j].due) = uint32(j + 1)
}

func (d *deadlines) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if d.entries[parent].at <= d.entries[i].at {
			return
		}
		d.swap(i, parent)
		i = parent
	}
}

func (d *deadlines) down(i int) (moved bool) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(d.entries); child++ {
			if d.entries[child].at < d.entries[least].at {
				least = child
			}
		}
		if least == i {
			return moved
		}
		d.swap(i, least)
		i, moved = least, true
	}
}
