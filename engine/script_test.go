package engine

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"apollo11/engine/task"
)

// Scripts in testdata say what is asked of the machine, and below each block
// what it recorded, sent and answered. go test -run Script -rewrite writes the
// lines below anew: read the difference before it is committed.
//
// A block is command lines, a line ----, output lines, an empty line. Each
// command is a turn of its own; one that begins with & shares the turn of the
// line before. Output lines are records as they stand in the journal, and
// LINK <- ORDER OR ANSWER; long runs of one kind are shortened. Time moves only
// by advance, oversleep and clock. Protocol 2 executors beat unless muted, and a
// result took=1s unless it says how long.

var rewrite = flag.Bool("rewrite", false, "write the scripts' output anew")

func TestScript(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { runScript(t, file) })
	}
}

func runScript(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := newScript(t)
	var out strings.Builder
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	for n := 0; n < len(lines); {
		if lines[n] == "" || lines[n][0] == '#' {
			out.WriteString(lines[n] + "\n")
			n++
			continue
		}
		from := n
		var commands []string
		for ; n < len(lines) && lines[n] != "----" && lines[n] != ""; n++ {
			commands = append(commands, lines[n])
		}
		if n < len(lines) && lines[n] == "----" {
			n++
		}
		var want []string
		for ; n < len(lines) && lines[n] != ""; n++ {
			want = append(want, lines[n])
		}
		got := s.block(commands)
		if !slices.Equal(got, want) && !*rewrite {
			t.Fatalf("%s:%d: %s\ngot:\n%s\nwant:\n%s", file, from+1, strings.Join(commands, "\n"), strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		out.WriteString(strings.Join(commands, "\n") + "\n----\n")
		for _, line := range got {
			out.WriteString(line + "\n")
		}
	}
	s.restart() // every script ends with a proof that its journal folds
	if *rewrite {
		if err := os.WriteFile(file, []byte(out.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// script is a machine that is told what to do, line by line.
type script struct {
	t       *testing.T
	set     Settings
	m       *machine
	now     moment
	journal []string
	image   *simImage
	links   map[string]*scriptLink
	units   map[string]task.Unit
	out     []string
	full    bool
	slept   bool
}

func newScript(t *testing.T) *script {
	s := &script{
		t: t, set: DefaultSettings(), links: map[string]*scriptLink{}, units: map[string]task.Unit{},
		now: moment{raw: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).UnixNano(), mono: int64(time.Hour)},
	}
	s.set.Retry.Jitter = 0
	return s
}

func (s *script) start(st *state) {
	s.m = newMachine(st, s.set, slog.New(slog.DiscardHandler))
	s.m.rand = rand.New(rand.NewPCG(1, 1))
	s.m.set.base = time.Unix(0, 0)
	s.turn(func() { s.m.boot() })
}

// turn is one turn of the loop on a disk that never fails.
func (s *script) turn(do func()) {
	s.m.full = s.full
	s.m.begin(s.now, s.slept)
	s.slept = false
	do()
	s.m.settle()
	start := 0
	for _, end := range s.m.batch.ends {
		entry := string(s.m.batch.records.out[start:end])
		s.journal = append(s.journal, entry)
		s.say("%s", entry[len(momentLayout)+1:])
		start = end + 1
	}
	s.m.batch.records.out, s.m.batch.ends = s.m.batch.records.out[:0], s.m.batch.ends[:0]
	sends := s.m.batch.sends
	s.m.batch.sends = nil
	for _, send := range sends {
		if send.order != nil {
			send.link.Order(send.order)
		} else {
			send.link.Answer(send.ref, send.answer, send.err)
		}
	}
}

var longHash = regexp.MustCompile(`sha256:([0-9a-f]{6})[0-9a-f]{58}|\b([0-9a-f]{6})[0-9a-f]{26}\b| text="[^"]*"`)

func (s *script) say(format string, args ...any) {
	line := longHash.ReplaceAllString(fmt.Sprintf(format, args...), "$1$2…")
	s.out = append(s.out, strings.TrimRight(line, " "))
}

// block runs commands; those after an & in the turn of the one before.
func (s *script) block(commands []string) []string {
	s.out = nil
	for n := 0; n < len(commands); {
		together := []string{commands[n]}
		for n++; n < len(commands) && commands[n][0] == '&'; n++ {
			together = append(together, strings.TrimSpace(commands[n][1:]))
		}
		s.run(together)
	}
	return shorten(s.out)
}

// shorten leaves of a long run of one kind the first and the last line.
func shorten(lines []string) (out []string) {
	const most = 6
	kind := func(n int) string {
		words := strings.SplitN(lines[n], " ", 4)
		if len(words) > 2 && words[1] == "<-" {
			return strings.Join(words[:3], " ")
		}
		return words[0]
	}
	for n := 0; n < len(lines); {
		end := n + 1
		for end < len(lines) && kind(end) == kind(n) && strings.Contains(kind(n), "task") {
			end++
		}
		if end-n > most {
			out = append(out, lines[n], fmt.Sprintf("… %d more", end-n-2), lines[end-1])
		} else {
			out = append(out, lines[n:end]...)
		}
		n = end
	}
	return out
}

func (s *script) run(commands []string) {
	word, rest, _ := strings.Cut(commands[0], " ")
	if word == "set" || word == "unit" {
		s.prepare(word, rest)
		return
	}
	if s.m == nil {
		s.start(newState())
	}
	switch word {
	case "boot":
	case "advance":
		s.advance(mustDuration(s.t, rest))
	case "oversleep":
		s.move(mustDuration(s.t, rest))
		s.slept = true
		s.turn(func() {})
	case "clock":
		s.now.raw += int64(mustDuration(s.t, rest))
		s.turn(func() {})
	case "mute":
		for id := range strings.FieldsSeq(rest) {
			s.links[id].mute = true
		}
	case "full":
		s.full = rest == "on"
	case "image":
		g := s.m.beginImage()
		for !s.m.step(g, 7) {
		}
		s.m.image = nil
		s.image = &simImage{seq: g.seq, lines: strings.Split(strings.TrimSuffix(string(g.take()), "\n"), "\n"), hash: g.sum.String()}
	case "restart":
		s.restart()
	default:
		s.turn(func() {
			for _, c := range commands {
				s.command(c)
			}
		})
	}
}

// advance lets time pass as the loop would: from one due moment to the next.
func (s *script) advance(d time.Duration) {
	for end := s.now.mono + int64(d); s.now.mono < end; {
		wait, ok := s.m.wake()
		left := time.Duration(end - s.now.mono)
		if !ok || wait > left {
			wait = left
		}
		s.move(max(wait, time.Millisecond))
		before := len(s.out)
		s.turn(func() {})
		if len(s.out) > before {
			s.out = slices.Insert(s.out, before, fmt.Sprintf("+%s", d-time.Duration(end-s.now.mono)))
		}
	}
}

func (s *script) move(d time.Duration) {
	s.now.raw += int64(d)
	s.now.mono += int64(d)
	for _, l := range s.links {
		if !l.mute {
			l.heard = s.now.mono
		}
	}
}

// restart kills the controller: what was not on disk is gone, and so are all
// connections. Journal, and image and tail, fold to the state it had.
func (s *script) restart() {
	was := s.m.hash()
	for _, l := range s.links {
		l.gone = true
	}
	whole := newState()
	for n, entry := range s.journal {
		if err := foldText(whole, uint64(n+1), entry); err != nil {
			s.t.Fatalf("fold: %v\n%s", err, entry)
		}
	}
	if got := whole.hash(); got != was {
		s.t.Fatalf("the folded journal gives another state than the live one")
	}
	st := whole
	if s.image != nil {
		st = s.load()
	}
	if got := st.hash(); got != was {
		s.t.Fatalf("image and tail give another state than the live one")
	}
	s.start(st)
}

func (s *script) load() *state {
	l := loading{state: newState()}
	for _, line := range s.image.lines {
		if err := loadText(&l, line); err != nil {
			s.t.Fatalf("image: %v\n%s", err, line)
		}
	}
	if err := l.linkAll(); err != nil {
		s.t.Fatal(err)
	}
	for n := l.seq; n < uint64(len(s.journal)); n++ {
		if err := foldText(l.state, n+1, s.journal[n]); err != nil {
			s.t.Fatal(err)
		}
	}
	return l.state
}

func mustDuration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// prepare changes settings, or declares a contract for register and types.
func (s *script) prepare(word, rest string) {
	w := s.words(rest)
	if word == "unit" {
		u, err := task.ParseUnit(unitText(s.t, w))
		if err != nil {
			s.t.Fatal(err)
		}
		s.units[w.plain[len(w.plain)-1]] = u
		return
	}
	for _, v := range w.values {
		name, field, _ := strings.Cut(v.Name, ".")
		switch name {
		case "limit":
			s.set.Limits = map[string]int{field: int(mustNumber(s.t, v.Value))}
		case "undeclared":
			s.set.Undeclared = v.Value == "true"
		case "config":
			s.set.ConfigHash = v.Value
		case "retain":
			s.set.RetainTasks = int(mustNumber(s.t, v.Value))
		case "retain_age":
			s.set.RetainAge = mustDuration(s.t, v.Value)
		case "retain_keys":
			s.set.RetainKeys = mustDuration(s.t, v.Value)
		case "jitter":
			s.set.Retry.Jitter = 0.5
		case "key":
			s.setKey(field, v.Value)
		default:
			s.t.Fatalf("set %s", v.Name)
		}
	}
	if s.m != nil {
		s.m.set.Limits, s.m.set.Undeclared, s.m.set.Keys = s.set.Limits, s.set.Undeclared, s.set.Keys
		s.m.set.RetainTasks, s.m.set.RetainAge, s.m.set.RetainKeys = s.set.RetainTasks, s.set.RetainAge, s.set.RetainKeys
	}
}

// setKey declares a state key: KIND/OP/FROM, then FIELD:VALUE after more slashes.
func (s *script) setKey(name, text string) {
	parts := strings.Split(text, "/")
	rule := KeyRule{Rule: task.Rule{Name: name}, From: parts[2]}
	var err error
	if rule.Kind, err = task.ParseKind(parts[0]); err == nil {
		rule.Apply, err = task.ParseOp(parts[1])
	}
	for _, part := range parts[3:] {
		field, value, _ := strings.Cut(part, ":")
		switch field {
		case "min":
			rule.Min = value
		case "max":
			rule.Max = value
		case "default":
			rule.HasDefault, rule.Default = true, value
		case "required":
			rule.Required = true
		}
	}
	if err = errors.Join(err, rule.Prepare()); err != nil {
		s.t.Fatal(err)
	}
	s.set.Keys = append(slices.DeleteFunc(slices.Clone(s.set.Keys), func(k KeyRule) bool { return k.Name == name }), rule)
}

func mustNumber(t *testing.T, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// unitText makes a contract's canonical text from defaults and what is given.
func unitText(t *testing.T, w words) string {
	u := task.Unit{
		Name: w.plain[0], Idempotent: true, Prepare: time.Minute, Timeout: time.Minute, Cleanup: time.Minute,
		Retry: task.Retry{Retries: 1, Interval: 2 * time.Second, Backoff: 1},
	}
	values, err := task.ParseValues(string(u.AppendText(nil)))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range w.values {
		values = slices.DeleteFunc(values, func(old task.Value) bool { return old.Name == v.Name })
		values = append(values, v)
	}
	if values, err = task.NewValues(values); err != nil {
		t.Fatal(err)
	}
	return string(values.AppendText(nil))
}

// scriptLink is one connection, by the name of who is at its other end.
type scriptLink struct {
	s     *script
	id    string
	heard int64
	mute  bool // it does not beat by itself: on protocol 1, or when the script says so
	gone  bool
	sent  map[string]task.Version // what it was last sent for each task
}

// Flush implements Link.
func (l *scriptLink) Flush() {}

// Heard implements Link.
func (l *scriptLink) Heard() time.Time { return time.Unix(0, l.heard) }

// Order implements Link.
func (l *scriptLink) Order(o Order) {
	var b bytes.Buffer
	switch o := o.(type) {
	case Assign:
		l.sent[o.Task] = o.Version
		fmt.Fprintf(&b, "task %s type=%s v=%s attempt=%d sv=%d timeout=%s in[%s] ctx[%s]", o.Task, o.Type, o.Version, o.Attempt,
			o.StateVersion, o.Timeout, plainValues(o.Inputs), plainValues(o.Context))
	case Revoke:
		fmt.Fprintf(&b, "cancel %s v=%s (%s)", o.Task, o.Version, o.Reason)
	case Recall:
		fmt.Fprintf(&b, "recall %s v=%s", o.Task, o.Version)
	case Beat:
		fmt.Fprintf(&b, "ack sv=%d", o.StateVersion)
	case DrainOrder:
		b.WriteString("drain")
	case StateChanged:
		fmt.Fprintf(&b, "state sv=%d since=%d more=%v", o.Version, o.Since, o.More)
		for _, k := range o.Keys[:min(len(o.Keys), 5)] {
			fmt.Fprintf(&b, " %s@%d", k.Key, k.Version)
		}
	case Dismiss:
		fmt.Fprintf(&b, "close (%s)", o.Reason)
	}
	l.s.say("%s <- %s", l.id, b.String())
}

func plainValues(values task.Values) string {
	return strings.ReplaceAll(string(values.AppendText(nil)), "\n", " ")
}

// Answer implements Link.
func (l *scriptLink) Answer(_ uint64, a Answer, err error) {
	if err != nil {
		l.s.say("%s <- error: %s", l.id, strings.ReplaceAll(err.Error(), "\n", "; "))
		return
	}
	for _, line := range describeAnswer(a) {
		l.s.say("%s <- %s", l.id, line)
	}
}
