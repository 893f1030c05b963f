// Package bench loads a controller and measures what it takes.
//
// A private controller is the real program as a process of its own, on a
// temporary folder: its CPU time, its memory and its death are its alone.
// Producers and workers are in this process; workers are executors of protocol 2
// that answer at once. The fields are those that the drivers of other task
// queues print, with the same meaning, so that one script can set them side by
// side:
//
//	enqueue_per_s            tasks acknowledged, which means durable, over the time of submitting
//	end_to_end_tasks_per_s   over the time until none is left
//	server_cpu_s_per_1000    user and system time of the controller
//	start_p50_ms             from when a task was due to when a worker has it
//	ack_p50_ms               from when a task was due to its acknowledgement
//	rss_bytes_per_queued     growth of resident memory over the tasks that wait
//	restart_ready_ms         from the start after a SIGKILL to the first answer
//	disk_fdatasync_per_s     small synced appends by this process, just before
//
// Goroutines: one per producer and per worker, one for heartbeats, one that waits
// for the controller's process; each phase waits for all of them.
package bench
