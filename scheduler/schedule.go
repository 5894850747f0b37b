package scheduler

import (
	"context"
	"iter"
	"time"
)

// This file is the ways to schedule, and how tasks are accepted. A task that was accepted
// has a number, is counted, and has one outcome.

// Post schedules f, at the end of the queue, without a handle.
//
//	err := w.Post(func() { balance += 10 })
//
// # Details
//
// f can be cancelled only with everything else that is pending. Post allocates nothing
// once the worker is warm. It blocks only as [Capacity] says, and returns [ErrClosed] or
// [ErrFull] if f was not accepted. A nil f panics.
func (w *ExecutorWorker) Post(f func()) error {
	if f == nil {
		panic("scheduler: Post with a nil function")
	}
	if w.isCancelled() {
		return ErrClosed
	}
	w.mu.Lock()
	if w.life.refusing {
		w.mu.Unlock()
		return ErrClosed
	}
	if w.room.most > 0 || w.o.observer != nil {
		return w.admit(&node{q: &w.q, plain: f, noContext: true})
	}
	w.queueDueLocked()
	w.q.pushPost(f)
	wake := !w.life.active
	w.life.active = true
	w.mu.Unlock()
	if wake {
		w.d.makeReady(&w.seat)
	}
	return nil
}

// PostAll posts what fs yields, one behind the other with nothing between, and returns
// how many.
//
//	n, err := w.PostAll(slices.Values(tasks))
//
// # Details
//
// With a [Capacity] or an observer the functions are posted one by one, up to the first
// error. fs is pulled to its end, on the calling goroutine, before anything is posted; if
// a function is nil PostAll panics and nothing is. It blocks as long as fs does, and as
// Post does, whose errors it returns.
func (w *ExecutorWorker) PostAll(fs iter.Seq[func()]) (int, error) {
	var all []func()
	for f := range fs {
		if f == nil {
			panic("scheduler: PostAll of a nil function")
		}
		all = append(all, f)
	}
	if w.room.most > 0 || w.o.observer != nil {
		for i, f := range all {
			if err := w.Post(f); err != nil {
				return i, err
			}
		}
		return len(all), nil
	}
	if w.isCancelled() {
		return 0, ErrClosed
	}
	w.mu.Lock()
	if w.life.refusing {
		w.mu.Unlock()
		return 0, ErrClosed
	}
	w.queueDueLocked()
	for _, f := range all {
		w.q.pushPost(f)
	}
	wake := w.life.wake(w.q.length)
	w.mu.Unlock()
	if wake {
		w.d.makeReady(&w.seat)
	}
	return len(all), nil
}

// Schedule schedules f at the end of the queue, and returns the task.
//
//	task, err := w.Schedule(func(ctx context.Context) { index(ctx, file) })
//
// # Details
//
// The context of f is a child of the worker's and is cancelled with [ErrCancelled] by
// [Task.Cancel], with [ErrClosed] by Close, and when f has returned. Schedule blocks only
// as [Capacity] says, and returns [ErrClosed] or [ErrFull] if f was not accepted. A nil f
// panics.
func (w *ExecutorWorker) Schedule(f func(ctx context.Context)) (Task, error) {
	return w.schedule("Schedule", &node{task: f}, 0)
}

// ScheduleAfter schedules f to join the end of the queue when d has passed, not before.
//
//	task, err := w.ScheduleAfter(time.Second, func(ctx context.Context) { expire(ctx, key) })
//
// # Details
//
// Tasks join with others in the order of the deadlines, equal ones in the order of the
// calls. d <= 0 is Schedule, whose blocking and errors it has.
func (w *ExecutorWorker) ScheduleAfter(d time.Duration, f func(ctx context.Context)) (Task, error) {
	now := clock()
	return w.schedule("ScheduleAfter", &node{task: f, at: later(now, d), timed: d > 0}, now)
}

// ScheduleAt is ScheduleAfter for a time of day.
//
//	task, err := w.ScheduleAt(midnight, report)
//
// # Details
//
// Where t has a monotonic reading that counts; where it has none, steps of the wall clock
// before the call do. ScheduleAt blocks and fails as Schedule does.
func (w *ExecutorWorker) ScheduleAt(t time.Time, f func(ctx context.Context)) (Task, error) {
	at := onClock(t)
	now := clock()
	return w.schedule("ScheduleAt", &node{task: f, at: at, timed: at > now}, now)
}

