package engine

import "time"

// tap is the log of every message on the wire. It is soft: a restart has it as
// the settings say.
type tap struct {
	on   bool
	heap uint32 // of the moment at which it goes off by itself; 0: it stays
}

// tapLife is how long a tap stays on that somebody switched on: it writes much,
// and is easily forgotten. One that the settings ask for stays.
const tapLife = 15 * time.Minute

// switchTap switches the tap. On again is for the whole time again.
func (m *machine) switchTap(on bool) {
	m.tap.on = on
	m.monoQ.drop(due{kind: dueTap})
	if on && !m.set.Debug {
		m.monoQ.set(due{kind: dueTap}, m.now.mono+int64(tapLife))
	}
}

// tapDue is called when the tap was on for long enough.
func (m *machine) tapDue() {
	m.tap.on = false
	m.log.Info("debug switched off by itself", "after", tapLife)
}

// tapLeft is how long the tap stays on; zero: it is off, or stays.
func (m *machine) tapLeft() time.Duration {
	if m.tap.heap == 0 {
		return 0
	}
	return max(time.Duration(m.monoQ.entries[m.tap.heap-1].at-m.now.mono), time.Millisecond)
}
