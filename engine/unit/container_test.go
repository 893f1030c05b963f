package unit

import (
	"archive/tar"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"apollo11/engine/task"
)

// testImage is what the tests run: one static program and the names it goes by.
const testImage = "localhost/apollo11-test-busybox"

// machineArgs let a container start also where the host forbids to raise limits.
var machineArgs = []string{"--runtime", "runc", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"}

var importImage = sync.OnceValue(func() error {
	if exec.Command("podman", "image", "exists", testImage).Run() == nil {
		return nil
	}
	file, err := exec.LookPath("busybox")
	if err != nil {
		return err
	}
	program, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var image bytes.Buffer
	w := tar.NewWriter(&image)
	w.WriteHeader(&tar.Header{Name: "bin/busybox", Mode: 0o755, Size: int64(len(program))})
	w.Write(program)
	for _, name := range []string{"sh", "cat", "echo", "env", "id", "ls", "mkdir", "mkfifo", "sleep", "test", "wc", "wget", "grep", "printf", "rm"} {
		w.WriteHeader(&tar.Header{Name: "bin/" + name, Linkname: "busybox", Typeflag: tar.TypeSymlink})
	}
	for _, name := range []string{"tmp", "etc", "proc", "sys", "dev"} {
		w.WriteHeader(&tar.Header{Name: name + "/", Mode: 0o755, Typeflag: tar.TypeDir})
	}
	if err := w.Close(); err != nil {
		return err
	}
	c := exec.Command("podman", "import", "-", testImage)
	c.Stdin = &image
	if out, err := c.CombinedOutput(); err != nil {
		return &exec.Error{Name: "podman import: " + string(out), Err: err}
	}
	return nil
})

func newBox(t testing.TB, execute string, more ...string) *rig {
	t.Helper()
	need(t, "podman", "runc", "busybox")
	if err := importImage(); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, "engine = 'container'\nimage = '"+testImage+"'\n"+shell(execute, more...))
	r.job.Manifest.Container.Arguments = append(machineArgs, r.job.Manifest.Container.Arguments...)
	t.Cleanup(func() {
		if r.job.Manifest.Container.Name != testImage {
			return
		}
		left, err := exec.Command("podman", "ps", "--all", "--quiet", "--filter", "name=^apollo11-", "--filter", "ancestor="+testImage).Output()
		if err != nil || len(left) > 0 {
			t.Errorf("containers are left: %s%v", left, err)
		}
	})
	return r
}

func TestContainer(t *testing.T) {
	r := newBox(t, `
test "$PWD" != / && test -z "$(ls -A)" || exit 9
test ! -e /etc/passwd && test -e /bin/busybox || exit 8
test "$IN_TEXT" = "a  b'c;\$(id)" || exit 7
test -z "$HOME" || test "$HOME" = / || test "$HOME" = /root || exit 6
env | grep -q THE_PASSWORD && exit 5
echo "out $PW"; echo err >&2; ls /sys/class/net
echo "rows=$IN_N" >>"$APOLLO_OUTPUT"; echo add.total=5 >>"$APOLLO_STATE"
echo "30 third" >>"$APOLLO_PROGRESS"
cat "$IN_DATA" >d; echo more >>d; echo data=d >>"$APOLLO_OUTPUT"
cat "$APOLLO_UNIT_DIR/beside" "$APOLLO_INPUT" >/dev/null || exit 4
echo x >"$APOLLO_UNIT_DIR/beside" && exit 3
echo x >>"$IN_DATA" && exit 2
true`, "prepare = 'echo prepared'", "cleanup = ['echo', '${APOLLO_TASK}']", `secrets = { PW = "env:THE_PASSWORD" }`,
		"[in.n]\ntype = 'int'\n[in.text]\n[in.data]\ntype = 'path'\n[out.rows]\ntype = 'int'\n[out.data]\ntype = 'path'").shared()
	made := filepath.Join(r.job.Share.Dir, "r-0001", "d")
	if err := os.Mkdir(filepath.Dir(made), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, made, "hello\n")
	write(t, filepath.Join(r.job.Manifest.Dir, "beside"), "")
	given := task.File{Share: "s1", Name: "r-0001/d", Size: 6, Sum: "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"}
	r.inputs("n", "5", "text", "a  b'c;$(id)", "data", given.String())
	r.job.Environ = append(r.job.Environ, "THE_PASSWORD="+canary)
	o := r.run()
	rows, _ := o.Outputs.Get("rows")
	data, _ := o.Outputs.Get("data")
	if f, _, err := task.ParseFile(data); o.Status != task.Success || rows != "5" || f.Size != 11 || err != nil || len(o.Changes) != 1 {
		t.Fatalf("%+v, log %q", o, r.logged.String())
	}
	if got := r.logged.String(); !strings.HasPrefix(got, "prepared\n") || !strings.Contains(got, "out ***\n") || !strings.HasSuffix(got, "r-0001:make\n") || strings.Contains(got, "eth") {
		t.Errorf("log %q", got)
	}
	if len(r.progress) != 1 || r.progress[0] != "30 third" {
		t.Errorf("progress %q", r.progress)
	}
	plain, err := r.job.Manifest.Hash()
	if err != nil || len(o.UnitHash) != 64 || o.UnitHash == plain {
		t.Errorf("the hash %s does not know the image: %v", o.UnitHash, err)
	}
}

