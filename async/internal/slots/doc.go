// Package slots decides which tasks of a Limit may run.
//
// It is a pure core: no lock, no goroutine, no clock. Its user tells it what
// happens, one event after the other, and is told which tasks may go on:
//
//	Submit    a task has been started
//	Withdraw  a task that queues has been cancelled
//	Begin     an executor has begun with a task
//	Lend      a task waits, and lends its slots meanwhile
//	Return    a wait has come to its end: its task wants its slots again, in turn
//	TakeBack  a wait was cut short: its task has its slots again at once
//	Retire    a task has ended
//
// The answer is a list of [Grant]s, which [Limiter.Take] returns. The user acts
// on them when it holds no lock any more: it starts goroutines and notifies
// waits.
//
// # Rules
//
// A task runs when it has a slot of its limiter and of every limiter around
// that. It takes them from the inside out, and holds those it has while it
// queues for the next.
//
// A free slot goes to a task that returns from a wait, first come first served,
// before any task starts. Tasks start deepest first; those of one depth the
// most urgent first; equals in the order in which they came.
//
// A wait that is cut short takes slots that may not be there. The limiter is
// overdrawn then, and the next slots that are given up pay for it.
//
// A slot that a task holds while it queues for the next is recalled if a task
// that returns from a wait needs it: else what is under way would wait for what
// has not begun, and for all that goes before that.
//
// A slot that a task holds while an executor has not begun with it is recalled
// if a task that returns from a wait needs one: the executor may have no room
// for the first before the second has ended.
package slots
