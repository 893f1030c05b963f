package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"apollo11/engine/view"
)

// A tap that somebody switched on goes off after 15 minutes, by itself; one that
// the settings ask for stays on, and so does one that was switched off and on
// again under such settings.
func TestTapGoesOffByItself(t *testing.T) {
	for _, always := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, &memory{}, func(s *Settings) { s.Debug = always })
			want := func(on bool, left time.Duration) {
				t.Helper()
				s := ask[*view.Status](r, GetStatus{})
				if s.Debug != on || s.DebugLeftMS != left.Milliseconds() || r.Debugging() != on {
					t.Errorf("settings %v: debug %v for %d ms, tapped %v; want %v for %s", always, s.Debug, s.DebugLeftMS, r.Debugging(), on, left)
				}
			}
			left := func(d time.Duration) time.Duration {
				if always {
					return 0
				}
				return d
			}
			want(always, 0)
			ask[Done](r, Debug{On: true})
			want(true, left(15*time.Minute))
			time.Sleep(10 * time.Minute)
			want(true, left(5*time.Minute))
			ask[Done](r, Debug{On: true}) // the whole time again
			time.Sleep(15*time.Minute - time.Millisecond)
			want(true, left(time.Millisecond))
			time.Sleep(2 * time.Millisecond)
			want(always, 0)
			ask[Done](r, Debug{On: true})
			ask[Done](r, Debug{})
			want(false, 0)
			time.Sleep(time.Hour) // the end of a tap that was switched off already ends nothing later
			ask[Done](r, Debug{On: true})
			time.Sleep(14 * time.Minute)
			want(true, left(time.Minute))
			if err := r.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}
