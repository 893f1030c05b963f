package server

import (
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"apollo11/engine"
	"apollo11/engine/task"
)

// What an executor says of its host, of what it runs, and from within a unit that
// runs on and on reaches the engine; what a run's task is comes to the executor.
func TestProtocol2OfMissions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, Options{})
		p := r.executor(registerTwo + "\nshare=5f2c\ncpu_milli=4000\nmemory=8\ndisk=9\nhash.echo=9d2e")
		got := find[engine.Register](t, r.engine)
		if got.Share != "5f2c" || got.Capacity != (task.Resources{CPU: 4000, Memory: 8, Disk: 9}) ||
			!reflect.DeepEqual(got.Hashes, task.Values{{Name: "echo", Value: "9d2e"}}) {
			t.Errorf("register %+v", got)
		}
		p.send("type=types\nadd=echo\nhash.echo=77b0")
		p.want("type=ack")
		if got := find[engine.Types](t, r.engine); !reflect.DeepEqual(got.Hashes, task.Values{{Name: "echo", Value: "77b0"}}) {
			t.Errorf("types %+v", got)
		}
		a := assignment
		a.Task, a.Run, a.Sample, a.Undo, a.Outputs = "r-0001:echo", "r-0001", 3, true, task.Values{{Name: "n", Value: "1"}}
		r.give(engine.Assign{Assignment: a})
		p.want("type=task", "task_id=r-0001:echo", "run=r-0001", "sample=3", "step=undo", "out.n=1")
		p.send("type=progress\ntask_id=r-0001:echo\nset.k=2\nadd.n=1", "type=result\ntask_id=r-0001:echo\nstatus=ok\nunit_hash=9d2e")
		p.want("type=ack")
		want := []task.Change{{Op: task.Set, Key: "k", Value: "2"}, {Op: task.Add, Key: "n", Value: "1"}}
		if got := find[engine.Progress](t, r.engine); !reflect.DeepEqual(got.Changes, want) || got.Version != assignment.Version {
			t.Errorf("progress %+v", got)
		}
		if got := find[engine.Result](t, r.engine); got.Outcome.UnitHash != "9d2e" {
			t.Errorf("result %+v", got)
		}
	})
}

// Protocol 1 has no word for undo, and must not take one for an execute.
func TestUndoIsNotSentOnProtocol1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, false, Options{})
		p := r.executor(registerOne)
		a := assignment
		a.Undo = true
		r.give(engine.Assign{Assignment: a})
		p.wantEnd()
		synctest.Wait()
		if got := find[engine.Disconnected](t, r.engine); !strings.Contains(got.Reason, "cannot undo") {
			t.Errorf("the engine is told %+v", got)
		}
	})
}
