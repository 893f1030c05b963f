package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

func TestSubmit(t *testing.T) {
	day := time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)
	plain := task.Spec{Type: "echo", Retries: task.Unset}
	with := func(change func(*task.Spec)) task.Spec { s := plain; change(&s); return s }
	tests := []struct {
		args           []string
		want           task.Spec
		stdout, stderr string
	}{
		{[]string{"echo"}, plain, "t-1\n", ""},
		{[]string{"echo", "b=2=3", "a=", `c=x\y` + "\n世"}, with(func(s *task.Spec) {
			s.Inputs = task.Values(object("a", "", "b", "2=3", "c", `x\y`+"\n世"))
		}), "t-1\n", ""},
		{[]string{"echo", "--id", "mine", "--key", "k:1"}, with(func(s *task.Spec) { s.ID, s.Key = "mine", "k:1" }), "mine\n", ""},
		{[]string{"echo", "--at", "10m", "--deadline", "1h30m"}, with(func(s *task.Spec) {
			s.NotBefore, s.Deadline = noon.Add(10*time.Minute), noon.Add(90*time.Minute)
		}), "t-1\n", ""},
		{[]string{"echo", "--at", "2026-12-01T08:00:00Z", "--deadline", "2026-12-01 09:30"}, with(func(s *task.Spec) {
			s.NotBefore, s.Deadline = day, day.Add(30*time.Minute)
		}), "t-1\n", ""},
		{[]string{"echo", "--retries", "0", "--timeout", "30s"}, with(func(s *task.Spec) { s.Retries, s.Timeout = 0, 30*time.Second }), "t-1\n", ""},
		{[]string{"nobody"}, with(func(s *task.Spec) { s.Type = "nobody" }), "t-1\n", "warning: t-1: no executor offers nobody\n"},
		{[]string{"--json", "nobody", "--id", "x"}, with(func(s *task.Spec) { s.Type, s.ID = "nobody", "x" }),
			`{"id":"x","state":"queued","existed":false,"warning":"no executor offers nobody"}` + "\n", "warning: x: no executor offers nobody\n"},
		{[]string{"echo", "--key", "old"}, with(func(s *task.Spec) { s.Key = "old" }), "t-1\n", "1 of 1 were there already\n"},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			f := newFake(t)
			f.known = map[string]bool{"old": true}
			run(t, f.env(), append([]string{"submit"}, tt.args...)...).want(t, tt.stdout, tt.stderr, Done)
			if len(f.submitted) != 1 {
				t.Fatalf("%d submitted", len(f.submitted))
			}
			got := f.submitted[0]
			if !got.NotBefore.Equal(tt.want.NotBefore) || !got.Deadline.Equal(tt.want.Deadline) {
				t.Errorf("times %s, %s, want %s, %s", got.NotBefore, got.Deadline, tt.want.NotBefore, tt.want.Deadline)
			}
			got.NotBefore, got.Deadline = tt.want.NotBefore, tt.want.Deadline
			if len(got.Inputs) == 0 {
				got.Inputs = nil
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestSubmitCount(t *testing.T) {
	f := newFake(t)
	r := f.run("submit nobody --count 2500")
	lines := strings.Fields(r.stdout)
	if len(lines) != 2500 || lines[0] != "t-1" || lines[2499] != "t-2500" || r.code != Done {
		t.Errorf("code %d, %d lines", r.code, len(lines))
	}
	if r.stderr != "warning: t-1: no executor offers nobody\n" {
		t.Errorf("the same warning more than once: %q", r.stderr)
	}
	if !slices.Equal(f.batches, []int{1000, 1000, 500}) {
		t.Errorf("batches %v", f.batches)
	}
}

// Large inputs make small batches, so that a submit stays far under the cap.
func TestBatchesByBytes(t *testing.T) {
	big := task.Spec{Type: "x", Inputs: task.Values(object("a", strings.Repeat("x", 120<<10)))}
	specs := slices.Repeat([]task.Spec{big}, 10)
	if n := batchEnd(specs, 0); n != 4 {
		t.Errorf("first batch of %d", n)
	}
	if n := batchEnd(specs, 9); n != 10 {
		t.Errorf("last batch ends at %d", n)
	}
	huge := task.Spec{Type: "x", Inputs: task.Values(object("a", strings.Repeat("x", 600<<10)))}
	if n := batchEnd([]task.Spec{huge, huge}, 0); n != 1 {
		t.Errorf("a batch over the limit by itself: %d", n)
	}
}

func detail(id, state, class string) view.Detail {
	return view.Detail{Task: view.Task{ID: id, Type: "echo", State: state, ErrorClass: class}}
}

func TestSubmitWait(t *testing.T) {
	f := newFake(t)
	f.details["t-1"] = []view.Detail{detail("t-1", "queued", ""), detail("t-1", "running", ""), detail("t-1", "succeeded", "")}
	f.details["t-2"] = []view.Detail{detail("t-2", "succeeded", "")}
	f.run("submit echo --count 2 --wait").want(t, "t-1\nt-2\n", "2 succeeded\n", Done)

	f = newFake(t)
	f.details["t-1"] = []view.Detail{detail("t-1", "succeeded", "")}
	f.details["t-2"] = []view.Detail{detail("t-2", "retrying", "timeout"), detail("t-2", "dead", "timeout")}
	f.details["t-3"] = []view.Detail{detail("t-3", "cancelled", "")}
	f.run("submit echo --count 3 --wait").want(t, "t-1\nt-2\nt-3\n", "t-2: dead: timeout\nt-3: cancelled\n1 succeeded, 1 dead, 1 cancelled\n", Failed)

	f = newFake(t)
	f.details["t-1"] = []view.Detail{detail("t-1", "dead", "timeout")}
	r := f.run("submit echo --wait --json")
	if r.code != Failed || strings.Count(r.stdout, "\n") != 1 || !strings.Contains(r.stdout, `"state":"dead"`) {
		t.Errorf("JSON: code %d, %q", r.code, r.stdout)
	}

	f = newFake(t) // forgotten before it could be asked for
	f.run("submit echo --wait").want(t, "t-1\n", "apollo11: submit: waiting for t-1: not found\nhint: apollo11 tasks\n", Failed)
}

func TestSubmitWaitInterrupted(t *testing.T) {
	f := newFake(t)
	f.details["t-1"] = []view.Detail{detail("t-1", "queued", "")}
	ctx, cancel := context.WithCancel(t.Context())
	env := f.env()
	env.poll = time.Hour
	env.Stdout = writer(func(p []byte) { cancel() }) // once the id is out
	runContext(ctx, env, "submit", "echo", "--wait").want(t, "", "apollo11: submit: interrupted; the tasks go on\nhint: apollo11 task t-1\n", Failed)
}

// writer calls a function for everything that is written.
type writer func([]byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }

func jobsFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "jobs.jsonl")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestSubmitFile(t *testing.T) {
	text := "\xef\xbb\xbf" + `{"type":"fetch","in":{"url":"http://x","n":12,"f":1.50,"big":12345678901234567890,"ok":true}}` + "\r\n\n" +
		` {"id":"mine","type":"echo"} ` + "\n" + `{"type":"echo","key":"k","in":{}}` // no newline at the end
	f := newFake(t)
	name := jobsFile(t, text)
	f.run("submit --file "+name+" --retries 3").want(t, "t-1\nmine\nt-3\n", "", Done)
	if want := object("big", "12345678901234567890", "f", "1.50", "n", "12", "ok", "true", "url", "http://x"); !reflect.DeepEqual(view.Object(f.submitted[0].Inputs), want) {
		t.Errorf("inputs %v", f.submitted[0].Inputs)
	}
	key := f.submitted[0].Key
	if !strings.HasPrefix(key, "file:") || !strings.HasSuffix(key, ":1") || task.CheckID(key) != nil {
		t.Errorf("key of a line without one: %q", key)
	}
	if f.submitted[1].Key != "" || f.submitted[2].Key != "k" || f.submitted[0].Retries != 3 {
		t.Errorf("got %+v", f.submitted)
	}
	again := newFake(t)
	again.known = map[string]bool{key: true}
	again.run("submit --file -", func(e *Env) { e.Stdin = strings.NewReader(text) }).want(t, "t-1\nmine\nt-3\n", "1 of 3 were there already\n", Done)
	if again.submitted[0].Key != key {
		t.Errorf("the same file again has another key: %q, %q", key, again.submitted[0].Key)
	}
	other := newFake(t)
	other.run("submit --file " + jobsFile(t, text+"\n"))
	if other.submitted[0].Key == key {
		t.Error("another file has the same keys")
	}
}

func TestSubmitFileFaults(t *testing.T) {
	bad := []struct{ line, want string }{
		{`{"typ":"x"}`, "typ: unknown field: did you mean type?"},
		{`{"Type":"x"}`, "Type: unknown field: did you mean type?"},
		{`{"type":"x","at":"10m"}`, "at: unknown field: did you mean in?"},
		{`{"type":"x","type":"y"}`, "type: is given twice"},
		{`{"type":"x","in":{"a":1,"a":2}}`, "in: a: is given twice"},
		{`{"type":"x","in":{"a":null}}`, "in: a: want a text, a number, true or false, found null"},
		{`{"type":"x","in":{"a":[1]}}`, "in: a: want a text, a number, true or false, found a list"},
		{`{"type":"x","in":{"a":{"b":1}}}`, "in: a: want a text, a number, true or false, found an object"},
		{`{"type":"x","in":` + strings.Repeat("[", 100000), "in: want an object, found a list"},
		{`{"type":"x","in":3}`, "in: want an object, found the number 3"},
		{`{"type":7}`, "type: want a text, found the number 7"},
		{`{"type":""}`, `task type "": want 1 to 64 of A-Z a-z 0-9 _ . -`},
		{`{}`, `task type "": want 1 to 64 of A-Z a-z 0-9 _ . -`},
		{`{"type":"x","id":"a b"}`, `id "a b": want 1 to 128 of A-Z a-z 0-9 _ . : -`},
		{`{"type":"x","in":{"a b":"1"}}`, `input key "a b": want 1 to 128 of A-Z a-z 0-9 _ . -`},
		{`{"type":"x","in":{"status":"1"}}`, "input status: the name belongs to the protocol"},
		{`{"type":"x"`, "the line ends too early"},
		{`{"type":"x"} {}`, "text after the object"},
		{`["type"]`, "want an object, found a list"},
		{`type: x`, "invalid character 'y' in literal true (expecting 'r')"},
		{"{\"type\":\"x\",\"in\":{\"a\":\"\xff\"}}", "not UTF-8"},
		{`{"type":"x","in":{"a":"` + strings.Repeat("x", task.MaxBytes) + `"}}`, "inputs of 131073 bytes: want at most 131072"},
		{`{"type":"x","in":{"a":"` + strings.Repeat("x", maxLine) + `"}}`, "1048603 bytes: want at most 1048576"},
	}
	for _, tt := range bad {
		name := jobsFile(t, `{"type":"ok"}`+"\n"+tt.line+"\n"+`{"type":"ok"}`+"\n")
		f := newFake(t)
		f.run("submit --file "+name).want(t, "", "apollo11: submit: "+name+":2: "+tt.want+
			"\nhint: a line is {\"type\":\"TYPE\",\"in\":{\"name\":\"value\"}}, optionally with \"id\" or \"key\"; nothing was submitted\n", Usage)
		if len(f.asked) > 0 {
			t.Errorf("%.40s: it reached the controller", tt.line)
		}
	}
	var all strings.Builder
	for range 25 {
		all.WriteString("{}\n")
	}
	r := newFake(t).run("submit --file " + jobsFile(t, all.String()))
	if n := strings.Count(r.stderr, "task type"); n != maxFaults || !strings.Contains(r.stderr, "apollo11: submit: and 5 bad lines more\n") {
		t.Errorf("%d of 25 bad lines named: %q", n, r.stderr)
	}
	name := jobsFile(t, "\n \n")
	newFake(t).run("submit --file "+name).want(t, "", "apollo11: submit: "+name+": no lines\n", Usage)
}

// What the controller refuses is named by line too, and what was taken before.
func TestSubmitFileRefused(t *testing.T) {
	f := newFake(t)
	refusal := &wire.Error{Code: wire.CodeInvalid, Message: "invalid", Faults: []wire.Fault{{Index: 1, Message: "input url is missing"}}}
	f.refuse[wire.OpSubmit] = refusal
	name := jobsFile(t, "{\"type\":\"x\"}\n\n{\"type\":\"x\"}\n")
	f.run("submit --file "+name).want(t, "", "apollo11: submit: "+name+":3: input url is missing\n", Failed)

	s := submission{file: "f", lines: []int{1, 2, 4, 5}}
	var words strings.Builder
	code := PrintError(&words, s.refused(2, refusal), false)
	want := "apollo11: submit: f:5: input url is missing\napollo11: submit: f: all up to line 2 is submitted, the rest is not\n" +
		"hint: correct the rest in a file of its own: another content is other keys\n"
	if words.String() != want || code != Failed {
		t.Errorf("code %d, %q", code, words.String())
	}
}

func FuzzJob(f *testing.F) {
	f.Add([]byte(`{"type":"fetch","in":{"url":"http://x","n":12,"ok":true},"id":"a","key":"b"}`))
	f.Add([]byte(`{"type":"x","in":[[[[{}]]]]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		s, err := parseJob(line, len(line))
		if err == nil && checkSpec(&s) != nil {
			t.Errorf("%q: taken against the rules", line)
		}
		if err != nil && err.Error() == "" {
			t.Error("an error without words")
		}
	})
}

func TestBulk(t *testing.T) {
	count := "requeue ids=[] all=true count=true states=[dead] type=fetch error=boom reason="
	act := strings.Replace(count, "count=true", "count=false", 1)
	samples := []string{"t-1", "t-2", "t-3"}
	tests := []struct {
		name, args string
		ask        bool
		answer     string
		changed    view.Changed
		stderr     string
		code       Code
		asked      []string
	}{
		{"yes", "requeue --type fetch --error boom --yes", false, "", view.Changed{Matched: 97, Changed: 97, Samples: samples},
			"requeue: 97 tasks, such as t-1, t-2, t-3\n97 requeued\n", Done, []string{count, act}},
		{"no terminal", "requeue --type fetch --error boom", false, "y\n", view.Changed{Matched: 97, Samples: samples},
			"apollo11: requeue: 97 tasks, such as t-1, t-2, t-3: not done without --yes, since nobody can be asked here\nhint: apollo11 requeue --type fetch --error boom --yes\n", Usage, []string{count}},
		{"agreed", "requeue --type fetch --error boom", true, "Y\n", view.Changed{Matched: 1, Changed: 1},
			"requeue 1 task? [y/N] 1 requeued\n", Done, []string{count, act}},
		{"not agreed", "requeue --type fetch --error boom", true, "\n", view.Changed{Matched: 1},
			"requeue 1 task? [y/N] apollo11: requeue: nothing changed\n", Failed, []string{count}},
		{"end of input", "requeue --type fetch --error boom", true, "", view.Changed{Matched: 1},
			"requeue 1 task? [y/N] \napollo11: requeue: nothing changed\n", Failed, []string{count}},
		{"none", "requeue --type fetch --error boom", false, "", view.Changed{}, "0 requeued\n", Done, []string{count}},
		{"meanwhile", "requeue --type fetch --error boom --yes", false, "", view.Changed{Matched: 100, Changed: 97, Skipped: []string{"t-5: is queued"}},
			"requeue: 100 tasks\nrequeue: not requeued: t-5: is queued\n97 requeued, 3 of 100 not\n", Done, []string{count, act}},
		{"ids", "requeue t-1 t-2", false, "", view.Changed{Matched: 2, Changed: 2}, "2 requeued\n", Done,
			[]string{"requeue ids=[t-1 t-2] all=false count=false states=[] type= error= reason="}},
		{"some ids", "requeue t-1 t-2", false, "", view.Changed{Matched: 2, Changed: 1, Skipped: []string{"t-2: is running"}},
			"requeue: not requeued: t-2: is running\n1 requeued, 1 of 2 not\n", Failed,
			[]string{"requeue ids=[t-1 t-2] all=false count=false states=[] type= error= reason="}},
		{"cancel all", "cancel --all --yes --reason why", false, "", view.Changed{Matched: 1, Changed: 1}, "cancel: 1 task\n1 cancelled\n", Done, []string{
			"cancel ids=[] all=true count=true states=[scheduled blocked queued assigned running retrying] type= error= reason=why",
			"cancel ids=[] all=true count=false states=[scheduled blocked queued assigned running retrying] type= error= reason=why"}},
		{"drop", "drop --error boom --reason old --yes", false, "", view.Changed{Matched: 2, Changed: 2, Samples: samples[:2]},
			"drop: 2 tasks, such as t-1, t-2\n2 dropped\n", Done, []string{
				"drop ids=[] all=true count=true states=[dead] type= error=boom reason=old",
				"drop ids=[] all=true count=false states=[dead] type= error=boom reason=old"}},
		{"drop without a terminal", "drop --all", false, "", view.Changed{Matched: 2}, "apollo11: drop: 2 tasks: not done without --yes, since nobody can be asked here\nhint: apollo11 drop --all --yes\n", Usage,
			[]string{"drop ids=[] all=true count=true states=[dead] type= error= reason="}},
		{"drop not agreed", "drop --older 1h", true, "n\n", view.Changed{Matched: 2}, "drop 2 tasks? [y/N] apollo11: drop: nothing changed\n", Failed,
			[]string{"drop ids=[] all=true count=true states=[dead] type= error= reason="}},
		{"drop ids", "drop t-1 t-2", false, "", view.Changed{Matched: 2, Changed: 1, Skipped: []string{"t-2: is queued"}},
			"drop: not dropped: t-2: is queued\n1 dropped, 1 of 2 not\n", Failed, []string{"drop ids=[t-1 t-2] all=false count=false states=[] type= error= reason="}},
		{"all refused", "drop --state queued --yes", false, "", view.Changed{Matched: 1, Skipped: []string{"t-5: is queued"}},
			"drop: 1 task\ndrop: not dropped: t-5: is queued\n0 dropped, 1 of 1 not\n", Failed, []string{
				"drop ids=[] all=true count=true states=[queued] type= error= reason=",
				"drop ids=[] all=true count=false states=[queued] type= error= reason="}},
		{"state", "requeue --state cancelled --yes", false, "", view.Changed{Matched: 1, Changed: 1}, "requeue: 1 task\n1 requeued\n", Done, []string{
			"requeue ids=[] all=true count=true states=[cancelled] type= error= reason=",
			"requeue ids=[] all=true count=false states=[cancelled] type= error= reason="}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(t)
			f.changed = tt.changed
			f.run(tt.args, func(e *Env) { e.Ask, e.Stdin = tt.ask, strings.NewReader(tt.answer) }).want(t, "", tt.stderr, tt.code)
			if !slices.Equal(f.asked[1:], tt.asked) {
				t.Errorf("asked %q, want %q", f.asked[1:], tt.asked)
			}
		})
	}
	f := newFake(t)
	f.changed = view.Changed{Matched: 2, Changed: 2}
	f.run("requeue t-1 t-2 --json").want(t, `{"matched":2,"changed":2,"skipped":[]}`+"\n", "", Done)
}

// The hint of a bulk command is that command, fit for a shell.
func TestBulkHint(t *testing.T) {
	for args, want := range map[string]string{
		"cancel --all":                         "apollo11 cancel --all --yes",
		"cancel --older 90m --reason it's_it":  `apollo11 cancel --reason 'it'\''s_it' --older 1h30m0s --yes`,
		"drop --error $x --state dead,aborted": `apollo11 drop --state dead,aborted --error '$x' --yes`,
	} {
		f := newFake(t)
		f.changed = view.Changed{Matched: 1}
		if r := f.run(args); r.code != Usage || !strings.HasSuffix(r.stderr, "\nhint: "+want+"\n") {
			t.Errorf("%s: code %d, %s", args, r.code, r.stderr)
		}
	}
}

func TestSwitches(t *testing.T) {
	tests := []struct{ args, json, words, asked string }{
		{"pause", `{"paused":true,"type":""}`, "paused everything", `pause "" true`},
		{"pause fetch", `{"paused":true,"type":"fetch"}`, "paused fetch", `pause "fetch" true`},
		{"continue fetch", `{"paused":false,"type":"fetch"}`, "continued fetch", `pause "fetch" false`},
		{"debug on", `{"debug":true}`, "debug is on", `debug "" true`},
		{"debug off", `{"debug":false}`, "debug is off", `debug "" false`},
		{"drain host-1", `{"draining":true,"executor":"host-1"}`, "draining host-1", "drain host-1"},
		{"state repair k v --reason because", `{"key":"k","value":"v","version":3,"seq":99}`, "set k = v, version 3, record 99", "repair {Key:k Value:v Delete:false Reason:because}"},
		{"state repair k --delete --reason because", `{"key":"k","value":"","version":3,"seq":99}`, "deleted k, record 99", "repair {Key:k Value: Delete:true Reason:because}"},
		{"state repair --reason because k -- -5", `{"key":"k","value":"-5","version":3,"seq":99}`, "set k = -5, version 3, record 99", "repair {Key:k Value:-5 Delete:false Reason:because}"},
	}
	for _, tt := range tests {
		f := newFake(t)
		f.queues = []view.Queue{{Type: "fetch"}}
		f.run(tt.args).want(t, "", tt.words+"\n", Done)
		f.run("--json "+tt.args).want(t, tt.json+"\n", "", Done)
		if !slices.Contains(f.asked, tt.asked) {
			t.Errorf("%s: asked %q, want %q", tt.args, f.asked[1], tt.asked)
		}
	}
}

// A pause of a type that nobody knows may be a slip: it is done, and said.
func TestPauseOfAnUnknownType(t *testing.T) {
	f := newFake(t)
	f.queues = []view.Queue{{Type: "fetch"}}
	f.run("pause fetsh").want(t, "", "warning: no task and no executor has type fetsh: did you mean fetch?\npaused fetsh\n", Done)
	f.run("pause whatever").want(t, "", "warning: no task and no executor has type whatever; known are fetch\npaused whatever\n", Done)
}

// A file of several batches is checked whole: the bad lines of all of them are
// named, and nothing is submitted.
func TestSubmitFileChecked(t *testing.T) {
	lines := make([]string, 2500)
	for i := range lines {
		lines[i] = `{"type":"echo"}`
	}
	f := newFake(t)
	f.run("submit --file " + jobsFile(t, strings.Join(lines, "\n")))
	if !slices.Equal(f.batches, []int{1000, 1000, 500}) || len(f.submitted) != 2500 {
		t.Errorf("batches %v", f.batches)
	}
	for _, n := range []int{9, 1199, 2399} {
		lines[n] = `{"type":"echo","in":{"bad":1}}`
	}
	f = newFake(t)
	name := jobsFile(t, strings.Join(lines, "\n"))
	r := f.run("submit --file " + name)
	want := ""
	for _, n := range []int{10, 1200, 2400} {
		want += fmt.Sprintf("apollo11: submit: %s:%d: input bad is not declared\n", name, n)
	}
	if r.code != Failed || !strings.HasPrefix(r.stderr, want+"hint: ") || len(f.submitted) != 0 {
		t.Errorf("code %d, %d submitted: %s", r.code, len(f.submitted), r.stderr)
	}
}
