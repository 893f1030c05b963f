package start

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/spf13/cobra"

	"apollo11/engine/config"
	"apollo11/engine/mission"
	"apollo11/engine/task"
	"apollo11/engine/unit"
	"apollo11/tui/cli"
)

// planning is one plan command.
type planning struct {
	*program
	unitsDir string // of --units

	config    config.Config
	mission   *mission.Mission
	contracts mission.Contracts
	params    task.Values
	untimed   map[string]bool // unit types whose manifests set no timeout
	history                   // what a controller knows
}

func (p *program) planCommand() *cobra.Command {
	q := &planning{program: p}
	c := &cobra.Command{
		Use: "plan MISSION [NAME=VALUE …]", Short: "check a mission before anything runs, and draw it",
		Long: "Check a mission, a name in the missions folder or a file, against the contracts of its units, draw what\n" +
			"waits for what, and say how long it takes at most. Nothing is run and no controller is needed; if one\n" +
			"answers, its missions, contracts and history say how long it usually takes and how many executors it needs.",
		Example: "  apollo11 plan weather\n  apollo11 plan config/pipeline.yaml --units ./units\n  apollo11 plan weather extremes=false",
		RunE:    q.run,
	}
	c.Flags().StringVar(&q.unitsDir, "units", "", "`DIR` of unit manifests (default local.units of the configuration)")
	return c
}

func (q *planning) run(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return &cli.ExitError{Code: cli.Usage, Err: errors.New("plan: which one"), Hint: "apollo11 " + cmd.Use}
	}
	var err error
	if q.config, err = q.flagged(cmd); err != nil {
		return err
	}
	given, err := pairs(args[1:])
	if err != nil {
		return err
	}
	if err := q.reach(cmd.Context(), q.program); err != nil {
		return err
	}
	defer q.leave()
	if q.mission, err = q.read(cmd.Context(), args[0]); err != nil {
		return err
	}
	broken, err := q.units()
	if err != nil {
		return err
	}
	if q.params, err = q.mission.Check(q.contracts, given); err != nil {
		return q.refused(args[0], given, append(broken, q.placed(cmd.Context(), args[0], given, err)))
	}
	if err := q.asked(cmd.Context(), args[0], given); err != nil {
		return err
	}
	plan, err := q.plan()
	if err != nil {
		return fmt.Errorf("plan: %s: %w", q.mission.Name, err)
	}
	q.warn(plan)
	if asJSON, err := cmd.Flags().GetBool("json"); err == nil && asJSON {
		return plan.encode(cmd.OutOrStdout())
	}
	return q.tell(cmd.OutOrStdout(), plan)
}

// pairs are the parameters of a command line.
func pairs(args []string) (task.Values, error) {
	var list []task.Value
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, &cli.ExitError{Code: cli.Usage, Err: fmt.Errorf("plan: %s: want NAME=VALUE", task.Printable(arg)), Hint: "apollo11 plan MISSION NAME=VALUE"}
		}
		list = append(list, task.Value{Name: name, Value: value})
	}
	values, err := task.NewValues(list)
	if err != nil {
		return nil, &cli.ExitError{Code: cli.Usage, Err: fmt.Errorf("plan: parameter %w", err)}
	}
	return values, nil
}

// refused is what the check found, with what to type if parameters are missing.
func (q *planning) refused(what string, given task.Values, faults []error) error {
	e := &cli.ExitError{Code: cli.Usage, Err: errors.Join(faults...)}
	var missing []string
	for i := range q.mission.Params {
		r := &q.mission.Params[i]
		if _, ok := given.Get(r.Name); !ok && r.Required {
			missing = append(missing, r.Name+"=…")
		}
	}
	if len(missing) > 0 {
		e.Hint = "apollo11 plan " + what + " " + strings.Join(missing, " ")
	}
	return e
}

// extensions are those of mission files.
var extensions = []string{".toml", ".yaml", ".yml"}

func isFile(what string) bool {
	return slices.Contains(extensions, filepath.Ext(what)) || strings.ContainsRune(what, filepath.Separator)
}

