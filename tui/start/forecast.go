package start

import (
	"container/heap"
	"time"

	"apollo11/engine/mission"
	"apollo11/engine/view"
)

// enough is how many samples make a percentile worth more than the slowest one.
const enough = 100

// suggested is the timeout that experience suggests; 0: there is none. The
// documents have two rules: half as much again as the slowest while few are
// known, later two and a half times what 99 of 100 stay under.
func suggested(s *view.TypeStats) time.Duration {
	switch {
	case s.Samples == 0:
		return 0
	case s.Samples < enough:
		return max(leastTimeout, time.Duration(s.MaxUS)*time.Microsecond*3/2)
	}
	return max(leastTimeout, time.Duration(s.P99US)*time.Microsecond*5/2)
}

// leastTimeout is the shortest that is suggested: a busy host may need as long to
// start a program at all.
const leastTimeout = time.Second

// headroom is how many executors are advised where so many units run side by
// side: 30 % more, since real work turns out larger than what is foreseen.
func headroom(side int) int { return (side*13 + 9) / 10 }

// flight is a mission flown on paper: every unit starts as soon as what it waits
// for has ended and an executor is free.
type flight struct {
	count *mission.Countdown
	takes []time.Duration
	most  int // executors; 0: as many as are asked for
	ready []int32
	air   landing // units that run
	side  int     // the most that ran at once
	now   time.Duration
}

// fly says how long a mission takes and how many of its units run side by side.
func fly(g *mission.Graph, takes []time.Duration, most int) (total time.Duration, side int) {
	f := &flight{count: g.Countdown(), takes: takes, most: most}
	f.ready = f.count.Roots(nil)
	for f.start(); len(f.air) > 0; f.start() {
		f.now = f.air[0].at
		for len(f.air) > 0 && f.air[0].at == f.now {
			f.ready = f.count.Finish(heap.Pop(&f.air).(arrival).unit, f.ready)
		}
	}
	return f.now, f.side
}

// start starts what may start. A unit that takes no time is over at once, and
// needs no executor: it is skipped.
func (f *flight) start() {
	for len(f.ready) > 0 && (f.most == 0 || len(f.air) < f.most) {
		u := f.ready[0]
		f.ready = f.ready[1:]
		if f.takes[u] == 0 {
			f.ready = f.count.Finish(u, f.ready)
			continue
		}
		heap.Push(&f.air, arrival{f.now + f.takes[u], u})
	}
	f.side = max(f.side, len(f.air))
}

// arrival is when a unit ends.
type arrival struct {
	at   time.Duration
	unit int32
}

// landing is a heap, the next one first.
type landing []arrival

func (l landing) Len() int { return len(l) }
func (l landing) Less(i, j int) bool {
	return l[i].at < l[j].at || l[i].at == l[j].at && l[i].unit < l[j].unit
}
func (l landing) Swap(i, j int) { l[i], l[j] = l[j], l[i] }

// Push implements heap.Interface.
func (l *landing) Push(x any) { *l = append(*l, x.(arrival)) }

// Pop implements heap.Interface.
func (l *landing) Pop() any {
	last := len(*l) - 1
	x := (*l)[last]
	*l = (*l)[:last]
	return x
}
