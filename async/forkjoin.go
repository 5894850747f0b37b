package async

import (
	"context"
	"errors"
	"iter"
	"time"
)

// This file is about doing the same to many items at once. The workers are in
// crew.go, what consumes sequences is in stream.go.

// A ForkOption changes how items are worked on. [Name], [Timeout] and
// [HookTimeout] hold for the call as a whole.
type ForkOption interface{ applyFork(*forkOptions) }

type forkOptions struct {
	task     []TaskOption  // for the future of ForkJoin
	scope    []ScopeOption // for the scope of the others
	limit    int           // 0: none
	failFast bool
	timeout  time.Duration // of an item; 0: none
}

func newForkOptions(opts []ForkOption) *forkOptions {
	o := new(forkOptions)
	for _, opt := range opts {
		opt.applyFork(o)
	}
	return o
}

type forkOption func(*forkOptions)

func (o forkOption) applyFork(f *forkOptions) { o(f) }

// FailFast has the first failure cancel the rest. Items that have not been
// begun by then are not begun. Without it every item has its turn.
func FailFast() ForkOption { return forkOption(func(f *forkOptions) { f.failFast = true }) }

// ItemTimeout limits the time of each item: its context is cancelled with a
// [*TimeoutError] d after it has begun. d <= 0 has already expired.
func ItemTimeout(d time.Duration) ForkOption {
	if d <= 0 {
		d = -1
	}
	return forkOption(func(f *forkOptions) { f.timeout = d })
}

// errNotBegun stands in results of items that nobody has come to.
var errNotBegun = errors.New("async: not begun")

// ForkJoin calls f for every item, all at the same time or at most [Limit] at
// once, and returns the future of their results in the order of the items. It
// does not block.
//
// Every item is a task: what f starts with its ctx belongs to the item and has
// ended when its result counts, and a panic or Goexit is the item's error. By
// default all items have their turn and the future's error is nil, the errors
// are in the results; if nobody is given these, they fail the scope. With
// [FailFast], or if the future is cancelled or its [Timeout] passes, the error
// is that, and the value is the results so far: of an item that was not begun
// the cause is the error. An Await whose own limit passes gives no results;
// a later one does.
//
// With a limit, small items are done by a few goroutines that live for the
// whole call. A handler may call ForkJoin again, to any depth: to bound all of
// it together, set [Limit] on a scope around it.
//
// The name is that of Doug Lea's framework for Java (2000).
func ForkJoin[A, B any](ctx context.Context, items []A, f func(ctx context.Context, item A) (B, error), opts ...ForkOption) *Future[[]Result[B]] {
	if f == nil {
		panic("async: ForkJoin with a nil function")
	}
	o := newForkOptions(opts)
	k := &forked[A, B]{items: items, work: f, failFast: o.failFast}
	k.crew = crew{s: &k.s, fn: f, do: k.do, doMany: k.doMany, done: k.done, next: k.next, gone: k.gone, timeout: o.timeout}
	k.init(kindFork, nil)
	k.f.t.self = k
	for _, opt := range o.task {
		opt.applyTask(&k.m.taskOptions)
	}
	if err := k.s.stand(ctx, &k.f.t, &k.m); err != nil {
		k.f.settleUnowned(err)
		return &k.Future
	}
	if k.m.on != nil {
		k.s.on = k.m.on
	}
	k.fork(o)
	return &k.Future
}

// forked is a future made by ForkJoin. No goroutine stands behind it: the last
// worker settles it.
type forked[A, B any] struct {
	Future[[]Result[B]]
	items    []A
	work     func(context.Context, A) (B, error)
	failFast bool
	crew     crew
	s        scope // of the workers
	m        more
	live     atomicInt64 // workers, and who starts them
	_        apart
	taken    atomicInt64 // items that were given out
	_        apart
	results  []Result[B] // each written by who does the item
}

func (k *forked[A, B]) fn() any { return k.work }

// fork starts the workers.
func (k *forked[A, B]) fork(o *forkOptions) {
	if k.m.timeout != 0 {
		k.s.limitTime(k.m.timeout)
	}
	k.results = make([]Result[B], len(k.items))
	n := len(k.items)
	if o.limit > 0 {
		n = min(n, o.limit)
	}
	k.live.Store(1)
	if o.limit > 0 {
		start(k, make([]workerApart, n), func(w *workerApart) *worker { return &w.worker })
	} else {
		start(k, make([]worker, n), func(w *worker) *worker { return w })
	}
	k.gone()
}

// apart keeps what one goroutine writes all the time out of the cache lines of
// others: measured, tiny items cost half as much.
type apart [64]byte

// workerApart is a worker that does many items.
type workerApart struct {
	worker
	_ apart
}

func start[A, B, W any](k *forked[A, B], workers []W, of func(*W) *worker) {
	for j := range workers {
		i, ok := k.next(nil)
		if !ok {
			return
		}
		k.crew.start(of(&workers[j]), i)
	}
}

func (k *forked[A, B]) do(ctx context.Context, i int) (err error) {
	k.results[i].Value, err = k.work(ctx, k.items[i])
	return err
}

