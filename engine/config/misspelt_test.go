package config

import (
	"slices"
	"testing"
)

// Every variable with a letter left out, doubled or swapped is found, unless that
// is another's name.
func TestMisspelt(t *testing.T) {
	for _, tt := range []struct{ name, meant string }{
		{"APOLLO_LOCAL_EXECUTOR", "APOLLO_LOCAL_EXECUTORS"},
		{"APOLLO_HEARTBEAT_TIMOUT", "APOLLO_HEARTBEAT_TIMEOUT"},
		{"APOLLO_AUTH_OPERATOR_TOKEN", "APOLLO_AUTH_OPERATOR_TOKEN_FILE"},
		{"APOLLO_WIRE_MAX", ""}, // either of two
		{"APOLLO_LOCAL_", ""},
		{"APOLLO_LOCAL_EXECUTORS", ""}, // as it should be
		{"APOLLO_LISTEN", ""},
		{"APOLLO_ADDR", ""},
		{"APOLLO_LOCAL", ""},
		{"LOCAL_EXECUTOR", ""},
		{"APOLLO_LIMITS_FETCH", ""},
		{"APOLLO_MISSION_EXECUTORS", ""}, // no such section
		{"APOLLO_LOCAL_SOMETHING_ELSE", ""},
		{"APOLLO_UNIT_DIR", ""}, // a unit's own
		{"APOLLO_UNIT_ENVS", "APOLLO_UNIT_ENV"},
		{"APOLLO_STATE", ""},
		{"APOLLO_RUN_DIR", ""},
	} {
		var want []Misspelling
		if tt.meant != "" {
			want = []Misspelling{{tt.name, tt.meant}}
		}
		if got := Misspelt([]string{"PATH=/bin", tt.name + "=1", tt.name + "=2"}, []string{"APOLLO_UNIT_DIR"}); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", tt.name, got, want)
		}
	}
	for _, s := range new(Config).settings() {
		if got := Misspelt([]string{Variable(s.name) + "="}, nil); got != nil {
			t.Errorf("%s: %v", s.name, got)
		}
	}
}
