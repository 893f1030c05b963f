package unit

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"apollo11/engine/task"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if units := os.Getenv("APOLLO11_TEST_EXECUTOR"); units != "" {
		runToDeath(units)
	}
	goleak.VerifyTestMain(m)
}

var testDefaults = Defaults{
	Retries: 1, RetryInterval: 2 * time.Second, Backoff: 1, Jitter: 0.1,
	Timeout: 20 * time.Second, Grace: 100 * time.Millisecond, Env: []string{"PATH", "HOME"},
}

// rig is one unit in a folder, ready to be run.
type rig struct {
	t        testing.TB
	job      Job
	parent   string // of the workplace
	logged   bytes.Buffer
	progress []string
}

func newRig(t testing.TB, manifest string) *rig {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "u.toml"), manifest)
	set, err := Load(dir, testDefaults)
	if err != nil || len(set.Faults) > 0 {
		t.Fatalf("load: %v %v", err, set.Faults)
	}
	parent := t.TempDir()
	work, err := OpenWorkplace(parent)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { work.Close() })
	r := &rig{t: t, parent: parent}
	r.job = Job{
		Manifest:   set.Get("u"),
		Assignment: task.Assignment{Task: "t1", Type: "u", Version: task.MakeVersion(1, 1), Attempt: 1},
		Work:       work, Environ: os.Environ(), Now: time.Now,
		Log:      func(b []byte) { r.logged.Write(b) },
		Progress: func(p int, m string) { r.progress = append(r.progress, fmt.Sprint(p, " ", m)) },
	}
	return r
}

func shell(execute string, more ...string) string {
	return fmt.Sprintf("execute = '''%s'''\n%s\n", execute, strings.Join(more, "\n"))
}

func (r *rig) inputs(pairs ...string) *rig {
	var list []task.Value
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, task.Value{Name: pairs[i], Value: pairs[i+1]})
	}
	values, err := task.NewValues(list)
	if err != nil {
		r.t.Fatal(err)
	}
	r.job.Assignment.Inputs = values
	return r
}

// run runs the attempt and checks what must hold after every one.
func (r *rig) run() task.Outcome { return r.runFor(context.Background()) }

