// Package otelambit makes spans and metrics of OpenTelemetry of the tasks of package async.
//
//	telemetry, err := otelambit.New()
//	if err != nil {
//		return err
//	}
//	defer telemetry.Shutdown(context.Background())
//	err = async.Scope(ctx, serve, async.Observe(telemetry))
//
// # Spans
//
// A scope, a task with a Name and a root task have a span each; Filter says otherwise. It starts when the handler does
// and ends when all that the handler has started has ended, so spans of children lie inside. Its parent is the span in
// the ctx that the task was started with. A root task, a detached task and each run of a task with Restart
// begin a trace of their own, with a link to that span. Work without an end of its own (Daemon, Detach, groups, and
// runs of such a task) has no span, and what it starts begins a trace with a link. A wait of 1 ms or more for a
// future that is no part of the task that waits adds a link to the span of the future.
//
//	outcome                                      status   error.type                        ambit.task.outcome
//	ended well                                   Unset                                      ok
//	an error                                     Error    type of the innermost error       error
//	cancelled by something else                  Unset                                      cancelled
//	its own Timeout, Heartbeat, Watch            Error    timeout, heartbeat, watchdog      the same
//	a panic, Goexit                              Error    panic, goexit                     the same
//	cancelled, or refused, before it ran         no span                                    skipped, counted
//
// A span has the attributes ambit.task.id, ambit.task.kind, ambit.task.queue.duration in seconds, and
// ambit.task.cause, the type of the cause if it was told to stop. A panic is an event "exception" with the stack;
// an event "returned" says when the handler returned, if what it has started went on for 1 ms or longer. Texts of
// errors are in no span unless Texts asks for them.
//
// # Metrics
//
//	ambit.task.duration         s   histogram   ambit.task.name, ambit.task.outcome
//	ambit.task.queue.duration   s   histogram   ambit.task.name
//	ambit.task.restarts             counter     ambit.task.name
//	ambit.task.panics               counter     ambit.task.name
//	ambit.task.skipped              counter     ambit.task.name
//	ambit.task.active               gauge       ambit.task.name
//	ambit.task.queued               gauge       ambit.task.name
//	ambit.scope.stragglers          gauge
//	ambit.rings                     gauge
//	ambit.detached                  gauge
//	ambit.limit.slots, .held, .queued   gauge   ambit.task.name, of the scope
//	ambit.worker.queued             gauge       ambit.part.name
//
// Counters and histograms are of the scopes that are observed; gauges are read from a Snapshot of the process, or
// of [Root], in each collection. Histograms have exemplars with the trace of the task.
//
// # Names
//
// Numbers in names are written as #, see picture.Alike, and after 200 names all others are _OTHER, in spans and in
// metrics: so neither can fill a memory.
//
// It is experimental.
package otelambit
