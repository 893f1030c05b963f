package controller_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"apollo11/wire"
)

// Heartbeats in a tight loop, as the document's executor sends them, are held:
// nobody spins.
func TestIdleHold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brisk)
	w.controller()
	const hold, beats = 200 * time.Millisecond, 6 // see brisk
	addr := w.addr()
	var group sync.WaitGroup
	for i := range 10 {
		group.Go(func() {
			if held := beat(t, addr, fmt.Sprint("idle-", i), beats); held < beats*hold {
				t.Errorf("%d heartbeats were answered within %s", beats, held)
			}
		})
	}
	group.Wait()
}

// beat registers and sends heartbeats, one after the other's answer; it returns
// how long that took.
func beat(t *testing.T, addr, id string, n int) time.Duration {
	nc, err := wire.DialTCP(t.Context(), addr)
	if err != nil {
		t.Error(err)
		return 0
	}
	w := worker{id: id, conn: wire.NewConn(nc, wire.MaxFrame)}
	defer w.conn.Close(0)
	w.conn.Within(patience)
	w.conn.Append(wire.AppendRegister(nil, &wire.Register{Exec: id, Types: []string{"echo"}}))
	if err := w.next(); err != nil {
		t.Error(err)
	}
	began := time.Now()
	for range n {
		w.conn.Append(wire.AppendHeartbeat(nil, &wire.Heartbeat{Exec: id}))
		if err := w.next(); err != nil || w.msg.Type != wire.TypeAck {
			t.Errorf("a heartbeat was answered %s, %v", w.msg.Type, err)
			return 0
		}
	}
	return time.Since(began)
}

// Ten idle executors cost the controller under 2 % of a core.
func TestIdleCost(t *testing.T) {
	if !*full {
		t.Skip("it measures for 10 s: with -full")
	}
	w := newWorld(t, "listen = \"127.0.0.1:0\"\n[local]\nexecutors = 0\n")
	c := w.controller()
	python := look(t, "python3")
	for i := range 10 {
		w.foreigner(fmt.Sprint("idle-", i), python, "executor.py")
	}
	const window = 10 * time.Second
	before := busy(t, c.cmd.Process.Pid)
	time.Sleep(window)
	used := busy(t, c.cmd.Process.Pid) - before
	share := 100 * float64(used) / float64(window)
	t.Logf("the controller used %s of processor time in %s: %.1f %% of a core", used, window, share)
	if share >= 2 {
		t.Error("want under 2 %")
	}
}
