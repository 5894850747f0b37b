// Package taskqueue runs tasks at their time, at least once, on one machine or on
// many. A task is kept by a store until its handler has ended well and the store knows.
// A worker has it under a lease; when the worker dies another one runs it again.
//
//	store, err := sqlstore.OpenFile(ctx, "tasks.db") // or sqlstore.New, redisstore.New, memstore.New
//	if err != nil {
//		return err
//	}
//	q, err := taskqueue.New(store)
//	if err != nil {
//		return err
//	}
//
//	id, err := q.Enqueue(ctx, taskqueue.Task{Type: "mail", Payload: payload, Delay: time.Hour})
//
//	err = q.Work(ctx, taskqueue.Handlers{"mail": func(ctx context.Context, c *taskqueue.Claim) error {
//		return send(ctx, c.ID, c.Payload) // nil: done. An error: again later
//	}})
//
// # Choosing
//
// The store: package memstore keeps tasks in memory, for tests; sqlstore in a SQLite
// file that any number of processes of one machine share, or in PostgreSQL, where a task can
// be added in a transaction of your own; redisstore on a Redis server, which is the fastest. Each
// is a package of its own, so a program compiles the one it uses, and [Open] opens by
// URL those that it imports. Package taskqueuetest tests whether a store keeps the
// rules; it can be run on others, too. For jobs that may be lost with the process, and
// that are distinct by what they are, there is package jobqueue.
//
// When: Delay is counted by the clock of the store, RunAt is a time of day. [Queue.Every]
// adds a task at every tick of a schedule, one a tick, however many processes say so.
//
// After others: a task with After waits until those are done, and OnFailed says what becomes of it
// if one of them is not. So a chain is added in one call.
//
// Once: a second task of the same ID is not added as long as the first is known, so an
// Enqueue can be repeated. UniqueKey is for tasks that are not to be there at the same
// time; it is free when its task has ended.
//
// Its outcome: a handler returns nil, an error, or one that [RetryAfter], [Dead],
// [Release] or [Snooze] has made. MaxFailures counts errors, MaxCrashes leases that have
// run out: a payload that kills its process is a dead letter after three.
//
// Payloads: [Kind] ties a type of task to the Go type of its payload, for both sides.
//
// Afterwards: [Queue.Retry], Cancel and Delete act on one task, [Queue.RetryAll], CancelAll and
// DeleteAll on all that a [Filter] finds.
//
// How many: [Concurrency] is for one worker, [Queues] divides it. The settings of a
// queue, [Queue.Configure], bound rate and concurrency for all workers of all processes,
// [Queue.SetLimit] those of a key of tasks, a tenant for instance, or of a type.
//
// # At least once
//
// A task runs again if its worker dies before the store knows, or could not reach the
// store in time. So the handler must be safe to repeat: all runs have the ID of the task
// in common, which can be the key of an idempotent request or of a row. Where two runs
// could be on their way at the same time, what they write to should refuse a Token that
// is less than the greatest it has seen.
//
// # Cancellation and causes
//
// The handler runs as a task of package async. A task that it starts with its ctx belongs to
// it: it is joined before the task is settled, and its abort hooks are called with the
// cause. [context.Cause] of ctx is
//
//   - [ErrLeaseLost]: the lease has run out, or is another worker's by now. Nothing that
//     the handler returns counts.
//   - [ErrCancelled]: somebody has called [Queue.Cancel]. The task is not run again.
//   - [ErrStopping]: the ctx of Work is done, and ShutdownGrace has passed. The task is
//     given back, without an attempt spent.
//   - an [async.TimeoutError]: its Timeout has passed. It is a failure.
//
// A handler that ignores its ctx is waited for. Its place stays taken, and its lease is
// extended unless that is lost; [EventStuck] tells of one that lasts for too long. Nothing of it
// runs after [Queue.Work] has returned.
//
// # Ordering
//
// The more urgent of the due tasks of a queue is claimed first, then what was due
// earlier, then by ID; IDs that Enqueue makes sort by time. So is the order in which
// tasks are begun, by all workers together; they may end in any. With [Concurrency](1)
// in one process they run one after the other. Nothing is handed out before its time, by
// the clock of the store; the clocks of workers are not compared with it.
//
// The work of a handler happens before the return of a [Queue.Wait] for its task in the
// same process. An Enqueue that has returned happens before the run of its task.
//
// # Panics
//
// A panic of a handler, or of middleware, is a failure, and so is runtime.Goexit: the
// error tells it with its stack. A panic of an observer or of a backoff stops the worker;
// Work panics with it when all is settled. Options that are nil where a function is
// needed panic at once. Whatever else is wrong is an [*InvalidError].
//
// # Testing
//
// A worker with memstore can be run in a testing/synctest bubble, where days pass in no
// time. [WorkUntilEmpty] has Work return when nothing is due: add tasks, have them run,
// and look. Backoff(func(int) time.Duration { return 0 }) has failures run again at once.
//
//	synctest.Test(t, func(t *testing.T) {
//		q, _ := taskqueue.New(memstore.New())
//		id, _ := q.Enqueue(ctx, task)
//		err := q.Work(ctx, handlers, taskqueue.WorkUntilEmpty())
//		info, err := q.Get(ctx, id)
//	})
//
// The model is Milau's Building a time based task queue (2018): a sorted set of due
// times, a hash of payloads, and a set of what was taken and not acknowledged.
package taskqueue
