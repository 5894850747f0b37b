package scheduler

import (
	"runtime"
	"runtime/debug"

	"github.com/ambit-go/ambit/async"
)

// This file is what happens on a goroutine of the pool: batches of tasks are
// run. See run.go for one task.

// onPool is drain in a frame of its own, because a traceback prints its
// receiver: that is how the stack of a worker's running task is found.
//
//go:noinline
func (w *ExecutorWorker) onPool() (more bool, ticks int) {
	more, ticks = w.drain()
	runtime.KeepAlive(w) // so that the receiver is still there to be printed
	return more, ticks
}

// drain runs w's tasks until none is left, or w has had its share: then it
// reports more, and w is to wait for its next turn. Among the tasks that ran, ticks were runs
// of periodic ones.
//
// Only one goroutine is in drain at a time: w is taken off the line by one, and
// is put there again only when active was false, or by this goroutine.
//
// To see the queue empty and to leave w is one step, under
// the lock. A producer queues under the same lock: it comes before, and its task
// is seen here, or after, and finds that w is not active. So no task is left
// lying.
func (w *ExecutorWorker) drain() (more bool, ticks int) {
	// w.mu is held between batches only. clean says that this function comes back by
	// itself; else there is a panic or Goexit on its way, and runBatch has put the
	// queue in order.
	clean := false
	defer func() {
		if !clean { // a task, a handler of panics or an observer takes the goroutine with it
			w.leaveRest()
		}
	}()
	remaining, slice := w.o.batch, w.o.slice
	began := clockIf(slice > 0)
	w.mu.Lock()
	w.life.arrive()
	w.activated++
	for w.q.length > 0 && remaining > 0 && (slice == 0 || remaining == w.o.batch || clock()-began < slice) {
		n := remaining
		if w.room.most > 0 || slice > 0 {
			n = 1 // so that its place is free when it starts, or the clock is read between tasks
		}
		c, from, end := w.q.takeBatch(n)
		w.mu.Unlock()
		rest, tick := w.runBatch(c, from, end)
		remaining -= rest - from
		w.mu.Lock()
		w.q.endBatch(rest)
		switch {
		case tick != nil:
			w.afterTickLocked(tick)
			ticks++
		case rest < end: // a panic was recovered, or ctx is done
			w.mu.Unlock()
			w.noticeEnd() // empties the queue
			w.mu.Lock()
		}
	}
	clean = true
	return w.departUnlock(), ticks
}

// departUnlock is called with w.mu held, which it unlocks, when the goroutine leaves w. It
// reports whether w has more to do.
func (w *ExecutorWorker) departUnlock() (more bool) {
	more = w.life.depart(w.q.length)
	ended := !more && w.noteIdleLocked()
	w.mu.Unlock()
	if ended {
		w.cleanUp()
	}
	return more
}

// runBatch runs the batch and returns the first entry of it that has not been
// run. A periodic task, tick, ends it early; so does the end of w's ctx. So do
// a panic and Goexit: w is put in order first, then they continue, unless the
// panic is to be recovered.
//
// Each start comes after a look at ctx. So a task that starts when ctx is done was
// started before, but for the few instructions from that look on.
//
// The lock is not held. Cancellers may change the batch meanwhile: a node by its
// state, and all entries from some index on by a cut. The chunk is not moved,
// and the entries before rest belong to this goroutine.
func (w *ExecutorWorker) runBatch(c *chunk, from, end int) (rest int, tick *node) {
	done := false
	defer func() {
		if done {
			return
		}
		v := recover()
		rest = int(w.q.next.Load()) // what was started last has ended the batch
		w.endedBadly(c, rest-1, v)
		if v != nil && !w.o.tellPanic(v) { // else it is Goexit, which goes on
			panic(v)
		}
	}()
	// This loop is most of what a task costs here. The conditions below stand each in
	// an if of its own: measured, && makes more instructions of them.
	i := from
	for ; i < end; i++ {
		if w.outer != nil {
			if w.isCancelled() {
				break
			}
		}
		if !w.q.start(i) {
			if w.isCut(i) {
				i = end
				break
			}
		}
		e := &c.entries[i]
		switch n := e.n; n {
		case nil:
			f := e.post
			e.post = nil // what it has captured is not kept while it runs
			f()
		case gone: // it was cancelled before it was in the batch
		default:
			if w.run(n) { // it is periodic, and to be queued again
				done = true
				return i + 1, n
			}
		}
	}
	done = true
	return i, nil
}

// isCut reports whether entry i of the batch was cancelled together with all
// behind it.
func (w *ExecutorWorker) isCut(i int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return i >= w.q.limit
}

// Tasks that do not return panic or call Goexit. Either takes the goroutine of the pool with
// it, unless the panic is recovered. So the worker is put in order first, and goes on with
// another goroutine.

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
func (o *workerOptions) tellPanic(v any) bool {
	if o.recovered == nil {
		return false
	}
	o.recovered(&async.PanicError{Value: v, Stack: debug.Stack(), Task: o.name})
	return true
}

// leaveRest leaves what is queued to another goroutine, because this one ends.
// The dispatcher asks for one.
func (w *ExecutorWorker) leaveRest() {
	w.mu.Lock()
	if w.departUnlock() {
		w.d.backInLine(&w.seat)
	}
}
