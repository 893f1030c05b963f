package wire

import (
	"strings"
	"testing"
	"time"

	"apollo11/engine/task"
)

func benchAssignment() *task.Assignment {
	return &task.Assignment{
		Task: "k3f9a2", Type: "fetch", Version: 3_000_001, Attempt: 1, Timeout: time.Minute, StateVersion: 17,
		Inputs: values("a", strings.Repeat("x", 50), "b", strings.Repeat("y", 48)),
	}
}

func benchOutcome() *task.Outcome {
	return &task.Outcome{
		Task: "k3f9a2", Version: 3_000_001, Status: task.Success, Outputs: values("a", strings.Repeat("x", 50), "b", strings.Repeat("y", 48)),
		Timing: task.Timing{Execute: 12 * time.Millisecond},
	}
}

func BenchmarkAppendTask(b *testing.B) {
	a, buf := benchAssignment(), make([]byte, 0, 512)
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendTask(buf[:0], a, 2)
	}
}

func BenchmarkParseTask(b *testing.B) {
	text := AppendTask(nil, benchAssignment(), 2)[header:]
	var m Message
	b.ReportAllocs()
	for b.Loop() {
		if m.Parse(text) != nil {
			b.Fatal("malformed")
		}
		if _, err := ParseTask(&m, 2); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendResult(b *testing.B) {
	o, buf := benchOutcome(), make([]byte, 0, 512)
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendResult(buf[:0], o, 2)
	}
}

func BenchmarkParseResult(b *testing.B) {
	text := AppendResult(nil, benchOutcome(), 2)[header:]
	var m Message
	b.ReportAllocs()
	for b.Loop() {
		if m.Parse(text) != nil {
			b.Fatal("malformed")
		}
		if _, err := ParseResult(&m, 2); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendAck(b *testing.B) {
	a, buf := &Ack{Task: "k3f9a2", Version: 3_000_001, StateVersion: 17}, make([]byte, 0, 512)
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendAck(buf[:0], a)
	}
}
