package mission

import (
	mathbits "math/bits"
	"time"
)

// Schedule is a time table in a time zone. A local time that a clock change
// skips comes at the first minute after it, once for all that were skipped; one
// that it repeats comes the first time only.
type Schedule struct {
	minutes, hours, days, months, weekdays uint64 // bit n: n is in the table
	either                                 bool   // both days are said: one of them is enough

	zone *time.Location
}

// farthest is how many days a table is followed to its next time: the 29th of
// February comes back to a weekday after 40 years at most.
const farthest = 366 * 41

// Next is the first time after the given one; zero: there is none.
func (s *Schedule) Next(after time.Time) time.Time {
	// Times on the wall are counted as if they were UTC: there no hour is
	// missing. What the wall showed before never comes after.
	wall := onWall(after.In(s.zone)).Truncate(time.Minute)
	for {
		next, ok := s.match(wall)
		if !ok {
			return time.Time{}
		}
		if at := s.instant(next); at.After(after) {
			return at
		}
		wall = next.Add(time.Minute)
	}
}

// Text is a moment as the table's zone tells it.
func (s *Schedule) Text(at time.Time) string { return at.In(s.zone).Format(time.RFC3339) }

// onWall is what a clock on the wall shows, as a time in UTC.
func onWall(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

// match is the first minute of the table, on the wall, that is not before this one.
func (s *Schedule) match(wall time.Time) (time.Time, bool) {
	for range farthest {
		day := wall.Truncate(24 * time.Hour)
		if s.day(day) {
			if minute, ok := s.minute(int(wall.Sub(day) / time.Minute)); ok {
				return day.Add(time.Duration(minute) * time.Minute), true
			}
		}
		wall = day.AddDate(0, 0, 1)
	}
	return time.Time{}, false
}

// day reports whether the table has this day.
func (s *Schedule) day(t time.Time) bool {
	day, weekday := s.days>>t.Day()&1 == 1, s.weekdays>>t.Weekday()&1 == 1
	return s.months>>t.Month()&1 == 1 && (day && weekday || s.either && (day || weekday))
}

// minute is the first minute of a day, from one on, that the table has.
func (s *Schedule) minute(from int) (int, bool) {
	for hour, minute := from/60, from%60; hour < 24; hour, minute = hour+1, 0 {
		if s.hours>>hour&1 == 0 {
			continue
		}
		if rest := s.minutes >> minute; rest != 0 {
			return hour*60 + minute + mathbits.TrailingZeros64(rest), true
		}
	}
	return 0, false
}

// instant is when the wall first shows this time, or, if it is skipped, the
// first full minute after.
func (s *Schedule) instant(wall time.Time) time.Time {
	near := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), 0, 0, s.zone)
	start, end := near.ZoneBounds()
	var first time.Time
	for _, in := range []time.Time{start.Add(-1), near, end} { // the zones before, of, and after it
		if in.Before(onWallFloor) {
			continue // this side is open
		}
		_, offset := in.In(s.zone).Zone()
		at := wall.Add(-time.Duration(offset) * time.Second).In(s.zone)
		if onWall(at).Equal(wall) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if !first.IsZero() {
		return first
	}
	change := start
	if onWall(near).Before(wall) {
		change = end
	}
	if rest := onWall(change.In(s.zone)).Sub(onWall(change.In(s.zone)).Truncate(time.Minute)); rest > 0 {
		change = change.Add(time.Minute - rest) // zones of long ago changed within a minute
	}
	return change.In(s.zone)
}

// onWallFloor is before every time that a zone knows of, and after the zero time.
var onWallFloor = time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC)
