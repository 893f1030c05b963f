package controller_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"apollo11/engine"
	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/snapshot"
	"apollo11/wire/controller"
)

// A repair loses starts, and with them the epochs that executors still hold
// versions of. No version may be given twice, so the epoch jumps past them.
func TestEpochAfterRepair(t *testing.T) {
	dir := t.TempDir()
	began := uint64(time.Now().Unix())
	for want := uint64(1); want <= 3; want++ {
		if got := epochOf(t, dir); got != want {
			t.Fatalf("start %d has epoch %d", want, got)
		}
	}
	plan, err := snapshot.PlanEmpty(dir)
	if err == nil {
		err = snapshot.Repair(dir, plan)
	}
	if err != nil {
		t.Fatal(err)
	}
	first := epochOf(t, dir)
	if first < began {
		t.Errorf("after the repair the epoch is %d: versions of epoch %d come again", first, first)
	}
	if next := epochOf(t, dir); next != first+1 {
		t.Errorf("epoch %d is followed by %d", first, next)
	}
}

// epochOf starts a controller, stops it, and says which epoch that was.
func epochOf(t *testing.T, dir string) uint64 {
	t.Helper()
	c, err := controller.Open(controller.Options{Dir: dir, Addr: "127.0.0.1:0", Settings: engine.DefaultSettings(), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	if err := c.Run(ctx, stop); err != nil {
		t.Fatal(err)
	}
	journal, err := controller.OpenOffline(dir)
	if err != nil {
		t.Fatal(err)
	}
	page, err := journal.Timeline(t.Context(), view.EventQuery{})
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, e := range page.Events {
		if e.Kind == "start" {
			text, _ = task.Values(e.Values).Get("epoch")
		}
	}
	epoch, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return epoch
}
