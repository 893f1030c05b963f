package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

// submission is the flags of submit and what came of them.
type submission struct {
	id, key      string
	at, deadline string
	retries      int
	timeout      time.Duration
	count        int
	file         string
	wait         bool

	specs []task.Spec
	lines []int // of the file, by spec; nil: no file
}

// A batch is one submit, all or none.
const (
	batchTasks = 1000
	batchBytes = 512 << 10
)

func (a *app) submitCommand() *cobra.Command {
	s := &submission{}
	cmd := &cobra.Command{
		Use: "submit TYPE [name=value…] | --file JOBS.jsonl", Short: "hand in tasks; prints their ids", Args: words(0, -1),
		Long: "Hand in a task of TYPE with inputs, or every line of a file: {\"type\":\"fetch\",\"in\":{\"url\":\"…\"}},\n" +
			"optionally with \"id\" or \"key\". All lines are checked first; if one is bad, nothing is handed in.\n" +
			"A line without id and key gets a key made of the file's content and the line's number, so that\n" +
			"handing in the same file again changes nothing.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.prepare(s, cmd, args); err != nil {
				return err
			}
			return a.online(func(ctx context.Context, c *wire.Client, _ []string) error { return a.submit(ctx, c, s) })(cmd, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&s.id, "id", "", "the task's `ID`; the same again is the same task")
	flags.StringVar(&s.key, "key", "", "names the work within its type (`KEY`); the same again is the same task")
	flags.StringVar(&s.at, "at", "", "not before `TIME`: RFC 3339, or from now, such as 10m")
	flags.StringVar(&s.deadline, "deadline", "", "start by `TIME` or expire: RFC 3339, or from now")
	flags.IntVar(&s.retries, "retries", task.Unset, "repeats after a failed attempt (default the unit's)")
	flags.DurationVar(&s.timeout, "timeout", 0, "longest execution (default the unit's)")
	flags.IntVar(&s.count, "count", 1, "hand in `N` of them")
	flags.StringVar(&s.file, "file", "", "hand in the lines of `JOBS.jsonl`; - is standard input")
	flags.BoolVar(&s.wait, "wait", false, "wait until all have ended; exit 1 if one did not succeed")
	return cmd
}

const submitHint = "apollo11 submit TYPE name=value"

// prepare makes the specs and checks all that can be checked here.
func (a *app) prepare(s *submission, cmd *cobra.Command, args []string) error {
	var common task.Spec
	if err := a.common(s, cmd, &common); err != nil {
		return err
	}
	if s.file != "" {
		if len(args) > 0 || s.id != "" || s.key != "" || s.count != 1 {
			return usage("apollo11 submit --file "+s.file, "submit: --file stands alone: types, inputs, ids and keys are in the file")
		}
		return a.readFile(s, common)
	}
	if len(args) == 0 {
		return usage(submitHint, "submit: of which type")
	}
	inputs, err := parsePairs(args[1:])
	if err != nil {
		return usage(submitHint, "submit: %w", err)
	}
	common.ID, common.Key, common.Type, common.Inputs = s.id, s.key, args[0], inputs
	if err := checkSpec(&common); err != nil {
		return usage(submitHint, "submit: %w", err)
	}
	for range s.count {
		s.specs = append(s.specs, common)
	}
	return nil
}

// maxCount bounds --count: beyond it, bench is the tool.
const maxCount = 1_000_000

// common reads the flags that hold for every task.
func (a *app) common(s *submission, cmd *cobra.Command, spec *task.Spec) (err error) {
	now := a.Now()
	if spec.NotBefore, err = parseTime(s.at, now, 1); err != nil {
		return usage("apollo11 submit TYPE --at 10m", "submit: --at: %w", err)
	}
	if spec.Deadline, err = parseTime(s.deadline, now, 1); err != nil {
		return usage("apollo11 submit TYPE --deadline 10m", "submit: --deadline: %w", err)
	}
	spec.Retries, spec.Timeout = s.retries, s.timeout
	switch {
	case cmd.Flags().Changed("retries") && (s.retries < 0 || s.retries > 1000):
		return usage("", "submit: --retries %d: want 0 to 1000", s.retries)
	case cmd.Flags().Changed("timeout") && s.timeout <= 0:
		return usage("", "submit: --timeout %s: want a time such as 30s", s.timeout)
	case cmd.Flags().Changed("id") && s.id == "", cmd.Flags().Changed("key") && s.key == "":
		return usage("", "submit: --id and --key must not be empty: the work would have no name, and be done twice")
	case s.count < 1 || s.count > maxCount:
		return usage("", "submit: --count %d: want 1 to %d", s.count, maxCount)
	case s.count > 1 && (s.id != "" || s.key != ""):
		return usage("", "submit: --count together with --id or --key: they would all be one task")
	}
	return nil
}

