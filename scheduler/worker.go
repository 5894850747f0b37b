package scheduler

import (
	"context"
	"iter"
	"time"

	"github.com/ambit-go/ambit/async"
	"github.com/ambit-go/ambit/internal/bridge"
)

// An ExecutorWorker runs what is scheduled on it in order, one at a time, on
// goroutines of its scheduler's pool. While it has nothing to do it holds no
// goroutine, no timer and no place in the pool. Any number of goroutines may
// use it, tasks of its own included.
type ExecutorWorker struct {
	s      *Scheduler
	o      workerOptions
	ctx    context.Context         // what the contexts of tasks are children of
	stop   context.CancelCauseFunc // cancels ctx
	unbind func() bool             // from the ctx that it was made with

	nextReady *ExecutorWorker // guarded by the scheduler's mu
	began     time.Duration   // when the task that runs began, if observed; only for the drain
	bond      *bond           // what the scope that it was made in knows of it; nil if there is none

	mu        mutex // guards what follows
	q         queue
	active    bool // it is ready, or being drained: somebody will look at it
	drained   bool // a goroutine of the pool is at it
	refusing  bool // nothing more is accepted
	closed    bool // and nothing is left
	timer     *time.Timer
	armed     bool          // timer runs
	due       time.Duration // when it fires
	idle      chan struct{} // closed when it is idle next; nil if nobody waits
	blocked   []*arrival    // wait for room, in order
	ticks     uint64
	activated uint64
}

// An arrival is a call that waits for room.
type arrival struct {
	n    *node
	told chan error
}

type workerKey struct{ w *ExecutorWorker }

// InWorker reports whether ctx is that of a task of w, or derived from one.
func InWorker(ctx context.Context, w *ExecutorWorker) bool {
	return ctx.Value(workerKey{w}) != nil
}

// NewWorker returns a worker that has nothing to do. The contexts of its tasks
// are children of ctx.
//
// If ctx carries a scope of package async the worker ends with it: when the
// scope has ended well it is drained before Scope returns, otherwise it is
// closed as soon as ctx is cancelled, and the task that runs is joined. Workers
// of one scope are drained in the reverse of the order in which they were made:
// make the last stage of a pipeline first. A ctx without a scope closes the
// worker when it ends. NewWorker does not block. A worker of a closed
// scheduler or an ended scope is closed from the first.
func (s *Scheduler) NewWorker(ctx context.Context, opts ...WorkerOption) *ExecutorWorker {
	if ctx == nil {
		panic("scheduler: NewWorker with a nil context: pass context.Background()")
	}
	w := &ExecutorWorker{s: s, o: s.o.workerOptions}
	for _, o := range opts {
		o.applyWorker(&w.o)
	}
	if w.o.name == "" {
		w.o.name = "worker"
	}
	w.ctx, w.stop = context.WithCancelCause(context.WithValue(ctx, workerKey{w}, true))
	if bridge.ScopeOf(ctx) != nil {
		w.bond = new(bond)
		w.bond.w.Store(w)
	}
	if !s.add(w) {
		_ = w.Close()
	}
	if w.bond != nil {
		async.OnExit(ctx, w.bond.scopeEnds)
	}
	if ctx.Done() != nil {
		unbind := context.AfterFunc(ctx, func() { w.close(context.Cause(ctx), Cancelled) })
		w.mu.Lock()
		w.unbind = unbind
		closed := w.closed
		w.mu.Unlock()
		if closed {
			unbind()
		}
	}
	return w
}

// A bond is all that a scope keeps of a worker that has ended before it.
type bond struct {
	w atomicPointer[ExecutorWorker]
}

// scopeEnds is the exit hook of the scope that a worker belongs to.
func (b *bond) scopeEnds(ctx context.Context, outcome error) error {
	w := b.w.Load()
	if w == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx) // it takes as long as it takes
	if outcome == nil {
		return w.Drain(ctx)
	}
	w.close(outcome, Cancelled)
	err := w.Wait(ctx)
	w.s.remove(w) // whoever has ended it may not have come to that yet
	return err
}

// Post schedules f, at the end of the queue, without a handle: it can be
// cancelled only with everything else that is pending. It allocates nothing
// once the worker is warm. It blocks only as [Capacity] says, and returns
// [ErrClosed] or [ErrFull] if f was not accepted. A nil f panics.
func (w *ExecutorWorker) Post(f func()) error {
	if f == nil {
		panic("scheduler: Post with a nil function")
	}
	w.mu.Lock()
	if w.refusing {
		w.mu.Unlock()
		return ErrClosed
	}
	if w.o.capacity > 0 || w.o.observer != nil {
		return w.admit(&node{w: w, plain: f, bare: true})
	}
	w.dueLocked()
	w.q.accept()
	w.q.push(entry{post: f})
	wake := !w.active
	w.active = true
	w.mu.Unlock()
	if wake {
		w.s.need(w)
	}
	return nil
}

