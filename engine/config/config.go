// Package config is the shape of config.toml: reading, checking, hashing it.
package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"apollo11/engine/task"
)

// Config is every setting. What each means, and what its zero means, stands in
// config.toml, which also holds the defaults: there is no other place for them.
type Config struct {
	Listen    string
	Data      string
	Debug     bool
	Heartbeat Heartbeat
	Scheduler Scheduler
	Limits    map[string]int // by task type; a type left out has none
	Wire      Wire
	Auth      Auth
	Local     Local
	Engine    Engine
	Unit      Unit
	Retention Retention
	Log       Log
	Console   Console
	State     []StateKey // sorted by key, rules prepared
}

// Heartbeat is [heartbeat].
type Heartbeat struct {
	Interval       time.Duration
	Timeout        time.Duration
	Misses         int
	ReconnectGrace time.Duration
}

// Scheduler is [scheduler].
type Scheduler struct {
	QueueThreshold int
	CrashLimit     int
}

// Wire is [wire].
type Wire struct {
	Hold           time.Duration
	MaxFrame       Size
	MaxConnections int
}

// Auth is [auth]; the fields but Insecure are paths.
type Auth struct {
	ExecutorTokenFile string
	OperatorTokenFile string
	TLSCert           string
	TLSKey            string
	ClientCA          string
	Insecure          bool
}

// Local is [local].
type Local struct {
	Executors int
	Units     string
	Missions  string
	Share     string
}

// Engine is [engine].
type Engine struct{ UndeclaredState bool }

// Unit is [unit].
type Unit struct {
	Retries       int
	RetryInterval time.Duration
	Backoff       float64
	Jitter        float64
	Timeout       time.Duration
	Grace         time.Duration
	Env           []string
	ContainerArgs []string
}

// Retention is [retention].
type Retention struct {
	Tasks    int
	TasksAge time.Duration
	Keys     time.Duration
	Journal  time.Duration
	Runs     time.Duration
	Logs     time.Duration
	LogsSize Size
	Backups  int
	BackupAt string // HH:MM, local
}

// Log is [log].
type Log struct {
	File    string
	MaxSize Size
	Keep    int
}

// Console is [console].
type Console struct {
	Theme          string
	SSHListen      string
	AuthorizedKeys string
}

// Load reads defaults (the bytes of config.toml), then the file ("": none),
// then the APOLLO_ variables of env (NAME=value lines), then flags (setting
// name to text), each over what came before. It reports every fault it finds
// as an *Error.
func Load(defaults []byte, file string, env []string, flags map[string]string) (Config, error) {
	l := loader{config: Config{Limits: map[string]int{}}, state: map[string]StateKey{}, from: map[string]string{}}
	l.settings = l.config.settings()
	l.document("built-in config.toml", defaults)
	if missing := l.unset(); missing != "" {
		panic("config: config.toml has no default for " + missing)
	}
	if file != "" {
		data, err := readFile(file)
		if err != nil {
			return Config{}, fmt.Errorf("config file %s: %w", task.Printable(file), err)
		}
		l.document(file, data)
	}
	l.variables(env)
	l.flags(flags)
	l.together()
	if len(l.faults) > 0 {
		return Config{}, &Error{Faults: l.faults}
	}
	for _, key := range slices.Sorted(maps.Keys(l.state)) {
		l.config.State = append(l.config.State, l.state[key])
	}
	return l.config, nil
}

// Hash is the SHA-256 of the settings' meaning: equal for two files that say
// the same in another order, spelling or unit.
func (c *Config) Hash() string {
	var list []task.Value
	for _, s := range c.settings() {
		list = append(list, task.Value{Name: s.name, Value: s.text()})
	}
	for name, most := range c.Limits {
		list = append(list, task.Value{Name: "limits." + name, Value: strconv.Itoa(most)})
	}
	for i := range c.State {
		list = append(list, c.State[i].values()...)
	}
	values, err := task.NewValues(list)
	if err != nil {
		panic("config: a setting has two values: " + err.Error())
	}
	return values.Hash()
}

// loader gathers one Load.
type loader struct {
	config   Config
	settings []setting
	state    map[string]StateKey
	faults   []Fault
	from     map[string]string // setting to where it was last set, for together
}

func (l *loader) setting(name string) *setting {
	for i := range l.settings {
		if l.settings[i].name == name {
			return &l.settings[i]
		}
	}
	return nil
}

func (l *loader) unset() string {
	for _, s := range l.settings {
		if l.from[s.name] == "" {
			return s.name
		}
	}
	return ""
}

// put sets one setting and remembers where its value came from.
func (l *loader) put(where string, s *setting, text string) {
	l.from[s.name] = where
	if err := s.set(text); err != nil {
		l.fault(where, s.name, fmt.Sprintf("%s: %s", quoted(text), err))
	}
}

func (l *loader) fault(where, key, problem string) {
	l.faults = append(l.faults, Fault{Where: where, Key: key, Problem: problem})
}

// Variable is the name of the environment variable that overrides a setting.
func Variable(name string) string {
	return "APOLLO_" + strings.ToUpper(strings.ReplaceAll(name, ".", "_"))
}

// variables takes those whose name is a setting's; any other APOLLO_ variable
// is somebody else's, a unit's for one.
func (l *loader) variables(env []string) {
	names := make(map[string]*setting, len(l.settings))
	for i := range l.settings {
		names[Variable(l.settings[i].name)] = &l.settings[i]
	}
	given := map[string]string{} // the last of a repeated one counts
	for _, line := range env {
		if name, value, ok := strings.Cut(line, "="); ok && names[name] != nil {
			given[name] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		l.put(name, names[name], given[name])
	}
}

func (l *loader) flags(flags map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		where := "--" + name
		if s := l.setting(name); s != nil {
			l.put(where, s, flags[name])
		} else {
			l.fault(where, task.Printable(name), "unknown setting"+l.near(name))
		}
	}
}

// together checks what no single setting can: faults name the place of the
// setting that was set last.
func (l *loader) together() {
	c := &l.config
	if len(l.faults) > 0 {
		return // half-set values would only be blamed twice
	}
	blame := func(name, problem string) { l.fault(l.from[name], name, problem) }
	if c.Heartbeat.Timeout < c.Heartbeat.Interval {
		blame("heartbeat.timeout", fmt.Sprintf("%s is shorter than heartbeat.interval %s", c.Heartbeat.Timeout, c.Heartbeat.Interval))
	}
	if (c.Auth.TLSCert == "") != (c.Auth.TLSKey == "") {
		blame("auth.tls_cert", "auth.tls_cert and auth.tls_key are needed together")
	}
	if c.Auth.ClientCA != "" && c.Auth.TLSCert == "" {
		blame("auth.client_ca", "needs auth.tls_cert and auth.tls_key")
	}
	if c.Console.SSHListen != "" && c.Console.AuthorizedKeys == "" {
		blame("console.ssh_listen", "needs console.authorized_keys")
	}
}
