package tui

import (
	"apollo11/engine/task"
	"apollo11/engine/view"
)

func (i infect) Text(_ string, v *string) { *v = i.next() }
func (i infect) Int(string, *int64)       {}
func (i infect) Bool(string, *bool)       {}
func (i infect) Time(string, *view.Time)  {}
func (i infect) Values(_ string, v *task.Values) {
	*v = task.Values{{Name: i.next(), Value: i.next()}, {Name: i.next(), Value: i.next()}}
}
