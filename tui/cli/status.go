package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "the controller on one page", Args: words(0, 0),
		RunE: a.online(func(ctx context.Context, c *wire.Client, _ []string) error {
			s, err := c.Status(ctx)
			if err != nil {
				return fmt.Errorf("status: %w", err)
			}
			runs, err := openRuns(ctx, c)
			if err != nil {
				return fmt.Errorf("status: %w", err)
			}
			if a.json {
				return a.object(struct {
					*view.Status
					Runs view.Counts `json:"runs"`
				}{s, runs})
			}
			return a.printStatus(s, runs)
		}),
	}
}

// openStates are the states of runs that have not ended.
var openStates = []string{"running", "waiting", "needs_person"}

// openRuns counts the runs that have not ended, up to a page of each state.
func openRuns(ctx context.Context, c *wire.Client) (view.Counts, error) {
	counts := view.Counts{}
	for _, state := range openStates {
		page, err := c.Runs(ctx, view.RunQuery{State: state})
		if err != nil {
			return nil, err
		}
		counts[state] = int64(len(page.Runs))
	}
	return counts, nil
}

// field is one line of a page: a name and what stands beside it.
type field struct {
	name  string
	text  string
	style style
}

// page prints fields, names aligned; those without a text are left out.
func (a *app) page(w io.Writer, fields []field) error {
	widest := 0
	for _, f := range fields {
		if f.text != "" {
			widest = max(widest, len(f.name))
		}
	}
	for _, f := range fields {
		if f.text == "" {
			continue
		}
		name := f.name + strings.Repeat(" ", widest-len(f.name))
		if _, err := fmt.Fprintf(w, "%s  %s\n", a.paint().paint(dim, name), a.paint().paint(f.style, clean(f.text))); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printStatus(s *view.Status, runs view.Counts) error {
	fields := []field{
		{name: "controller", text: fmt.Sprintf("up %s, start %d on this journal", span(s.Now.Sub(s.Since.Time)), s.Epoch)},
		{name: "journal", text: fmt.Sprintf("record %d", s.Seq)},
		{name: "state", text: fmt.Sprintf("version %d", s.StateVersion)},
		{name: "config", text: fmt.Sprintf("version %d, %s", s.ConfigVersion, shortHash(s.ConfigHash))},
		{name: "executors", text: counts(s.Executors, view.ExecutorStates)},
		{name: "tasks", text: counts(s.Tasks, taskStates())},
		{name: "runs", text: runsText(runs)},
		{name: "late", text: lateText(s)},
	}
	if s.Paused {
		fields = append(fields, field{"paused", "everything: apollo11 continue", yellow})
	} else if s.PausedTypes != "" {
		fields = append(fields, field{"paused", strings.ReplaceAll(s.PausedTypes, ",", ", "), yellow})
	}
	if s.Debug {
		fields = append(fields, field{"debug", debugText(s), yellow})
	}
	if s.DiskFull {
		fields = append(fields, field{"disk", "full: new work is refused", red})
	}
	return a.page(a.out, fields)
}

// runsText counts the runs that go on.
func runsText(runs view.Counts) string {
	text := counts(runs, openStates)
	if text == "none" {
		return "none going on"
	}
	return text
}

func taskStates() []string {
	all := task.States()
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.String()
	}
	return names
}

// counts lists what is there, in the order of names.
func counts(c view.Counts, names []string) string {
	var parts []string
	for _, name := range names {
		if c[name] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c[name], name))
		}
	}
	if parts == nil {
		return "none"
	}
	return strings.Join(parts, ", ")
}

func lateText(s *view.Status) string {
	if s.Late == 0 && s.Duplicates == 0 {
		return ""
	}
	return fmt.Sprintf("%s not applied (apollo11 late), %s", task.Plural(s.Late, "result"), task.Plural(s.Duplicates, "duplicate"))
}

// shortHash is enough of a hash to tell two apart.
func shortHash(hash string) string {
	const enough = len("sha256:") + 12
	if len(hash) > enough {
		return hash[:enough]
	}
	return hash
}

// debugText is how the log of every message stands, while it is on.
func debugText(s *view.Status) string {
	if s.DebugLeftMS == 0 {
		return "on: every message goes to the log"
	}
	left := time.Duration(s.DebugLeftMS) * time.Millisecond
	return "on for another " + span(left.Round(time.Second)) + ": every message goes to the log"
}
