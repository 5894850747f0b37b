package scheduler

import (
	"context"

	"github.com/ambit-go/ambit/async"
)

// This file is how one task with a node runs, once or again and again. Posts are
// called by runBatch itself.

// run runs n, if it was not cancelled, and reports whether it is to run again.
// If it is not, all that n has captured is forgotten before.
//
// The claim decides between us and cancellers. The context is there before it,
// so a caller that cannot cancel n because it runs finds the context to cancel.
func (w *ExecutorWorker) run(n *node) (again bool) {
	c := w.context(n)
	if !n.claim(Running) {
		// Either of us may have the context, and cancels it: see addLocked.
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
		n.ctx.Store(nil) // a handle holds no context
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

// context returns the context of n, nil if it needs none. A periodic task has one
// for all its runs.
func (w *ExecutorWorker) context(n *node) *taskContext {
	c := n.ctx.Load()
	if c == nil && !n.noContext {
		ctx, cancel := context.WithCancelCause(w.ctx)
		c = &taskContext{ctx, n, cancel}
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
	d := drops{o: &w.o, reason: reason{Cancelled, ErrCancelled}}
	d.addLocked(n)
	w.mu.Unlock()
	d.tell()
	w.mu.Lock()
}

// againLocked has n wait for its next time. It reports false if there is none:
// n was stopped while it ran, or w is ending. Until now its state was running,
// so nobody has taken it for pending.
func (w *ExecutorWorker) againLocked(n *node) bool {
	w.ticks++
	if n.period.stopped || w.life.refusing {
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

// Value returns what the context of a task is asked for: the task itself among others.
func (c *taskContext) Value(key any) any {
	if key == (runningKey{}) {
		return c
	}
	return c.Context.Value(key)
}

func (c *taskContext) worker() *vertex        { return &c.n.q.owner.(*ExecutorWorker).vertex }
func (c *taskContext) runs() bool             { return c.n.status() == Running }
func (c *taskContext) outer() context.Context { return c.Context }