// read finds a mission by its file, or by its name: of the controller's, or in the missions
// folder.
func (q *planning) read(ctx context.Context, what string) (*mission.Mission, error) {
	if isFile(what) {
		return readMission(os.Open, what, what)
	}
	if m, err := q.known(ctx, what); m != nil || err != nil {
		return m, err
	}
	if err := cli.NoMissionFile("plan", what); err != nil {
		return nil, err
	}
	folder, shown := fs.FS(nil), q.config.Local.Missions
	if info, err := os.Stat(shown); err == nil && info.IsDir() {
		folder = os.DirFS(shown)
	} else if folder, err = fs.Sub(mission.Examples(), "missions"); err != nil {
		return nil, err
	} else {
		shown = "examples/missions"
	}
	var names []string
	entries, err := fs.ReadDir(folder, ".")
	if err != nil {
		return nil, fmt.Errorf("plan: missions folder %s: %w", shown, err)
	}
	for _, e := range entries {
		name, extension := strings.TrimSuffix(e.Name(), path.Ext(e.Name())), path.Ext(e.Name())
		if !slices.Contains(extensions, extension) {
			continue
		}
		if name == what {
			return named(readMission(folder.Open, e.Name(), path.Join(shown, e.Name())))(what)
		}
		names = append(names, name)
	}
	return nil, q.nowhere(ctx, what, shown, names)
}

// nowhere is a name that no mission has, and the one that may be meant: of the
// folder, or of the controller.
func (q *planning) nowhere(ctx context.Context, what, folder string, names []string) error {
	missions, err := q.missions(ctx)
	if err != nil {
		return err
	}
	why := fmt.Errorf("plan: mission %s is not in %s", task.Printable(what), folder)
	if q.client != nil {
		why = fmt.Errorf("%w, and the controller has none", why)
	}
	near := task.Nearest(what, append(names, missions...))
	if near == "" {
		return &cli.ExitError{Code: cli.Failed, Err: why, Hint: "apollo11 plan FILE, or put it into the folder " + folder}
	}
	return &cli.ExitError{Code: cli.Failed, Err: fmt.Errorf("%w: did you mean %s?", why, task.Printable(near)), Hint: "apollo11 plan " + cli.Quoted(near)}
}

// named refuses a file of the folder that holds a mission of another name.
func named(m *mission.Mission, err error) func(want string) (*mission.Mission, error) {
	return func(want string) (*mission.Mission, error) {
		if err == nil && m.Name != want {
			err = &cli.ExitError{Code: cli.Usage, Err: fmt.Errorf("plan: the file of mission %s says name = %q: one of the two must change", want, m.Name)}
		}
		return m, err
	}
}

// readMission reads and parses a file, which is shown under another name.
func readMission[F fs.File](open func(string) (F, error), name, shown string) (*mission.Mission, error) {
	file, err := open(name)
	if err != nil {
		return nil, &cli.ExitError{Code: cli.Failed, Err: fmt.Errorf("plan: mission file: %w", err)}
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, mission.MaxFile+1))
	if err != nil {
		return nil, &cli.ExitError{Code: cli.Failed, Err: fmt.Errorf("plan: mission file: %w", err)}
	}
	m, err := mission.Parse(shown, text)
	if err != nil {
		return nil, &cli.ExitError{Code: cli.Usage, Err: err}
	}
	return m, nil
}

