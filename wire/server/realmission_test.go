package server

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"apollo11/engine/task"
	"apollo11/engine/view"
	"apollo11/wire"
)

const twoUnits = `name = "pair"
[params.n]
type = "int"
default = 3
[[units]]
name = "first"
uses = "echo"
with = { x = "${params.n}" }
[[units]]
name = "second"
uses = "echo"
deps = ["first"]
with = { x = "${first.y}" }
`

// A mission from its file to its last unit, with a real engine and an executor
// of protocol 2.
func TestRealEngineMission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := realRig(t)
		c, err := r.client(wire.ClientOptions{Actor: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		contract := task.Unit{
			Name: "echo", Idempotent: true,
			In: []task.Rule{{Name: "x", Kind: task.Int, Required: true}}, Out: []task.Rule{{Name: "y", Kind: task.Int, Required: true}},
		}
		if err := contract.ReadyRules(); err != nil {
			t.Fatal(err)
		}
		p := r.dial()
		p.raw(wire.AppendRegister(nil, &wire.Register{Exec: "e1", Types: []string{"echo"}, Proto: 2, Units: []task.Unit{contract}}))
		p.want("type=ack", "proto=2")
		if err := c.Upload(ctx, "pair.toml", []byte(twoUnits)); err != nil {
			t.Fatal(err)
		}
		odd := task.Values{{Name: "m", Value: "1"}}
		if _, err := c.Start(ctx, wire.Start{File: "pair.toml", Params: odd, Check: true}); !errors.Is(err, &wire.Error{Code: wire.CodeInvalid}) {
			t.Errorf("a parameter that is none: %v", err)
		}
		if checked, err := c.Start(ctx, wire.Start{File: "pair.toml", Check: true}); err != nil || checked.ID != "" || checked.Mission != "pair" {
			t.Errorf("checked %+v, %v", checked, err)
		}
		run, err := c.Start(ctx, wire.Start{File: "pair.toml", Params: task.Values{{Name: "n", Value: "5"}}})
		if err != nil || run.Mission != "pair" || run.Units != 2 || run.By != "ann" {
			t.Fatalf("started %+v, %v", run, err)
		}
		m := p.want("type=task", "task_id="+run.ID+":first", "run="+run.ID, "in.x=5")
		p.send("type=result\ntask_id=" + m.Text("task_id") + "\nversion=" + m.Text("version") + "\nstatus=ok\nout.y=6\nunit_hash=9d2e")
		p.want("type=ack", "status=ok")
		m = p.want("type=task", "task_id="+run.ID+":second", "in.x=6")
		p.send("type=result\ntask_id=" + m.Text("task_id") + "\nversion=" + m.Text("version") + "\nstatus=ok\nout.y=7")
		p.want("type=ack", "status=ok")
		d, err := c.Run(ctx, run.ID, "")
		if err != nil || d.State != "succeeded" || len(d.Units) != 2 || d.Units[0].UnitHash != "9d2e" || d.Units[1].Deps != "first" {
			t.Errorf("shown %+v, %v", d, err)
		}
		text, err := c.RunSpec(ctx, run.ID)
		if err != nil || task.HashText([]byte(text)) != d.Spec || !strings.Contains(text, "second") {
			t.Errorf("its text %q of hash %s, %v", text, d.Spec, err)
		}
		if page, err := c.Runs(ctx, view.RunQuery{State: "succeeded"}); err != nil || len(page.Runs) != 1 || page.Runs[0].ID != run.ID {
			t.Errorf("runs %+v, %v", page, err)
		}
		if stats, err := c.Stats(ctx); err != nil || len(stats) != 1 || stats[0].Samples != 2 || stats[0].Unit == "" {
			t.Errorf("stats %+v, %v", stats, err)
		}
		again, _, err := c.Rerun(ctx, run.ID, false)
		if err != nil || again.Parent != run.ID || again.Mode != "rerun" {
			t.Errorf("again %+v, %v", again, err)
		}
		if ended, err := c.CancelRun(ctx, again.ID, "enough"); err != nil || ended.State != "cancelled" {
			t.Errorf("cancelled %+v, %v", ended, err)
		}
	})
}
