package engine

import (
	"time"

	"apollo11/engine/task"
)

// Settings are what the engine's decisions depend on besides state and time.
type Settings struct {
	Heartbeat      time.Duration  // between beats, as executors are told
	Misses         int            // beats missed in a row before an executor is offline
	Timeout        time.Duration  // of silence, before an executor is offline
	ReconnectGrace time.Duration  // for a lost connection to come back
	Hold           time.Duration  // a protocol 1 heartbeat waits so long for a task
	QueueThreshold int            // most tasks in an executor's local queue
	CrashLimit     int            // executors lost under a task before it is dead
	Limits         map[string]int // of a type at once; 0 or absent: no limit
	Undeclared     bool           // state keys without a contract are accepted
	Keys           []KeyRule
	Retry          task.Retry    // of tasks whose type nobody declared a contract for
	RetainTasks    int           // finished tasks kept in memory
	RetainAge      time.Duration // and how long; 0: whatever their age
	RetainKeys     time.Duration // how long ids and keys of forgotten tasks are remembered
	ConfigHash     string
	Build          string
	EpochFloor     uint64         // after a restore or repair: the unix second; else 0
	Debug          bool           // the wire tap is on from the start
	Seed           uint64         // of jitter
	Zone           *time.Location // of time tables that name none; nil: UTC

	base time.Time // where the loop's monotonic clock begins
}

// DefaultSettings are the values that config.toml documents.
func DefaultSettings() Settings {
	return Settings{
		Heartbeat: 10 * time.Second, Misses: 2, Timeout: 30 * time.Second, ReconnectGrace: 5 * time.Second,
		Hold: 2 * time.Second, QueueThreshold: 256, CrashLimit: 3, Undeclared: true,
		Retry:       task.Retry{Retries: 1, Interval: 2 * time.Second, Backoff: 1, Jitter: 0.1},
		RetainTasks: 100_000, RetainAge: 168 * time.Hour, RetainKeys: 168 * time.Hour,
	}
}
