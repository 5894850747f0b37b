package scheduler

import (
	"context"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/ambit-go/ambit/async"
)

// This file is what happens on a goroutine of the pool.

// onPool is drain in a frame of its own, because a traceback prints its
// receiver: that is how the stack of a worker's running task is found.
//
//go:noinline
func (w *ExecutorWorker) onPool() (more bool) {
	more = w.drain()
	runtime.KeepAlive(w) // so that the receiver is still there to be printed
	return more
}

// drain runs w's tasks until none is left, or w has had its share: then it
// reports true, and w is to be looked at again.
//
// That the queue is empty and that nobody is at w any more is one step, under
// the lock. A producer queues under the same lock: it comes before, and its task
// is seen here, or after, and finds that w is not active.
func (w *ExecutorWorker) drain() (more bool) {
	clean := false
	defer func() {
		if !clean { // a task, a handler of panics or an observer takes the goroutine with it
			w.leaveRest()
		}
	}()
	remaining, slice := w.o.batch, w.o.slice
	began := clockIf(slice > 0)
	w.mu.Lock()
	w.hasGoroutine = true
	w.activated++
	for w.q.length > 0 && remaining > 0 && (slice == 0 || remaining == w.o.batch || clock()-began < slice) {
		most := remaining
		if w.o.capacity > 0 || slice > 0 {
			most = 1 // so that its place is free when it starts, or the clock is read between tasks
		}
		c, from, end := w.q.takeBatch(most)
		w.mu.Unlock()
		rest, tick := w.runBatch(c, from, end)
		remaining -= rest - from
		w.mu.Lock()
		w.q.endBatch(rest)
		switch {
		case tick != nil:
			w.afterTickLocked(tick)
		case rest < end: // a panic was recovered, or ctx is done
			w.mu.Unlock()
			if w.isCancelled() {
				w.cancelled()
			}
			w.mu.Lock()
		}
	}
	clean = true
	w.hasGoroutine = false
	if more = w.q.length > 0; more {
		w.mu.Unlock()
		return true
	}
	ended := w.releaseLocked()
	w.mu.Unlock()
	if ended {
		w.cleanUp()
	}
	return false
}

// runBatch runs the batch and returns the first entry of it that has not been
// run. A periodic task, tick, ends it early; so does the end of w's ctx. So do
// a panic and Goexit: w is put in order first, then they continue, unless the
// panic is to be recovered.
func (w *ExecutorWorker) runBatch(c *chunk, from, end int) (rest int, tick *node) {
	done := false
	defer func() {
		if done {
			return
		}
		v := recover()
		w.endedBadly(c, rest-1, v)
		if v != nil && !w.tellPanic(v) { // else it is Goexit, which goes on
			panic(v)
		}
	}()
	for rest = from; rest < end; {
		// A task that is started was preceded by a look at ctx, so whoever sees
		// that ctx is done sees no task start after the one that runs then.
		if w.isCancelled() {
			break
		}
		rest++
		if !w.q.start(rest-1) && w.isCut(rest-1) {
			rest = end
			break
		}
		e := &c.entries[rest-1]
		switch n := e.n; n {
		case gone: // it was cancelled before it was in the batch
		case nil:
			f := e.post
			e.post = nil
			f()
		default:
			if w.run(n) {
				done = true
				return rest, n
			}
		}
	}
	done = true
	return rest, nil
}

// isCut reports whether entry i of the batch was cancelled together with all
// behind it.
func (w *ExecutorWorker) isCut(i int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return i >= w.q.limit
}

// run runs n, if it was not cancelled, and reports whether it is to run again.
// What n has captured is forgotten before, unless it is.
func (w *ExecutorWorker) run(n *node) (again bool) {
	c := w.context(n)
	if !n.claim(Running) {
		if c = n.ctx.Swap(nil); c != nil {
			c.cancel(ErrCancelled)
		}
		return false
	}
	w.began = clockIf(w.o.observer != nil)
	w.placeFreed()
	task, plain := n.task, n.plain
	if again = n.period != nil; !again {
		n.forget()
		n.future = nil
	}
	if plain != nil {
		plain()
	} else {
		task(c)
	}
	outcome := Pending
	if !again {
		outcome = Done
		n.ctx.Store(nil)
		n.state.Store(uint32(Done))
		if c != nil {
			c.cancel(async.ErrScopeEnded)
		}
	}
	if w.o.observer != nil {
		w.o.observer(Event{Worker: w.o.name, Outcome: outcome, Queued: w.began - n.stamp, Ran: clock() - w.began})
	}
	return again
}

// context returns the context of n, nil if it needs none. It is stored before n
// is claimed, so whoever sees n run finds the context to cancel.
func (w *ExecutorWorker) context(n *node) *taskContext {
	c := n.ctx.Load()
	if c == nil && !n.noContext {
		ctx, cancel := context.WithCancelCause(w.ctx)
		c = &taskContext{ctx, cancel}
		n.ctx.Store(c)
	}
	return c
}

// afterTickLocked has n, a periodic task that has returned, wait for its next
// time, or tells of its end. It unlocks w.mu in between.
func (w *ExecutorWorker) afterTickLocked(n *node) {
	if w.againLocked(n) {
		return
	}
	d := drops{w: w, reason: reason{Cancelled, ErrCancelled}}
	d.addLocked(n)
	w.mu.Unlock()
	d.tell()
	w.mu.Lock()
}

// againLocked has n wait for its next time. It reports false if there is none.
func (w *ExecutorWorker) againLocked(n *node) bool {
	w.ticks++
	if n.period.stopped || w.refusing {
		n.state.Store(uint32(Cancelled))
		w.q.count(n)
		return false
	}
	now := clock()
	n.at = n.period.after(now)
	n.state.Store(uint32(Pending))
	n.stamp = now // of use only to an observer
	if n.period.every > 0 {
		w.q.delay(n)
		w.queueDueLocked()
		w.armLocked()
	} else {
		w.q.push(entry{n: n})
	}
	return true
}

// endedBadly puts w in order after entry i of the batch has panicked with v or,
// if that is nil, has called Goexit.
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

func clockIf(yes bool) time.Duration {
	if !yes {
		return 0
	}
	return clock()
}
