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
	pipes     [2]int       // its stdout and stderr, for us to read
	ends      [2]int       // their other ends: held open, so that nothing wakes us before the process has ended
	buf       []byte
}

// start runs a program in a group of its own, with nothing to read.
func start(program string, argv, env []string, dir string) (*process, error) {
	null, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: os.DevNull, Err: err}
	}
	defer unix.Close(null)
	p := &process{strangers: children(), fd: -1, pipes: [2]int{-1, -1}, ends: [2]int{-1, -1}, buf: make([]byte, 16<<10)}
	for i := range p.pipes {
		var pipe [2]int
		if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
			p.close()
			return nil, os.NewSyscallError("pipe", err)
		}
		p.pipes[i], p.ends[i] = pipe[0], pipe[1]
		unix.SetNonblock(pipe[0], true)
	}
	sys := ownGroup()
	sys.PidFD = &p.fd
	p.pid, err = syscall.ForkExec(program, argv, &syscall.ProcAttr{
		Dir: dir, Env: env, Files: []uintptr{uintptr(null), uintptr(p.ends[0]), uintptr(p.ends[1])}, Sys: sys,
	})
	if err != nil {
		p.close()
		return nil, &os.PathError{Op: "start", Path: program, Err: err}
	}
	offerToOOM(p.pid)
	return p, nil
}

// next waits for output or the end of the process, at most so long, and hands
// on what it printed. The chunk is good during the call.
func (p *process) next(longest time.Duration, take func(stderr bool, chunk []byte)) (exited bool) {
	waits := [3]unix.PollFd{
		{Fd: int32(p.pipes[0]), Events: unix.POLLIN}, {Fd: int32(p.pipes[1]), Events: unix.POLLIN},
		{Fd: int32(p.fd), Events: unix.POLLIN}, // a negative one is passed over
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

// read takes one piece from a pipe; false: there is none now.
func (p *process) read(i int, take func(stderr bool, chunk []byte)) bool {
	n, err := unix.Read(p.pipes[i], p.buf)
	if n > 0 {
		take(i == 1, p.buf[:n])
	}
	return n > 0 || err == unix.EINTR
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
	for _, fd := range []int{p.pipes[0], p.pipes[1], p.ends[0], p.ends[1], p.fd} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}
