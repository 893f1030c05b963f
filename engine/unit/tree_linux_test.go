package unit

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"apollo11/engine/task"
)

// stubborn starts everything that likes to survive, writes the numbers of all
// to $IN_PIDS, and ignores TERM.
const stubborn = `
trap '' TERM
setsid sh -c 'trap "" TERM; echo $$ >> "$IN_PIDS"; exec sleep 40' &
(setsid sh -c 'trap "" TERM HUP; echo $$ >> "$IN_PIDS"; sleep 40 & echo $! >> "$IN_PIDS"; wait' &)
sleep 40 & echo $! >> "$IN_PIDS"
echo $$ >> "$IN_PIDS"
while [ $(wc -l < "$IN_PIDS") -lt 5 ]; do :; done
echo "1 up" >> "$APOLLO_PROGRESS"
`

func TestNothingSurvives(t *testing.T) {
	tests := []struct{ name, end, manifest string }{
		{"timeout", "while :; do sleep 1; done", "timeout = 0.3"},
		{"stopped", "while :; do sleep 1; done", ""},
		{"success", "exit 0", ""},
		{"failure", "exit 1", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			list := filepath.Join(t.TempDir(), "pids")
			r := newRig(t, shell(stubborn+tt.end, tt.manifest, "[in.pids]")).inputs("pids", list)
			if tt.name == "stopped" {
				r.job.Progress = func(int, string) { cancel() }
			}
			o := r.runFor(ctx)
			text, err := os.ReadFile(list)
			if err != nil {
				t.Fatal(err, o)
			}
			pids := strings.Fields(string(text))
			if len(pids) != 5 {
				t.Fatalf("%d processes were started: %+v %s", len(pids), o, r.logged.String())
			}
			for _, text := range pids {
				pid, _ := strconv.Atoi(text)
				if e, ok := look(pid); ok && e.state != 'Z' {
					t.Errorf("process %d survived: %+v", pid, e)
				}
			}
		})
	}
}

func TestStrangersLive(t *testing.T) {
	r := newRig(t, shell("setsid sleep 40 & true"))
	stranger := exec.Command("sleep", "40")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		stranger.Process.Kill()
		stranger.Wait()
	}()
	Run(context.Background(), r.job)
	if got := children(); len(got) != 1 || !got[stranger.Process.Pid] {
		t.Errorf("children %v, want only %d", got, stranger.Process.Pid)
	}
	if e, _ := look(stranger.Process.Pid); e.state == 'Z' {
		t.Error("the stranger was killed")
	}
}

func TestForkBomb(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 1,000 processes take the race detector minutes")
	}
	// Bounded, should the guard fail: 1,400 processes that each leave the group.
	r := newRig(t, shell(`i=0; while [ $i -lt 1400 ]; do setsid sleep 40 & i=$((i+1)); done; wait`))
	o := r.run()
	if o.Class != task.ExecuteFailed || !strings.Contains(o.Error, "more than 1000 processes") {
		t.Errorf("%+v", o)
	}
}

func TestSweep(t *testing.T) {
	parent := t.TempDir()
	mk := func(name string, lock bool) string {
		dir := filepath.Join(parent, name)
		if err := os.MkdirAll(filepath.Join(dir, "attempt"), 0o700); err != nil {
			t.Fatal(err)
		}
		if lock {
			write(t, filepath.Join(dir, lockName), "")
		}
		return dir
	}
	dead, unmarked, other := mk(claimPrefix+"1", true), mk(claimPrefix+"2", false), mk("other", true)
	link := filepath.Join(parent, claimPrefix+"3")
	if err := os.Symlink(other, link); err != nil {
		t.Fatal(err)
	}
	orphan := exec.Command("sleep", "40")
	orphan.Env = []string{"APOLLO_OUTPUT=" + filepath.Join(dead, "attempt/output")}
	inside := exec.Command("sleep", "40")
	inside.Dir, inside.Env = filepath.Join(dead, "attempt"), []string{}
	for _, c := range []*exec.Cmd{orphan, inside} {
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
	}
	alive, err := OpenWorkplace(parent)
	if err != nil {
		t.Fatal(err)
	}
	next, err := OpenWorkplace(parent)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{dead: false, unmarked: true, other: true, link: true, alive.disk.dir: true, next.disk.dir: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v, want there %v", path, err, want)
		}
	}
	for _, c := range []*exec.Cmd{orphan, inside} {
		if err := c.Wait(); err == nil || err.Error() != "signal: killed" {
			t.Errorf("a dead executor's process: %v", err)
		}
	}
	for _, w := range []*Workplace{alive, next} {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(parent, "*")); len(left) != 3 {
		t.Errorf("left %v", left)
	}
}

// The start of a file that was read takes no memory any more, and what is
// appended comes where it did.
func TestFreeStart(t *testing.T) {
	name := filepath.Join(t.TempDir(), "progress")
	write(t, name, strings.Repeat("x", 1<<20))
	f := follower{file: name, resident: true, report: func(int, string) {}}
	defer f.close()
	if err := f.poll(false); err != nil || f.freed != 1<<20 {
		t.Fatalf("freed %d: %v", f.freed, err)
	}
	info, err := os.Stat(name)
	if err != nil || info.Size() != 1<<20 || info.Sys().(*syscall.Stat_t).Blocks*512 > 64<<10 {
		t.Errorf("%d bytes in %d blocks: %v", info.Size(), info.Sys().(*syscall.Stat_t).Blocks, err)
	}
}

// The container that an executor was running when it was killed is ended by the
// next one that opens the workplace.
func TestSweepContainer(t *testing.T) {
	r := newBox(t, "true")
	args := append([]string{"run", "--detach", "--network", "none", "--name", "apollo11-swept"}, machineArgs...)
	out, err := exec.Command("podman", append(args, testImage, "sleep", "40")...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	dead := filepath.Join(r.parent, claimPrefix+"dead")
	if err := os.Mkdir(dead, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dead, lockName), "")
	write(t, filepath.Join(dead, containerMark), r.job.Manifest.found+"\napollo11-swept")
	w, err := OpenWorkplace(r.parent)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	endDescendants(nil) // its monitor, which came to us
	if _, err := os.Stat(dead); err == nil {
		t.Error("the workplace is left")
	}
}
