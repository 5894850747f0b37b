package scheduler

// This file is how tasks that have not run are taken back, and how that is told.

// afterwards is what is to be done without the lock after something was done
// with it.
type afterwards struct {
	drops
	wake   bool // there is something to do: the scheduler is to be told
	undone bool // tasks were left undone: the scope is to be told
	ended  bool // w has come to its end
}

// dropping is what is to be done after tasks were dropped for a reason.
func (w *ExecutorWorker) dropping(outcome State, cause error) afterwards {
	return afterwards{drops: drops{o: &w.o, reason: reason{outcome, cause}}}
}

// unlock unlocks w.mu and does what a says.
func (w *ExecutorWorker) unlock(a *afterwards) {
	w.mu.Unlock()
	if a.wake || a.ended || a.undone || len(a.watched) > 0 { // measured: most often there is nothing
		w.afterwards(a)
	}
}

// afterwards does what a says.
func (w *ExecutorWorker) afterwards(a *afterwards) {
	if a.wake {
		defer w.d.makeReady(&w.seat) // also if an observer panics
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
	a := w.dropping(Cancelled, cause)
	a.addLocked(n)
	wasDelayed := n.on == onHeap
	w.q.unlink(n)
	if wasDelayed {
		w.armLocked()
	}
	a.wake = w.admitBlockedLocked(admits)
	a.ended = w.noteIdleLocked()
	w.unlock(&a)
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
	w.room.withdraw(n, ErrCancelled)
	return true
}

// CancelPending cancels everything that has not started, delayed and periodic tasks
// included, and returns how many.
//
//	n := w.CancelPending()
//
// # Details
//
// The tasks that have run are a prefix of what was scheduled. The task that runs is left
// alone, a periodic one is not run again, and the worker goes on. CancelPending does not
// block.
func (w *ExecutorWorker) CancelPending() int {
	w.noticeEnd()
	admits := w.admits()
	a := w.dropping(Cancelled, ErrCancelled)
	w.mu.Lock()
	count := w.q.dropQueued(a.outcome, a.addLocked) + w.q.dropDelayed(a.outcome, a.addLocked)
	w.q.stopTick()
	w.armLocked()
	a.wake = w.admitBlockedLocked(admits)
	a.ended = w.noteIdleLocked()
	w.unlock(&a)
	return count
}
