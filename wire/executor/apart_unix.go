//go:build unix

package executor

import (
	"os"
	"os/exec"
	"syscall"
)

// apart keeps a terminal's signals from the child: its parent passes them on,
// and twice would mean something else.
func apart(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}

func askToStop(p *os.Process) { p.Signal(syscall.SIGTERM) }
