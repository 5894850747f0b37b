// Package async is structured concurrency: every goroutine has an owner, every
// wait has an end, nothing outlives its scope, and nothing that went wrong is
// lost.
//
// The context is the scope. A [Scope] hands its body a context; whatever is
// started with it, or with a context derived from it, belongs to that scope,
// and the scope does not end before the work does. A task is a scope too: what
// its handler starts belongs to it.
//
//	err := async.Scope(ctx, func(ctx context.Context) error {
//		user := async.Execute(ctx, fetchUser)
//		news := async.Execute(ctx, fetchNews) // runs beside it
//		async.Go(ctx, audit)
//		u, err := user.Await(ctx, 2*time.Second)
//		if err != nil {
//			return err // news and audit are cancelled and joined first
//		}
//		n, err := news.Await(ctx, 2*time.Second)
//		if err != nil {
//			return err
//		}
//		return show(u, n)
//	})
//
// # The first choice
//
//	          is told of a failure          does it stop    does it need
//	                                        the others?     a scope?
//
//	Go        the scope, at once            yes             yes
//	Start     those who wait for it; if     no              no
//	          nobody does, the scope at
//	          its end
//	Execute   as Start; it has a value      no              no
//
// [Future.Await]: the result in time, or abort it. [Future.Wait]: look on.
// [Future.Join]: until the end. To wait at most 5 s and let it run on is Wait
// with a ctx of [context.WithTimeout].
//
// # Two rules
//
// A function that takes a ctx joins what it starts, by opening a Scope of its
// own. Work that is to be shared is started with its owner's ctx.
//
// When a task settles its context is cancelled, as that of a call that has
// returned. A value that needs the context, such as the body of an HTTP response, is
// consumed inside the handler. An object that keeps it, such as a client, is given the ctx
// of its owner.
//
// # Without a scope
//
// Where ctx carries no scope, [Go] and [OnExit] panic. [Execute] and all else
// that returns a [Future] make a root task, which nobody joins. An Await of it that
// expires or is cancelled tells it to stop and returns; the task runs on for as
// long as it takes. So do the losers of a choice and the items of a ForkJoin.
// [Shutdown], at the end of main, waits for them. [Scope], [Shield], [Retry], [ForEach],
// [Map] and [AsCompleted] join all that they start, whatever ctx they are given.
//
// # Choosing
//
//   - [Daemon] for a helper that the others do not wait for, [Leader] for a task
//     whose end ends the others.
//   - [Race], [Any], [Until], [Quorum], [Hedge], [All] and [Settle] to choose
//     among several tasks.
//   - [Poll], [Repeat] and [Retry] for what is done again and again; [Watch] and
//     [Heartbeat] to look after a task.
//   - [Restart] to call a task again when it has failed or panicked.
//   - [ForkJoin] to do the same to every item of a slice; [ForEach], [Map] and
//     [AsCompleted] for sequences.
//   - [Limit] to bound how much runs at once, [Priority] to say what of it is
//     urgent, [On] to run it on a pool.
//   - [NewGroup] for a type with a Start and a Stop: a [Group] is a scope without a
//     body, which anybody may end.
//   - [NewPromise] for results that come from a callback.
//   - [OnExit] for what must be done when the scope ends, [OnAbort] for what
//     stops a handler that does not look at its context, [Shield] for work that
//     must not be cut short.
//   - [Detach] for the rare work that outlives its scope, on record.
//
// The rules of a choice are the same for [Race], [Any], [Until], [Quorum], [Hedge], [All] and
// [Settle], which do not block. Decided is settled: the future settles at the moment of the
// decision. At that instant the other tasks that still run are cancelled with [ErrDecided].
// The tasks belong to the scope of ctx, which does not end before they have; one that ignores
// its context costs the outcome nothing. Values that the outcome does not have go to the hook
// of [Discarding], errors of those that lose are dropped. A panic counts as the task's failure
// before the decision; after it the scope of ctx raises it. If a task that is not spoken of in
// the outcome calls runtime.Goexit, that fails the scope. When ctx or the future is cancelled,
// so are all tasks, and the outcome is decided by what they return. A task that awaits the
// future it decides is told [ErrAwaitCycle] if the wait could never end.
//
// # Cancellation and causes
//
// A scope is cancelled by the context it was opened with, by its body's error
// or panic, by a failing Go task, when a [Leader] has ended, by its Timeout, and by
// [StopOn] and [StopWith]; a task also by an Await of it that expires and by Cancel. The first
// cause wins; [context.Cause] shows it to everyone below, and the errors that are
// returned match it.
// Nothing is killed: a handler that never looks at its context runs on, and its
// scope waits for it. [OnStall] tells of that, [DetachAfter] ends the wait.
//
// Contexts are pulled until somebody asks for Done, so a task that never looks
// at its context does not pay for one. They work with package context in every
// other way.
//
// Ownership follows the scope, cancellation follows the ctx. A task belongs to
// the nearest scope in the ctx it was started with, which joins it; its context
// is a child of that ctx and of nothing else. Started with a WithTimeout child
// it is cancelled by that, and so with the scope, too; under
// [context.WithoutCancel] it is joined but not cancelled with its scope, only by
// what acts on it alone: its Timeout, Cancel, an expired Await, [Shutdown].
//
// # Ordering
//
// All that happens before a task is started happens before its handler. The work of a handler and
// of everything started in it happens before a wait for it returns, and before its scope returns. A
// context is cancelled before the abort hook is called. Exit hooks run after all tasks have ended,
// last in, first out.
//
// # Panics
//
// A panic of a Go task, or of a body, cancels its scope at once and is raised
// again by Scope when everything has ended. The panic of a body has the same value and
// the frames it came from. The panic of a task is a [*PanicError] with the stack of the
// goroutine it happened on; [OnPanic] may say that it does not count. A panic
// behind a future is an error to its waiters, and raised by Scope if there was
// none. A task that calls runtime.Goexit, as t.FailNow does, ends with [ErrGoexit].
//
// # Limits of what is known
//
// Goroutines started with a go statement are not seen. If one of them waits
// with a task's ctx, the wait counts as the task's: its slot of a [Limit] is
// lent although the handler goes on.
//
// # Testing
//
// The package works in a testing/synctest bubble. Package asynctest gives each test
// a scope, at a root of its own, and checks that nothing was left behind.
package async
