package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

// present is the moment that is not in the past.
const present = "now"

// instant is a moment as it was typed: a record's number, a time, or now.
type instant struct {
	text string
	seq  int64     // 0: a time, or now
	at   time.Time // zero: a record's number, or now
}

// parseInstant reads one; command is for messages.
func (a *app) parseInstant(text, command string) (instant, error) {
	if text == present {
		return instant{text: text}, nil
	}
	seq, at, err := parseEnd(text, a.Now())
	if err != nil {
		return instant{}, usage("apollo11 "+command+" 10m", "%s: %w", command, err)
	}
	return instant{text, seq, at}, nil
}

// record is the one that left what there was; 0: it is now.
func (i instant) record(ctx context.Context, past StateReader) (int64, error) {
	if i.at.IsZero() {
		return i.seq, nil
	}
	seq, err := past.Moment(ctx, i.at)
	if err == nil && seq == 0 {
		err = &ExitError{Code: Failed, Err: errors.New("nothing that is kept happened before"), Hint: "apollo11 replay --to " + i.text}
	}
	return seq, err
}

// endOfTime is after any record.
var endOfTime = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// written is record, but for one that was not written yet, which is refused.
func (i instant) written(ctx context.Context, past StateReader) (int64, error) {
	seq, err := i.record(ctx, past)
	if err != nil || i.seq == 0 {
		return seq, err
	}
	newest, err := past.Moment(ctx, endOfTime)
	if err == nil && newest > 0 && seq > newest { // 0: nothing is kept
		err = &ExitError{Code: Failed, Err: fmt.Errorf("the journal ends at record %d", newest), Hint: "apollo11 state --at " + fmt.Sprint(newest)}
	}
	return seq, err
}

// stateAt prints the global state as it was.
func (a *app) stateAt(ctx context.Context, when string, q view.KeyQuery) error {
	if len(q.Keys) == 0 {
		q.Keys = nil // an empty list is none of them to who reads files
	}
	at, err := a.parseInstant(when, "state --at")
	if err != nil {
		return err
	}
	return a.reading(ctx, "state", func(ctx context.Context, past Past) error {
		seq, err := at.written(ctx, past)
		if err != nil {
			return fmt.Errorf("state --at: %s: %w", clean(when), err)
		}
		return a.printKeys(q, func(q view.KeyQuery) (*view.KeyPage, error) { return past.KeysAt(ctx, seq, q) })
	})
}

func (a *app) stateDiffCommand() *cobra.Command {
	return &cobra.Command{
		Use: "diff WHEN [WHEN]", Short: "what changed in the global state between two moments; without the second, until now", Args: words(1, 2),
		Long: "What changed in the global state between two moments, each a record's number, a time as printed\n" +
			"(08:15:30) or RFC 3339, so long ago (10m), or now. The exit code is 0 if nothing did, else 1.\n" +
			"With --data DIR it reads a data folder or a backup; no controller is needed.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				args = append(args, present)
			}
			var moments [2]instant
			for i := range moments {
				var err error
				if moments[i], err = a.parseInstant(args[i], "state diff"); err != nil {
					return err
				}
			}
			return a.reading(cmd.Context(), "state diff", func(ctx context.Context, past Past) error {
				return a.stateDiff(ctx, past, moments)
			})
		},
	}
}

func (a *app) stateDiff(ctx context.Context, past Past, moments [2]instant) error {
	var states [2][]view.Key
	for i, m := range moments {
		seq, err := m.written(ctx, past)
		if err == nil {
			states[i], err = wholeState(ctx, past, seq)
		}
		if err != nil {
			return fmt.Errorf("state diff: %s: %w", clean(m.text), err)
		}
	}
	changes := keyChanges(states[0], states[1])
	if err := a.printChanges(changes); err != nil || len(changes) == 0 {
		return err
	}
	return &ExitError{Code: Failed}
}

// keyChanges are the keys that are not the same in two states, which are in order
// of key.
func keyChanges(before, after []view.Key) (list []view.KeyChange) {
	for len(before) > 0 || len(after) > 0 {
		switch order := compareHeads(before, after); {
		case order < 0:
			list = append(list, view.KeyChange{Key: before[0].Key, Before: before[0].Value, Gone: true})
			before = before[1:]
		case order > 0:
			list = append(list, view.KeyChange{Key: after[0].Key, After: after[0].Value, New: true})
			after = after[1:]
		default:
			if before[0].Value != after[0].Value {
				list = append(list, view.KeyChange{Key: before[0].Key, Before: before[0].Value, After: after[0].Value})
			}
			before, after = before[1:], after[1:]
		}
	}
	return list
}

