package cli

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"apollo11/engine/task"
	"apollo11/wire"
)

func (a *app) logsCommand() *cobra.Command {
	var follow bool
	var attempt int
	cmd := &cobra.Command{
		Use: "logs TASK", Short: "what a task's unit printed", Args: words(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if attempt < 0 {
				return usage("", "logs: --attempt %d: want 1 or more", attempt)
			}
			return a.online(func(ctx context.Context, c *wire.Client, args []string) error {
				r := logReader{app: a, client: c, task: args[0], follow: follow}
				err := r.read(ctx, attempt)
				if err == nil && r.attempt == 0 && !a.json {
					a.say("%s: nothing printed", args[0])
				}
				if err == nil || stopped(ctx, err) {
					return r.end()
				}
				return fmt.Errorf("logs: %s: %w", args[0], err)
			})(cmd, args)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on as it prints, until the task has ended")
	cmd.Flags().IntVar(&attempt, "attempt", 0, "of try `N` (default the last)")
	return cmd
}

// logReader prints the output of one task's attempts.
type logReader struct {
	app     *app
	client  *wire.Client
	task    string
	follow  bool
	attempt int    // that is being read
	rest    []byte // of a line that has not ended
}

// read prints an attempt (0: the last) and, if it follows without an attempt
// named, those after it.
func (r *logReader) read(ctx context.Context, attempt int) error {
	q := wire.LogQuery{Task: r.task, Attempt: attempt}
	for {
		chunk, err := r.client.Logs(ctx, q)
		if r.follow && notFound(err) {
			chunk, err = &wire.LogChunk{}, nil // nothing printed yet, if there is such a task
		}
		if err != nil {
			return err
		}
		if err := r.take(chunk); err != nil {
			return err
		}
		if len(chunk.Data) > 0 {
			// The last attempt is meant as it was at the first answer: its
			// successor starts at its own offset 0.
			q.Attempt, q.Offset = chunk.Attempt, chunk.Next
			continue
		}
		if !r.follow {
			return nil
		}
		over, err := r.wait(ctx, chunk, &q, attempt != 0)
		if err != nil || over {
			return err
		}
	}
}

// wait is what to do when there is nothing more to print for now. An attempt
// that was named is followed to its end, else the task is, attempt by attempt.
func (r *logReader) wait(ctx context.Context, chunk *wire.LogChunk, q *wire.LogQuery, named bool) (over bool, err error) {
	if chunk.Ended && named {
		return true, nil
	}
	if chunk.Ended || chunk.Attempt == 0 {
		d, err := r.client.Task(ctx, r.task)
		if err != nil {
			return true, err
		}
		if known := max(chunk.Attempt, q.Attempt); !named && known > 0 && int(d.Attempt) > known {
			q.Attempt, q.Offset = known+1, 0
			return false, nil
		}
		if s, err := task.ParseState(d.State); err != nil || s.Terminal() {
			return true, err
		}
	}
	return false, r.app.pause(ctx, pollEvery)
}

// take prints a chunk: for a person or as JSON line by line, else as it is.
func (r *logReader) take(chunk *wire.LogChunk) error {
	if len(chunk.Data) == 0 {
		return nil
	}
	if r.attempt != 0 && chunk.Attempt != r.attempt {
		if err := r.end(); err != nil {
			return err
		}
		r.app.say("attempt %d:", chunk.Attempt)
	}
	r.attempt = chunk.Attempt
	if !r.app.json && !r.app.Terminal {
		_, err := r.app.out.Write(chunk.Data)
		return err
	}
	r.rest = append(r.rest, chunk.Data...)
	for {
		line, after, ok := bytes.Cut(r.rest, []byte{'\n'})
		if !ok {
			break
		}
		if err := r.line(line); err != nil {
			return err
		}
		r.rest = after
	}
	if len(r.rest) > maxLine {
		return r.end()
	}
	return nil
}

// end prints a last line that no newline ended.
func (r *logReader) end() error {
	if len(r.rest) == 0 {
		return nil
	}
	line := r.rest
	r.rest = nil
	return r.line(line)
}

func (r *logReader) line(line []byte) error {
	text := strings.TrimSuffix(string(line), "\r")
	if r.app.json {
		return r.app.object(struct {
			Attempt int    `json:"attempt"`
			Text    string `json:"text"`
		}{r.attempt, text})
	}
	parts := strings.Split(text, "\t")
	for i := range parts {
		parts[i] = clean(parts[i])
	}
	_, err := fmt.Fprintln(r.app.out, strings.Join(parts, "\t"))
	return err
}