func (a *app) readFile(s *submission, common task.Spec) (err error) {
	name, r := s.file, a.Stdin
	if name == "-" {
		name = "standard input"
	} else {
		f, err := os.Open(name)
		if err != nil {
			return usage("", "submit: %s: %w", name, bare(err))
		}
		defer f.Close()
		r = f
	}
	s.file = name
	s.specs, s.lines, err = readJobs(name, r)
	for i := range s.specs {
		common.ID, common.Key, common.Type, common.Inputs = s.specs[i].ID, s.specs[i].Key, s.specs[i].Type, s.specs[i].Inputs
		s.specs[i] = common
	}
	return err
}

// parsePairs reads name=value arguments.
func parsePairs(args []string) (task.Values, error) {
	list := make([]task.Value, len(args))
	for i, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, fmt.Errorf("%s: want name=value", clean(arg))
		}
		list[i] = task.Value{Name: name, Value: value}
	}
	return task.NewValues(list)
}

// checkSpec refuses what the controller would.
func checkSpec(s *task.Spec) error {
	if err := task.CheckType(s.Type); err != nil {
		return err
	}
	for _, name := range []string{s.ID, s.Key} {
		if name == "" {
			continue
		}
		if err := task.CheckID(name); err != nil {
			return err
		}
	}
	for _, v := range s.Inputs {
		if err := checkInput(v.Name); err != nil {
			return err
		}
		if !utf8.ValidString(v.Value) {
			return fmt.Errorf("input %s: not UTF-8", v.Name)
		}
	}
	if size := s.Inputs.Size(); size > task.MaxBytes {
		return fmt.Errorf("inputs of %d bytes: want at most %d", size, task.MaxBytes)
	}
	return nil
}

// checkInput refuses what no input may be called.
func checkInput(name string) error {
	if err := task.CheckKey(name); err != nil {
		return fmt.Errorf("input %w", err)
	}
	if task.Reserved(name) {
		return fmt.Errorf("input %s: the name belongs to the protocol", name)
	}
	return nil
}

// parseTime reads a moment: RFC 3339, local date and time, or a duration from
// now (sign 1) or before now (sign -1). Empty text is the zero time.
func parseTime(text string, now time.Time, sign time.Duration) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		if d < 0 {
			return time.Time{}, fmt.Errorf("%s: is negative", text)
		}
		return now.Add(sign * d), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02 15:04"} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s: want a time such as 2026-01-31T08:00:00Z, or a duration such as 10m", clean(text))
}

// submit sends the specs batch by batch and prints what came back.
func (a *app) submit(ctx context.Context, c *wire.Client, s *submission) error {
	var ids []string
	r := receipt{app: a, quiet: a.json && s.wait, warned: map[string]bool{}}
	if err := s.check(ctx, c); err != nil {
		return err
	}
	bar := a.progress("submitted", len(s.specs))
	for from := 0; from < len(s.specs); {
		to := batchEnd(s.specs, from)
		got, err := c.Submit(ctx, s.specs[from:to])
		if err == nil && len(got) != to-from {
			err = fmt.Errorf("%d answers for %d tasks", len(got), to-from)
		}
		if err != nil {
			bar.Clear()
			return s.refused(from, err)
		}
		if err := r.print(got); err != nil {
			return err
		}
		if s.wait {
			for i := range got {
				ids = append(ids, got[i].ID)
			}
		}
		from = to
		bar.Show(from)
		if err := a.out.Flush(); err != nil {
			return err
		}
	}
	bar.Clear()
	if r.existed > 0 {
		a.say("%d of %d were there already", r.existed, len(s.specs))
	}
	if s.wait {
		return a.waitFor(ctx, c, ids)
	}
	return nil
}

// check asks about a file that takes more than one batch before any of it is
// submitted: either all lines are good, or all bad ones are named.
func (s *submission) check(ctx context.Context, c *wire.Client) error {
	if s.lines == nil || batchEnd(s.specs, 0) == len(s.specs) {
		return nil
	}
	var faults []string
	for from := 0; from < len(s.specs); {
		to := batchEnd(s.specs, from)
		err := c.Check(ctx, s.specs[from:to])
		var said *wire.Error
		if err != nil && (!errors.As(err, &said) || len(said.Faults) == 0) {
			return s.refused(0, err)
		}
		if err != nil {
			faults = append(faults, s.faults(from, said)...)
		}
		from = to
	}
	if len(faults) > 0 {
		return badLines(Failed, faults)
	}
	return nil
}