// PostAll posts what fs yields, one behind the other with nothing between, and
// returns how many. With a [Capacity] or an observer they are posted one by
// one, up to the first error. fs is pulled to its end, on the calling goroutine,
// before anything is posted; if a function is nil PostAll panics and nothing
// is. It blocks as long as fs does, and as Post does.
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
	w.mu.Lock()
	if w.refusing {
		w.mu.Unlock()
		return 0, ErrClosed
	}
	w.dueLocked()
	for _, f := range all {
		w.q.accept()
		w.q.push(entry{post: f})
	}
	wake := !w.active && len(all) > 0
	w.active = w.active || wake
	w.mu.Unlock()
	if wake {
		w.s.need(w)
	}
	return len(all), nil
}

// Schedule schedules f. Its context is a child of the worker's and is cancelled
// with [ErrCancelled] by [Task.Cancel], with [ErrClosed] by Close, and when f
// has returned. It blocks only as [Capacity] says. A nil f panics.
func (w *ExecutorWorker) Schedule(f func(ctx context.Context)) (Task, error) {
	return w.schedule("Schedule", f, 0, false, nil)
}

// ScheduleAfter schedules f to join the end of the queue when d has passed, not
// before; with others in the order of the deadlines, equal ones in the order of
// the calls. d <= 0 is Schedule, whose blocking and errors it has.
func (w *ExecutorWorker) ScheduleAfter(d time.Duration, f func(ctx context.Context)) (Task, error) {
	return w.schedule("ScheduleAfter", f, later(clock(), d), d > 0, nil)
}

// ScheduleAt is ScheduleAfter for a time of day. Where t has a monotonic
// reading that counts; where it has none, steps of the wall clock before the
// call do. It blocks and fails as Schedule does.
func (w *ExecutorWorker) ScheduleAt(t time.Time, f func(ctx context.Context)) (Task, error) {
	return w.schedule("ScheduleAt", f, when(t), true, nil)
}

// ScheduleEvery schedules f to run again and again: the first time after first,
// then every period, on the grid of the two. Runs never overlap; ticks that
// were missed meanwhile are skipped. See [FixedDelay] and [Burst]. A period of
// 0 or less puts f at the end of the queue each time. It ends with Cancel, a
// panic, Goexit, or the worker, draining included. It allocates nothing for a
// tick; all runs share one context. It blocks and fails as Schedule does.
func (w *ExecutorWorker) ScheduleEvery(first, period time.Duration, f func(ctx context.Context), opts ...EveryOption) (Task, error) {
	p := newPeriod(period, opts)
	return w.schedule("ScheduleEvery", f, later(clock(), max(first, 0)), first > 0, p)
}

// schedule accepts f, if it is timed to be run at a time of our clock.
func (w *ExecutorWorker) schedule(what string, f func(ctx context.Context), at time.Duration, timed bool, p *period) (Task, error) {
	if f == nil {
		panic("scheduler: " + what + " with a nil function")
	}
	n := &node{w: w, task: f, period: p, at: at, timed: timed}
	if p != nil {
		p.next = n.at
	}
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

// admit is called with w.mu held, which it unlocks, and accepts n if there is
// room, or does what is to be done if there is none.
func (w *ExecutorWorker) admit(n *node) error {
	a := aftermath{outcome: Rejected, cause: ErrFull}
	if w.o.capacity > 0 && (len(w.blocked) > 0 || w.q.pending() >= w.o.capacity) {
		switch w.o.full {
		case Block:
			a := &arrival{n, make(chan error, 1)}
			w.blocked = append(w.blocked, a)
			w.mu.Unlock()
			return <-a.told
		case Fail:
			w.mu.Unlock()
			return ErrFull
		case DropNewest:
			w.acceptLocked(n)
			n.claim(Rejected)
			w.lose(&a)(n)
			w.q.count(n)
			w.unlock(a)
			return nil
		case DropOldest:
			w.q.claimOldest(Rejected, w.lose(&a))
			w.armLocked() // it may have been delayed
		}
	}
	a.wake = w.enqueueLocked(n)
	w.unlock(a)
	return nil
}

// acceptLocked gives n its number: from here on it has one outcome.
func (w *ExecutorWorker) acceptLocked(n *node) {
	n.seq = w.q.accept()
	if w.o.observer != nil {
		n.stamp = clock()
	}
}

// enqueueLocked accepts n and reports whether the scheduler has to be told.
func (w *ExecutorWorker) enqueueLocked(n *node) (wake bool) {
	w.acceptLocked(n)
	if n.timed {
		w.q.delay(n)
		w.ripenLocked()
	} else {
		w.dueLocked()
		w.q.push(entry{n: n})
	}
	return w.wakeLocked()
}

// admitLocked accepts calls that wait for room while there is some, and reports
// whether the scheduler has to be told.
func (w *ExecutorWorker) admitLocked() (wake bool) {
	for len(w.blocked) > 0 && w.q.pending() < w.o.capacity {
		a := w.blocked[0]
		w.blocked[0] = nil
		w.blocked = w.blocked[1:]
		wake = w.enqueueLocked(a.n) || wake
		a.told <- nil
	}
	if len(w.blocked) == 0 {
		w.blocked = nil
	}
	return wake
}

// refuseBlockedLocked tells calls that wait for room that there will be none.
func (w *ExecutorWorker) refuseBlockedLocked() {
	for _, a := range w.blocked {
		a.told <- ErrClosed
	}
	w.blocked = nil
}