// units loads the contracts; broken are the faults of manifests that the mission
// uses.
func (q *planning) units() (broken []error, err error) {
	for i := range q.config.State {
		key := &q.config.State[i]
		q.contracts.Keys = append(q.contracts.Keys, mission.Key{Rule: key.Rule, From: key.From})
	}
	dir := q.unitsDir
	if dir == "" {
		dir = q.config.Local.Units
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		if len(q.stats) > 0 && q.unitsDir == "" {
			return nil, q.takeContracts(nil)
		}
		if q.unitsDir != "" {
			return nil, &cli.ExitError{Code: cli.Usage, Err: fmt.Errorf("plan: units folder %s is not there", dir), Hint: "apollo11 plan MISSION --units DIR"}
		}
		if dir, err = os.MkdirTemp("", "apollo11-plan-"); err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		if err := os.CopyFS(dir, mission.Examples()); err != nil {
			return nil, err
		}
		dir = filepath.Join(dir, "units")
	}
	c := &q.config.Unit
	defaults := unit.Defaults{
		Retries: c.Retries, RetryInterval: c.RetryInterval, Backoff: c.Backoff, Jitter: c.Jitter, Timeout: c.Timeout, Grace: c.Grace, Env: c.Env,
		ContainerArgs: c.ContainerArgs,
	}
	set, err := unit.Load(dir, defaults)
	if err != nil {
		return nil, &cli.ExitError{Code: cli.Usage, Err: fmt.Errorf("plan: %w", err)}
	}
	if err := q.findUntimed(dir, defaults, set); err != nil {
		return nil, err
	}
	if err := q.takeContracts(set.Contracts()); err != nil {
		return nil, err
	}
	for _, f := range set.Faults {
		name := strings.TrimSuffix(filepath.Base(f.File), ".toml")
		if q.offered(name) && q.unitsDir == "" {
			continue // an executor runs with another one
		}
		if slices.ContainsFunc(q.mission.Units, func(u mission.Unit) bool { return u.Uses == name }) {
			broken = append(broken, f)
		}
	}
	return broken, nil
}

// findUntimed finds the manifests that set no timeout: another default gives
// them another one.
func (q *planning) findUntimed(dir string, d unit.Defaults, set *unit.Set) error {
	d.Timeout++
	other, err := unit.Load(dir, d)
	if err != nil {
		return err
	}
	q.untimed = map[string]bool{}
	for _, u := range set.Units() {
		if o := other.Get(u.Name); o != nil && o.Unit.Timeout != u.Timeout {
			q.untimed[u.Name] = true
		}
	}
	return nil
}

// hasNone reports whether nobody set a unit's timeout. A contract that came from
// an executor does not say so: the default is taken for none.
func (q *planning) hasNone(u *mission.Unit) bool {
	switch {
	case u.Timeout > 0:
		return false
	case q.offered(u.Uses) && q.unitsDir == "":
		return q.timeout(u) == q.config.Unit.Timeout
	}
	return q.untimed[u.Uses]
}

// warn speaks of what is allowed, and seldom meant.
func (q *planning) warn(p *plan) {
	if p.Forecast != nil {
		for _, warning := range p.Forecast.tooShort() {
			fmt.Fprintf(q.Stderr, "warning: %s\n", warning)
		}
	}
	told := map[string]bool{}
	for i := range q.mission.Units {
		u := &q.mission.Units[i]
		if q.hasNone(u) && !told[u.Uses] {
			told[u.Uses] = true
			fmt.Fprintf(q.Stderr, "warning: unit %s: neither the mission nor the manifest of %s sets a timeout: %s counts\n", u.Name, u.Uses, q.config.Unit.Timeout)
		}
	}
}

// plan is what is known of a mission before it runs.
type plan struct {
	Mission  string            `json:"mission"`
	Hash     string            `json:"hash"`
	Params   map[string]string `json:"params"`
	Units    []plannedUnit     `json:"units"`
	Widths   []int             `json:"widths"`
	Critical []string          `json:"critical"`
	Longest  int64             `json:"longest_ms"`
	Forecast *forecast         `json:"forecast"` // null: no controller answers

	graph *mission.Graph
}

// plannedUnit is one unit of a plan.
type plannedUnit struct {
	Name    string   `json:"name"`
	Uses    string   `json:"uses"`
	Deps    []string `json:"deps"`
	Weak    []string `json:"weak"`
	When    string   `json:"when,omitempty"`
	Level   int      `json:"level"`
	Skipped bool     `json:"skipped"`
	Longest int64    `json:"longest_ms"`
}

