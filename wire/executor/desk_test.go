package executor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"apollo11/engine/task"
	"apollo11/wire"
)

func TestRegisterFitsTheFirstFrame(t *testing.T) {
	a := &agent{Options: Options{ID: "e"}, units: &catalog{}}
	for i := range 2000 {
		a.desk.keep(&task.Outcome{Task: strings.Repeat("x", 120) + fmt.Sprint(i), Version: 1})
	}
	frame, bare := a.registerFrame()
	m, err := wire.ParseMessage(frame[4:])
	if err != nil {
		t.Fatal(err)
	}
	r, err := wire.ParseRegister(m)
	if err != nil || !bare || len(frame) > wire.FirstFrame || len(r.Running) < 100 {
		t.Errorf("%d bytes, %d listed, %v", len(frame), len(r.Running), err)
	}
}

// What the runner has begun is not taken back, though the loop may not know yet.
func TestTakeBackAfterTheRunnerBegan(t *testing.T) {
	var d desk
	runs, next := assign("runs", 1), assign("next", 1)
	d.running = &handed{Assignment: runs, claim: &claim{}, stop: func() {}}
	d.next = &handed{Assignment: next, claim: &claim{}, stop: func() {}}
	d.push(assign("waits", 1))
	d.next.take()
	if d.takeBack(refOf(next)) || d.takeBack(refOf(runs)) || !d.holds(refOf(next)) {
		t.Error("taken back")
	}
	if back := d.takeBackAll(); len(back) != 1 || back[0].Task != "waits" {
		t.Errorf("%v", back)
	}
	if !d.stop(refOf(next)) {
		t.Error("cannot be stopped")
	}
	now := time.Unix(1, 0)
	if d.ended(now); d.running == nil || d.running.Task != "next" || d.running.began != now || d.load() != 1 {
		t.Errorf("%+v", d)
	}
}

func TestHeldOutputIsBounded(t *testing.T) {
	var d desk
	for range 100 {
		d.hold(make([]byte, 64<<10))
	}
	if len(d.held) > heldMost || !d.cut {
		t.Errorf("%d bytes, cut %v", len(d.held), d.cut)
	}
}
