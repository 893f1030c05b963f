package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"apollo11/engine/view"
	"apollo11/wire"
)

// What is typed wrong never reaches a controller, exits with 2, and names what
// was meant.
func TestUsage(t *testing.T) {
	tests := []struct{ args, want string }{
		{"statu", "apollo11: unknown command: statu\nhint: apollo11 status\n"},
		{"xyzzyplugh", "apollo11: unknown command: xyzzyplugh\nhint: apollo11 help\n"},
		{"help statu", "apollo11: unknown command: statu\nhint: apollo11 status\n"},
		{"tasks --jsn", "apollo11: tasks: unknown flag: --jsn\nhint: apollo11 tasks --json\n"},
		{"tasks -x", "apollo11: tasks: unknown shorthand flag: 'x' in -x\nhint: apollo11 tasks --help, or -- before a word that begins with -\n"},
		{"tasks --limit many", "apollo11: tasks: invalid argument \"many\" for \"--limit\" flag: must be an integer\nhint: apollo11 tasks --help\n"},
		{"tasks --limit -1", "apollo11: tasks: --older and --limit cannot be negative\n"},
		{"tasks --older", "apollo11: tasks: flag needs an argument: --older\nhint: apollo11 tasks --help\n"},
		{"tasks --state deda", "apollo11: tasks: --state: unknown task state \"deda\"\nhint: apollo11 tasks --state dead\n"},
		{"tasks --type a/b", "apollo11: tasks: --type: task type \"a/b\": want 1 to 64 of A-Z a-z 0-9 _ . -\n"},
		{"tasks extra", "apollo11: tasks: extra: takes flags only\nhint: apollo11 tasks\n"},
		{"task", "apollo11: task: which one\nhint: apollo11 task ID\n"},
		{"debug maybe", "apollo11: debug: maybe: want on or off\nhint: apollo11 debug on\n"},
		{"pause a/b", "apollo11: pause: task type \"a/b\": want 1 to 64 of A-Z a-z 0-9 _ . -\nhint: apollo11 pause TYPE\n"},
		{"requeue", "apollo11: requeue: which tasks\nhint: apollo11 requeue ID…, or --type TYPE, --error TEXT, or --all\n"},
		{"requeue t-1 --all", "apollo11: requeue: ids together with a filter: want one of them\nhint: apollo11 requeue ID…, or --type TYPE, --error TEXT, or --all\n"},
		{"drop", "apollo11: drop: which tasks\nhint: apollo11 drop ID…, or --type TYPE, --error TEXT, or --all\n"},
		{"drop t-1 --type x", "apollo11: drop: ids together with a filter: want one of them\nhint: apollo11 drop ID…, or --type TYPE, --error TEXT, or --all\n"},
		{"edit", "apollo11: edit: which one\nhint: apollo11 edit ID name=value… [--unset NAME]\n"},
		{"edit t-1", "apollo11: edit: t-1: which input\nhint: apollo11 edit ID name=value, or --unset NAME\n"},
		{"edit t,1 a=1", "apollo11: edit: id \"t,1\": want 1 to 128 of A-Z a-z 0-9 _ . : -\nhint: apollo11 edit ID name=value, or --unset NAME\n"},
		{"edit t-1 a", "apollo11: edit: a: want name=value\nhint: apollo11 edit ID name=value, or --unset NAME\n"},
		{"edit t-1 a=1 a=2", "apollo11: edit: \"a\" is given twice\nhint: apollo11 edit ID name=value, or --unset NAME\n"},
		{"edit t-1 a=1 --unset b,a", "apollo11: edit: input a is set and unset\nhint: apollo11 edit ID name=value, or --unset NAME\n"},
		{"edit t-1 a/b=1", "apollo11: edit: input key \"a/b\": want 1 to 128 of A-Z a-z 0-9 _ . -\nhint: apollo11 edit ID name=value, or --unset NAME\n"},
		{"edit t-1 --unset status", "apollo11: edit: input status: the name belongs to the protocol\nhint: apollo11 edit ID name=value, or --unset NAME\n"},
		{"edit t-1 a=" + strings.Repeat("x", 128<<10), "apollo11: edit: inputs of 131073 bytes: want at most 131072\nhint: apollo11 edit ID name=value, or --unset NAME\n"},
		{"explain", "apollo11: explain: which one\nhint: apollo11 explain ID\n"},
		{"cancel t-1,t-2", "apollo11: cancel: id \"t-1,t-2\": want 1 to 128 of A-Z a-z 0-9 _ . : -\n"},
		{"state repair k v", "apollo11: state repair: k: --reason is missing\nhint: apollo11 state repair KEY VALUE --reason TEXT\n"},
		{"state repair k --reason x", "apollo11: state repair: k: to which value\nhint: apollo11 state repair KEY VALUE --reason TEXT\n"},
		{"state repair k v --delete --reason x", "apollo11: state repair: a value together with --delete: want one of them\nhint: apollo11 state repair KEY --delete --reason TEXT\n"},
		{"state a/b", "apollo11: state: key \"a/b\": want 1 to 128 of A-Z a-z 0-9 _ . -\nhint: apollo11 state\n"},
		{"submit", "apollo11: submit: of which type\nhint: apollo11 submit TYPE name=value\n"},
		{"submit echo oops", "apollo11: submit: oops: want name=value\nhint: apollo11 submit TYPE name=value\n"},
		{"submit echo a=1 a=2", "apollo11: submit: \"a\" is given twice\nhint: apollo11 submit TYPE name=value\n"},
		{"submit echo task_id=1", "apollo11: submit: input task_id: the name belongs to the protocol\nhint: apollo11 submit TYPE name=value\n"},
		{"submit echo set.x=1", "apollo11: submit: input set.x: the name belongs to the protocol\nhint: apollo11 submit TYPE name=value\n"},
		{"submit a/b", "apollo11: submit: task type \"a/b\": want 1 to 64 of A-Z a-z 0-9 _ . -\nhint: apollo11 submit TYPE name=value\n"},
		{"submit echo --id a,b", "apollo11: submit: id \"a,b\": want 1 to 128 of A-Z a-z 0-9 _ . : -\nhint: apollo11 submit TYPE name=value\n"},
		{"submit echo --count 0", "apollo11: submit: --count 0: want 1 to 1000000\n"},
		{"submit echo --count 2 --id x", "apollo11: submit: --count together with --id or --key: they would all be one task\n"},
		{"submit echo --retries -2", "apollo11: submit: --retries -2: want 0 to 1000\n"},
		{"submit echo --timeout 0s", "apollo11: submit: --timeout 0s: want a time such as 30s\n"},
		{"submit echo --at tomorrow", "apollo11: submit: --at: tomorrow: want a time such as 2026-01-31T08:00:00Z, or a duration such as 10m\nhint: apollo11 submit TYPE --at 10m\n"},
		{"submit echo --deadline -5m", "apollo11: submit: --deadline: -5m: is negative\nhint: apollo11 submit TYPE --deadline 10m\n"},
		{"submit echo --file x", "apollo11: submit: --file stands alone: types, inputs, ids and keys are in the file\nhint: apollo11 submit --file x\n"},
		{"submit --file nosuch.jsonl", "apollo11: submit: nosuch.jsonl: no such file or directory\n"},
		{"late --limit 501", "apollo11: late: --limit 501: want 1 to 500\n"},
		{"logs t --attempt -1", "apollo11: logs: --attempt -1: want 1 or more\n"},
		{"replay --from 0", "apollo11: replay: --from: 0: records are numbered from 1\nhint: apollo11 replay --from 10m\n"},
		{"replay --to soon", "apollo11: replay: --to: soon: want a record's number, a time such as 08:15:30 or 2026-01-31T08:00:00Z, or so long ago, such as 10m\nhint: apollo11 replay --to 10m\n"},
		{"replay -f --to 10m", "apollo11: replay: --follow together with --to: want one of them\n"},
		{"replay a,b", "apollo11: replay: id \"a,b\": want 1 to 128 of A-Z a-z 0-9 _ . : -\nhint: apollo11 tasks\n"},
		{"run", "apollo11: run: which one\nhint: apollo11 run MISSION [name=value…]\n"},
		{"run weather year", "apollo11: run: year: want name=value\nhint: apollo11 run MISSION name=value\n"},
		{"run weather --sample 0", "apollo11: run: --sample 0: want 1 or more\nhint: apollo11 run MISSION --sample 100\n"},
		{"run weather --key a,b", "apollo11: run: --key: id \"a,b\": want 1 to 128 of A-Z a-z 0-9 _ . : -\n"},
		{"run weather --check --wait", "apollo11: run: --check together with --wait: want one of them\n"},
		{"fork r-1", "apollo11: fork: r-1: from which unit\nhint: apollo11 fork RUN --from UNIT --with name=value\n"},
		{"fork r-1 --from clean --with x", "apollo11: fork: --with: x: want name=value\nhint: apollo11 fork RUN --from UNIT --with name=value\n"},
		{"event a/b", "apollo11: event: key \"a/b\": want 1 to 128 of A-Z a-z 0-9 _ . -\nhint: apollo11 event NAME name=value\n"},
		{"runs --state faild", "apollo11: runs: --state: unknown state of a run: faild\nhint: apollo11 runs --state failed\n"},
		{"runs --limit -1", "apollo11: runs: --limit cannot be negative\n"},
		{"show r-1 --state deda", "apollo11: show: --state: unknown task state \"deda\"\nhint: apollo11 show RUN --state dead\n"},
		{"resume", "apollo11: resume: which one\nhint: apollo11 resume RUN\n"},
		{"diff a b c", "apollo11: diff: c: one word too many: b was the last\nhint: apollo11 diff RUN [RUN]\n"},
		{"state rollback", "apollo11: state rollback: which one\nhint: apollo11 state rollback WHEN --reason TEXT\n"},
		{"state repair", "apollo11: state repair: which one\nhint: apollo11 state repair KEY VALUE --reason TEXT\n"},
		{"state diff --jsn", "apollo11: state diff: unknown flag: --jsn\nhint: apollo11 state diff --json\n"},
		{"cancel", "apollo11: cancel: which tasks\nhint: apollo11 cancel RUN, or ID…, or --type TYPE, --error TEXT, or --all\n"},
		{"resume r-0003:store", "apollo11: resume: r-0003:store: is a unit of r-0003\nhint: apollo11 resume r-0003\n"},
		{"fork r-0003:store", "apollo11: fork: r-0003:store: is a unit of r-0003\nhint: apollo11 fork r-0003 --from store --with name=value\n"},
		{"rollback r-0003:store", "apollo11: rollback: r-0003:store: is a unit of r-0003\nhint: apollo11 rollback r-0003 --to store\n"},
		{"show r-0003:store", "apollo11: show: r-0003:store: is a unit of r-0003\nhint: apollo11 task r-0003:store\n"},
		{"state rollback 5", "apollo11: state rollback: 5: --reason is missing\nhint: apollo11 state rollback WHEN --reason TEXT\n"},
		{"state diff 5 soon", "apollo11: state diff: soon: want a record's number, a time such as 08:15:30 or 2026-01-31T08:00:00Z, or so long ago, such as 10m\nhint: apollo11 state diff 10m\n"},
		{"status --addr nowhere", "apollo11: --addr: nowhere: want host:port\nhint: apollo11 status --addr 127.0.0.1:7011\n"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			f := newFake(t)
			f.run(tt.args).want(t, "", tt.want, Usage)
			if len(f.submitted) > 0 || len(f.asked) > 1 {
				t.Errorf("it reached the controller: %q", f.asked)
			}
		})
	}
}

