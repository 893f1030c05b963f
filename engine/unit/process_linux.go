package unit

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is one step's process with the pipes it prints to. It has no
// goroutine: whoever runs it waits in one call for its end and for both pipes.
type process struct {
	pid       int
	strangers map[int]bool // children of ours that are none of the step's
	fd        int          // means the process, whatever becomes of its number
	pipes     [2]int       // stdout and stderr; -1: ended
	buf       []byte
}

// start runs a program in a group of its own, with nothing to read.
func start(program string, argv, env []string, dir string) (_ *process, err error) {
	var out, errs [2]int
	null, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: os.DevNull, Err: err}
	}
	defer unix.Close(null)
	if err := unix.Pipe2(out[:], unix.O_CLOEXEC); err != nil {
		return nil, os.NewSyscallError("pipe", err)
	}
	defer unix.Close(out[1])
	if err := unix.Pipe2(errs[:], unix.O_CLOEXEC); err != nil {
		unix.Close(out[0])
		return nil, os.NewSyscallError("pipe", err)
	}
	defer unix.Close(errs[1])
	p := &process{strangers: children(), fd: -1, pipes: [2]int{out[0], errs[0]}, buf: make([]byte, 16<<10)}
	sys := ownGroup()
	sys.PidFD = &p.fd
	p.pid, err = syscall.ForkExec(program, argv, &syscall.ProcAttr{
		Dir: dir, Env: env, Files: []uintptr{uintptr(null), uintptr(out[1]), uintptr(errs[1])}, Sys: sys,
	})
	if err != nil {
		p.close()
		return nil, &os.PathError{Op: "start", Path: program, Err: err}
	}
	for _, pipe := range p.pipes {
		unix.SetNonblock(pipe, true)
	}
	offerToOOM(p.pid)
	return p, nil
}

// next waits for output or the end of the process, at most so long, and hands
// on what it printed. The chunk is good during the call.
func (p *process) next(longest time.Duration, take func(stderr bool, chunk []byte)) (exited bool) {
	waits := [3]unix.PollFd{
		{Fd: int32(p.pipes[0]), Events: unix.POLLIN}, {Fd: int32(p.pipes[1]), Events: unix.POLLIN},
		{Fd: int32(p.fd), Events: unix.POLLIN}, // negative ones are passed over
	}
	limit := unix.NsecToTimespec(int64(max(longest, 0)))
	if n, err := unix.Ppoll(waits[:], &limit, nil); n <= 0 || err != nil {
		return p.fd < 0 && p.hasExited() // a kernel that cannot name processes
	}
	for i := range p.pipes {
		if waits[i].Revents != 0 {
			p.read(i, take)
		}
	}
	return waits[2].Revents != 0 || p.fd < 0 && p.hasExited()
}

// read takes one piece from a pipe; false: there is none now, or never again.
func (p *process) read(i int, take func(stderr bool, chunk []byte)) bool {
	if p.pipes[i] < 0 {
		return false
	}
	n, err := unix.Read(p.pipes[i], p.buf)
	if n > 0 {
		take(i == 1, p.buf[:n])
		return true
	}
	if err == unix.EINTR {
		return true
	}
	if err != unix.EAGAIN {
		unix.Close(p.pipes[i])
		p.pipes[i] = -1
	}
	return false
}

func (p *process) hasExited() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, p.pid, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
	return err == nil && info.Signo != 0 || err == unix.ECHILD
}

func (p *process) terminate() { signalGroup(p.pid, syscall.SIGTERM) }
func (p *process) kill()      { signalGroup(p.pid, syscall.SIGKILL) }

// finish is called once the process has exited: it ends what is left of the
// tree, hands on the last of the output and says how the process ended, and how
// many of its descendants would not.
func (p *process) finish(take func(stderr bool, chunk []byte)) (exit int, signal string, left int) {
	p.kill() // the group's number is ours until the process is waited for
	var status unix.WaitStatus
	for {
		if _, err := unix.Wait4(p.pid, &status, 0, nil); err != unix.EINTR {
			break
		}
	}
	left = endDescendants(p.strangers)
	for i := range p.pipes {
		for p.read(i, take) {
		}
	}
	p.close()
	if status.Signaled() {
		return -1, unix.SignalName(status.Signal()), left
	}
	return status.ExitStatus(), "", left
}

func (p *process) close() {
	for _, fd := range append(p.pipes[:], p.fd) {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}
