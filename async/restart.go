package async

import (
	"cmp"
	"time"
)

// This file is the option that has a task started again when it has failed. How that is
// done is in restarter.go.

// A RestartPolicy says when the handler of a task is called again; see [Restart]. The zero
// value lacks an Interval.
type RestartPolicy struct {
	// Interval is asked how long to wait before the next run, with the number of
	// failures so far. Waits below 1 ms are 1 ms.
	Interval Interval
	// Attempts is how many failures Within end the task. 0: 5.
	Attempts int
	// Within is how long a failure counts for Attempts. 0: a minute. Negative: no number
	// of failures ends the task.
	Within time.Duration
	// Healthy is how long a run must last, from the call of the handler to its return,
	// for the failures before it to be forgotten, by Attempts and by Interval. 0: a minute.
	Healthy time.Duration
}

// Restart calls the handler of a task again when it has failed: when it has returned
// an error, panicked or called Goexit, and everything that it started has ended.
//
//	async.Go(ctx, consume, async.Restart(async.RestartPolicy{Interval: async.Backoff(time.Second, time.Minute)}))
//
// The task is a loop over runs. A run is one call of the handler: a scope inside the
// task, with a ctx of its own. What a run starts and registers there, with [OnExit] too,
// has ended before the next run starts: runs never overlap. A handler that returns nil
// ends the task. Between two runs the task waits as [Sleep] does: it lends its slot of a
// [Limit], and keeps its place on an executor ([On]). After Goexit, which ends the
// goroutine, the executor is given the task anew; one that refuses ends the task with a
// [*RejectedError].
//
// The fifth failure within a minute ends the task; see [RestartPolicy]. A failure of
// [Final] is not retried, and neither is any once the task itself was told to stop, by
// its ctx, its scope, [Future.Cancel], an expired Await, [Timeout] or otherwise. That a
// ctx of somebody else was done is a failure as any other.
//
// The task settles once. Observers are told of the start and the end of every run, and
// of every panic. Nobody else is told of a failure that is retried: it cancels nothing
// around the task, and a panic is not raised. The last failure is treated as that of any
// task, once its run has ended, and is in a [*RestartError] that says how many there
// were; a panic is raised as it was, with the RestartError beside it. A task that is
// told to stop in a run has the outcome of that run, and one that is told to stop
// between two runs that it was stopped; with the last failure, if there was one, in a
// RestartError.
//
// [Timeout] bounds the whole, waits included. [OnAbort], [Heartbeat] and [OnDiscard] are
// said of each run: the hook is called, once in a run, when the ctx of the run is
// cancelled while the handler runs; a missed beat fails a run, whatever the handler
// returns then; the value of a run that has failed is discarded at once.
//
// Restart is for [Go], [Start], [Execute], Go of a Group and [Detach]. Poll, Repeat,
// Watch and NewPromise panic when they are given it, and so does Restart without an
// Interval, and with negative Attempts or Healthy.
//
// The budget of failures in a window is that of Erlang's supervisors.
func Restart(p RestartPolicy) TaskOption {
	mustHaveInterval("Restart", p.Interval)
	switch {
	case p.Attempts < 0:
		panic("async: Restart with negative Attempts: for no limit set Within to -1")
	case p.Healthy < 0:
		panic("async: Restart with a negative Healthy: a task that fails at once would never be given up")
	}
	p.Attempts = cmp.Or(p.Attempts, 5)
	p.Within = cmp.Or(p.Within, time.Minute)
	p.Healthy = cmp.Or(p.Healthy, time.Minute)
	return &restart{p}
}

// restart is the option. It is never changed, so any number of tasks may share it.
type restart struct{ RestartPolicy }

func (p *restart) applyTask(t *taskOptions) { t.restart = &restarter{RestartPolicy: p.RestartPolicy} }

func (p *restart) applyPoll(o *pollOptions) { o.restart = true }

func (p *restart) applyWatch(*watchOptions) {
	panic("async: Watch with Restart: call Watch in the handler of a task with Restart, and await it there")
}
