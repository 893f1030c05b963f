//go:build !linux

package executor

import "apollo11/wire"

// meter tells nothing where there is no /proc.
type meter struct{}

func (*meter) read(*wire.Heartbeat, string) {}
