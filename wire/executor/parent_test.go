//go:build unix

package executor

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// nursery runs a Parent whose children are shell texts that tell what they do
// on a pipe, which ends when the last of them has.
type nursery struct {
	t     *testing.T
	told  *bufio.Reader
	write *os.File
	ended chan error
}

func newNursery(t *testing.T) *nursery {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return &nursery{t: t, told: bufio.NewReader(r), write: w, ended: make(chan error, 1)}
}

func (n *nursery) command(text string) func(int) *exec.Cmd {
	return func(i int) *exec.Cmd {
		cmd := exec.Command("/bin/sh", "-c", text, "child", strconv.Itoa(i))
		cmd.Stdout = n.write
		return cmd
	}
}

func (n *nursery) start(ctx context.Context, o ParentOptions) {
	go func() {
		err := Parent(ctx, o)
		n.write.Close()
		n.ended <- err
	}()
}

// line is the next thing that a child says.
func (n *nursery) line() string {
	n.t.Helper()
	line, err := n.told.ReadString('\n')
	if err != nil {
		n.t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func TestParentRestartsWhatFails(t *testing.T) {
	n := newNursery(t)
	ctx, stop := context.WithCancel(context.Background())
	began := time.Now()
	n.start(ctx, ParentOptions{Instances: 1, Command: n.command("echo up; exit 1")})
	for range 3 {
		if got := n.line(); got != "up" {
			t.Errorf("%q", got)
		}
	}
	if took := time.Since(began); took < 300*time.Millisecond { // 100 and 200
		t.Errorf("three starts within %v", took)
	}
	stop()
	if err := <-n.ended; err != nil {
		t.Error(err)
	}
}

func TestParentPassesTheSignalOn(t *testing.T) {
	n := newNursery(t)
	ctx, stop := context.WithCancel(context.Background())
	abort := make(chan struct{})
	n.start(ctx, ParentOptions{Instances: 2, Abort: abort, Command: n.command(
		`n=0; trap 'n=$((n+1)); echo told $n; test $n = 2 && exit 0' TERM; echo up; while read x || test $n -gt 0; do :; done`)})
	for range 2 {
		if got := n.line(); got != "up" {
			t.Errorf("%q", got)
		}
	}
	stop()
	for range 2 {
		if got := n.line(); got != "told 1" {
			t.Errorf("%q", got)
		}
	}
	close(abort)
	for range 2 {
		if got := n.line(); got != "told 2" {
			t.Errorf("%q", got)
		}
	}
	if err := <-n.ended; err != nil {
		t.Error(err)
	}
}

func TestParentEnds(t *testing.T) {
	t.Run("when all have left in order", func(t *testing.T) {
		n := newNursery(t)
		n.start(context.Background(), ParentOptions{Instances: 3, Command: n.command("echo up; exit 0")})
		if err := <-n.ended; err != nil {
			t.Error(err)
		}
		if all, _ := io.ReadAll(n.told); string(all) != "up\nup\nup\n" {
			t.Errorf("%q", all)
		}
	})
	t.Run("when one cannot work", func(t *testing.T) {
		n := newNursery(t)
		n.start(context.Background(), ParentOptions{Instances: 2, Final: []int{5}, Command: n.command(
			`test $1 = 0 && exit 5; read x; exit 0`)})
		var child *ChildError
		if err := <-n.ended; !errors.As(err, &child) || child.Code != 5 {
			t.Error(err)
		}
	})
	t.Run("after a program that is missing is looked for again", func(t *testing.T) {
		n := newNursery(t)
		ctx, stop := context.WithCancel(context.Background())
		tries := 0
		n.start(ctx, ParentOptions{Instances: 1, Command: func(int) *exec.Cmd {
			if tries++; tries == 2 {
				stop()
			}
			return exec.Command("/no/such/program")
		}})
		if err := <-n.ended; err != nil {
			t.Error(err)
		}
	})
}

// parentEnv makes the test program itself a parent, to be killed.
const parentEnv = "APOLLO_TEST_PARENT"

func TestMainIsParent(t *testing.T) {
	if os.Getenv(parentEnv) == "" {
		t.Skip("only for TestChildrenEndWithTheirParent")
	}
	Parent(context.Background(), ParentOptions{Instances: 3, Command: func(int) *exec.Cmd {
		cmd := exec.Command("/bin/sh", "-c", "echo up; read x; echo orphaned")
		cmd.Stdout = os.Stderr // the pipe of the test
		return cmd
	}})
}

func TestChildrenEndWithTheirParent(t *testing.T) {
	n := newNursery(t)
	parent := exec.Command(os.Args[0], "-test.run=^TestMainIsParent$")
	parent.Env = append(os.Environ(), parentEnv+"=1")
	parent.Stderr = n.write
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	n.write.Close()
	for range 3 {
		if got := n.line(); got != "up" {
			t.Errorf("%q", got)
		}
	}
	parent.Process.Signal(syscall.SIGKILL)
	parent.Wait()
	if all, err := io.ReadAll(n.told); string(all) != "orphaned\norphaned\norphaned\n" || err != nil {
		t.Errorf("%q %v", all, err) // and the pipe has ended: none is left
	}
}

func TestOrphaned(t *testing.T) {
	r, w := io.Pipe()
	gone := Orphaned(r)
	select {
	case <-gone:
		t.Error("at once")
	default:
	}
	w.Close()
	<-gone
}
