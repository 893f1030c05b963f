package bench

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// ticks of /proc/PID/stat a second, on every Linux that Go runs on.
const ticks = 100

// readUsage reads a process's times and memory.
func readUsage(pid int) (u usage, ok bool) {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return u, false
	}
	_, rest, _ := bytes.Cut(stat, []byte(") ")) // the name before it may hold anything
	if fields := strings.Fields(string(rest)); len(fields) > 14 {
		for _, f := range fields[11:15] {
			n, _ := strconv.ParseFloat(f, 64)
			u.cpu += n / ticks
		}
	}
	status, err := os.ReadFile(filepath.Join(proc, "status"))
	for line := range strings.Lines(string(status)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		n, _ := strconv.ParseFloat(fields[1], 64)
		switch fields[0] {
		case "VmRSS:":
			u.rss = n * 1024
		case "VmHWM:":
			u.peak = n * 1024
		}
	}
	return u, err == nil
}

// ownCPU is this process's time, in seconds.
func ownCPU() (float64, bool) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0, false
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9, true
}

// onDisk is what a folder occupies, in bytes.
func onDisk(dir string) (n int64, ok bool) {
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return err
	})
	return n, err == nil
}

// tie keeps a terminal's signals from the controller, and ends it with this process.
func tie(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func syncData(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
