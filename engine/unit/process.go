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
	strangers map[int]bool // children of ours that are none of the step's
	exited    chan struct{}
	state     *os.ProcessState // where ending and waiting are one; valid once exited is closed
	chunks    chan []byte      // closed when both pipes have ended
	pipes     [2]*os.File
	lastLine  string // of stderr; valid once chunks is closed
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
	p := &process{
		strangers: children(),
		exited:    make(chan struct{}),
		chunks:    make(chan []byte, 4),
		pipes:     [2]*os.File{outR, errR},
	}
	p.Process, err = os.StartProcess(program, argv, &os.ProcAttr{Dir: dir, Env: env, Files: []*os.File{null, outW, errW}, Sys: ownGroup()})
	if err != nil {
		outR.Close()
		errR.Close()
		return nil, err
	}
	offerToOOM(p.Pid)
	p.follow()
	return p, nil
}

// follow starts what watches the process: one goroutine for its end, one for
// each pipe. They end with it, and finish waits for them.
func (p *process) follow() {
	go func() {
		p.state = awaitExit(p.Process)
		close(p.exited)
	}()
	var readers sync.WaitGroup
	readers.Go(func() { read(p.pipes[0], p.chunks) })
	readers.Go(func() { p.lastLine = read(p.pipes[1], p.chunks) })
	go func() {
		readers.Wait()
		close(p.chunks)
	}()
}

func (p *process) terminate() { signalGroup(p.Pid, syscall.SIGTERM) }
func (p *process) kill()      { signalGroup(p.Pid, syscall.SIGKILL) }

// finish is called after exited: it ends what is left of the tree and returns
// how the process ended, and how many processes would not end.
func (p *process) finish() (*os.ProcessState, int) {
	p.kill() // the group's number is ours until the process is waited for
	if p.state == nil {
		p.state, _ = p.Wait()
	}
	return p.state, endDescendants(p.strangers)
}

// abandon makes the readers stop, though somebody may still hold the pipes.
func (p *process) abandon() {
	for _, pipe := range p.pipes {
		pipe.SetReadDeadline(time.Unix(1, 0)) // a time that is over
	}
}

func (p *process) close() {
	for _, pipe := range p.pipes {
		pipe.Close()
	}
}