// faults are the lines that the controller would not take.
func (s *submission) faults(from int, said *wire.Error) (list []string) {
	for _, f := range said.Faults {
		if i := from + f.Index; f.Index >= 0 && i < len(s.lines) {
			list = append(list, fmt.Sprintf("submit: %s:%d: %s", s.file, s.lines[i], strings.ReplaceAll(f.Message, "\n", "; ")))
		}
	}
	return list
}

// batchEnd is where the batch that starts at from ends.
func batchEnd(specs []task.Spec, from int) int {
	size := 0
	for i := from; i < len(specs); i++ {
		size += specs[i].Inputs.Size() + len(specs[i].ID) + len(specs[i].Key) + 200
		if i > from && (size > batchBytes || i-from == batchTasks) {
			return i
		}
	}
	return len(specs)
}

// refused names the lines that the controller did not take; none of their
// batch was.
func (s *submission) refused(from int, err error) error {
	var said *wire.Error
	if !errors.As(err, &said) || s.lines == nil {
		err = fmt.Errorf("submit: %w", err)
	} else {
		faults := s.faults(from, said)
		if len(faults) == 0 {
			faults = []string{fmt.Sprintf("submit: %s:%d: %s", s.file, s.lines[from], said.Message)}
		}
		code, _ := meaning(said.Code)
		err = &ExitError{Code: code, Err: errors.New(strings.Join(faults, "\n"))}
	}
	if from == 0 {
		return err
	}
	before := fmt.Errorf("submit: the first %d are submitted already, the rest is not", from)
	if s.lines != nil {
		before = fmt.Errorf("submit: %s: all up to line %d is submitted, the rest is not", s.file, s.lines[from-1])
	}
	return &ExitError{Code: Failed, Err: fmt.Errorf("%w\n%w", err, before), Hint: "correct the rest in a file of its own: another content is other keys"}
}

// receipt prints accepted tasks.
type receipt struct {
	app     *app
	quiet   bool // the ended tasks will be printed instead
	existed int
	warned  map[string]bool // a warning that holds for many is given once
}

func (r *receipt) print(list []view.Submitted) error {
	for i := range list {
		s := &list[i]
		if s.Existed {
			r.existed++
		}
		if s.Warning != "" && !r.warned[s.Warning] {
			r.warned[s.Warning] = true
			r.app.warn("%s: %s", s.ID, s.Warning)
		}
		var err error
		switch {
		case r.quiet:
		case r.app.json:
			err = r.app.object(struct {
				ID      string `json:"id"`
				State   string `json:"state"`
				Existed bool   `json:"existed"`
				Warning string `json:"warning,omitempty"`
			}{s.ID, s.State.String(), s.Existed, s.Warning})
		default:
			_, err = io.WriteString(r.app.out, clean(s.ID)+"\n")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// waitFor returns when all tasks have ended. It asks for one after the other:
// when the first has ended, most others have.
func (a *app) waitFor(ctx context.Context, c *wire.Client, ids []string) error {
	bar := a.progress("ended", len(ids))
	defer bar.Clear()
	ended := view.Counts{}
	for i, id := range ids {
		bar.Show(i)
		d, err := a.ended(ctx, c, id)
		if stopped(ctx, err) {
			bar.Clear()
			return &ExitError{Code: Failed, Err: errors.New("submit: interrupted; the tasks go on"), Hint: "apollo11 task " + id}
		}
		if err != nil {
			return fmt.Errorf("submit: waiting for %s: %w", id, err)
		}
		ended[d.State]++
		if a.json {
			err = a.object(&d.Task)
		} else if d.State != task.Succeeded.String() {
			bar.Clear()
			a.say("%s: %s", id, strings.TrimSuffix(d.State+": "+failText(d.ErrorClass, d.Error), ": "))
		}
		if err != nil {
			return err
		}
	}
	bar.Clear()
	a.say("%s", counts(ended, taskStates()))
	if ended[task.Succeeded.String()] < int64(len(ids)) {
		return &ExitError{Code: Failed}
	}
	return nil
}

// taskReader looks up tasks.
type taskReader interface {
	Task(ctx context.Context, id string) (*view.Detail, error)
}

// ended polls one task, ever more slowly, until it has ended.
func (a *app) ended(ctx context.Context, c taskReader, id string) (*view.Detail, error) {
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		d, err := c.Task(ctx, id)
		if err != nil {
			return nil, err
		}
		if s, err := task.ParseState(d.State); err != nil || s.Terminal() {
			return d, err
		}
		if err := a.pause(ctx, wait); err != nil {
			return nil, err
		}
	}
}
