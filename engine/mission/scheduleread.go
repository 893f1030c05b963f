package mission

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// fieldsOf are the columns of a time table, in their order.
var fieldsOf = []struct {
	name, hint string
	option     cron.ParseOption
	bits       func(*cron.SpecSchedule) uint64
}{
	{"minute", "0-59", cron.Minute, func(s *cron.SpecSchedule) uint64 { return s.Minute }},
	{"hour", "0-23", cron.Hour, func(s *cron.SpecSchedule) uint64 { return s.Hour }},
	{"day of the month", "1-31", cron.Dom, func(s *cron.SpecSchedule) uint64 { return s.Dom }},
	{"month", "1-12 or jan-dec", cron.Month, func(s *cron.SpecSchedule) uint64 { return s.Month }},
	{"day of the week", "0-6 (0 is Sunday) or sun-sat", cron.Dow, func(s *cron.SpecSchedule) uint64 { return s.Dow }},
}

// shorthands are the tables that have a name.
var shorthands = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// Schedule is the time table of a cron trigger, in its zone, or in the
// controller's if it names none.
func (t *Trigger) Schedule(controller *time.Location) (*Schedule, error) {
	s, err := readTable(t.What)
	if err != nil {
		return nil, err
	}
	s.zone, err = zoneOf(t.Timezone, controller)
	return s, err
}

func zoneOf(name string, controller *time.Location) (*time.Location, error) {
	if name == "" {
		return controller, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" { // which is another one on every machine
		return nil, fmt.Errorf("there is no time zone %s: want a name such as Europe/Berlin or UTC; left out: the controller's", quote(name))
	}
	return zone, nil
}

// readTable reads the five columns, and makes sure that they ever come true.
func readTable(text string) (*Schedule, error) {
	if strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ=") {
		return nil, errors.New(`the zone stands beside the table: timezone = "Europe/Berlin"`)
	}
	columns := strings.Fields(text)
	if len(columns) == 1 && strings.HasPrefix(columns[0], "@") {
		columns = strings.Fields(shorthands[columns[0]])
	}
	if strings.HasPrefix(text, "@every") {
		return nil, errors.New("@every is no time table, it depends on when the controller started: write */15 * * * * for every 15 minutes")
	}
	if len(columns) != len(fieldsOf) {
		return nil, fmt.Errorf("%s is no time table: want minute, hour, day of the month, month, day of the week, "+
			`such as "30 2 * * 1-5", or one of @hourly, @daily, @weekly, @monthly, @yearly`, quote(text))
	}
	var bits [5]uint64
	for i, column := range columns {
		var err error
		if bits[i], err = readColumn(i, column); err != nil {
			return nil, err
		}
	}
	s := &Schedule{
		minutes: bits[0], hours: bits[1], days: bits[2], months: bits[3], weekdays: bits[4],
		either: !starred(columns[2]) && !starred(columns[4]), zone: time.UTC,
	}
	if s.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("%s never comes: no such day is in these months", quote(text))
	}
	return s, nil
}

// starred is what cron goes by to tell whether a column says anything: with
// both days said, one of them is enough.
func starred(column string) bool { return column[0] == '*' || column[0] == '?' }

// readColumn reads one column as bits: bit n is for n.
func readColumn(i int, column string) (uint64, error) {
	f := &fieldsOf[i]
	wrong := fmt.Errorf("%s %s: want %s, *, a list 1,2, a range 1-5 or steps */2", f.name, quote(column), f.hint)
	for part := range strings.SplitSeq(column, ",") {
		// The library takes *-5 for *, and fails hard over its own zone prefix.
		if part == "" || strings.HasPrefix(part, "*-") || strings.HasPrefix(part, "?-") || strings.Contains(part, "TZ=") {
			return 0, wrong
		}
	}
	parsed, err := cron.NewParser(f.option).Parse(column)
	if err != nil {
		return 0, wrong
	}
	const flag = 1 << 63 // the library's own note that there was a star
	bits := f.bits(parsed.(*cron.SpecSchedule)) &^ flag
	if bits == 0 {
		return 0, wrong
	}
	return bits, nil
}
