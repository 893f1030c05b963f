//go:build unix

package unit

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// nonblock keeps the opening of a pipe or a device from hanging.
const nonblock = unix.O_NONBLOCK

// noFollow keeps a link from being taken for what it leads to.
const noFollow = unix.O_NOFOLLOW

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func signalGroup(pid int, s syscall.Signal) { syscall.Kill(-pid, s) }

func tryLock(f *os.File) bool {
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}

func ours(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

func executable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && unix.Access(file, unix.X_OK) == nil
}
