package start

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"apollo11/engine/mission"
	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/tui/cli"
	"apollo11/wire"
)

// history is what a controller knows that plans better than files alone.
type history struct {
	client *wire.Client              // nil: none answers
	stats  map[string]view.TypeStats // by type
	byName bool                      // the mission is one that the controller knows
}

// reach asks a controller, if there is one.
func (h *history) reach(ctx context.Context, p *program) (err error) {
	if h.client, err = p.Reach(ctx); h.client == nil || err != nil {
		return err
	}
	stats, err := h.client.Stats(ctx)
	if err != nil {
		h.leave()
		return fmt.Errorf("plan: history: %w", err)
	}
	h.stats = make(map[string]view.TypeStats, len(stats))
	for i := range stats {
		h.stats[stats[i].Type] = stats[i]
	}
	return nil
}

func (h *history) leave() {
	if h.client != nil {
		h.client.Close()
	}
}

// known is the controller's mission of a name; nil: it has none.
func (h *history) known(ctx context.Context, name string) (*mission.Mission, error) {
	if h.client == nil {
		return nil, nil
	}
	text, err := h.client.MissionSpec(ctx, name)
	if errors.Is(err, &wire.Error{Code: wire.CodeNotFound}) {
		return nil, nil
	}
	var said *wire.Error
	if errors.As(err, &said) && said.Code == wire.CodeInvalid { // its faults, with their places
		return nil, &cli.ExitError{Code: cli.Usage, Err: errors.New(strings.TrimPrefix(strings.TrimPrefix(said.Message, "invalid: "), "mission "+name+": "))}
	}
	if err != nil {
		return nil, fmt.Errorf("plan: mission %s: %w", task.Printable(name), err)
	}
	h.byName = true
	return mission.ParseSpec(text)
}

// missions are the names of the controller's.
func (h *history) missions(ctx context.Context) (names []string, err error) {
	if h.client == nil {
		return nil, nil
	}
	list, err := h.client.Missions(ctx)
	if err != nil {
		return nil, fmt.Errorf("plan: missions: %w", err)
	}
	for i := range list {
		names = append(names, list[i].Name)
	}
	return names, nil
}

// offered reports whether the controller knows the contract of a type.
func (h *history) offered(typ string) bool { return h.stats[typ].Unit != "" }