func TestFlagsAnywhere(t *testing.T) {
	for _, args := range []string{
		"tasks --limit 7 --state dead --json", "--json --limit 7 tasks --state dead", "--limit=7 --json --state dead tasks",
		"--limit 3 tasks --json --state queued --limit 7 --state dead", "--json tasks --state=dead --limit=7",
	} {
		f := newFake(t)
		f.run(args).want(t, "", "", Done)
		if want := "tasks type= states=[dead] error= older=0s limit=7 cursor="; f.asked[1] != want {
			t.Errorf("%s: asked %q, want %q", args, f.asked[1], want)
		}
	}
	f := newFake(t)
	f.logs, f.ended = map[int]string{1: "hello"}, map[int]bool{1: true}
	f.details["t"] = []view.Detail{{Task: view.Task{ID: "t", State: "succeeded", Attempt: 1}}}
	f.run("-f logs t").want(t, "hello", "", Done)
}

// commandFirst must not have to guess whether a flag takes a value.
func TestFlagNamesAreOfOneKind(t *testing.T) {
	kind := map[string]string{}
	eachFlag(New(Env{}).Root, func(f *pflag.Flag) {
		for _, name := range []string{"--" + f.Name, "-" + f.Shorthand} {
			takes := fmt.Sprint(f.NoOptDefVal == "")
			if was, ok := kind[name]; ok && was != takes && name != "-" {
				t.Errorf("%s takes a value in one command and none in another", name)
			}
			kind[name] = takes
		}
	})
}

