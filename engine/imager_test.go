package engine

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"apollo11/engine/task"
)

// A controller that is killed again and again before its own records are worth
// an image still takes one: what it read back at its start counts.
func TestImageAfterRestartCountsTheTail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memory{}
		r := newRig(t, store, nil)
		for range 10 {
			r.submit(task.Spec{Type: "a", Inputs: task.Values{{Name: "x", Value: strings.Repeat("x", 120<<10)}}})
		}
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		store.mu.Lock()
		store.images = nil // as if it had been killed before any was taken
		store.mu.Unlock()

		r = newRig(t, store, nil)
		time.Sleep(imageEvery + time.Second)
		r.submit(task.Spec{Type: "a"})
		time.Sleep(5 * time.Second)
		synctest.Wait()
		store.mu.Lock()
		taken := len(store.images)
		store.mu.Unlock()
		if taken == 0 {
			t.Error("no image was taken, though the journal's tail is over a MiB")
		}
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
	})
}
