package async

import (
	"context"
	"fmt"
	"time"
)

// This file settles futures: it publishes the outcome and wakes the waiters.
//
// What was written before, to the value and to err, is published by storing the
// state as done. A waiter that loads done sees all of it without a lock.

func (f *future) settled() bool { return f.t.state.Load() == stateDone }

// settle publishes the outcome, leaves the owner and wakes the waiters.
// Storing the state is what happens before every read of the value and the
// error. Waking comes last: measured, it saves a fifth of Execute and Await
// that the woken goroutine finds the owner's lock free. Only waiters that want
// their slot back are seen to before we give up ours.
func (f *future) settle(v *verdict) {
	waiters := f.publish(v)
	f.t.leave()
	wake(waiters)
}

// publish makes v the outcome and returns the waiters to wake. The caller must have
// won the right to settle f, by being its task, or by take for a promise.
func (f *future) publish(v *verdict) (waiters *waiter) {
	var x *unclaimed
	if v.err != nil || v.value != nil {
		x = f.unclaimed(v)
	}
	f.mu.Lock()
	// Whether anybody is given x is decided, and f done, in one critical section. A
	// waiter registers under the same lock: it is counted here, or finds f done.
	if x != nil {
		f.decideLocked(x)
	}
	f.t.move(stateDone)
	waiters = f.takeWaitersLocked()
	f.mu.Unlock()
	for ; x != nil; x = x.beside {
		if x.late {
			f.tellRoot(x)
		}
	}
	return waiters
}

// wake tells waiters that their future has settled. No lock is held: a woken
// goroutine may run at once.
func wake(waiters *waiter) {
	for w := waiters; w != nil; {
		next := w.next
		w.next = nil // w is the waiter's again once it is notified
		w.notify(gotSettled)
		w = next
	}
}

// takeWaitersLocked empties the list. It returns those that are to be notified
// when the task has left its owner. Those that have lent a slot are told at once:
// so the slot of f's task, which is given up in between, goes to one of them and
// not to a task that has not begun. Channels of Done are closed at once, too.
func (f *future) takeWaitersLocked() (waiters *waiter) {
	for w := f.waiters; w != nil; {
		next := w.next
		w.prev, w.next = nil, nil
		w.serial.Add(1) // it is off the list
		if w.done == nil && w.slot == nil {
			w.taken, w.next = true, waiters
			waiters = w
		} else {
			w.settled()
		}
		w = next
	}
	f.waiters = nil
	return waiters
}

// awaitedLocked reports whether anybody is parked and will be given the outcome. A
// waiter with a channel stands for Done, which gives nothing to anybody.
func (f *future) awaitedLocked() bool {
	if f.wanted.Load() > 0 {
		return true
	}
	for w := f.waiters; w != nil; w = w.next {
		if w.done == nil {
			return true
		}
	}
	return false
}

// unwant notes that an AwaitAll will look no more and reports whether f has
// settled. The settling goroutine reads wanted and settles in one critical
// section. Either that comes before ours, and has counted this AwaitAll as given
// the outcome: then we see f settled. Or it comes after, and does not count it.
func (f *future) unwant() bool {
	if f.settled() {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wanted.Add(-1)
	return f.settled()
}

// doneChannel returns a channel that is closed when f settles: that of a
// waiter that nobody is parked on, which is the first on the list. It is made by
// the first call; every call before f is done returns the same.
func (f *future) doneChannel() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w := f.waiters; w != nil && w.done != nil {
		return w.done
	}
	w := new(waiter)
	w.done = make(chan struct{})
	if f.settled() {
		close(w.done)
	} else {
		f.addWaiterLocked(w)
	}
	return w.done
}

// promiseValue has every waiter from now on be given the value, and returns
// nil; or it returns what a waiter was told before.
func (f *future) promiseValue() (expiry error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	expiry = f.t.more.expiryTold
	f.valuePromised = expiry == nil
	return expiry
}

// settleUnowned settles a future that belongs to no scope.
func (f *future) settleUnowned(err error) {
	f.t.inner.Store(endedScope)
	f.err = err
	f.t.state.Store(stateDone)
}

