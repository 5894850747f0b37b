package async

import (
	"cmp"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/async/internal/echo"
	"github.com/ambit-go/ambit/async/internal/tree"
)

// This file is the option that has a task started again when it has failed, and the error of
// one that has failed for good. How it is done is in restarter.go.

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
// # Details
//
// The task is a loop over runs. A run is one call of the handler: a scope inside the
// task, with a ctx of its own. Everything that a run starts and registers there, with
// [OnExit] too, has ended before the next run starts: runs never overlap. A handler
// that returns nil ends the task. Between two runs the task waits as [Sleep] does: it
// lends its slot of a [Limit], and keeps its place on an executor ([On]). After
// Goexit, which ends the goroutine, the executor is given the task anew; one that
// refuses ends the task with a [*RejectedError].
//
// The fifth failure within a minute ends the task; see [RestartPolicy]: failures count in a
// window, so for a call that is made n times at most there is [Retry]. A failure of
// [Final] is not retried, and neither is any once the task itself was told to stop, by
// its ctx, its scope, [Future.Cancel], an expired Await, [Timeout] or otherwise. A
// stop by somebody else's ctx is a failure as any other.
//
// The task settles once. Observers are told of the start and the end of every run, and
// of every panic. Nobody else is told of a failure that is retried: it cancels nothing
// around the task, and a panic is not raised. The last failure is treated as that of
// any task, once its run has ended, and is in a [*RestartError] that says how many
// there were; a panic is raised as it was, with the RestartError beside it. A task
// that is told to stop in a run has the outcome of that run, and one that is told to
// stop between two runs that it was stopped; with the last failure, if there was one,
// in a RestartError.
//
// [Timeout] bounds the whole, waits included. [OnAbort], [Heartbeat] and [OnDiscard]
// are said of each run: the hook is called, once in a run, when the ctx of the run is
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

func (p *restart) applyTask(t *tree.TaskOptions) {
	t.Hang().Restart = &restarter{RestartPolicy: p.RestartPolicy}
}

func (p *restart) applyPoll(o *pollOptions) { o.restart = true }

func (p *restart) applyWatch(*watchOptions) {
	panic("async: Watch with Restart: call Watch in the handler of a task with Restart, and await it there")
}

// Final makes an error after which a task is not started again and a call is not made
// again; see [Restart] and [Retry].
//
//	return async.Final(err)
//
// # Details
//
// [errors.As] finds the error, so it may be wrapped, and a panic of a task with it
// counts, too. Text and matches are those of err. Elsewhere it makes no difference.
// Final(nil) is nil.
func Final(err error) error {
	if err == nil {
		return nil
	}
	return &finalError{err}
}

type finalError struct{ err error }

func (e *finalError) Error() string { return e.err.Error() }
func (e *finalError) Unwrap() error { return e.err }

// isFinal reports whether err is not to be retried.
func isFinal(err error) bool {
	_, final := echo.As[*finalError](err)
	return final
}

// A RestartError is the outcome of a task with [Restart] that has failed too often,
// or that was told to stop when it had failed before. It matches the last failure
// and, if the task was told to stop, why.
type RestartError struct {
	Failures int   // since the start, or since the last run that was healthy
	Err      error // the last failure; nil if that is the panic that the error stands beside

	task   string
	within time.Duration // in which there were recent of the failures; 0 if that is not why the task has ended
	recent int
	why    error // what has stopped the task; nil if it has failed too often
}

// isCount reports that err is e, and says how often the task has failed, and nothing else.
// An error of a user that embeds e has this method, too.
func (e *RestartError) isCount(err error) bool {
	return err == error(e) && e != nil && e.Err == nil && e.why == nil
}

// Error tells how often the task has failed, why it has ended, and the last failure.
func (e *RestartError) Error() string {
	if e == nil {
		return nilText(e)
	}
	var text string
	switch {
	case e.why != nil:
		text = "stopped after " + counted(e.Failures, "failure") + ": " + briefly(e.task, e.why)
	case e.recent == e.Failures:
		text = fmt.Sprintf("given up after %s within %v", counted(e.Failures, "failure"), e.within)
	default:
		text = fmt.Sprintf("given up after %s, %d of them within %v",
			counted(e.Failures, "failure"), e.recent, e.within)
	}
	if e.Err != nil {
		text += "; last failure: " + within(e.task, e.Err)
	}
	return prefix(e.task) + text
}

// Unwrap returns why the task was stopped, if it was, and the last failure.
func (e *RestartError) Unwrap() []error {
	if e == nil {
		return nil
	}
	return notNil(e.why, e.Err)
}

// stoppedBy returns what has stopped the task, nil if it has failed too often, and the
// last failure that it has lived through, if err is e; see stoppable.
func (e *RestartError) stoppedBy(err error) (why, memory error, ours bool) {
	if e == nil {
		return nil, nil, true
	}
	return e.why, e.Err, err == error(e)
}

// pastFailures is how often a task has failed since its last run that was healthy, and the last failure.
type pastFailures struct {
	times int
	last  error
}

// Failed tells those who look at the task.
func (r *restarter) Failed() (failures int, last error) {
	if f := r.failed.Load(); f != nil {
		return f.times, f.last
	}
	return 0, nil
}
