package scheduler

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/ambit-go/ambit/async"
)

// This file is what happens on a goroutine of the pool.

// drain runs w's tasks until none is left, or w has had its share: then it
// reports true, and w is to be looked at again.
func (w *ExecutorWorker) drain() (more bool) {
	clean := false
	defer func() {
		if !clean { // a task, a handler of panics or an observer takes the goroutine with it
			w.handOver()
		}
	}()
	left, slice := w.o.batch, w.o.slice
	began := clockIf(slice > 0)
	w.mu.Lock()
	w.drained = true
	w.activated++
	for w.q.length > 0 && left > 0 && (slice == 0 || left == w.o.batch || clock()-began < slice) {
		n := left
		if w.o.capacity > 0 || slice > 0 {
			n = 1 // so that its place is free when it starts, or the clock is read between tasks
		}
		c, from, end := w.q.detach(n)
		w.mu.Unlock()
		rest, tick := w.runAll(c, from, end)
		left -= rest - from
		w.mu.Lock()
		w.q.settle(rest)
		if tick != nil && !w.againLocked(tick) {
			lost := w.loseLocked(nil, tick)
			w.mu.Unlock()
			w.tell(lost, Cancelled, ErrCancelled)
			w.mu.Lock()
		}
	}
	clean = true
	w.drained = false
	if more = w.q.length > 0; more {
		w.mu.Unlock()
		return true
	}
	over := w.restLocked()
	w.mu.Unlock()
	if over {
		w.ended()
	}
	return false
}

// runAll runs the batch and returns the first entry of it that is to be run
// yet. A periodic task, tick, ends it early. So does a panic or Goexit: w is put in
// order first, then it continues, unless it is to be recovered.
func (w *ExecutorWorker) runAll(c *chunk, from, end int) (rest int, tick *node) {
	done := false
	defer func() {
		if done {
			return
		}
		v := recover()
		w.broken(c, rest-1, v)
		if v != nil && !w.recovered(v) { // else it is Goexit, which goes on
			panic(v)
		}
	}()
	for rest = from; rest < end; {
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
	return rest, tick
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
	w.roomy()
	task, plain := n.task, n.plain
	if again = n.period != nil; !again {
		n.forget()
		n.owner = nil
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

// context returns the context of n, nil if it needs none. It is there before n
// can be seen to run.
func (w *ExecutorWorker) context(n *node) *taskContext {
	c := n.ctx.Load()
	if c == nil && !n.bare {
		ctx, cancel := context.WithCancelCause(w.ctx)
		c = &taskContext{ctx, cancel}
		n.ctx.Store(c)
	}
	return c
}

// roomy lets calls that wait for room take the place of a task that starts.
func (w *ExecutorWorker) roomy() {
	if w.o.capacity == 0 {
		return
	}
	w.mu.Lock()
	w.admitLocked() // w is being drained, so nobody has to be told
	w.mu.Unlock()
}

func clockIf(yes bool) time.Duration {
	if !yes {
		return 0
	}
	return clock()
}

// againLocked has n, a periodic task that has returned, wait for its next time.
// It reports false if there is none.
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
		w.ripenLocked()
	} else {
		w.q.push(entry{n: n})
	}
	return true
}

// broken puts w in order after entry i of the batch has panicked with v or, if
// that is nil, has called Goexit.
func (w *ExecutorWorker) broken(c *chunk, i int, v any) {
	outcome := Exited
	if v != nil {
		outcome = Panicked
	}
	var ctx *taskContext
	var e Event
	ended := true
	w.mu.Lock()
	n := c.entries[i].n
	if n == nil {
		w.q.ended[outcome]++
		c.entries[i], c.nodes = entry{n: gone}, true
	} else if ended = n.status() == Running; ended { // else an observer has panicked
		e = Event{Worker: w.o.name, Outcome: outcome, Queued: w.began - n.stamp, Ran: clock() - w.began}
		n.forget()
		ctx = n.ctx.Swap(nil)
		n.state.Store(uint32(outcome))
	}
	w.q.settle(i + 1)
	w.mu.Unlock()
	if ctx != nil {
		ctx.cancel(async.ErrScopeEnded)
	}
	if v != nil && w.o.closeOnPanic {
		_ = w.Close()
	}
	if ended && w.o.observer != nil {
		w.o.observer(e)
	}
}

// recovered tells the handler of a panic, and reports whether there is one.
func (w *ExecutorWorker) recovered(v any) bool {
	if w.o.recovered == nil {
		return false
	}
	w.o.recovered(&async.PanicError{Value: v, Stack: debug.Stack(), Task: w.o.name})
	return true
}

// handOver leaves the rest to another goroutine, because this one ends. Serve
// asks for that.
func (w *ExecutorWorker) handOver() {
	w.mu.Lock()
	w.drained = false
	if w.q.length == 0 {
		over := w.restLocked()
		w.mu.Unlock()
		if over {
			w.ended()
		}
		return
	}
	w.mu.Unlock()
	w.s.mu.Lock()
	w.s.queueLocked(w)
	w.s.mu.Unlock()
}
