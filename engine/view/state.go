package view

// Key is one key of the global state.
type Key struct {
	Key     string `json:"key"`
	Value   string `json:"value"`
	Version int64  `json:"version"`         // changes of this key
	Seq     int64  `json:"seq"`             // journal position of its last change
	Task    string `json:"task,omitempty"`  // whose result changed it last; empty: an operator
	Fault   string `json:"fault,omitempty"` // how it breaks its contract; empty: it holds
}

// Fields implements Row.
func (k *Key) Fields(v Visitor) {
	v.Text("key", &k.Key)
	v.Text("value", &k.Value)
	v.Int("version", &k.Version)
	v.Int("seq", &k.Seq)
	v.Text("task", &k.Task)
	v.Text("fault", &k.Fault)
}

// Late is one line of the late ledger: a result that came and was not applied.
type Late struct {
	Task     string `json:"task"`
	Version  int64  `json:"version"` // the result's
	Current  int64  `json:"current"` // the task's at that moment; 0: nobody held it
	Executor string `json:"executor"`
	Reason   string `json:"reason"` // superseded returned dead cancelled unknown …
	Effect   string `json:"effect"` // what it would have changed
	Time     Time   `json:"time"`
}

// Fields implements Row.
func (l *Late) Fields(v Visitor) {
	v.Text("task", &l.Task)
	v.Int("version", &l.Version)
	v.Int("current", &l.Current)
	v.Text("executor", &l.Executor)
	v.Text("reason", &l.Reason)
	v.Text("effect", &l.Effect)
	v.Time("time", &l.Time)
}
