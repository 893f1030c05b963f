package snapshot

import (
	"errors"
	"os"
	"syscall"
)

// syncData is fdatasync: data and size, without the times.
func syncData(f *os.File) error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); err != syscall.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

func allocate(f *os.File, size int64) error {
	err := syscall.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, syscall.EOPNOTSUPP) {
		return fill(f, size)
	}
	return os.NewSyscallError("fallocate", err)
}
