// Package scheduler runs what is scheduled on a worker in order, one at a time,
// on the goroutines of any pool.
//
// A [Scheduler] stands before a pool, an [Executor]. An [ExecutorWorker] is a
// queue of its own in front of it: an actor, a serial executor, an event loop
// that holds no goroutine while it has nothing to do. If a pool has a method Submit,
// as one of ants, ExecutorFunc(pool.Submit) is an Executor.
//
//	s := scheduler.New(scheduler.Goroutines())
//	w := s.NewWorker(ctx)
//	_ = w.Post(func() { balance += 10 })  // no lock: tasks of w never overlap
//	sum, err := scheduler.Call(ctx, w, func(context.Context) (int, error) { return balance, nil })
//
// # Order
//
// If the call that schedules a returns before the call that schedules b begins,
// a is started before b, and everything a did is visible to b. Calls that race
// are ordered one way, the same for everybody. At most one task of a worker
// runs at any time; two workers run in parallel. A task that is scheduled from
// inside a task is queued, never run inline. Delayed tasks join the end of the
// queue at their deadline, in the order of their deadlines, equal ones in the
// order of the calls.
//
// # Outcomes
//
// Every task that was accepted has exactly one outcome: it ran, was cancelled,
// or was rejected by the pool or by a full queue. A worker works again when the
// pool does, whatever happened: a panic, Goexit, a refusal, a full pool. Only
// what a pool accepts and then drops without a word it cannot see: see
// [PoolContext].
//
// # Cancellation and scopes
//
// From the moment the ctx of a worker is done no task of it starts and none is
// accepted. A worker whose ctx carries a scope of package async ends with it:
// it is drained before Scope returns, or cancelled if its ctx is done. If that
// leaves tasks undone the scope is told: see [Scheduler.NewWorker].
//
// # Blocking
//
// Scheduling never blocks on the pool. Where the pool can only block, one
// goroutine of the scheduler does so for all workers, first come first served.
// It blocks on a full queue if that is what [Capacity] says.
//
// The model is RxJava's ExecutorScheduler, with Guava's wording of what order
// means; docs/scheduler.md tells how it works.
package scheduler
