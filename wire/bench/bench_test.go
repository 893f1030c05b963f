package bench

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"apollo11/engine"
	"apollo11/wire/controller"
)

func small() Load {
	l := DefaultLoad()
	l.Producers, l.Workers, l.Tasks, l.Batch, l.Low = 3, 2, 250, 20, 100*time.Millisecond
	return l
}

// running is a controller in this process.
func running(t *testing.T) (addr string) {
	c, err := controller.Open(controller.Options{Dir: t.TempDir(), Addr: "127.0.0.1:0", Settings: engine.DefaultSettings(), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- c.Run(ctx, func() { close(ready) }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-ready
	return c.Addr().String()
}

// The fields are those that the drivers of other queues print.
func TestPhasesOnARunningController(t *testing.T) {
	shown := 0
	o := Options{
		Addr: running(t), Phases: []Phase{One, Batch, Latency}, Load: small(), Now: time.Now,
		Show: func(Phase, int, int) { shown++ },
	}
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(line, &got); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{
		"peer": "apollo11", "mode": "durable", "producers": 3.0, "workers": 2.0, "payload": 100.0, "batch_size": 20.0,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	for phase, fields := range map[Phase]string{
		One:     "tasks enqueue_per_s end_to_end_tasks_per_s client_cpu_s_per_1000 disk_fdatasync_per_s",
		Batch:   "tasks enqueue_per_s end_to_end_tasks_per_s client_cpu_s_per_1000 disk_fdatasync_per_s",
		Latency: "start_p50_ms start_p99_ms ack_p50_ms ack_p99_ms disk_fdatasync_per_s",
	} {
		for _, name := range strings.Fields(fields) {
			if f := r.Phases[phase][name]; f.Med <= 0 || f.Min > f.Med || f.Med > f.Max {
				t.Errorf("%s: %s is %v", phase, name, f)
			}
		}
	}
	for _, p := range []Phase{One, Batch} {
		if n := r.Phases[p]["tasks"].Med; n != 250 {
			t.Errorf("%s: %v tasks, want 250", p, n)
		}
	}
	if shown == 0 {
		t.Error("no progress was shown")
	}
}

func TestBacklogNeedsAPrivateController(t *testing.T) {
	r, err := Run(t.Context(), Options{Addr: "127.0.0.1:1", Phases: []Phase{Backlog}, Load: small(), Now: time.Now})
	if !errors.Is(err, ErrNotOurs) || r.Errors[Backlog] == nil {
		t.Errorf("%v", err)
	}
}

// A controller that does not start says why, and its folder goes.
func TestControllerThatDoesNotStart(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	o := Options{Phases: []Phase{One}, Load: small(), Now: time.Now, Command: func(Phase, string) *exec.Cmd {
		return exec.Command("sh", "-c", "echo no room on Mars; exit 1")
	}}
	_, err := Run(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "no room on Mars") {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A controller that hangs up ends the phase with an error, at once.
func TestControllerThatHangsUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	r, err := Run(t.Context(), Options{Addr: l.Addr().String(), Phases: []Phase{One, Latency}, Load: small(), Now: time.Now})
	if err == nil || r.Errors[One] == nil || r.Errors[Latency] == nil {
		t.Errorf("%v, %v", err, r.Errors)
	}
	if line, _ := json.Marshal(r); !strings.Contains(string(line), `"one_error":`) {
		t.Errorf("%s", line)
	}
}

// Whoever stops waiting is not kept waiting.
func TestStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o := Options{Addr: running(t), Phases: []Phase{Latency, Batch}, Load: small(), Now: time.Now}
	o.Load.Low = time.Hour
	o.Show = func(Phase, int, int) { cancel() }
	if r, err := Run(ctx, o); !errors.Is(err, context.Canceled) || r.Errors[Batch] != nil {
		t.Errorf("%v", err)
	}
}

func TestLoadCheck(t *testing.T) {
	l := DefaultLoad()
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Load){
		"producers 0": func(l *Load) { l.Producers = 0 }, "workers 20000": func(l *Load) { l.Workers = 20_000 },
		"payload 15": func(l *Load) { l.Payload = 15 }, "batch 1001": func(l *Load) { l.Batch = 1001 },
		"reps 0": func(l *Load) { l.Reps = 0 }, "rate 0": func(l *Load) { l.Rate = 0 },
		"backlog 0": func(l *Load) { l.Backlog = 0 }, "tasks -1": func(l *Load) { l.Tasks = -1 },
	} {
		l := DefaultLoad()
		change(&l)
		if err := l.Check(); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPhaseNames(t *testing.T) {
	for p := One; p <= Backlog; p++ {
		if again, err := ParsePhase(p.String()); again != p || err != nil {
			t.Errorf("%s reads as %s, %v", p, again, err)
		}
	}
	if _, err := ParsePhase("phase(4)"); err == nil || Phase(4).String() != "phase(4)" {
		t.Error("an unknown phase is taken")
	}
}

func TestFigures(t *testing.T) {
	got := figures(map[string][]float64{"three": {3, 1.23456, 2}, "two": {2e6 + 1, 1}})
	if f := got["three"]; f != (Figure{2, 1.235, 3}) {
		t.Errorf("%v", f)
	}
	if f := got["two"]; f != (Figure{2e6, 1, 2e6}) {
		t.Errorf("%v", f)
	}
	for in, want := range map[float64]float64{0: 0, -1234.56: -1235, 0.000123456: 0.0001235} {
		if out := round(in); out != want {
			t.Errorf("%v is rounded to %v", in, out)
		}
	}
	if out := round(1 / zero); out != 0 {
		t.Errorf("infinity is rounded to %v", out)
	}
	list := []float64{1, 2, 3, 4}
	if quantile(list, 50) != 3 || quantile(list, 99) != 4 || quantile(list, 0) != 1 || quantile(nil, 50) != 0 {
		t.Error("quantiles")
	}
}

var zero float64

func TestPayload(t *testing.T) {
	for _, i := range []int{0, 1, 255, 999_999} {
		p := payload(i, 100)
		if len(p) != 100 || indexOf(p) != i {
			t.Errorf("%q is of %d", p, indexOf(p))
		}
	}
	if n := len(payload(1, indexBytes)); n != indexBytes {
		t.Errorf("%d bytes", n)
	}
	for _, bad := range []string{"", "123", strings.Repeat("x", 100), strings.Repeat("f", 16)} {
		if indexOf(bad) != -1 {
			t.Errorf("%q is of %d", bad, indexOf(bad))
		}
	}
}
