package unit

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"apollo11/engine/task"
)

// runToDeath is an executor that has one attempt of unit u to do, in a folder
// that holds units, work and share.
func runToDeath(dir string) {
	set, err := Load(filepath.Join(dir, "units"), testDefaults)
	if err == nil {
		var work *Workplace
		work, err = OpenWorkplace(filepath.Join(dir, "work"))
		if err == nil {
			Run(context.Background(), Job{
				Manifest: set.Get("u"), Work: work, Share: &Share{Dir: filepath.Join(dir, "share"), ID: "s"}, Environ: os.Environ(), Now: time.Now,
				Assignment: task.Assignment{Task: "r-1:u", Run: "r-1", Type: "u", Version: task.MakeVersion(1, 1), Attempt: 1},
				Log:        func(b []byte) { os.Stdout.Write(b) },
			})
		}
	}
	os.Stderr.WriteString("it should have been killed")
	os.Exit(1)
}

// Of an executor that is killed nothing is left once the next one has started:
// no process, no container, no folder, no half of what was to be handed on.
func TestKilledExecutor(t *testing.T) {
	tests := []struct{ name, head string }{
		{"shell", ""},
		{"container", "engine = 'container'\nimage = '" + testImage + "'\narguments = ['" + strings.Join(machineArgs, "', '") + "']\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if tt.name == "container" {
				dir = filepath.Dir(newBox(t, "true").parent) // which looks after the test that no container is left
			}
			units := filepath.Join(dir, "units")
			if err := os.Mkdir(units, 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(units, "u.toml"), tt.head+shell(`echo half >"$APOLLO_RUN_DIR/f"; echo up; trap "" TERM; while true; do sleep 1; done`, aPath))
			c := exec.Command(os.Args[0])
			c.Env = append(os.Environ(), "APOLLO11_TEST_EXECUTOR="+dir)
			out, err := c.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			said := make([]byte, 3)
			if _, err := out.Read(said); err != nil || string(said) != "up\n" {
				t.Fatalf("%q %v", said, err)
			}
			c.Process.Kill()
			c.Wait()
			inside, _ := filepath.Glob(filepath.Join(dir, "share", "r-1", "*", "f"))
			if len(inside) != 1 {
				t.Fatalf("it was to be killed at work: %v", inside)
			}
			share := &Share{Dir: filepath.Join(dir, "share"), ID: "s"}
			share.Sweep()
			work, err := OpenWorkplace(filepath.Join(dir, "work"))
			if err != nil {
				t.Fatal(err)
			}
			defer work.Close()
			for tries := 0; alive() > 0; tries++ {
				if tries == 1000 {
					t.Fatalf("%d processes live on", alive())
				}
				time.Sleep(10 * time.Millisecond)
			}
			endDescendants(nil)
			for _, pattern := range []string{"share/[^.]*", "share/.attempts/*"} {
				if left, _ := filepath.Glob(filepath.Join(dir, pattern)); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "work/*")); len(left) != 1 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// alive counts the processes that came to us as orphans and have not ended.
func alive() (n int) {
	for _, p := range descendants(nil) {
		if p.state != 'Z' {
			n++
		}
	}
	return n
}
