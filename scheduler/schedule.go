package scheduler

import (
	"context"
	"iter"
	"time"
)

// This file is the ways to schedule.

// Post schedules f, at the end of the queue, without a handle: it can be
// cancelled only with everything else that is pending. It allocates nothing
// once the worker is warm. It blocks only as [Capacity] says, and returns
// [ErrClosed] or [ErrFull] if f was not accepted. A nil f panics.
func (w *ExecutorWorker) Post(f func()) error {
	if f == nil {
		panic("scheduler: Post with a nil function")
	}
	if w.isCancelled() {
		return ErrClosed
	}
	w.mu.Lock()
	if w.refusing {
		w.mu.Unlock()
		return ErrClosed
	}
	if w.o.capacity > 0 || w.o.observer != nil {
		return w.admit(&node{w: w, plain: f, noContext: true})
	}
	w.queueDueLocked()
	w.q.pushPost(f)
	wake := !w.active
	w.active = true
	w.mu.Unlock()
	if wake {
		w.s.makeReady(w)
	}
	return nil
}

// PostAll posts what fs yields, one behind the other with nothing between, and
// returns how many. With a [Capacity] or an observer they are posted one by
// one, up to the first error. fs is pulled to its end, on the calling goroutine,
// before anything is posted; if a function is nil PostAll panics and nothing
// is. It blocks as long as fs does, and as Post does, whose errors it returns.
func (w *ExecutorWorker) PostAll(fs iter.Seq[func()]) (int, error) {
	var all []func()
	for f := range fs {
		if f == nil {
			panic("scheduler: PostAll of a nil function")
		}
		all = append(all, f)
	}
	if w.o.capacity > 0 || w.o.observer != nil {
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
	if w.refusing {
		w.mu.Unlock()
		return 0, ErrClosed
	}
	w.queueDueLocked()
	for _, f := range all {
		w.q.pushPost(f)
	}
	wake := w.wakeLocked()
	w.mu.Unlock()
	if wake {
		w.s.makeReady(w)
	}
	return len(all), nil
}

// Schedule schedules f. Its context is a child of the worker's and is cancelled
// with [ErrCancelled] by [Task.Cancel], with [ErrClosed] by Close, and when f
// has returned. It blocks only as [Capacity] says, and returns [ErrClosed] or
// [ErrFull] if f was not accepted. A nil f panics.
func (w *ExecutorWorker) Schedule(f func(ctx context.Context)) (Task, error) {
	return w.schedule("Schedule", &node{task: f}, 0)
}

// ScheduleAfter schedules f to join the end of the queue when d has passed, not
// before; with others in the order of the deadlines, equal ones in the order of
// the calls. d <= 0 is Schedule, whose blocking and errors it has.
func (w *ExecutorWorker) ScheduleAfter(d time.Duration, f func(ctx context.Context)) (Task, error) {
	now := clock()
	return w.schedule("ScheduleAfter", &node{task: f, at: later(now, d), timed: d > 0}, now)
}

// ScheduleAt is ScheduleAfter for a time of day. Where t has a monotonic
// reading that counts; where it has none, steps of the wall clock before the
// call do. It blocks and fails as Schedule does.
func (w *ExecutorWorker) ScheduleAt(t time.Time, f func(ctx context.Context)) (Task, error) {
	at := onClock(t)
	now := clock()
	return w.schedule("ScheduleAt", &node{task: f, at: at, timed: at > now}, now)
}

// ScheduleEvery schedules f to run again and again: the first time after first,
// then every period, on the grid of the two. Runs never overlap; ticks that
// were missed meanwhile are skipped. See [FixedDelay] and [Burst]. A period of
// 0 or less puts f at the end of the queue each time. It ends with Cancel, a
// panic, Goexit, or the worker, draining included. It allocates nothing for a
// tick; all runs share one context. It blocks and fails as Schedule does.
func (w *ExecutorWorker) ScheduleEvery(first, period time.Duration, f func(ctx context.Context), opts ...EveryOption) (Task, error) {
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
	n.w, n.stamp = w, now
	w.mu.Lock()
	if w.refusing {
		w.mu.Unlock()
		return Task{}, ErrClosed
	}
	if err := w.admit(n); err != nil {
		return Task{}, err
	}
	return Task{n}, nil
}
