package scheduler

import "github.com/ambit-go/ambit/internal/bridge"

// A ticket stands between a future and the task that is queued for it: each tells the other
// when the task will not run.
type ticket struct {
	mu     mutex     // guards what follows
	n      *node     // the task; nil: it has not joined the queue, or was taken back
	future canceller // nil until it is known
	lost   reason    // why the task will not run; zero if it may

	withdrawn bool // the future was cancelled while it was queued
}

// A canceller is an *async.Future of any type.
type canceller interface{ Cancel(cause error) bool }

// issue notes that n is the task. It reports false if the future was cancelled before.
func (t *ticket) issue(n *node) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n = n
	return !t.withdrawn
}

// takeBack notes that the future was cancelled, and returns the task, nil if there is none yet.
func (t *ticket) takeBack() (n *node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, t.n, t.withdrawn = t.n, nil, true
	return n
}

// state returns where the task stands. It is pending until it has joined the queue, and done
// when its future has settled: who was given the result goes on at once, and may be faster
// than the worker, which has yet to note that the task has returned.
func (t *ticket) state() State {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.withdrawn:
		return Cancelled
	case t.future != nil && bridge.Settled(t.future):
		return Done
	case t.n == nil:
		return Pending
	}
	return t.n.status()
}

// dropped is called by the worker when the task will not run.
func (t *ticket) dropped(why reason) {
	t.mu.Lock()
	future := t.future
	if t.withdrawn {
		future = nil // it knows
	} else {
		t.lost = why
	}
	t.mu.Unlock()
	if future != nil {
		why.settle(future)
	}
}

// belongsTo says whose task it is. The task of a future that was made just now may
// have been dropped before: then dropped has left word.
func (t *ticket) belongsTo(future canceller) {
	t.mu.Lock()
	t.future = future
	why := t.lost
	t.mu.Unlock()
	if why.cause != nil {
		why.settle(future)
	}
}

// settle settles a future whose task will not run. A rejection is a failure: if
// nobody is given it, it is the scope's. A cancellation somebody has asked for.
func (why reason) settle(future canceller) {
	if why.outcome == Rejected {
		bridge.Reject(future, why.cause)
	} else {
		future.Cancel(why.cause)
	}
}
