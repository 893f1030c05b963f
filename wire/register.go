package wire

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"apollo11/engine/task"
)

// Register is an executor presenting itself.
type Register struct {
	Exec      string
	Types     []string
	Load      uint64
	Token     string
	Proto     int // 1 or 2; what register does not say is 1
	Instance  string
	Running   []Held
	Host      string
	PID       int
	Build     string
	Share     string         // the file tree it sees; empty: none
	Capacity  task.Resources // of its host
	Subscribe []string       // "state": tell of changed keys; what a controller does not know it ignores
	Units     []task.Unit
	Hashes    task.Values // type: hash of what it would run
}

// SubscribeState is what Register.Subscribe names the global state.
const SubscribeState = "state"

// Held is a task that an executor says it has: task:version:phase in a register.
type Held struct {
	Task    string
	Version task.Version
	Phase   Phase
}

// Phase is how far an executor has come with a task.
type Phase uint8

// The phases of a held task.
const (
	Waiting Phase = iota // not started
	Running
	Ended // its result was not acknowledged
)

var phaseNames = [...]string{"queued", "running", "done"}

func (p Phase) String() string {
	if int(p) < len(phaseNames) {
		return phaseNames[p]
	}
	return fmt.Sprintf("phase(%d)", uint8(p))
}

// MaxExecutorID is the longest executor_id.
const MaxExecutorID = 128

// maxHeld and maxTypes bound what a register may list.
const (
	maxHeld  = 1024
	maxTypes = 1024
)

// AppendRegister appends a register frame.
func AppendRegister(dst []byte, r *Register) []byte {
	dst, at := beginMessage(dst, TypeRegister)
	dst = appendText(dst, "executor_id", r.Exec)
	dst = appendText(dst, "task_types", strings.Join(r.Types, ","))
	dst = appendUint(dst, "load", r.Load)
	dst = appendSome(dst, "token", r.Token)
	if r.Proto > 1 {
		dst = appendUint(dst, "proto", uint64(r.Proto))
	}
	dst = appendSome(dst, "instance", r.Instance)
	dst = appendHeld(dst, r.Running)
	dst = appendSome(dst, "host", r.Host)
	dst = appendCount(dst, "pid", uint64(r.PID))
	dst = appendSome(dst, "build", r.Build)
	dst = appendSome(dst, "share", r.Share)
	dst = appendCapacity(dst, r.Capacity)
	dst = appendSome(dst, "subscribe", strings.Join(r.Subscribe, ","))
	dst = appendUnits(dst, r.Units)
	return endMessage(appendValues(dst, "hash.", r.Hashes), at)
}

func appendCapacity(dst []byte, c task.Resources) []byte {
	dst = appendCount(dst, "cpu_milli", uint64(max(0, c.CPU)))
	dst = appendCount(dst, "memory", uint64(max(0, c.Memory)))
	return appendCount(dst, "disk", uint64(max(0, c.Disk)))
}

func appendHeld(dst []byte, held []Held) []byte {
	for i, h := range held {
		if i == 0 {
			dst = append(dst, "running="...)
		} else {
			dst = append(dst, ',')
		}
		dst = append(append(dst, h.Task...), ':')
		dst = strconv.AppendUint(dst, uint64(h.Version), 10)
		dst = append(append(dst, ':'), h.Phase.String()...)
	}
	if len(held) > 0 {
		dst = append(dst, '\n')
	}
	return dst
}

func appendUnits(dst []byte, units []task.Unit) []byte {
	for i := range units {
		dst = appendPrefixed(dst, "unit.", units[i].Name, string(units[i].AppendText(nil)))
	}
	return dst
}

// ParseRegister reads a register message.
func ParseRegister(m *Message) (*Register, error) {
	f := fields{m: m}
	r := &Register{
		Exec:      f.executor(),
		Types:     f.types("task_types"),
		Load:      f.load(),
		Token:     f.text("token"),
		Proto:     max(1, int(min(f.count("proto"), 2))), // a later one speaks ours too
		Instance:  f.text("instance"),
		Running:   f.held(),
		Host:      f.text("host"),
		PID:       int(min(f.count("pid"), 1<<31-1)),
		Build:     f.text("build"),
		Share:     f.share(),
		Capacity:  task.Resources{CPU: int64(f.count("cpu_milli")), Memory: int64(f.count("memory")), Disk: int64(f.count("disk"))},
		Subscribe: f.list("subscribe"),
		Units:     f.units(),
		Hashes:    f.hashes(),
	}
	return r, f.err
}

