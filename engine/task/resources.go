package task

import (
	"errors"
	"fmt"
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

func (r Resources) check() error {
	if r.CPU < 0 || r.Memory < 0 || r.Disk < 0 || r.CPU > 1<<40 || r.Memory > 1<<60 || r.Disk > 1<<60 {
		return errors.New("resources: beyond what a host can have")
	}
	return nil
}

func (r Resources) String() string {
	return fmt.Sprintf("%g cores, %s memory, %s disk", float64(r.CPU)/1000, bytesText(r.Memory), bytesText(r.Disk))
}

func bytesText(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.3gGiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.3gMiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%dB", n)
}