// ScheduleEvery schedules f to run again and again: the first time after first, then
// every period, on the grid of the two.
//
//	task, err := w.ScheduleEvery(0, time.Minute, func(ctx context.Context) { sweep(ctx) })
//
// # Details
//
// Runs never overlap; ticks that were missed meanwhile are skipped. See [FixedDelay] and
// [Burst]. A period of 0 or less puts f at the end of the queue each time. The task ends
// with Cancel, a panic, Goexit, or the worker, draining included. A tick allocates
// nothing; all runs share one context. ScheduleEvery blocks and fails as Schedule does.
func (w *ExecutorWorker) ScheduleEvery(
	first, period time.Duration, f func(ctx context.Context), opts ...EveryOption,
) (Task, error) {
	now := clock()
	p := newPeriod(period, opts)
	p.next = later(now, max(first, 0))
	return w.schedule("ScheduleEvery", &node{task: f, period: p, at: p.next, timed: first > 0}, now)
}

// schedule accepts n, if it is timed to be run at n.at of our clock, which
// stood at now when the caller asked.
func (w *ExecutorWorker) schedule(what string, n *node, now time.Duration) (Task, error) {
	if n.task == nil {
		panic("scheduler: " + what + " with a nil function")
	}
	if w.isCancelled() {
		return Task{}, ErrClosed
	}
	n.q, n.stamp = &w.q, now
	w.mu.Lock()
	if w.life.refusing {
		w.mu.Unlock()
		return Task{}, ErrClosed
	}
	if err := w.admit(n); err != nil {
		return Task{}, err
	}
	return Task{n}, nil
}

// admit is called with w.mu held, which it unlocks, and accepts n if there is
// room. Otherwise it does what the options say.
func (w *ExecutorWorker) admit(n *node) error {
	// Pending tasks are counted only if there is a limit: that takes longer than all else.
	if w.room.most > 0 && w.room.isFull(w.q.pending()) {
		return w.admitFull(n)
	}
	wake := w.enqueueLocked(n)
	w.mu.Unlock()
	if wake {
		w.d.makeReady(&w.seat)
	}
	return nil
}

// admitFull is admit where there is no room.
func (w *ExecutorWorker) admitFull(n *node) error {
	a := w.dropping(Rejected, ErrFull)
	switch w.room.full {
	case Block:
		call := w.room.wait(n)
		w.mu.Unlock()
		return <-call.answer
	case Fail:
		w.mu.Unlock()
		return ErrFull
	case DropNewest:
		w.acceptLocked(n)
		n.claim(Rejected)
		a.addLocked(n)
		w.q.count(n)
	case DropOldest:
		w.q.dropOldest(Rejected, a.addLocked)
		w.armLocked() // it may have been delayed
		a.wake = w.enqueueLocked(n)
	}
	w.unlock(&a)
	return nil
}

// acceptLocked gives n its number: from here on it has one outcome.
func (w *ExecutorWorker) acceptLocked(n *node) {
	n.seq = w.q.accept()
	if w.o.observer != nil {
		n.stamp = clock()
	}
}

// enqueueLocked accepts n and reports whether makeReady is to be called.
func (w *ExecutorWorker) enqueueLocked(n *node) (wake bool) {
	w.acceptLocked(n)
	if n.timed {
		w.q.delay(n)
		// Reading the clock costs as much as all else that delaying does. If the caller has
		// waited for the lock since it has read it, the timer fires late by that.
		w.alarm.set(w.q.heap[0].at, n.stamp, w)
		return false // timerFires asks
	}
	w.queueDueLocked() // what is due by now comes before n
	w.q.push(entry{n: n})
	return w.life.wake(w.q.length)
}

// admits reports whether calls that wait for room may be accepted: not when ctx
// is done. It is asked before the lock is taken, see isCancelled.
func (w *ExecutorWorker) admits() bool { return w.room.most > 0 && !w.isCancelled() }

// admitBlockedLocked accepts calls that wait for room while there is some, if
// admits has said so, and reports whether makeReady is to be called.
func (w *ExecutorWorker) admitBlockedLocked(admits bool) (wake bool) {
	for admits {
		call := w.room.next(w.q.pending())
		if call == nil {
			break
		}
		if call.n.timed {
			call.n.stamp = clock() // it has waited
		}
		wake = w.enqueueLocked(call.n) || wake
		call.answer <- nil
	}
	return wake
}

// placeFreed lets calls that wait for room take the place of a task that
// starts. w has a goroutine, so nobody has to be told of them.
func (w *ExecutorWorker) placeFreed() {
	if !w.admits() {
		return
	}
	w.mu.Lock()
	w.admitBlockedLocked(true)
	w.mu.Unlock()
}
