package engine

// boot is the first turn: a new epoch, the configuration's effects, and every
// moment that the state waits for.
func (m *machine) boot() {
	m.since, m.tap.on = m.now.wall, m.set.Debug
	m.triggering.patient, m.verdicts.from = m.now.mono+int64(startWait), m.now.mono+checkBoot
	m.emit(&started{Epoch: m.nextEpoch(), Build: m.set.Build})
	if m.configHash != m.set.ConfigHash || m.configVersion == 0 {
		m.emit(&configured{Version: m.configVersion + 1, Hash: m.set.ConfigHash, Why: "config"})
	}
	m.bootKeys()
	for i := uint32(1); i < m.slots.made; i++ {
		t := m.at(i)
		switch {
		case t.num == 0:
		case t.state.Out():
			m.setAttemptEnd(i)
		default:
			m.arm(i)
		}
	}
	m.bootHosts()
	m.bootRuns()
	m.countWaiting()
	m.bootStats()
	for x, e := range m.execs {
		if e != nil && !e.offline {
			m.silence(uint32(x), "not back since the controller's restart", m.lostAfter(e))
		}
	}
}

// nextEpoch rises by one; a restore, which forgets epochs that were in use,
// passes a floor.
func (m *machine) nextEpoch() uint64 { return max(m.epoch+1, m.set.EpochFloor) }

// bootKeys gives keys their contract's default, and flags those whose value
// breaks it: they stay as they are, for a person to look at.
func (m *machine) bootKeys() {
	for n := range m.set.Keys {
		rule := &m.set.Keys[n]
		k := m.keys[rule.Name]
		switch {
		case k == nil && rule.HasDefault:
			m.emit(&repaired{Key: rule.Name, Value: rule.Default, Reason: "default of its contract", By: "config"})
		case k != nil && rule.Check(k.value) != nil:
			m.log.Warn("state key breaks its contract", "error", rule.Check(k.value))
		}
	}
}