// doMany does items one after another until one leaves something, fails, or
// panics, and reports true if there are no more. The caller deals with that
// one. Measured, a tiny item takes 15 ns here and 50 in the
// loop of the caller.
func (k *forked[A, B]) doMany(w *worker) (over bool) {
	for {
		i := w.i
		value, err := k.work(&w.t, k.items[i])
		if err != nil || !w.t.spotless() {
			k.results[i].Value, w.err = value, err
			return false
		}
		next, ok := k.next(w)
		r := &k.results[i] // written only now: waiting for its cache line and that of taken overlap
		r.Index, r.Value = i, value
		if !ok {
			w.t.exit = byReturn
			return true
		}
		w.i = next
	}
}

// next gives out the items in order until the call is cancelled. Without a w,
// a worker is to be started for the item.
func (k *forked[A, B]) next(w *worker) (i int, ok bool) {
	if k.s.sig.Load() != nil {
		if int(k.taken.Load()) < len(k.items) {
			k.s.noteSkipped()
		}
		return 0, false
	}
	i = int(k.taken.Add(1)) - 1
	if i >= len(k.items) {
		return 0, false
	}
	if w == nil {
		k.live.Add(1)
	}
	return i, true
}

// done notes how item i ended.
func (k *forked[A, B]) done(i int, v *verdict, _ *worker) {
	k.results[i].Index, k.results[i].Err = i, v.err
	if v.err == nil || v.err == errNotBegun {
		return
	}
	switch {
	case k.s.echoes(v):
		k.s.noteEcho()
	case k.failFast:
		k.s.failWith(v)
	default:
		k.s.note(v)
	}
}

// gone is called when a worker has left. The last one settles the future.
func (k *forked[A, B]) gone() {
	if k.live.Add(-1) > 0 {
		return
	}
	k.s.close()
	var v verdict
	k.s.verdict(nil, false, &v)
	sg := k.s.signal()
	if sg != nil {
		k.explain(sg.told())
	} else {
		v.partial = true // the errors are in the results
	}
	k.value = k.results
	k.f.settle(&v)
}

// explain gives why as the error of every item that was not begun: those that
// were not given out, and those whose worker never ran.
func (k *forked[A, B]) explain(why error) {
	taken := int(k.taken.Load())
	for i := range k.results {
		if i >= taken || k.results[i].Err == errNotBegun {
			k.results[i].Index, k.results[i].Err = i, why
		}
	}
}

// ForEach calls f for every item of a sequence, at the same time or at most
// [Limit] at once, and returns when all have ended. The sequence runs on the
// calling goroutine and is pulled only while fewer than Limit items are
// unfinished.
//
// Every item is a task, as in [ForkJoin]. ForEach returns nil, or what went
// wrong as [Scope] does; a panic of an item cancels the rest and is raised
// again. By default an error stops nobody; with [FailFast] the first cancels
// the rest, and no more is pulled. Nor is it once ctx is done.
func ForEach[A any](ctx context.Context, items iter.Seq[A], f func(ctx context.Context, item A) error, opts ...ForkOption) error {
	if items == nil || f == nil {
		panic("async: ForEach with a nil sequence or function")
	}
	o := newForkOptions(opts)
	return Scope(ctx, func(ctx context.Context) error {
		work := func(ctx context.Context, a A) (struct{}, error) { return struct{}{}, f(ctx, a) }
		newStream(ctx.(*task).scope(), o, f, work).forEach(items)
		return nil
	}, o.scope...)
}

// Map calls f for every item of a sequence, at the same time or at most
// [Limit] at once, and yields the results in the order of the items. It does
// nothing until it is ranged over; then the sequence runs on the ranging
// goroutine, and is pulled only while fewer than Limit items are unfinished or
// not yet yielded. While it is pulled nothing is yielded, so a sequence that
// blocks holds up results that are ready.
//
// Every item is a task, as in [ForkJoin]; its panic or Goexit is its error.
// With [FailFast] the first error cancels the rest and ends the pulling. When
// ctx is done nothing more is pulled; what was begun is yielded, and then
// once, if there may have been more, the zero value with an error that matches
// ctx.Err and its Cause.
//
// Leaving the loop, by whatever way, cancels what was begun with [ErrDecided]
// and joins it before the statement ends. A panic that was not yielded by then
// is raised.
func Map[A, B any](ctx context.Context, items iter.Seq[A], f func(ctx context.Context, item A) (B, error), opts ...ForkOption) iter.Seq2[B, error] {
	if items == nil || f == nil {
		panic("async: Map with a nil sequence or function")
	}
	o := newForkOptions(opts)
	return func(yield func(B, error) bool) {
		iterate(ctx, items, o, f, f, false, func(r Result[B]) bool { return yield(r.Value, r.Err) })
	}
}

// AsCompleted is [Map] for a sequence of tasks, whose results it yields in the
// order in which they end, each with the index of its task in the sequence.
// After cancellation the error comes with the index of the task that would
// have been next.
func AsCompleted[T any](ctx context.Context, tasks iter.Seq[func(context.Context) (T, error)], opts ...ForkOption) iter.Seq2[int, Result[T]] {
	if tasks == nil {
		panic("async: AsCompleted with a nil sequence")
	}
	o := newForkOptions(opts)
	call := func(ctx context.Context, task func(context.Context) (T, error)) (T, error) { return task(ctx) }
	return func(yield func(int, Result[T]) bool) {
		iterate(ctx, tasks, o, "async.AsCompleted", call, true, func(r Result[T]) bool { return yield(r.Index, r) })
	}
}
