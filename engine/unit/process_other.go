//go:build !linux

package unit

import (
	"os"
	"sync"
	"syscall"
	"time"
)

// process is one step's process with the pipes it prints to.
type process struct {
	*os.Process
	strangers map[int]bool
	exited    chan struct{}
	state     *os.ProcessState // valid once exited is closed
	chunks    chan chunk       // closed when both pipes have ended
	pipes     [2]*os.File
}

type chunk struct {
	stderr bool
	data   []byte
}

// start runs a program in a group of its own, with nothing to read.
func start(program string, argv, env []string, dir string) (*process, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer outW.Close()
	errR, errW, err := os.Pipe()
	if err != nil {
		outR.Close()
		return nil, err
	}
	defer errW.Close()
	p := &process{exited: make(chan struct{}), chunks: make(chan chunk, 4), pipes: [2]*os.File{outR, errR}}
	p.Process, err = os.StartProcess(program, argv, &os.ProcAttr{Dir: dir, Env: env, Files: []*os.File{null, outW, errW}, Sys: ownGroup()})
	if err != nil {
		outR.Close()
		errR.Close()
		return nil, err
	}
	p.follow()
	return p, nil
}

// follow starts what watches the process: one goroutine for its end, one for
// each pipe. They end with it, and finish waits for the pipes'.
func (p *process) follow() {
	go func() {
		p.state, _ = p.Wait()
		close(p.exited)
	}()
	var readers sync.WaitGroup
	for i, pipe := range p.pipes {
		readers.Go(func() { p.read(i == 1, pipe) })
	}
	go func() {
		readers.Wait()
		close(p.chunks)
	}()
}

func (p *process) read(stderr bool, pipe *os.File) {
	for {
		buf := make([]byte, 16<<10)
		n, err := pipe.Read(buf)
		if n > 0 {
			p.chunks <- chunk{stderr, buf[:n]}
		}
		if err != nil {
			return
		}
	}
}

// next waits for output or the end of the process, at most so long, and hands
// on what it printed.
func (p *process) next(longest time.Duration, take func(stderr bool, chunk []byte)) (exited bool) {
	timer := time.NewTimer(longest)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case c, open := <-p.chunks:
		if !open {
			select {
			case <-p.exited:
				return true
			case <-timer.C:
				return false
			}
		}
		take(c.stderr, c.data)
	case <-timer.C:
	}
	return false
}

func (p *process) terminate() { signalGroup(p.Pid, syscall.SIGTERM) }
func (p *process) kill()      { signalGroup(p.Pid, syscall.SIGKILL) }

// pipeGrace is how long a survivor may hold the pipes open.
const pipeGrace = time.Second

// finish is called once the process has exited; see process_linux.go.
func (p *process) finish(take func(stderr bool, chunk []byte)) (exit int, signal string, left int) {
	p.kill()
	over := time.AfterFunc(pipeGrace, func() {
		for _, pipe := range p.pipes {
			pipe.Close()
		}
	})
	for c := range p.chunks {
		take(c.stderr, c.data)
	}
	if over.Stop() {
		for _, pipe := range p.pipes {
			pipe.Close()
		}
	}
	if p.state == nil {
		return -1, "", 0
	}
	if status, ok := p.state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return -1, status.Signal().String(), 0
	}
	return p.state.ExitCode(), "", 0
}