func (r *rig) runFor(ctx context.Context) task.Outcome {
	r.t.Helper()
	o := Run(ctx, r.job)
	spare := r.job.Work.spare
	for _, c := range []claim{r.job.Work.disk, r.job.Work.memory} {
		left, err := filepath.Glob(filepath.Join(c.dir, "[^.]*"))
		if err != nil || len(left) > 1 || len(left) == 1 && (left[0] != spare.folder && left[0] != spare.files || !asNew(left[0])) {
			r.t.Errorf("left in the workplace: %v %v", left, err)
		}
	}
	if runtime.GOOS == "linux" && children() != nil {
		r.t.Errorf("left of the tree: %v", children())
	}
	return o
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestSuccess(t *testing.T) {
	r := newRig(t, shell(`
test "$PWD" != / && test -z "$(ls -A)" || exit 9
echo out; echo err >&2
echo "rows=$IN_N" >> "$APOLLO_OUTPUT"
printf '%s\n' 'text=a=b \n ü' >> "$APOLLO_OUTPUT"
echo "who=$APOLLO_TASK/$APOLLO_ATTEMPT/$APOLLO_RUN/$CTX_NEXT_BATCH" >> "$APOLLO_OUTPUT"
cat "$APOLLO_INPUT" | tr -d '\n' | sed 's/^/json=/' >> "$APOLLO_OUTPUT"
printf 'set.next_batch=7\nadd.total=%s\ndel.old\n' "$IN_N" >> "$APOLLO_STATE"
echo "10 started" >> "$APOLLO_PROGRESS"; printf "no number\n100%% done" >> "$APOLLO_PROGRESS"`,
		`context = ["next.batch"]`, "[in.n]", `type = "int"`, "[in.f]", `type = "float"`, "default = 0.5", "[in.b]", `type = "bool"`)).inputs("n", "+5", "b", "true")
	r.job.Assignment.Run = "run-1"
	r.job.Assignment.Context = task.Values{{Name: "next.batch", Value: "6"}}
	o := r.run()
	want := task.Values{
		{Name: "json", Value: `{"task":"t1","type":"u","attempt":1,"run":"run-1","inputs":{"b":true,"f":0.5,"n":5},"context":{"next.batch":"6"}}`},
		{Name: "rows", Value: "+5"}, {Name: "text", Value: `a=b \n ü`}, {Name: "who", Value: "t1/1/run-1/6"},
	}
	if o.Status != task.Success || o.Exit != 0 || o.Error != "" || !slices.Equal(o.Outputs, want) {
		t.Fatalf("%+v\n%s", o, r.logged.String())
	}
	changes := []task.Change{{Op: task.Set, Key: "next_batch", Value: "7"}, {Op: task.Add, Key: "total", Value: "+5"}, {Op: task.Del, Key: "old"}}
	if !slices.Equal(o.Changes, changes) {
		t.Errorf("changes %+v", o.Changes)
	}
	if got := r.logged.String(); !strings.Contains(got, "out\n") || !strings.Contains(got, "err\n") {
		t.Errorf("log %q", got)
	}
	if want := []string{"10 started", "-1 no number", "100 done"}; !slices.Equal(r.progress, want) {
		t.Errorf("progress %q", r.progress)
	}
	if o.Timing.Execute <= 0 || o.Version != r.job.Assignment.Version || o.Task != "t1" {
		t.Errorf("%+v", o)
	}
}

func TestInputsStayValues(t *testing.T) {
	for _, value := range []string{
		"$(touch hacked)", "`touch hacked`", "; touch hacked; rm -rf .", "a\nb\n", `"'"'`, "${IN_V}", "$IN_V", "--help", "\x1b[31m\u202e", " ", "*",
	} {
		for _, manifest := range []string{
			shell(`printf %s "$IN_V" > copy; echo done=$(ls) >> "$APOLLO_OUTPUT"`, "[in.v]"),
			"engine = \"exec\"\nexecute = [\"./copy.sh\", \"v${IN_V}\"]\n[in.v]\n",
		} {
			r := newRig(t, manifest).inputs("v", value)
			script := filepath.Join(r.job.Manifest.Dir, "copy.sh")
			write(t, script, "#!/bin/sh\nprintf %s \"${1#v}\" > copy; echo done=$(ls) >> \"$APOLLO_OUTPUT\"\n")
			if err := os.Chmod(script, 0o700); err != nil {
				t.Fatal(err)
			}
			var copied string
			r.job.Manifest.Cleanup = Step{Args: []string{"/bin/sh", "-c", "cat copy; echo ."}, Text: true}
			r.job.Manifest.Unit.Cleanup = time.Minute
			o := r.run()
			copied = r.logged.String()
			if done, _ := o.Outputs.Get("done"); o.Status != task.Success || done != "copy" || copied != value+".\n" {
				t.Errorf("%q: %+v, copied %q", value, o, copied)
			}
		}
	}
}

func TestOnlyNamedVariables(t *testing.T) {
	r := newRig(t, shell(`env | cut -d= -f1 | sort | tr '\n' ' '`, `env = ["PATH"]`, "[in.ld_preload]", "[in.path]")).inputs("ld_preload", "/x.so", "path", "/nowhere")
	r.job.Environ = []string{"PATH=/usr/bin:/bin", "SECRET=x", "PATHS=y", "LD_PRELOAD="}
	if o := r.run(); o.Status != task.Success {
		t.Fatalf("%+v", o)
	}
	const want = "APOLLO_ATTEMPT APOLLO_INPUT APOLLO_OUTPUT APOLLO_PROGRESS APOLLO_RUN APOLLO_RUN_DIR APOLLO_SAMPLE APOLLO_STATE APOLLO_TASK APOLLO_UNIT_DIR IN_LD_PRELOAD IN_PATH PATH PWD "
	got := strings.NewReplacer("OLDPWD ", "", "SHLVL ", "", "_ ", "").Replace(r.logged.String())
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestFailures(t *testing.T) {
	tests := []struct {
		name, manifest string
		inputs         []string
		class          task.Class
		exit           int
		signal, says   string
	}{
		{"exit code", shell("echo first >&2; echo why >&2; exit 3"), nil, task.ExecuteFailed, 3, "", "execute ended with exit code 3: why"},
		{"signal", shell("kill -9 $$"), nil, task.ExecuteFailed, -1, "SIGKILL", "ended by SIGKILL"},
		{"prepare", shell("touch ran", "prepare = 'echo no file >&2; exit 2'"), nil, task.PrepareFailed, 2, "", "prepare ended with exit code 2: no file"},
		{"prepare too long", shell("", "prepare = 'exec sleep 30'", "prepare_timeout = '100ms'", "execute = 'true'")[len("execute = ''''''\n"):], nil, task.PrepareFailed, -1, "SIGTERM", "prepare took longer than 100ms"},
		{"timeout", shell("exec sleep 30", "timeout = 0.1"), nil, task.Timeout, -1, "SIGTERM", "execute took longer than 100ms"},
		{"program missing", "engine = 'exec'\nexecute = ['apollo-no-such-program']", nil, task.PrepareFailed, -1, "", "apollo-no-such-program is not in PATH"},
		{"script missing", "engine = 'exec'\nexecute = ['./gone.sh']", nil, task.PrepareFailed, -1, "", "no such file"},
		{"missing input", shell("true", "[in.url]", "required = true"), nil, task.InputInvalid, -1, "", "input url is missing"},
		{"undeclared input", shell("true", "[in.url]"), []string{"ulr", "x"}, task.InputInvalid, -1, "", "did you mean url?"},
		{"NUL input", shell("true", "[in.url]"), []string{"url", "a\x00b"}, task.InputInvalid, -1, "", "NUL"},
		{"long input", shell("true", "[in.u]"), []string{"u", strings.Repeat("x", 128<<10-5)}, task.InputInvalid, -1, "", "1 bytes too long"},
		{"bad output line", shell(`echo a=1 >>"$APOLLO_OUTPUT"; echo oops >>"$APOLLO_OUTPUT"`), nil, task.OutputInvalid, 0, "", `line 2, "oops"`},
		{"output not UTF-8", shell(`printf 'a=\377\n' >>"$APOLLO_OUTPUT"`), nil, task.OutputInvalid, 0, "", "not UTF-8"},
		{"output undeclared", shell(`echo row=1 >>"$APOLLO_OUTPUT"`, "[out.rows]"), nil, task.OutputInvalid, 0, "", "did you mean rows?"},
		{"output missing", shell(`true`, "[out.rows]", "required = true"), nil, task.OutputInvalid, 0, "", "output rows is missing"},
		{"output against contract", shell(`echo rows=-1 >>"$APOLLO_OUTPUT"`, "[out.rows]", "type='int'", "min=0"), nil, task.OutputInvalid, 0, "", "below the minimum 0"},
		{"reserved output", shell(`echo status=1 >>"$APOLLO_OUTPUT"`), nil, task.OutputInvalid, 0, "", "belongs to the protocol"},
		{"bad state line", shell(`echo inc.a=1 >>"$APOLLO_STATE"`), nil, task.OutputInvalid, 0, "", "$APOLLO_STATE: line 1"},
		{"output a pipe", shell(`mkfifo "$APOLLO_OUTPUT"`), nil, task.OutputInvalid, 0, "", "not a regular file"},
		{"output a folder", shell(`mkdir "$APOLLO_OUTPUT"`), nil, task.OutputInvalid, 0, "", "not a regular file"},
		{"output too large", shell(`head -c 140000 /dev/zero | tr '\0' x | sed 's/^/a=/' >>"$APOLLO_OUTPUT"; echo set.k=v >>"$APOLLO_STATE"`), nil, task.OutputInvalid, 0, "", "outputs of 140001 and state changes of 6 bytes"},
		{"output far too large", shell(`head -c 10000000 /dev/zero >"$APOLLO_OUTPUT"`), nil, task.OutputInvalid, 0, "", "10000000 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, tt.manifest).inputs(tt.inputs...)
			o := r.run()
			if o.Status != task.Failed || o.Class != tt.class || o.Exit != tt.exit || o.Signal != tt.signal || !strings.Contains(o.Error, tt.says) {
				t.Errorf("%v exit %d signal %q: %s", o.Class, o.Exit, o.Signal, o.Error)
			}
			if o.Outputs != nil || o.Changes != nil {
				t.Errorf("a failure has an answer: %+v", o)
			}
		})
	}
}

// A unit that takes the hint and leaves with exit code 0 was too long all the
// same. The clock jumps once the trap is set, however slow the machine is.
func TestTimeoutExitZero(t *testing.T) {
	r := newRig(t, shell(`trap 'exit 0' TERM; echo "1 up" >>"$APOLLO_PROGRESS"; sleep 30 & wait`, "timeout = 60", "grace = 20"))
	var jump time.Duration
	r.job.Now = func() time.Time { return time.Now().Add(jump) }
	r.job.Progress = func(int, string) { jump = time.Minute }
	o := r.run()
	if o.Status != task.Failed || o.Class != task.Timeout || o.Exit != 0 || o.Signal != "" || !strings.Contains(o.Error, "execute took longer than 1m0s") {
		t.Errorf("%+v", o)
	}
}

func TestCleanupAlways(t *testing.T) {
	const cleanup = "cleanup = 'echo cleaned $(ls)'"
	tests := []struct {
		name, manifest, logged string
		status                 task.Status
		says                   string
	}{
		{"success", shell("touch f", cleanup), "cleaned f\n", task.Success, ""},
		{"failure", shell("touch f; exit 1", cleanup), "cleaned f\n", task.Failed, "exit code 1"},
		{"timeout", shell("exec sleep 30", cleanup, "timeout = 0.1"), "cleaned\n", task.Failed, "longer"},
		{"prepare failed", shell("touch f", cleanup, "prepare = 'exit 1'"), "cleaned\n", task.Failed, "prepare"},
		{"bad output", shell(`echo x >>"$APOLLO_OUTPUT"`, cleanup), "cleaned\n", task.Failed, "line 1"},
		{"folder gone", shell(`rm -r "$PWD"`, cleanup), "cleaned\n", task.Success, ""},
		{"all gone", shell(`rm -r "$(dirname "$PWD")" "$(dirname $(dirname "$APOLLO_OUTPUT"))"`, cleanup), "cleaned\n", task.Success, ""},
		{"fails itself", shell("true", "cleanup = 'echo stuck >&2; exit 4'"), "stuck\n[apollo11: cleanup ended with exit code 4: stuck]\n", task.Success, "cleanup ended with exit code 4: stuck"},
		{"too long", shell("exit 2", "cleanup = 'exec sleep 30'", "cleanup_timeout = '100ms'"), "[apollo11: cleanup took longer than 100ms and was ended]\n", task.Failed, "exit code 2; cleanup took"},
		{"cannot change the answer", shell(`echo a=1 >>"$APOLLO_OUTPUT"`, `cleanup = 'echo x >>"$APOLLO_OUTPUT"'`), "", task.Success, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, tt.manifest)
			o := r.run()
			if o.Status != tt.status || r.logged.String() != tt.logged || !strings.Contains(o.Error, tt.says) || (tt.says == "") != (o.Error == "") {
				t.Errorf("%v %q, log %q", o.Status, o.Error, r.logged.String())
			}
		})
	}
}

func TestStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	r := newRig(t, shell(`echo "1 up" >>"$APOLLO_PROGRESS"; exec sleep 30`, "cleanup = 'echo cleaned'"))
	r.job.Progress = func(int, string) { cancel() }
	o := r.runFor(ctx)
	if o.Status != task.Stopped || o.Class != task.ByPerson || o.Signal != "SIGTERM" || r.logged.String() != "cleaned\n" {
		t.Errorf("%+v, log %q", o, r.logged.String())
	}
}

func TestGrace(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	r := newRig(t, shell(`trap 'for i in 1 2 3; do /bin/true; done; echo saved; exit 0' TERM; echo "1 up" >>"$APOLLO_PROGRESS"; while :; do sleep 0.01; done`, "grace = 20"))
	r.job.Progress = func(int, string) { cancel() }
	if o := r.runFor(ctx); o.Status != task.Stopped || o.Exit != 0 || !strings.HasSuffix(r.logged.String(), "saved\n") {
		t.Errorf("%+v, log %q", o, r.logged.String())
	}
}

func TestEndlessOutput(t *testing.T) {
	r := newRig(t, shell("yes 'endless output' & yes more >&2", "timeout = 0.2"))
	o := r.run()
	if o.Class != task.Timeout || !o.Truncated || !strings.Contains(o.Error, "and was ended: m") {
		t.Errorf("%+v", o)
	}
	if got := r.logged.Len(); got != mostPrinted+len(cutMark) || !bytes.HasSuffix(r.logged.Bytes(), []byte(cutMark)) {
		t.Errorf("kept %d bytes", got)
	}
}

