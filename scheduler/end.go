package scheduler

import (
	"context"
	"fmt"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/async/part"
	"github.com/ambit-go/ambit/internal/bridge"
)

// This file is the end of a worker, and of its scope.
//
// A worker is closed when it accepts nothing, has nothing queued, and no task of it
// runs. noteIdleLocked reports that once, under the lock, and the goroutine that is
// told calls cleanUp without the lock. When this has returned the worker is over:
// it is registered nowhere, and its scope may return. All workers end in this way,
// whether their scope, their ctx, their pool or a caller has ended them.

// cleanUp takes a closed worker off everything, and tells its scope. Where tasks
// were dropped, too, afterwards does the same, and tells of the tasks in between.
func (w *ExecutorWorker) cleanUp() {
	w.unregister()
	w.finish()
}

// unregister takes a closed worker off its scheduler and its context. It calls
// functions of package context, which may lock contexts of users, so w is not
// locked. A second call does nothing.
func (w *ExecutorWorker) unregister() {
	w.stop(ErrClosed)
	w.mu.Lock()
	unwatch := w.unwatch
	w.mu.Unlock()
	if unwatch != nil {
		unwatch()
	}
	w.d.remove(&w.seat)
}

// finish is the last thing that is done for a worker: its scope waits for it no
// more.
func (w *ExecutorWorker) finish() {
	w.tellScope()
	w.mu.Lock()
	atEnd := w.atEnd
	w.mu.Unlock()
	if atEnd != nil {
		atEnd.Remove() // after the scope was told: it may be ending now
	}
	// NewWorker may be in endWithScope just now, if the scheduler was closed. It
	// stores atEnd and looks at over in one critical section. Either that comes
	// before ours, and we find atEnd, or it finds over. So nothing stays registered.
	w.mu.Lock()
	w.life.over = true
	late := w.atEnd
	if w.ended != nil {
		close(w.ended)
		w.ended = nil
	}
	w.mu.Unlock()
	if atEnd == nil && late != nil {
		late.Remove()
	}
}

// tellScope tells the scope what was left undone: at once, because a scope with
// DetachAfter may return before w has ended. The end may still be under way, in a method
// of a user's error, when finish comes: then finish tells it, and the other does not.
// When tellScope has returned the scope has been told.
func (w *ExecutorWorker) tellScope() {
	w.mu.Lock()
	undone := w.life.undone
	w.mu.Unlock()
	if w.scope != nil && undone != nil && !w.scopeTold.Load() {
		bridge.LeftUndone(w.scope, undone, func() bool { return w.scopeTold.CompareAndSwap(false, true) })
	}
}

// waitOver blocks until finish has been called. The channel is made by the first call
// that waits, and closed by finish, both under the lock.
func (w *ExecutorWorker) waitOver() {
	// over and ended share the lock: finish comes before, and is seen here, or after,
	// and closes the channel.
	w.mu.Lock()
	if w.life.over {
		w.mu.Unlock()
		return
	}
	if w.ended == nil {
		w.ended = make(chan struct{})
	}
	ended := w.ended
	w.mu.Unlock()
	<-ended
}

// endWithScope has w end with its scope, if it has one. If the scope has ended
// already, w is closed from the first.
func (w *ExecutorWorker) endWithScope() {
	if w.scope == nil {
		return
	}
	atEnd := bridge.AtEnd(w.scope, (*member)(w))
	if atEnd == nil {
		w.close(closing{outcome: Cancelled, cause: async.ErrScopeEnded})
		return
	}
	w.mu.Lock()
	w.atEnd = atEnd
	over := w.life.over // see finish
	w.mu.Unlock()
	if over {
		atEnd.Remove()
	}
}

// A member is a worker, as its scope sees it: a bridge.Joiner. The scope calls, in
// this order, ScopeEnds when it is the worker's turn, Ended, and Join if the worker
// has not ended. Name and Left it may call at any time, for its stragglers.
type member ExecutorWorker

// ScopeEnds is called when it is w's turn to end. A worker that has nothing to
// do ends here, without a goroutine.
func (m *member) ScopeEnds(bridge.Ending, error) {
	w := (*ExecutorWorker)(m)
	w.mu.Lock()
	// An ender that has something to do is left to Join, for which the scope makes a
	// goroutine: nothing may block here.
	ended := w.life.refuseIfIdle(w.q.length, w.q.pending()) && w.noteIdleLocked()
	w.mu.Unlock()
	if ended {
		w.cleanUp()
	}
}

// Ended reports that there is nothing to wait for: Join need not be called.
func (m *member) Ended() bool {
	w := (*ExecutorWorker)(m)
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.life.over
}

// Join drains the worker, or closes it if its ctx is done, and blocks until it
// has ended. By finish the scope is told what it leaves undone.
func (m *member) Join(ctx context.Context) error {
	w := (*ExecutorWorker)(m)
	// Shutdown cancels ctx. It cancels the ctx of w, too, unless that was made under
	// WithoutCancel; then w is closed here.
	defer context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		w.close(closing{outcome: Cancelled, cause: cause, undone: cause, cut: true})
	})()
	defer w.waitOver() // also if an observer panics
	w.startDraining()
	return nil
}

// Name returns the worker's name.
func (m *member) Name() string { return m.o.name }

// Left returns the task that runs, by the name of the worker. Its stack is found
// by the frame of onPool.
func (m *member) Left() []bridge.Left {
	w := (*ExecutorWorker)(m)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.life.hasGoroutine {
		return nil
	}
	return []bridge.Left{{Task: w.o.name, Frame: fmt.Sprintf("(*ExecutorWorker).onPool(%p", w)}}
}

// Look says how w stands, for a picture of the tree.
func (m *member) Look() part.View {
	w := (*ExecutorWorker)(m)
	st := w.Stats()
	v := part.View{Kind: "worker", Name: w.o.name, Places: 1, Queued: st.Pending - st.Delayed}
	if st.Running {
		v.Running = 1
	}
	if st.Delayed > 0 {
		v.State = fmt.Sprintf("%d delayed", st.Delayed)
	}
	if w.Closed() {
		v.State = "closed"
	}
	return v
}
