// Package controller is a running controller: its parts started, and stopped, in order.
//
// Started: the data folder is locked and recovered, the engine folds the
// journal, the address is opened (for a new folder before all else), the engine
// records its start and learns the missions, connections are taken, the folder
// says where. Stopped in the opposite order: the engine ends its last turn,
// connections get what is queued for them, the journal is closed.
//
// Goroutines: Run starts the engine's loop, the looks at the missions and at the
// folder and the server, and waits for all four.
package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"time"

	"apollo11/engine"
	"apollo11/snapshot"
	"apollo11/wire/server"
)

// ErrAddress is returned when the address can't be listened on.
var ErrAddress = errors.New("can't listen")

// Options say how to run. Dir, Addr and Now are needed.
type Options struct {
	Dir      string // data folder; made if it is not there
	Missions string // folder of mission files, looked at as long as it runs; empty: none
	Addr     string // host:port; port 0 takes a free one
	Settings engine.Settings
	Server   server.Options // what concerns connections; Engine, Listener and the rest are filled in
	Keep     time.Duration  // closed journal segments are kept so long; 0: for ever
	Log      *slog.Logger
	Now      func() time.Time
	Progress func(seq uint64) // called now and then while the journal is folded
}

// Controller is open: it holds its folder and its address.
type Controller struct {
	o        Options
	store    *snapshot.Store
	engine   *engine.Engine
	server   *server.Server
	missions *missions // nil: none
}

// Open takes folder and address and recovers the state. Nothing runs yet.
func Open(o Options) (_ *Controller, err error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Server.Addr = o.Addr
	if err := usedBefore(o.Dir); err != nil {
		return nil, err
	}
	if FolderID(o.Dir) == "" && o.Server.Listener == nil {
		// An address that is taken is to leave no new folder. One that was worked on
		// is recovered first: nobody is to wait at the door for that.
		if o.Server.Listener, err = server.Bind(&o.Server); err != nil {
			return nil, o.addressError(err)
		}
		defer func() {
			if err != nil {
				o.Server.Listener.Close()
			}
		}()
	}
	store, err := snapshot.Open(snapshot.Options{Dir: o.Dir, Log: o.Log}, o.Now())
	if err != nil {
		return nil, err
	}
	c := &Controller{o: o, store: store}
	err = removeAddr(o.Dir) // what a killed controller left says nothing any more
	if err == nil {
		err = c.open()
	}
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return c, nil
}

func (c *Controller) open() (err error) {
	o := c.o
	disk := disk{store: c.store, now: o.Now, keep: o.Keep, log: o.Log}
	repaired, err := snapshot.Repaired(o.Dir)
	if err != nil {
		return err
	}
	if !repaired.IsZero() {
		o.Settings.EpochFloor = max(o.Settings.EpochFloor, uint64(max(repaired.Unix(), 0)))
	}
	c.engine, err = engine.New(engine.Options{
		Store: c.store, Images: disk, Source: source{c.store}, Log: o.Log, Settings: o.Settings, Progress: o.Progress,
	})
	if err != nil {
		return err
	}
	if o.Missions != "" {
		if c.missions, err = newMissions(&o, c.engine); err != nil {
			return err
		}
	}
	serve := o.Server
	if serve.Folder, err = folderID(o.Dir); err != nil {
		return err
	}
	serve.Engine, serve.Log = c.engine, o.Log
	serve.LogDir = filepath.Join(o.Dir, "logs")
	past := newLooker(c.store, o.Settings)
	serve.Timeline, serve.Past = past.page, past
	if c.server, err = server.Listen(serve); err != nil {
		return o.addressError(err)
	}
	return nil
}

// addressError says that the address is at fault, unless the error says so.
func (o *Options) addressError(err error) error {
	if errors.Is(err, server.ErrOpenAddress) {
		return err
	}
	return fmt.Errorf("%w: %s: %w", ErrAddress, o.Addr, err)
}

// Addr is where the controller listens.
func (c *Controller) Addr() net.Addr { return c.server.Addr() }

// Run works until ctx ends, then stops in order; ready is called once commands
// are taken. An error means that the journal failed, or that the stop did.
func (c *Controller) Run(ctx context.Context, ready func()) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan error, 1)
	go func() { ended <- c.engine.Run(ctx) }()
	served := make(chan error, 1)
	select {
	case err := <-ended:
		c.server.Stop()
		return errors.Join(err, c.store.Close())
	case <-c.engine.Booted():
	}
	looked := c.lookAtMissions(ctx)
	go func() { served <- c.server.Serve() }()
	guarded := make(chan struct{})
	go func() {
		defer close(guarded)
		cancel(lookAtFolder(ctx, c.store.Look))
	}()
	err := writeAddr(c.o.Dir, c.Addr().String())
	if err == nil {
		ready()
		c.o.Log.Info("controller ready", "addr", c.Addr().String(), "data", c.o.Dir)
	} else {
		cancel(nil)
	}
	select {
	case failed := <-ended:
		err = errors.Join(err, failed)
		c.server.Stop()
		err = errors.Join(err, <-served)
	case failed := <-served:
		cancel(nil)
		err = errors.Join(err, failed, <-ended)
		c.server.Stop()
	}
	cancel(nil)
	<-looked
	<-guarded
	return c.leave(err, context.Cause(ctx))
}

// leave gives the folder up, after err; why is what ended the work.
func (c *Controller) leave(err, why error) error {
	if errors.Is(why, snapshot.ErrMoved) && !errors.Is(err, snapshot.ErrMoved) {
		err = errors.Join(why, err)
	}
	if !errors.Is(err, snapshot.ErrMoved) { // else the name may be another's
		err = errors.Join(err, removeAddr(c.o.Dir))
	}
	return errors.Join(err, c.store.Close())
}

// lookAtMissions makes the missions known, and then keeps them so until ctx ends.
func (c *Controller) lookAtMissions(ctx context.Context) (ended chan struct{}) {
	ended = make(chan struct{})
	if c.missions == nil {
		close(ended)
		return ended
	}
	c.missions.turn(ctx, true)
	go func() {
		defer close(ended)
		c.missions.run(ctx)
	}()
	return ended
}
