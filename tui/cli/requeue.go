package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

// bulk is a command on tasks: named one by one, or all that match.
type bulk struct {
	name   string // of the command
	did    string // past tense
	filter filter
	all    bool
	yes    bool
	reason string
	states []task.State // that a filter without --state means
	act    func(context.Context, *wire.Client, view.Selection) (*view.Changed, error)
}

func (b *bulk) flags(cmd *cobra.Command) {
	b.filter.flags(cmd, true)
	cmd.Flags().BoolVar(&b.all, "all", false, "all of them, without a filter")
	cmd.Flags().BoolVar(&b.yes, "yes", false, "do not ask")
}

func (a *app) requeueCommand() *cobra.Command {
	b := &bulk{name: "requeue", did: "requeued", states: []task.State{task.Dead}}
	b.act = func(ctx context.Context, c *wire.Client, s view.Selection) (*view.Changed, error) {
		return c.Requeue(ctx, s)
	}
	cmd := &cobra.Command{
		Use: "requeue ID… | --all | --type TYPE --error TEXT", Short: "give dead letters a new life", Args: words(0, -1),
		Long: "Give dead letters a new life: retries start anew, the attempts stay in the history.\n" +
			"By id also cancelled and aborted tasks; by filter only dead ones, unless --state says otherwise.",
		RunE: a.bulkRun(b),
	}
	b.flags(cmd)
	return cmd
}

func (a *app) cancelCommand() *cobra.Command {
	b := &bulk{name: "cancel", did: "cancelled"}
	for _, s := range task.States() {
		if !s.Terminal() {
			b.states = append(b.states, s)
		}
	}
	b.act = func(ctx context.Context, c *wire.Client, s view.Selection) (*view.Changed, error) {
		return c.Cancel(ctx, s, b.reason)
	}
	cmd := &cobra.Command{
		Use: "cancel ID… | --all | --type TYPE --state STATES", Short: "end runs, or tasks, that have not ended", Args: words(0, -1),
		Long: "End tasks that have not ended. The id of a run ends all of it; a task of a run is named RUN:UNIT.",
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := b.filter.selection(b.name, args, b.all, b.states)
		if err != nil {
			return err
		}
		return a.online(func(ctx context.Context, c *wire.Client, _ []string) error { return a.cancel(ctx, c, b, s) })(cmd, args)
	}
	b.flags(cmd)
	b.reasonFlag(cmd)
	a.completeRuns(cmd)
	return cmd
}

// cancel ends the runs among the ids, and the tasks.
func (a *app) cancel(ctx context.Context, c *wire.Client, b *bulk, s view.Selection) error {
	var tasks []string
	for _, id := range s.IDs {
		if !looksLikeRun(id) {
			tasks = append(tasks, id)
			continue
		}
		run, err := c.CancelRun(ctx, id, b.reason)
		switch {
		case notFound(err):
			tasks = append(tasks, id) // a person may call a task so
		case err != nil:
			return fmt.Errorf("cancel: %s: %w", id, err)
		default:
			if err := a.done(run, "cancelled %s: %s", run.ID, unitsText(run)); err != nil {
				return err
			}
		}
	}
	if len(s.IDs) > 0 && len(tasks) == 0 {
		return nil
	}
	s.IDs = tasks
	return a.bulkAct(ctx, c, b, s)
}

func (a *app) dropCommand() *cobra.Command {
	b := &bulk{name: "drop", did: "dropped", states: []task.State{task.Dead}}
	b.act = func(ctx context.Context, c *wire.Client, s view.Selection) (*view.Changed, error) {
		return c.Drop(ctx, s, b.reason)
	}
	cmd := &cobra.Command{
		Use: "drop ID… | --all | --type TYPE --error TEXT", Short: "take dead letters out of memory", Args: words(0, -1),
		Long: "Take dead letters out of memory, for good: their ids and keys are remembered as of any task that\n" +
			"ended, and their history stays in the journal, see replay ID. By id also cancelled and aborted\n" +
			"tasks; by filter only dead ones, unless --state says otherwise.",
		RunE: a.bulkRun(b),
	}
	b.flags(cmd)
	b.reasonFlag(cmd)
	return cmd
}

func (b *bulk) reasonFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&b.reason, "reason", "", "why (`TEXT`), for the record")
}