func TestLargeOutputIsNotAFault(t *testing.T) {
	r := newRig(t, shell("head -c 50000000 /dev/zero; echo a=1 >>\"$APOLLO_OUTPUT\""))
	if o := r.run(); o.Status != task.Success || !o.Truncated || len(o.Outputs) != 1 {
		t.Errorf("%+v", o)
	}
}

func TestLastOutputIsNotLost(t *testing.T) {
	r := newRig(t, shell("head -c 60000 /dev/zero >f; exec dd if=f bs=60000 count=1 2>/dev/null"))
	if o := r.run(); o.Status != task.Success || r.logged.Len() != 60000 {
		t.Errorf("%d bytes of 60000: %+v", r.logged.Len(), o)
	}
}

func TestAnyBytesAreLogged(t *testing.T) {
	r := newRig(t, shell(`printf 'a\000b\377\376\033[31m'; printf '\000\377 bad' >&2; exit 1`))
	o := r.run()
	if got := r.logged.String(); !strings.Contains(got, "a\x00b\xff\xfe\x1b[31m") || !strings.Contains(got, "\x00\xff bad") {
		t.Errorf("%q", got)
	}
	if !strings.HasSuffix(o.Error, `exit code 1: \x00\xff bad`) {
		t.Errorf("%q", o.Error)
	}
}