func (q *planning) plan() (*plan, error) {
	m := q.mission
	graph, err := mission.NewGraph(m)
	if err != nil {
		return nil, err
	}
	conditions, err := m.Conditions(q.contracts)
	if err != nil {
		return nil, err
	}
	skipped, err := graph.Skipped(conditions, q.params)
	if err != nil {
		return nil, err
	}
	longest := m.Longest(q.contracts)
	out := &plan{Mission: m.Name, Hash: m.Hash(), Params: map[string]string{}, Widths: graph.Widths(), graph: graph}
	for _, v := range q.params {
		out.Params[v.Name] = v.Value
	}
	for i := range m.Units {
		u := &m.Units[i]
		if skipped[i] {
			longest[i] = 0
		}
		out.Units = append(out.Units, plannedUnit{
			Name: u.Name, Uses: u.Uses, Deps: append([]string{}, u.Deps...), Weak: append([]string{}, u.Weak...), When: u.When,
			Level: graph.Level(i), Skipped: skipped[i], Longest: longest[i].Milliseconds(),
		})
	}
	critical, total := graph.Critical(longest)
	for _, i := range critical {
		out.Critical = append(out.Critical, m.Units[i].Name)
	}
	out.Longest = total.Milliseconds()
	if q.client != nil {
		out.Forecast = q.foresee(graph, skipped)
	}
	return out, nil
}

// encode prints a plan as one line of JSON, in ASCII: what a file says reaches no
// terminal as it is.
func (p *plan) encode(w io.Writer) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(p); err != nil {
		return err
	}
	var line []byte
	for _, r := range b.String() {
		switch high, low := utf16.EncodeRune(r); {
		case r == '\n' || r >= ' ' && r < 0x7f:
			line = append(line, byte(r))
		case r > 0xffff:
			line = fmt.Appendf(line, `\u%04x\u%04x`, high, low)
		default:
			line = fmt.Appendf(line, `\u%04x`, r)
		}
	}
	_, err := w.Write(line)
	return err
}

// tell prints a plan for a person.
func (q *planning) tell(w io.Writer, p *plan) error {
	fmt.Fprintf(w, "%s: %s, passed the check, %s\n", p.Mission, counted(len(p.Units)), p.Hash[:len("sha256:")+12])
	for _, v := range q.params {
		fmt.Fprintf(w, "  %s=%s\n", v.Name, task.Printable(v.Value))
	}
	width := q.env().Width
	if width == 0 {
		width = 80
	}
	fmt.Fprintf(w, "\n%s\n", p.graph.Draw(mission.Drawing{Width: width, ASCII: q.ascii(), Note: p.note}))
	fmt.Fprintf(w, "levels: %d, the widest of %s side by side\n", len(p.Widths), counted(slices.Max(p.Widths)))
	longest := (time.Duration(p.Longest) * time.Millisecond).Round(time.Second)
	if _, err := fmt.Fprintf(w, "at most %s, if everything on %s\ntakes all the time and attempts that it may\n", longest, shortWay(p.Critical)); err != nil {
		return err
	}
	if p.Forecast == nil {
		_, err := fmt.Fprintln(w, "\nno history: no controller answers; one that has run these units knows how long they take")
		return err
	}
	return p.Forecast.tell(w)
}

func counted(units int) string {
	if units == 1 {
		return "1 unit"
	}
	return fmt.Sprintf("%d units", units)
}

// note is what is said about a unit in the drawing.
func (p *plan) note(i int) string {
	u := &p.Units[i]
	var notes []string
	if u.Uses != u.Name {
		notes = append(notes, u.Uses)
	}
	if u.Skipped {
		notes = append(notes, "skipped")
	}
	if u.When != "" {
		notes = append(notes, "when "+task.Printable(u.When))
	}
	return strings.Join(notes, "; ")
}

// shortWay is a chain of units, its middle left out where it is long.
func shortWay(units []string) string {
	const most = 6
	if n := len(units); n > most {
		units = append(append(slices.Clone(units[:most/2]), fmt.Sprintf("… %d more …", n-most)), units[n-most/2:]...)
	}
	return strings.Join(units, ", ")
}
