package unit

import (
	"context"
	"os/exec"
	"slices"
	"testing"
	"time"

	"apollo11/engine/task"
)

// BenchmarkTrue sets a whole attempt of /bin/true beside what it cannot be
// faster than, the two in turn; of-bare is the ratio of the medians' rates.
func BenchmarkTrue(b *testing.B) {
	r := newRig(b, `engine = "exec"`+"\nexecute = ['/bin/true']\n")
	var bare, whole []time.Duration
	for b.Loop() {
		began := time.Now()
		if err := exec.Command("/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
		between := time.Now()
		if o := Run(context.Background(), r.job); o.Status != task.Success {
			b.Fatal(o)
		}
		bare, whole = append(bare, between.Sub(began)), append(whole, time.Since(between))
	}
	slices.Sort(bare)
	slices.Sort(whole)
	mid := len(bare) / 2
	b.ReportMetric(float64(bare[mid])/float64(whole[mid]), "of-bare")
	b.ReportMetric(float64(bare[mid].Microseconds()), "bare-us")
	b.ReportMetric(float64(whole[mid].Microseconds()), "whole-us")
}
