package jobqueue

import (
	"cmp"
	"slices"
	"time"

	"github.com/ambit-go/ambit/async/part"
)

// This file is what can be seen of a queue. Every function returns a copy, as of
// one instant.

// Queued returns the jobs that are not in progress: first those that may be taken, in
// the order in which they would be, then the delayed ones, in the order of their
// times.
//
//	waiting := q.Queued()
//
// # Details
//
// A job that was added while one of its key is in progress ([RunAgain]) is not among
// them before that one has ended.
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
	taken := snapshot(q.failing.jobs.all())
	for h := range q.holders.all() {
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

// Attempt returns how often the job with the given key was taken so far: 1 in its
// first run, and one more each time it has gone back and is taken again.
//
//	log.Printf("%s: attempt %d", file, q.Attempt(file))
//
// # Details
//
// Attempt returns 0 for a job that was never taken, and for a key that the queue does
// not know.
func (q *Queue[K, T]) Attempt(key K) int {
	if !q.canFind(key) {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := q.core.nodes.get(key); n != nil {
		return n.runs
	}
	return 0
}

// Stats says what has happened in a queue since it was made. At any time
//
//	Added = Done + Dead + Removed + Replaced + jobs queued, in progress, or to run again
//	Taken = Done + Dead + Returned + jobs in progress
type Stats struct {
	Added      uint64 // accepted; several that ask for the same second run count once
	Duplicates uint64 // rejected because a job with their key was known
	Refused    uint64 // rejected because the queue was full or closed, or for their key
	Taken      uint64 // taken by a scope
	Done       uint64 // ended well
	Failed     uint64 // runs that failed
	Returned   uint64 // went back, because their run failed or was told to stop
	Dead       uint64 // given up by MaxAttempts
	Removed    uint64 // removed before they ran
	Replaced   uint64 // went back, and a newer job of their key took their place (RunAgain)

	QueuedTime     time.Duration // how long jobs were ready before they were taken, in all
	InProgressTime time.Duration // how long jobs were in progress before they were settled, in all
}

// Stats returns what has happened so far.
func (q *Queue[K, T]) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.core.stats
}

// A seen is a copy of a node: what is needed of it without the lock.
type seen[T any] struct {
	job      T
	priority int
	seq      uint64
	at       time.Duration
}

func snapshot[K comparable, T any](lists ...[]*node[K, T]) []seen[T] {
	var all []seen[T]
	for _, nodes := range lists {
		for _, n := range nodes {
			all = append(all, seen[T]{n.job, n.priority, n.seq, n.at})
		}
	}
	return all
}

func inOrder[T any](all []seen[T]) []seen[T] {
	slices.SortFunc(all, func(a, b seen[T]) int { return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.seq, b.seq)) })
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

// shown is a queue as a picture of the tree shows it.
type shown[K comparable, T any] Queue[K, T]

// Look says how the queue stands.
func (s *shown[K, T]) Look() part.View {
	q := (*Queue[K, T])(s)
	queued, taken := q.Len()
	return part.View{Kind: "queue", Queued: queued, Running: taken}
}
