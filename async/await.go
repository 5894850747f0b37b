package async

import (
	"context"
	"fmt"
	"time"

	"github.com/ambit-go/ambit/async/internal/tree"
)

// Execute starts handler on a goroutine of its own and returns the future of its
// result.
//
//	user := async.Execute(ctx, fetchUser)
//	u, err := user.Await(ctx, 2*time.Second)
//
// # Details
//
// Execute does not block, but for an executor ([On]) that does.
//
// The task belongs to the scope of ctx, which joins it, and its context is a child of
// ctx: under [context.WithoutCancel] it is not cancelled with the scope. On a scope
// that has ended the future holds [ErrScopeEnded] and handler does not run. A ctx
// without a scope makes a root task, owned by its Await: see [Shutdown].
//
// A panic of handler is a [*PanicError] to those who await the future, Goexit is
// [ErrGoexit]. An error that nobody was given when the scope ends fails the scope, as
// an [*UnawaitedError]; of a root task it is printed when the future is collected. A
// nil handler or ctx panics.
//
// The shape is that of Bhatti's async library, made structured.
func Execute[T any](ctx context.Context, handler func(ctx context.Context) (T, error), opts ...TaskOption) *Future[T] {
	if handler == nil {
		panic("async: Execute with a nil handler: pass what is to be called")
	}
	f := new(job[T])
	f.init(tree.KindFuture, handler)
	f.startIn(ctx, opts)
	return f.public()
}

// Start is [Execute] for work without a value.
//
//	saved := async.Start(ctx, save)
//	_, err := saved.Join(ctx)
func Start(ctx context.Context, f func(ctx context.Context) error, opts ...TaskOption) *Future[struct{}] {
	if f == nil {
		panic("async: Start with a nil function: pass what is to be called")
	}
	n := &named[struct{}]{what: f}
	n.init(tree.KindFuture, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) })
	return n.startIn(ctx, opts)
}

// named is a future that stands for another function than its handler, by
// whose name it goes.
type named[T any] struct {
	job[T]
	what any
}

func (n *named[T]) Func() any { return n.what }

func (n *named[T]) startIn(ctx context.Context, opts []TaskOption) *Future[T] {
	n.f.Task.Self = n
	n.job.startIn(ctx, opts)
	return n.public()
}

// startIn starts f, or settles it if the scope of ctx has ended.
func (f *job[T]) startIn(ctx context.Context, opts []TaskOption) {
	t, ctx := tree.Nearest(ctx)
	if len(opts) > 0 {
		f.checkDiscard(opts)
	}
	s, started := tree.OwnerOf(t), false
	if isPlain(s, ctx, opts) {
		started = f.f.Task.Start(s)
	} else {
		started = startWith(&f.f.Task, s, ctx, opts)
	}
	if !started {
		f.f.SettleUnowned(tree.LateStart(t, f.f.Task.Naming().In(nil)))
	}
}

// checkDiscard panics if a discard hook is for another type.
func (f *job[T]) checkDiscard(opts []TaskOption) *tree.TaskOptions {
	var o tree.TaskOptions
	for _, opt := range opts {
		mustNotBeNil(opt)
		opt.applyTask(&o)
	}
	if _, ok := o.Discard.(func(T)); o.Discard != nil && !ok {
		panic(fmt.Sprintf("async: OnDiscard takes a %T, the future's values are %T: make the types the same",
			o.Discard, *new(T)))
	}
	return &o
}

// Await is the holder's wait: the result in time, or abort it.
//
//	user, err := f.Await(ctx, 2*time.Second)
//
// # Details
//
// Await returns the outcome of the task. If the task has not settled timeout after the
// call, or when ctx is done, Await aborts it: the task's context is cancelled with a
// [*TimeoutError] or the cause of ctx, its abort hook is started, and Await returns
// the zero value and that error. With [Grace] it waits that much longer and, if the
// task settles, returns its result. A timeout of 0 sets no limit; a negative one has
// already expired.
//
// A settled task always wins over an expired limit or a done ctx. Await never spoils
// anything: a later wait is given the real outcome, the handler's own error and the
// cause both, unless [OnDiscard] says otherwise. The task itself goes on until its
// handler returns; its scope joins it, not Await. The first Await that expires aborts
// for all; to look on only, use [Future.Wait].
//
// The task of ctx is the one that waits: it lends its slot of a [Limit] meanwhile, and
// a wait that could never end returns [ErrAwaitCycle]. Await panics on a nil Future or
// ctx, and so do the other methods.
func (f *Future[T]) Await(ctx context.Context, timeout time.Duration) (T, error) {
	if end, why := f.made("Await").Block(ctx, timeout, true); why != nil {
		if why = f.f.Expire(ctx, why, end); why != nil {
			return *new(T), why
		}
	}
	return f.outcome()
}

