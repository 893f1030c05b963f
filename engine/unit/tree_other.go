//go:build !linux

package unit

import (
	"os"
	"syscall"
)

// Without Linux's subreaper a descendant that leaves the group is out of reach.

func adopt() error { return nil }
func awaitExit(p *os.Process) *os.ProcessState {
	state, _ := p.Wait()
	return state
}

func children() map[int]bool             { return nil }
func endDescendants(map[int]bool) int    { return 0 }
func descendants(map[int]bool) []int     { return nil }
func endUsers(string)                    {}
func hostProcesses() int                 { return 0 }
func offerToOOM(int)                     {}
func signalName(s syscall.Signal) string { return s.String() }
