package scheduler

import (
	"runtime/debug"

	"github.com/ambit-go/ambit/async"
)

// This file is about tasks that do not return: they panic or call Goexit. Either
// takes the goroutine of the pool with it, unless the panic is recovered. So the
// worker is put in order first, and goes on with another goroutine.

// endedBadly puts w in order after entry i of the batch has panicked with v or,
// if that is nil, has called Goexit. Afterwards it is as if the batch had ended
// with that entry: what is behind it is pending again, in its place.
//
// If it was not the task but an observer that panicked, the task has its outcome
// already.
func (w *ExecutorWorker) endedBadly(c *chunk, i int, v any) {
	outcome := Exited
	if v != nil {
		outcome = Panicked
	}
	var ctx *taskContext
	var e Event
	byTask := true
	w.mu.Lock()
	n := c.entries[i].n
	if n == nil {
		w.q.ended[outcome]++
		c.entries[i], c.nodes = entry{n: gone}, true
	} else if byTask = n.status() == Running; byTask { // else an observer has panicked
		e = Event{Worker: w.o.name, Outcome: outcome, Queued: w.began - n.stamp, Ran: clock() - w.began}
		n.forget()
		ctx = n.ctx.Swap(nil)
		n.state.Store(uint32(outcome))
	}
	w.q.endBatch(i + 1)
	w.mu.Unlock()
	if ctx != nil {
		ctx.cancel(async.ErrScopeEnded)
	}
	if v != nil && w.o.closeOnPanic {
		w.close(closing{outcome: Cancelled, cause: ErrClosed, undone: errPanicked})
	}
	if byTask && w.o.observer != nil {
		w.o.observer(e)
	}
}

// tellPanic tells the handler of a panic, and reports whether there is one.
func (w *ExecutorWorker) tellPanic(v any) bool {
	if w.o.recovered == nil {
		return false
	}
	w.o.recovered(&async.PanicError{Value: v, Stack: debug.Stack(), Task: w.o.name})
	return true
}

// leaveRest leaves what is queued to another goroutine, because this one ends.
// The scheduler asks for one.
func (w *ExecutorWorker) leaveRest() {
	w.mu.Lock()
	w.hasGoroutine = false
	if w.q.length > 0 {
		w.mu.Unlock()
		w.s.backInLine(w)
		return
	}
	ended := w.releaseLocked()
	w.mu.Unlock()
	if ended {
		w.cleanUp()
	}
}
