// Package taskqueue runs tasks at their time, at least once, on one machine or on
// many.
//
//	store, err := filestore.Open("tasks.db") // or redisstore.New, or memstore.New
//	q, err := taskqueue.New(store)
//
//	id, err := q.Enqueue(ctx, taskqueue.Task{Type: "mail", Payload: payload, Delay: time.Hour})
//
//	err = q.Work(ctx, taskqueue.Handlers{"mail": func(ctx context.Context, c *taskqueue.Claim) error {
//		return send(ctx, c.Payload) // nil: done. An error: again later
//	}})
//
// A task is not handed out before its time, by the clock of the store, and never to
// two workers at once, as far as the store knows. A worker has it under a lease,
// which it extends while the handler runs. When the worker dies the lease runs out
// and another one runs the task again. So a task may run more than once: a handler
// must be safe to repeat; see [Handler].
//
// # A claimed task is a scope
//
// The handler runs as a task of package async: what it starts with its ctx has ended
// before the store is told how it went. Its ctx is cancelled, with the reason as its
// cause, when the lease is lost, when somebody cancels the task, when its Timeout has
// passed, and when the worker stops. Nothing of it runs after [Queue.Work] has
// returned.
//
// # Stores
//
// Package memstore keeps tasks in memory, filestore in a file that any number of
// processes of one machine share, redisstore on a Redis server. Each is a package of
// its own, so a program compiles the one it uses. Package taskqueuetest tests whether
// a store keeps the rules; it can be run on others, too.
//
// The model is Milau's Building a time based task queue (2018): a sorted set of due
// times, a hash of payloads, and a set of what was taken and not acknowledged.
package taskqueue
