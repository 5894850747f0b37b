package taskqueue

import (
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"
)

// Defaults of a worker.
const (
	DefaultLease         = 30 * time.Second
	DefaultShutdownGrace = 10 * time.Second
)

// A WorkOption changes how [Queue.Work] works.
type WorkOption func(*workOptions)

type workOptions struct {
	concurrency int
	weights     map[string]int
	lease       time.Duration
	grace       time.Duration
	backoff     func(failures int) time.Duration
	weighted    bool
	untilEmpty  bool
	name        string
}

// Concurrency is how many tasks run at the same time. Beside them as many may have
// ended that the store has not been told of yet. Defaults to twice the number
// of processors and two more. n < 1 is 1.
func Concurrency(n int) WorkOption { return func(o *workOptions) { o.concurrency = max(n, 1) } }

// Queues says which queues are worked on, each with a weight: its share of the places,
// at least one, while the others want theirs, too. Defaults to the queue that Work is
// called on.
func Queues(weights map[string]int) WorkOption {
	return func(o *workOptions) { o.weights = maps.Clone(weights) }
}

// Lease is how long a worker that is silent keeps its tasks. It extends them a little
// more often than every third of it. Defaults to 30 s; at least 1 s.
func Lease(d time.Duration) WorkOption {
	return func(o *workOptions) { o.lease = max(d, time.Second) }
}

// ShutdownGrace is how long tasks may go on when Work has been told to stop, before
// their contexts are cancelled with [ErrStopping]. Defaults to 10 s.
func ShutdownGrace(d time.Duration) WorkOption {
	return func(o *workOptions) { o.grace = max(d, 0) }
}

// Backoff is the wait before the next run after a number of failures. Defaults to
// [DefaultBackoff].
func Backoff(f func(failures int) time.Duration) WorkOption {
	if f == nil {
		panic("taskqueue: Backoff(nil): leave the option out instead")
	}
	return func(o *workOptions) { o.backoff = f }
}

// Weighted has less urgent tasks a chance while there are more urgent ones: each
// class of priority is looked at first twice as often as the class below it.
// Without it the more urgent always come first.
func Weighted() WorkOption { return func(o *workOptions) { o.weighted = true } }

// WorkUntilEmpty has Work return when nothing is due in its queues, and nothing of it
// runs. It is meant for tests. A task that is to run later is left, also what has failed and
// waits for its next run: [Backoff] can have that run at once. A paused queue counts as
// empty; for what a limit of a queue holds back it waits.
func WorkUntilEmpty() WorkOption { return func(o *workOptions) { o.untilEmpty = true } }

// WorkerName names the worker in the store: tasks have it in [Info], and so has the
// error of those whose lease has run out. Defaults to the host, the process and a
// number. Workers should have different names; if two have the same none gets what the
// other has claimed, but a claim whose answer is lost may be held until its leases are
// over.
func WorkerName(name string) WorkOption { return func(o *workOptions) { o.name = name } }

func newWorkOptions(q *Queue, opts []WorkOption) (*workOptions, error) {
	o := &workOptions{
		concurrency: 2*runtime.GOMAXPROCS(0) + 2,
		weights:     map[string]int{q.name: 1},
		lease:       DefaultLease,
		grace:       DefaultShutdownGrace,
		backoff:     DefaultBackoff,
		name:        workerName(),
	}
	for _, opt := range opts {
		opt(o)
	}
	if len(o.weights) == 0 {
		return nil, invalid("Queues", "there is none: name at least one")
	}
	for _, name := range slices.Sorted(maps.Keys(o.weights)) {
		if err := CheckName("Queues", name); err != nil {
			return nil, err
		}
		if o.weights[name] < 1 {
			return nil, invalid("Queues", "the weight of %s is %d: it must be at least 1, or leave the queue out", name, o.weights[name])
		}
	}
	return o, CheckName("WorkerName", o.name)
}

// DefaultBackoff is the wait after a number of failures: one second, doubled with
// each failure up to an hour, give or take a quarter.
func DefaultBackoff(failures int) time.Duration {
	d := min(time.Second<<min(max(failures-1, 0), 12), time.Hour)
	return d - d/4 + rand.N(d/2+1)
}

// unknownBackoff is the wait after a task was given back a number of times in a row.
func unknownBackoff(releases int) time.Duration {
	return min(time.Second<<min(max(releases, 0), 6), time.Minute)
}

// clampWait is d in the bounds that every store can count in.
func clampWait(d time.Duration) time.Duration { return min(max(d, 0), MaxDelay) }

// pause is how long is waited after a number of errors of the store in a row, from 0 on.
func pause(failures int) time.Duration { return min(50*time.Millisecond<<min(failures, 5), maxIdle) }