// compareHeads says which list has the next key.
func compareHeads(a, b []view.Key) int {
	switch {
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	}
	return strings.Compare(a[0].Key, b[0].Key)
}

func (a *app) printChanges(changes []view.KeyChange) error {
	if len(changes) == 0 && !a.json {
		a.say("no difference")
		return nil
	}
	t := a.table(column{title: "KEY", least: 12}, column{title: "BEFORE", least: 12}, column{title: "AFTER", least: 12})
	return list(a, t, changes, changeCells)
}

func changeCells(c *view.KeyChange) []cell {
	before, after := cell{c.Before, red}, cell{c.After, green}
	if c.New {
		before = cell{"(not there)", dim}
	}
	if c.Gone {
		after = cell{"(not there)", dim}
	}
	return []cell{{text: c.Key}, before, after}
}

// restoring is the flags of state rollback.
type restoring struct {
	at     instant
	reason string
	yes    bool
}

func (a *app) restoreCommand() *cobra.Command {
	r := &restoring{}
	cmd := &cobra.Command{
		Use: "rollback WHEN --reason TEXT", Short: "put the global state back to what it was; shown before it is done", Args: words(1, 1),
		Long: "Put the keys of the global state back to what a moment had left: a record's number, or a time. What would\n" +
			"change is shown first. It is a change like any other: nothing is taken out of the journal.",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if strings.TrimSpace(r.reason) == "" {
				return usage("apollo11 state rollback WHEN --reason TEXT", "state rollback: %s: --reason is missing", clean(args[0]))
			}
			if r.at, err = a.parseInstant(args[0], "state rollback"); err != nil {
				return err
			}
			if args[0] == present {
				return usage("apollo11 state rollback 10m --reason TEXT", "state rollback: %s: the state is that already", present)
			}
			return a.online(func(ctx context.Context, c *wire.Client, _ []string) error { return a.restore(ctx, c, r) })(cmd, args)
		},
	}
	cmd.Flags().StringVar(&r.reason, "reason", "", "why (`TEXT`), for the record")
	cmd.Flags().BoolVar(&r.yes, "yes", false, "do not ask")
	return cmd
}

func (a *app) restore(ctx context.Context, c *wire.Client, r *restoring) error {
	seq, err := r.at.record(ctx, c)
	if err != nil {
		return fmt.Errorf("state rollback: %s: %w", clean(r.at.text), err)
	}
	would, err := c.Restore(ctx, wire.Restore{Seq: seq, Check: true, Reason: r.reason})
	if err != nil {
		return fmt.Errorf("state rollback: %w", err)
	}
	if len(would.Changed) == 0 {
		return a.done(restored(would), "state rollback: the state is as record %d left it already", seq)
	}
	if !a.json {
		if err := a.printChanges(would.Changed); err != nil {
			return err
		}
	}
	if !r.yes {
		what := fmt.Sprintf("%s back to what record %d left", task.Plural(changedKeys(would), "key"), seq)
		typed := fmt.Sprintf("apollo11 state rollback %d --reason %s --yes", seq, Quoted(r.reason))
		if err := a.agree("state rollback", what, typed); err != nil {
			return err
		}
	}
	did, err := c.Restore(ctx, wire.Restore{Seq: seq, Reason: r.reason})
	if err != nil {
		return fmt.Errorf("state rollback: %w", err)
	}
	return a.done(restored(did), "state rollback: put %s back to what record %d left", task.Plural(changedKeys(did), "key"), seq)
}

// changedKeys is how many keys change; of many only the first are listed.
func changedKeys(r *view.Restored) int { return max(r.Total, len(r.Changed)) }

// restored is the answer as JSON has it.
func restored(r *view.Restored) any {
	return struct {
		Seq     int64            `json:"seq"`
		Total   int              `json:"total"`
		Changed []view.KeyChange `json:"changed"`
	}{r.Seq, changedKeys(r), append([]view.KeyChange{}, r.Changed...)}
}
