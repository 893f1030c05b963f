package view

// Executor is one worker process as the controller knows it.
type Executor struct {
	ID           string `json:"id"`
	State        string `json:"state"`            // registering idle running draining offline
	Types        string `json:"types"`            // comma list
	Load         int64  `json:"load"`             // tasks it holds
	Task         string `json:"task"`             // the oldest it holds
	Version      int64  `json:"version"`          // of that task's dispatch
	StateVersion int64  `json:"state_version"`    // that the task saw
	HeartbeatMS  int64  `json:"heartbeat_age_ms"` // of one that is offline: since it went; -1: never heard since the controller started
	Late         bool   `json:"late"`             // a beat was missed
	Done         int64  `json:"done"`
	Failed       int64  `json:"failed"`
	Proto        int64  `json:"proto"`
	Host         string `json:"host"`
	PID          int64  `json:"pid"`
	Build        string `json:"build"`
	Reason       string `json:"reason"` // why it is offline, or a hint about its link
}

// Fields implements Row.
func (e *Executor) Fields(v Visitor) {
	v.Text("id", &e.ID)
	v.Text("state", &e.State)
	v.Text("types", &e.Types)
	v.Int("load", &e.Load)
	v.Text("task", &e.Task)
	v.Int("version", &e.Version)
	v.Int("state_version", &e.StateVersion)
	v.Int("heartbeat_age_ms", &e.HeartbeatMS)
	v.Bool("late", &e.Late)
	v.Int("done", &e.Done)
	v.Int("failed", &e.Failed)
	v.Int("proto", &e.Proto)
	v.Text("host", &e.Host)
	v.Int("pid", &e.PID)
	v.Text("build", &e.Build)
	v.Text("reason", &e.Reason)
}
