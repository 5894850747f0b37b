// Package jobqueue is a queue of distinct jobs that are taken in a scope: how
// the scope ends decides what becomes of them.
//
//	q := jobqueue.New[string]()
//	q.Add("a.jpg") // true
//	q.Add("a.jpg") // false: it is queued already
//
//	err := q.Consume(ctx, 4, 1, func(ctx context.Context, jobs []string) error {
//		return makeThumbnail(ctx, jobs[0]) // nil: done. Anything else: back in its place
//	})
//
// A job that is queued or in progress is not added again. It is removed when the
// scope that took it ends well. If that fails, panics, calls Goexit or is
// cancelled, the job goes back to its place in the queue, before everything
// that was added later. So a job is never lost while the process lives, never
// held by two at once, and run until it ends well (at least once: make
// it safe to repeat), or until it is given up by [MaxAttempts].
//
// # Choosing
//
// [Queue.Consume] is a number of workers that take and run jobs until the queue
// is closed. [Queue.Do] is one such round. [Queue.Take] is for scopes that take
// by themselves, in several steps or among other things; [Queue.Ack] and
// [Queue.Nack] settle some of what was taken before the scope ends.
//
// # Order
//
// Jobs are taken in the order in which they were added, the more urgent first
// if there is a [Priority]. Calls of Take that wait are served in the order of
// the calls, by direct hand-off: a job that is added goes to the call that has
// waited longest, and no call is woken in vain.
//
// # Cancellation
//
// A cancelled scope has not ended well, whatever its body returned. But a scope
// that was told to stop from outside, by a cancellation of what is around it,
// has not failed either: its jobs go back at once, and the run counts for neither
// MaxAttempts nor [RetryDelay]. So shutting a program down gives up no jobs. A
// scope that passes its own limit of time has failed.
//
// # Limits
//
// The queue is in memory: when the process ends it is gone. Other processes see
// nothing of it, so it is no lock. A job that is changed while it is queued must
// keep its key.
//
// The model is a job queue for ZIO whose jobs are taken in a Scope. [RunAgain], by which
// a job may be added once more while it is in progress, is from the workqueue of
// Kubernetes.
package jobqueue
