package main

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/jobqueue"
)

// A queue has work done on the files of a folder. Its jobs are names, not changes: to
// do a job is to make things agree with the file as it is by then. So it does not
// matter how many changes one job stands for, nor how often it is done.
type queue struct {
	*jobqueue.Queue[string, string]
	work   func(ctx context.Context, name string) error
	budget time.Duration // for one attempt
}

// newQueue returns a queue that tells say what becomes of its jobs, and gaveUp of
// those whose last attempt has failed.
//
//   - A name is queued once, however often it is added: that is what the queue does.
//   - One that is added while it is worked on is worked on again, as what was read is
//     the old file by now: RunAgain.
//   - A file that is half written is tried again, but not at once: RetryDelay.
//   - One that is broken is not tried for ever: MaxAttempts.
func newQueue(work func(ctx context.Context, name string) error, say func(jobqueue.Event[string]), gaveUp func(name string, err error)) *queue {
	return &queue{
		Queue: jobqueue.New[string](
			jobqueue.WhileRunning(jobqueue.RunAgain),
			jobqueue.RetryDelay(async.Backoff(100*time.Millisecond, 5*time.Second)),
			jobqueue.MaxAttempts(5, gaveUp),
			jobqueue.Observe(say),
		),
		work:   work,
		budget: time.Minute,
	}
}

// run has workers do the jobs until the queue is drained, or ctx is done. A job in progress then has
// not failed: it goes back to its place.
func (q *queue) run(ctx context.Context, workers int) error {
	return q.Consume(ctx, workers, 1, q.do)
}

// do does one job. It is a task of its own, so one that panics costs that job an
// attempt, and not everybody the program, and so does one that takes too long. If it does
// not end when it is told to, as no decoder does, it goes on beside the others, so work must
// change nothing when ctx has ended.
func (q *queue) do(ctx context.Context, names []string) error {
	return async.Scope(ctx, func(ctx context.Context) error {
		attempt := async.Start(ctx, func(ctx context.Context) error { return q.work(ctx, names[0]) }, async.Name("picture"))
		_, err := attempt.Await(ctx, q.budget)
		return err
	}, async.DetachAfter(patience))
}

// patience is how long an attempt may go on when it was told to end.
const patience = 5 * time.Second
