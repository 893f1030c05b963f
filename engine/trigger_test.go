package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"apollo11/engine/mission"
)

// zoned is a mission with a time table, and the same table in other words.
type zoned struct {
	name, table, zone string
	has               func(wall time.Time) bool
}

// fourZones change their clocks by an hour, by half of one, at midnight, and in
// the other half of the year.
func fourZones() (list []zoned) {
	for _, zone := range []string{"America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "America/Santiago"} {
		name := strings.ToLower(strings.ReplaceAll(zone, "/", "-"))
		list = append(list,
			zoned{name + "-daily", "30 2 * * *", zone, func(w time.Time) bool { return w.Hour() == 2 && w.Minute() == 30 }},
			zoned{name + "-night", "15 0,1,2 * * 0,1", zone, func(w time.Time) bool {
				return w.Hour() <= 2 && w.Minute() == 15 && w.Weekday() <= time.Monday
			}},
			zoned{name + "-rare", "45 1 13 * 5", zone, func(w time.Time) bool {
				return w.Hour() == 1 && w.Minute() == 45 && (w.Day() == 13 || w.Weekday() == time.Friday)
			}},
		)
	}
	return list
}

// walk finds a table's moments minute by minute: the first time that the wall
// shows one, or the first minute after a change that skips it.
func (z *zoned) walk(t *testing.T, from, to time.Time) (moments []string) {
	zone, err := time.LoadLocation(z.zone)
	if err != nil {
		t.Fatal(err)
	}
	shown := map[int64]bool{}
	last := int64(-1)
	for at := from.Add(-48 * time.Hour); at.Before(to); at = at.Add(time.Minute) {
		_, offset := at.In(zone).Zone()
		wall := (at.Unix() + int64(offset)) / 60
		if last < 0 {
			last = wall - 1
		}
		fires := false
		for w := last + 1; w <= wall; w++ {
			fires = fires || !shown[w] && z.has(time.Unix(w*60, 0).UTC())
			shown[w] = true
		}
		if last = wall; fires && at.After(from) {
			moments = append(moments, at.In(zone).Format(time.RFC3339))
		}
	}
	return moments
}

// A year in which the controller is killed at random moments, and stays away for
// a while: each moment of each table starts one run, and no more.
func TestAYearOfTablesInFourZones(t *testing.T) {
	for _, tt := range []struct {
		catchUp string
		away    time.Duration // at most
		kills   int
	}{{"none", onTime, 8}, {"all", 50 * time.Hour, 8}} {
		t.Run(tt.catchUp, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			r := rand.New(rand.NewPCG(seed, 1))
			s := newScript(t)
			s.run([]string{"unit work"})
			s.run([]string{"register e1 units=work"})
			from := time.Unix(0, s.now.raw)
			to := from.AddDate(1, 0, 0)
			set := SetMissions{}
			for _, z := range fourZones() {
				text := fmt.Sprintf("name = %q\n[[units]]\nname = 'work'\n[[triggers]]\ncron = %q\ntimezone = %q\ncatch_up = %q\noverlap = 'allow'\n",
					z.name, z.table, z.zone, tt.catchUp)
				m, err := mission.Parse(z.name+".toml", []byte(text))
				if err != nil {
					t.Fatal(err)
				}
				set.Missions = append(set.Missions, NamedMission{Name: z.name, File: z.name + ".toml", Mission: m})
			}
			tell := func() { s.turn(func() { s.m.decide(Ask{Command: set, Link: s.link("op")}) }) }
			tell()
			restart := func(away time.Duration) {
				s.restart()
				s.move(away)
				tell()
			}
			var kills []int64
			for range tt.kills {
				kills = append(kills, s.now.raw+r.Int64N(int64(to.Sub(from))))
			}
			slices.Sort(kills)
			for s.now.raw < to.UnixNano() {
				at, ok := s.m.wallQ.next()
				if !ok {
					t.Fatal("nothing is due any more")
				}
				if len(kills) > 0 && kills[0] < at {
					s.move(max(0, time.Duration(kills[0]-s.now.raw)))
					kills = kills[1:]
					restart(time.Duration(r.Int64N(int64(tt.away))))
					continue
				}
				s.move(max(0, time.Duration(at-s.now.raw)))
				s.turn(func() {})
				if r.IntN(300) == 0 {
					restart(0) // right behind a moment
				}
			}
			checkMoments(t, s.journal, from, to)
		})
	}
}

// checkMoments holds what the journal says against the walk.
func checkMoments(t *testing.T, journal []string, from, to time.Time) {
	fired := map[string][]string{}
	runs := 0
	for _, entry := range journal {
		_, rec, err := parseRecord(entry)
		if err != nil {
			t.Fatal(err)
		}
		switch r := rec.(type) {
		case *triggerFired:
			if r.Skipped != "" {
				t.Fatalf("%s was skipped: %s", r.Mission, r.Skipped)
			}
			_, due, _ := strings.Cut(r.Why, ", due ")
			due, _, _ = strings.Cut(due, ",")
			if at, err := time.Parse(time.RFC3339, due); err != nil || !at.Before(to) {
				continue
			}
			fired[r.Mission] = append(fired[r.Mission], due)
		case *runStarted:
			runs++
		}
	}
	total := 0
	for _, z := range fourZones() {
		want := z.walk(t, from, to)
		if !slices.Equal(fired[z.name], want) {
			t.Errorf("%s: %d moments, want %d\ngot  %v\nwant %v", z.name, len(fired[z.name]), len(want), fired[z.name], want)
		}
		total += len(want)
	}
	if runs < total || total < 4*365 {
		t.Errorf("%d runs for %d moments", runs, total)
	}
}

