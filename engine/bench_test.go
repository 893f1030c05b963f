package engine

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"apollo11/engine/task"
)

// bench is a machine on a disk that costs nothing, with executors that offer
// one short type.
type bench struct {
	*machine
	links map[string]*benchLink
}

// benchLink keeps what was sent to an executor and has not been answered.
type benchLink struct {
	id   string
	sent []task.Assignment
}

func (l *benchLink) Order(o Order) {
	if a, ok := o.(Assign); ok {
		l.sent = append(l.sent, a.Assignment)
	}
}
func (l *benchLink) Answer(uint64, Answer, error) {}
func (l *benchLink) Flush()                       {}
func (l *benchLink) Heard() time.Time             { return time.Unix(0, 0) }

func newBench(execs int) *bench {
	set := DefaultSettings()
	b := &bench{machine: newMachine(newState(), set, quiet), links: map[string]*benchLink{}}
	b.set.base = time.Unix(0, 0)
	b.turn(b.boot)
	for n := range execs {
		l := &benchLink{id: fmt.Sprint("e", n)}
		b.links[l.id] = l
		b.turn(func() {
			b.decide(Ask{Command: Register{Exec: l.id, Types: []string{"add"}, Proto: 2, Instance: "i"}, Link: l})
		})
	}
	return b
}

// turn is a turn whose batch is thrown away.
func (b *bench) turn(do func()) (bytes int) {
	b.begin(moment{raw: b.now.raw + 1_000_000, mono: b.now.mono + 1}, false)
	do()
	b.settle()
	bytes = len(b.batch.records.out)
	sends := b.batch.sends
	b.batch.records.out, b.batch.ends = b.batch.records.out[:0], b.batch.ends[:0]
	for n := range sends {
		if sends[n].order != nil {
			sends[n].link.Order(sends[n].order)
		}
	}
	clear(sends)
	b.batch.sends = sends[:0]
	return bytes
}

const perTurn = 100 // commands that wait together, as under load

var hundredBytes = task.Values{{Name: "path", Value: "/data/in/2026-01-01/" + strings.Repeat("x", 60)}, {Name: "rows", Value: "1000000000"}}

func (b *bench) submitMany(n int) {
	for n > 0 {
		b.turn(func() {
			for range min(n, perTurn) {
				b.decide(Ask{Command: Submit{Specs: []task.Spec{{Type: "add", Inputs: hundredBytes, Retries: task.Unset}}}})
			}
		})
		n -= perTurn
	}
}

// answerAll gives the results of up to n tasks that are out, in one turn.
func (b *bench) answerAll(n int) (answered int) {
	b.turn(func() {
		for _, l := range b.links {
			give := min(len(l.sent), n-answered)
			for _, a := range l.sent[:give] {
				o := task.Outcome{Task: a.Task, Version: a.Version, Status: task.Success, Timing: task.Timing{Execute: time.Millisecond}}
				o.Outputs = task.Values{{Name: "sum", Value: "42"}}
				b.decide(Ask{Command: Result{Exec: l.id, Outcome: o}, Link: l})
				answered++
			}
			l.sent = append(l.sent[:0], l.sent[give:]...)
		}
	})
	return answered
}

func BenchmarkSubmit(b *testing.B) {
	e := newBench(0)
	b.ReportAllocs()
	for done := 0; done < b.N; done += perTurn {
		e.submitMany(perTurn)
	}
}

// One operation is a task's whole life: submit, dispatch, result, and in the end
// to be forgotten; with so many others in the queue.
func BenchmarkTask(b *testing.B) {
	for _, queued := range []int{1000, 1_000_000} {
		b.Run(fmt.Sprint("queued=", queued), func(b *testing.B) {
			e := newBench(1)
			e.submitMany(queued)
			b.ReportAllocs()
			b.ResetTimer()
			for done := 0; done < b.N; {
				n := e.answerAll(perTurn)
				done += n
				e.submitMany(n)
			}
		})
	}
}

func BenchmarkMemory(b *testing.B) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const tasks = 1_000_000
	for b.Loop() {
		before := heap()
		e := newBench(0)
		e.submitMany(tasks)
		b.ReportMetric(float64(heap()-before)/tasks, "bytes/task")
		start := time.Now()
		runtime.GC()
		b.ReportMetric(float64(time.Since(start).Microseconds()), "us/collection")
		runtime.KeepAlive(e)
	}
}

func BenchmarkImage(b *testing.B) {
	const tasks = 100_000
	e := newBench(0)
	e.submitMany(tasks)
	var lines string
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			g := e.newImaging()
			for !e.step(g, 1000) {
			}
			lines = string(g.take())
		}
		b.ReportMetric(float64(tasks)*float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
	})
	b.Run("load", func(b *testing.B) {
		for b.Loop() {
			if _, err := loadLines(lines); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(tasks)*float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
	})
}

func BenchmarkFold(b *testing.B) {
	e := newBench(1)
	var journal []string
	note := func(do func()) {
		e.begin(moment{raw: e.now.raw + 1_000_000, mono: e.now.mono + 1}, false)
		do()
		e.settle()
		start := 0
		for _, end := range e.batch.ends {
			journal = append(journal, string(e.batch.records.out[start:end]))
			start = end + 1
		}
	}
	e2 := newBench(0)
	e.machine = newMachine(newState(), DefaultSettings(), quiet)
	e.set.base = e2.set.base
	note(e.boot)
	e.turn(func() {})
	for range 1000 {
		note(func() {
			for range perTurn {
				e.decide(Ask{Command: Submit{Specs: []task.Spec{{Type: "add", Inputs: hundredBytes, Retries: task.Unset}}}})
			}
		})
		e.batch.records.out, e.batch.ends, e.batch.sends = e.batch.records.out[:0], e.batch.ends[:0], e.batch.sends[:0]
	}
	for b.Loop() {
		s := newState()
		for n, entry := range journal {
			if err := foldText(s, uint64(n+1), entry); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(len(journal))*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
