package executor

import (
	"fmt"
	"runtime"
	"testing"
	"testing/fstest"

	"apollo11/engine/task"
)

func TestHostCapacity(t *testing.T) {
	r := hostCapacity(t.TempDir())
	if r.CPU <= 0 || r.CPU > 1000*int64(runtime.NumCPU()) || r.Memory < 64<<20 || r.Disk <= 0 {
		t.Errorf("%+v", r)
	}
	if r = hostCapacity("/no/such/folder"); r.Disk != 0 {
		t.Errorf("a disk that is not there has %d bytes", r.Disk)
	}
}

func TestControlGroups(t *testing.T) {
	const none = int64(1<<63 - 1)
	for name, c := range map[string]struct {
		files map[string]string
		want  task.Resources // Disk is not theirs
	}{
		"no groups": {nil, task.Resources{CPU: none, Memory: none}},
		"version 2, the tightest of the groups around": {map[string]string{
			"proc/self/cgroup":               "0::/a/b\n",
			"sys/fs/cgroup/a/cpu.max":        "150000 100000\n",
			"sys/fs/cgroup/a/b/cpu.max":      "max 100000\n",
			"sys/fs/cgroup/a/memory.max":     "max\n",
			"sys/fs/cgroup/a/b/memory.max":   "1048576\n",
			"sys/fs/cgroup/other/b/cpu.max":  "1 100000\n",
			"sys/fs/cgroup/other/memory.max": "1",
			"sys/fs/cgroup/a/b/c/memory.max": "1",
		}, task.Resources{CPU: 1500, Memory: 1 << 20}},
		"version 1, in a container that does not see its path": {map[string]string{
			"proc/self/cgroup":                           "4:memory:/docker/0123\n3:cpu,cpuacct:/docker/0123\n0::/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "2097152\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us":         "50000\n",
			"sys/fs/cgroup/cpu/cpu.cfs_period_us":        "100000\n",
		}, task.Resources{CPU: 500, Memory: 2 << 20}},
		"version 1 without limits": {map[string]string{
			"proc/self/cgroup":                           "1:cpu:/\n2:memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us":         "-1\n",
			"sys/fs/cgroup/cpu/cpu.cfs_period_us":        "100000\n",
		}, task.Resources{CPU: none, Memory: 9223372036854771712}},
		"nonsense": {map[string]string{
			"proc/self/cgroup":         "\n:\nx\n0::../..\n9:cpu:\n",
			"sys/fs/cgroup/cpu.max":    "a b c",
			"sys/fs/cgroup/memory.max": "-7",
		}, task.Resources{CPU: none, Memory: none}},
	} {
		host := fstest.MapFS{}
		for file, text := range c.files {
			host[file] = &fstest.MapFile{Data: []byte(text)}
		}
		got := task.Resources{CPU: none, Memory: none}
		for _, limit := range controlGroups(host) {
			got.CPU, got.Memory = min(got.CPU, limit.CPU), min(got.Memory, limit.Memory)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", c.want))
		}
	}
}
