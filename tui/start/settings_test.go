package start

import (
	"os"
	"reflect"
	"testing"
	"time"

	"apollo11/engine"
	"apollo11/engine/config"
)

// The engine's own defaults, which tests begin with, are those of config.toml.
func TestDefaultSettings(t *testing.T) {
	defaults, err := os.ReadFile("../../config.toml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(defaults, "", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := serve{program: &program{World: World{Now: func() time.Time { return time.Time{} }}}, config: c}
	got := s.settings()
	got.ConfigHash, got.Build, got.Seed = "", "", 0
	if len(got.Limits) == 0 {
		got.Limits = nil
	}
	if len(got.Keys) == 0 {
		got.Keys = nil
	}
	if want := engine.DefaultSettings(); !reflect.DeepEqual(got, want) {
		t.Errorf("config.toml gives\n%+v\nthe engine has\n%+v", got, want)
	}
}