func TestEveryCommandIsExplained(t *testing.T) {
	for _, c := range New(Env{}).Root.Commands() {
		if c.Short == "" || strings.HasSuffix(c.Short, ".") || c.GroupID == "" || c.Args == nil {
			t.Errorf("%s: wants a short text without full stop, a group, and Args", c.Name())
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s: no text", c.Name(), f.Name)
			}
		})
	}
}

func TestHelpAndCompletion(t *testing.T) {
	for _, args := range []string{"help tasks", "tasks --help", "help", "--help", "completion bash", "completion zsh", "completion fish"} {
		r := newFake(t).run(args)
		if r.code != Done || r.stdout == "" || r.stderr != "" {
			t.Errorf("%s: code %d, stderr %q, %d bytes", args, r.code, r.stderr, len(r.stdout))
		}
	}
}

// The commands find the controller by flag, variable, folder, in this order.
func TestFind(t *testing.T) {
	f := newFake(t)
	f.id = "folder-1"
	good, other, empty, broken, dead := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	for dir, addr := range map[string]string{good: f.addr + "\n", other: f.addr, broken: "what?", dead: "127.0.0.1:1\n"} {
		if err := os.WriteFile(filepath.Join(dir, "ADDR"), []byte(addr), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ids := func(dir string) string { return map[string]string{good: "folder-1", other: "folder-2"}[dir] }
	tests := []struct {
		name, args, variable, configured string
		code                             Code
		want                             string // part of stderr
	}{
		{"flag", "--addr " + f.addr + " --data " + empty, "127.0.0.1:1", "", Done, ""},
		{"variable", "--data " + empty, f.addr, "", Done, ""},
		{"folder", "--data " + good, "", empty, Done, ""},
		{"configured folder", "", "", good, Done, ""},
		{"nothing runs", "--data " + empty, "", "", Unreachable, "no controller runs on it\nhint: start one: apollo11 --no-tui --data " + empty},
		{"no default folder", "", "", "", Unreachable, "data folder data: no controller runs on it"},
		{"no address", "--data " + broken, "", "", Unreachable, `"what?" is not host:port`},
		{"stale", "--data " + dead, "", "", Unreachable, "connection refused\nhint: is it running? start it: apollo11 --no-tui --data " + dead},
		{"another's address", "--data " + other, "", "", Unreachable, "serves another data folder\nhint: is it running?"},
		{"dead address", "--addr 127.0.0.1:1", "", "", Unreachable, "controller: --addr: dial tcp 127.0.0.1:1: connect: connection refused\n"},
		{"bad variable", "", "7011", "", Usage, "APOLLO_ADDR: 7011: want host:port"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := f.run("pause --json "+tt.args, func(e *Env) {
				e.AddrEnv, e.FolderID = tt.variable, ids
				e.Settings = func(string) (Settings, error) { return Settings{Data: tt.configured}, nil }
			})
			if r.code != tt.code || !strings.Contains(r.stderr, tt.want) || tt.want == "" && r.stderr != "" {
				t.Errorf("code %d, stderr %q, want %d, %q", r.code, r.stderr, tt.code, tt.want)
			}
		})
	}
}

func TestSettings(t *testing.T) {
	f := newFake(t)
	f.token = "secret"
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	settings := func(file string) (Settings, error) {
		if file != "mine.toml" {
			return Settings{}, fmt.Errorf("asked for %q", file)
		}
		return Settings{TokenFile: token}, nil
	}
	f.run("pause --config mine.toml", func(e *Env) { e.Settings = settings }).want(t, "", "paused everything\n", Done)
	f.run("pause --token-file "+token).want(t, "", "paused everything\n", Done)
	if f.asked[0] != "hello token=secret actor=tester" {
		t.Errorf("hello was %q", f.asked[0])
	}
	f.run("pause").want(t, "", "apollo11: hello to "+f.addr+": the operators' token is missing or wrong\nhint: apollo11 … --token-file FILE, with the operators' token\n", Refused)
	broken := func(string) (Settings, error) {
		return Settings{}, errors.New("config.toml:3: no\nconfig.toml:4: neither")
	}
	f.run("pause", func(e *Env) { e.Settings, e.AddrEnv = broken, "" }).want(t, "", "apollo11: config.toml:3: no\napollo11: config.toml:4: neither\n", Usage)
	for mode, want := range map[os.FileMode]string{
		0o644: "mode 0644: others can read it\nhint: chmod 600 " + token + "\n",
		0o660: "mode 0660: others can read it\nhint: chmod 600 " + token + "\n",
	} {
		if err := os.Chmod(token, mode); err != nil {
			t.Fatal(err)
		}
		f.run("pause --token-file "+token).want(t, "", "apollo11: token file "+token+": "+want, Usage)
	}
	f.run("pause --token-file nosuch").want(t, "", "apollo11: token file nosuch: no such file or directory\n", Usage)
}

// What the controller refuses has an exit code of its kind.
func TestRefusals(t *testing.T) {
	tests := []struct {
		args string
		op   wire.Op
		code wire.Code
		want string
		exit Code
	}{
		{"task t-9", wire.OpTask, wire.CodeNotFound, "apollo11: task: t-9: said\nhint: apollo11 tasks\n", Failed},
		{"drain e", wire.OpDrain, wire.CodeNotFound, "apollo11: drain: e: said\nhint: apollo11 executors\n", Failed},
		{"submit x", wire.OpSubmit, wire.CodeDiskFull, "apollo11: submit: said\nhint: free room on the disk of the data folder; it goes on by itself\n", Failed},
		{"submit x", wire.OpSubmit, wire.CodeConflict, "apollo11: submit: said\n", Failed},
		{"submit x", wire.OpSubmit, wire.CodeStopping, "apollo11: submit: said\nhint: start it again: apollo11 --no-tui\n", Failed},
		{"state repair k v --reason r", wire.OpRepair, wire.CodeInvalid, "apollo11: state repair: k: said\n", Failed},
		{"status", wire.OpStatus, wire.CodeForbidden, "apollo11: status: said\nhint: apollo11 … --token-file FILE, with the operators' token\n", Refused},
		{"status", wire.OpStatus, wire.CodeTimeout, "apollo11: status: said\n", Unreachable},
		{"executors", wire.OpExecutors, wire.CodeInternal, "apollo11: executors: said\n", Failed},
		{"late", wire.OpLate, wire.CodeInternal, "apollo11: late: said\n", Failed},
		{"state", wire.OpState, wire.CodeInternal, "apollo11: state: said\n", Failed},
		{"tasks", wire.OpTasks, wire.CodeInvalid, "apollo11: tasks: said\n", Failed},
		{"dead", wire.OpTasks, wire.CodeInvalid, "apollo11: dead: said\n", Failed},
		{"requeue t", wire.OpRequeue, wire.CodeInvalid, "apollo11: requeue: said\n", Failed},
		{"drop t", wire.OpDrop, wire.CodeInvalid, "apollo11: drop: said\n", Failed},
		{"drop t", wire.OpDrop, wire.CodeNotFound, "apollo11: drop: said\nhint: apollo11 tasks\n", Failed},
		{"edit t a=1", wire.OpEdit, wire.CodeInvalid, "apollo11: edit: said\nhint: apollo11 task t\n", Failed},
		{"edit t a=1", wire.OpEdit, wire.CodeTooLarge, "apollo11: edit: said\n", Failed},
		{"explain t", wire.OpExplain, wire.CodeNotFound, "apollo11: explain: t: said\nhint: apollo11 tasks\n", Failed},
		{"cancel --all", wire.OpCancel, wire.CodeInvalid, "apollo11: cancel: said\n", Failed},
		{"continue x", wire.OpPause, wire.CodeInvalid, "apollo11: continue: x: said\n", Failed},
		{"debug on", wire.OpDebug, wire.CodeInvalid, "apollo11: debug: said\n", Failed},
		{"logs t", wire.OpLogs, wire.CodeUnavailable, "apollo11: logs: t: said\n", Failed},
		{"replay", wire.OpTimeline, wire.CodeUnavailable, "apollo11: replay: said\n", Failed},
	}
	for _, tt := range tests {
		t.Run(tt.args+" "+string(tt.code), func(t *testing.T) {
			f := newFake(t)
			f.refuse[tt.op] = &wire.Error{Code: tt.code, Message: "said"}
			f.run(tt.args).want(t, "", tt.want, tt.exit)
		})
	}
}

func TestHangUp(t *testing.T) {
	f := newFake(t)
	f.hangUp = wire.OpStatus
	r := f.run("status")
	if r.code != Unreachable || !strings.HasPrefix(r.stderr, "apollo11: controller: connection lost: status: ") {
		t.Errorf("code %d, %q", r.code, r.stderr)
	}
}

// Hostile text from the controller reaches no terminal as it is.
func TestErrorsAreClean(t *testing.T) {
	f := newFake(t)
	f.refuse[wire.OpStatus] = &wire.Error{Code: wire.CodeInvalid, Message: "a\x1b[2Jb\u202e\rc"}
	f.run("status").want(t, "", `apollo11: status: a\x1b[2Jb\u202e\rc`+"\n", Failed)
}

func TestColor(t *testing.T) {
	f := newFake(t)
	color := func(e *Env) { e.Color = true }
	f.run("nosuchthing", color).want(t, "", "\x1b[31mapollo11:\x1b[0m unknown command: nosuchthing\n\x1b[2mhint:\x1b[0m apollo11 help\n", Usage)
	f.refuse[wire.OpStatus] = &wire.Error{Code: wire.CodeInvalid, Message: "no"}
	f.run("status --no-color", color).want(t, "", "apollo11: status: no\n", Failed)
}

// Main's own commands get the same treatment.
func TestMainsCommands(t *testing.T) {
	f := newFake(t)
	env := f.env()
	var out, words strings.Builder
	env.Stdout, env.Stderr = &out, &words
	p := New(env)
	p.Root.AddCommand(&cobra.Command{Use: "verify", RunE: func(*cobra.Command, []string) error {
		return &ExitError{Code: Damaged, Err: errors.New("verify: bad"), Hint: "apollo11 repair"}
	}})
	if code := p.Run(t.Context(), []string{"--data", "x", "verify"}); code != Damaged {
		t.Errorf("code %d", code)
	}
	if want := "apollo11: verify: bad\nhint: apollo11 repair\n"; words.String() != want {
		t.Errorf("said %q", words.String())
	}
	if code := New(env).Run(t.Context(), nil); code != Done || !strings.Contains(out.String(), "Work:") {
		t.Errorf("without a command: code %d, %q", code, out.String())
	}
}

// full is a standard output without room.
type full struct{ err error }

func (f full) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "/dev/stdout", Err: f.err}
}