// An undo in a container may delete what its unit handed on, and nothing else of
// the share.
func TestContainerUndo(t *testing.T) {
	r := newBox(t, "true", `undo = 'rm "$OUT_DATA" && ! rm "$APOLLO_UNIT_DIR/../share/r-0002/d" 2>/dev/null'`, "[out.data]\ntype = 'path'").shared()
	for _, name := range []string{"r-0001/make-1.1/d", "r-0002/d"} {
		file := filepath.Join(r.job.Share.Dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, file, "hello\n")
	}
	f := task.File{Share: "s1", Name: "r-0001/make-1.1/d", Size: 6, Sum: "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"}
	r.job.Assignment.Undo, r.job.Assignment.Outputs = true, task.Values{{Name: "data", Value: f.String()}}
	if o := r.run(); o.Status != task.Success {
		t.Fatalf("%+v, log %q", o, r.logged.String())
	}
	for name, there := range map[string]bool{"r-0001/make-1.1/d": false, "r-0002/d": true} {
		if _, err := os.Stat(filepath.Join(r.job.Share.Dir, filepath.FromSlash(name))); (err == nil) != there {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestContainerFaults(t *testing.T) {
	tests := []struct {
		name, execute, more string
		class               task.Class
		exit                int
		says                string
	}{
		{"exit code", "echo broken >&2; exit 3", "", task.ExecuteFailed, 3, "exit code 3: broken"},
		{"no such program", "true", "prepare = ['no-such-program']", task.PrepareFailed, 127, "no-such-program"},
		{"timeout", `echo "1 up" >>"$APOLLO_PROGRESS"; sleep 30`, "timeout = 60", task.Timeout, -2, "execute took longer than 1m0s"},
		{"no image", "true", "", task.PrepareFailed, -1, "image localhost/apollo11-no-such-image is not on this host (podman pull localhost/apollo11-no-such-image fetches it)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newBox(t, tt.execute, tt.more)
			if tt.name == "no image" {
				r.job.Manifest.Container.Name = "localhost/apollo11-no-such-image"
			}
			var jump time.Duration
			if tt.name == "timeout" { // once it runs, however long its start took
				r.job.Now = func() time.Time { return time.Now().Add(jump) }
				r.job.Progress = func(int, string) { jump = time.Minute }
			}
			o := r.run()
			if o.Class != tt.class || strings.Contains(o.Error, "could not be ended") || tt.exit != -2 && o.Exit != tt.exit || !strings.Contains(o.Error, tt.says) {
				t.Errorf("%+v", o)
			}
		})
	}
}

func TestLimitHint(t *testing.T) {
	b := box{image: "1"}
	e := ending{why: exitedBadly, lastLine: "Error: runc: error during container init: error setting rlimit type 7: operation not permitted"}
	if !strings.Contains(b.hint(e), "unit.container_args = [") {
		t.Errorf("%q", b.hint(e))
	}
	e.lastLine = "Error: something else"
	if b.hint(e) != "" {
		t.Errorf("%q", b.hint(e))
	}
}

func TestContainerStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := newBox(t, `trap '' TERM; echo "1 up" >>"$APOLLO_PROGRESS"; while true; do sleep 1; done`, "cleanup = 'echo cleaned'")
	r.job.Progress = func(int, string) { cancel() }
	began := time.Now()
	o := r.runFor(ctx)
	if o.Status != task.Stopped || !strings.HasSuffix(r.logged.String(), "cleaned\n") || time.Since(began) > 15*time.Second {
		t.Errorf("%+v after %v, log %q", o, time.Since(began), r.logged.String())
	}
}
