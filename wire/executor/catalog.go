package executor

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/unit"
)

// catalog is the units that an executor offers, as its folder was at a moment.
type catalog struct {
	set    *unit.Set
	stamp  string // of the folder, from before it was read
	types  []string
	kept   []string          // units whose files have a fault now: as they were before
	texts  map[string]string // contracts in canonical text, of the units offered
	hashes map[string]string // of what would run, for units of which it is known
}

// loadCatalog reads the folder; old is what was read before, nil at the start.
func loadCatalog(o Options, old *catalog) (*catalog, error) {
	stamp, err := unit.Stamp(o.Units)
	if err != nil {
		return nil, err
	}
	set, err := unit.Load(o.Units, o.Defaults)
	if err != nil {
		return nil, err
	}
	c := &catalog{set: set, stamp: stamp, types: o.Types, texts: map[string]string{}}
	if old != nil {
		c.kept = set.Keep(old.set)
	}
	c.hashes = set.Hashes()
	for _, u := range set.Units() {
		if len(o.Types) == 0 || slices.Contains(o.Types, u.Name) {
			c.texts[u.Name] = string(u.AppendText(nil))
		}
	}
	return c, nil
}

func (c *catalog) get(name string) *unit.Manifest {
	if _, offered := c.texts[name]; !offered {
		return nil
	}
	return c.set.Get(name)
}

// names are the units offered, sorted.
func (c *catalog) names() []string { return slices.Sorted(maps.Keys(c.texts)) }

func (c *catalog) contracts(names []string) []task.Unit {
	list := make([]task.Unit, 0, len(names))
	for _, name := range names {
		list = append(list, c.set.Get(name).Unit)
	}
	return list
}

// hashOf is the hashes of units, as far as they are known.
func (c *catalog) hashOf(names []string) (hashes task.Values) {
	for _, name := range names {
		if hash := c.hashes[name]; hash != "" {
			hashes = append(hashes, task.Value{Name: name, Value: hash})
		}
	}
	return hashes
}

// since is what was added or changed, and what removed, for who knows the old.
func (c *catalog) since(old *catalog) (add, remove []string) {
	for _, name := range c.names() {
		text, there := old.texts[name]
		if !there || text != c.texts[name] || old.hashes[name] != c.hashes[name] {
			add = append(add, name)
		}
	}
	for _, name := range old.names() {
		if _, there := c.texts[name]; !there {
			remove = append(remove, name)
		}
	}
	return add, remove
}

func (c *catalog) logFaults(log *slog.Logger) {
	for _, f := range c.set.Faults {
		log.Error("a manifest has a fault", "fault", f.Error())
	}
	for _, name := range c.kept {
		log.Warn("a unit stays as it was before the fault", "unit", name)
	}
	for _, u := range c.set.Unavailable {
		log.Warn("a unit is not offered: this host cannot run it", "unit", u.Unit.Name, "reason", u.Reason)
	}
	for _, name := range c.types {
		away := slices.ContainsFunc(c.set.Unavailable, func(u unit.Unavailable) bool { return u.Unit.Name == name })
		if _, offered := c.texts[name]; !offered && !away {
			log.Warn("a unit that should be offered is not in the folder", "unit", name)
		}
	}
}

// The folder is looked at every so often, and what its units run: a look takes a
// tenth of a millisecond for 15 units, a whole one for 200. Words of the file system
// would come sooner, but not from a network's, not for a folder that another is
// moved in place of, and not when a runtime is installed.
const (
	lookEvery = 500 * time.Millisecond
	lookAgain = 100 * time.Millisecond // after a change: who made it may still write
)

// look shows what units there are and what they run: the folder's stamp, and
// the hashes of the units that old knows.
func look(o Options, old *catalog) (string, error) {
	stamp, err := unit.Stamp(o.Units)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(stamp, old.set.Stale(), old.set.Hashes()), nil
}

// seen is what look would have shown when the folder was read.
func (c *catalog) seen() string { return fmt.Sprint(c.stamp, false, c.hashes) }

// watch reads the units folder again whenever it or what its units run has
// changed, and two looks show the same, so that nobody is caught in the middle
// of writing.
func watch(ctx context.Context, o Options, units *catalog, changed chan<- *catalog) {
	timer := time.NewTimer(lookEvery)
	defer timer.Stop()
	last := units.seen()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		timer.Reset(lookEvery)
		now, err := look(o, units)
		if err != nil {
			continue // a folder that is away for a moment takes no unit away
		}
		if changed := now != last; changed || now == units.seen() {
			if last = now; changed {
				timer.Reset(lookAgain)
			}
			continue
		}
		next, err := loadCatalog(o, units)
		if err != nil {
			continue
		}
		units = next
		select {
		case changed <- units:
		case <-ctx.Done():
			return
		}
	}
}

// ID names an executor after its host, such as HOST-local-1. One that comes back
// under the name it had hands over at once what was left of the one before.
func ID(rest string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "host"
	}
	host = task.Printable(host)
	return host[:min(len(host), 64)] + "-" + rest
}

// NewID is HOST-PID-xxxx, a name that no other has.
func NewID() string { return ID(fmt.Sprintf("%d-%s", os.Getpid(), randomHex(2))) }

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