func TestATriggerRemembersSoManyFiles(t *testing.T) {
	var m triggerMemory
	for n := range mostFiles {
		m.remember(fmt.Sprint(n), "1")
	}
	m.remember("0", "2") // the oldest, again: it is the newest now
	m.remember("new", "1")
	if len(m.files) != mostFiles || len(m.line) != mostFiles {
		t.Fatalf("%d files, %d in line", len(m.files), len(m.line))
	}
	if m.files["0"] != "2" || m.files["new"] != "1" || m.files["1"] != "" || m.files["2"] != "1" {
		t.Errorf("0=%q new=%q 1=%q 2=%q", m.files["0"], m.files["new"], m.files["1"], m.files["2"])
	}
}

// A table that was left alone for a year is made up for up to a bound, over
// several turns, and runs that wait have a bound too.
func TestMadeUpMomentsAreBounded(t *testing.T) {
	s := newScript(t)
	s.run([]string{"unit work"})
	s.run([]string{"register e1 units=work"})
	m, err := mission.Parse("m.toml", []byte("name = 'm'\n[[units]]\nname = 'work'\n[[triggers]]\ncron = '* * * * *'\ncatch_up = 'all'\n"))
	if err != nil {
		t.Fatal(err)
	}
	set := SetMissions{Missions: []NamedMission{{Name: "m", File: "m.toml", Mission: m}}}
	tell := func() { s.turn(func() { s.m.decide(Ask{Command: set, Link: s.link("op")}) }) }
	tell()
	s.restart()
	s.move(365 * 24 * time.Hour)
	tell()
	for wait, _ := s.m.wake(); wait == 0; wait, _ = s.m.wake() {
		s.turn(func() {})
	}
	if on := s.m.runNums; on < mostMissed || on > mostMissed+1 {
		t.Errorf("%d runs, want %d and the one that was on time", on, mostMissed)
	}
	if waiting := s.m.triggering.waiting["m"]; waiting > mostWaiting {
		t.Errorf("%d runs wait", waiting)
	}
	if next := time.Unix(0, s.m.triggers[triggerKey{"m", "cron * * * * *"}].at); next.Sub(s.m.wallTime()) > time.Minute {
		t.Errorf("the next moment is %s, it is %s", next, s.m.wallTime())
	}
	s.restart()
}

// One mission after another, and one on a key and on files, with kills at random:
// what should start does, once.
func TestFollowersAreNeitherLostNorDoubled(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	s := newScript(t)
	s.set.CrashLimit = 1 << 20 // it is not the units that are tried here
	const all = "missions asked follower last files keyed"
	instance := 0
	begin := func() {
		instance++
		s.run([]string{fmt.Sprintf("register e1 types=work instance=%d", instance)})
		s.run([]string{all})
	}
	begin()
	finish := func() bool {
		for i := uint32(1); i < s.m.slots.made; i++ {
			if t := s.m.at(i); t.num != 0 && t.state.Out() {
				s.run([]string{"result e1 " + s.m.id(i)})
				return true
			}
		}
		return false
	}
	events, changes, stamps := 0, 0, map[int]int{}
	for range 400 {
		switch r.IntN(8) {
		case 0:
			s.run([]string{"event go"})
			events++
		case 1:
			file, stamp := r.IntN(5), 1+r.IntN(3)
			if stamps[file] != stamp {
				changes++
			}
			stamps[file] = stamp
			s.run([]string{fmt.Sprintf("file files 1 /in/%d %d", file, stamp)})
		case 2:
			s.restart()
			begin()
		case 3:
			s.run([]string{"image"})
		default:
			finish()
		}
	}
	for finish() {
		s.turn(func() {})
	}
	s.restart()
	runs, causes := map[string]int{}, map[string]int{}
	for _, run := range s.m.runs[1:] {
		if run.state != runSucceeded {
			t.Fatalf("run %s of %s is %s", run.id, run.spec.mission.Name, run.state)
		}
		runs[run.spec.mission.Name]++
		causes[run.origin.Cause]++
	}
	for cause, n := range causes {
		if strings.HasPrefix(cause, "after ") && n != 1 {
			t.Errorf("%d runs %s", n, cause)
		}
	}
	if events == 0 || runs["asked"] != events || runs["follower"] != events || runs["last"] != events {
		t.Errorf("%d events: %v", events, runs)
	}
	fromFiles := 0
	for cause, n := range causes {
		if strings.HasPrefix(cause, "file ") {
			fromFiles += n
		}
	}
	if fromFiles != changes {
		t.Errorf("%d runs for %d files", fromFiles, changes)
	}
}

// A file that comes while as many runs wait as may is not lost: it is refused
// without being remembered, and taken once there is room.
func TestAFileWaitsForRoom(t *testing.T) {
	s := newScript(t)
	s.run([]string{"register e1 types=work instance=1"})
	s.run([]string{"missions files"})
	s.run([]string{"result e1 r-0001:work"}) // of the start
	for n := range 1 + mostWaiting {
		s.run([]string{fmt.Sprintf("file files 1 /in/%d 1", n)})
	}
	if waiting := s.m.triggering.waiting["files"]; waiting != mostWaiting {
		t.Fatalf("%d runs wait, want %d", waiting, mostWaiting)
	}
	late := func() (said string) {
		s.out = nil
		s.run([]string{"file files 1 /in/late 1"})
		return strings.Join(s.out, "\n")
	}
	if said := late(); said != "op <- error: mission files: too many runs of the mission wait: 1000 already" {
		t.Errorf("over the bound: %s", said)
	}
	s.run([]string{"result e1 r-0002:work"})
	if said := late(); !strings.Contains(said, `trigger.fire mission=files trigger="file in/*.csv" why="file /in/late" run=`) {
		t.Errorf("with room again: %s", said)
	}
}
