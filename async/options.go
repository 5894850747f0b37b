package async

import (
	"context"
	"time"

	"github.com/ambit-go/ambit/async/internal/tree"
)

// A TaskOption changes how one task is run. Later options win over earlier ones.
type TaskOption interface {
	WatchOption
	applyTask(*tree.TaskOptions)
}

// A ScopeOption changes how a scope is run. Later options win over earlier ones.
type ScopeOption interface {
	applyScope(*tree.ScopeOptions)
}

// An Option applies to tasks, to scopes, and to work on many items.
type Option interface {
	TaskOption
	ScopeOption
	ForkOption
}

// start starts t in owner, with ctx, nil if that is the owner's own; false if owner has
// ended.
func start(t *tree.Task, owner *tree.Scope, ctx context.Context, opts []TaskOption) bool {
	if isPlain(owner, ctx, opts) {
		return t.Start(owner)
	}
	return startWith(t, owner, ctx, opts)
}

// isPlain reports whether a task of owner has nothing but its handler, as most have. Where many
// are started that is asked in place, which saves them a frame.
func isPlain(owner *tree.Scope, ctx context.Context, opts []TaskOption) bool {
	return ctx == nil && len(opts) == 0 && owner.IsPlain()
}

func startWith(t *tree.Task, owner *tree.Scope, ctx context.Context, opts []TaskOption) bool {
	m := tree.MoreIn(owner, t, ctx != nil || len(opts) > 0)
	set(m, opts)
	return tree.StartWith(t, owner, ctx, m)
}

// newMore returns what a task needs beside itself that is made for owner, with options.
func newMore(owner *tree.Scope, opts []TaskOption) *tree.More {
	m := new(tree.More)
	m.Priority = owner.Priority
	set(m, opts)
	m.Inherit(owner)
	return m
}

func set(m *tree.More, opts []TaskOption) {
	for _, o := range opts {
		mustNotBeNil(o)
		o.applyTask(&m.TaskOptions)
	}
}

// newScopeOptions returns the settings that opts make, nil for none.
func newScopeOptions(opts []ScopeOption) *tree.ScopeOptions {
	if len(opts) == 0 {
		return nil
	}
	o := new(tree.ScopeOptions)
	for _, opt := range opts {
		mustNotBeNil(opt)
		opt.applyScope(o)
	}
	return o
}

type taskOption func(*tree.TaskOptions)

func (o taskOption) applyTask(t *tree.TaskOptions) { o(t) }
func (o taskOption) applyPoll(p *pollOptions)      { p.task = append(p.task, o) }

func (o taskOption) applyWatch(w *watchOptions) { w.task = append(w.task, o) }

type scopeOption func(*tree.ScopeOptions)

func (o scopeOption) applyScope(s *tree.ScopeOptions) { o(s) }

type bothOption struct {
	taskOption
	scopeOption
}

func (o bothOption) applyFork(f *forkOptions) {
	f.task = append(f.task, o.taskOption)
	f.scope = append(f.scope, o.scopeOption)
}

// Name names a task or a scope in errors, events and reports.
//
//	async.Go(ctx, sweep, async.Name("sweeper"))
//
// # Details
//
// Defaults to the name of the function, behind the name of the nearest named scope, if
// any.
func Name(name string) Option {
	return bothOption{
		func(t *tree.TaskOptions) { t.Name = name },
		func(s *tree.ScopeOptions) { s.Name = name },
	}
}

// Timeout cancels a task or scope with a [*TimeoutError] as the cause, d after it has
// started to run.
//
//	err := async.Scope(ctx, handle, async.Timeout(5*time.Second))
//
// # Details
//
// Time spent in the queue of a Limit does not count. 0, the default, sets no limit,
// unlike context.WithTimeout, for which 0 is over already; a negative d has already
// expired.
func Timeout(d time.Duration) Option {
	return bothOption{
		func(t *tree.TaskOptions) { t.Timeout = d },
		func(s *tree.ScopeOptions) { s.Timeout = d },
	}
}

// HookTimeout is how long the context of a hook lasts: of a task's abort hook, or of a
// scope's exit hooks and the hooks of everything started inside.
//
//	err := async.Scope(ctx, serve, async.HookTimeout(30*time.Second))
//
// # Details
//
// An exit hook that has not returned by then is listed as a [*TimeoutError] of that
// hook, whatever it returns later; an abort hook is a straggler. Both are waited for.
// Defaults to 5 s; d <= 0 means the default.
func HookTimeout(d time.Duration) Option {
	d = max(d, 0)
	return bothOption{
		func(t *tree.TaskOptions) { t.HookTimeout = d },
		func(s *tree.ScopeOptions) { s.HookTimeout = d },
	}
}

// Limit bounds how many tasks of the scope, and of the scopes inside it, run at the
// same time; how many have been started is not bounded, and starting never blocks.
//
//	err := async.Scope(ctx, crawl, async.Limit(8))
//
// # Details
//
// A task lends its slot while it waits in this package under its own ctx: for a
// future, for a scope or a sequence inside it, in Sleep, between probes. So nested
// work cannot deadlock, not even with n = 1. When the wait is over the task queues for
// its slot before any task that has not begun. A wait that is cut short by its limit
// or its ctx returns at once, even over n, and the next free slot makes up for it. A
// task that waits with the ctx of another task, or in a channel operation, keeps its
// slot. Goroutines that a handler starts by a go statement are not counted. A slot is
// held until the handler returns.
//
// Queued tasks start deepest first, then those of the greatest [Priority], then in the
// order in which they came. A queued task whose context is cancelled settles with the
// cause, and never runs; one that finds a free slot as it is started does run. The
// body of the scope needs no slot. With a Limit inside another, a task needs a slot of
// both, the inner first. To bound the use of a resource, use a semaphore. n < 1
// panics.
//
// For [ForkJoin], [ForEach], [Map] and [AsCompleted] it bounds how many of the items
// of that call are worked on at the same time.
func Limit(n int) ScopeForkOption {
	if n < 1 {
		panic("async: Limit(n): n must be at least 1; leave the option out for no limit")
	}
	return limit(n)
}

