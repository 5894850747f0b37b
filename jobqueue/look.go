package jobqueue

import (
	"cmp"
	"slices"
	"time"
)

// This file is what can be seen of a queue. Everything is a copy, as of one
// instant.

// Queued returns the jobs that are not in progress: first those that may be
// taken, in the order in which they would be, then the delayed ones, in the
// order of their times. A second run that was asked for ([RunAgain]) is none of
// them before the first has ended.
func (q *Queue[K, T]) Queued() []T {
	q.mu.Lock()
	now := snapshot(q.core.ready.run.all(), q.core.ready.heap.elems)
	later := snapshot(q.core.delayed.elems)
	q.mu.Unlock()
	slices.SortFunc(later, func(a, b seen[T]) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq)) })
	return jobsIn(inOrder(now), later)
}

// InProgress returns the jobs that were taken and are not settled, in the order
// of their places.
func (q *Queue[K, T]) InProgress() []T {
	q.mu.Lock()
	taken := snapshot(q.settling.jobs.all())
	for _, h := range q.holders {
		taken = append(taken, snapshot(h.jobs.all())...)
	}
	q.mu.Unlock()
	return jobsIn(inOrder(taken))
}

// Len returns how many jobs are queued, delayed ones included, and how many are
// in progress.
func (q *Queue[K, T]) Len() (queued, inProgress int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.core.queued(), q.core.taken
}

// Attempt returns how often the job with the given key was taken so far: 1 in
// its first run. It is 0 for a job that was not, or is not known.
func (q *Queue[K, T]) Attempt(key K) int {
	if !q.usable(key) {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := q.core.nodes[key]; n != nil {
		return n.runs
	}
	return 0
}

// Stats says what has happened in a queue since it was made. At any time
//
//	Added = Done + Dead + Removed + jobs queued, in progress, or asked for once more
//	Taken = Done + Dead + Returned + jobs in progress
type Stats struct {
	Added      uint64 // accepted; however many ask for one second run count once
	Duplicates uint64 // rejected because a job with their key was known
	Refused    uint64 // rejected because the queue was full or closed, or for their key
	Taken      uint64 // given to somebody
	Done       uint64 // ended well
	Failed     uint64 // runs that failed
	Returned   uint64 // went back, because their run failed or was told to stop
	Dead       uint64 // given up by MaxAttempts
	Removed    uint64 // removed before they ran

	QueuedTime     time.Duration // that all the taken have been ready for before
	InProgressTime time.Duration // that all the settled have been in progress for
}

// Stats returns what has happened so far.
func (q *Queue[K, T]) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.core.stats
}

// A seen is what of a job is looked at without the lock.
type seen[T any] struct {
	job  T
	rank int64
	seq  uint64
	at   time.Duration
}

func snapshot[K comparable, T any](lists ...[]*node[K, T]) []seen[T] {
	var all []seen[T]
	for _, nodes := range lists {
		for _, n := range nodes {
			all = append(all, seen[T]{n.job, n.rank, n.seq, n.at})
		}
	}
	return all
}

func inOrder[T any](all []seen[T]) []seen[T] {
	slices.SortFunc(all, func(a, b seen[T]) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.seq, b.seq)) })
	return all
}

func jobsIn[T any](lists ...[]seen[T]) []T {
	jobs := make([]T, 0, len(lists[0]))
	for _, all := range lists {
		for i := range all {
			jobs = append(jobs, all[i].job)
		}
	}
	return jobs
}
