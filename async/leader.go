package async

// This file is about tasks whose end ends their scope, and tasks that end with it.

// Leader marks a task that the scope is there for, the inverse of [Daemon]: when it
// has ended without a failure, and all that it started with it, the body and the
// tasks of its scope are cancelled with [ErrDismissed]. That is how a program ends
// whose servers stop with the first of them.
//
// That they were told to stop is no failure. What only repeats it, a task that
// returns its ctx's error or a body that does, does not count, and neither does a
// task that was queued and did not run: then [Scope] returns nil. Other errors
// count as ever. What waits under the ctx of the scope is told ErrDismissed; who
// waits for the leader gets its value. To everybody else the scope is cancelled:
// what [package jobqueue] took in it goes back.
//
// The failure of a leader is treated as that of any task. The first leader to end
// leads; those that end later, or when the scope was cancelled by something else,
// are ordinary tasks. So is one whose error or panic does not count because
// [OnFailure] or [OnPanic] says so, a daemon that was told that the scope is done,
// and a task that belongs to no scope. A promise leads when it is resolved, a task
// with [Restart] when it has ended for good.
//
// Led is the scope that the task was started in. That may be a task: then the
// handler of that is the body. If that is to give a value, the error that it
// returns because it was cancelled is its outcome, for there is no value.
//
// The model is oklog/run.
//
// [package jobqueue]: https://pkg.go.dev/github.com/ambit-go/ambit/jobqueue
func Leader() TaskOption {
	return taskOption(func(t *taskOptions) { t.leader = true })
}

// Daemon marks a task that serves the others: when the body and all ordinary
// tasks of its scope have ended it is cancelled with [ErrDismissed], and then
// joined like any other.
//
// An error that it, or anything started in it, returns after its scope has cancelled
// it, by that or otherwise, is not a failure: "http: Server closed" and "signal:
// killed" are how services stop. Observers are told of it. A panic raises as that of
// any task; an error from before, and its own [Timeout] or [Heartbeat], are failures.
// An error that must be heard belongs in an exit hook, its own or that of anything in
// it; see [OnExit].
func Daemon() TaskOption { return taskOption(func(t *taskOptions) { t.daemon = true }) }
