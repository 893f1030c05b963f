package mission

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the rules of the year that is tested, wherever it is
)

func timetable(t testing.TB, text, zone string) *Schedule {
	t.Helper()
	s, err := (&Trigger{What: text, Timezone: zone}).Schedule(time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// minutes is the other calculation: a walk through every minute that there is,
// noting what the clock on the wall shows for the first time, or skips.
type minutes []minute

type minute struct {
	at    time.Time
	walls []time.Time // new at this minute
}

func walkMinutes(zone *time.Location, from, to time.Time) (m minutes) {
	shown := map[int64]bool{} // by the minute on the wall, counted from 1970
	before := int64(-1)
	for at := from.Add(-26 * time.Hour); at.Before(to); at = at.Add(time.Minute) {
		_, offset := at.In(zone).Zone()
		wall := (at.Unix() + int64(offset)) / 60
		if before < 0 {
			before = wall - 1
		}
		one := minute{at: at}
		for w := before + 1; w <= wall; w++ {
			if !shown[w] {
				shown[w] = true
				one.walls = append(one.walls, time.Unix(w*60, 0).UTC())
			}
		}
		before = wall
		if !at.Before(from) {
			m = append(m, one)
		}
	}
	return m
}

// plain is a table, column by column, spelled out.
type plain struct {
	has  [5][61]bool
	both bool
}

func newPlain(text string) (p plain) {
	columns := strings.Fields(text)
	p.both = columns[2][0] != '*' && columns[4][0] != '*'
	for i, column := range columns {
		for part := range strings.SplitSeq(column, ",") {
			span, every, stepped := strings.Cut(part, "/")
			low, high, ranged := strings.Cut(span, "-")
			from, to, step := 0, 60, 1
			if stepped {
				step, _ = strconv.Atoi(every)
			}
			switch {
			case span == "*" && (i == 2 || i == 3):
				from = 1
			case span != "*":
				from, _ = strconv.Atoi(low)
				if !stepped {
					to = from
				}
				if ranged {
					to, _ = strconv.Atoi(high)
				}
			}
			for v := from; v <= to; v += step {
				p.has[i][v] = true
			}
		}
	}
	return p
}

func (p *plain) matches(wall time.Time) bool {
	day, weekday := p.has[2][wall.Day()], p.has[4][wall.Weekday()]
	return p.has[0][wall.Minute()] && p.has[1][wall.Hour()] && p.has[3][wall.Month()] && (day && weekday || p.both && (day || weekday))
}

func (p *plain) in(m minutes) (fires []time.Time) {
	for _, one := range m {
		if slices.ContainsFunc(one.walls, p.matches) {
			fires = append(fires, one.at)
		}
	}
	return fires
}

// A year in zones that change their clocks: by an hour, by half of one, at
// midnight, twice a year in the other order, around Ramadan, and never.
func TestAYearIsWhatAWalkThroughItsMinutesFinds(t *testing.T) {
	zones := []string{
		"America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "America/Santiago",
		"Africa/Casablanca", "Africa/Cairo", "Asia/Kathmandu", "UTC",
	}
	tables := []string{
		"30 2 * * *", "15 1 * * *", "0 0 * * *", "*/10 * * * *", "0 */3 * * 1-5", "45 1,2,3 * * 0", "17 23 13 * 5",
		"0 0 */2 * 1", "5 0 31 * *", "59 1 29 2 *", "20 0-2 * 3,4,9-11 6,0",
	}
	from := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	to := from.AddDate(1, 0, 0)
	for _, zone := range zones {
		year := walkMinutes(timetable(t, "@daily", zone).zone, from, to)
		for _, text := range tables {
			s, spelled := timetable(t, text, zone), newPlain(text)
			want := spelled.in(year)
			var got []time.Time
			for at := s.Next(from.Add(-1)); at.Before(to); at = s.Next(at) {
				got = append(got, at)
			}
			if !slices.EqualFunc(got, want, time.Time.Equal) {
				t.Errorf("%s in %s: %d times, want %d%s", text, zone, len(got), len(want), firstOther(got, want))
			}
		}
	}
}

func firstOther(got, want []time.Time) string {
	for i := range min(len(got), len(want)) {
		if !got[i].Equal(want[i]) {
			return fmt.Sprintf(": the %dth is %s, want %s", i, got[i], want[i].In(got[i].Location()))
		}
	}
	return ""
}

func TestNext(t *testing.T) {
	tests := []struct{ table, zone, after, want string }{
		// Skipped: 2024-03-10 02:00 to 03:00 in New York.
		{"30 2 * * *", "America/New_York", "2024-03-09T12:00:00-05:00", "2024-03-10T03:00:00-04:00"},
		{"30 2 * * *", "America/New_York", "2024-03-10T03:00:00-04:00", "2024-03-11T02:30:00-04:00"},
		{"*/20 * * * *", "America/New_York", "2024-03-10T01:59:59-05:00", "2024-03-10T03:00:00-04:00"},
		{"*/20 * * * *", "America/New_York", "2024-03-10T03:00:00-04:00", "2024-03-10T03:20:00-04:00"},
		// Repeated: 2024-11-03 01:00 to 02:00, from any moment in it.
		{"30 1 * * *", "America/New_York", "2024-11-03T01:29:59-04:00", "2024-11-03T01:30:00-04:00"},
		{"30 1 * * *", "America/New_York", "2024-11-03T01:30:00-04:00", "2024-11-04T01:30:00-05:00"},
		{"30 1 * * *", "America/New_York", "2024-11-03T01:10:00-05:00", "2024-11-04T01:30:00-05:00"},
		{"*/20 * * * *", "America/New_York", "2024-11-03T01:40:00-04:00", "2024-11-03T02:00:00-05:00"},
		// By half an hour.
		{"15 2 * * *", "Australia/Lord_Howe", "2024-10-05T12:00:00+10:30", "2024-10-06T02:30:00+11:00"},
		{"45 1 * * *", "Australia/Lord_Howe", "2024-04-07T01:45:00+11:00", "2024-04-08T01:45:00+10:30"},
		// At midnight, and a whole day: there was no 30th of December in Samoa.
		{"0 0 * * *", "America/Santiago", "2024-09-07T12:00:00-04:00", "2024-09-08T01:00:00-03:00"},
		{"0 12 30 12 *", "Pacific/Apia", "2011-12-29T13:00:00-10:00", "2011-12-31T00:00:00+14:00"},
		{"0 12 30 12 *", "Pacific/Apia", "2011-12-31T00:00:00+14:00", "2012-12-30T12:00:00+14:00"},
		// A day that came twice, in Kwajalein; and a change within a minute.
		{"0 12 * * *", "Pacific/Kwajalein", "1969-09-30T12:00:00+11:00", "1969-10-01T12:00:00-12:00"},
		{"* * * * *", "Africa/Monrovia", "1972-01-07T00:43:30Z", "1972-01-07T00:45:00Z"},
		// Rare days, and seconds that are cut.
		{"0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"},
		{"0 0 29 2 */7", "UTC", "2088-03-01T00:00:00Z", "2128-02-29T00:00:00Z"},
		{"* * * * *", "UTC", "2024-01-01T00:00:59.999999999Z", "2024-01-01T00:01:00Z"},
		{"* * * * *", "", "2024-01-01T00:01:00Z", "2024-01-01T00:02:00Z"},
		{"@weekly", "", "2024-01-01T00:01:00Z", "2024-01-07T00:00:00Z"},
		{"0 0 13 * 5", "", "2024-09-01T00:00:00Z", "2024-09-06T00:00:00Z"},
	}
	for _, tt := range tests {
		after, err := time.Parse(time.RFC3339Nano, tt.after)
		if err != nil {
			t.Fatal(err)
		}
		if got := timetable(t, tt.table, tt.zone).Next(after).Format(time.RFC3339); got != tt.want {
			t.Errorf("%s %s after %s: %s, want %s", tt.table, tt.zone, tt.after, got, tt.want)
		}
	}
}

func TestTimeTableFaults(t *testing.T) {
	column := func(name, text, hint string) string {
		return fmt.Sprintf("%s %q: want %s, *, a list 1,2, a range 1-5 or steps */2", name, text, hint)
	}
	const noTable = ` is no time table: want minute, hour, day of the month, month, day of the week, such as "30 2 * * 1-5", or one of @hourly, @daily, @weekly, @monthly, @yearly`
	tests := []struct{ text, want string }{
		{"60 * * * *", column("minute", "60", "0-59")},
		{"* 24 * * *", column("hour", "24", "0-23")},
		{"* * 0 * *", column("day of the month", "0", "1-31")},
		{"* * * 13 *", column("month", "13", "1-12 or jan-dec")},
		{"* * * * 7", column("day of the week", "7", "0-6 (0 is Sunday) or sun-sat")},
		{"*-5 * * * *", column("minute", "*-5", "0-59")},
		{"1,,2 * * * *", column("minute", "1,,2", "0-59")},
		{", * * * *", column("minute", ",", "0-59")},
		{"*/0 * * * *", column("minute", "*/0", "0-59")},
		{"5-1 * * * *", column("minute", "5-1", "0-59")},
		{"* TZ=UTC * * *", column("hour", "TZ=UTC", "0-23")},
		{"CRON_TZ= * * * *", `the zone stands beside the table: timezone = "Europe/Berlin"`},
		{"TZ=0", `the zone stands beside the table: timezone = "Europe/Berlin"`},
		{"0 0 2 * * *", `"0 0 2 * * *"` + noTable},
		{"tomorrow", `"tomorrow"` + noTable},
		{"@dayly", `"@dayly"` + noTable},
		{"@every 5m", "@every is no time table, it depends on when the controller started: write */15 * * * * for every 15 minutes"},
		{"0 0 30 2 *", `"0 0 30 2 *" never comes: no such day is in these months`},
		{"0 0 31 4,6,9,11 *", `"0 0 31 4,6,9,11 *" never comes: no such day is in these months`},
	}
	for _, tt := range tests {
		_, err := (&Trigger{What: tt.text}).Schedule(time.UTC)
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", tt.text, err, tt.want)
		}
	}
	for _, zone := range []string{"Europe/Berln", "Local", "../etc/passwd", "europe/berlin\x00"} {
		if _, err := (&Trigger{What: "@daily", Timezone: zone}).Schedule(time.UTC); err == nil || !strings.HasPrefix(err.Error(), "there is no time zone ") {
			t.Errorf("%q: %v", zone, err)
		}
	}
}

// A table that is taken goes on, forward, in every zone, and to minutes.
func FuzzTimeTable(f *testing.F) {
	for _, seed := range []string{"30 2 * * *", "@daily", "*/7 1-5 1,31 feb,4 sun-3", "0 0 29 2 */2", "5/20 ? ? * *", "TZ=", "TZ=0 ", "0 0 30 2 *", ",,,"} {
		f.Add(seed, "Australia/Lord_Howe", int64(1_700_000_000))
	}
	f.Add("* * * * *", "Pacific/Apia", int64(1325239200))
	f.Fuzz(func(t *testing.T, text, zone string, unix int64) {
		s, err := (&Trigger{What: text, Timezone: zone}).Schedule(time.UTC)
		if err != nil {
			return
		}
		after := time.Unix(unix%(1<<33), 0)
		for range 3 {
			next := s.Next(after)
			if !next.After(after) || next.Second() != 0 {
				t.Fatalf("%s in %s after %s: %s", text, zone, after.UTC(), next)
			}
			if again := s.Next(next.Add(-1)); !again.Equal(next) {
				t.Fatalf("%s in %s: %s is not found from just before: %s", text, zone, next, again)
			}
			after = next
		}
	})
}

func BenchmarkNext(b *testing.B) {
	s := timetable(b, "30 2 * * 1", "Europe/Berlin")
	at := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	for b.Loop() {
		at = s.Next(at)
		if at.Year() > 2100 {
			at = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
		}
	}
}
