package engine

import (
	"apollo11/engine/mission"
	"apollo11/engine/task"
	"apollo11/engine/view"
)

// SetMissions says which missions the folder holds now: what is known by name,
// and what triggers. Answered Done.
type SetMissions struct{ Missions []NamedMission }

// NamedMission is a mission that is known by its name.
type NamedMission struct {
	Name    string
	File    string           // where it was read
	Mission *mission.Mission // nil: the file was never right
	Fault   string           // what is wrong with the file now; Mission is what it said when it was right
}

// StartRun starts a mission: the one that is given, or the one known by Name.
// Answered *view.Run; a fault of the mission is a mission.Faults.
type StartRun struct {
	Mission *mission.Mission // nil: by Name
	Name    string
	Params  task.Values
	Key     string // names the run within its mission: the same again is answered the first one
	Sample  int    // more than 0: try it on so much of the data
	Check   bool   // only check
	Actor   string
}

// Resume starts a run that goes on from one that failed: what succeeded with
// unchanged inputs is not run again. Answered *view.Run.
type Resume struct{ Run, Actor string }

// Rerun starts a run (or submits a task) with the very same inputs. Answered *view.Run for a run, []view.Submitted for a task.
type Rerun struct {
	ID        string
	AtContext bool // pin the context that it saw then
	Actor     string
}

// Fork starts a run that reuses what does not depend on a unit, and changes
// that unit's inputs. Answered *view.Run.
type Fork struct {
	Run   string
	From  string // unit
	With  task.Values
	Actor string
}

// CancelRun ends a run and all its tasks. Answered *view.Run.
type CancelRun struct{ Run, Reason, Actor string }

// Rollback starts a run that undoes what a run did, the latest first.
// Answered *view.Undone.
type Rollback struct {
	Run   string
	To    string // unit: what ran before it stays; empty: everything is undone
	Check bool   // only say what would be done
	Actor string
}

// Restore puts the global state back to what it was. Answered *view.Restored.
type Restore struct {
	Seq    int64       // the moment meant
	Keys   task.Values // the whole state then, but for sys. keys
	Check  bool        // only say what would change
	Reason string
	Actor  string
}

// Happening is an event by name, which starts the missions that wait for it.
// Answered []view.Run.
type Happening struct {
	Name   string
	Values task.Values // parameters of those missions
	Actor  string
}

// FileSeen says that a file came that a mission's trigger waits for. The same
// file again, unchanged, starts nothing. Answered []view.Run.
type FileSeen struct {
	Mission string
	Trigger int    // index
	Path    string // absolute
	Stamp   string // changes when the file does
}

// GetRuns is answered *view.RunPage.
type GetRuns struct{ Query view.RunQuery }

// GetRun is answered *view.RunDetail, or ErrNotFound; ID may be a unique prefix.
type GetRun struct {
	ID     string
	Cursor string // of the page of units before; empty: the first
}

// GetSpec is answered string, the canonical text of the mission that a run
// executes, or that is known by a name.
type GetSpec struct{ Run, Mission string }

// GetMissions is answered []view.Mission, by name.
type GetMissions struct{}

// GetStats is answered []view.TypeStats, by type.
type GetStats struct{}

func (SetMissions) command() {}
func (StartRun) command()    {}
func (Resume) command()      {}
func (Rerun) command()       {}
func (Fork) command()        {}
func (CancelRun) command()   {}
func (Rollback) command()    {}
func (Restore) command()     {}
func (Happening) command()   {}
func (FileSeen) command()    {}
func (GetRuns) command()     {}
func (GetRun) command()      {}
func (GetSpec) command()     {}
func (GetMissions) command() {}
func (GetStats) command()    {}
