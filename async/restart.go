package async

import (
	"fmt"
	"time"

	"github.com/ambit-go/ambit/async/internal/echo"
)

// This file is what users see of tasks that are started again when they fail. How
// that is done is in restarter.go.

// What a [Restart] without options allows.
const (
	defaultFailures = 5
	defaultWithin   = time.Minute
	defaultHealthy  = time.Minute
)

// Restart calls the handler of a task again when it has failed: when it has
// returned an error, panicked or called Goexit, and everything that it started has
// ended. Before that call it waits; in is asked how long, with the number of
// failures so far. Waits below 1 ms are 1 ms. A handler that returns nil has
// ended the task.
//
// Each call of the handler is a run: a scope with a ctx of its own, which ends with
// it. What a run starts and registers there, with [OnExit] too, has ended before
// the next run starts: runs never overlap. Between two runs the task has no
// goroutine and no slot of a [Limit]; for the next it queues again, and is handed
// to its executor ([On]) again.
//
// The fifth failure within a minute ends the task; [Attempts] and [Within] change
// that. The number of failures falls to 0 when a run has lasted a minute; see
// [Healthy]. A failure of [Final] is not retried, and neither is any once the task
// itself was told to stop, by its ctx, its scope, [Future.Cancel], an expired Await,
// [Timeout] or otherwise. That a ctx of somebody else was done is a failure as any
// other.
//
// The task settles once. Observers are told of the start and the end of every run,
// and of every panic. Nobody else is told of a failure that is retried: it cancels
// nothing around the task, and a panic is not raised. The last one is treated as
// that of any task, and says how many there were: an error or Goexit is in a
// [*RestartError], and to a panic, which is raised as it was, one is attached. A
// task that was told to stop has the outcome that it would have without Restart,
// with the last failure, if there was one, in a [*RestartError].
//
// Timeout bounds the whole, waits included. A missed beat of [Heartbeat] fails a
// run, whatever the handler returns then. The hook of [OnAbort] is called, once in a
// run, when the ctx of the run is cancelled while its handler runs: because the task
// is told to stop, or the run has failed otherwise. It is not called between runs. A
// value that comes with the failure of a run is discarded, see [OnDiscard]. An
// executor that refuses a run is a failure of that run; observers are told of its end,
// not of a start.
//
// Restart is for [Go], [Start], [Execute], Go of a Group and [Detach]. Poll, Repeat,
// Watch and NewPromise panic when they are given it, and so does a nil in.
//
// The budget of failures in a window is that of Erlang's supervisors.
func Restart(in Interval, opts ...RestartOption) TaskOption {
	mustHaveInterval("Restart", in)
	p := &restartPolicy{in: in, attempts: defaultFailures, within: defaultWithin, healthy: defaultHealthy}
	for _, o := range opts {
		mustNotBeNil(o)
		o.applyRestart(p)
	}
	return p
}

// restartPolicy is what a Restart says. It is never changed after that, so any
// number of tasks may share it.
type restartPolicy struct {
	in       Interval
	attempts int
	within   time.Duration // 0 or less: there is no end to failures
	healthy  time.Duration
}

func (p *restartPolicy) applyTask(t *taskOptions) { t.restart = &restarter{policy: p} }

func (p *restartPolicy) applyPoll(*pollOptions) {
	panic("async: a poll with Restart: it calls its probe again and again anyway; see Tolerate and Again")
}

func (p *restartPolicy) applyWatch(*watchOptions) {
	panic("async: Watch with Restart: call Watch in the handler of a task with Restart, and await it there")
}

// A RestartOption changes when a task is started again.
type RestartOption interface{ applyRestart(*restartPolicy) }

// A PollRestartOption applies to polls and to [Restart].
type PollRestartOption interface {
	PollOption
	RestartOption
}

type attempts int

func (n attempts) applyPoll(p *pollOptions)      { p.attempts = int(n) }
func (n attempts) applyRestart(p *restartPolicy) { p.attempts = int(n) }

type restartOption func(*restartPolicy)

func (o restartOption) applyRestart(p *restartPolicy) { o(p) }

// Within is how long a failure counts for the limit of [Attempts]: the task ends
// with the n-th failure within d. It defaults to a minute. With d <= 0 there is no
// such limit, and the task is started again for ever.
func Within(d time.Duration) RestartOption {
	return restartOption(func(p *restartPolicy) { p.within = d })
}

// Healthy is how long a run must last, from the call of the handler to its failure,
// for all failures before it to be forgotten: then its own is the first again, for
// [Attempts] and for the interval. It defaults to a minute. d <= 0 panics.
func Healthy(d time.Duration) RestartOption {
	if d <= 0 {
		panic("async: Healthy(d): d must be positive, or a task that fails at once would never be given up")
	}
	return restartOption(func(p *restartPolicy) { p.healthy = d })
}

// Final makes an error after which a task is not started again; see [Restart].
// It is found by [errors.As], so it may be wrapped, and a panic with it counts,
// too. Text and matches are those of err. Without Restart it makes no difference.
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

// isFinal reports whether err is not to be retried. A method of a user's error that
// panics, or calls Goexit, does no harm.
func isFinal(err error) bool {
	return asked(err, func() bool {
		_, final := echo.As[*finalError](err)
		return final
	})
}

// A RestartError is the outcome of a task with [Restart] that has failed too often,
// or that was told to stop when it had failed before. It matches the last failure
// and, if the task was told to stop, why.
type RestartError struct {
	Failures int   // since the start, or since the last run that was healthy
	Err      error // the last failure; nil if it was the panic that this is attached to

	task   string
	within time.Duration // in which there were recent of the failures; 0 if that is not why the task has ended
	recent int
	why    error // what has stopped the task; nil if it has failed too often
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
		text = fmt.Sprintf("given up after %s, %d of them within %v", counted(e.Failures, "failure"), e.recent, e.within)
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

// reason returns what has stopped the task, nil if it has failed too often: whether
// the error says more than that does not depend on failures it has lived through.
func (e *RestartError) reason() error {
	if e == nil {
		return nil
	}
	return e.why
}
