package task

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Resources are what one attempt needs of its host, or what a host has. Zero
// means that nothing is said.
type Resources struct {
	CPU    int64 // thousandths of a core
	Memory int64 // bytes
	Disk   int64 // bytes
}

// IsZero reports whether nothing is declared.
func (r Resources) IsZero() bool { return r == Resources{} }

// Add is both together.
func (r Resources) Add(o Resources) Resources {
	return Resources{CPU: r.CPU + o.CPU, Memory: r.Memory + o.Memory, Disk: r.Disk + o.Disk}
}

// Sub is what is left of r without o.
func (r Resources) Sub(o Resources) Resources {
	return Resources{CPU: r.CPU - o.CPU, Memory: r.Memory - o.Memory, Disk: r.Disk - o.Disk}
}

// Usable is what may be given out of a host's capacity: all of its cores, and 70 %
// of memory and disk, since real needs turn out larger than declared ones.
func (r Resources) Usable() Resources {
	return Resources{CPU: r.CPU, Memory: r.Memory / 10 * 7, Disk: r.Disk / 10 * 7}
}

// Fits reports whether r is no more than room. What a host does not say it has,
// limits nothing.
func (r Resources) Fits(room, capacity Resources) bool {
	return (capacity.CPU == 0 || r.CPU <= room.CPU) &&
		(capacity.Memory == 0 || r.Memory <= room.Memory) &&
		(capacity.Disk == 0 || r.Disk <= room.Disk)
}

// Lacking says where r is more than the room that is left of a capacity.
func (r Resources) Lacking(room, capacity Resources) string {
	var parts []string
	usable := capacity.Usable()
	add := func(what string, need, left, of, has int64, text func(int64) string) {
		if has > 0 && need > left {
			parts = append(parts, fmt.Sprintf("%s of %s %s free, it needs %s", text(left), text(of), what, text(need)))
		}
	}
	add("cores", r.CPU, room.CPU, usable.CPU, capacity.CPU, coresText)
	add("memory", r.Memory, room.Memory, usable.Memory, capacity.Memory, bytesText)
	add("disk", r.Disk, room.Disk, usable.Disk, capacity.Disk, bytesText)
	return strings.Join(parts, "; ")
}

func (r Resources) check() error {
	if r.CPU < 0 || r.Memory < 0 || r.Disk < 0 || r.CPU > 1<<40 || r.Memory > 1<<60 || r.Disk > 1<<60 {
		return errors.New("resources: beyond what a host can have")
	}
	return nil
}

// String is what is declared, in words.
func (r Resources) String() string {
	var parts []string
	add := func(n int64, what string, text func(int64) string) {
		if n != 0 {
			parts = append(parts, text(n)+" "+what)
		}
	}
	add(r.CPU, "cores", coresText)
	add(r.Memory, "memory", bytesText)
	add(r.Disk, "disk", bytesText)
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

func coresText(n int64) string { return strconv.FormatFloat(float64(n)/1000, 'g', -1, 64) }

func bytesText(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.3gGiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.3gMiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%dB", n)
}
