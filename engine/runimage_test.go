package engine

import "testing"

// An image that is being taken has a run as it was at the image's position, also
// when nothing but the run itself changes since.
func TestImageOfRunsIsOfItsMoment(t *testing.T) {
	for name, change := range map[string]func(*bench, string){
		"its turn comes": func(b *bench, id string) { b.emit(&runWent{Run: id}) },
		"it is cancelled": func(b *bench, id string) {
			if _, err := b.cancelRun(CancelRun{Run: id}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		e := newBench(1)
		m := gridMission(t, 2, 1)
		var id string
		e.turn(func() {
			p := plan{m: e.machine, mission: m, state: runWaiting}
			v, err := p.start()
			if err != nil {
				t.Fatal(err)
			}
			id = v.ID
		})
		checkMoment(t, e, name, func() { change(e, id) })
		if e.findRun(id).state == runRunning {
			continue
		}
		checkMoment(t, e, "a child goes on from it", func() {
			if _, err := e.resume(Resume{Run: id}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// checkMoment begins an image, lets something happen, and holds the image against
// the state from before.
func checkMoment(t *testing.T, e *bench, name string, happen func()) {
	t.Helper()
	was := e.hash()
	g := e.beginImage()
	e.turn(happen)
	for !e.step(g, 1) {
	}
	e.image = nil
	if got := g.sum.String(); got != was {
		t.Errorf("%s: the image has the hash %s, the state had %s", name, got, was)
	}
}
