package unit

import (
	"context"
	"os/exec"
	"testing"

	"apollo11/engine/task"
)

// BenchmarkTrue sets a whole attempt of /bin/true beside what it cannot be
// faster than.
func BenchmarkTrue(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("unit", func(b *testing.B) {
		r := newRig(b, `engine = "exec"`+"\nexecute = ['/bin/true']\n")
		for b.Loop() {
			if o := Run(context.Background(), r.job); o.Status != task.Success {
				b.Fatal(o)
			}
		}
	})
}

