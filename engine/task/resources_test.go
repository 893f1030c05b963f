package task

import "testing"

func TestResourcesSaid(t *testing.T) {
	for _, c := range []struct {
		r    Resources
		want string
	}{
		{Resources{}, "nothing"},
		{Resources{CPU: 1500}, "1.5 cores"},
		{Resources{CPU: 2000, Memory: 256 << 20, Disk: 3 << 30}, "2 cores, 256MiB memory, 3GiB disk"},
		{Resources{Disk: 12}, "12B disk"},
	} {
		if got := c.r.String(); got != c.want {
			t.Errorf("%+v is said as %q, want %q", c.r, got, c.want)
		}
	}
}

func TestResourcesFit(t *testing.T) {
	host := Resources{CPU: 4000, Memory: 1000, Disk: 1000}
	if got := host.Usable(); got != (Resources{CPU: 4000, Memory: 700, Disk: 700}) {
		t.Errorf("usable is %+v", got)
	}
	for _, c := range []struct {
		needs, room, capacity Resources
		lacking               string
	}{
		{Resources{CPU: 4000, Memory: 700, Disk: 700}, host.Usable(), host, ""},
		{Resources{CPU: 4001}, host.Usable(), host, "4 of 4 cores free, it needs 4.001"},
		{Resources{Memory: 701}, host.Usable(), host, "700B of 700B memory free, it needs 701B"},
		{Resources{Memory: 2, Disk: 2, CPU: 1}, Resources{CPU: 1, Memory: 1}, host, "1B of 700B memory free, it needs 2B; 0B of 700B disk free, it needs 2B"},
		{Resources{CPU: 1, Memory: 2, Disk: 3}, Resources{}, Resources{}, ""}, // nothing is known: nothing is limited
		{Resources{CPU: 1, Memory: 2}, Resources{CPU: 1}, Resources{CPU: 1}, ""},
	} {
		if fits := c.needs.Fits(c.room, c.capacity); fits != (c.lacking == "") {
			t.Errorf("%s into %s: fits is %v", c.needs, c.room, fits)
		}
		if got := c.needs.Lacking(c.room, c.capacity); got != c.lacking {
			t.Errorf("%s into %s lacks %q, want %q", c.needs, c.room, got, c.lacking)
		}
	}
}