// takeContracts joins the contracts of manifests here with those that executors
// told the controller. What runs counts, unless --units names other manifests.
func (q *planning) takeContracts(here []task.Unit) error {
	q.contracts.Units = here
	at := make(map[string]int, len(here))
	for i := range here {
		at[here[i].Name] = i
	}
	for typ, s := range q.stats {
		i, both := at[typ]
		if s.Unit == "" || both && q.unitsDir != "" {
			continue
		}
		u, err := task.ParseUnit(s.Unit)
		if err != nil {
			return fmt.Errorf("plan: the controller's contract of %s: %w", task.Printable(typ), err)
		}
		if both {
			q.contracts.Units[i] = u
		} else {
			q.contracts.Units = append(q.contracts.Units, u)
		}
	}
	slices.SortFunc(q.contracts.Units, func(a, b task.Unit) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// placed gives the faults of a mission that came from the controller their places
// in its file, which only the controller has read.
func (q *planning) placed(ctx context.Context, what string, given task.Values, err error) error {
	var faults mission.Faults
	if !q.byName || !errors.As(err, &faults) {
		return err
	}
	var said *cli.ExitError
	var lines []string
	switch found := errors.As(q.checked(ctx, what, given), &said); {
	case found && !q.apart():
		return said.Err
	case found:
		lines = strings.Split(said.Err.Error(), "\n")
	}
	faults = slices.Clone(faults)
	for i := range faults {
		faults[i] = mission.Fault{File: place(lines, faults[i].Problem, "mission "+what), Problem: faults[i].Problem}
	}
	return faults
}

// place is where a fault stands, as one of the lines says that names it too.
func place(lines []string, problem, unknown string) string {
	for _, line := range lines {
		if where, ok := strings.CutSuffix(line, ": "+task.Printable(problem)); ok {
			return where
		}
	}
	return unknown
}

// apart reports whether the plan counts on units that the controller does not
// know: it could not run the mission as it is.
func (q *planning) apart() bool {
	onlyHere := func(u mission.Unit) bool {
		return !q.offered(u.Uses) && slices.ContainsFunc(q.contracts.Units, func(c task.Unit) bool { return c.Name == u.Uses })
	}
	return q.unitsDir != "" || slices.ContainsFunc(q.mission.Units, onlyHere)
}

// asked has the controller check what has passed here, for it knows more: what
// the hosts have, and what else stands in the way of a start. It is asked only
// about what it could run as it is.
func (q *planning) asked(ctx context.Context, what string, given task.Values) error {
	if q.client == nil || q.apart() {
		return nil
	}
	return q.checked(ctx, what, given)
}

// checked is what the controller has against the mission.
func (q *planning) checked(ctx context.Context, what string, given task.Values) error {
	start := wire.Start{Mission: what, Params: given, Check: true}
	if !q.byName {
		start.Mission, start.File = "", what
		text, err := os.ReadFile(what)
		if err == nil {
			err = q.client.Upload(ctx, what, text)
		}
		if err != nil {
			return fmt.Errorf("plan: %w", err)
		}
	}
	_, err := q.client.Start(ctx, start)
	if errors.Is(err, &wire.Error{Code: wire.CodeInvalid}) {
		return &cli.ExitError{Code: cli.Usage, Err: err}
	}
	if err != nil {
		return fmt.Errorf("plan: the controller: %w", err)
	}
	return nil
}

// forecast is what experience says of a mission.
type forecast struct {
	Types     []foreseen `json:"types"`
	Unknown   []string   `json:"unknown"`       // types that nobody has seen succeed
	Expected  int64      `json:"expected_ms"`   // with executors for all; without history: 0
	Critical  []string   `json:"critical"`      // that decide it
	Side      int        `json:"side_by_side"`  // units at once
	Advised   int        `json:"advised"`       // executors, with headroom
	Connected int64      `json:"connected"`     // executors that offer the type with the fewest
	WithThese int64      `json:"with_these_ms"` // expected with those; 0: none is there
}

// foreseen is a type with one of its timeouts.
type foreseen struct {
	Type      string `json:"type"`
	Units     int    `json:"units"`
	Samples   int64  `json:"samples"`
	P50       int64  `json:"p50_us"`
	P99       int64  `json:"p99_us"`
	Slowest   int64  `json:"max_us"`
	Timeout   int64  `json:"timeout_ms"`
	Suggested int64  `json:"suggested_ms"` // 0: nothing is known
}

// foresee plans with what the units took before. A type without history is taken
// to be as slow as the slowest that has one.
func (q *planning) foresee(g *mission.Graph, skipped []bool) *forecast {
	f := &forecast{Types: []foreseen{}, Unknown: []string{}, Critical: []string{}}
	takes, guess := make([]time.Duration, g.Len()), time.Duration(0)
	for i := range q.mission.Units {
		if s := q.stats[q.mission.Units[i].Uses]; !skipped[i] && s.Samples > 0 {
			guess = max(guess, micros(s.P50US))
		}
	}
	f.Connected = -1
	for i := range q.mission.Units {
		u := &q.mission.Units[i]
		s := q.stats[u.Uses]
		f.add(u, &s, q.timeout(u))
		if skipped[i] {
			continue
		}
		if takes[i] = max(micros(s.P50US), 1); s.Samples == 0 {
			takes[i] = max(guess, 1)
		}
		if f.Connected < 0 || s.Execs < f.Connected {
			f.Connected = s.Execs
		}
	}
	f.Connected = max(f.Connected, 0)
	total, side := fly(g, takes, 0)
	f.Side, f.Advised = side, headroom(side)
	if guess == 0 {
		return f
	}
	f.Expected = total.Milliseconds()
	critical, _ := g.Critical(takes)
	for _, i := range critical {
		f.Critical = append(f.Critical, q.mission.Units[i].Name)
	}
	if f.Connected > 0 {
		these, _ := fly(g, takes, int(min(f.Connected, int64(g.Len()))))
		f.WithThese = these.Milliseconds()
	}
	return f
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// tooShort has a warning for every timeout that experience does not bear out.
func (f *forecast) tooShort() (warnings []string) {
	for i := range f.Types {
		if t := &f.Types[i]; t.Samples > 0 && t.Timeout > 0 && t.Timeout*1000 < t.P99 {
			warnings = append(warnings, fmt.Sprintf("unit type %s: its timeout of %s is less than the %s that one in a hundred takes: %s is suggested",
				t.Type, shown(time.Duration(t.Timeout)*time.Millisecond), shown(micros(t.P99)), shown(time.Duration(t.Suggested)*time.Millisecond)))
		}
	}
	return warnings
}

// timeout is that of a unit's execute step.
func (q *planning) timeout(u *mission.Unit) time.Duration {
	if u.Timeout > 0 {
		return u.Timeout
	}
	i, ok := slices.BinarySearchFunc(q.contracts.Units, u.Uses, func(c task.Unit, name string) int { return strings.Compare(c.Name, name) })
	if !ok {
		return 0
	}
	return q.contracts.Units[i].Timeout
}

func (f *forecast) add(u *mission.Unit, s *view.TypeStats, timeout time.Duration) {
	if s.Samples == 0 && !slices.Contains(f.Unknown, u.Uses) {
		f.Unknown = append(f.Unknown, u.Uses)
	}
	i := slices.IndexFunc(f.Types, func(t foreseen) bool { return t.Type == u.Uses && t.Timeout == timeout.Milliseconds() })
	if i >= 0 {
		f.Types[i].Units++
		return
	}
	f.Types = append(f.Types, foreseen{
		Type: u.Uses, Units: 1, Samples: s.Samples, P50: s.P50US, P99: s.P99US, Slowest: s.MaxUS,
		Timeout: timeout.Milliseconds(), Suggested: suggested(s).Milliseconds(),
	})
}

// tell prints a forecast for a person.
func (f *forecast) tell(out io.Writer) error {
	widest := len("TYPE")
	for i := range f.Types {
		widest = max(widest, len(f.Types[i].Type))
	}
	line := func(typ, units, samples string, rest ...any) {
		fmt.Fprintf(out, "%-*s  %5s  %7s  %7s  %7s  %7s  %9s\n", append([]any{widest, typ, units, samples}, rest...)...)
	}
	fmt.Fprintln(out)
	line("TYPE", "UNITS", "SAMPLES", "P50", "P99", "TIMEOUT", "SUGGESTED")
	for i := range f.Types {
		t := &f.Types[i]
		p50, p99, advice := "-", "-", "-"
		if t.Samples > 0 {
			p50, p99, advice = shown(micros(t.P50)), shown(micros(t.P99)), shown(time.Duration(t.Suggested)*time.Millisecond)
		}
		line(t.Type, fmt.Sprint(t.Units), fmt.Sprint(t.Samples), p50, p99, shown(time.Duration(t.Timeout)*time.Millisecond), advice)
	}
	fmt.Fprintln(out)
	if len(f.Critical) > 0 {
		fmt.Fprintf(out, "expected: %s, by %s\n", shown(time.Duration(f.Expected)*time.Millisecond), shortWay(f.Critical))
	}
	if len(f.Unknown) > 0 {
		fmt.Fprintf(out, "no history of %s%s\n", strings.Join(f.Unknown, ", "), f.guessed())
	}
	_, err := fmt.Fprintf(out, "executors: %d, so that nothing waits (%d side by side at most, and 30%% more); %d connected%s\n", f.Advised, f.Side, f.Connected, f.these())
	return err
}

// guessed says what was done about types without history.
func (f *forecast) guessed() string {
	if len(f.Critical) == 0 {
		return ": how long it takes is known once it has run"
	}
	return ": taken to be as slow as the slowest of the others"
}

func (f *forecast) these() string {
	switch {
	case f.Connected == 0:
		return ": it would wait for one"
	case f.WithThese > f.Expected:
		return ": " + shown(time.Duration(f.WithThese)*time.Millisecond) + " with these"
	}
	return ""
}

// shown is a duration with three digits or so.
func shown(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
