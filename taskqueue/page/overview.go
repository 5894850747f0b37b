package page

import (
	"fmt"
	"strings"
	"time"

	"github.com/ambit-go/ambit/taskqueue"
	"github.com/ambit-go/ambit/taskqueue/internal/look"
	"github.com/ambit-go/ambit/taskqueue/internal/plain"
)

// shown is how many rows of a part are shown at most, and runs how many tasks of a worker.
const (
	shown = 50
	runs  = 10
)

// First50 are the groups of failures that are shown.
func (v *view) First50() []look.Failure { return v.Failures[:min(len(v.Failures), shown)] }

// Done and Failed are the runs of the last hour.
func (v *view) Done() (n int64) {
	for _, k := range v.Kinds {
		n += k.Done
	}
	return n
}

// Failed is how many of them have failed.
func (v *view) Failed() (n int64) {
	for _, k := range v.Kinds {
		n += k.Failed
	}
	return n
}

// A worker is one that runs something.
type worker struct {
	Name  string
	Tasks []look.Task // those that run longest
	N     int         // of all
	Since time.Time
}

// Workers are those that run something, that with the longest run first.
func (v *view) Workers() (all []worker) {
	at := map[string]int{}
	for _, t := range v.Running {
		i, known := at[t.Worker]
		if !known {
			if len(all) == shown {
				continue
			}
			i = len(all)
			at[t.Worker] = i
			all = append(all, worker{Name: t.Worker, Since: t.StartedAt})
		}
		if all[i].N++; all[i].N <= runs {
			all[i].Tasks = append(all[i].Tasks, t)
		}
	}
	return all
}

// Stuck reports whether a run lasts for too long: ten times as long as 99 of 100 of its type in the last hour, if
// so many are known, and not less than 30 s; or for an hour.
func (v *view) Stuck(t look.Task) bool {
	after := taskqueue.StuckAfter
	for i := range v.Kinds {
		k := &v.Kinds[i]
		if k.Queue == t.Queue && k.Type == t.Type {
			after = k.Hour.Took.Stuck(30*time.Second, after)
		}
	}
	return v.Now.Sub(t.StartedAt) > after
}

// NotLooked is how many tasks run that were not looked at.
func (v *view) NotLooked() int64 {
	return max(v.Total.States[taskqueue.StateRunning]-int64(len(v.Running)), 0)
}

// Groups are the limits of keys and types, those that keep tasks first, and then those that count none just now.
func (v *view) Groups() []look.Kept {
	all := append([]look.Kept{}, v.Kept...)
	used := map[string]bool{}
	for _, k := range v.Kept {
		used[k.Queue+"\x00"+k.Limit.Key+"\x00"+k.Limit.Type] = true
	}
	for _, q := range v.Queues {
		for _, l := range q.Limits {
			if !used[q.Name+"\x00"+l.Key+"\x00"+l.Type] {
				all = append(all, look.Kept{Queue: q.Name, Limit: l})
			}
		}
	}
	return all[:min(len(all), shown)]
}

// Bounds says what a limit allows.
func (v *view) Bounds(l taskqueue.Limit) string { return bounds(l.Concurrency, l.Rate, l.Burst) }

func bounds(concurrency int, rate float64, burst int) string {
	var all []string
	if concurrency > 0 {
		all = append(all, fmt.Sprintf("at most %d run", concurrency))
	}
	if rate > 0 {
		all = append(all, fmt.Sprintf("at most %v a second", rate))
	}
	if rate > 0 && burst > 1 {
		all = append(all, fmt.Sprintf("%d at once", burst))
	}
	return strings.Join(all, ", ")
}

// Limits says what is set for a queue.
func (v *view) Limits(q look.Queue) string {
	s := q.Settings
	all := []string{}
	if text := bounds(s.Concurrency, s.Rate, s.Burst); text != "" {
		all = append(all, text)
	}
	if s.MaxDead > 0 {
		all = append(all, plain.Count(s.MaxDead)+" dead letters kept")
	}
	if s.DeadRetention > 0 {
		all = append(all, "dead letters kept for "+plain.Span(s.DeadRetention.Seconds()))
	}
	return strings.Join(all, ", ")
}