func (a *app) bulkRun(b *bulk) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		s, err := b.filter.selection(b.name, args, b.all, b.states)
		if err != nil {
			return err
		}
		return a.online(func(ctx context.Context, c *wire.Client, _ []string) error {
			return a.bulkAct(ctx, c, b, s)
		})(cmd, args)
	}
}

func (a *app) bulkAct(ctx context.Context, c *wire.Client, b *bulk, s view.Selection) error {
	if s.All {
		if ok, err := a.bulkAgreed(ctx, c, b, s); err != nil || !ok {
			return err
		}
	}
	changed, err := b.act(ctx, c, s)
	if err != nil {
		return fmt.Errorf("%s: %w", b.name, err)
	}
	if err := a.printChanged(b, changed); err != nil {
		return err
	}
	if run := runAmong(s.IDs); run != "" && b.name != "cancel" && changed.Changed < changed.Matched {
		a.say("hint: a run's tasks go on with it: apollo11 resume %s", run)
	}
	switch {
	case !s.All && (changed.Changed < changed.Matched || changed.Matched < len(s.IDs)):
		return &ExitError{Code: Failed} // each was named, and said above why not
	case s.All && changed.Matched > 0 && changed.Changed == 0:
		return &ExitError{Code: Failed} // all that matched were refused
	}
	return nil
}

// runAmong is the run of the first id that names a run's task; empty: none does.
func runAmong(ids []string) string {
	for _, id := range ids {
		if _, ok := cutRun(id); ok {
			run, _, _ := strings.Cut(id, ":")
			return clean(run)
		}
	}
	return ""
}

// bulkAgreed counts what matches and has it confirmed.
func (a *app) bulkAgreed(ctx context.Context, c *wire.Client, b *bulk, s view.Selection) (bool, error) {
	s.Count = true
	n, err := b.act(ctx, c, s)
	if err != nil {
		return false, fmt.Errorf("%s: %w", b.name, err)
	}
	if n.Matched == 0 {
		return false, a.printChanged(b, &view.Changed{})
	}
	what := task.Plural(n.Matched, "task")
	if len(n.Samples) > 0 {
		what += ", such as " + strings.Join(n.Samples, ", ")
	}
	if b.yes {
		a.say("%s: %s", b.name, what)
		return true, nil
	}
	err = a.agree(b.name, what, b.typed())
	return err == nil, err
}

// agree has a person confirm what was shown; typed is the command that asks
// nothing.
func (a *app) agree(command, what, typed string) error {
	if !a.Ask {
		return usage(typed, "%s: %s: not done without --yes, since nobody can be asked here", command, what)
	}
	if err := a.out.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(a.Stderr, "%s %s? [y/N] ", command, clean(what))
	answer, err := bufio.NewReader(a.Stdin).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "y" || answer == "yes" {
		return nil
	}
	if err != nil {
		fmt.Fprintln(a.Stderr) // the person's own newline is missing
	}
	return &ExitError{Code: Failed, Err: fmt.Errorf("%s: nothing changed", command)}
}

// typed is the command as it can be typed to do it without a question.
func (b *bulk) typed() string {
	out := "apollo11 " + b.name
	for _, flag := range []struct{ name, value string }{
		{"type", b.filter.typ}, {"state", b.filter.state}, {"error", b.filter.error}, {"reason", b.reason},
	} {
		if flag.value != "" {
			out += " --" + flag.name + " " + Quoted(flag.value)
		}
	}
	if b.filter.older > 0 {
		out += " --older " + b.filter.older.String()
	}
	if b.all {
		out += " --all"
	}
	return out + " --yes"
}

// Quoted is a word as a shell takes it.
func Quoted(word string) string {
	plain := func(r rune) bool {
		return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-.,:/=+", r))
	}
	if strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func (a *app) printChanged(b *bulk, n *view.Changed) error {
	for _, line := range n.Skipped {
		a.say("%s: not %s: %s", b.name, b.did, line)
	}
	if a.json {
		skipped := n.Skipped
		if skipped == nil {
			skipped = []string{}
		}
		return a.object(struct {
			Matched int      `json:"matched"`
			Changed int      `json:"changed"`
			Skipped []string `json:"skipped"`
		}{n.Matched, n.Changed, skipped})
	}
	if n.Changed < n.Matched {
		a.say("%d %s, %d of %d not", n.Changed, b.did, n.Matched-n.Changed, n.Matched)
		return nil
	}
	a.say("%d %s", n.Changed, b.did)
	return nil
}
