package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"apollo11/engine/view"
	"apollo11/wire"
)

// Past is where things are looked up that have happened: a controller, or files
// of one.
type Past interface {
	Timeline
	RunReader
	StateReader
}

// RunReader looks up runs.
type RunReader interface {
	// Run is a run with a page of its units; id may be a unique prefix, and an empty
	// cursor asks for the first page.
	Run(ctx context.Context, id, cursor string) (*view.RunDetail, error)
	Runs(ctx context.Context, q view.RunQuery) (*view.RunPage, error)
}

// StateReader looks up the global state.
type StateReader interface {
	// KeysAt is a page of the state as record seq left it; 0: as it is now.
	KeysAt(ctx context.Context, seq int64, q view.KeyQuery) (*view.KeyPage, error)
	// Moment is the last record that is not after a time; 0: there was none yet.
	Moment(ctx context.Context, when time.Time) (int64, error)
}

// wholeRun is a run with all its units.
func wholeRun(ctx context.Context, r RunReader, id string) (*view.RunDetail, error) {
	d, err := r.Run(ctx, id, "")
	if err != nil {
		return nil, err
	}
	for cursor := d.Cursor; cursor != ""; {
		page, err := r.Run(ctx, d.ID, cursor)
		if err != nil {
			return nil, err
		}
		if page.Cursor == cursor {
			return nil, fmt.Errorf("%s: the page after %s never ends", d.ID, clean(cursor))
		}
		d.Units = append(d.Units, page.Units...)
		cursor = page.Cursor
	}
	d.Cursor = ""
	return d, nil
}

// wholeState is the global state as record seq left it.
func wholeState(ctx context.Context, r StateReader, seq int64) ([]view.Key, error) {
	var keys []view.Key
	for q := (view.KeyQuery{}); ; {
		page, err := r.KeysAt(ctx, seq, q)
		if err != nil {
			return nil, err
		}
		keys = append(keys, page.Keys...)
		if page.Cursor == "" || page.Cursor == q.Cursor {
			return keys, nil
		}
		q.Cursor = page.Cursor
	}
}

// looksLikeRun tells a run's id from a task's before anybody is asked: r-0001 is
// one, and r-0001:fetch is a task of it.
func looksLikeRun(id string) bool {
	return strings.HasPrefix(id, "r-") && !strings.Contains(id, ":")
}

// reading reads what has happened: from files if --data names some, else from
// the controller.
func (a *app) reading(ctx context.Context, command string, read func(context.Context, Past) error) error {
	if a.dataSet && a.addr == "" {
		return a.readFiles(ctx, a.data, command, read)
	}
	c, err := a.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := read(ctx, c); err != nil {
		return a.failure(err)
	}
	return nil
}

// readFiles reads a data folder, a backup or a journal file.
func (a *app) readFiles(ctx context.Context, path, command string, read func(context.Context, Past) error) error {
	if a.Offline == nil {
		return usage("", "%s: %s: this build reads no files", command, path)
	}
	source, err := a.Offline(path)
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	if closer, ok := source.(interface{ Close() error }); ok {
		defer closer.Close()
	}
	past, ok := source.(Past)
	if !ok {
		return usage("", "%s: %s: this build reads only the timeline of files", command, path)
	}
	return read(ctx, past)
}

// cutRun is the unit's name in the id of a run's task, RUN:UNIT.
func cutRun(id string) (unit string, ok bool) {
	run, unit, ok := strings.Cut(id, ":")
	return unit, ok && looksLikeRun(run)
}

// wholeOnly refuses the id of a run's task where a run is meant; instead is what
// can be typed, of the run and the unit.
func wholeOnly(command, id, instead string) error {
	unit, ok := cutRun(id)
	if !ok {
		return nil
	}
	run, _, _ := strings.Cut(id, ":")
	typed := strings.NewReplacer("RUN", Quoted(run), "UNIT", Quoted(unit)).Replace(instead)
	return usage("apollo11 "+typed, "%s: %s: is a unit of %s", command, clean(id), clean(run))
}

// nowhere hints at where an id would be found that nobody knows: a unit among
// those of its run.
func nowhere(err error, id string) error {
	if _, ok := cutRun(id); ok {
		run, _, _ := strings.Cut(id, ":")
		return hinted(err, wire.CodeNotFound, "apollo11 show "+Quoted(clean(run)))
	}
	return err
}