func (f *fields) executor() string {
	id := f.need("executor_id")
	if len(id) > MaxExecutorID {
		f.fail("executor_id", fmt.Errorf("%d bytes, want at most %d", len(id), MaxExecutorID))
	}
	if id != task.Printable(id) {
		f.fail("executor_id", errors.New("holds what cannot be printed"))
	}
	return id
}

// share is a name that task.File can carry.
func (f *fields) share() string {
	name := f.text("share")
	if len(name) > MaxExecutorID || name != task.Printable(name) || strings.ContainsRune(name, '/') {
		f.fail("share", fmt.Errorf("want up to %d printable bytes without a slash", MaxExecutorID))
	}
	return name
}

func (f *fields) hashes() task.Values {
	values := f.prefixed("hash.")
	for _, v := range values {
		f.fail("hash."+v.Name, checkHash(v.Value))
	}
	return values
}

// checkHash takes any short word: what it is a hash of, only its maker knows.
func checkHash(value string) error {
	if len(value) > 128 || value != task.Printable(value) {
		return errors.New("want up to 128 printable bytes")
	}
	return nil
}

// load is a number by the book, but what somebody else writes there is no
// reason to refuse work.
func (f *fields) load() uint64 {
	n, _ := parseCount(f.text("load"))
	return n
}

func (f *fields) types(key string) []string {
	var names []string
	for _, name := range f.list(key) {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		f.fail(key, task.CheckType(name))
		names = append(names, name)
	}
	if len(names) > maxTypes {
		f.fail(key, fmt.Errorf("%d types, want at most %d", len(names), maxTypes))
	}
	return names
}

func (f *fields) held() []Held {
	list := f.list("running")
	if len(list) > maxHeld {
		f.fail("running", fmt.Errorf("%d tasks, want at most %d", len(list), maxHeld))
		return nil
	}
	var held []Held
	for _, item := range list {
		h, err := parseHeld(item)
		f.fail("running", err)
		held = append(held, h)
	}
	return held
}

func parseHeld(item string) (Held, error) {
	bad := fmt.Errorf("%q: want task:version:phase", cut(item, 60))
	head, phase, ok := cutLast(item)
	id, version, ok2 := cutLast(head)
	if !ok || !ok2 || task.CheckID(id) != nil {
		return Held{}, bad
	}
	v, err := task.ParseVersion(version)
	if err != nil {
		return Held{}, bad
	}
	for p, name := range phaseNames {
		if name == phase {
			return Held{id, v, Phase(p)}, nil
		}
	}
	return Held{}, bad
}

// cutLast cuts at the last colon: a task id may hold some.
func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return "", "", false
	}
	return s[:i], s[i+1:], true
}

func (f *fields) units() []task.Unit {
	var units []task.Unit
	for _, v := range f.prefixed("unit.") {
		u, err := task.ParseUnit(v.Value)
		if err == nil && u.Name != v.Name {
			err = fmt.Errorf("holds the unit %s", u.Name)
		}
		f.fail("unit."+v.Name, err)
		units = append(units, u)
	}
	return units
}

// TypeChange adds and removes types of a registered executor.
type TypeChange struct {
	Add, Remove []string
	Units       []task.Unit
	Hashes      task.Values // type: hash of what it would run
}

// AppendTypes appends a types frame.
func AppendTypes(dst []byte, c *TypeChange) []byte {
	dst, at := beginMessage(dst, TypeTypes)
	dst = appendSome(dst, "add", strings.Join(c.Add, ","))
	dst = appendSome(dst, "remove", strings.Join(c.Remove, ","))
	dst = appendUnits(dst, c.Units)
	return endMessage(appendValues(dst, "hash.", c.Hashes), at)
}

// ParseTypes reads a types message; task_types is another word for add.
func ParseTypes(m *Message) (*TypeChange, error) {
	f := fields{m: m}
	c := &TypeChange{
		Add:    append(f.types("add"), f.types("task_types")...),
		Remove: f.types("remove"),
		Units:  f.units(),
		Hashes: f.hashes(),
	}
	return c, f.err
}

// Heartbeat is a sign of life. The shares are of the host, in percent; zero:
// not told.
type Heartbeat struct {
	Exec                   string // protocol 1 sends it; a connection knows without
	Load                   uint64
	CPU, Memory, Disk, Net float64
}

