package scheduler

import "slices"

// This file is how tasks that have not run are taken back, and how that is told.

// afterwards is what is to be done without the lock after something was done
// with it.
type afterwards struct {
	drops
	wake   bool // there is something to do: the scheduler is to be told
	undone bool // tasks were left undone: the scope is to be told
	ended  bool // w has come to its end
}

// unlock unlocks w.mu and does what a says.
func (w *ExecutorWorker) unlock(a afterwards) {
	w.mu.Unlock()
	w.afterwards(&a)
}

// afterwards does what a says.
func (w *ExecutorWorker) afterwards(a *afterwards) {
	if a.wake {
		defer w.s.makeReady(w) // also if an observer panics
	}
	if a.ended {
		w.unregister()
		defer w.finish()
	}
	if a.undone {
		defer w.tellScope()
	}
	a.tell()
}

// A reason is what becomes of tasks that will not run, and why.
type reason struct {
	outcome State
	cause   error
}

// drops are tasks that will not run, for one reason.
type drops struct {
	w *ExecutorWorker
	reason
	watched []drop
}

// A drop is a task that will not run: its future and context are to be told.
type drop struct {
	future *submission
	ctx    *taskContext // of a periodic task
}

// addLocked forgets what n has captured, and remembers n if anybody is to be
// told. A nil n is a post, which nobody watches. n was claimed, so nobody else
// writes to it; only its context may be taken by the drain at the same time.
func (d *drops) addLocked(n *node) {
	if n == nil {
		return
	}
	n.forget()
	one := drop{n.future, n.ctx.Swap(nil)}
	n.future = nil
	if one.future != nil || one.ctx != nil || d.w.o.observer != nil {
		d.watched = append(d.watched, one)
	}
}

// tell tells of the tasks. No lock is held.
func (d *drops) tell() {
	for _, one := range d.watched {
		if one.ctx != nil {
			one.ctx.cancel(d.cause)
		}
		if one.future != nil {
			one.future.dropped(d.reason)
		}
	}
	if d.w.o.observer == nil {
		return
	}
	for range d.watched { // last, because it may panic
		d.w.o.observer(Event{Worker: d.w.o.name, Outcome: d.outcome, Err: d.cause})
	}
}

// cancel is Task.Cancel.
func (w *ExecutorWorker) cancel(n *node, cause error) bool {
	w.noticeEnd()
	admits := w.admits()
	w.mu.Lock()
	if !n.claim(Cancelled) {
		if n.period != nil {
			n.period.stopped = true
		}
		w.mu.Unlock()
		// The drain stores the context before it claims n, and we have seen that
		// it has: so we find the context, or the task has ended.
		if c := n.ctx.Load(); c != nil {
			c.cancel(cause)
		}
		return false
	}
	a := afterwards{drops: drops{w: w, reason: reason{Cancelled, cause}}}
	a.addLocked(n)
	wasDelayed := n.on == onHeap
	w.q.unlink(n)
	if wasDelayed {
		w.armLocked()
	}
	a.wake = w.admitBlockedLocked(admits)
	a.ended = w.noteIdleLocked()
	w.unlock(a)
	return true
}

// withdraw has n, the task of a future, not be accepted any more, nor wait for
// room. It reports false if it was accepted: it has an outcome then, or will.
func (w *ExecutorWorker) withdraw(n *node) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n.seq != 0 {
		return false
	}
	n.claim(Cancelled)
	n.forget()
	n.future = nil
	for i, call := range w.blocked {
		if call.n == n {
			w.blocked = slices.Delete(w.blocked, i, i+1)
			call.answer <- ErrCancelled
			break
		}
	}
	return true
}

// CancelPending cancels everything that has not started, delayed and periodic
// tasks included, and returns how many. What has run is a prefix of what was
// scheduled. The task that runs is left alone, a periodic one is not run again,
// and the worker goes on. It does not block.
func (w *ExecutorWorker) CancelPending() int {
	w.noticeEnd()
	admits := w.admits()
	a := afterwards{drops: drops{w: w, reason: reason{Cancelled, ErrCancelled}}}
	w.mu.Lock()
	count := w.q.dropQueued(a.outcome, a.addLocked) + w.q.dropDelayed(a.outcome, a.addLocked)
	w.stopTickLocked()
	w.armLocked()
	a.wake = w.admitBlockedLocked(admits)
	a.ended = w.noteIdleLocked()
	w.unlock(a)
	return count
}

// stopTickLocked has the periodic task that runs, or is about to, not run again.
// What else of the batch is pending was claimed before.
func (w *ExecutorWorker) stopTickLocked() {
	for i := w.q.from; i < w.q.end; i++ {
		if n := w.q.head.entries[i].n; n != nil && n.period != nil && n.status() <= Running {
			n.period.stopped = true
		}
	}
}
