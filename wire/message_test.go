package wire

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"apollo11/engine/task"
)

func TestParseMessage(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []Field
		skipped    int
	}{
		{"empty", "", nil, 0},
		{"one", "type=ack", []Field{{"type", "ack"}}, 0},
		{"empty value", "a=\nb=", []Field{{"a", ""}, {"b", ""}}, 0},
		{"order stays", "b=1\na=2", []Field{{"b", "1"}, {"a", "2"}}, 0},
		{"lines without equals sign", "type=ack\n\nwhat is this\nb=1\n", []Field{{"type", "ack"}, {"b", "1"}}, 3},
		{"escapes", `a=x\ey\nz\\`, []Field{{"a", "x=y\nz\\"}}, 0},
		{"backslash before n", `a=\\n`, []Field{{"a", `\n`}}, 0},
		{"backslash before e", `a=\\e`, []Field{{"a", `\e`}}, 0},
		{"any text", "a=\r\t\x00 \u202e\U0010ffff", []Field{{"a", "\r\t\x00 \u202e\U0010ffff"}}, 0},
		{"longest key", strings.Repeat("k", MaxKey) + "=1", []Field{{strings.Repeat("k", MaxKey), "1"}}, 0},
	} {
		m, err := ParseMessage([]byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := fmt.Sprint(m.fields); got != fmt.Sprint(c.want) || m.Skipped != c.skipped {
			t.Errorf("%s: got %s, skipped %d", c.name, got, m.Skipped)
		}
	}
}

