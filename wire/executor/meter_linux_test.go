package executor

import (
	"testing"

	"apollo11/wire"
)

func TestMeter(t *testing.T) {
	var m meter
	var first, second wire.Heartbeat
	m.read(&first, t.TempDir())
	m.all-- // as if a tick had passed
	m.read(&second, "/no/such/folder")
	if first.CPU != 0 || first.Memory <= 0 || first.Memory >= 100 || first.Disk <= 0 || first.Disk > 100 {
		t.Errorf("%+v", first)
	}
	if second.CPU < 0 || second.CPU > 100 || second.Disk != 0 {
		t.Errorf("%+v", second)
	}
}
