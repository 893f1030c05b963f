//go:build !unix

package unit

import (
	"os"
	"syscall"
)

const (
	nonblock = 0
	noFollow = 0
)

func ownGroup() *syscall.SysProcAttr { return nil }

func signalGroup(pid int, s syscall.Signal) {
	if p, err := os.FindProcess(pid); err == nil {
		p.Kill()
	}
}

// tryLock never succeeds on a folder left by another: nothing is swept here.
func tryLock(f *os.File) bool { return true }

func ours(os.FileInfo) bool { return false }

func executable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular()
}
