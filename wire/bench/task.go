package bench

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"apollo11/engine/task"
)

const (
	taskType   = "bench"
	inputName  = "payload"
	indexBytes = 16 // a payload begins with the task's number
)

// unit is the contract of what is submitted: it may wait in an executor's local
// queue, as any short unit that may be repeated.
func unit() task.Unit {
	return task.Unit{
		Name: taskType, Idempotent: true, Retry: task.Retry{Retries: 1, Interval: time.Second}, Timeout: time.Minute,
		In: []task.Rule{{Name: inputName, Required: true}},
	}
}

// payload is the input of task i.
func payload(i, size int) string {
	return fmt.Sprintf("%0*x", indexBytes, i) + strings.Repeat("x", max(0, size-indexBytes))
}

// indexOf is the number of the task with that payload, or -1.
func indexOf(payload string) int {
	if len(payload) < indexBytes {
		return -1
	}
	n, err := strconv.ParseUint(payload[:indexBytes], 16, 31)
	if err != nil {
		return -1
	}
	return int(n)
}

// specs are the tasks from lo on, up to hi.
func specs(lo, hi, size int) []task.Spec {
	list := make([]task.Spec, 0, hi-lo)
	for i := lo; i < hi; i++ {
		list = append(list, task.Spec{
			Type: taskType, Retries: task.Unset, Inputs: task.Values{{Name: inputName, Value: payload(i, size)}},
		})
	}
	return list
}