// AppendHeartbeat appends a heartbeat frame.
func AppendHeartbeat(dst []byte, h *Heartbeat) []byte {
	dst, at := beginMessage(dst, TypeHeartbeat)
	dst = appendSome(dst, "executor_id", h.Exec)
	dst = appendUint(dst, "load", h.Load)
	for _, share := range h.shares() {
		if *share.value > 0 {
			dst = appendText(dst, share.key, strconv.FormatFloat(*share.value, 'f', 1, 64))
		}
	}
	return endMessage(dst, at)
}

type share struct {
	key   string
	value *float64
}

func (h *Heartbeat) shares() [4]share {
	return [4]share{{"cpu", &h.CPU}, {"memory", &h.Memory}, {"disk", &h.Disk}, {"net", &h.Net}}
}

// ParseHeartbeat reads a heartbeat message. Nothing in it can be wrong: it is
// life, whatever else it says.
func ParseHeartbeat(m *Message) *Heartbeat {
	f := fields{m: m}
	h := &Heartbeat{Exec: f.text("executor_id"), Load: f.load()}
	for _, share := range h.shares() {
		if v, err := strconv.ParseFloat(f.text(share.key), 64); err == nil && v >= 0 && v < 1e9 {
			*share.value = v
		}
	}
	return h
}

// Ack is the controller's good answer to register, types, heartbeat, result,
// returned and to the control messages that have nothing to tell.
type Ack struct {
	Status        AckStatus
	Task          string       // of a result or returned on protocol 2
	Version       task.Version // likewise
	Duplicate     bool         // the result was applied before
	Reason        string       // of stale or rejected
	StateVersion  uint64
	ConfigVersion uint64        // register, protocol 2
	Epoch         uint64        // register, protocol 2
	Proto         int           // register: what will be spoken, if not 1
	Heartbeat     time.Duration // register, protocol 2: the pause between beats
	Refused       []string      // register, protocol 2: "type: why" of types not taken
	Folder        string        // hello: the data folder's id
	Build         string        // hello: the controller's
}

// AckStatus is what became of what is acknowledged.
type AckStatus uint8

// The statuses of an ack.
const (
	AckOK       AckStatus = iota
	AckStale              // dropped, in the late ledger
	AckRejected           // ends the attempt, but as a failure
)

var ackNames = [...]string{"ok", "stale", "rejected"}

func (s AckStatus) String() string {
	if int(s) < len(ackNames) {
		return ackNames[s]
	}
	return fmt.Sprintf("ack(%d)", uint8(s))
}

// AppendAck appends an ack frame.
func AppendAck(dst []byte, a *Ack) []byte {
	dst, at := beginMessage(dst, TypeAck)
	dst = appendText(dst, "status", a.Status.String())
	dst = appendSome(dst, "task_id", a.Task)
	dst = appendCount(dst, "version", uint64(a.Version))
	dst = appendFlag(dst, "duplicate", a.Duplicate)
	dst = appendSome(dst, "reason", cut(a.Reason, maxText))
	dst = appendUint(dst, "state_version", a.StateVersion)
	dst = appendCount(dst, "config_version", a.ConfigVersion)
	dst = appendCount(dst, "epoch", a.Epoch)
	dst = appendCount(dst, "proto", uint64(a.Proto))
	dst = appendMillis(dst, "heartbeat_ms", a.Heartbeat)
	dst = appendSome(dst, "folder", a.Folder)
	dst = appendSome(dst, "build", a.Build)
	for _, r := range a.Refused {
		name, why, _ := strings.Cut(r, ": ")
		dst = appendPrefixed(dst, "refused.", name, why)
	}
	return endMessage(dst, at)
}

// ParseAck reads an ack message.
func ParseAck(m *Message) (*Ack, error) {
	f := fields{m: m}
	a := &Ack{
		Status:        f.ackStatus(),
		Task:          f.text("task_id"),
		Version:       f.version("version"),
		Duplicate:     f.flag("duplicate"),
		Reason:        f.text("reason"),
		StateVersion:  f.count("state_version"),
		ConfigVersion: f.count("config_version"),
		Epoch:         f.count("epoch"),
		Proto:         int(min(f.count("proto"), 255)),
		Heartbeat:     f.millis("heartbeat_ms"),
		Folder:        f.text("folder"),
		Build:         f.text("build"),
	}
	for _, v := range f.prefixed("refused.") {
		a.Refused = append(a.Refused, v.Name+": "+v.Value)
	}
	return a, f.err
}

func (f *fields) ackStatus() AckStatus {
	text := f.need("status")
	for s, name := range ackNames {
		if name == text {
			return AckStatus(s)
		}
	}
	f.fail("status", fmt.Errorf("unknown status %q", cut(text, 60)))
	return AckOK
}
