package unit

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"apollo11/engine/task"
)

// resident gives a rig that collects the changes of each call as one text, and
// stops the unit when it has said "done".
func resident(t *testing.T, execute string, more ...string) (r *rig, ctx context.Context, calls *[]string) {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	r, calls = newRig(t, shell(execute, append([]string{"kind = 'resident'"}, more...)...)), new([]string)
	r.job.Change = func(list []task.Change) {
		var texts []string
		for _, c := range list {
			texts = append(texts, fmt.Sprintf("%s.%s=%s", c.Op, c.Key, c.Value))
		}
		*calls = append(*calls, strings.Join(texts, " "))
	}
	r.job.Progress = func(p int, m string) {
		r.progress = append(r.progress, fmt.Sprint(p, " ", m))
		if m == "done" {
			cancel()
		}
	}
	return r, ctx, calls
}

func TestResidentChanges(t *testing.T) {
	r, ctx, calls := resident(t, `
printf 'set.at=1\nadd.n=1\nadd.n=2\n50 half way\nset.at=2\nset.n=9\nadd. something\nsettled.\nmax.top=7' > lines
cat lines >> "$APOLLO_PROGRESS"; printf '\ndone\n' >> "$APOLLO_PROGRESS"
exec sleep 30`)
	o := r.runFor(ctx)
	if o.Status != task.Stopped {
		t.Fatalf("%+v", o)
	}
	if got := strings.Join(*calls, " | "); got != "set.at=2 add.n=3 | set.n=9 max.top=7" {
		t.Errorf("%q", got)
	}
	if got := strings.Join(r.progress, " | "); got != "50 half way | -1 add. something | -1 settled. | -1 done" {
		t.Errorf("%q", got)
	}
}

// The same lines of a unit that is no resident are messages.
func TestChangesOfATaskAreMessages(t *testing.T) {
	r := newRig(t, shell(`echo set.a=1 >>"$APOLLO_PROGRESS"`))
	r.job.Change = func([]task.Change) { t.Error("a change") }
	if o := r.run(); o.Status != task.Success || len(r.progress) != 1 || r.progress[0] != "-1 set.a=1" {
		t.Errorf("%v %q", o, r.progress)
	}
}

func TestResidentFaults(t *testing.T) {
	tests := []struct{ line, says string }{
		{"set.=1", `"set.=1": key ""`},
		{"add.n=x", `"add.n=x": not a finite number`},
		{"set.a", `"set.a": want name=value`},
		{"set.pw=hunter22", "a change holds the value of the secret PW"},
		{"set.hunter22", "a change holds the value of the secret PW"},
		{`set.a=\377`, "not UTF-8"},
	}
	for _, tt := range tests {
		for _, then := range []string{"exec sleep 30", "exit 0"} { // seen while it runs, and at its end
			r, ctx, calls := resident(t, fmt.Sprintf(`printf 'set.good=1\n%s\n' >>"$APOLLO_PROGRESS"; %s`, tt.line, then), `secrets = { PW = "env:PW" }`)
			r.job.Environ = append(r.job.Environ, "PW=hunter22")
			o := r.runFor(ctx)
			if o.Class != task.OutputInvalid || !strings.Contains(o.Error, tt.says) || strings.Contains(o.Error, "hunter22") {
				t.Errorf("%s: %v %s", tt.line, o.Class, o.Error)
			}
			if got := strings.Join(*calls, " | "); got != "set.good=1" {
				t.Errorf("%s: %q", tt.line, got)
			}
		}
	}
}

// A resident unit's progress goes on where a task's would end.
func TestResidentHasNoEnd(t *testing.T) {
	r, ctx, calls := resident(t, `i=0; while [ $i -lt 100 ]; do i=$((i+1)); echo add.n=1; head -c 10000 /dev/zero | tr '\0' x; echo; done >>"$APOLLO_PROGRESS"
echo done >>"$APOLLO_PROGRESS"; exec sleep 30`)
	if o := r.runFor(ctx); o.Status != task.Stopped {
		t.Fatalf("%+v", o)
	}
	sum := 0
	for _, call := range *calls {
		var n int
		if _, err := fmt.Sscanf(call, "add.n=%d", &n); err != nil {
			t.Fatalf("%q", call)
		}
		sum += n
	}
	if sum != 100 {
		t.Errorf("%d of 100", sum)
	}
}

// A resident unit has no limit, whatever the assignment says.
func TestResidentHasNoLimit(t *testing.T) {
	r, ctx, _ := resident(t, `echo done >>"$APOLLO_PROGRESS"; exec sleep 30`)
	r.job.Assignment.Timeout = 1
	if o := r.runFor(ctx); o.Status != task.Stopped {
		t.Errorf("%+v", o)
	}
	if u := r.job.Manifest.Unit; u.Timeout != 0 || !u.Idempotent || !u.Resident {
		t.Errorf("%+v", u)
	}
}

// A flood of messages does not reach the controller, but the last one does.
func TestResidentFlood(t *testing.T) {
	name := filepath.Join(t.TempDir(), "progress")
	write(t, name, strings.Repeat(strings.Repeat("x", 1023)+"\n", 1000)+"99 the last\n")
	var count int
	var last string
	f := follower{file: name, secrets: &secrets{}, resident: true, report: func(p int, m string) { count, last = count+1, fmt.Sprint(p, " ", m) }}
	defer f.close()
	if err := f.poll(false); err != nil || count > mostProgress>>10+8 || last != "99 the last" {
		t.Errorf("%d messages, the last %.20q: %v", count, last, err)
	}
}