func TestOutputComesWhileItRuns(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	r := newRig(t, shell("echo early; exec sleep 30"))
	r.job.Log = func([]byte) { cancel() }
	if o := r.runFor(ctx); o.Status != task.Stopped {
		t.Errorf("%+v", o)
	}
}

func TestFolderThatResists(t *testing.T) {
	r := newRig(t, shell("mkdir -p a/b; touch a/b/c; chmod 0 a/b a"))
	if o := r.run(); o.Status != task.Success {
		t.Errorf("%+v", o)
	}
}

func TestWorkplaceGone(t *testing.T) {
	r := newRig(t, shell("true"))
	if err := os.RemoveAll(r.parent); err != nil {
		t.Fatal(err)
	}
	if o := r.run(); o.Status != task.Success {
		t.Errorf("%+v", o)
	}
}

func TestNoRoomForTheFolder(t *testing.T) {
	r := newRig(t, shell("true"))
	if err := os.RemoveAll(r.parent); err != nil {
		t.Fatal(err)
	}
	write(t, r.parent, "a file where the folder was")
	o := r.run()
	if o.Class != task.PrepareFailed || !strings.Contains(o.Error, "work folder") {
		t.Errorf("%+v", o)
	}
}

func TestSecondRunAtOncePanics(t *testing.T) {
	r := newRig(t, shell("true"))
	running.Add(1)
	defer func() {
		running.Store(0)
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	Run(context.Background(), r.job)
}
