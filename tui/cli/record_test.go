//go:build record

package cli

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"apollo11/engine/view"
	"apollo11/wire"
)

// TestRecord writes what the README's picture of the console is drawn from: the
// demo at work, read as the console reads it. It is no test, and is built only when it is asked for:
//
//	apollo11 demo                                         # in another terminal, and soon after
//	apollo11 submit file_report year=2015 --addr 127.0.0.1:PORT
//	APOLLO_RECORD=127.0.0.1:PORT go test -tags record ./tui/cli -run Record
//	go test ./tui -run Picture -update
func TestRecord(t *testing.T) {
	addr := os.Getenv("APOLLO_RECORD")
	if addr == "" {
		t.Fatal("APOLLO_RECORD names no demo: want its HOST:PORT")
	}
	type event struct {
		view.Event
		Values *struct{} `json:"values,omitempty"` // in place of the event's own: the words are made
		Words  string    `json:"words"`
		Alarm  bool      `json:"alarm"`
	}
	type run struct {
		view.Run
		Params *struct{} `json:"params,omitempty"` // likewise: they are not drawn
	}
	var record struct {
		Over   *view.Overview
		Rates  []float64
		Runs   []run
		Events []event
	}
	s := newConsoleSource(func(ctx context.Context, quiet bool) (*wire.Client, error) {
		return wire.Dial(ctx, addr, wire.ClientOptions{Quiet: quiet})
	}, time.Now)
	defer s.close()
	for range 24 {
		var err error
		if record.Over, err = s.Overview(t.Context()); err != nil {
			t.Fatal(err)
		}
		record.Rates = append(record.Rates, record.Over.PerSecond)
		time.Sleep(time.Second)
	}
	runs, err := s.Runs(t.Context(), view.RunQuery{Limit: 5})
	if err != nil {
		t.Fatal(err)
	}
	for i := range runs.Runs {
		record.Runs = append(record.Runs, run{Run: runs.Runs[i]})
	}
	page, err := s.Timeline(t.Context(), view.EventQuery{From: record.Over.Status.Seq - 39, Limit: 40})
	if err != nil {
		t.Fatal(err)
	}
	for i := range page.Events {
		words, tone := describe(&page.Events[i], time.UTC)
		record.Events = append(record.Events, event{Event: page.Events[i], Words: words, Alarm: tone == red})
	}
	out, err := json.MarshalIndent(record, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("../testdata/demo.json", append(out, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}