func TestMalformedMessage(t *testing.T) {
	many := new(strings.Builder)
	for i := range 100 {
		fmt.Fprintf(many, "k%d=1\n", i)
	}
	for _, c := range []struct{ name, text, reason string }{
		{"empty key", "=1", "key"},
		{"key with space", "a b=1", "key"},
		{"key with escape", "a\x1b=1", "key"},
		{"key too long", strings.Repeat("k", MaxKey+1) + "=1", "key"},
		{"bare equals sign", "a=b=c", "unescaped"},
		{"unknown escape", `a=\t`, "unknown escape"},
		{"lone backslash", `a=x\`, "lone backslash"},
		{"invalid UTF-8", "a=\xff", "UTF-8"},
		{"surrogate", "a=\xed\xa0\x80", "UTF-8"},
		{"repeated key", "a=1\nb=2\na=1", "a is given twice"},
		{"repeated among many", many.String() + "k7=2", "k7 is given twice"},
		{"too many lines", strings.Repeat("a=1\n", MaxFields+1), "over"},
	} {
		m, err := ParseMessage([]byte(c.text))
		var bad *MalformedError
		if !errors.As(err, &bad) || !strings.Contains(bad.Reason, c.reason) {
			t.Errorf("%s: got %v", c.name, err)
		}
		if m.Len() != 0 || m.Type != "" {
			t.Errorf("%s: something of it can be read", c.name)
		}
	}
}

func TestMalformedKeepsWhoseItWas(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       MalformedError
	}{
		{"before", "type=result\ntask_id=t1\nversion=7\nout=\\x", MalformedError{Type: "result", Task: "t1", Version: 7}},
		{"after", "a=\\x\ntype=result\ntask_id=t1", MalformedError{Type: "result", Task: "t1"}},
		{"other key twice", "type=result\ntask_id=t1\na=1\na=2", MalformedError{Type: "result", Task: "t1"}},
		{"invalid UTF-8 elsewhere", "type=result\ntask_id=t1\na=\xff", MalformedError{Type: "result", Task: "t1"}},
		{"id twice", "type=result\ntask_id=t1\ntask_id=t2", MalformedError{Type: "result"}},
		{"id thrice", "type=result\ntask_id=t1\ntask_id=t2\ntask_id=t3", MalformedError{Type: "result"}},
		{"id broken", "type=result\ntask_id=\\x", MalformedError{Type: "result"}},
		{"id invalid UTF-8", "type=result\ntask_id=\xff", MalformedError{Type: "result"}},
		{"nothing", "\xff", MalformedError{}},
	} {
		_, err := ParseMessage([]byte(c.text))
		var bad *MalformedError
		if !errors.As(err, &bad) {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		bad.Reason = ""
		if *bad != c.want {
			t.Errorf("%s: got %+v", c.name, *bad)
		}
	}
}

func TestMessageMemoryIsUsedAgain(t *testing.T) {
	var m Message
	if err := m.Parse([]byte("type=ack\na=1\nb=2")); err != nil {
		t.Fatal(err)
	}
	if err := m.Parse([]byte("type=state\nc=3")); err != nil || m.Len() != 2 || m.Text("a") != "" || m.Type != TypeState {
		t.Errorf("something of the message before is left: %v %v", m.fields, err)
	}
}

// A task is malformed, not accepted in half, when a field breaks its promise.
func TestBadFields(t *testing.T) {
	for _, text := range []string{
		"type=result\nversion=1\nstatus=ok",
		"type=result\ntask_id=t\nversion=x",
		"type=result\ntask_id=t\nversion=-1",
		"type=result\ntask_id=t\nversion=9223372036854775808",
		"type=result\ntask_id=t\nexit=-1",
		"type=result\ntask_id=t\ntruncated=yes",
		"type=result\ntask_id=t\nexecute_ms=1e3",
		"type=result\ntask_id=t\nexecute_ms=-1",
		"type=result\ntask_id=t\nexecute_ms=1.x",
		"type=result\ntask_id=t\nexecute_ms=9000000000000000000",
		"type=result\ntask_id=t\nclass=sad",
		"type=result\ntask_id=t\nset.=1",
		"type=result\ntask_id=t\nout.a=1\nout.=1",
		"type=register\ntask_types=a",
		"type=register\nexecutor_id=a\x1b[2J",
		"type=register\nexecutor_id=" + strings.Repeat("x", MaxExecutorID+1),
		"type=register\nexecutor_id=a\ntask_types=a b",
		"type=register\nexecutor_id=a\nrunning=t:1",
		"type=register\nexecutor_id=a\nrunning=t:1:sleeping",
		"type=register\nexecutor_id=a\nrunning=t:x:done",
		"type=register\nexecutor_id=a\nrunning=,",
		"type=register\nexecutor_id=a\nunit.u=name\\eother",
		"type=types\nadd=" + strings.Repeat("a,", maxTypes+1),
		"type=types\nadd=a/b",
		"type=types\nadd=a\nhash.a=" + strings.Repeat("x", 129),
		"type=register\nexecutor_id=a\nshare=a/b",
		"type=register\nexecutor_id=a\nshare=" + strings.Repeat("x", 129),
		"type=register\nexecutor_id=a\nmemory=1GiB",
		"type=register\nexecutor_id=a\nhash.=1",
		"type=result\ntask_id=t\nunit_hash=a\x1bb",
		"type=task\ntask_id=t\ntask_type=a\nstep=execute",
		"type=task\ntask_id=t\ntask_type=a\nstep=",
		"type=task\ntask_id=t\ntask_type=a\nsample=-1",
		"type=task\ntask_id=t\ntask_type=a\nout.=1",
		"type=progress\nmessage=hi",
		"type=progress\ntask_id=t\nlog64=!",
		"type=returned\nversion=1",
		"type=cancel",
		"type=query\nlimit=x",
		"type=state\nsince=x",
		"type=state\nsince=1\nv.a=x",
		"type=state\nsince=1\nv.=1",
		"type=ack",
		"type=ack\nstatus=perhaps",
		"type=error\nmessage=x",
		"type=control\nop=requeue",
		"type=control\nop=requeue\nids=a\nall=true",
		"type=control\nop=requeue\nids=a b",
		"type=control\nop=cancel\nall=maybe",
		"type=control\nop=drop",
		"type=control\nop=edit\nin.a=1",
		"type=control\nop=edit\nid=t\nin.=1",
		"type=control\nop=edit\nid=t\nunset=a,",
		"type=control\nop=edit\nid=t\nunset=" + strings.Repeat("a,", maxUnset) + "a",
		"type=control\nop=explain",
		"type=control\nop=tasks\nstates=new",
		"type=control\nop=tasks\nstates=happy",
		"type=control\nop=tasks\nolder_ms=soon",
		"type=control\nop=pause\nvalue=perhaps",
		"type=control\nop=debug",
		"type=control\nop=timeline\nafter=yesterday",
		"type=control\nop=repair\nvalue=1",
		"type=control\nop=logs\noffset=1",
		"type=control\nop=task",
		"type=control\nop=late\nlimit=-1",
		"type=control\nop=state\nat=yesterday",
		"type=control\nop=run\np.a=1",
		"type=control\nop=run\nmission=a\nfile=b",
		"type=control\nop=run\nmission=a\np.=1",
		"type=control\nop=run\nmission=a\nsample=-1",
		"type=control\nop=run\nmission=a\ncheck=perhaps",
		"type=control\nop=upload\ntext=a",
		"type=control\nop=upload\nfile=a\ntext64=!",
		"type=control\nop=resume",
		"type=control\nop=rerun\nat_context=true",
		"type=control\nop=rerun\nid=r\nat_context=1",
		"type=control\nop=fork\nid=r",
		"type=control\nop=fork\nfrom=a",
		"type=control\nop=fork\nid=r\nfrom=a\nw.=1",
		"type=control\nop=cancelrun\nreason=x",
		"type=control\nop=rollback\nto=a",
		"type=control\nop=restore\nreason=x",
		"type=control\nop=restore\nat=0",
		"type=control\nop=event\np.a=1",
		"type=control\nop=runs\nstate=dead",
		"type=control\nop=runs\nlimit=x",
		"type=control\nop=show\ncursor=x",
		"type=control\nop=spec\noffset=1",
		"type=control\nop=spec\nid=r\nmission=a",
		"type=control\nop=moment",
		"type=control\nop=moment\ntime=now",
	} {
		m, err := ParseMessage([]byte(text))
		if err != nil {
			t.Errorf("%q does not parse: %v", text, err)
			continue
		}
		_, err = recode(m, 2)
		var bad *MalformedError
		if !errors.As(err, &bad) {
			t.Errorf("%q is taken: %v", text, err)
		} else if bad.Task != m.Text("task_id") {
			t.Errorf("%q: the error names task %q", text, bad.Task)
		}
	}
}

// What a document's executor may send as a result.
func TestResultOfProtocol1(t *testing.T) {
	text := "type=result\ntask_id=abc123\nstatus=success\noutput_count=42\nnext_batch=20240501\nset.k=1\nexecutor_id=e\nload=0"
	m, err := ParseMessage([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o, err := ParseResult(m, 1)
	if err != nil || o.Task != "abc123" || o.Version != 0 || o.Status != task.Success || o.Exit != -1 {
		t.Errorf("got %+v, %v", o, err)
	}
	if got := string(o.Outputs.AppendText(nil)); got != "next_batch=20240501\noutput_count=42" {
		t.Errorf("outputs %q", got)
	}
	if len(o.Changes) != 1 || o.Changes[0] != (task.Change{Op: task.Set, Key: "k", Value: "1"}) {
		t.Errorf("changes %v", o.Changes)
	}
}

func TestResultStatus(t *testing.T) {
	for _, c := range []struct {
		text   string
		status task.Status
		error  string
	}{
		{"status=success", task.Success, ""},
		{"status=ok", task.Success, ""},
		{"status=OK", task.Failed, "OK"},
		{"status=failed", task.Failed, ""},
		{"status=failed\nerror=disk", task.Failed, "disk"},
		{"status=no such file", task.Failed, "no such file"},
		{"error=boom\nstatus=error", task.Failed, "boom"},
		{"status=error\nerror=boom", task.Failed, "boom"},
		{"status=cancelled", task.Stopped, ""},
		{"a=1", task.Failed, ""},
	} {
		m, err := ParseMessage([]byte("type=result\ntask_id=t\n" + c.text))
		if err != nil {
			t.Fatal(err)
		}
		o, err := ParseResult(m, 1)
		if err != nil || o.Status != c.status || o.Error != c.error {
			t.Errorf("%q: %v %q %v", c.text, o.Status, o.Error, err)
		}
	}
}

// What protocol 2 learned later, protocol 1 never sees, and may use as names of
// its own.
func TestProtocol1KeepsItsWords(t *testing.T) {
	a := &task.Assignment{Task: "t", Type: "a", Version: 1, Attempt: 1, Inputs: values("run", "7"), Run: "r-0001", Sample: 5, Outputs: values("x", "1")}
	frame := string(AppendTask(nil, a, 1)[header:])
	if frame != "type=task\ntask_id=t\nversion=1\ntask_type=a\nattempt=1\nstate_version=0\nrun=7" {
		t.Errorf("a task is sent as %q", frame)
	}
	if result := string(AppendResult(nil, &task.Outcome{Task: "t", UnitHash: "x", Exit: -1}, 1)[header:]); strings.Contains(result, "hash") {
		t.Errorf("a result is sent as %q", result)
	}
	m, err := ParseMessage([]byte("type=task\ntask_id=t\ntask_type=a\nrun=7\nsample=many\nstep=left"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseTask(m, 1)
	if err != nil || string(got.Inputs.AppendText(nil)) != "run=7\nsample=many\nstep=left" || got.Run != "" || got.Undo {
		t.Errorf("a task is read as %+v, %v", got, err)
	}
	m, err = ParseMessage([]byte("type=result\ntask_id=t\nstatus=ok\nunit_hash=7"))
	if err != nil {
		t.Fatal(err)
	}
	if o, err := ParseResult(m, 1); err != nil || string(o.Outputs.AppendText(nil)) != "unit_hash=7" || o.UnitHash != "" {
		t.Errorf("a result is read as %+v, %v", o, err)
	}
}

// What the protocol keeps to itself is no input, also where it makes no sense.
func TestTaskKeepsReservedKeysOut(t *testing.T) {
	text := "type=task\ntask_id=t\ntask_type=a\nstatus=x\ntoken=x\nset.k=1\nout.k=1\nctx.c=1\nin.b=2\nb=1"
	m, err := ParseMessage([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for proto, want := range map[int]string{1: "b=1", 2: "b=2"} {
		a, err := ParseTask(m, proto)
		if err != nil || string(a.Inputs.AppendText(nil)) != want || string(a.Context.AppendText(nil)) != "c=1" {
			t.Errorf("protocol %d: %+v, %v", proto, a, err)
		}
	}
}