// tellOwner notes that the owner has been told why instead of the outcome: an
// expiry, or that it has cancelled. It reports false if f has settled, which
// wins, or its value is promised already. The first error told is what a future
// with a discard hook settles with.
func (f *future) tellOwner(why error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.settled() || f.valuePromised {
		return false
	}
	f.ownerTold = true
	if m := f.t.more; m != nil && (m.discard != nil || f.t.kind == kindChoice) && m.expiryTold == nil {
		m.expiryTold = why
	}
	return true
}

// renounce notes that the owner of a future that has settled wants nothing of
// it: an error counts as given, and a value that nobody was given is discarded.
func (f *future) renounce(cause error) {
	if !f.settled() {
		return
	}
	x, open := f.err.(*unclaimed)
	switch {
	case !open:
	case !x.isValue:
		if !x.v.mustRaise() { // those are given only by being returned
			x.claim()
		}
	case x.forfeit(canceled(cause).asError()):
		x.discard()
	}
}

// grace returns how long an Await waits for an aborted task.
func (f *future) grace() time.Duration {
	if f.t.more == nil {
		return 0
	}
	return f.t.more.grace
}

// promise makes f a promise of owner; false if that has ended.
func (f *future) promise(owner *scope, ctx context.Context, opts []TaskOption) bool {
	t := &f.t
	t.owner, t.exit = owner, byReturn
	t.more = newMore(owner, opts)
	t.more.told = promiseTold
	if t.more.restart != nil {
		panic("async: NewPromise with Restart: nothing runs for a promise that could be started again")
	}
	t.setOrigin(ctx)
	if owner.t.kind != kindRoot && !owner.add(t) { // a root does not end, and would keep it for ever
		return false
	}
	// A cancellation of the owner stores its signal and then walks over its
	// promises, so either it finds this one or we see the signal.
	if t.more.onAbort != nil || t.more.timeout != 0 || t.derived() != nil || t.more.stops != nil || t.stopped() != nil {
		h := t.scope()
		if t.more.timeout != 0 {
			h.limitTime(t.more.timeout)
		}
		t.watchStops()
	}
	return true
}

func (f *future) reject(err error) bool {
	if !f.take() {
		return false
	}
	var v verdict
	v.leaf(&f.t, err, f.t.stopped())
	f.settlePromise(&v)
	return true
}

// abandon settles an unresolved promise whose scope ends. One that somebody else
// is just settling is waited for: the scope does not end before it, and counts
// its error. The channel claims nothing, unlike a wait.
func (f *future) abandon() {
	if !f.take() {
		<-f.doneChannel()
		return
	}
	var v verdict
	v.leaf(&f.t, fmt.Errorf("%w: %s", ErrAbandoned, f.t.name()), f.t.stopped())
	v.abandoned = true
	f.settlePromise(&v)
}

// stop settles an unresolved promise whose context was cancelled with sg.
func (f *future) stop(sg *stopError) {
	if f.take() {
		f.settlePromise(&verdict{err: sg.asError(), cause: sg.cause, echo: true})
	}
}

// promiseTold is called when the context of a promise, whose inner scope is s, is
// cancelled: the promise settles at once, or after its abort hook, if it has one. The hook
// may resolve it, so the promise cannot be what joins the hook.
func promiseTold(s *scope) (after func()) {
	f, sg := s.t.self.future(), s.sig.Load()
	stop := func() { f.stop(sg) }
	call := s.abortCallLocked()
	if call == nil {
		return stop
	}
	h := s.t.owner.hook("abort hook", func(ctx context.Context) error {
		defer stop() // also after a panic or Goexit of the hook
		return call(ctx)
	})
	h.t.more.name = "abort hook of " + s.t.name()
	if !s.t.owner.add(&h.t) {
		h.t.countOut()
		return stop
	}
	return h.start
}

// take wins the right to settle a promise: running -> joining, once.
func (f *future) take() bool { return f.t.state.CompareAndSwap(stateRunning, stateJoining) }

func (f *future) settlePromise(v *verdict) {
	f.t.endUnrun()
	if v.err == nil && f.t.leads() {
		f.settleLeader(v)
	} else {
		f.settle(v)
	}
}

// settleLeader is settle for a leader that has ended without a failure. It is done
// before its scope is cancelled: a wait that this ends finds the outcome.
func (f *future) settleLeader(v *verdict) {
	waiters := f.publish(v)
	f.t.lead()
	f.t.leave()
	wake(waiters)
}
