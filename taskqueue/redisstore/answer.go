package redisstore

import (
	"fmt"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
)

// The answers of the scripts are lists, numbers and texts.

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

func integer(v any) int64 {
	n, _ := v.(int64)
	return n
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

func infos(queue string, v any, now time.Time) (all []taskqueue.Info, err error) {
	all = make([]taskqueue.Info, 0, len(list(v)))
	for _, one := range list(v) {
		i, err := readInfo(queue, one, now)
		if err != nil {
			return nil, err
		}
		all = append(all, i)
	}
	return all, nil
}

// flagCancel is the flag of a task that is asked to stop, flagParked of one that a limit keeps; see tasks.lua.
const flagCancel, flagParked = 4, 32

// taskFields is how many fields of a task a script answers with. The last is the group of its limit.
const taskFields = 18

// readInfo reads a task as common.lua writes it. now tells whether one that waits is due.
func readInfo(queue string, v any, now time.Time) (i taskqueue.Info, err error) {
	f := list(v)
	if len(f) != taskFields {
		return i, fmt.Errorf("taskqueue: redis: an answer has %d fields of a task, not %d", len(f), taskFields)
	}
	if err := unpack(text(f[1]), &i); err != nil {
		return i, fmt.Errorf("task %s in queue %s: %w", text(f[0]), queue, err)
	}
	i.ID, i.Queue = text(f[0]), queue
	i.State, i.Token = taskqueue.State(integer(f[2])), integer(f[3])
	i.Attempt, i.Failures, i.Crashes, i.Releases = int(integer(f[4])), int(integer(f[5])), int(integer(f[6])), int(integer(f[7]))
	i.CancelRequested = integer(f[8])&flagCancel != 0
	i.StartedAt, i.EndedAt, i.DueAt, i.LeaseEnd = fromMicros(integer(f[9])), fromMicros(integer(f[10])), fromMicros(integer(f[11])), fromMicros(integer(f[12]))
	i.Worker, i.LastError = text(f[13]), text(f[14])
	i.Result, i.Progress = bytes(f[15]), bytes(f[16])
	waits := i.State == taskqueue.StateScheduled || i.State == taskqueue.StateRetrying
	i.Limited = integer(f[8])&flagParked != 0
	if i.Limited || waits && !now.IsZero() && !i.DueAt.After(now) {
		i.State = taskqueue.StateReady
	}
	return i, nil
}

func bytes(v any) []byte {
	if s := text(v); s != "" {
		return []byte(s)
	}
	return nil
}
