package engine

import (
	"fmt"
	"testing"
	"time"

	"apollo11/engine/task"
)

// newHostBench is a machine with so many hosts, one executor on each, which
// offer a type that fills its host and one that needs nothing.
func newHostBench(hosts int) *bench {
	e := newBench(0)
	unit := task.Unit{Name: "heavy", Idempotent: true, Timeout: time.Hour, Retry: task.Retry{Backoff: 1}}
	unit.Resources.CPU = 1000
	for n := range hosts {
		l := &benchLink{id: fmt.Sprint("e", n)}
		e.links[l.id] = l
		e.turn(func() {
			e.decide(Ask{Link: l, Command: Register{
				Exec: l.id, Types: []string{"add", "heavy"}, Units: []task.Unit{unit}, Proto: 2, Instance: "i",
				Host: l.id, Share: l.id, Capacity: task.Resources{CPU: 1000},
			}})
		})
	}
	return e
}

func (b *bench) submitHeavy(n int) {
	b.turn(func() {
		for range n {
			b.decide(Ask{Command: Submit{Specs: []task.Spec{{Type: "heavy", Retries: task.Unset}}}})
		}
	})
}

// One operation is a task's whole life, of a type that needs all of a host: with
// as many hosts to look at.
func BenchmarkDispatchResources(b *testing.B) {
	for _, hosts := range []int{1, 10, 1000} {
		b.Run(fmt.Sprint("hosts=", hosts), func(b *testing.B) {
			e := newHostBench(hosts)
			e.submitHeavy(hosts + perTurn)
			b.ResetTimer()
			for done := 0; done < b.N; {
				n := e.answerAll(perTurn)
				done += n
				e.submitHeavy(n)
			}
		})
	}
}

// One operation is a turn in which nothing happens, with all hosts full and a
// task that waits for one: it must not look at them.
func BenchmarkDispatchFull(b *testing.B) {
	for _, hosts := range []int{1, 1000} {
		b.Run(fmt.Sprint("hosts=", hosts), func(b *testing.B) {
			e := newHostBench(hosts)
			e.submitHeavy(hosts + 1)
			for b.Loop() {
				e.turn(func() {})
			}
		})
	}
}
