package wire

import (
	"context"
	"errors"
	"fmt"
	"time"

	"apollo11/engine/task"
	"apollo11/engine/view"
)

// Upload gives the controller a mission file, for a Start with this File on the
// same Client. What is wrong with it is in the *Error, a line for each fault.
func (c *Client) Upload(ctx context.Context, file string, text []byte) error {
	frames, err := AppendUpload(nil, file, text, MaxFrame)
	if err != nil {
		return err
	}
	return c.ask(ctx, frames, done)
}

// oneRun asks and reads a run.
func (c *Client) oneRun(ctx context.Context, request []byte) (*view.Run, error) {
	list, err := askRows[view.Run](ctx, c, request, nil)
	return only(list, err)
}

// Start starts a mission, or checks whether it could be. What is wrong with it is
// in the *Error, a line for each fault.
func (c *Client) Start(ctx context.Context, s Start) (*view.Run, error) {
	if err := checkValues("parameter", s.Params); err != nil {
		return nil, err
	}
	return c.oneRun(ctx, AppendStart(nil, &s))
}

// Resume starts a run that goes on from one that failed; run may be a unique
// prefix, here and below.
func (c *Client) Resume(ctx context.Context, run string) (*view.Run, error) {
	return c.oneRun(ctx, AppendName(nil, OpResume, run))
}

// Rerun starts a run, or submits a task, with the very same inputs. One of the
// two answers is there.
func (c *Client) Rerun(ctx context.Context, id string, atContext bool) (run *view.Run, tasks []view.Submitted, err error) {
	err = c.ask(ctx, AppendRerun(nil, id, atContext), func(m *Message) (err error) {
		if m.Text("0.mission") == "" { // which every run has
			tasks, err = ParseSubmitted(tasks, m)
			return err
		}
		run = new(view.Run)
		return eachRow(m, func(row *Message) error { return ReadRow(row, run) })
	})
	return run, tasks, err
}

// Fork starts a run that takes over what does not depend on a unit.
func (c *Client) Fork(ctx context.Context, f Fork) (*view.Run, error) {
	if err := checkValues("input", f.With); err != nil {
		return nil, err
	}
	return c.oneRun(ctx, AppendFork(nil, &f))
}

// CancelRun ends a run and all its tasks.
func (c *Client) CancelRun(ctx context.Context, run, reason string) (*view.Run, error) {
	return c.oneRun(ctx, AppendCancelRun(nil, run, reason))
}

// Rollback undoes what a run did, or tells what that would be.
func (c *Client) Rollback(ctx context.Context, r Rollback) (*view.Undone, error) {
	var rows undoneRows
	err := c.ask(ctx, AppendRollback(nil, &r), rows.read)
	if err == nil && rows.n == 0 {
		err = errors.New("answer without a run")
	}
	return &rows.Undone, err
}

// Restore puts the global state back, or tells what would change.
func (c *Client) Restore(ctx context.Context, r Restore) (*view.Restored, error) {
	answer := new(view.Restored)
	var err error
	answer.Changed, err = askRows[view.KeyChange](ctx, c, AppendRestore(nil, &r), func(f *fields) {
		if f.text("at") != "" {
			answer.Seq, answer.Total = int64(f.count("at")), int(f.count("total"))
		}
	})
	return answer, err
}

// Event tells the controller of an event by name. It answers the runs that the
// event started.
func (c *Client) Event(ctx context.Context, h Happening) ([]view.Run, error) {
	if err := checkValues("parameter", h.Params); err != nil {
		return nil, err
	}
	return askRows[view.Run](ctx, c, AppendEvent(nil, &h), nil)
}

// Runs asks for a page of runs.
func (c *Client) Runs(ctx context.Context, q view.RunQuery) (*view.RunPage, error) {
	p := new(view.RunPage)
	var err error
	p.Runs, err = askRows[view.Run](ctx, c, AppendRuns(nil, &q), func(f *fields) { p.Cursor = f.text("cursor") })
	return p, err
}

// Run asks for a run with a page of its units; id may be a unique prefix, an
// empty cursor asks for the first page.
func (c *Client) Run(ctx context.Context, id, cursor string) (*view.RunDetail, error) {
	var rows runRows
	err := c.ask(ctx, AppendShow(nil, id, cursor), rows.read)
	if err == nil && rows.n == 0 {
		err = errors.New("answer without a run")
	}
	if err != nil {
		return nil, err
	}
	return &rows.RunDetail, nil
}

// RunSpec asks for the text of the mission that a run executes.
func (c *Client) RunSpec(ctx context.Context, run string) (string, error) {
	return c.spec(ctx, SpecQuery{Run: run})
}

// MissionSpec asks for the text of a mission that is known by name.
func (c *Client) MissionSpec(ctx context.Context, name string) (string, error) {
	return c.spec(ctx, SpecQuery{Mission: name})
}

func (c *Client) spec(ctx context.Context, q SpecQuery) (string, error) {
	var text []byte
	hash := ""
	for {
		var p *SpecPiece
		err := c.ask(ctx, AppendSpec(nil, &q), func(m *Message) (err error) {
			p, err = ParseSpecPiece(m)
			return err
		})
		switch {
		case err != nil:
			return "", err
		case hash != "" && p.Hash != hash:
			return "", fmt.Errorf("%s%s: the mission has changed meanwhile", q.Run, q.Mission)
		case p.Next <= q.Offset && p.Next < p.Size:
			return "", errors.New("answer that does not go on")
		}
		hash, q.Offset = p.Hash, p.Next
		text = append(text, p.Text...)
		if p.Next < p.Size {
			continue
		}
		if task.HashText(text) != hash {
			return "", fmt.Errorf("%s%s: the text that came is not the mission's", q.Run, q.Mission)
		}
		return string(text), nil
	}
}

// Missions asks for all missions that are known by name.
func (c *Client) Missions(ctx context.Context) ([]view.Mission, error) {
	return askRows[view.Mission](ctx, c, AppendControl(nil, OpMissions), nil)
}

// Stats asks how long the attempts of each type take.
func (c *Client) Stats(ctx context.Context) ([]view.TypeStats, error) {
	return askRows[view.TypeStats](ctx, c, AppendControl(nil, OpStats), nil)
}

// Moment asks for the last record that is not after a time.
func (c *Client) Moment(ctx context.Context, when time.Time) (int64, error) {
	var seq int64
	err := c.ask(ctx, AppendMoment(nil, view.Time{Time: when}), func(m *Message) (err error) {
		seq, err = ParseSeq(m)
		return err
	})
	return seq, err
}
