package mission

import (
	"math"
	"time"

	"apollo11/engine/task"
)

// Longest is, for every unit, the time that it takes if each of its attempts
// takes all that it may and only the last ends well. The mission has passed Check
// with these contracts.
func (m *Mission) Longest(c Contracts) []time.Duration {
	k := newChecker(m, c)
	list := make([]time.Duration, len(m.Units))
	for i := range m.Units {
		list[i] = m.Units[i].longest(k.contracts[m.Units[i].Uses])
	}
	return list
}

func (u *Unit) longest(contract *task.Unit) time.Duration {
	retry, execute := contract.Retry, contract.Timeout
	if u.Timeout > 0 {
		execute = u.Timeout
	}
	if u.Retries != task.Unset {
		retry.Retries = u.Retries
	}
	if u.RetryInterval != Inherit {
		retry.Interval = u.RetryInterval
	}
	attempt := contract.Prepare + execute + contract.Cleanup
	total := attempt
	for n := 1; n <= retry.Retries; n++ {
		total = sum(total, sum(retry.Wait(n, 1), attempt))
	}
	return total
}

// sum adds without leaving the numbers.
func sum(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Skipped says which units the parameters alone leave out: those whose condition
// they decide, and what waits for these.
func (g *Graph) Skipped(conditions []Conditions, params task.Values) ([]bool, error) {
	skipped := make([]bool, g.Len())
	for _, u := range g.order {
		for _, p := range g.parents[u] {
			skipped[u] = skipped[u] || skipped[p]
		}
		when := conditions[u].When
		if skipped[u] || when == nil || !when.decided() {
			continue
		}
		yes, err := when.Eval(Given(params), nil)
		if err != nil {
			return nil, err
		}
		skipped[u] = !yes
	}
	return skipped, nil
}

// decided reports whether parameters are all that the condition reads.
func (e *Expression) decided() bool {
	for _, o := range e.reads {
		if o.scope != toParam || o.own {
			return false
		}
	}
	return true
}
