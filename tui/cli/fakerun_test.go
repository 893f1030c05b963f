package cli

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"apollo11/engine/view"
	"apollo11/wire"
)

// fakeRuns is what the fake knows of runs.
type fakeRuns struct {
	runs     []view.Run
	shown    map[string][]view.RunDetail // by id; the last one stays
	missions []view.Mission
	stats    []view.TypeStats
	specs    map[string]string // by mission
	started  view.Run          // answers what starts a run
	again    []view.Submitted  // answers a rerun of a task
	happened []view.Run
	undone   view.Undone
	restored view.Restored
	past     map[int64][]view.Key
	moment   int64
	uploaded string
}

// perShow is how many units the fake gives at once.
const perShow = 2

// answerRun answers what concerns runs; nil: it doesn't.
func (f *fake) answerRun(op wire.Op, m *wire.Message) []byte {
	switch op {
	case wire.OpUpload:
		return f.upload(m)
	case wire.OpRun:
		s, err := wire.ParseStart(m)
		f.check(err)
		f.note("run %+v", *s)
		return rows(f.t, nil, &f.started)
	case wire.OpRerun:
		id, at, err := wire.ParseRerun(m)
		f.check(err)
		f.note("rerun %s %v", id, at)
		if f.again != nil {
			out, err := wire.AppendSubmitted(nil, f.again, wire.MaxFrame)
			f.check(err)
			return out
		}
		return rows(f.t, nil, &f.started)
	case wire.OpFork:
		r, err := wire.ParseFork(m)
		f.check(err)
		f.note("fork %+v", *r)
		return rows(f.t, nil, &f.started)
	case wire.OpResume:
		f.note("resume %s", m.Text("id"))
		return rows(f.t, nil, &f.started)
	case wire.OpCancelRun:
		id, reason, err := wire.ParseCancelRun(m)
		f.check(err)
		f.note("cancelrun %s %s", id, reason)
		if len(f.shown[id]) == 0 {
			return missing()
		}
		return rows(f.t, nil, &f.shown[id][0].Run)
	case wire.OpShow:
		return f.show(m)
	case wire.OpRuns:
		return f.runPage(m)
	case wire.OpMissions:
		return rows(f.t, nil, pointers[view.Mission](f.missions)...)
	case wire.OpStats:
		return rows(f.t, nil, pointers[view.TypeStats](f.stats)...)
	}
	return f.answerPast(op, m)
}

func (f *fake) answerPast(op wire.Op, m *wire.Message) []byte {
	switch op {
	case wire.OpEvent:
		h, err := wire.ParseEvent(m)
		f.check(err)
		f.note("event %+v", *h)
		return rows(f.t, nil, pointers[view.Run](f.happened)...)
	case wire.OpRollback:
		r, err := wire.ParseRollback(m)
		f.check(err)
		f.note("rollback %+v", *r)
		out, err := wire.AppendUndone(nil, &f.undone, wire.MaxFrame)
		f.check(err)
		return out
	case wire.OpRestore:
		r, err := wire.ParseRestore(m)
		f.check(err)
		f.note("restore %+v", *r)
		out, err := wire.AppendRestored(nil, &f.restored, wire.MaxFrame)
		f.check(err)
		return out
	case wire.OpSpec:
		q, err := wire.ParseSpec(m)
		f.check(err)
		return wire.AppendSpecPiece(nil, wire.CutSpec(f.specs[q.Mission], q.Offset))
	case wire.OpMoment:
		when, err := wire.ParseMoment(m)
		f.check(err)
		f.note("moment %s", when.UTC().Format(time.RFC3339))
		return wire.AppendSeq(nil, f.moment)
	}
	return nil
}

func missing() []byte {
	return wire.AppendError(nil, &wire.Error{Code: wire.CodeNotFound, Message: "not found"})
}

func (f *fake) upload(m *wire.Message) []byte {
	var u wire.Upload
	done, err := u.Add(m)
	f.check(err)
	f.note("upload %s %v", u.File, done)
	f.uploaded = string(u.Text)
	return wire.AppendAck(nil, &wire.Ack{})
}

