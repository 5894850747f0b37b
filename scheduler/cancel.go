package scheduler

import (
	"slices"
)

// This file is how a task that has not run is taken back, and who is told.

// disown has n, a future's, not be accepted any more, nor wait for room. It
// reports false if it was accepted: it has an outcome then, or will.
func (w *ExecutorWorker) disown(n *node) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n.seq != 0 {
		return false
	}
	n.claim(Cancelled)
	n.forget()
	n.owner = nil
	for i, a := range w.blocked {
		if a.n == n {
			w.blocked = slices.Delete(w.blocked, i, i+1)
			a.told <- ErrCancelled
			break
		}
	}
	return true
}

// cancel is Task.Cancel.
func (w *ExecutorWorker) cancel(n *node, cause error) bool {
	w.mu.Lock()
	if !n.claim(Cancelled) {
		if n.period != nil {
			n.period.stopped = true
		}
		w.mu.Unlock()
		if c := n.ctx.Load(); c != nil {
			c.cancel(cause)
		}
		return false
	}
	a := aftermath{outcome: Cancelled, cause: cause}
	w.lose(&a)(n)
	delayed := n.place == delayed
	w.q.take(n)
	if delayed {
		w.armLocked()
	}
	a.wake = w.admitLocked()
	a.over = w.quietLocked()
	w.unlock(a)
	return true
}

// A loss is a task that will not run, and whoever is to be told.
type loss struct {
	owner *submission
	ctx   *taskContext // of a periodic task
}

// loseLocked forgets what n has captured and adds it to lost if anybody is to
// be told.
func (w *ExecutorWorker) loseLocked(lost []loss, n *node) []loss {
	if n == nil {
		return lost // a post, which nobody watches
	}
	n.forget()
	l := loss{n.owner, n.ctx.Swap(nil)}
	n.owner = nil
	if l.owner != nil || l.ctx != nil || w.o.observer != nil {
		lost = append(lost, l)
	}
	return lost
}

// tell tells of tasks that have not run, and why.
func (w *ExecutorWorker) tell(lost []loss, outcome State, cause error) {
	for _, l := range lost {
		if l.ctx != nil {
			l.ctx.cancel(cause)
		}
		if l.owner != nil {
			l.owner.dropped(cause)
		}
	}
	if w.o.observer == nil {
		return
	}
	for range lost { // last, because it may panic
		w.o.observer(Event{Worker: w.o.name, Outcome: outcome, Err: cause})
	}
}
