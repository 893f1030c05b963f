package view

// Explanation says why a task stands where it does, in words, what matters most
// first.
type Explanation struct {
	ID    string   `json:"id"`
	State string   `json:"state"`
	Lines []string `json:"lines"`
	Hints []string `json:"hints"` // what can be typed
}
