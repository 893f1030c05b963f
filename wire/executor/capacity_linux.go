package executor

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"

	"apollo11/engine/task"

	"golang.org/x/sys/unix"
)

// hostCapacity is what a host has for its executors together: the cores and the
// memory that its control groups leave, and what is free now of the disk that
// holds dir, for what is full cannot be given out.
func hostCapacity(dir string) task.Resources {
	host := os.DirFS("/")
	r := task.Resources{CPU: 1000 * int64(runtime.NumCPU()), Memory: int64(memory(host)["MemTotal:"]) << 10}
	for _, group := range controlGroups(host) {
		r.CPU, r.Memory = min(r.CPU, group.CPU), min(r.Memory, group.Memory)
	}
	var disk unix.Statfs_t
	if unix.Statfs(dir, &disk) == nil {
		r.Disk = int64(disk.Bavail) * disk.Bsize
	}
	return r
}

// memory is /proc/meminfo, in kilobytes.
func memory(host fs.FS) map[string]float64 {
	info, _ := fs.ReadFile(host, "proc/meminfo")
	values := map[string]float64{}
	for line := range strings.Lines(string(info)) {
		if fields := strings.Fields(line); len(fields) > 1 {
			values[fields[0]], _ = strconv.ParseFloat(fields[1], 64)
		}
	}
	return values
}

// controlGroups are the limits of the groups that this process is in, and of
// those around them. A group that is not to be seen, as in a container, limits
// nothing; those around it are.
func controlGroups(host fs.FS) (limits []task.Resources) {
	groups, _ := fs.ReadFile(host, "proc/self/cgroup")
	for line := range strings.Lines(string(groups)) {
		// ID:CONTROLLERS:PATH; version 2 names no controllers
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			continue
		}
		roots := []string{"."}
		if parts[1] != "" {
			roots = strings.Split(parts[1], ",")
		}
		for _, root := range roots {
			for at := path.Clean("/" + parts[2]); ; at = path.Dir(at) {
				limits = append(limits, groupLimit(host, path.Join("sys/fs/cgroup", root, at)))
				if at == "/" {
					break
				}
			}
		}
	}
	return limits
}

// groupLimit is one group's, in the files of either version; what is not limited
// is the largest number.
func groupLimit(host fs.FS, group string) task.Resources {
	r := task.Resources{CPU: math.MaxInt64, Memory: math.MaxInt64, Disk: math.MaxInt64}
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n <= 0 { // max, -1, or no such file
			return math.MaxInt64
		}
		return n
	}
	read := func(name string) string {
		text, _ := fs.ReadFile(host, path.Join(group, name))
		return strings.TrimSpace(string(text))
	}
	quota, period, _ := strings.Cut(read("cpu.max"), " ")
	if quota == "" {
		quota, period = read("cpu.cfs_quota_us"), read("cpu.cfs_period_us")
	}
	if q, p := number(quota), number(period); q < math.MaxInt64/1000 && p < math.MaxInt64 {
		r.CPU = max(1, 1000*q/p)
	}
	r.Memory = min(number(read("memory.max")), number(read("memory.limit_in_bytes")))
	return r
}