func (f *fake) show(m *wire.Message) []byte {
	id, cursor, err := wire.ParseShow(m)
	f.check(err)
	list := f.shown[id]
	if len(list) == 0 {
		return missing()
	}
	d := list[0]
	if len(list) > 1 && cursor == "" {
		f.shown[id] = list[1:]
	}
	from, _ := strconv.Atoi(cursor)
	to := min(from+perShow, len(d.Units))
	if d.Units = d.Units[from:to]; to < len(list[0].Units) {
		d.Cursor = strconv.Itoa(to)
	}
	out, err := wire.AppendRun(nil, &d, wire.MaxFrame)
	f.check(err)
	return out
}

func (f *fake) runPage(m *wire.Message) []byte {
	q, err := wire.ParseRuns(m)
	f.check(err)
	f.note("runs mission=%s state=%s limit=%d cursor=%s", q.Mission, q.State, q.Limit, q.Cursor)
	from, _ := strconv.Atoi(q.Cursor)
	var page view.RunPage
	for i := from; i < len(f.runs); i++ {
		if len(page.Runs) == q.Limit {
			page.Cursor = strconv.Itoa(i)
			break
		}
		if r := f.runs[i]; (q.Mission == "" || q.Mission == r.Mission) && (q.State == "" || q.State == r.State) {
			page.Runs = append(page.Runs, r)
		}
	}
	return rows(f.t, wire.RunsHead(&page), pointers[view.Run](page.Runs)...)
}

// keysAt are the keys of a moment.
func (f *fake) keysAt(seq int64) []view.Key {
	if seq == 0 {
		return f.keys
	}
	return f.past[seq]
}

// flight is a run with its units: a reused one, one that took two tries, one
// that failed, and two that never came to it.
func flight(id string) view.RunDetail {
	return view.RunDetail{
		Run: view.Run{
			ID: id, Mission: "weather", State: "failed", Mode: "resume", Parent: "r-0001", Cause: "a person", By: "ada@moon", Why: "unit merge is dead",
			Spec: "sha256:" + strings.Repeat("ed1b068a", 8), Units: 5, Done: 5, Failed: 1, Skipped: 3, Reused: 1,
			Created: at(10 * time.Second), Started: at(9 * time.Second), Finished: at(time.Second), Params: object("station", "sea-tac"),
		},
		Notes: []string{"fetch: reused from r-0001", "clean: input year is another: 2012, was 2011"},
		Units: []view.RunUnit{
			{
				Unit: "fetch", Task: id + ":fetch", Type: "fetch_year", State: "skipped", Reason: "reused from r-0001",
				InputHash: "sha256:1111111122222222", OutputHash: "sha256:aaaaaaaabbbbbbbb", Outputs: object("rows", "366"),
			},
			{
				Unit: "clean", Task: id + ":clean", Type: "clean_year", State: "succeeded", Deps: "fetch", Attempt: 2, Version: 3 << 32, Executor: "host-1-ab12",
				InputHash: "sha256:3333333344444444", OutputHash: "sha256:ccccccccdddddddd", Started: at(8 * time.Second), Finished: at(7 * time.Second),
				QueueMS: 12, PrepareMS: 1, ExecuteMS: 812, CleanupMS: 3, Inputs: object("year", "2012"), Outputs: object("rows", "360", "note", hostile),
			},
			{
				Unit: "merge", Task: id + ":merge", Type: "merge_years", State: "dead", Deps: "clean", Weak: "station", Attempt: 3, Executor: "host-2-cd34",
				ErrorClass: "execute_failed", Error: "exit 1: " + hostile, InputHash: "sha256:5555555566666666", Started: at(3 * time.Second), Finished: at(time.Second), ExecuteMS: 2000,
			},
			{Unit: "report", Task: id + ":report", Type: "report", State: "skipped", Deps: "merge", Reason: "merge is dead"},
			{Unit: "station", Task: id + ":station", Type: "call_station", State: "aborted", Reason: "the run stopped"},
		},
	}
}

// ended is flight as it is while it runs, and after.
func inFlight(id string, end string) []view.RunDetail {
	before := flight(id)
	before.State, before.Why, before.Finished, before.Done = "running", "", view.Time{}, 1
	after := flight(id)
	after.State = end
	return []view.RunDetail{before, after}
}

func unitNamed(d *view.RunDetail, name string) *view.RunUnit {
	return &d.Units[slices.IndexFunc(d.Units, func(u view.RunUnit) bool { return u.Unit == name })]
}
