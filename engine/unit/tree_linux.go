package unit

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// adopt makes this process the parent of its orphaned descendants, so that none
// can leave by a session of its own.
var adopt = sync.OnceValue(func() error {
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
})

// noChildren asks the kernel in one call what a scan of /proc would say.
func noChildren() bool {
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == unix.ECHILD
}

// children are the children this process has now; nil: none.
func children() map[int]bool {
	if noChildren() {
		return nil
	}
	found := map[int]bool{}
	for _, p := range scan()[os.Getpid()] {
		found[p.pid] = true
	}
	return found
}

// endDescendants kills and reaps every descendant that does not come from a
// stranger, and returns how many are left after trying for a while: those of
// another user, or held in the kernel.
func endDescendants(strangers map[int]bool) (left int) {
	pause := time.Millisecond
	for range 20 {
		if noChildren() {
			return 0
		}
		found := descendants(strangers)
		if left = len(found); left == 0 {
			return 0
		}
		for _, p := range found {
			p.end()
		}
		time.Sleep(pause)
		pause = min(2*pause, 250*time.Millisecond)
	}
	return left
}

// entry is a process as /proc shows it.
type entry struct {
	pid, parent int
	state       byte
	started     string // with the pid, who it is
}

// end kills one process. Only for our own children is it certain that the
// number still means the same process, so the others are held fast first.
func (e entry) end() {
	if e.parent == os.Getpid() {
		if e.state == 'Z' {
			var status unix.WaitStatus
			unix.Wait4(e.pid, &status, unix.WNOHANG, nil)
			return
		}
		unix.Kill(e.pid, unix.SIGKILL)
		return
	}
	fd, err := unix.PidfdOpen(e.pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if now, ok := look(e.pid); ok && now.started == e.started {
		unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
}

func descendants(strangers map[int]bool) (found []entry) {
	byParent := scan()
	queue := []int{os.Getpid()}
	for len(queue) > 0 {
		parent := queue[0]
		queue = queue[1:]
		for _, p := range byParent[parent] {
			if !strangers[p.pid] {
				found = append(found, p)
				queue = append(queue, p.pid)
			}
		}
	}
	return found
}

// scan lists all processes by their parent.
func scan() map[int][]entry {
	byParent := map[int][]entry{}
	for _, pid := range pids() {
		if e, ok := look(pid); ok {
			byParent[e.parent] = append(byParent[e.parent], e)
		}
	}
	return byParent
}

func pids() (list []int) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			list = append(list, pid)
		}
	}
	return list
}

// look reads /proc/PID/stat; the program's name in it may hold anything, so the
// fields count from the last parenthesis.
func look(pid int) (entry, bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return entry{}, false
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return entry{}, false
	}
	parent, err := strconv.Atoi(fields[1])
	return entry{pid: pid, parent: parent, state: fields[0][0], started: fields[19]}, err == nil
}

// endUsers kills the processes that work in a dead executor's folder or were
// told of it.
func endUsers(dir string) {
	inside := []byte("=" + dir + string(filepath.Separator))
	for _, pid := range pids() {
		if pid == os.Getpid() {
			continue
		}
		proc := "/proc/" + strconv.Itoa(pid)
		before, ok := look(pid)
		cwd, _ := os.Readlink(proc + "/cwd")
		env, _ := os.ReadFile(proc + "/environ")
		if ok && (strings.HasPrefix(cwd, dir+"/") || bytes.Contains(env, inside)) {
			before.parent = 0 // not a child of ours
			before.end()
		}
	}
}

// hostProcesses is how many threads and processes the host has; 0: unknown.
func hostProcesses() int {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(load))
	if len(fields) < 4 {
		return 0
	}
	_, total, _ := strings.Cut(fields[3], "/")
	n, _ := strconv.Atoi(total)
	return n
}

// offerToOOM has the kernel end the unit before the executor when memory is short.
func offerToOOM(pid int) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		unix.Write(fd, []byte("500"))
		unix.Close(fd)
	}
}

// freeStart gives back the memory or the disk space of a file's first bytes.
func freeStart(name string, bytes int64) error {
	fd, err := unix.Open(name, unix.O_WRONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, bytes)
}
