package controller_test

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// The two secrets of the canary test. The second has what is quoted, escaped and
// cut differently from place to place; whatever is done to it, canaryB stays.
const (
	canaryA = "canary7f3a9c"
	canaryB = "vogel9e1d44"
	secretB = `kan "` + canaryB + `\ü%` + "\t" + `$x'`
)

// leak gives its secrets away by every way that there is.
const leak = `
env = ["PATH", "HOME"]
secrets = { A = "env:CANARY", B = "file:%s" }
timeout = "60s"
prepare = 'echo "prepare $A $B"; if test "$IN_HOW" = prepare; then echo "no: $A $B" >&2; exit 4; fi'
cleanup = 'echo "cleanup $A"; if test "$IN_HOW" = cleanup; then echo "no: $A $B" >&2; exit 5; fi'
execute = '''
echo "out $A $B"
echo "err $A $B" >&2
echo "50 progressed $A $B" >>"$APOLLO_PROGRESS"
case $IN_HOW in
  slow)   printf 'can'; sleep 0.15; printf 'ary7f3a9c\n'; echo "60 then $B" >>"$APOLLO_PROGRESS"; sleep 0.15;;
  fail)   echo "wrong: $A $B" >&2; exit 3;;
  output) echo "word=it is $A" >>"$APOLLO_OUTPUT";;
  name)   echo "x$A=1" >>"$APOLLO_OUTPUT";;
  broken) echo "$B" >>"$APOLLO_OUTPUT";;
  set)    echo "set.k=$A" >>"$APOLLO_STATE";;
  key)    echo "add.$A=1" >>"$APOLLO_STATE";;
  add)    echo "add.k=$A" >>"$APOLLO_STATE";;
  late)   sleep 60;;
  hang)   echo x >>"$HOME/begun"; test $APOLLO_ATTEMPT != 1 || sleep 60;;
esac
echo rows=1 >>"$APOLLO_OUTPUT"
'''
retries = 1
retry_interval = "10ms"
[in.how]
type = "string"
`

// leakResident feeds the state with its secret.
const leakResident = `
kind = "resident"
secrets = { A = "env:CANARY" }
execute = 'echo "10 fed $A" >>"$APOLLO_PROGRESS"; echo "set.fed=$A" >>"$APOLLO_PROGRESS"; sleep 60'
`

// ways are those of leak, with the state in which each ends.
var ways = []struct{ how, state string }{
	{"slow", "succeeded"}, {"cleanup", "succeeded"},
	{"prepare", "dead"}, {"fail", "dead"}, {"output", "dead"}, {"name", "dead"}, {"broken", "dead"},
	{"set", "dead"}, {"key", "dead"}, {"add", "dead"},
	{"late", "cancelled"}, {"hang", "succeeded"},
}

func leakMission() string {
	var b strings.Builder
	b.WriteString("name = \"leaks\"\non_failure = \"continue\"\n")
	for _, way := range ways {
		fmt.Fprintf(&b, "[[units]]\nname = %q\nuses = \"leak\"\nwith = { how = %q }\n", way.how, way.how)
	}
	return b.String()
}

// A unit prints its secrets, reports them, and tries to hand them on in every way,
// as a task and in a mission, with every message in the log, repeated, cancelled,
// and with its executor killed: nothing that is kept or shown anywhere holds them.
func TestSecretsStayOnTheExecutor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "debug = true\n"+brisk)
	vault := filepath.Join(t.TempDir(), "b")
	w.must(os.WriteFile(vault, []byte(secretB+"\n"), 0o600))
	w.write("units/leak.toml", fmt.Sprintf(leak, vault))
	w.write("units/feed.toml", leakResident)
	w.write("leaks.toml", leakMission())
	c := w.controller()
	wire := w.tapped()
	e := w.knowing("first", wire)
	for _, way := range ways {
		w.does("submit", "leak", "how="+way.how, "--id", "t-"+way.how)
	}
	w.does("submit", "feed", "--id", "fed", "--retries", "1")
	run := strings.TrimSpace(w.does("run", "leaks.toml"))
	shown := ""
	for i, prefix := range []string{"t-", run + ":"} {
		shown += w.cancelsLate(prefix + "late")
		eventually(t, "the unit that hangs", func() bool { return w.begun() > i })
		w.freeProcesses()
		e.kill()
		e = w.knowing(fmt.Sprint("after-", i), wire)
	}
	ids := []string{"fed"}
	w.becomes("fed", "dead")
	for _, way := range ways {
		w.becomes("t-"+way.how, way.state)
		w.becomes(run+":"+way.how, way.state)
		ids = append(ids, "t-"+way.how, run+":"+way.how)
	}
	shown += w.everythingShown(run, ids)
	c.stop()
	e.stop()
	w.free("what went over the wire", wire.text())
	w.free("what was shown", shown)
	for _, want := range []string{"out *** ***", "wrong: *** ***", "no: *** ***", "progressed *** ***", "may not leave the executor"} {
		if !strings.Contains(shown, want) {
			t.Errorf("nothing shows %q: this proves nothing", want)
		}
	}
	w.free("the records", w.does("replay", "--json", "--data", "data"))
	w.freeFiles()
	if log := w.read("data/apollo11.log"); !strings.Contains(log, "progressed *** ***") {
		t.Error("the log has no messages in full: this proves nothing")
	}
}

