package mission

// CheckTriggers checks what keeps the triggers from firing, whatever the
// contracts say: a template's, one that needs a parameter, one on itself.
func (m *Mission) CheckTriggers() error {
	if len(m.Triggers) == 0 {
		return nil
	}
	k := newChecker(m, Contracts{})
	k.faults = nil // those of the units are Check's
	k.mission()
	if len(k.faults) > 0 {
		return sorted(k.faults)
	}
	return nil
}
