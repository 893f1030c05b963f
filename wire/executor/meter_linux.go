package executor

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"apollo11/wire"

	"golang.org/x/sys/unix"
)

// meter reads how busy the host is.
type meter struct{ busy, all uint64 } // CPU time at the last read

// read fills in the shares in percent: CPU since the last read, memory, and the
// disk that holds dir.
func (m *meter) read(h *wire.Heartbeat, dir string) {
	if busy, all := cpuTime(); all > m.all {
		if m.all > 0 && busy >= m.busy {
			h.CPU = 100 * float64(busy-m.busy) / float64(all-m.all)
		}
		m.busy, m.all = busy, all
	}
	h.Memory = memoryUsed()
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) == nil && fs.Blocks > 0 {
		h.Disk = 100 * (1 - float64(fs.Bavail)/float64(fs.Blocks))
	}
}

// cpuTime adds up the first line of /proc/stat; idle and iowait are not busy.
func cpuTime() (busy, all uint64) {
	stat, _ := os.ReadFile("/proc/stat")
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	for i, field := range strings.Fields(string(line)) {
		n, err := strconv.ParseUint(field, 10, 64)
		if err != nil || i > 8 { // guests count as user time already
			continue
		}
		all += n
		if i != 4 && i != 5 {
			busy += n
		}
	}
	return busy, all
}

func memoryUsed() float64 {
	values := memory(os.DirFS("/"))
	if values["MemTotal:"] == 0 {
		return 0
	}
	return 100 * (1 - values["MemAvailable:"]/values["MemTotal:"])
}