func TestOutputFails(t *testing.T) {
	f := newFake(t)
	f.tasks = []view.Task{{ID: "t-1", State: "dead"}}
	for _, args := range []string{"tasks", "tasks --json", "status", "submit x", "help"} {
		f.run(args, func(e *Env) { e.Stdout = full{errPipe} }).want(t, "", "", Done)
		f.run(args, func(e *Env) { e.Stdout = full{errors.New("no space left on device")} }).
			want(t, "", "apollo11: standard output: no space left on device\n", Failed)
	}
}

func TestProgress(t *testing.T) {
	now := noon
	clock := func() time.Time { return now }
	var b strings.Builder
	p := New(Env{Stderr: &b, Terminal: true, Now: clock}).Progress("submitted", 200)
	p.Show(1)
	now = now.Add(time.Second)
	p.Show(50)
	now = now.Add(50 * time.Millisecond)
	p.Show(51)
	p.Clear()
	p.Clear()
	if want := "\r\x1b[K[=====               ] 50 of 200 submitted, 50/s, 3s left\r\x1b[K"; b.String() != want {
		t.Errorf("on a terminal %q, want %q", b.String(), want)
	}
	b.Reset()
	p = New(Env{Stderr: &b, Now: clock}).Progress("checked", 0)
	for range 25 {
		now = now.Add(time.Second)
		p.Show(1000)
	}
	p.Clear()
	if want := "1000 checked, 100/s\n1000 checked, 50/s\n"; b.String() != want {
		t.Errorf("elsewhere %q, want %q", b.String(), want)
	}
}
