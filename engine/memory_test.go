package engine

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"apollo11/engine/task"
)

// A task's life costs few allocations, those of this test's commands included.
func TestTaskAllocatesLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("-short is for the race detector, which allocates by itself")
	}
	e := newBench(1)
	e.set.RetainTasks = 1000
	life := func() {
		e.submitMany(perTurn)
		for range 4 { // the first is sent alone, until its duration is known
			e.answerAll(perTurn)
		}
	}
	for range 30 {
		life()
	}
	const most = 18
	if got := testing.AllocsPerRun(50, life) / perTurn; got > most {
		t.Errorf("%.1f allocations a task, at most %d", got, most)
	}
}

// What stays in memory of a command is copied out of it: a short key does not
// hold on to the frame that it came in.
func TestNamesDoNotHoldFrames(t *testing.T) {
	heap := func() int {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	e := newBench(0)
	const frames, size = 64, 1 << 20
	before := heap()
	for n := range frames {
		rest := strings.Repeat("x", size)
		frame := fmt.Sprintf("k%d t%d %s", n, n, rest)
		key, more, _ := strings.Cut(frame, " ")
		typ, _, _ := strings.Cut(more, " ")
		spec := task.Spec{Type: typ, Key: key, Retries: task.Unset}
		e.turn(func() {
			e.decide(Ask{Command: Submit{Specs: []task.Spec{spec}}})
			e.decide(Ask{Command: Repair{Key: key, Value: typ, Reason: "test", Actor: key}})
		})
	}
	if grown := heap() - before; grown > frames*size/4 {
		t.Errorf("%d frames of %d bytes keep %d bytes", frames, size, grown)
	}
	runtime.KeepAlive(e)
}