// A ScopeForkOption applies to scopes and to work on many items.
type ScopeForkOption interface {
	ScopeOption
	ForkOption
}

type limit int

func (n limit) applyScope(s *tree.ScopeOptions) { s.Limit = int(n) }
func (n limit) applyFork(f *forkOptions)        { f.limit = int(n) }

// Observe tells o of the start, the end and a panic of everything that runs in the scope.
//
//	failures := async.ObserverFunc(func(e async.Event) { if e.Err != nil { log.Print(e.Task, ": ", e.Err) } })
//	err := async.Scope(ctx, serve, async.Observe(failures))
//
// # Details
//
// These are tasks, hooks, scopes inside it and what runs in those; not the
// scope itself, nor a task that was cancelled before it ran. Several observers of a scope
// are told in the order of the options, and those of the scopes around it after them. One
// that is a pointer is told of each task once, also where several scopes have it: in the
// place that it has in the outermost of these. With a method Kinds, see [Observer], it is
// told of other kinds of events.
//
// An observer that has a method
//
//	Enter(ctx context.Context, e Event) context.Context
//
// gives each task values of its own, as a span is: Enter is called before it is told of the
// start e, with the values of the ctx that the task was started with, and returns that ctx, or
// one that context.WithValue has made of it; another one is an error of the scope. The values
// are in the context of the task from then on, for what it starts, and in that of the event
// of its end, which comes when all that it has started has ended.
func Observe(o Observer) ScopeOption {
	if f, isFunc := o.(ObserverFunc); o == nil || isFunc && f == nil {
		panic("async: Observe(nil): leave the option out instead")
	}
	to := observerOf(o)
	return scopeOption(func(s *tree.ScopeOptions) { s.Observers = append(s.Observers, to) })
}

// A ForkOption changes how items are worked on. [Name], [Timeout] and
// [HookTimeout] hold for the call as a whole.
type ForkOption interface{ applyFork(*forkOptions) }

type forkOptions struct {
	task     []TaskOption  // for the future of ForkJoin
	scope    []ScopeOption // for the scope of the others
	limit    int           // 0: none
	failFast bool
	items    time.Duration // the time limit of each item; 0: none
}

// A PollOption changes how something is polled. Every [TaskOption] is one.
type PollOption interface{ applyPoll(*pollOptions) }

type pollOptions struct {
	task     []TaskOption
	attempts int // 0: no limit
	tolerate int
	late     bool // the first probe comes after an interval
	fixed    bool // at a fixed rate
	restart  bool // applies to neither polls nor Retry
}

// A WatchOption changes how something is watched. Every [TaskOption] is one,
// and holds for the handler's task. Each applies to polls, too.
type WatchOption interface {
	PollOption
	applyWatch(*watchOptions)
}

type watchOptions struct {
	task     []TaskOption
	tolerate int
}

// Priority sets how urgent a task is: among the tasks of one depth that queue for a
// slot of a [Limit], those of the greatest n start first, and equals in the order in
// which they came.
//
//	async.Go(ctx, answer, async.Priority(1))
//
// # Details
//
// A task that is deeper still starts before what is less deep, and a task that has
// waited gets its slot back before any other starts. A task that runs is not
// interrupted.
//
// Whatever the task starts, and what that starts, has the same priority, unless it
// sets its own. A task that is started by [Detach] does not inherit one. Defaults to
// 0; every int is valid. Without a Limit it has no effect.
//
// Inherited priorities are from Swift's structured concurrency (SE-0304).
func Priority(n int) TaskOption {
	return taskOption(func(t *tree.TaskOptions) { t.Priority = n })
}

// OnDiscard sets what happens to a value that nobody will be given, so that
// connections and files are closed: every value is given to a waiter, or f is called
// with it exactly once.
//
//	conn := async.Execute(ctx, dial, async.OnDiscard(func(c net.Conn) { c.Close() }))
//
// # Details
//
// A value that nobody will be given is one
//
//   - that comes after a waiter was told of an expiry, or after [Future.Cancel],
//   - of a Resolve that was not the first,
//   - beside an error of what the handler has started,
//   - that nobody was given when the scope ends; of a root task, when its future
//     is collected.
//
// f is called on a goroutine of its own, with no lock held, and is waited for: before
// that Resolve returns, before the task settles, or before the scope ends. Later waits
// are given the error that the first waiter was told, else [ErrScopeEnded]. A panic of
// f is an error of the scope.
//
// A value that nobody awaits is kept until its scope ends, which in the scope of a
// server is for ever: there await the future, or have the handler close what nobody
// wants.
//
// A nil f panics, and so does starting a future of another type than f takes.
func OnDiscard[T any](f func(T)) TaskOption {
	if f == nil {
		panic("async: OnDiscard(nil): leave the option out instead")
	}
	return taskOption(func(t *tree.TaskOptions) { t.Discard = f })
}