// knowing starts an executor that has the secrets, behind a tap.
func (w *world) knowing(id string, wire *tap) *process {
	w.Helper()
	c := w.command(program, "exec", "--units", "units", "--name", id, "--share", "share", "--addr", wire.Addr().String())
	c.Env = append(c.Env, "CANARY="+canaryA)
	p := w.run(id, c)
	w.registered(id)
	return p
}

// cancelsLate cancels a task that would take too long, when its progress is
// seen, and is what was shown of it until then.
func (w *world) cancelsLate(id string) (shown string) {
	w.Helper()
	eventually(w.TB, id+" tells its progress", func() bool {
		shown = w.does("explain", id)
		return strings.Contains(shown, "progressed ")
	})
	for _, args := range [][]string{{"task", id}, {"logs", id}, {"task", id, "--json"}, {"tasks", "--json"}, {"executors"}} {
		shown += w.does(args...)
	}
	w.does("cancel", id)
	return shown
}

// everythingShown is what the commands say of all that happened.
func (w *world) everythingShown(run string, ids []string) string {
	w.Helper()
	var b strings.Builder
	say := func(args ...string) {
		out, words, _ := w.cli(args...)
		fmt.Fprintf(&b, "%q\n%s%s", args, out, words)
	}
	for i, id := range ids {
		say([]string{"task", "explain"}[i%2], id)
		say("logs", id)
	}
	say("logs", run+":fail", "--attempt", "1")
	say("replay", run+":fail")
	for _, words := range []string{"show", "explain", "replay"} {
		say(append(strings.Fields(words), run)...)
	}
	for _, command := range []string{"state", "dead", "tasks", "runs", "executors", "late", "replay", "status", "missions"} {
		say(command)
		say(command, "--json")
	}
	say("show", run, "--json")
	say("diff", run, run, "--json")
	return b.String()
}

// tap carries connections on to an address and keeps every byte that goes through.
type tap struct {
	net.Listener
	mu  sync.Mutex
	all bytes.Buffer
}

// tapped is a tap before the controller.
func (w *world) tapped() *tap {
	w.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	p := &tap{Listener: l}
	var open sync.WaitGroup
	to := w.addr()
	open.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			open.Go(func() { p.carry(out, in) })
			open.Go(func() { p.carry(in, out) })
		}
	})
	w.Cleanup(func() { // after the processes have ended
		l.Close()
		open.Wait()
	})
	return p
}

func (p *tap) carry(to, from net.Conn) {
	io.Copy(io.MultiWriter(p, to), from)
	to.Close()
	from.Close()
}

// Write implements io.Writer.
func (p *tap) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all.Write(b)
}

func (p *tap) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all.String()
}

// free reports where a secret is found.
func (w *world) free(where, text string) {
	w.Helper()
	for _, secret := range []string{canaryA, canaryB} {
		if i := strings.Index(text, secret); i >= 0 {
			w.Errorf("a secret stands in %s: %q", where, text[max(0, i-200):min(len(text), i+100)])
		}
	}
}

// freeFiles looks at every file that is left in the world.
func (w *world) freeFiles() {
	w.Helper()
	n := 0
	w.must(filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		n++
		text, err := os.ReadFile(path)
		w.free(path, path+"\n"+string(text))
		return err
	}))
	if n < 20 {
		w.Errorf("only %d files: this proves nothing", n)
	}
}

// freeProcesses looks at what every process of this system was started with.
func (w *world) freeProcesses() {
	w.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	w.must(err)
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil {
			w.free(file, string(text))
		}
	}
}