// Wait is the observer's wait: look on until the task settles, or ctx is done.
//
//	user, err := f.Wait(ctx) // leaves the task alone
//
// # Details
//
// Wait blocks until the task settles and returns its outcome. When ctx is done before,
// it returns an error that matches ctx.Err and its Cause, and leaves the task alone:
// use it for futures that others share. The task of ctx is the one that waits: it
// lends its slot of a [Limit], and a wait that could never end returns
// [ErrAwaitCycle]. The work of the task happens before Wait returns.
func (f *Future[T]) Wait(ctx context.Context) (T, error) {
	if _, why := f.made("Wait").Block(ctx, 0, true); why != nil {
		return *new(T), why
	}
	return f.outcome()
}

// Join waits until the end: it blocks until the task has settled, however long that
// takes, and returns its outcome.
//
//	f.Cancel(errTooLate)
//	_, err := f.Join(ctx) // now it is gone
//
// # Details
//
// The handler and everything started in it have ended when Join returns. It is
// [Future.Wait] under [context.WithoutCancel]: ctx says only which task waits, as in
// [Future.Await], and that it is done, or its scope has ended, does not cut the wait
// short. Join aborts nothing. To stop a task and see it gone, call [Future.Cancel]
// first.
//
// A wait that could never end returns [ErrAwaitCycle]. A promise that nobody resolves
// ends with its scope, see [ErrAbandoned]; that of a root never ends.
//
// Everything that the task did happens before Join returns. Any number of goroutines
// may call it, any number of times. The name is that of pthread_join and of the
// Thread.join of Java.
func (f *Future[T]) Join(ctx context.Context) (T, error) {
	if c := f.made("Join"); !c.Settled() || ctx == nil {
		if _, why := c.Block(withoutCancel(ctx), 0, true); why != nil {
			return *new(T), why
		}
	}
	return f.outcome()
}

// withoutCancel is context.WithoutCancel, which says less of a nil ctx.
func withoutCancel(ctx context.Context) context.Context {
	tree.Nearest(ctx)
	return context.WithoutCancel(ctx)
}

// Result is the outcome of one of several tasks.
type Result[T any] struct {
	Index int // its place in the arguments
	Value T
	Err   error
}

// Grace is how long an Await that has expired goes on waiting for the aborted task to
// settle.
//
//	async.Execute(ctx, fetchUser, async.Grace(time.Second))
//
// # Details
//
// Defaults to 0.
func Grace(d time.Duration) TaskOption {
	return taskOption(func(t *tree.TaskOptions) { t.Grace = max(d, 0) })
}

// AwaitAll awaits futures as [Future.Await] does, all with one limit that starts at
// the call, and returns their outcomes in the order of the arguments.
//
//	results := async.AwaitAll(ctx, 2*time.Second, user, friend)
//
// # Details
//
// When the limit passes or ctx is done, those that have not settled are aborted all at
// once, before any grace is waited for. AwaitAll blocks no longer than timeout and the
// longest [Grace]. A nil Future or ctx panics; without futures the result is empty.
func AwaitAll[T any](ctx context.Context, timeout time.Duration, futures ...*Future[T]) []Result[T] {
	results := make([]Result[T], len(futures))
	var all []*tree.Future
	for _, f := range futures {
		all = append(all, f.made("AwaitAll"))
	}
	errs := tree.AwaitAll(ctx, timeout, all)
	for i, f := range futures {
		results[i].Index = i
		if errs[i] != nil {
			results[i].Err = errs[i]
		} else {
			results[i].Value, results[i].Err = f.outcome()
		}
	}
	return results
}

// Sleep waits for d and returns nil, or returns an error that matches ctx.Err and its
// Cause as soon as ctx is done.
//
//	err := async.Sleep(ctx, time.Second)
//
// # Details
//
// A task lends its slot of a [Limit] meanwhile; after d it waits until it has one
// again. d <= 0 only looks at ctx.
func Sleep(ctx context.Context, d time.Duration) error {
	if ctx == nil {
		_, _ = tree.Nearest(ctx) // panics, and says why
	}
	if stop := tree.StopOf(ctx); stop != nil {
		return stop.AsError()
	}
	if d <= 0 {
		return nil
	}
	return tree.Sleep(ctx, d)
}
